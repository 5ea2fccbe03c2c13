//! VDO.
pub mod api;
#[cfg(feature = "io")]
pub mod cluster;
pub mod driverconfig;
pub mod facts;
pub mod health;
pub mod manifest;
pub mod plan;
#[cfg(feature = "io")]
pub mod runtime;
pub mod status;
pub mod types;
#[cfg(feature = "io")]
pub mod vcenter;
