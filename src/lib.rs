//! VDO.
pub mod driverconfig;
#[cfg(feature = "io")]
pub mod runtime;
pub mod types;
#[cfg(feature = "io")]
pub mod vcenter;
