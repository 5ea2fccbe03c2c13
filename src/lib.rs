//! VDO.
pub mod api;
pub mod health;
pub mod manifest;
pub mod plan;
pub mod types;
