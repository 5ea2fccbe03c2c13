// SPDX-License-Identifier: Apache-2.0
//! `vdo-release bundle`: writes the OLM bundle of the operator from deploy/ and the matrix: manifests, metadata, scorecard tests.
//!
//! OLM creates only the kinds that a bundle may hold, and moves namespaced objects into the operator's namespace. All other objects are in
//! prerequisites.yaml, which an administrator applies first.

mod csv;
mod descriptors;
mod prerequisites;
mod supported;
#[cfg(test)]
mod tests;

use crate::output;
use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use vdo_api::yaml;
use vdo_core::matrix::Index;

/// The package: what a Subscription names.
pub const PACKAGE: &str = "vdo";
/// The channels, the usual one last.
pub const CHANNELS: [&str; 2] = ["candidate", "stable"];
/// The operator's namespace. The bundle's RoleBinding names it, so that it cannot be another.
const NAMESPACE: &str = "vmware-system-vdo";
/// What the annotations are called.
const ANNOTATION: &str = "operators.operatorframework.io";
const GENERATED: &str = "# Generated from deploy/ and matrix-index/ by `make bundle`. Do not edit.\n";
/// The file by which a folder is known to be a bundle.
pub const ANNOTATIONS: &str = "metadata/annotations.yaml";

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Folder with the operator's manifests
    #[arg(long, value_name = "DIR", default_value = "deploy")]
    source: PathBuf,
    /// The index of the matrix; the bundle gets the supported Kubernetes versions and the images of the newest drivers from the index
    #[arg(long, value_name = "FILE", default_value = "matrix-index/index.yaml")]
    matrix: PathBuf,
    /// Another name, tag or digest for the operator's image
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
    /// Folder to write; a folder that contains a bundle is replaced
    #[arg(long, value_name = "DIR", default_value = "bundle")]
    output: PathBuf,
}

/// What the bundle is made of.
struct Source {
    objects: Vec<Value>,
    definitions: Vec<Value>,
    samples: Vec<Value>,
    namespaces: Vec<Value>,
    matrix: Index,
    image: Option<String>,
}

impl Source {
    fn read(args: &Args) -> Result<Self> {
        let files = |names: &[&str]| -> Result<Vec<Value>> {
            let read = names.iter().map(|name| documents(&args.source.join(name)));
            Ok(read.collect::<Result<Vec<_>>>()?.concat())
        };
        let of_folder = |name: &str| -> Result<Vec<Value>> {
            let folder = args.source.join(name);
            let entries = std::fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
            let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
            paths.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
            paths.sort();
            Ok(paths.iter().map(|path| documents(path)).collect::<Result<Vec<_>>>()?.concat())
        };
        Ok(Self {
            objects: files(&[
                "operator.yaml",
                "rbac.yaml",
                "readers-rbac.yaml",
                "drivers-rbac.yaml",
                "openshift-rbac.yaml",
                "openshift-trusted-ca.yaml",
                "admission-policy.yaml",
                "service.yaml",
                "network-policy.yaml",
            ])?,
            definitions: of_folder("crds")?,
            samples: of_folder("samples")?,
            namespaces: files(&["namespace.yaml"])?,
            matrix: Index::parse(&output::read(&args.matrix)?).with_context(|| format!("{} cannot be read", args.matrix.display()))?,
            image: args.image.clone(),
        })
    }

    /// The one object of this kind, in a namespace or in none.
    fn one(&self, kind: &str, namespace: &str) -> Result<&Value> {
        let mut found = self
            .objects
            .iter()
            .filter(|o| o["kind"] == kind && text(o, "/metadata/namespace") == namespace);
        match (found.next(), found.next()) {
            (Some(one), None) => Ok(one),
            (None, _) => bail!("the manifests contain no {kind} in the namespace {namespace:?}"),
            (Some(_), Some(_)) => bail!("the manifests contain more than one {kind} in the namespace {namespace:?}"),
        }
    }
}

fn documents(path: &Path) -> Result<Vec<Value>> {
    let content = String::from_utf8(output::read(path)?).with_context(|| format!("{} is not text", path.display()))?;
    yaml::load_all(&content).with_context(|| format!("{} cannot be read", path.display()))
}

/// A text in an object, or nothing.
fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

pub fn run(args: &Args) -> Result<()> {
    let files = files(&Source::read(args)?)?;
    output::replace(&args.output, ANNOTATIONS, |folder| {
        files
            .iter()
            .try_for_each(|(path, content)| output::write(&folder.join(path), content.as_bytes()))
    })?;
    output::line(&format!(
        "bundle {} in {}: {} files",
        csv::name(),
        args.output.display(),
        files.len()
    ))
}

/// Every file by its path.
fn files(source: &Source) -> Result<BTreeMap<String, String>> {
    let mut all = BTreeMap::new();
    let mut put = |path: String, value: &Value| -> Result<()> {
        let content = format!("{GENERATED}{}", yaml::dump(value)?);
        match all.insert(path.clone(), content) {
            None => Ok(()),
            Some(_) => bail!("two objects would be written to the same file {path}"),
        }
    };
    put(format!("manifests/{PACKAGE}.clusterserviceversion.yaml"), &csv::csv(source)?)?;
    for definition in &source.definitions {
        let (plural, group) = text(definition, "/metadata/name")
            .split_once('.')
            .context("a CustomResourceDefinition has no group")?;
        put(format!("manifests/{group}_{plural}.yaml"), definition)?;
    }
    // The operator's own Role, as an object: as `permissions` of the CSV it would hold in every namespace where an OperatorGroup selects all.
    let own = [
        ("Service", NAMESPACE),
        ("NetworkPolicy", NAMESPACE),
        // Empty, for OpenShift to write into.
        ("ConfigMap", NAMESPACE),
        ("Role", NAMESPACE),
        ("RoleBinding", NAMESPACE),
    ];
    for (kind, namespace) in own {
        let mut object = source.one(kind, namespace)?.clone();
        let metadata = object["metadata"].as_object_mut().context("metadata")?;
        metadata.shift_remove("namespace");
        let name = text(&object, "/metadata/name");
        put(format!("manifests/{name}.{}.yaml", kind.to_lowercase()), &object)?;
    }
    put(ANNOTATIONS.to_owned(), &json!({ "annotations": annotations() }))?;
    let properties = json!({"properties": [{"type": "olm.maxOpenShiftVersion", "value": supported::newest_openshift(&source.matrix)?}]});
    put("metadata/properties.yaml".to_owned(), &properties)?;
    put("tests/scorecard/config.yaml".to_owned(), &scorecard())?;
    let content = format!("{GENERATED}{}", prerequisites::text(source)?);
    all.insert("prerequisites.yaml".to_owned(), content);
    Ok(all)
}

/// The annotations of a bundle, which are the labels of its image, too.
pub fn annotations() -> BTreeMap<String, String> {
    let [.., usual] = CHANNELS;
    [
        ("bundle.mediatype.v1", "registry+v1"),
        ("bundle.manifests.v1", "manifests/"),
        ("bundle.metadata.v1", "metadata/"),
        ("bundle.package.v1", PACKAGE),
        ("bundle.channels.v1", &CHANNELS.join(",")),
        ("bundle.channel.default.v1", usual),
        ("test.config.v1", "tests/scorecard/"),
        ("test.mediatype.v1", "scorecard+v1"),
    ]
    .map(|(key, value)| (format!("{ANNOTATION}.{key}"), value.to_owned()))
    .into()
}

/// The six tests of operator-sdk that every bundle passes.
fn scorecard() -> Value {
    const IMAGE: &str = "quay.io/operator-framework/scorecard-test:v1.42.3";
    let test = |suite: &str, name: &str| {
        json!({"entrypoint": ["scorecard-test", name], "image": IMAGE, "labels": {"suite": suite, "test": format!("{name}-test")},
            "storage": {"spec": {"mountPath": {}}}})
    };
    let olm = [
        "olm-bundle-validation",
        "olm-crds-have-validation",
        "olm-crds-have-resources",
        "olm-spec-descriptors",
        "olm-status-descriptors",
    ];
    let tests: Vec<Value> = [test("basic", "basic-check-spec")]
        .into_iter()
        .chain(olm.map(|name| test("olm", name)))
        .collect();
    json!({"apiVersion": "scorecard.operatorframework.io/v1alpha3", "kind": "Configuration", "metadata": {"name": "config"},
        "stages": [{"parallel": true, "tests": tests}], "storage": {"spec": {"mountPath": {}}}})
}

/// The objects of a bundle's folder by kind, for those who read one.
pub fn read_csv(bundle: &Path) -> Result<Value> {
    let folder = bundle.join("manifests");
    let entries = std::fs::read_dir(&folder).with_context(|| format!("{} contains no bundle", bundle.display()))?;
    for entry in entries {
        let found = documents(&entry?.path())?;
        if let Some(csv) = found.into_iter().find(|object| object["kind"] == "ClusterServiceVersion") {
            return Ok(csv);
        }
    }
    Err(anyhow!("{} contains no ClusterServiceVersion", folder.display()))
}
