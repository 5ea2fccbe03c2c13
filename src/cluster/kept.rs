use super::trim::trim;
use crate::manifest::Object;
use serde_json::Value;

/// An object as the cache keeps it. Where there may be thousands of a kind, only what is looked at is kept, and as text: a tree takes
/// ten times the memory, and is made again in microseconds.
#[derive(PartialEq)]
pub(super) enum Kept {
    Whole(Object),
    Text(Box<str>),
}

impl Kept {
    pub(super) fn new(object: Object) -> Self {
        match trim(&object) {
            Some(small) => Self::Text(small.value().to_string().into()),
            None => Self::Whole(object.at_rest()),
        }
    }

    pub(super) fn object(&self) -> Option<Object> {
        match self {
            Self::Whole(object) => Some(object.clone()),
            Self::Text(text) => Object::new(serde_json::from_str(text).ok()?).ok(),
        }
    }

    /// Whether nothing but the resource version differs, which changes with every heartbeat.
    pub(super) fn means(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Whole(one), Self::Whole(other)) => same_meaning(&one.look(), &other.look()),
            _ => self == other,
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

    fn kept(kind: &str, version: &str, more: &Value) -> Kept {
        let value = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "a", "resourceVersion": version}, "spec": more});
        Kept::new(Object::new(value).expect("an object"))
    }

    #[test]
    fn heartbeats_mean_nothing_and_changes_do() {
        for (kind, field) in [("ConfigMap", "x"), ("Node", "providerID")] {
            let (one, beat) = (kept(kind, "1", &json!({field: "p"})), kept(kind, "2", &json!({field: "p"})));
            assert!(one.means(&beat), "{kind}");
            assert!(!one.means(&kept(kind, "2", &json!({field: "q"}))), "{kind}");
            let object = one.object().expect("an object");
            assert_eq!((object.kind(), object.text(&format!("/spec/{field}"))), (kind, "p"));
        }
    }
}
