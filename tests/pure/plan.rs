// SPDX-License-Identifier: Apache-2.0
//! The promises of the planner, held against a small simulated cluster: plain data in which an apply inserts, a delete marks
//! and a tick removes what is marked.
#![allow(clippy::expect_used, clippy::panic, reason = "tests")]

mod approval;
mod commit;
mod held;
mod kept_matrix;
mod outline;
mod properties;
mod rules;
mod schedule;
mod simulation;
mod situations;
