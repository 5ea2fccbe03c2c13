// SPDX-License-Identifier: Apache-2.0
//! `vdo-release bundle-image` and `catalog`: pack an OLM bundle into an image, and write the file-based catalog of bundles and its image.

use crate::bundle::{ANNOTATIONS, CHANNELS, PACKAGE, annotations, read_csv};
use crate::image::{Reference, reference};
use crate::{data_image, folder, output};
use anyhow::{Context, Result, bail, ensure};
use semver::Version;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use vdo_api::yaml;
use vdo_oci::oci::Annotations;

/// Where a catalog is in its image, and the label by which it is found.
const CONFIGS: &str = "configs";
const CONFIGS_LABEL: &str = "operators.operatorframework.io.index.configs.v1";
/// The parts of a bundle that are in its image; what an administrator applies is not.
const PARTS: [&str; 3] = ["manifests", "metadata", "tests"];

#[derive(Debug, clap::Args)]
pub struct BundleArgs {
    /// Folder with the bundle
    #[arg(long, value_name = "DIR", default_value = "bundle")]
    bundle: PathBuf,
    /// Folder of the layout; a folder that contains a layout is replaced
    #[arg(long, value_name = "DIR")]
    output: PathBuf,
    /// Name and tag of the image
    #[arg(long, value_name = "NAME:TAG", value_parser = reference)]
    reference: Reference,
    /// Time stamp of all files and of the image, in seconds since 1970
    #[arg(long, value_name = "SECONDS", env = "SOURCE_DATE_EPOCH", default_value_t = 0)]
    created: u64,
}

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The image of a bundle and its folder; once for each version, in any order
    #[arg(long = "bundle", value_name = "IMAGE=DIR", required = true, value_parser = by_image)]
    bundles: Vec<(String, PathBuf)>,
    /// Folder for the catalog; a folder that contains a catalog of this package is replaced
    #[arg(long, value_name = "DIR")]
    output: PathBuf,
    /// Folder of the image's layout; a folder that contains a layout is replaced
    #[arg(long, value_name = "DIR", requires = "reference")]
    image: Option<PathBuf>,
    /// Name and tag of the catalog's image
    #[arg(long, value_name = "NAME:TAG", value_parser = reference)]
    reference: Option<Reference>,
    /// Time stamp of all files and of the image, in seconds since 1970
    #[arg(long, value_name = "SECONDS", env = "SOURCE_DATE_EPOCH", default_value_t = 0)]
    created: u64,
}

fn by_image(text: &str) -> Result<(String, PathBuf)> {
    let (image, folder) = text.split_once('=').context("write IMAGE=DIR")?;
    Ok((image.to_owned(), PathBuf::from(folder)))
}

pub fn pack_bundle(args: &BundleArgs) -> Result<()> {
    ensure!(
        args.bundle.join(ANNOTATIONS).is_file(),
        "{} contains no bundle (there is no {ANNOTATIONS}): make bundle",
        args.bundle.display()
    );
    let mut files = BTreeMap::new();
    for part in PARTS {
        let below = folder::contents(&args.bundle.join(part), |_, _| true)?.into_iter();
        files.extend(below.map(|(name, bytes)| (format!("{part}/{name}"), bytes)));
    }
    data_image::pack(&args.output, files, &annotations(), &args.reference, args.created).map(|_| ())
}

pub fn run(args: &Args) -> Result<()> {
    let bundles = args.bundles.iter().map(|(image, folder)| Bundle::read(image, folder));
    let text = catalog(bundles.collect::<Result<Vec<_>>>()?)?;
    let path = format!("{PACKAGE}/catalog.yaml");
    output::replace(&args.output, &path, |folder| output::write(&folder.join(&path), text.as_bytes()))?;
    output::line(&format!("catalog of {} in {}", count(args.bundles.len()), args.output.display()))?;
    if let (Some(place), Some(reference)) = (&args.image, &args.reference) {
        let labels = Annotations::from([(CONFIGS_LABEL.to_owned(), format!("/{CONFIGS}"))]);
        let files = BTreeMap::from([(format!("{CONFIGS}/{path}"), text.into_bytes())]);
        data_image::pack(place, files, &labels, reference, args.created)?;
    }
    Ok(())
}

fn count(bundles: usize) -> String {
    match bundles {
        1 => "1 bundle".to_owned(),
        more => format!("{more} bundles"),
    }
}

struct Bundle {
    image: String,
    version: Version,
    csv: Value,
    properties: Vec<Value>,
}

impl Bundle {
    fn read(image: &str, folder: &Path) -> Result<Self> {
        let csv = read_csv(folder)?;
        let version = csv["spec"]["version"]
            .as_str()
            .context("the ClusterServiceVersion has no version")?;
        let version = version
            .parse()
            .with_context(|| format!("{}: version {version}", folder.display()))?;
        let properties = folder.join("metadata/properties.yaml");
        let properties = match properties.exists() {
            true => yaml::load_value(&String::from_utf8_lossy(&output::read(&properties)?))?["properties"].clone(),
            false => json!([]),
        };
        Ok(Self {
            image: image.to_owned(),
            version,
            csv,
            properties: properties.as_array().cloned().unwrap_or_default(),
        })
    }

    fn name(&self) -> &str {
        self.csv["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// The entry of a catalog. What the console shows is in it, because the image of a bundle is pulled only for its installation.
    fn entry(&self) -> Value {
        let spec = &self.csv["spec"];
        let owned = spec["customresourcedefinitions"]["owned"].as_array().into_iter().flatten();
        let mut properties: Vec<Value> = owned
            .map(|kind| {
                let name = kind["name"].as_str().unwrap_or_default();
                let group = name.split_once('.').map(|(_, group)| group);
                json!({"type": "olm.gvk", "value": {"group": group, "kind": kind["kind"], "version": kind["version"]}})
            })
            .collect();
        properties.push(json!({"type": "olm.package", "value": {"packageName": PACKAGE, "version": self.version.to_string()}}));
        properties.extend(self.properties.iter().cloned());
        let mut metadata = json!({"annotations": self.csv["metadata"]["annotations"], "labels": self.csv["metadata"]["labels"]});
        let shown = [
            ("crdDescriptions", "customresourcedefinitions"),
            ("description", "description"),
            ("displayName", "displayName"),
            ("installModes", "installModes"),
            ("keywords", "keywords"),
            ("links", "links"),
            ("maintainers", "maintainers"),
            ("maturity", "maturity"),
            ("minKubeVersion", "minKubeVersion"),
            ("provider", "provider"),
        ];
        for (to, from) in shown {
            metadata[to] = spec[from].clone();
        }
        properties.push(json!({"type": "olm.csv.metadata", "value": metadata}));
        let mut images = vec![json!({"name": "", "image": self.image})];
        images.extend(spec["relatedImages"].as_array().into_iter().flatten().cloned());
        json!({"schema": "olm.bundle", "package": PACKAGE, "name": self.name(), "image": self.image,
            "properties": properties, "relatedImages": images})
    }
}

/// Every version replaces the one before it in its channel. Pre-releases are in the first channel alone.
fn catalog(mut bundles: Vec<Bundle>) -> Result<String> {
    bundles.sort_by(|one, other| one.version.cmp(&other.version));
    if let Some(pair) = bundles.windows(2).find(|pair| pair[0].version == pair[1].version) {
        bail!("two bundles have the version {}", pair[0].version);
    }
    let newest = bundles.last().context("the catalog has no bundles")?;
    let [candidate, stable] = CHANNELS;
    let mut all = vec![json!({
        "schema": "olm.package",
        "name": PACKAGE,
        "defaultChannel": if bundles.iter().any(|bundle| bundle.version.pre.is_empty()) { stable } else { candidate },
        "description": newest.csv["spec"]["displayName"],
        "icon": {"base64data": newest.csv["spec"]["icon"][0]["base64data"], "mediatype": newest.csv["spec"]["icon"][0]["mediatype"]},
    })];
    for channel in CHANNELS {
        let mut entries: Vec<Value> = Vec::new();
        for bundle in bundles
            .iter()
            .filter(|bundle| channel == candidate || bundle.version.pre.is_empty())
        {
            let mut entry = json!({"name": bundle.name()});
            if let Some(before) = entries.last() {
                entry["replaces"] = before["name"].clone();
            }
            entries.push(entry);
        }
        if !entries.is_empty() {
            all.push(json!({"schema": "olm.channel", "package": PACKAGE, "name": channel, "entries": entries}));
        }
    }
    all.extend(bundles.iter().map(Bundle::entry));
    Ok(yaml::dump_all(&all))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundle(version: &str) -> Bundle {
        Bundle {
            image: format!("example.com/bundle:v{version}"),
            version: version.parse().expect("a version"),
            csv: json!({"metadata": {"name": format!("vdo.v{version}")}, "spec": {}}),
            properties: Vec::new(),
        }
    }

    #[test]
    fn catalog_orders_versions_and_keeps_pre_releases_out_of_stable() {
        let bundles = ["0.10.0", "0.9.0", "0.10.0-rc.1"].map(bundle).into();
        let documents = yaml::load_all(&catalog(bundles).expect("a catalog")).expect("YAML");
        let entries = |name: &str| {
            let channel = documents.iter().find(|one| one["schema"] == "olm.channel" && one["name"] == name);
            channel.expect("a channel")["entries"].clone()
        };
        assert_eq!(
            entries("candidate"),
            json!([{"name": "vdo.v0.9.0"}, {"name": "vdo.v0.10.0-rc.1", "replaces": "vdo.v0.9.0"},
                {"name": "vdo.v0.10.0", "replaces": "vdo.v0.10.0-rc.1"}])
        );
        assert_eq!(
            entries("stable"),
            json!([{"name": "vdo.v0.9.0"}, {"name": "vdo.v0.10.0", "replaces": "vdo.v0.9.0"}])
        );
    }

    #[test]
    fn catalog_with_a_version_twice_is_refused() {
        let error = catalog(["1.0.0", "1.0.0"].map(bundle).into()).expect_err("two bundles of one version");
        assert!(error.to_string().contains("1.0.0"), "{error}");
    }
}
