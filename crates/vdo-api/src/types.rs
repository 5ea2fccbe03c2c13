// SPDX-License-Identifier: Apache-2.0
//! The vocabulary of the project: values that cannot be wrong once they exist.
//!
//! Nothing in here knows Kubernetes clients, files or the network; every other room may use it.

mod chart_ref;
mod count;
mod digest;
mod distance;
mod in_words;
mod interval;
mod json;
mod number;
mod object_id;
mod plain;
mod redaction;
mod remedy;
mod role;
mod schema;
mod secret;
mod servers;
mod trust;
mod version;

pub use chart_ref::ChartRef;
pub use count::{count, name_list, verb};
pub use digest::{Digest, Hasher, ParseDigestError};
pub use distance::{distance, nearest};
pub use in_words::{in_words, is_of_certificate, without_number};
pub use interval::interval;
pub use json::{ELEMENTS, Elements, elements, from_json, from_json_within};
pub use number::{Later, span, time_after, total};
pub use object_id::{ById, GroupKind, Ids, ObjectId};
pub use plain::plain;
pub use redaction::{MASKED, is_sensitive, is_shown_variable, redacted};
pub use remedy::{Remedy, shell_word, with_remedy};
pub use role::DriverRole;
pub use secret::Secret;
pub use servers::names_server;
pub use trust::{ParseThumbprintError, Thumbprint, Trust};
pub use version::{DriverVersion, KubernetesVersion, ParseVersionError, VcenterVersion, VersionRange};

/// The field manager of every server-side apply.
pub const FIELD_MANAGER: &str = "vdo";

/// The name of a driver as the matrix index and the chart folder spell it, for example `vsphere-csi`.
pub type DriverName = String;
