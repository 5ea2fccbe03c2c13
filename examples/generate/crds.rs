// SPDX-License-Identifier: Apache-2.0
//! The CustomResourceDefinitions, from the Rust types.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{CustomResourceDefinition, JSON};
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
    let mut definition = K::crd();
    unseen(&mut definition);
    let content = serde_saphyr::to_string(&definition)?;
    Ok((format!("{}_{}.yaml", K::group(&()), K::plural(&())), format!("{HEADER}{content}")))
}

/// An object without a status says that no controller has seen it. Without this kstatus takes one for finished that the operator has not read yet.
fn unseen(definition: &mut CustomResourceDefinition) {
    let versions = definition.spec.versions.iter_mut().filter(|version| version.subresources.is_some());
    let schemas = versions.filter_map(|version| version.schema.as_mut()?.open_api_v3_schema.as_mut()?.properties.as_mut());
    for status in schemas.filter_map(|properties| properties.get_mut("status")) {
        status.default = Some(JSON(serde_json::json!({"observedGeneration": -1})));
    }
}
