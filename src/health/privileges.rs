use crate::facts::{Feature, ManagedObject};
use serde::Serialize;

/// What an account may do in a vCenter, against what it has to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Privileges {
    /// The account as the vCenter knows it.
    pub principal: String,
    /// How many pairs of object and privilege were looked at.
    pub checked: usize,
    /// What it lacks.
    pub missing: Vec<MissingPrivilege>,
    /// What it has and does not need, where that was asked for.
    pub surplus: Vec<SurplusPrivileges>,
}

/// A privilege that an account lacks on an object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MissingPrivilege {
    /// The object.
    pub object: ManagedObject,
    /// Its inventory path.
    pub path: String,
    /// The privilege as the API spells it.
    pub privilege: String,
    /// The privilege as the vSphere Client spells it.
    pub shown_as: String,
    /// The features that need it.
    pub features: Vec<Feature>,
    /// The role of the driver's documents that contains it.
    pub role: String,
}

/// Privileges that an account has on an object and that no feature in use needs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SurplusPrivileges {
    /// The object.
    pub object: ManagedObject,
    /// Its inventory path.
    pub path: String,
    /// The privileges, in order.
    pub privileges: Vec<String>,
}
