// SPDX-License-Identifier: Apache-2.0
//! Polls the source of the matrix for a newer index, once in each `--matrix-interval`.

use crate::cluster::Fence;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::time::Duration;
use tokio::sync::watch;
use vdo_api::retry::MATRIX;
use vdo_source::fetch::ChartRepository;

/// Between looks at whether this operator leads: one that does not has no use for an index.
const TURN: Duration = Duration::from_secs(1);
/// Asks as long as it is polled. `asked` changes when a person wants it to be asked now.
pub(super) async fn follow(
    repository: &ChartRepository,
    fence: &Fence,
    interval: Duration,
    mut asked: watch::Receiver<Option<String>>,
    changed: impl Fn(),
) {
    let (mut failures, mut renamed) = (0, repository.renamed());
    loop {
        renamed.mark_unchanged();
        if !repository.is_polled() {
            let _ = renamed.changed().await;
            continue;
        }
        while !fence.is_open() {
            tokio::time::sleep(TURN).await;
        }
        asked.mark_unchanged();
        let polled = repository.poll().await;
        match &polled.problem {
            Some(problem) => {
                failures += 1;
                tracing::warn!(source = %repository, reason = %problem.reason, error = %problem.message, "the matrix could not be polled");
            }
            None => {
                failures = 0;
                tracing::info!(source = %repository, news = polled.news, "the matrix was polled");
            }
        }
        if polled.news {
            changed();
        }
        // Many operators must not ask at once.
        let seed = RandomState::new().hash_one(failures);
        tokio::select! {
            () = tokio::time::sleep(pause(interval, failures, polled.wait, seed)) => {}
            _ = asked.changed() => {}
            _ = renamed.changed() => failures = 0,
        }
    }
}

/// How long until the next time (pure).
fn pause(interval: Duration, failures: u32, asked: Option<Duration>, seed: u64) -> Duration {
    let own = match failures {
        0 => interval,
        _ => interval.min(MATRIX.after(failures)),
    };
    MATRIX.no_sooner(own, asked, seed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pause_is_the_interval_or_shorter_after_failures_and_what_the_server_asks() {
        const HOUR: u64 = 3600;
        for (interval, failures, asked, expected) in [
            (HOUR, 0, None, HOUR),
            (HOUR, 1, None, 30),
            (HOUR, 3, None, 120),
            (HOUR, 60, None, HOUR),
            (2, 1, None, 2),
            (HOUR, 1, Some(300), 300),
            (HOUR, 0, Some(60), HOUR),
            (HOUR, 0, Some(2 * HOUR), 2 * HOUR),
            (HOUR, 1, Some(400 * 24 * HOUR), 24 * HOUR),
        ] {
            let expected = Duration::from_secs(expected);
            for seed in 0..100 {
                let found = pause(Duration::from_secs(interval), failures, asked.map(Duration::from_secs), seed);
                let is_near = expected <= found && found <= expected.mul_f64(1.1);
                assert!(is_near, "{interval} {failures} {asked:?}: {found:?} instead of {expected:?}");
            }
        }
    }
}
