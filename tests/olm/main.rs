// SPDX-License-Identifier: Apache-2.0
//! The bundle, judged by the programs of the operator framework, and the operator installed, upgraded and removed by a real OLM.
#![allow(missing_docs, reason = "tests")]

mod admission;
mod bundle;
mod catalog;
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/follow.rs"]
mod follow;
mod install;
mod olm_bed;
mod page;
mod refused;
mod removal;
mod transcript;
mod upgrade;
mod v1;
