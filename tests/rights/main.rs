//! The operator's rights: narrow as written, all used in a whole life, and sufficient for it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

#[path = "../bed/mod.rs"]
mod bed;
mod deployed;
mod granted;
mod life;
mod missing;
mod rules;
