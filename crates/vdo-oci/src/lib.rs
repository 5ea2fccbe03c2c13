// SPDX-License-Identifier: Apache-2.0
//! Bytes from and to registries, image layouts and web servers.
//!
//! - [`oci`]: descriptors, manifests and media types.
//! - [`web`]: HTTPS with limits, and what a redirect may lead to.
//! - [`registry`]: the distribution protocol, logins and the keychain.
//! - [`layout`]: an image layout in a folder or archive.
//! - [`transfer`]: from one of these to another, resumed where it was interrupted.
//!
//! What is handed out has the digest it was asked for, and never more bytes than the caller allows.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::too_many_lines))]

pub mod layout;
pub mod oci;
pub mod registry;
pub mod transfer;
pub mod web;
