//! The operator and vdoctl against a real control plane with simulated nodes and a simulated vCenter.
#![allow(missing_docs, reason = "tests")]

mod adoption;
mod approval;
#[path = "../common/attacks.rs"]
mod attacks;
mod cluster_id;
#[path = "../common/mod.rs"]
mod common;
mod connection_faults;
mod delete;
mod demo;
mod deploy;
mod doctor;
mod drift;
mod dry_run;
mod dry_run_disabled;
mod examples;
mod fix;
mod fixture;
#[path = "../common/follow.rs"]
mod follow;
mod foreign_driver;
mod further_drivers;
mod health;
mod honest;
mod independence;
mod install;
mod invalid_spec;
mod inventory;
mod judged;
mod large_objects;
mod leader_election;
mod login_budget;
mod manual;
mod many_objects;
mod matrix_attacks;
mod matrix_config_maps;
mod matrix_mirror;
mod matrix_named;
mod matrix_policy;
mod matrix_registry;
mod matrix_source;
mod matrix_web;
mod metrics_auth;
mod mirror;
mod monitoring;
mod namespaces;
mod odd_cluster;
mod olm;
mod openshift;
mod operation;
mod operator_chart;
mod operator_image;
mod operator_upgrade;
mod operators_matrix;
mod page;
mod platform;
mod preconditions;
mod privileges;
mod programs;
#[path = "../common/pty.rs"]
mod pty;
mod publish;
mod real_csi;
mod recreate;
mod remedies;
mod rights;
mod rollback;
mod rotation;
mod screen;
mod secrets;
#[path = "../common/sources.rs"]
mod sources;
mod state;
mod storage_class;
mod terminals;
mod testbed_binaries;
mod testbed_chain;
mod testbed_cluster;
mod testbed_killed;
mod testbed_proxy;
mod uninstall;
mod users;
mod webhook;
