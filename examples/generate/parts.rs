// SPDX-License-Identifier: Apache-2.0
//! The generators, for the program that writes files and for the tests that hold the files against them.
#![allow(dead_code, clippy::print_stdout, reason = "a test uses the parts that it checks")]

pub mod chart;
pub mod commands;
pub mod conditions;
pub mod conformance;
pub mod crd_pages;
pub mod crds;
pub mod docs;
pub mod matrix;
pub mod pictures;
pub mod rbac;
pub mod renders;
mod screen;
