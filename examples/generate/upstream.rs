//! Digests of the drivers' own manifests, object by object, in the release files: what a chart renders is held against them where the
//! manifests themselves are not at hand. `cargo run --example generate -- upstream` reads the manifests in `VDO_UPSTREAM_DIR`.

use serde_json::Value;
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use vdo::types::{Digest, ObjectId};
use vdo::yaml;

type Failure = Box<dyn Error>;

/// The folder of a driver's manifests below `VDO_UPSTREAM_DIR`, by the name of its chart.
pub const FOLDERS: [(&str, &str); 2] = [("vsphere-cpi", "cloud-provider-vsphere"), ("vsphere-csi", "vsphere-csi-driver")];

/// Where the manifests are, when this machine has them.
#[allow(clippy::disallowed_methods, reason = "a tool for people, told by the environment")]
pub fn manifests() -> Option<PathBuf> {
    std::env::var_os("VDO_UPSTREAM_DIR").map(PathBuf::from)
}

/// The digest of an object, whatever the order of its keys: SHA-256 of its JSON with sorted keys.
pub fn digest(object: &Value) -> String {
    Digest::of(sorted(object).to_string().as_bytes()).hex()
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let sorted: BTreeMap<&String, Value> = fields.iter().map(|(key, value)| (key, sorted(value))).collect();
            sorted.into_iter().map(|(key, value)| (key.clone(), value)).collect()
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

/// The name of an object as digests are listed by it.
pub fn name(object: &Value) -> String {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let group = text("/apiVersion").split_once('/').map_or("", |(group, _)| group);
    ObjectId::new(group, text("/kind"), text("/metadata/namespace"), text("/metadata/name")).to_string()
}

/// Writes the digests into the release files whose manifests are there, after checking that they are the files that were compared.
pub fn upstream() -> Result<(), Failure> {
    let folder = manifests().ok_or("set VDO_UPSTREAM_DIR to a folder with the drivers' own manifests")?;
    let charts = Path::new(env!("CARGO_MANIFEST_DIR")).join("charts");
    for (chart, own) in FOLDERS {
        for entry in fs::read_dir(folder.join(own))? {
            let version = entry?.file_name().to_string_lossy().into_owned();
            let file = charts.join(chart).join("releases").join(format!("{version}.yaml"));
            let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
            let text = with_digests(&text, &folder.join(own).join(&version))?;
            fs::write(&file, text)?;
            println!("wrote {}", file.display());
        }
    }
    Ok(())
}

fn with_digests(release: &str, manifests: &Path) -> Result<String, Failure> {
    let known = yaml::load_value(release)?;
    let files = known["upstream"]["files"].as_object().ok_or("no files in the release")?;
    let mut block = String::from("  objects: # canonical SHA-256 of each object in these files\n");
    for (path, digest_of_file) in files {
        let file = manifests.join(path.rsplit('/').next().unwrap_or(path));
        let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        if digest_of_file.as_str() != Some(&Digest::of(text.as_bytes()).hex()) {
            return Err(format!("{} is not the file that was compared", file.display()).into());
        }
        let _ = writeln!(block, "    {path}:");
        for object in yaml::load_all(&text)? {
            let _ = writeln!(block, "      {:?}: {}", name(&object), digest(&object));
        }
    }
    let (mut out, mut skipping, mut done) = (String::new(), false, false);
    for line in release.lines() {
        let starts_section = !line.starts_with("    ");
        skipping = line.starts_with("  objects:") || (skipping && !starts_section);
        if !done && line.starts_with("images:") {
            out.push_str(&block);
            done = true;
        }
        if !skipping {
            out.push_str(line);
            out.push('\n');
        }
    }
    if done { Ok(out) } else { Err("the release has no images".into()) }
}
