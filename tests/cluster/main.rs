//! The operator and vdoctl against a real control plane with simulated nodes and a simulated vCenter.
#![allow(missing_docs, reason = "tests")]

mod adoption;
mod approval;
mod bad_input;
#[path = "../bed/mod.rs"]
mod bed;
mod chart_pages;
mod connection_faults;
mod demo;
mod doctor;
mod drift;
mod dry_run;
mod dry_run_disabled;
mod fixture;
mod foreign_driver;
mod health;
mod independence;
mod install;
mod inventory;
mod leader_election;
mod login_budget;
mod many_objects;
mod matrix_source;
mod metrics_auth;
mod monitoring;
mod namespaces;
mod odd_cluster;
mod preconditions;
mod privileges;
mod recreate;
mod rights;
mod secrets;
mod storage_class;
mod testbed_binaries;
mod testbed_chain;
mod testbed_cluster;
mod testbed_killed;
mod testbed_proxy;
mod uninstall;
mod webhook;
