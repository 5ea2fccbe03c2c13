// SPDX-License-Identifier: Apache-2.0
//! The vSphere Kubernetes Drivers Operator as a library. The operator and `vdoctl` are the same pipeline:
//!
//! ```text
//! observe -> resolve -> fetch -> render -> plan -> apply -> assess -> report
//! (facts)    (pick)     (bytes)  (objects) (steps) (outcome) (health)  (status, events, metrics)
//! ```
//!
//! This crate is the operator:
//!
//! - [`reconcile`]: the pipeline.
//! - [`cluster`]: the Kubernetes API, as a cache fed by watches, and the only writes.
//! - `controller`: what wakes the pipeline.
//! - `runtime`: arguments, logs, metrics and probes.
//!
//! The last two are not built for Windows, where only `vdoctl` runs.
//!
//! What decides is in `vdo-core`, where a table can test it. The crates below this one are in the list of dependencies; `vdo-admin`, which can
//! change a vCenter, `vdo-author` and `vdoctl` are not. docs/architecture.md has all crates.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::too_many_lines))]

pub mod cluster;
#[cfg(unix)]
pub mod controller;
pub mod reconcile;
#[cfg(unix)]
pub mod runtime;
