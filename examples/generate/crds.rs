//! The CustomResourceDefinitions, from the Rust types.

use kube::{CustomResourceExt, Resource};
use std::error::Error;
use std::path::Path;
use vdo_api::api::{CompatibilityConfig, VDOConfig, VsphereCloudConfig};

const HEADER: &str = "# Generated from crates/vdo-api/src/api by `make manifests`. Do not edit.\n";

/// File name and content of every definition.
pub fn files() -> Result<Vec<(String, String)>, Box<dyn Error>> {
    Ok(vec![
        file::<VDOConfig>()?,
        file::<VsphereCloudConfig>()?,
        file::<CompatibilityConfig>()?,
    ])
}

/// Writes them to deploy/crds.
#[allow(dead_code, reason = "the test that compares the files includes this module and writes nothing")]
pub fn crds() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/crds");
    std::fs::create_dir_all(&folder)?;
    for (name, content) in files()? {
        std::fs::write(folder.join(name), content)?;
    }
    Ok(())
}

fn file<K: CustomResourceExt + Resource<DynamicType = ()>>() -> Result<(String, String), Box<dyn Error>> {
    let content = serde_saphyr::to_string(&K::crd())?;
    Ok((format!("{}_{}.yaml", K::group(&()), K::plural(&())), format!("{HEADER}{content}")))
}
