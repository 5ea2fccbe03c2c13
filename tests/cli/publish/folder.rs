// SPDX-License-Identifier: Apache-2.0
//! A publisher with a key and a matrix in a folder, whose path has a space.

use super::super::vdoctl;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use vdo_core::chart::Source;

/// A driver of two objects: a Deployment with this API version and selector, and a ConfigMap with more data.
const TOY: &str = "\
apiVersion: API
kind: Deployment
metadata: {name: toy, namespace: toy}
spec:
  replicas: 1
  selector: {matchLabels: {app: SELECTOR}}
  template:
    metadata: {labels: {app: SELECTOR}}
    spec:
      containers:
      - {name: toy, image: {{ release.images.toy.repository ~ ':' ~ release.images.toy.tag }}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: toy, namespace: toy}
data:
  greeting: hello
";

pub struct Publisher {
    folder: tempfile::TempDir,
    flags: Vec<String>,
}

impl Publisher {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let publisher = Self { flags: Vec::new(), folder };
        let key = rcgen::KeyPair::generate().expect("a key");
        fs::write(publisher.path("key"), key.serialize_pem()).expect("written");
        private(&publisher.path("key"));
        fs::write(publisher.path("key.pub"), key.public_key_pem()).expect("written");
        let flags = ["--to".to_owned(), publisher.matrix(), "--key-file".to_owned(), publisher.key()];
        Self {
            flags: flags.to_vec(),
            ..publisher
        }
    }

    /// With a signed copy of the matrix in the program.
    pub fn copy() -> Self {
        let publisher = Self::new();
        publisher.run(&["matrix", "init", &publisher.matrix(), "--key-file", &publisher.key()]);
        publisher
    }

    /// With a signed matrix of one small driver.
    pub fn toy() -> Self {
        let publisher = Self::new();
        publisher.run(&["matrix", "init", &publisher.matrix(), "--empty", "--key-file", &publisher.key()]);
        let package = publisher.toy_package("1.0.0", "apps/v1", "toy", "");
        publisher.run(&publisher.with(&["matrix", "publish", &package, "--kubernetes", "1.33..1.35", "--vsphere", "7.0.."]));
        publisher
    }

    /// With a signed matrix of a driver called toy with these versions and templates, and with these images beside its own.
    pub fn toy_with(versions: &[(&str, &str)], images: &str) -> Self {
        let publisher = Self::new();
        publisher.run(&["matrix", "init", &publisher.matrix(), "--empty", "--key-file", &publisher.key()]);
        for (version, templates) in versions {
            let package = publisher.toy_from(version, templates, images);
            publisher.run(&publisher.with(&["matrix", "publish", &package, "--kubernetes", "1.33..1.35", "--vsphere", "7.0.."]));
        }
        publisher
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn matrix(&self) -> String {
        self.path("the matrix").display().to_string()
    }

    pub fn key(&self) -> String {
        self.path("key").display().to_string()
    }

    pub fn public(&self) -> String {
        self.path("key.pub").display().to_string()
    }

    /// A command line with where to publish and the key.
    pub fn with<'a>(&'a self, arguments: &[&'a str]) -> Vec<&'a str> {
        arguments.iter().copied().chain(self.flags.iter().map(String::as_str)).collect()
    }

    pub fn run(&self, arguments: &[&str]) {
        let output = vdoctl(arguments).output().expect("it runs");
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    /// Every file of the matrix.
    pub fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        files(Path::new(&self.matrix()))
    }

    /// CSI 3.7.4: 3.7.3 with other images and one more object.
    pub fn csi_3_7_4(&self) -> String {
        let mut source = vdo_source::fetch::embedded::sources().remove("vsphere-csi").expect("a source");
        let releases = source.files.get_mut("releases/3.7.yaml").expect("releases");
        releases.extend(
            b"  3.7.4:\n    date: \"2026-10-31\"\n    upstream:\n      tag: v3.7.4\n    images:\n      driver: {tag: v3.7.4}\n      syncer: {tag: v3.7.4}\n    featureStates:\n      high-pv-node-density: false\n",
        );
        let notes = "{% if release.version == \"3.7.4\" %}\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: vsphere-csi-notes\n  namespace: {{ values.namespace }}\ndata:\n  version: {{ release.version }}\n{% endif %}\n";
        source.files.insert("templates/notes.yaml".into(), notes.into());
        self.package(&source, "vsphere-csi", "3.7.4")
    }

    /// The small driver in some version.
    pub fn toy_package(&self, version: &str, api: &str, selector: &str, data: &str) -> String {
        let objects = TOY.replace("API", api).replace("SELECTOR", selector) + data;
        self.toy_of(version, &objects)
    }

    /// The small driver with these templates.
    pub fn toy_of(&self, version: &str, templates: &str) -> String {
        self.toy_from(version, templates, "")
    }

    /// The same with more images in its release.
    fn toy_from(&self, version: &str, templates: &str, images: &str) -> String {
        let minor = version.rsplit_once('.').expect("a version").0;
        let chart = "apiVersion: v2\nname: toy\ndescription: A small driver\ntype: application\nversion: 0.0.0\nappVersion: v0.0.0\nannotations:\n  vdo.vmware.com/engine: minijinja\n  vdo.vmware.com/engine-version: \"1\"\n  vdo.vmware.com/role: other\n  vdo.vmware.com/configuration: none\n";
        let release = format!(
            "common:\n  images:\n    toy: {{repository: registry.example/toy}}\n{images}versions:\n  {version}:\n    date: \"2026-10-31\"\n    images:\n      toy: {{tag: v{version}}}\n"
        );
        let mut source = Source::default();
        for (path, content) in [
            ("Chart.yaml".to_owned(), chart.to_owned()),
            ("values.yaml".to_owned(), "{}\n".to_owned()),
            (
                "values.schema.json".to_owned(),
                "{\"type\": \"object\", \"additionalProperties\": false}\n".to_owned(),
            ),
            ("deviations.yaml".to_owned(), "deviations: []\n".to_owned()),
            (format!("releases/{minor}.yaml"), release),
            ("templates/toy.yaml".to_owned(), templates.to_owned()),
        ] {
            source.files.insert(path, content.into_bytes());
        }
        self.package(&source, "toy", version)
    }

    fn package(&self, source: &Source, driver: &str, version: &str) -> String {
        let bytes = vdo_core::chart::package(source, &version.parse().expect("a version")).expect("a package");
        let file = self.path(&format!("{driver}-{version}-{}.tgz", vdo_api::types::Digest::of(&bytes).short()));
        fs::write(&file, bytes).expect("written");
        file.display().to_string()
    }
}

pub fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            all.extend(files(&path));
        } else {
            all.insert(path.clone(), fs::read(&path).expect("a file"));
        }
    }
    all
}

fn private(file: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).expect("it is ours");
}
