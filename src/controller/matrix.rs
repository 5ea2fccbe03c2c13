//! Asks the source of the matrix from time to time whether it has another index.

use crate::cluster::Fence;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::time::Duration;
use tokio::sync::watch;
use vdo_source::fetch::ChartRepository;

/// Between looks at whether this operator leads: one that does not has no use for an index.
const TURN: Duration = Duration::from_secs(1);
/// After the first failure; twice as long after each further one.
const FIRST: Duration = Duration::from_secs(30);
/// No server keeps us away for longer.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

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
        let chance = RandomState::new().hash_one(failures) as f64 / u64::MAX as f64;
        tokio::select! {
            () = tokio::time::sleep(pause(interval, failures, polled.wait, chance)) => {}
            _ = asked.changed() => {}
            _ = renamed.changed() => failures = 0,
        }
    }
}

/// How long until the next time (pure). `chance`, from 0 to 1, keeps many operators from asking at once.
fn pause(interval: Duration, failures: u32, wait: Option<Duration>, chance: f64) -> Duration {
    let own = match failures {
        0 => interval.mul_f64(0.9 + 0.2 * chance),
        _ => interval
            .min(FIRST.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1)).min(1 << 16)))
            .mul_f64(0.8 + 0.4 * chance),
    };
    own.max(wait.unwrap_or_default().min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pause_is_the_interval_or_shorter_after_failures_and_what_the_server_asks() {
        const HOUR: u64 = 3600;
        for (interval, failures, wait, chance, expected) in [
            (HOUR, 0, None, 0.5, HOUR),
            (HOUR, 0, None, 0.0, HOUR * 9 / 10),
            (HOUR, 0, None, 1.0, HOUR * 11 / 10),
            (HOUR, 1, None, 0.5, 30),
            (HOUR, 3, None, 0.5, 120),
            (HOUR, 60, None, 0.5, HOUR),
            (2, 1, None, 0.5, 2),
            (HOUR, 1, Some(300), 0.5, 300),
            (HOUR, 0, Some(60), 0.5, HOUR),
            (HOUR, 0, Some(2 * HOUR), 0.5, 2 * HOUR),
            (HOUR, 1, Some(400 * 24 * HOUR), 0.5, 24 * HOUR),
        ] {
            let found = pause(Duration::from_secs(interval), failures, wait.map(Duration::from_secs), chance);
            assert_eq!(
                found.as_secs_f64().round() as u64,
                expected,
                "{interval} {failures} {wait:?} {chance}"
            );
        }
    }
}
