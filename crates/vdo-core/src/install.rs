// SPDX-License-Identifier: Apache-2.0
//! The installation as data: the operator's own objects of `deploy/`, adapted to the requested options, and whether one version may replace
//! another.

mod crd_schema;
mod helm_or_olm;
mod manifests;
mod matrix_source_secrets;
mod toleration;
mod version;

pub use crd_schema::{Field, FieldError, Place, spec_fields, typed_spec, unknown_field};
pub use helm_or_olm::Manager;
pub use manifests::{
    EmbeddedError, FILES, HELM_RELEASE, HostNetwork, OPENSHIFT, OPERATOR, REMOVAL_GUARD, Settings, VDOCTL, objects, released_image,
};
pub use matrix_source_secrets::{
    MATRIX, MATRIX_CREDENTIALS, MATRIX_FILES, MATRIX_KEYS, Mounts, companion, companion_secret, matrix_source,
};
pub use toleration::Toleration;
pub use version::{Change, change, operator_version};
