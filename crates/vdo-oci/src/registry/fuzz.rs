// SPDX-License-Identifier: Apache-2.0
//! Entry point for the fuzzer: parses any bytes as a token, challenge or header of a registry, without a panic.

use super::challenge::Challenge;
use super::token;
use crate::web::good_for;
use std::time::{Duration, Instant};
use vdo_api::retry::retry_after;
use vdo_api::types::{Later as _, Secret};

/// Reads an answer as the token of a service and as the headers of a registry, and computes with the times that it names. For how long the token
/// and the answer are good, and how long to wait, where it names that.
pub fn answer(bytes: &[u8]) -> [Option<Duration>; 3] {
    let text = String::from_utf8_lossy(bytes);
    let token = token::read(&Secret::new(&*text)).map(|(_, good_for)| good_for);
    let _ = Challenge::parse(text.lines());
    let times = [token, good_for(&text), retry_after(&text, jiff::Timestamp::UNIX_EPOCH)];
    for time in times.into_iter().flatten() {
        let _ = (
            Instant::now().later(time),
            tokio::time::Instant::now().later(time),
            vdo_api::types::time_after(jiff::Timestamp::MAX, time),
        );
    }
    times
}
