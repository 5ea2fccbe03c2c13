// SPDX-License-Identifier: Apache-2.0
//! A vCenter as data, and all checks of a VsphereCloudConfig that need no connection: requirements, results, next status, next login.
//!
//! ```text
//! inspection            the request, and the results of the probe, the login and the reads
//! report                checks_before_login, then checks_after_login: match_vms, vm_checks, datastores, file_service_check, privileges,
//!                       topology_tags
//! overlap               the checks that compare connections
//! conditions            the next status of the connection
//! login_retry           when a login may be tried
//! ```

mod check;
mod checks_after_login;
mod checks_before_login;
mod cluster_id;
mod conditions;
mod connect_error;
mod connection_report;
mod datacenters;
mod datastores;
mod facts;
mod file_service_check;
mod granted;
mod inspection;
mod inventory;
mod kubelet_check;
pub mod login_retry;
mod match_vms;
mod metric_values;
mod node_report;
mod node_topology;
mod overlap;
mod privileges;
mod report;
mod required_features;
mod required_privileges;
mod session_error;
pub mod session_renewal;
mod topology_tags;
mod vm_checks;

pub use check::{Advice, AdviceLine, Check, Finding};
pub use cluster_id::{Claim, RegisteredVolume, RegisteredVolumes, foreign_volumes, foreign_volumes_remedy, is_settled};
pub use conditions::{credentials_check, fold_status, is_unread, with_probe_times};
pub use connect_error::{Excess, ProbeError, ProbeStage};
pub use connection_report::ConnectionReport;
pub use datacenters::{datacenters_of, find_datacenters};
pub use datastores::{
    MissingStorage, SharedDatastores, missing_storage, no_shared_datastore, reached_datastores, shared_datastores, storage_findings,
};
pub use facts::VcenterFacts;
pub use file_service_check::no_file_service;
pub use granted::Granted;
pub use inspection::{Inspection, InspectionRequest, LoginOutcome, ProbeOutcome, Readings};
pub use inventory::{Datastore, Entity, Host, Inventory, Machine, ManagedObject, Policy, Tagging};
pub use kubelet_check::kubelet_check;
pub use match_vms::match_vms;
pub use metric_values::{Figures, figures};
pub use node_report::{NodeReport, machines_status, nodes_check};
pub use node_topology::{NodeTopology, TagPlace, node_topology};
pub use overlap::{Coverage, CrossChecks, coverage, cross_checks};
pub use privileges::{
    HeldPrivilege, MissingPrivilege, Privileges, SurplusPrivileges, compare_privileges, privileges_check, privileges_status,
};
pub use report::report;
pub use required_features::{Feature, Requirements, WantedDatastore, WantedPolicy, requirements};
pub use required_privileges::{RequiredPrivilege, privilege_queries, required_privileges};
pub use session_error::SessionError;
pub use topology_tags::{labels_of_category, tag_of_host, taggable, topology};
pub use vm_checks::MINIMUM_HARDWARE;
