//! The pure core and what is generated from it: no process, cluster or network. All but six modules build without the feature `io`, which
//! makes `make mutants` twice as fast.
#![allow(missing_docs, reason = "tests")]

#[cfg(feature = "io")]
mod api_answers;
mod crds;
mod deploy;
mod driverconfig;
mod drivers;
#[cfg(feature = "io")]
mod embedded;
#[path = "../../fuzz/src/lib.rs"]
mod fuzz;
#[path = "../../examples/generate/parts.rs"]
mod generate;
mod health;
#[cfg(feature = "io")]
mod history;
mod install;
mod layering;
mod logging;
mod matrix;
mod matrix_choice;
mod matrix_lint;
mod matrix_oracle;
mod operator_version;
#[cfg(feature = "io")]
mod pages;
mod plan;
#[cfg(feature = "io")]
mod reasons;
#[cfg(feature = "io")]
mod remedies;
mod security;
mod seeds;
mod signature;
mod status;
mod style;
mod writers;
mod yaml;
