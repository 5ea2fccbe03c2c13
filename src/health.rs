//! Whether an object is as it should be, judged from the object alone (the rules of kstatus), and from there whether a
//! driver works.
//!
//! Layer 1: may use `types`, `api`, `facts`, `yaml` and `manifest`.

mod connection;
mod datacenters;
mod demands;
mod driver;
mod endpoints;
mod fitness;
mod kstatus;
mod kubelet;
mod machines;
mod nodes;
mod overlap;
mod placement;
mod pods;
mod privileges;
mod storage;
mod topology;
mod words;
mod workload;

pub use connection::{ConnectionReport, Finding, Stage};
pub use datacenters::{datacenters_of, find_datacenters};
pub use demands::{Demand, demands, questions};
pub use driver::{DriverHealth, driver_health};
pub use endpoints::{slices_of, unserved};
pub use kstatus::{assess, is_judged};
pub use kubelet::kubelet_stage;
pub use machines::match_machines;
pub use nodes::{NodeReport, machines_status, nodes_stage};
pub use overlap::{Among, Coverage, distinct_stage, storage_among};
pub use placement::{Placement, placement};
pub use pods::{ContainerTrouble, Ended, PodTrouble, worst_pod};
pub use privileges::{MissingPrivilege, Privileges, SurplusPrivileges, authorized_stage, judge, privileges_status};
pub use storage::{Absent, SharedDatastores, absent, nothing_shared, shared_datastores, storage_findings};
pub use topology::{taggable, topology};
pub use words::last_words;
pub use workload::{Pods, Verdict};
