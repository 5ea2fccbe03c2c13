// SPDX-License-Identifier: Apache-2.0
//! The operator process: arguments, logs, metrics, liveness, and the port for probes and metrics.

pub mod args;
pub mod heartbeat;
pub mod http;
pub mod metrics;
pub mod metrics_access;
pub mod telemetry;
