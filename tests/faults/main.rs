// SPDX-License-Identifier: Apache-2.0
//! The operator behind a proxy that kills it, loses its answers and shows it the past, in front of the real API server.
//!
//! `make test-all` (`VDO_FAULTS=all`) kills every scenario at every write in every mode, and `VDO_FAULTS=Join,Leave` those that it names.
//! Otherwise a sample is taken; its seed is printed and can be given with `VDO_SEED`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

mod api_server;
#[path = "../common/mod.rs"]
mod common;
mod crash;
mod lab;
mod lost_answers;
mod migration;
mod oracle;
mod points;
mod shared;
mod soak;
mod stale_reads;
