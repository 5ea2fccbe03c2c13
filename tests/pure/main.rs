//! The pure core and what is generated from it: no process, cluster or network. All but two modules build without the feature `io`, which
//! makes `make mutants` twice as fast.
#![allow(missing_docs, reason = "tests")]

mod crds;
mod driverconfig;
#[cfg(feature = "io")]
mod embedded;
#[path = "../../fuzz/src/lib.rs"]
mod fuzz;
#[path = "../../examples/generate/parts.rs"]
mod generate;
mod health;
mod layering;
mod matrix;
mod matrix_choice;
mod matrix_lint;
mod matrix_oracle;
mod plan;
#[cfg(feature = "io")]
mod reasons;
mod security;
mod seeds;
mod status;
mod yaml;
