// SPDX-License-Identifier: Apache-2.0
//! The REST requests that create, attach, detach and delete tags and tag categories, in both dialects of a vCenter.

use hyper::Method;
use serde_json::{Value, json};
use vdo_api::types::{from_json, plain};
use vdo_vsphere::vcenter::raw::{Answer, RestCall, dialect};
use vdo_vsphere::vsphere::ManagedObject;

/// A change; categories and tags that exist are named by their identifiers.
#[derive(Debug, Clone)]
pub(super) enum TagChange<'a> {
    CreateCategory {
        name: &'a str,
        description: &'a str,
    },
    CreateTag {
        category: &'a str,
        name: &'a str,
        description: &'a str,
    },
    Attach {
        tag: &'a str,
        object: &'a ManagedObject,
    },
    Detach {
        tag: &'a str,
        object: &'a ManagedObject,
    },
    DeleteTag(&'a str),
    DeleteCategory(&'a str),
}

impl RestCall for TagChange<'_> {
    fn method(&self) -> Method {
        match self {
            Self::DeleteTag(_) | Self::DeleteCategory(_) => Method::DELETE,
            _ => Method::POST,
        }
    }

    fn name(&self) -> &'static str {
        "a change of tags"
    }

    fn path(&self, modern: bool) -> String {
        let (base, is, action) = dialect(modern);
        match self {
            Self::CreateCategory { .. } => format!("{base}category"),
            Self::CreateTag { .. } => format!("{base}tag"),
            Self::Attach { tag, .. } => format!("{base}tag-association{is}{tag}{action}attach"),
            Self::Detach { tag, .. } => format!("{base}tag-association{is}{tag}{action}detach"),
            Self::DeleteTag(tag) => format!("{base}tag{is}{tag}"),
            Self::DeleteCategory(category) => format!("{base}category{is}{category}"),
        }
    }

    fn body(&self, modern: bool) -> String {
        let created = |specification: Value| match modern {
            true => specification,
            false => json!({"create_spec": specification}),
        };
        let body = match self {
            // One tag of the category for each object, of any kind: as the documents of both drivers have it.
            Self::CreateCategory { name, description } => {
                created(json!({"name": name, "description": description, "cardinality": "SINGLE", "associable_types": []}))
            }
            Self::CreateTag {
                category,
                name,
                description,
            } => created(json!({"name": name, "description": description, "category_id": category})),
            Self::Attach { object, .. } | Self::Detach { object, .. } => json!({"object_id": {"id": object.id, "type": object.kind}}),
            Self::DeleteTag(_) | Self::DeleteCategory(_) => return String::new(),
        };
        body.to_string()
    }
}

/// The type of an error in the words of faults, and the server's text.
pub(super) fn refusal(answer: &Answer) -> (String, String) {
    let value: Value = from_json(&answer.body).unwrap_or_default();
    let inner = value.get("value").unwrap_or(&value);
    let text = inner
        .pointer("/messages/0/default_message")
        .and_then(Value::as_str)
        .unwrap_or_default();
    // `com.vmware.vapi.std.errors.already_exists` in the older dialect, `ALREADY_EXISTS` in the newer one.
    let kind = value["type"].as_str().or_else(|| value["error_type"].as_str()).unwrap_or_default();
    let kind = kind.rsplit('.').next().unwrap_or_default().to_lowercase();
    let kind = match (kind.as_str(), answer.status) {
        ("already_exists", _) => "AlreadyExists".into(),
        ("not_found", _) | ("", 404) => "NotFound".into(),
        ("unauthorized", _) | ("", 403) => "NoPermission".into(),
        ("", status) => format!("status {status}"),
        (other, _) => plain(other),
    };
    (kind, plain(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tag_change_each_has_old_and_new_request() {
        let object = ManagedObject {
            kind: "HostSystem".into(),
            id: "host-1".into(),
        };
        let spec = r#"{"name":"n","description":"d","cardinality":"SINGLE","associable_types":[]}"#;
        let wrapped = format!(r#"{{"create_spec":{spec}}}"#);
        for (change, modern, expected) in [
            (
                TagChange::CreateCategory {
                    name: "n",
                    description: "d",
                },
                false,
                format!("POST /rest/com/vmware/cis/tagging/category {wrapped}"),
            ),
            (
                TagChange::CreateCategory {
                    name: "n",
                    description: "d",
                },
                true,
                format!("POST /api/cis/tagging/category {spec}"),
            ),
            (
                TagChange::CreateTag {
                    category: "c",
                    name: "n",
                    description: "d",
                },
                true,
                r#"POST /api/cis/tagging/tag {"name":"n","description":"d","category_id":"c"}"#.into(),
            ),
            (
                TagChange::Attach { tag: "t", object: &object },
                false,
                r#"POST /rest/com/vmware/cis/tagging/tag-association/id:t?~action=attach {"object_id":{"id":"host-1","type":"HostSystem"}}"#
                    .into(),
            ),
            (
                TagChange::Detach { tag: "t", object: &object },
                true,
                r#"POST /api/cis/tagging/tag-association/t?action=detach {"object_id":{"id":"host-1","type":"HostSystem"}}"#.into(),
            ),
            (TagChange::DeleteTag("t"), false, "DELETE /rest/com/vmware/cis/tagging/tag/id:t ".into()),
            (TagChange::DeleteCategory("c"), true, "DELETE /api/cis/tagging/category/c ".into()),
        ] {
            assert_eq!(format!("{} {} {}", change.method(), change.path(modern), change.body(modern)), expected);
        }
    }
}
