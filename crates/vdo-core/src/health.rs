// SPDX-License-Identifier: Apache-2.0
//! The health of a live object, by the rules of kstatus, and the health of a driver, from its objects, pods and nodes.

mod deleted_workloads;
mod driver;
mod kstatus;
mod log_excerpt;
mod pod_admission_remedy;
mod pods;
mod rollout;
mod scheduling;
mod webhook_endpoints;
mod workload_by_node;

pub use deleted_workloads::{MissingWorkload, without};
pub use driver::{DriverHealth, NodesFound, Unmade, driver_health};
pub use kstatus::{assess, is_judged};
pub use log_excerpt::log_excerpt;
pub use pod_admission_remedy::admission_remedy;
pub use pods::{ContainerFailure, Ended, PodFailure, worst_pod};
pub use rollout::{Pods, Verdict};
pub use scheduling::{Placement, placement};
pub use webhook_endpoints::{slices_of, unserved};
