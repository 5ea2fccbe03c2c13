// SPDX-License-Identifier: Apache-2.0
//! csi-sanity of kubernetes-csi: calls a CSI driver in every way that its specification allows, and in many that it forbids.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::binaries::Binaries;
use crate::process::tail;
use crate::upstream_programs::Part;

const GIB: u64 = 1 << 30;
/// A run ends before this, or is killed.
const LONGEST: Duration = Duration::from_secs(600);

/// A run of csi-sanity.
#[derive(Debug)]
pub struct Sanity {
    /// Where the driver's controller listens.
    pub controller: PathBuf,
    /// Where the driver listens on a node.
    pub node: PathBuf,
    /// A folder that the driver of the node sees at the same path.
    pub shared: PathBuf,
}

/// A case and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SanityCase {
    /// Its name with the names of those around it.
    pub name: String,
    /// `passed`, `failed`, `skipped` or `pending`, in the words of the program; there are others for ends that none should have.
    pub state: String,
    /// Why it did not pass.
    pub message: String,
}

impl Sanity {
    /// Runs all cases in an order that is always the same; the program is built first if it is missing.
    pub async fn run(&self) -> Result<Vec<SanityCase>> {
        let binaries = tokio::task::spawn_blocking(|| Binaries::ensure(&[Part::CsiSanity])).await??;
        // The path of a socket must be short.
        let folder = tempfile::Builder::new().prefix("s").tempdir()?;
        let near = |name: &str, far: &Path| -> Result<String> {
            let link = folder.path().join(name);
            symlink(far, &link)?;
            Ok(format!("unix://{}", link.display()))
        };
        let report = folder.path().join("report.json");
        let log = folder.path().join("log");
        let mut command = tokio::process::Command::new(binaries.path(Part::CsiSanity));
        command
            .arg(format!("--csi.controllerendpoint={}", near("controller", &self.controller)?))
            .arg(format!("--csi.endpoint={}", near("node", &self.node)?))
            .arg(format!("--csi.mountdir={}", self.shared.join("mount").display()))
            .arg(format!("--csi.stagingdir={}", self.shared.join("staging").display()))
            .arg(format!("--csi.testvolumesize={GIB}"))
            .arg(format!("--csi.testvolumeexpandsize={}", 2 * GIB))
            .arg(format!("--ginkgo.json-report={}", report.display()))
            .arg(format!("--ginkgo.timeout={}s", LONGEST.as_secs()))
            .args(["--ginkgo.seed=1", "--ginkgo.no-color", "--ginkgo.succinct"])
            .stdin(Stdio::null())
            .stdout(std::fs::File::create(&log)?)
            .stderr(Stdio::null())
            .kill_on_drop(true);
        let mut child = command.spawn().context("cannot start csi-sanity")?;
        // It ends with 1 where a case has failed, which is a result.
        let ended = tokio::time::timeout(LONGEST + LONGEST / 10, child.wait()).await;
        ended.context("csi-sanity does not end")??;
        let text = std::fs::read(&report).with_context(|| format!("csi-sanity has no report:\n{}", tail(&log, 30)))?;
        cases(&text)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Suite {
    spec_reports: Vec<Spec>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Spec {
    container_hierarchy_texts: Option<Vec<String>>,
    leaf_node_type: String,
    leaf_node_text: String,
    state: String,
    #[serde(default)]
    failure: Failure,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Failure {
    #[serde(default)]
    message: String,
}

/// The cases of a report, without what runs before and after them.
fn cases(report: &[u8]) -> Result<Vec<SanityCase>> {
    let suites: Vec<Suite> = serde_json::from_slice(report).context("the report of csi-sanity")?;
    let specs = suites.into_iter().flat_map(|suite| suite.spec_reports);
    let of_cases = specs.filter(|spec| spec.leaf_node_type == "It");
    Ok(of_cases
        .map(|spec| {
            let mut names = spec.container_hierarchy_texts.unwrap_or_default();
            names.push(spec.leaf_node_text);
            SanityCase {
                name: names.join(" / "),
                state: spec.state,
                message: spec.failure.message,
            }
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_have_whole_names_and_reasons() -> Result<()> {
        let report = r#"[{"SuiteDescription": "s", "SpecReports": [
            {"LeafNodeType": "BeforeSuite", "LeafNodeText": "", "ContainerHierarchyTexts": null, "State": "passed"},
            {"LeafNodeType": "It", "LeafNodeText": "works", "ContainerHierarchyTexts": ["A", "B"], "State": "passed"},
            {"LeafNodeType": "It", "LeafNodeText": "fails", "ContainerHierarchyTexts": ["A"], "State": "failed",
             "Failure": {"Message": "because"}}]}]"#;
        let case = |name: &str, state: &str, message: &str| SanityCase {
            name: name.into(),
            state: state.into(),
            message: message.into(),
        };
        assert_eq!(
            cases(report.as_bytes())?,
            [case("A / B / works", "passed", ""), case("A / fails", "failed", "because")]
        );
        assert!(cases(b"{}").is_err());
        Ok(())
    }
}
