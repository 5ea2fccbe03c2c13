// SPDX-License-Identifier: Apache-2.0
//! The SOAP calls that change roles, permissions and machines, each with its privilege, and the calls of the service for users (SSO).

use std::borrow::Cow;
use vdo_vsphere::vcenter::raw::{Operation, Place, VIM, xml};

/// What an [`Administrator`](super::Administrator) can do besides reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
pub(super) enum Change {
    AddAuthorizationRole,
    UpdateAuthorizationRole,
    RemoveAuthorizationRole,
    SetEntityPermissions,
    RemoveEntityPermission,
    RetrieveAllPermissions,
    TerminateSession,
    #[strum(serialize = "ReconfigVM_Task")]
    ReconfigVm,
    #[strum(serialize = "UpgradeVM_Task")]
    UpgradeVm,
}

impl Change {
    /// The privilege that it needs.
    pub(super) const fn privilege(self) -> &'static str {
        match self {
            Self::AddAuthorizationRole | Self::UpdateAuthorizationRole | Self::RemoveAuthorizationRole => "Authorization.ModifyRoles",
            Self::SetEntityPermissions | Self::RemoveEntityPermission => "Authorization.ModifyPermissions",
            Self::TerminateSession => "Sessions.TerminateSession",
            Self::RetrieveAllPermissions => "System.View",
            Self::ReconfigVm => "VirtualMachine.Config.AdvancedConfig",
            Self::UpgradeVm => "VirtualMachine.Config.UpgradeVirtualHardware",
        }
    }
}

impl From<Change> for Operation {
    fn from(change: Change) -> Self {
        Self {
            name: change.into(),
            list: match change {
                Change::RetrieveAllPermissions => "returnval",
                _ => "",
            },
            place: VIM,
        }
    }
}

/// What is asked of the service that keeps the users of a vCenter's own domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
pub(super) enum UserCall {
    Login,
    Logout,
    FindPersonUser,
    FindPersonUsers,
    GetLocalPasswordPolicy,
    CreateLocalPersonUser,
    ResetLocalPersonUserPassword,
    DeleteLocalPrincipal,
}

impl UserCall {
    /// The call in a domain.
    pub(super) fn of(self, domain: &str) -> Operation {
        Operation {
            name: self.into(),
            list: match self {
                Self::FindPersonUsers => "returnval",
                _ => "",
            },
            place: Place {
                path: Cow::Owned(format!("/sso-adminserver/sdk/{domain}")),
                namespace: xml::SSO,
                action: "urn:sso/version2",
            },
        }
    }

    /// The kind and the identifier of the object that answers it; they are the same in every vCenter.
    pub(super) const fn service(self) -> (&'static str, &'static str) {
        match self {
            Self::Login | Self::Logout => ("SsoSessionManager", "ssoSessionManager"),
            Self::FindPersonUser | Self::FindPersonUsers => ("SsoAdminPrincipalDiscoveryService", "principalDiscoveryService"),
            Self::GetLocalPasswordPolicy => ("SsoAdminPasswordPolicyService", "passwordPolicyService"),
            Self::CreateLocalPersonUser | Self::ResetLocalPersonUserPassword | Self::DeleteLocalPrincipal => {
                ("SsoAdminPrincipalManagementService", "principalManagementService")
            }
        }
    }
}
