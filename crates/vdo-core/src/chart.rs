// SPDX-License-Identifier: Apache-2.0
//! Charts: from a folder or a package to Kubernetes objects.
//!
//! ```text
//!   charts/vsphere-csi  --package-->  vsphere-csi-3.7.3.tgz  --open-->  Chart  --render-->  objects
//!   (source + release)   (pure)        (bytes, a digest)      (pure)           (pure)
//! ```
//!
//! A chart has Helm's layout; its templates are minijinja. Every function of this module depends only on its arguments: no clock, network,
//! environment or file system, so the same input gives the same bytes. Packages come from outside and are treated as hostile:
//! sizes are capped while reading, only regular files under one folder are accepted, and the steps and memory of templates are limited.
//!
//! Every `{{ … }}` in a template is a whole YAML value and is written as JSON. A value can therefore never open a new key or a new
//! document, and `yes` stays text. docs/charts.md is the page for chart authors.

pub mod add_release;
pub mod archive;
pub mod artifact;
pub mod compare;
mod compiled;
mod context;
mod document;
mod engine;
mod image_reference;
pub mod import;
mod interpolation;
mod interpolation_output;
mod lint;
mod metadata;
mod opened_chart;
mod package;
mod release;
pub mod release_files;
mod render;
mod schema_errors;
mod source;
mod suggest;
mod template_tag_limits;
mod trial_renders;
pub mod values;

pub use archive::{ArchiveError, open};
pub use context::{Cluster, Connection, Context, ControlPlane};
pub use document::{DocumentError, for_each_image, images, object_id};
pub use image_reference::{Unavailable, unavailable};
pub use lint::lint;
pub use metadata::{Configuration, Metadata};
pub use opened_chart::{Chart, ChartError};
pub use package::{PackageError, package};
pub use release::{ImageSource, Release, Upstream};
pub use render::{RenderError, accepted, as_upstream, everything, render};
pub use schema_errors::Problem;
pub use source::Source;
pub use trial_renders::{ANYTHING, MARK, Number, Placeholders, probe};
