//! The operator behind a proxy that kills it, loses its answers and shows it the past, in front of the real API server.
//!
//! `make test-faults` (`VDO_FAULTS=all`) kills every scenario at every write in every mode, and `VDO_FAULTS=Join,Leave` those that it names. Otherwise the installation is killed
//! at every write in every mode, and of the rest a sample is taken; its seed is printed and can be given with `VDO_FAULTS_SEED`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

#[path = "../bed/mod.rs"]
mod bed;
mod crash;
mod lab;
mod oracle;
mod points;
mod trouble;
