// SPDX-License-Identifier: Apache-2.0
//! Installations of other tools, as plain data: what is taken along, what is lost, and what is refused.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod files;
mod lost;
mod oracle;
mod refused;
mod round_trip;
mod upstream;
mod workloads;
mod world;
