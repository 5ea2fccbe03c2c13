//! What goes into the history of the drivers beside their objects (pure).

use super::choose::Chosen;
use super::desired::{Renders, Wanted};
use super::rollback::Back;
use crate::api::VDOConfig;
use crate::drivers;
use crate::plan::{About, Desired, Drawn, Record};
use crate::types::{Digest, DriverName, DriverVersion};
use std::collections::BTreeMap;

/// Of the drivers whose wanted objects are known: those with a chart, and those that are brought back.
pub(super) fn record(
    config: &VDOConfig,
    chosen: &Chosen,
    (wanted, renders): (&Wanted<'_>, &Renders),
    backs: &BTreeMap<DriverName, Back>,
    desired: &[Desired],
    drawn: Drawn,
) -> Record {
    let configuration = |driver: &str| {
        let written = drivers::known(driver).map(|known| known.written).unwrap_or_default();
        let own = desired.iter().filter(|d| *d.driver == *driver).map(|d| &d.object);
        let digests = own.filter(|o| written.contains(&(o.kind(), o.name()))).filter_map(|o| o.applied());
        Digest::of(digests.collect::<String>().as_bytes()).to_string()
    };
    let matrix = chosen
        .index
        .as_ref()
        .map_or(0, |index| i64::try_from(index.version).unwrap_or(i64::MAX));
    let is_irreversible = |driver: &str, version: &DriverVersion| {
        let from = chosen.entry(driver, version).and_then(|entry| entry.upgrades_from.as_ref());
        from.is_some_and(|from| from.irreversible)
    };
    let generation = config.metadata.generation.unwrap_or_default();
    let rendered = wanted.charts.iter().map(|(driver, chart)| {
        let pick = chosen.resolution.picks.get(driver);
        let about = About {
            version: chart.metadata.version.to_string(),
            chart: pick.map(|pick| pick.chart.digest.to_string()).unwrap_or_default(),
            values: renders.values(driver).map(|digest| digest.to_string()).unwrap_or_default(),
            configuration: configuration(driver),
            matrix,
            generation,
            irreversible: is_irreversible(driver, &chart.metadata.version),
            ..About::default()
        };
        (driver.clone(), about)
    });
    let back = backs.iter().map(|(driver, back)| {
        let about = About {
            configuration: configuration(driver),
            generation,
            rollback: Some(back.rollback.clone()),
            ..back.revision.about.clone()
        };
        (driver.clone(), about)
    });
    Record {
        about: rendered.chain(back).collect(),
        drawn,
        limit: config.spec.revisions(),
        deadline: config.spec.deadline(),
        ..Record::default()
    }
}
