//! The vSphere Kubernetes Drivers Operator as a library. The operator and `vdoctl` are the same pipeline:
//!
//! ```text
//! observe -> resolve -> fetch -> render -> plan -> apply -> assess -> report
//! (facts)    (pick)     (bytes)  (objects) (steps) (outcome) (health)  (status, events, metrics)
//! ```
//!
//! | layer | rooms | may use |
//! |---|---|---|
//! | 0 vocabulary | [`types`], [`api`], [`facts`] | serde, semver, kube-core |
//! | 1 pure core | [`yaml`], [`oci`], [`matrix`], [`chart`], [`driverconfig`], [`manifest`], [`admission`], [`health`], [`vsphere`], [`accounts`], [`fixes`], [`certificate`], [`plan`], [`publish`], [`status`] | layer 0; no client, clock, environment, file or await |
//! | 2 ports | [`cluster`], [`files`], [`web`], [`registry`], [`fetch`], [`vcenter`], [`layout`] | layers 0 and 1; not each other, except `files`, `web` and `registry` |
//! | 3 drivers | [`reconcile`], [`controller`], [`runtime`], [`cli`] | everything below |
//!
//! Imports point downwards; `tests/pure/layering.rs` holds the code to the table in `docs/architecture.md`. The pure core builds
//! without the feature `io`.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

pub mod accounts;
pub mod admission;
pub mod api;
pub mod certificate;
pub mod chart;
#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "io")]
pub mod cluster;
#[cfg(feature = "io")]
pub mod controller;
pub mod driverconfig;
pub mod drivers;
pub mod facts;
#[cfg(feature = "io")]
pub mod fetch;
#[cfg(feature = "io")]
pub mod files;
pub mod fixes;
pub mod health;
pub mod install;
#[cfg(feature = "io")]
pub mod layout;
pub mod manifest;
pub mod matrix;
pub mod mirror;
pub mod oci;
pub mod plan;
pub mod publish;
pub mod rbac;
#[cfg(feature = "io")]
pub mod reconcile;
#[cfg(feature = "io")]
pub mod registry;
#[cfg(feature = "io")]
pub mod runtime;
pub mod signature;
pub mod status;
#[cfg(feature = "io")]
pub mod transfer;
pub mod types;
#[cfg(feature = "io")]
pub mod vcenter;
pub mod vsphere;
#[cfg(feature = "io")]
pub mod web;
pub mod yaml;
