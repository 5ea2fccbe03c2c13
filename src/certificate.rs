//! The serving certificate of the CSI driver's validating webhook: issued, verified and rotated without a gap in trust.
//!
//! ```text
//! state      the stored Secret
//! verify     whether a certificate is valid now
//! rotation   state x time -> the next step
//! issue      a new authority with its one certificate
//! ```
//!
//! Layer 1: may use `types`, `manifest` and `vsphere`.

mod issue;
mod rotation;
mod state;
mod verify;

pub use issue::{LIFE, issue};
pub use rotation::{Action, Known, SETTLE, decide};
pub use state::{Pair, SECRET, State};
pub use verify::{Validity, verify, verify_pair};
