//! What warnings are about, for those who read nothing else.

use super::attachments::in_quotes;
use super::objects::Event;
use std::collections::BTreeSet;

/// The claims, the pods and the volumes that the newest warnings name, as kind, namespace and name; of claims and pods at most so many.
#[must_use]
pub fn concerned(warnings: &[Event], most: usize) -> BTreeSet<(&'static str, String, String)> {
    let mut newest: Vec<&Event> = warnings.iter().collect();
    newest.sort_by(|a, b| b.at().cmp(a.at()));
    let (mut all, mut objects) = (BTreeSet::new(), BTreeSet::new());
    for event in newest {
        let about = &event.involved_object;
        let kind = match about.kind.as_str() {
            "PersistentVolumeClaim" => "PersistentVolumeClaim",
            "Pod" => "Pod",
            _ => continue,
        };
        let object = (kind, about.namespace.clone(), about.name.clone());
        let is_named = is_name(&about.namespace) && is_name(&about.name);
        if !is_named || (objects.len() == most && !objects.contains(&object)) {
            continue;
        }
        if kind == "Pod" {
            let volume = in_quotes(&event.message).find(|name| is_name(name));
            all.extend(volume.map(|name| ("PersistentVolume", String::new(), name.to_owned())));
        }
        all.insert(object.clone());
        objects.insert(object);
    }
    all
}

/// Whether a text can be the name of an object: anyone who may write events writes any text there.
fn is_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    !text.is_empty() && text.len() <= 253 && text.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn event(kind: &str, name: &str, message: &str, at: u32) -> Event {
        let value = json!({"involvedObject": {"kind": kind, "namespace": "shop", "name": name}, "message": message,
            "metadata": {"creationTimestamp": format!("2026-01-01T00:00:{at:02}Z")}});
        serde_json::from_value(value).expect("an event")
    }

    #[test]
    fn concerned_are_the_objects_of_the_newest_warnings_with_the_volumes_of_pods() {
        let object = |kind: &'static str, name: &str| (kind, "shop".to_owned(), name.to_owned());
        let warnings = [
            event("PersistentVolumeClaim", "old", "", 1),
            event("Pod", "web-0", "AttachVolume.Attach failed for volume \"pv-1\" : \"x\"", 3),
            event("PersistentVolumeClaim", "new", "", 2),
            event("PersistentVolumeClaim", "new", "again", 4),
            event("Node", "w-1", "", 5),
            event("PersistentVolumeClaim", "x,type=Normal", "", 6),
        ];
        let expected = BTreeSet::from([
            object("PersistentVolumeClaim", "new"),
            object("Pod", "web-0"),
            ("PersistentVolume", String::new(), "pv-1".to_owned()),
        ]);
        assert_eq!(concerned(&warnings, 2), expected);
        assert!(concerned(&warnings, 9).contains(&object("PersistentVolumeClaim", "old")));
    }
}
