// SPDX-License-Identifier: Apache-2.0
//! The page of csi-sanity's results, made from what the tests have recorded and from the reasons in the code.

pub(crate) mod reasons;

use super::docs::{Failure, cell};
use reasons::{Because, REASONS};
use serde::Deserialize;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// What `make conformance` has recorded.
const RESULTS: &str = "tests/fixtures/csi-sanity.yaml";
const MODULE: &str = "tests/testbed/go/csi-sanity/go.mod";

#[derive(Deserialize)]
pub(crate) struct Results {
    /// The version of the driver.
    driver: String,
    pub(crate) cases: Vec<Case>,
}

#[derive(Deserialize)]
pub(crate) struct Case {
    #[serde(rename = "case")]
    pub(crate) name: String,
    pub(crate) result: String,
    /// What csi-sanity says where it did not pass.
    #[serde(default)]
    message: String,
}

impl Case {
    pub(crate) fn passed(&self) -> bool {
        self.result == "passed"
    }

    /// The part of the driver that it is about, and the rest of its name.
    fn split(&self) -> (&str, &str) {
        let (service, rest) = self.name.split_once(" / ").unwrap_or((&self.name, ""));
        (service.split(" [").next().unwrap_or(service), rest)
    }
}

pub(crate) fn results(root: &Path) -> Result<Results, Failure> {
    Ok(vdo_api::yaml::load(&fs::read_to_string(root.join(RESULTS))?)?)
}

/// Its path and content.
pub(crate) fn file(root: &Path) -> Result<(String, String), Failure> {
    let results = results(root)?;
    let module = fs::read_to_string(root.join(MODULE))?;
    let version = module
        .lines()
        .find_map(|line| line.trim().strip_prefix("github.com/kubernetes-csi/csi-test/v5 "));
    let version = version.and_then(|rest| rest.split(' ').next()).ok_or("no version of csi-sanity")?;
    let mut text = introduction(&results, version);
    for because in Because::ALL {
        reasons_of(&mut text, &results, because)?;
    }
    every_case(&mut text, &results)?;
    text.push_str(WITHOUT_NODES);
    Ok(("docs/conformance.md".to_owned(), text))
}

fn introduction(results: &Results, version: &str) -> String {
    let number = |result: &str| results.cases.iter().filter(|case| case.result == result).count();
    format!(
        "# Conformance\n\n\
         Generated from {RESULTS} and examples/generate/conformance/reasons.rs by `make generate`. Do not edit.\n\n\
         [csi-sanity](https://github.com/kubernetes-csi/csi-test) {version} of kubernetes-csi sends a CSI driver the requests that the CSI specification allows, and many requests that the specification forbids. \
         `make conformance` runs csi-sanity in half a minute. The driver is upstream's version {}, which is the newest version that can be built from its Go module. The operator installs the driver.\n\n\
         - The controller runs as in the operator's Deployment: with the same arguments, the same service account, and the `csi-vsphere.conf` that the operator wrote, with tag categories.\n\
         - The node service runs as in a pod of the operator's DaemonSet, on a machine without disks. All steps before the first mount are real.\n\
         - In the vCenter the driver uses the account that `vdoctl users create` made. The simulated vCenter enforces privileges.\n\n\
         The test fails if the API server or the vCenter forbids a request of the driver, or if a login fails. The test also fails if the result of a case differs from this page, \
         or if this page has no reason for a case that does not pass.\n\n\
         | passed | failed | skipped | switched off |\n|---|---|---|---|\n| {} | {} | {} | {} |\n\n\
         In a failed case the answer of upstream's driver differs from the answer that csi-sanity expects. The installation causes none of the failed cases.\n",
        results.driver,
        number("passed"),
        number("failed"),
        number("skipped"),
        number("pending"),
    )
}

/// The cases that do not pass for one kind of reason.
fn reasons_of(text: &mut String, results: &Results, because: Because) -> Result<(), Failure> {
    write!(text, "\n## {}\n\n{}\n\n", because.title(), because.introduction())?;
    text.push_str("| case | result | reason |\n|---|---|---|\n");
    for entry in REASONS.iter().filter(|entry| entry.because == because) {
        for case in results.cases.iter().filter(|case| entry.covers(&case.name)) {
            let (service, rest) = case.split();
            writeln!(text, "| {service}: {} | {} | {} |", cell(rest), case.result, cell(entry.reason))?;
        }
    }
    Ok(())
}

fn every_case(text: &mut String, results: &Results) -> Result<(), Failure> {
    text.push_str("\n## Every case\n\n| service | case | result | message of csi-sanity |\n|---|---|---|---|\n");
    for case in &results.cases {
        let (service, rest) = case.split();
        let message = if case.message.is_empty() {
            String::new()
        } else {
            format!("`{}`", case.message.replace('`', "'").replace('|', "\\|"))
        };
        writeln!(text, "| {service} | {} | {} | {message} |", cell(rest), case.result)?;
    }
    Ok(())
}

const WITHOUT_NODES: &str = "\n## Kubernetes' own end-to-end tests\n\n\
We do not run the end-to-end tests of Kubernetes 1.34 (`k8s.io/kubernetes/test/e2e`). We searched these tests by name and by the pods that they create: every test that uses the CPI or the CSI driver needs a kubelet.\n\n\
| part | tests that run without a kubelet | why |\n|---|---|---|\n\
| storage, for the driver that a file of `-storage.testdriver` describes (`test/e2e/storage/testsuites`) | none | In each case that creates a volume, a pod writes to the volume, reads it, or reports its size, \
file system, owner or mode. These actions need mounts. `volume-expand` has a pod in every case. `capacity` needs capacities, which the driver does not report. `volumeLimits` reads CSINodes, but here the test bed itself writes the CSINodes. |\n\
| storage, the lifecycles of StorageClasses, CSIDrivers, CSINodes, VolumeAttachments, CSIStorageCapacities, PersistentVolumes and claims (`[Conformance]`) | all | These tests call only the API server, with a driver that does \
not exist. In our test bed they would only test upstream's kube-apiserver. |\n\
| storage, other cases (`csimock`, local and in-tree volumes, `subpath`, `emptyDir`) | none | These tests use other drivers, and pods that run. |\n\
| cloud provider (`test/e2e/cloud`) | none | All tests except one are for GCE. The remaining test calls the cloud provider's code to delete a machine, and the code for vSphere has no such function. |\n\n\
In a cluster with real nodes, `vdoctl selftest` creates a volume and a pod that writes to the volume. The command then expands the volume, takes a snapshot, restores the snapshot, and moves the pod ([selftest.md](selftest.md)).\n\n\
Without real nodes, our tests do not show that the node plugin formats, mounts, expands and unmounts a disk. They also do not show how the kubelet uses the plugin's answers, or that the registrar registers the plugin. \
[testing.md](testing.md#what-is-not-proven-here) lists everything that is not proven.\n";
