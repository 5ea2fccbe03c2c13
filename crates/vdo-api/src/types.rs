// SPDX-License-Identifier: Apache-2.0
//! Types and text functions that every crate uses: versions, digests, object ids, secrets, remedies, redaction.
//!
//! No type needs a Kubernetes client, a file or the network.

mod chart_ref;
mod count;
mod digest;
mod distance;
mod interval;
mod json;
mod network_error_texts;
mod number;
mod object_id;
mod one_line_text;
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
pub use interval::interval;
pub use json::{ELEMENTS, Elements, elements, from_json, from_json_within};
pub use network_error_texts::{in_words, is_of_certificate, without_number};
pub use number::{Later, span, time_after, total};
pub use object_id::{ById, GroupKind, Ids, ObjectId};
pub use one_line_text::plain;
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
