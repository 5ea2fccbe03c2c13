//! The pure core and what is generated from it: no process, cluster or network.
#![allow(missing_docs, reason = "tests")]

mod crds;
mod driverconfig;
mod embedded;
#[path = "../../examples/generate/parts.rs"]
mod generate;
mod health;
mod layering;
mod matrix;
mod matrix_choice;
mod matrix_lint;
mod matrix_oracle;
mod plan;
mod reasons;
mod security;
mod status;
mod yaml;
