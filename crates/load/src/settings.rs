// SPDX-License-Identifier: Apache-2.0
//! Reads VDO_IMAGE, VDO_REGISTRY and VDO_IMAGE_LAYOUT from the environment: where the image comes from.

use crate::stop::Stop;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Where the image comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// An image that the cluster pulls: nothing is built.
    Named(String),
    /// It is built, and pushed to this registry, with or without a path.
    Registry(String),
    /// It is built, and brought to the nodes.
    Built,
}

/// The settings of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Where the image comes from.
    pub source: Source,
    /// An image layout of `make image`, which is used instead of another build.
    pub layout: Option<PathBuf>,
}

/// The variables that are read: those that are set and not empty.
pub type Environment = BTreeMap<String, String>;

/// The environment of this process.
pub fn environment() -> Environment {
    std::env::vars().filter(|(_, value)| !value.is_empty()).collect()
}

/// Reads the settings.
///
/// # Errors
/// When a value is not what its variable is for, or two exclude each other.
pub fn read(environment: &Environment) -> Result<Settings, Stop> {
    let of = |name: &str| environment.get(name).cloned();
    let source = match (of("VDO_IMAGE"), of("VDO_REGISTRY")) {
        (Some(_), Some(_)) => {
            return Err(Stop::usage("VDO_IMAGE and VDO_REGISTRY are both set").try_this(
                "VDO_IMAGE names an existing image, VDO_REGISTRY names a registry for an image that make builds: unset one of the two.",
            ));
        }
        (Some(image), None) if is_reference(&image) => Source::Named(image),
        (Some(image), None) => {
            return Err(Stop::usage(format!("VDO_IMAGE is not a reference of an image: {image}"))
                .try_this("Write a repository and a tag or digest, such as registry.example.com/vsphere/vdo-operator:v1.2.3."));
        }
        (None, Some(registry)) if is_repository(&registry) => Source::Registry(registry),
        (None, Some(registry)) => {
            return Err(Stop::usage(format!("VDO_REGISTRY is not a registry: {registry}"))
                .try_this("Write a host, with or without a path, such as registry.example.com/vsphere."));
        }
        (None, None) => Source::Built,
    };
    Ok(Settings {
        source,
        layout: of("VDO_IMAGE_LAYOUT").map(PathBuf::from),
    })
}

fn made_of(text: &str, more: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
}

fn is_reference(text: &str) -> bool {
    made_of(text, "._:/@-")
}

/// A host with or without a port, and perhaps a path.
fn is_repository(text: &str) -> bool {
    let path = text.split_once('/').map_or("", |(_, path)| path);
    made_of(text, "._:/-") && text.split('/').all(|part| !part.is_empty()) && !path.contains(':')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_one_source_or_none_and_only_what_can_be_one() {
        let read_of = |pairs: &[(&str, &str)]| {
            let environment: Environment = pairs
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect();
            read(&environment).map(|settings| settings.source).map_err(|stop| stop.to_string())
        };
        assert_eq!(read_of(&[]), Ok(Source::Built));
        assert_eq!(
            read_of(&[("VDO_IMAGE", "r:5000/a/b:v1")]),
            Ok(Source::Named("r:5000/a/b:v1".into()))
        );
        assert_eq!(read_of(&[("VDO_REGISTRY", "r:5000/a")]), Ok(Source::Registry("r:5000/a".into())));
        for (pairs, part) in [
            (&[("VDO_IMAGE", "a b")][..], "not a reference"),
            (&[("VDO_IMAGE", "-o")], "not a reference"),
            (&[("VDO_REGISTRY", "https://r/a")], "not a registry"),
            (&[("VDO_REGISTRY", "r/a:v1")], "not a registry"),
            (&[("VDO_REGISTRY", "r/a/")], "not a registry"),
            (&[("VDO_IMAGE", "a"), ("VDO_REGISTRY", "b")], "both set"),
        ] {
            let error = read_of(pairs).expect_err("refused");
            assert!(error.contains(part), "{pairs:?}: {error}");
        }
    }
}
