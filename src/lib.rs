//! VDO.
pub mod api;
#[cfg(feature = "io")]
pub mod cluster;
pub mod facts;
pub mod health;
pub mod manifest;
pub mod plan;
pub mod status;
pub mod types;
