//! The tags of objects, which only the REST service knows. It has a login of its own, with the same account.

use super::caller::Caller;
use super::exchange::Answer;
use super::session::Rest;
use super::{ProbeError, SessionError, plain};
use crate::facts::{ManagedObject, Tagging};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::Method;
use hyper::header::HeaderValue;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Objects in one question.
const MANY: usize = 500;

/// Categories and tags that are read at most: each costs a request.
const MOST: usize = 1000;

/// Everything that is ever asked of the REST service: opening and closing the session, and reading.
#[derive(Debug, Clone)]
pub(super) enum Call<'a> {
    Login,
    Logout,
    Categories,
    Category(&'a str),
    Tag(&'a str),
    Attached(&'a [ManagedObject]),
}

impl Call<'_> {
    pub(super) fn method(&self) -> Method {
        match self {
            Self::Login | Self::Attached(_) => Method::POST,
            Self::Logout => Method::DELETE,
            Self::Categories | Self::Category(_) | Self::Tag(_) => Method::GET,
        }
    }

    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Login => "the REST login",
            Self::Logout => "the REST logout",
            Self::Categories | Self::Category(_) => "the question for tag categories",
            Self::Tag(_) | Self::Attached(_) => "the question for tags",
        }
    }

    /// The path: the older one is served by all, the newer one where the older has gone.
    pub(super) fn path(&self, modern: bool) -> String {
        let (base, id, action) = if modern {
            ("/api/cis/tagging/", "/", "?action=")
        } else {
            ("/rest/com/vmware/cis/tagging/", "/id:", "?~action=")
        };
        match self {
            Self::Login | Self::Logout if modern => "/api/session".into(),
            Self::Login | Self::Logout => "/rest/com/vmware/cis/session".into(),
            Self::Categories => format!("{base}category"),
            Self::Category(name) => format!("{base}category{id}{name}"),
            Self::Tag(name) => format!("{base}tag{id}{name}"),
            Self::Attached(_) => format!("{base}tag-association{action}list-attached-tags-on-objects"),
        }
    }

    pub(super) fn body(&self) -> String {
        match self {
            Self::Attached(objects) => {
                let ids: Vec<Value> = objects.iter().map(|object| json!({"id": object.id, "type": object.kind})).collect();
                json!({"object_ids": ids}).to_string()
            }
            _ => String::new(),
        }
    }
}

/// Reads which of these categories exist and which of their tags are on these objects.
pub(super) async fn read(caller: &mut Caller<'_>, categories: &BTreeSet<&str>, objects: &[ManagedObject]) -> Result<Tagging, SessionError> {
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    let ids = texts(&caller.rest(&Call::Categories).await?);
    for id in ids.iter().take(MOST) {
        let name = text(&caller.rest(&Call::Category(checked(caller, id)?)).await?, "name");
        if categories.contains(name.as_str()) {
            names.insert(id.clone(), name);
        }
        if names.len() == categories.len() {
            break;
        }
    }
    let mut tags: BTreeMap<String, Option<(String, String)>> = BTreeMap::new();
    let mut tagging = Tagging {
        categories: names.values().cloned().collect(),
        ..Tagging::default()
    };
    for some in objects.chunks(MANY) {
        let attached = caller.rest(&Call::Attached(some)).await?;
        for one in attached.as_array().into_iter().flatten() {
            let Some(object) = one.pointer("/object_id/id").and_then(Value::as_str) else {
                continue;
            };
            for id in texts(&one["tag_ids"]) {
                if !tags.contains_key(&id) && tags.len() < MOST {
                    let tag = caller.rest(&Call::Tag(checked(caller, &id)?)).await?;
                    let of_ours = names.get(&text(&tag, "category_id"));
                    tags.insert(id.clone(), of_ours.map(|category| (category.clone(), text(&tag, "name"))));
                }
                if let Some(Some(tag)) = tags.get(&id) {
                    tagging.attached.entry(object.to_owned()).or_default().insert(tag.clone());
                }
            }
        }
    }
    Ok(tagging)
}

/// An identifier goes into a path: it must be one.
fn checked<'a>(caller: &Caller<'_>, id: &'a str) -> Result<&'a str, SessionError> {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, ':' | '-' | '_' | '.');
    if !id.is_empty() && id.len() < 200 && id.chars().all(good) {
        return Ok(id);
    }
    Err(SessionError::Connection(ProbeError::Malformed {
        address: caller.address(),
        because: format!("it names a tag {:?}", plain(id)),
    }))
}

/// The strings of a list; there may be null in its place.
fn texts(list: &Value) -> Vec<String> {
    let all = list.as_array().into_iter().flatten();
    all.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// What an answer holds, without the wrapping of the older paths.
pub(super) fn content(answer: &Answer, modern: bool) -> Result<Value, String> {
    let value: Value = serde_json::from_slice(&answer.body).map_err(|_| "it is not JSON".to_owned())?;
    if modern {
        return Ok(value);
    }
    match value {
        Value::Object(mut fields) => fields.remove("value").ok_or_else(|| "it holds no value".to_owned()),
        _ => Err("it holds no value".to_owned()),
    }
}

/// The session that a login has opened.
pub(super) fn opened(value: &Value, modern: bool) -> Option<Rest> {
    let mut id = HeaderValue::from_str(value.as_str()?).ok()?;
    id.set_sensitive(true);
    Some(Rest { id, modern })
}

/// How a login says who it is.
pub(super) fn basic(user: &str, password: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tag_api_each_call_has_old_and_new_path() {
        for (call, old, new) in [
            (Call::Login, "POST /rest/com/vmware/cis/session", "POST /api/session"),
            (Call::Logout, "DELETE /rest/com/vmware/cis/session", "DELETE /api/session"),
            (
                Call::Categories,
                "GET /rest/com/vmware/cis/tagging/category",
                "GET /api/cis/tagging/category",
            ),
            (
                Call::Category("c"),
                "GET /rest/com/vmware/cis/tagging/category/id:c",
                "GET /api/cis/tagging/category/c",
            ),
            (
                Call::Tag("t"),
                "GET /rest/com/vmware/cis/tagging/tag/id:t",
                "GET /api/cis/tagging/tag/t",
            ),
            (
                Call::Attached(&[]),
                "POST /rest/com/vmware/cis/tagging/tag-association?~action=list-attached-tags-on-objects",
                "POST /api/cis/tagging/tag-association?action=list-attached-tags-on-objects",
            ),
        ] {
            let told = |modern| format!("{} {}", call.method(), call.path(modern));
            assert_eq!((told(false).as_str(), told(true).as_str()), (old, new));
        }
    }
}
