use serde::Serialize;

/// The datastores that all hosts of the nodes of one topology segment reach.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SharedDatastores {
    /// The segment, as `category=tag` with commas between; empty without topology.
    pub segment: String,
    /// The hosts that the nodes run on.
    pub hosts: usize,
    /// The names of the datastores that all of them reach, in order.
    pub datastores: Vec<String>,
    /// The host without which there would be some, where there are none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub emptied_by: String,
}
