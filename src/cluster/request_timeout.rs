// SPDX-License-Identifier: Apache-2.0
//! The deadlines of single requests to the API server, and `--request-timeout`, which replaces them.

use super::ClusterError;
use std::sync::OnceLock;
use std::time::Duration;
use vdo_api::types::ObjectId;

/// The deadline of a single request.
const DEADLINE: Duration = Duration::from_secs(15);

/// The deadline for an admission policy: the API server compiles all of its expressions before it answers.
const COMPILED: Duration = Duration::from_secs(60);

/// What a person gives each request instead of these deadlines.
static REQUEST_TIMEOUT: OnceLock<Duration> = OnceLock::new();

/// Gives every single request of this process this time, whatever its usual deadline; zero is for ever. The first call counts.
pub fn set_request_timeout(limit: Duration) {
    let _ = REQUEST_TIMEOUT.set(limit);
}

fn chosen(given: Option<Duration>, usual: Duration) -> Duration {
    given.map_or(usual, |given| if given.is_zero() { Duration::MAX } else { given })
}

/// The deadline of a request that usually has this one.
pub(super) fn deadline(usual: Duration) -> Duration {
    chosen(REQUEST_TIMEOUT.get().copied(), usual)
}

/// Runs a request with the deadline.
pub(super) async fn timed<T>(
    verb: &str,
    api_version: &str,
    id: &ObjectId,
    request: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, ClusterError> {
    let deadline = deadline(match id.kind() {
        "ValidatingAdmissionPolicy" => COMPILED,
        _ => DEADLINE,
    });
    match tokio::time::timeout(deadline, request).await {
        Ok(result) => result.map_err(|error| ClusterError::of(verb, api_version, id, error)),
        Err(_) => Err(ClusterError::TimedOut {
            verb: verb.into(),
            what: id.to_string(),
            after: deadline,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadline_that_is_given_wins_and_zero_is_for_ever() {
        let seconds = Duration::from_secs;
        for (given, expected) in [
            (None, seconds(15)),
            (Some(seconds(1)), seconds(1)),
            (Some(seconds(60)), seconds(60)),
            (Some(seconds(0)), Duration::MAX),
        ] {
            assert_eq!(chosen(given, DEADLINE), expected, "{given:?}");
        }
    }
}
