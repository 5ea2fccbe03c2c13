// SPDX-License-Identifier: Apache-2.0
//! Converts a matrix folder into ConfigMaps and the Secret with their digests, for `matrix load`, `deploy` and `configure matrix`.

use super::super::context::Context;
use super::super::{CliError, Exit};
use super::bytes;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use vdo::cluster::{ClusterError, Select, Watch, list};
use vdo::reconcile::{CONTENTS, PART};
use vdo_api::api::{MANAGED_BY_LABEL, MATRIX_LABEL};
use vdo_api::types::Digest;
use vdo_core::install::VDOCTL;
use vdo_core::manifest::Object;
use vdo_core::matrix::{Index, Parts};
use vdo_core::mirror_lock::{self, Lock};
use vdo_source::fetch::{Access, ConfigMaps, INDEX_FILE, MatrixSource, chart_file, embedded, index_file};
use vdo_source::signature::Form;

/// The files of a matrix, by their paths beside the index.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// The index in a folder, its signature, and the charts beside it. Every version has to have its chart there or in this vdoctl: an operator
/// that reads ConfigMaps looks nowhere else.
pub(crate) async fn files(path: &Path) -> Result<Files, CliError> {
    let source = MatrixSource::Local(path.to_owned());
    let place = path.display();
    let refused = |what: String, remedy: String| CliError::new(Exit::Refused, format!("{place}: {what}"), remedy);
    let look = source.fetch(&Access::default(), None).await;
    let signed = look.map_err(|error| CliError::of(Exit::NotFound, &error))?.signed;
    let index = Index::parse(&signed.index).map_err(|error| {
        let reported = CliError::of(Exit::Refused, &error);
        refused(reported.what, reported.remedy)
    })?;
    let mut files = Files::from([(INDEX_FILE.to_owned(), signed.index.clone())]);
    let index = match &signed.lock {
        None => index,
        Some(bytes) => {
            files.insert(mirror_lock::FILE.to_owned(), bytes.clone());
            let lock = Lock::parse(bytes, &Digest::of(&signed.index)).map_err(|error| CliError::of(Exit::Refused, &error))?;
            lock.narrow(&index)
        }
    };
    for form in Form::ALL {
        let signature = form.file_of(&index_file(path));
        if signature.exists() {
            files.insert(form.file_of(Path::new(INDEX_FILE)).display().to_string(), bytes(&signature)?);
        }
    }
    for (driver, entry) in index
        .drivers
        .iter()
        .flat_map(|(name, driver)| driver.versions.iter().map(move |entry| (name, entry)))
    {
        // A file of the original operator names none.
        if entry.chart.urls.is_empty() || !entry.is_here {
            continue;
        }
        match chart_file(path, &entry.chart) {
            Some((url, _)) => {
                let bytes = source.chart(&Access::default(), &entry.chart).await;
                let bytes = bytes.map_err(|error| CliError::of(Exit::Refused, &error))?;
                files.insert(url.trim_start_matches("./").to_owned(), bytes);
            }
            None if embedded::chart(&entry.chart).is_ok() => {}
            None => {
                return Err(refused(
                    format!(
                        "the chart of {driver} {} is neither next to the index nor in this vdoctl",
                        entry.version
                    ),
                    format!("Put the chart next to the index: {}.", entry.chart.urls.join(" or ")),
                ));
            }
        }
    }
    Ok(files)
}

/// The ConfigMaps of these files, in the order in which they are applied, and a Secret with the list of contents. It is the last, so that it never
/// names a part that is not there. It has the digest of every part and is a Secret, so that who may write ConfigMaps changes nothing.
pub(crate) fn objects(place: &ConfigMaps, files: &Files) -> Result<Vec<Object>, CliError> {
    let Parts { contents, parts } = Parts::of(files);
    let object = |kind: &str, name: String, field: &str, content: Value| {
        let mut object: Value = json!({
            "apiVersion": "v1", "kind": kind,
            "metadata": {
                "name": name, "namespace": place.namespace,
                // `vdoctl delete` takes away what has the first; by the second parts that are named no more are found.
                "labels": {MANAGED_BY_LABEL: VDOCTL, MATRIX_LABEL: place.name},
            },
        });
        object[field] = content;
        Object::new(object).map_err(|error| CliError::internal(&error))
    };
    let parts = parts
        .iter()
        .map(|(name, bytes)| object("ConfigMap", place.part(name), "binaryData", json!({PART: STANDARD.encode(bytes)})));
    let list = json!({CONTENTS: STANDARD.encode(contents)});
    parts.chain([object("Secret", place.name.clone(), "data", list)]).collect()
}

/// What is there of the same matrix, and not among these objects.
pub(crate) async fn stale(context: &Context, place: &ConfigMaps, wanted: &[Object]) -> Result<Vec<Object>, ClusterError> {
    let select = Select::Labels(format!("{MATRIX_LABEL}={},{MANAGED_BY_LABEL}={VDOCTL}", place.name));
    let mut all = list(&context.ports.client, &Watch::new("v1", "ConfigMap", &place.namespace, select)).await?;
    // Former versions listed the files in a ConfigMap.
    all.retain(|live| wanted.iter().all(|object| object.identity() != live.identity()));
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(urls: &str, bytes: &[u8]) -> String {
        let digest = vdo_api::types::Digest::of(bytes).hex();
        format!(
            "{{apiVersion: vdo.vmware.com/matrix/v1, kind: CompatibilityMatrix, version: 1, drivers: {{d: {{role: other, versions: [{{version: 1.0.0, \
             chart: {{urls: [{urls}], sha256: {digest}}}, kubernetes: {{min: '1.30', max: null, confidence: primary}}, vsphere: {{min: '7.0', max: null, confidence: primary}}}}]}}}}}}"
        )
    }

    #[tokio::test]
    async fn files_of_a_folder_are_index_signature_and_the_charts_it_names() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let chart = b"a chart";
        std::fs::write(folder.path().join("index.yaml"), index("./d.tgz", chart))?;
        let missing = files(folder.path()).await.expect_err("there is no chart");
        assert!(
            missing
                .what
                .ends_with("the chart of d 1.0.0 is neither next to the index nor in this vdoctl"),
            "{missing}"
        );
        std::fs::write(folder.path().join("d.tgz"), b"another")?;
        let changed = files(folder.path()).await.expect_err("it is another chart");
        assert!(changed.what.contains("was changed after it was published"), "{changed}");
        std::fs::write(folder.path().join("d.tgz"), chart)?;
        std::fs::write(folder.path().join("other.tgz"), chart)?;
        std::fs::write(folder.path().join("index.yaml.sigstore.json"), "{}")?;
        let found = files(folder.path()).await.expect("all of it");
        let names: Vec<&str> = found.keys().map(String::as_str).collect();
        assert_eq!(names, ["d.tgz", "index.yaml", "index.yaml.sigstore.json"]);
        let place: MatrixSource = "configmap://vdo/matrix".parse()?;
        let all = objects(place.config_maps().expect("ConfigMaps"), &found)?;
        assert_eq!(all.len(), 4);
        let last = all.last().expect("a list");
        assert_eq!(
            (last.kind(), last.name(), last.namespace()),
            ("Secret", "matrix", "vdo"),
            "the list is written last"
        );
        Ok(())
    }
}
