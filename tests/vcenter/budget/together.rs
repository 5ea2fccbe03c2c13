// SPDX-License-Identifier: Apache-2.0
//! Twenty hostile servers at once leave memory and time to the sound one.

use super::attacks;
use super::measure::{INPUT, SLOW, WHOLE, cost, inspect_all};

#[tokio::test(flavor = "multi_thread")]
async fn inspections_twenty_hostile_servers_leave_memory_and_time() {
    let all = attacks::all(SLOW);
    assert!(all.len() > 15);
    for attack in &all {
        let mut command = tokio::process::Command::new(std::env::current_exe().unwrap());
        command.args([
            "--exact",
            "budget::together::inspections_in_a_process_of_their_own",
            "--ignored",
            "--nocapture",
        ]);
        let (name, cost) = (attack.0, cost(attack, command).await);
        println!(
            "{name:<28} {:>6.1} MiB more, the sound one after {:>4.1} s; {}",
            cost.memory, cost.sound, cost.error
        );
        assert!(cost.memory < 128.0, "{name}: {cost:?}");
        assert!(cost.all < WHOLE.as_secs_f64() + 5.0, "{name}: {cost:?}");
        assert!(cost.sound < WHOLE.as_secs_f64(), "{name}: {cost:?}");
    }
}

/// No test by itself: the process that another one starts.
#[test]
#[ignore = "started by another test"]
#[expect(clippy::disallowed_methods, reason = "how the other test says what to do")]
fn inspections_in_a_process_of_their_own() {
    if let Ok(input) = std::env::var(INPUT) {
        inspect_all(&input);
    }
}
