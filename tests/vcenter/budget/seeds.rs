// SPDX-License-Identifier: Apache-2.0
//! The seeds of the fuzzer, through the readers and through the real client.

use super::evil::{Evil, Reply};
use super::inspect;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use vdo_vsphere::vcenter::{Budget, Limits, Pool, fuzz};

fn seeds() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds/answer");
    let mut seeds: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    seeds.sort();
    assert!(seeds.len() > 20, "the seeds were not found");
    seeds
}

fn is_good(seed: &Path) -> bool {
    seed.file_name().unwrap().to_string_lossy().starts_with("good")
}

/// Those whose names begin with `good` are what a sound vCenter says.
#[test]
fn seed_through_readers_ends_as_its_name_says() {
    for seed in seeds() {
        let started = Instant::now();
        let read = fuzz::answer(&std::fs::read(&seed).unwrap());
        assert_eq!(read.iter().any(Result::is_ok), is_good(&seed), "{seed:?}: {read:?}");
        assert!(started.elapsed() < Duration::from_secs(2), "{seed:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn seed_as_answer_to_any_call_ends_within_limits() {
    let calls = [
        "RetrieveServiceContent",
        "Login",
        "CreateContainerView",
        "RetrievePropertiesEx",
        "PbmRetrieveContent",
        "/rest/",
    ];
    let limits = Limits {
        whole: Duration::from_secs(10),
        ..Limits::default()
    };
    let pool = Pool::default();
    for seed in seeds() {
        let text = std::fs::read(&seed).unwrap();
        for call in calls {
            let server = Evil::start([(call, Reply::Body(text.clone().into()))]).await;
            let started = Instant::now();
            let read = inspect(server.port, &Budget::new(limits, &pool)).await;
            assert!(started.elapsed() < limits.whole, "{seed:?} as {call}");
            match read {
                Err(error) => assert!(error.to_string().len() < 1000, "{seed:?} as {call}: {error}"),
                // What only concerns the policies or the tags is said of them; what a sound vCenter says may fit anywhere.
                Ok(seen) => assert!(
                    seen.tagging.is_err() || seen.policies.is_err() || is_good(&seed),
                    "{seed:?} as {call}"
                ),
            }
        }
    }
}
