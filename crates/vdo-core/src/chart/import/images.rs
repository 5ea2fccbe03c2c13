// SPDX-License-Identifier: Apache-2.0
//! Collects the images of imported manifests, and gives each a name that stays the same from version to version.

use super::super::release::ImageSource;
use super::template::Templates;
use super::{ImportError, called, some, texts};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Every image that a container of the manifests names.
pub(super) struct Images {
    /// The reference in the manifests, the name, and the reference in the chart; in the order of the manifests.
    all: Vec<(String, String, String)>,
}

impl Images {
    /// Collects and names them: by the last part of the path, with a number where two have the same.
    pub(super) fn of(objects: &[Value], instead: &BTreeMap<String, String>) -> Result<Self, ImportError> {
        let mut all: Vec<(String, String, String)> = Vec::new();
        for object in objects {
            each(&mut object.clone(), &mut |image| {
                let Some(reference) = image.as_str() else { return };
                if all.iter().any(|(known, ..)| known == reference) {
                    return;
                }
                let source = ImageSource::parse(reference);
                let last = source.repository.rsplit('/').next().unwrap_or_default();
                let taken = |name: &str| all.iter().any(|(_, known, _)| known == name);
                let numbered = (2..).map(|number| format!("{last}-{number}"));
                let name = std::iter::once(last.to_owned())
                    .chain(numbered)
                    .find(|name| !taken(name))
                    .unwrap_or_default();
                let chosen = instead.get(&name).cloned().unwrap_or_else(|| reference.to_owned());
                all.push((reference.to_owned(), name, chosen));
            });
        }
        let images = Self { all };
        match instead.keys().find(|name| !images.names().any(|known| known == *name)) {
            Some(name) => Err(ImportError::NoImage {
                name: name.clone(),
                known: images.names().collect::<Vec<_>>().join(", "),
            }),
            None => Ok(images),
        }
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(|(_, name, _)| name.as_str())
    }

    /// As a release lists them.
    pub(super) fn release(&self) -> Value {
        let one = |(_, name, chosen): &(String, String, String)| (name.clone(), ImageSource::parse(chosen).to_value());
        self.all.iter().map(one).collect::<Map<_, _>>().into()
    }

    pub(super) fn replace(&self, object: &mut Value, templates: &mut Templates) {
        each(object, &mut |image| {
            let known = self.all.iter().find(|(reference, ..)| image.as_str() == Some(reference));
            if let Some((_, name, _)) = known {
                *image = templates.expression(format!("image({:?})", name)).into();
            }
        });
    }

    /// What looks like an image where no container names it.
    pub(super) fn notes(&self, objects: &[Value]) -> Vec<String> {
        let mut places = Vec::new();
        for object in objects.iter().filter(|object| object["kind"] != "CustomResourceDefinition") {
            texts(object, &mut String::new(), &mut |path, text| {
                let reference = text.rsplit(['=', ' ']).next().unwrap_or_default();
                if !path.ends_with("/image") && looks_like_one(reference) {
                    places.push(format!("{reference} ({} {path})", called(object)));
                }
            });
        }
        let is_open = |image: &ImageSource| image.digest.is_none() && matches!(image.tag.as_str(), "" | "latest");
        let open = self.all.iter().filter(|(.., chosen)| is_open(&ImageSource::parse(chosen)));
        let open: Vec<&str> = open.map(|(_, name, _)| name.as_str()).collect();
        let mut notes = Vec::new();
        if !open.is_empty() {
            notes.push(format!("name a version with --image NAME=REFERENCE for {}", open.join(", ")));
        }
        if !places.is_empty() {
            notes.push(format!(
                "images outside of containers cannot be changed by a value and are not mirrored: {}",
                some(&places)
            ));
        }
        notes
    }
}

/// Every place where a container names its image, as `chart images` finds them.
fn each(value: &mut Value, visit: &mut impl FnMut(&mut Value)) {
    match value {
        Value::Object(fields) => {
            for key in ["initContainers", "containers", "ephemeralContainers"] {
                let containers = fields.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten();
                containers
                    .filter_map(|container| container.get_mut("image"))
                    .filter(|image| image.is_string())
                    .for_each(&mut *visit);
            }
            fields.values_mut().for_each(|value| each(value, visit));
        }
        Value::Array(items) => items.iter_mut().for_each(|value| each(value, visit)),
        _ => {}
    }
}

/// Whether a text is a path with a tag: `registry.example.com/a/b:v1` or `a/b:v1`.
fn looks_like_one(text: &str) -> bool {
    let Some((path, tag)) = text.rsplit_once(':') else { return false };
    let segment = |part: &str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-:".contains(&b))
    };
    path.contains('/')
        && path.split('/').all(segment)
        && path.starts_with(|first: char| first.is_ascii_alphanumeric())
        && tag.starts_with(|first: char| first.is_ascii_alphanumeric())
        && tag.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_like_text_is_not_a_path_or_an_address() {
        for (text, expected) in [
            ("registry.example.com:5000/a/b:v1", true),
            ("a/b:v1.2-3", true),
            ("b:v1", false),
            ("/var/lib:/host", false),
            ("http://a/b:80", false),
            ("10.0.0.0/8", false),
            ("a/b", false),
            ("A/b:v1", false),
        ] {
            assert_eq!(looks_like_one(text), expected, "{text}");
        }
    }
}
