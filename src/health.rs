//! Whether an object is as it should be, judged from the object alone (the rules of kstatus), and from there whether a
//! driver works.
//!
//! Layer 1: may use `types`, `api`, `facts` and `manifest`.

mod datacenters;
mod driver;
mod endpoints;
mod kstatus;
mod machines;
mod placement;
mod pods;
mod words;
mod workload;

pub use datacenters::find_datacenters;
pub use driver::{DriverHealth, driver_health};
pub use endpoints::{slices_of, unserved};
pub use kstatus::assess;
pub use machines::{Matches, match_machines};
pub use placement::{Placement, placement};
pub use pods::{ContainerTrouble, Ended, PodTrouble, worst_pod};
pub use words::last_words;
pub use workload::{Pods, Verdict};
