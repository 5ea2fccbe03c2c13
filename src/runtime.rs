// SPDX-License-Identifier: Apache-2.0
//! What surrounds the operator while it runs: its arguments, its logs, its metrics, and the port that shows them.

pub mod args;
pub mod heartbeat;
pub mod http;
pub mod metrics;
pub mod metrics_access;
pub mod telemetry;
