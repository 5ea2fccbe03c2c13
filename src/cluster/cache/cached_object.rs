//! An object in the cache.

use super::transform::trim;
use crate::manifest::Object;
use serde_json::Value;
use std::any::Any;
use std::sync::Arc;

/// An object as the cache keeps it. Where there may be thousands of a kind, only what is looked at is kept, and as text: a tree takes
/// ten times the memory, and is parsed in microseconds.
#[derive(Clone)]
pub(super) struct CachedObject {
    content: Content,
    /// What was read out of it last.
    fact: Option<Arc<dyn Any + Send + Sync>>,
}

#[derive(Clone, PartialEq)]
enum Content {
    Whole(Object),
    Text(Arc<str>),
}

impl CachedObject {
    pub(super) fn new(object: Object) -> Self {
        let content = match trim(&object) {
            Some(small) => Content::Text(small.value().to_string().into()),
            None => Content::Whole(object.at_rest()),
        };
        Self { content, fact: None }
    }

    /// The one that is known, where it is the same: then nothing is kept twice, and what was read out of it need not be read again.
    pub(super) fn or_known(self, known: Option<&Self>) -> Self {
        let same = |known: &&Self| match (&known.content, &self.content) {
            (Content::Whole(one), Content::Whole(other)) => one.resource_version() == other.resource_version() && one == other,
            (one, other) => one == other,
        };
        known.filter(same).cloned().unwrap_or(self)
    }

    pub(super) fn object(&self) -> Option<Object> {
        match &self.content {
            Content::Whole(object) => Some(object.clone()),
            Content::Text(text) => Object::new(serde_json::from_str(text).ok()?).ok(),
        }
    }

    /// What `read` finds in the object, or found before and `fits` still.
    pub(super) fn fact<T: Any + Send + Sync>(&mut self, fits: impl Fn(&T) -> bool, read: impl FnOnce(&Object) -> T) -> Option<Arc<T>> {
        let known = self.fact.clone().and_then(|fact| fact.downcast::<T>().ok());
        if let Some(known) = known.filter(|known| fits(known)) {
            return Some(known);
        }
        let fact = Arc::new(read(&self.object()?));
        self.fact = Some(fact.clone());
        Some(fact)
    }

    /// Whether nothing but the resource version differs, which changes with every heartbeat.
    pub(super) fn means(&self, other: &Self) -> bool {
        match (&self.content, &other.content) {
            (Content::Whole(one), Content::Whole(other)) => same_meaning(&one.look(), &other.look()),
            (one, other) => one == other,
        }
    }
}

fn same_meaning(old: &Value, new: &Value) -> bool {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else {
        return false;
    };
    let equal = |(key, value): (&String, &Value)| match (key.as_str(), new.get(key)) {
        ("metadata", Some(other)) => same_metadata(value, other),
        (_, other) => other == Some(value),
    };
    old.len() == new.len() && old.iter().all(equal)
}

/// The resource version is always there, so the same number of fields are the same fields.
fn same_metadata(old: &Value, new: &Value) -> bool {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else {
        return false;
    };
    old.len() == new.len()
        && old
            .iter()
            .all(|(key, value)| key == "resourceVersion" || new.get(key) == Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn kept(kind: &str, version: &str, more: &Value) -> CachedObject {
        let value = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "a", "resourceVersion": version}, "spec": more});
        CachedObject::new(Object::new(value).expect("an object"))
    }

    #[test]
    fn watch_cache_heartbeat_only_update_is_no_change() {
        for (kind, field) in [("ConfigMap", "x"), ("Node", "providerID")] {
            let (one, beat) = (kept(kind, "1", &json!({field: "p"})), kept(kind, "2", &json!({field: "p"})));
            assert!(one.means(&beat), "{kind}");
            assert!(!one.means(&kept(kind, "2", &json!({field: "q"}))), "{kind}");
            let object = one.object().expect("an object");
            assert_eq!((object.kind(), object.text(&format!("/spec/{field}"))), (kind, "p"));
        }
    }

    #[allow(clippy::panic)]
    #[test]
    fn watch_cache_same_object_is_not_parsed_again() {
        let says = |fits: bool| move |_: &String| fits;
        for kind in ["ConfigMap", "Node"] {
            let found = |object: &Object| object.text("/spec/providerID").to_owned();
            let mut first = kept(kind, "1", &json!({"providerID": "p"}));
            let one = first.fact(says(true), found).expect("a fact");
            assert_eq!(*one, "p");
            // The same object again, as after a new list.
            let mut again = kept(kind, "1", &json!({"providerID": "p"})).or_known(Some(&first));
            let same = again.fact(says(true), |_| panic!("it was read again")).expect("a fact");
            assert!(Arc::ptr_eq(&one, &same), "{kind}");
            let other = again.fact(says(false), |_| "else".to_owned()).expect("a fact");
            assert_eq!(*other, "else", "{kind}: what does not fit is read again");
            // Another one.
            let mut changed = kept(kind, "2", &json!({"providerID": "q"})).or_known(Some(&again));
            let new = changed.fact(says(true), found).expect("a fact");
            assert_eq!(*new, "q", "{kind}");
        }
    }

    #[test]
    fn watch_cache_whole_object_keeps_newest_resource_version() {
        let beat = kept("ConfigMap", "2", &json!({"x": "p"})).or_known(Some(&kept("ConfigMap", "1", &json!({"x": "p"}))));
        let version = beat.object().map(|object| object.resource_version().to_owned());
        assert_eq!(version.as_deref(), Some("2"), "of an object that is kept whole the version counts");
    }
}
