// SPDX-License-Identifier: Apache-2.0
//! The rights in deploy/, from what the charts of all versions contain.

use std::error::Error;
use std::path::Path;
use vdo::reconcile::{Account, Rights, RightsError, Versions, rights};
use vdo_api::api::OPERATOR_NAMESPACE;
use vdo_api::yaml;
use vdo_core::matrix::Index;
use vdo_source::fetch::{ChartRepository, MatrixSource, Records};

const HEADER: &str = "# Generated from charts/ by `make manifests`. Do not edit.\n";

type Failure = Box<dyn Error>;

/// Writes the files.
pub fn rbac() -> Result<(), Failure> {
    for (file, text) in files(&usual()?)? {
        std::fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join(file), text)?;
        println!("wrote {file}");
    }
    Ok(())
}

/// The rights for the embedded matrix, as `vdoctl rights` prints them without arguments. To learn them takes long.
pub fn usual() -> Result<Rights, Failure> {
    embedded(async |library, index| rights(library, index, Account::usual(OPERATOR_NAMESPACE), Versions::Usual(&[])).await)
}

/// What is asked of the embedded matrix.
pub fn embedded<T>(ask: impl AsyncFnOnce(&ChartRepository, &Index) -> Result<T, RightsError>) -> Result<T, Failure> {
    let library = ChartRepository::new(MatrixSource::Embedded);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    runtime.block_on(async {
        let index = library.index(&Records::default()).await?.index;
        Ok(ask(&library, &index).await?)
    })
}

/// Every file with its content.
pub fn files(rights: &Rights) -> Result<Vec<(&'static str, String)>, Failure> {
    let (namespaces, drivers): (Vec<_>, Vec<_>) = rights.drivers.iter().cloned().partition(|object| object["kind"] == "Namespace");
    brought(&namespaces)?;
    let files = [
        ("deploy/drivers-rbac.yaml", &drivers),
        ("deploy/rbac.yaml", &rights.operator),
        ("deploy/openshift-rbac.yaml", &rights.openshift),
        ("deploy/admission-policy.yaml", &rights.policy),
    ];
    Ok(files
        .into_iter()
        .map(|(file, documents)| (file, format!("{HEADER}{}", yaml::dump_all(documents))))
        .collect())
}

/// Namespaces are in files of their own, which `kubectl delete -k` leaves: those of the drivers have to be there.
fn brought(namespaces: &[serde_json::Value]) -> Result<(), Failure> {
    for file in ["deploy/namespace.yaml", "overlays/bootstrap/namespace.yaml"] {
        let there = yaml::load_all(&std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file))?)?;
        let missing = namespaces
            .iter()
            .find(|namespace| there.iter().all(|other| other["metadata"]["name"] != namespace["metadata"]["name"]));
        if let Some(missing) = missing {
            return Err(format!("{file} lacks Namespace {}", missing["metadata"]["name"]).into());
        }
    }
    Ok(())
}
