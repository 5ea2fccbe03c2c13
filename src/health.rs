//! Whether an object is as it should be, judged from the object alone (the rules of kstatus), and from there whether a
//! driver works.
//!
//! Layer 1: may use `types`, `api`, `facts` and `manifest`.

mod datacenters;
mod driver;
mod machines;
mod placement;
mod pods;
mod workload;

pub use datacenters::find_datacenters;
pub use driver::{DriverHealth, driver_health};
pub use machines::{Matches, match_machines};
pub use placement::{Placement, placement};
pub use pods::worst_pod;
pub use workload::{Pods, Verdict, assess};
