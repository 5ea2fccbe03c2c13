// SPDX-License-Identifier: Apache-2.0
//! What each hostile answer costs when twenty vCenters give it at once: memory, and the delay of a sound vCenter. The inspections run in a
//! process of their own, so that nothing else is measured.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::panic,
    dead_code,
    reason = "a bench, with parts of the tests"
)]

#[path = "../tests/vcenter/budget/attacks.rs"]
mod attacks;
#[path = "../tests/vcenter/budget/evil.rs"]
mod evil;
#[path = "../tests/vcenter/budget/inspection.rs"]
mod inspection;
#[path = "../tests/vcenter/budget/measure.rs"]
mod measure;
#[path = "../tests/vcenter/probe/server.rs"]
mod server;
mod probe {
    pub(crate) use super::server;
}

use measure::{INPUT, SLOW, cost, inspect_all};

/// MiB above those of an idle operator.
const MEMORY: f64 = 128.0;
/// Seconds that a sound vCenter may wait.
const DELAY: f64 = 30.0;

#[expect(clippy::disallowed_methods, reason = "the bench starts itself once more, marked by a variable")]
fn main() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    match std::env::var(INPUT) {
        Ok(input) => inspect_all(&input),
        Err(_) => tokio::runtime::Runtime::new().unwrap().block_on(table()),
    }
}

async fn table() {
    println!("20 hostile vCenters at once, each inspection ended after 6 s at most:");
    println!("  {:<28} {:>12} {:>14}", "answer", "MiB more", "sound one, s");
    let within = |right: bool| if right { "" } else { "   MISSED" };
    let (mut memory, mut delay) = (0.0_f64, 0.0_f64);
    for attack in attacks::all(SLOW) {
        let cost = cost(&attack, tokio::process::Command::new(std::env::current_exe().unwrap())).await;
        println!("  {:<28} {:>12.1} {:>14.2}   {}", attack.0, cost.memory, cost.sound, cost.error);
        (memory, delay) = (memory.max(cost.memory), delay.max(cost.sound));
    }
    println!(
        "  {:<28} {memory:>12.1}   (less than {MEMORY}){}",
        "most memory",
        within(memory < MEMORY)
    );
    println!(
        "  {:<28} {delay:>12.2} s (less than {DELAY}){}",
        "longest delay",
        within(delay < DELAY)
    );
}
