//! Whether an object is as it should be, judged from the object alone (the rules of kstatus), and from there whether a
//! driver works.
//!
//! Layer 1: may use `types`, `api`, `facts`, `yaml` and `manifest`.

mod connection;
mod datacenters;
mod demands;
mod driver;
mod fitness;
mod machines;
mod nodes;
mod pods;
mod privileges;
mod storage;
mod workload;

pub use connection::{ConnectionReport, Finding, Stage};
pub use datacenters::find_datacenters;
pub use demands::{Demand, demands, questions};
pub use driver::{DriverHealth, driver_health};
pub use machines::match_machines;
pub use nodes::{NodeReport, machines_status, nodes_stage};
pub use pods::worst_pod;
pub use privileges::{MissingPrivilege, Privileges, SurplusPrivileges, authorized_stage, judge};
pub use storage::SharedDatastores;
pub use workload::{Pods, Verdict, assess};
