//! VDO.
pub mod chart;
pub mod fetch;
pub mod matrix;
pub mod types;
pub mod yaml;
