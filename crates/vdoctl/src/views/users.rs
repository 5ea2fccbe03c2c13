// SPDX-License-Identifier: Apache-2.0
//! The JSON and YAML documents of `vdoctl users`: `UsersPlan`, `Users`, `UsersReview`.

use super::super::output::View;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;
use vdo_admin::accounts::{Review, Step};

/// The changes that would be made.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct UsersPlanView(pub ChangedUsersView);

/// The changes of accounts.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ChangedUsersView {
    /// Whether the changes were made.
    pub changed: bool,
    pub accounts: Vec<ChangedUserView>,
}

/// The changes of an account.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ChangedUserView {
    pub account: String,
    pub steps: Vec<Step>,
    /// What happens in the cluster afterwards.
    pub then: Vec<String>,
    /// The new password, if `--show-once` was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
}

/// The accounts and roles that vdoctl created in a vCenter.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ListedUsersView {
    pub accounts: Vec<ListedUserView>,
    pub roles: Vec<ListedRoleView>,
}

/// An account that vdoctl created.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ListedUserView {
    pub user: String,
    pub drivers: BTreeSet<String>,
    /// The UID of the cluster's kube-system namespace.
    pub cluster: String,
    /// The instance UUID of the vCenter for which the account was created.
    pub vcenter: String,
    pub permissions: usize,
    pub locked: bool,
    pub disabled: bool,
}

/// A role that vdoctl created.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListedRoleView {
    pub name: String,
    pub privileges: BTreeSet<String>,
    pub used_by: BTreeSet<String>,
}

/// The accounts: the changes that were made, or the list of the accounts.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum UsersView {
    /// The changes that were made.
    Changed(ChangedUsersView),
    /// The list of the accounts and roles.
    Listed(ListedUsersView),
}

/// The missing and the surplus privileges of all accounts.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct UsersReviewView {
    pub accounts: Vec<ReviewedUserView>,
}

/// The missing and the surplus privileges of an account.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ReviewedUserView {
    #[serde(flatten)]
    pub review: Review,
    pub account: String,
}

impl View for UsersPlanView {
    const KIND: &'static str = "UsersPlan";
}

impl View for UsersView {
    const KIND: &'static str = "Users";
}

impl View for UsersReviewView {
    const KIND: &'static str = "UsersReview";
}
