// SPDX-License-Identifier: Apache-2.0
//! Computes what the history of the drivers records beside their objects: revisions, basis, stored matrix (pure).

use super::choose::Choice;
use super::driver_run::{DriverRun, DriverRuns, Source};
use super::observe::ClusterState;
use super::render::RenderCache;
use std::collections::BTreeMap;
use std::sync::Arc;
use vdo_api::api::VDOConfig;
use vdo_api::types::Digest;
use vdo_core::drivers;
use vdo_core::matrix::{EMBEDDED, StoredMatrix};
use vdo_core::plan::{About, Inventory, Outcome, RandomContent, Record};
use vdo_source::fetch::ChartRepository;

/// The matrix that the inventory keeps from now on; `None` leaves what it keeps.
fn stored_matrix(repository: &ChartRepository, choice: &Choice, runs: &DriverRuns, inventory: &Inventory) -> Option<Arc<StoredMatrix>> {
    let loaded = choice.loaded.as_ref()?;
    let kept = inventory.kept(&loaded.source);
    let picks = runs.iter().filter_map(|run| run.pick.as_ref());
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

/// Of the drivers whose objects are known: those with a chart, and those that are brought back.
pub(super) fn record(
    config: &VDOConfig,
    (repository, renders): (&ChartRepository, &RenderCache),
    state: &ClusterState,
    (choice, runs): (&Choice, &DriverRuns),
    random: RandomContent,
) -> Record {
    let generation = config.metadata.generation.unwrap_or_default();
    let matrix = choice
        .index
        .as_ref()
        .map_or(0, |index| i64::try_from(index.version).unwrap_or(i64::MAX));
    let about = |run: &DriverRun| {
        let of_source = match run.source.as_ref()? {
            Source::Chart(chart) => About {
                version: chart.metadata.version.to_string(),
                chart: run.pick.as_ref().map(|pick| pick.chart.digest.to_string()).unwrap_or_default(),
                values: renders.values(&run.name).map(|digest| digest.to_string()).unwrap_or_default(),
                patches: renders.patches(&run.name),
                matrix,
                irreversible: choice.is_irreversible(&run.name, &chart.metadata.version),
                ..About::default()
            },
            Source::Revision(back) => About {
                rollback: Some(back.rollback.clone()),
                ..back.revision.about.clone()
            },
            Source::LastApplied => return None,
        };
        Some(About {
            configuration: configuration(run),
            generation,
            ill: ill(state, &run.name),
            ..of_source
        })
    };
    Record {
        about: runs.iter().filter_map(|run| Some((run.name.clone(), about(run)?))).collect(),
        drawn: random,
        limit: config.spec.revisions(),
        deadline: config.spec.deadline(),
        matrix: stored_matrix(repository, choice, runs, &state.inventory),
        ..Record::default()
    }
}

/// The nodes on which a driver does not work, for a change that begins now. What a change under way has made ill is not what was ill
/// before it.
fn ill(state: &ClusterState, driver: &str) -> Vec<String> {
    let newest = state.inventory.history.get(driver).and_then(|revisions| revisions.last());
    match newest.filter(|newest| newest.outcome != Outcome::Deployed) {
        Some(newest) => newest.about.ill.clone(),
        None => {
            let ill = state.running.get(driver).map(|health| &health.nodes.ill);
            ill.into_iter().flatten().take(KEPT).cloned().collect()
        }
    }
}

/// As many nodes are kept with a revision: more are not single nodes.
const KEPT: usize = 100;

/// The digest of the configuration of a driver.
fn configuration(run: &DriverRun) -> String {
    let written = drivers::known(&run.name).map(|known| known.written).unwrap_or_default();
    let own = run.objects.iter().map(|d| &d.object);
    let digests = own.filter(|o| written.contains(&(o.kind(), o.name()))).filter_map(|o| o.applied());
    Digest::of(digests.collect::<String>().as_bytes()).to_string()
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
        let choice = Choice {
            loaded: Some(loaded),
            ..Choice::default()
        };
        let mut inventory = Inventory::default();
        let kept = stored_matrix(&repository, &choice, &DriverRuns::default(), &inventory).expect("it is kept");
        assert_eq!(kept.index().as_deref(), Some(embedded::index()));
        let chart = vec![1; 9];
        let with_chart = StoredMatrix::of(
            ("embedded".into(), kept.version, None),
            (embedded::index(), None, None),
            [(Digest::of(&chart), chart)].into(),
        );
        inventory.keep(with_chart.into());
        let again = stored_matrix(&repository, &choice, &DriverRuns::default(), &inventory).expect("it is kept");
        assert_eq!(again.charts.len(), 1, "the chart of what runs is dropped");
        assert_eq!(
            stored_matrix(&repository, &Choice::default(), &DriverRuns::default(), &inventory),
            None
        );
    }
}
