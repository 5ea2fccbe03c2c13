// SPDX-License-Identifier: Apache-2.0
//! The data that a vCenter reports without a login: version, build, instance UUID, API version and certificate.

use vdo_api::api::AboutStatus;
use vdo_api::types::VcenterVersion;
use vdo_core::certificate::CertificateFacts;

/// What a vCenter reports about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VcenterFacts {
    /// `about.version`, for example 8.0.3.
    pub version: VcenterVersion,
    /// `about.build`.
    pub build: String,
    /// `about.apiType`: always `VirtualCenter` here.
    pub api_type: String,
    /// `about.apiVersion`.
    pub api_version: String,
    /// `about.instanceUuid`: tells two names of one vCenter from two vCenters.
    pub instance_uuid: String,
    /// `about.fullName`.
    pub full_name: String,
    /// The certificate it presented.
    pub certificate: CertificateFacts,
}

impl VcenterFacts {
    /// As the status of a connection shows it.
    #[must_use]
    pub fn about(&self) -> AboutStatus {
        AboutStatus {
            version: self.version.raw().to_owned(),
            build: self.build.clone(),
            api_type: self.api_type.clone(),
            instance_uuid: self.instance_uuid.clone(),
        }
    }
}
