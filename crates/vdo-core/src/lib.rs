// SPDX-License-Identifier: Apache-2.0
//! The decisions of VDO, as functions of data: the same input gives the same result on every machine.
//!
//! ```text
//! matrix        index x cluster -> versions
//! chart         package x values -> objects
//! plan          desired x live x inventory -> steps
//! health        live objects -> verdicts
//! status        a report -> conditions
//! ```
//!
//! The other modules serve these five:
//!
//! - [`drivers`] and [`driverconfig`]: the table of known drivers, and their configuration files
//! - [`installed`] and [`openshift`]: drivers that another tool or OpenShift runs
//! - [`manifest`] and [`patches`]: Kubernetes objects, and the patches of a user
//! - [`rbac`] and [`admission`]: the roles of the drivers, and the permitted content of objects
//! - [`certificate`]: the webhook's certificate
//! - [`install`]: the operator's own manifests
//! - [`mirror_lock`]: the lock file of a mirror
//! - [`volume_diagnosis`]: why a volume does not work
//! - [`window_schedule`]: when automatic changes are made
//!
//! There is no client, clock, environment, file or await; the caller passes the data and the time.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::too_many_lines))]

pub mod admission;
pub mod certificate;
pub mod chart;
pub mod driverconfig;
pub mod drivers;
pub mod health;
pub mod install;
pub mod installed;
pub mod manifest;
pub mod matrix;
pub mod mirror_lock;
pub mod openshift;
pub mod patches;
pub mod plan;
pub mod rbac;
pub mod status;
pub mod volume_diagnosis;
pub mod window_schedule;
