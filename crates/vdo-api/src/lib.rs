// SPDX-License-Identifier: Apache-2.0
//! The types that every crate of VDO uses: custom resources, facts about a cluster, versions and digests, YAML, retry policies.
//!
//! - [`types`]: names, versions, ranges, digests, secrets, and errors with a remedy.
//! - [`api`]: the kinds VDOConfig, VsphereCloudConfig and CompatibilityConfig, with their conditions and reasons.
//! - [`facts`]: the observed cluster, its nodes and its vSphere connections, as data.
//! - [`retry`]: the retry policies of operations that may fail.
//! - [`yaml`]: YAML as Kubernetes reads it, with limits.
//!
//! The crate has no logic of an installation, and uses no client, clock, environment, file or await.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::too_many_lines))]

pub mod api;
pub mod facts;
pub mod retry;
pub mod types;
pub mod yaml;
