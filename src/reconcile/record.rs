//! What goes into the history of the drivers beside their objects (pure).

use super::choose::Chosen;
use super::render::{RenderCache, Wanted};
use super::rollback::Back;
use std::collections::BTreeMap;
use std::sync::Arc;
use vdo_api::api::VDOConfig;
use vdo_api::types::{Digest, DriverName, DriverVersion};
use vdo_core::drivers;
use vdo_core::matrix::{EMBEDDED, StoredMatrix};
use vdo_core::plan::{About, Desired, Inventory, RandomContent, Record};
use vdo_source::fetch::ChartRepository;

/// The matrix that the inventory keeps from now on; `None` leaves what it keeps.
pub(super) fn stored_matrix(repository: &ChartRepository, chosen: &Chosen, inventory: &Inventory) -> Option<Arc<StoredMatrix>> {
    let loaded = chosen.loaded.as_ref()?;
    let kept = inventory.kept(&loaded.source);
    let picks = chosen.resolution.picks.values();
    let mut charts: BTreeMap<Digest, Vec<u8>> = picks
        .filter_map(|pick| Some((pick.chart.digest.clone(), repository.packed(&pick.chart.digest)?)))
        .collect();
    // Where nothing could be chosen, the charts of what runs stay.
    if let (true, Some(kept)) = (charts.is_empty(), kept) {
        charts.clone_from(&kept.charts);
    }
    let source = loaded.source.clone();
    let signer = loaded.signer.as_ref().map(ToString::to_string);
    let is_same = |kept: &&Arc<StoredMatrix>| {
        let signed = kept.signer == signer && kept.signature == loaded.signed.signature && kept.lock == loaded.signed.lock;
        signed && kept.source == source && kept.digest == loaded.digest && kept.charts.keys().eq(charts.keys())
    };
    if let Some(kept) = kept.filter(is_same) {
        return Some(kept.clone());
    }
    let signed = &loaded.signed;
    let identity = (source, loaded.index.version, signer);
    Some(
        StoredMatrix::of(
            identity,
            (&signed.index, signed.signature.as_deref(), signed.lock.as_deref()),
            charts,
        )
        .after(inventory.matrix.as_deref().filter(|_| loaded.source != EMBEDDED))
        .into(),
    )
}

/// Of the drivers whose wanted objects are known: those with a chart, and those that are brought back.
pub(super) fn record(
    config: &VDOConfig,
    chosen: &Chosen,
    (wanted, renders): (&Wanted<'_>, &RenderCache),
    backs: &BTreeMap<DriverName, Back>,
    desired: &[Desired],
    drawn: RandomContent,
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

#[cfg(test)]
mod tests {
    use super::*;
    use vdo_source::fetch::{MatrixSource, Records, embedded};

    /// A command of another build decides with it.
    #[tokio::test]
    async fn matrix_in_the_binary_is_kept_and_stays_where_nothing_is_chosen() {
        let repository = ChartRepository::new(MatrixSource::Embedded);
        let loaded = repository.index(&Records::default()).await.expect("an index");
        let chosen = Chosen {
            loaded: Some(loaded),
            ..Chosen::default()
        };
        let mut inventory = Inventory::default();
        let kept = stored_matrix(&repository, &chosen, &inventory).expect("it is kept");
        assert_eq!(kept.index().as_deref(), Some(embedded::index()));
        let chart = vec![1; 9];
        let with_chart = StoredMatrix::of(
            ("embedded".into(), kept.version, None),
            (embedded::index(), None, None),
            [(Digest::of(&chart), chart)].into(),
        );
        inventory.keep(with_chart.into());
        let again = stored_matrix(&repository, &chosen, &inventory).expect("it is kept");
        assert_eq!(again.charts.len(), 1, "the chart of what runs is dropped");
        assert_eq!(stored_matrix(&repository, &Chosen::default(), &inventory), None);
    }
}
