// SPDX-License-Identifier: Apache-2.0
//! Functions for publishers of matrices and mirrors.
//!
//! - [`publish`]: what a published matrix is, and how two of them differ.
//! - [`mirror`]: which part of a matrix a mirror holds, and which images that needs.
//!
//! The operator's package does not depend on this crate.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::too_many_lines))]

pub mod mirror;
pub mod publish;
