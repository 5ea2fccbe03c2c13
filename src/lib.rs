//! VDO.
pub mod types;
