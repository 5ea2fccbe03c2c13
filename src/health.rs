//! Whether an object is as it should be, judged from the object alone (the rules of kstatus), and from there whether a
//! driver works.
//!
//! Layer 1: may use `types`, `api`, `facts` and `manifest`.

mod driver;
mod pods;
mod workload;

pub use driver::{DriverHealth, driver_health};
pub use pods::worst_pod;
pub use workload::{Pods, Verdict, assess};
