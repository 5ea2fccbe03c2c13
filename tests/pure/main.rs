// SPDX-License-Identifier: Apache-2.0
//! The pure core and what is generated from it: no process, cluster or network.
#![allow(missing_docs, reason = "tests")]
mod adopt;
mod api_answers;
mod conformance;
mod crates;
mod crds;
mod deploy;
mod driverconfig;
mod drivers;
mod embedded;
#[path = "../../fuzz/src/lib.rs"]
mod fuzz;
#[path = "../../examples/generate/parts.rs"]
mod generate;
mod health;
mod history;
mod install;
mod logging;
mod matrix;
mod matrix_choice;
mod matrix_lint;
mod matrix_oracle;
mod monitoring;
mod odd_nodes;
mod operator_version;
mod pages;
mod plan;
mod reasons;
mod remedies;
mod rules;
#[path = "../common/sample.rs"]
mod sample;
mod security;
mod seeds;
mod signature;
#[path = "../common/sources.rs"]
mod sources;
mod status;
mod style;
mod volumes;
mod writers;
mod yaml;
