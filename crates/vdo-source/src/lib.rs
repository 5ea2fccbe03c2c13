// SPDX-License-Identifier: Apache-2.0
//! Reads a compatibility matrix and its charts from a source, and verifies their digests and signatures.
//!
//! - [`fetch`]: embedded, folder, web server, registry or ConfigMaps; the last good matrix is kept where a source fails.
//! - [`signature`]: signatures of a matrix, and the trusted keys.
//!
//! A chart is opened only after its digest was compared, and an older matrix than the one before is refused.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::too_many_lines))]

pub mod fetch;
pub mod signature;
