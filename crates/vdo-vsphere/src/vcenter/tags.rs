// SPDX-License-Identifier: Apache-2.0
//! Reads the tags of objects from the REST service of a vCenter, with the paths of its old and new dialect and its own login.

use super::call::Caller;
use super::http::Answer;
use super::identifiers::{name, proof, segment};
use super::inspection_limits::{Held, refused};
use super::offload::{Unread, Work};
use super::session::Rest;
use crate::vsphere::{ManagedObject, ProbeError, SessionError, Tagging};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::Method;
use hyper::header::HeaderValue;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

/// Objects in one question.
pub const MANY: usize = 500;

/// Categories and tags that are read at most: each costs a request.
pub const MOST: usize = 1000;

/// A request to the REST service, in its older and in its newer dialect.
pub trait RestCall {
    /// The method of HTTP.
    fn method(&self) -> Method;
    /// What it is called in messages.
    fn name(&self) -> &'static str;
    /// The path in the newer or the older dialect.
    fn path(&self, modern: bool) -> String;
    /// The body, empty where there is none.
    fn body(&self, modern: bool) -> String;
}

/// Where the tags are, and how the older dialect and the newer one write an identifier and an action.
pub const fn dialect(modern: bool) -> (&'static str, &'static str, &'static str) {
    match modern {
        true => ("/api/cis/tagging/", "/", "?action="),
        false => ("/rest/com/vmware/cis/tagging/", "/id:", "?~action="),
    }
}

/// Everything that a [`Session`](super::Session) asks of the REST service: opening and closing the session, and reading.
#[derive(Debug, Clone)]
pub enum Call<'a> {
    /// Opens the session.
    Login,
    /// Closes the session.
    Logout,
    /// The identifiers of all categories.
    Categories,
    /// A category.
    Category(&'a str),
    /// The identifiers of a category's tags.
    TagsOf(&'a str),
    /// A tag.
    Tag(&'a str),
    /// The tags of these objects.
    Attached(&'a [ManagedObject]),
    /// The objects that have a tag.
    ObjectsOf(&'a str),
}

impl RestCall for Call<'_> {
    fn method(&self) -> Method {
        match self {
            Self::Login | Self::Attached(_) | Self::TagsOf(_) | Self::ObjectsOf(_) => Method::POST,
            Self::Logout => Method::DELETE,
            Self::Categories | Self::Category(_) | Self::Tag(_) => Method::GET,
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Login => "the REST login",
            Self::Logout => "the REST logout",
            Self::Categories | Self::Category(_) => "the request for tag categories",
            Self::TagsOf(_) | Self::Tag(_) | Self::Attached(_) | Self::ObjectsOf(_) => "the request for tags",
        }
    }

    /// The path: the older one is served by all, the newer one where the older has gone.
    fn path(&self, modern: bool) -> String {
        let (base, id, action) = dialect(modern);
        match self {
            Self::Login | Self::Logout if modern => "/api/session".into(),
            Self::Login | Self::Logout => "/rest/com/vmware/cis/session".into(),
            Self::Categories => format!("{base}category"),
            Self::Category(name) => format!("{base}category{id}{name}"),
            Self::TagsOf(_) if modern => format!("{base}tag{action}list-tags-for-category"),
            Self::TagsOf(category) => format!("{base}tag{id}{category}{action}list-tags-for-category"),
            Self::Tag(name) => format!("{base}tag{id}{name}"),
            Self::Attached(_) => format!("{base}tag-association{action}list-attached-tags-on-objects"),
            Self::ObjectsOf(tag) => format!("{base}tag-association{id}{tag}{action}list-attached-objects"),
        }
    }

    fn body(&self, modern: bool) -> String {
        match self {
            Self::TagsOf(category) if modern => json!({"category_id": category}).to_string(),
            Self::TagsOf(_) | Self::ObjectsOf(_) => "{}".into(),
            Self::Attached(objects) => {
                let ids: Vec<Value> = objects.iter().map(|object| json!({"id": object.id, "type": object.kind})).collect();
                json!({"object_ids": ids}).to_string()
            }
            _ => String::new(),
        }
    }
}

/// What a tag on an object costs in memory besides its text.
const COST: usize = 160;

/// Reads which of these categories exist and which of their tags are on these objects.
pub async fn read(caller: &mut Caller<'_>, categories: &BTreeSet<&str>, objects: &[ManagedObject]) -> Result<Tagging, SessionError> {
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    let ids = texts(&caller.rest(&Call::Categories).await?.value);
    for id in &ids {
        let answer = caller.rest(&Call::Category(checked(caller, segment(id))?)).await?;
        let name = checked(caller, name(text(&answer, "name")))?;
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
        for one in attached.value.as_array().into_iter().flatten() {
            let Some(object) = one.pointer("/object_id/id").and_then(Value::as_str) else {
                continue;
            };
            for id in texts(&one["tag_ids"]) {
                if !tags.contains_key(&id) && tags.len() < MOST {
                    let tag = caller.rest(&Call::Tag(checked(caller, segment(&id))?)).await?;
                    let own = checked(caller, name(text(&tag, "name")))?;
                    let of_ours = names.get(&text(&tag, "category_id"));
                    tags.insert(id.clone(), of_ours.map(|category| (category.clone(), own)));
                }
                if let Some(Some(tag)) = tags.get(&id) {
                    let cost = COST + object.len() + tag.0.len() + tag.1.len();
                    let room = caller.budget.keep(cost);
                    room.map_err(|excess| refused(&caller.session.endpoint, excess))?;
                    tagging.attached.entry(object.to_owned()).or_default().insert(tag.clone());
                }
            }
        }
    }
    Ok(tagging)
}

/// A value that was read, or an error with the address of the vCenter that reported something else.
pub fn checked<T>(caller: &Caller<'_>, reported: Result<T, String>) -> Result<T, ProbeError> {
    reported.map_err(|because| caller.session.malformed(because))
}

/// The strings of a list, as many as are asked about; there may be null in its place.
pub fn texts(list: &Value) -> Vec<String> {
    let all = list.as_array().into_iter().flatten();
    all.filter_map(Value::as_str).map(str::to_owned).take(MOST).collect()
}

/// The text of a field; empty where there is none.
pub fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// What an answer holds, and the memory that it takes.
#[derive(Debug)]
pub struct Json {
    pub value: Value,
    _held: Held,
}

impl Deref for Json {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.value
    }
}

/// Reads an answer, without the wrapping of the older paths.
pub fn content(answer: &Answer, modern: bool, work: &Work) -> Result<Json, Unread> {
    let value = json(&answer.body, work)?;
    if modern {
        return Ok(value);
    }
    let Json { value, _held } = value;
    match value {
        Value::Object(mut fields) => {
            let value = fields.remove("value").ok_or("it contains no value")?;
            Ok(Json { value, _held })
        }
        _ => Err("it contains no value".into()),
    }
}

/// Reads JSON. It is known before how much it can be at most: each value but the first follows one of three characters.
pub fn json(text: &[u8], work: &Work) -> Result<Json, Unread> {
    work.go_on()?;
    let values = 1 + text.iter().filter(|c| matches!(c, b',' | b'[' | b'{')).count();
    work.budget.elements(values)?;
    let mut held = work.hold();
    held.grow(values.saturating_mul(3 * size_of::<Value>()).saturating_add(text.len()))?;
    let value = serde_json::from_slice(text).map_err(|_| "it is not JSON")?;
    Ok(Json { value, _held: held })
}

/// The session that a login has opened.
pub fn opened(value: &Value, modern: bool) -> Option<Rest> {
    let id = proof(value.as_str()?.as_bytes())?;
    Some(Rest { id, modern })
}

/// How a login identifies itself.
pub fn basic(user: &str, password: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::super::inspection_limits::{Budget, Limits, Pool};
    use super::*;
    use crate::vsphere::Excess;

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
                Call::TagsOf("c"),
                "POST /rest/com/vmware/cis/tagging/tag/id:c?~action=list-tags-for-category",
                "POST /api/cis/tagging/tag?action=list-tags-for-category",
            ),
            (
                Call::ObjectsOf("t"),
                "POST /rest/com/vmware/cis/tagging/tag-association/id:t?~action=list-attached-objects",
                "POST /api/cis/tagging/tag-association/t?action=list-attached-objects",
            ),
            (
                Call::Attached(&[]),
                "POST /rest/com/vmware/cis/tagging/tag-association?~action=list-attached-tags-on-objects",
                "POST /api/cis/tagging/tag-association?action=list-attached-tags-on-objects",
            ),
        ] {
            let reported = |modern| format!("{} {}", call.method(), call.path(modern));
            assert_eq!((reported(false).as_str(), reported(true).as_str()), (old, new));
        }
    }

    #[test]
    fn tag_answer_bomb_is_refused_before_it_is_read() {
        let pool = Pool::new(4 << 20);
        let reported = |text: &str| {
            let budget = Budget::new(Limits::default(), &pool);
            json(text.as_bytes(), &Work::with(budget)).map(|json| json.value)
        };
        assert_eq!(reported(r#"{"value": ["a,b"]}"#), Ok(json!({"value": ["a,b"]})));
        for bomb in [
            format!("[{}0]", "0,".repeat(500_000)),
            format!("[{}0]", "[],".repeat(300_000)),
            format!("[{}{{}}]", "{\"a\":{}},".repeat(100_000)),
        ] {
            assert_eq!((reported(&bomb), pool.used()), (Err(Excess::Memory.into()), 0));
        }
        assert_eq!(reported(&"[".repeat(1000)), Err("it is not JSON".into()));
        let few = Limits {
            elements: 100,
            ..Limits::default()
        };
        let many = format!("[{}0]", "0,".repeat(100));
        let reported = json(many.as_bytes(), &Work::with(Budget::new(few, &pool))).map(|json| json.value);
        assert_eq!(reported, Err(Excess::Elements(100).into()));
    }

    #[test]
    fn tag_session_that_is_no_header_is_refused() {
        for (value, good) in [
            (json!("52b8-72aa"), true),
            (json!("a\r\nX: y"), false),
            (json!(""), false),
            (json!("x".repeat(5000)), false),
            (json!(7), false),
        ] {
            assert_eq!(opened(&value, true).is_some(), good, "{value}");
        }
    }
}
