// SPDX-License-Identifier: Apache-2.0
//! The vocabulary that every crate of VDO shares: values that cannot be wrong once they exist.
//!
//! - [`types`]: names, versions, ranges, digests, secrets, and errors with a remedy.
//! - [`api`]: the kinds VDOConfig, VsphereCloudConfig and CompatibilityConfig, with their conditions and reasons.
//! - [`facts`]: what was found out about a cluster and its connections, before anything is decided.
//! - [`retry`]: when something that failed is tried again.
//! - [`yaml`]: YAML as Kubernetes reads it, with limits.
//!
//! No logic of an installation is here, and no client, clock, environment, file or await.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::too_many_lines))]

pub mod api;
pub mod facts;
pub mod retry;
pub mod types;
pub mod yaml;
