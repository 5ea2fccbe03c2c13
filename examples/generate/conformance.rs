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
         [csi-sanity](https://github.com/kubernetes-csi/csi-test) {version} of kubernetes-csi calls a CSI driver in the ways that the specification allows, and in many that it forbids. \
         `make conformance` runs it in half a minute: against upstream's driver {}, the newest that can be built from its Go module, as the operator has installed it.\n\n\
         - The controller is that of the operator's Deployment: its arguments, its service account, and `csi-vsphere.conf` as the operator wrote it, with tag categories.\n\
         - The node service is that of a pod of the operator's DaemonSet, on a machine without disks: what comes before the first mount is real.\n\
         - Its user in the vCenter is the one that `vdoctl users create` made. The simulated vCenter enforces privileges.\n\n\
         Nothing was forbidden to the driver, neither by the API server nor by the vCenter, and no login failed: the test fails otherwise. It also fails when a case ends in another way than is \
         shown here, and when a case that does not pass has no reason.\n\n\
         | passed | failed | skipped | switched off |\n|---|---|---|---|\n| {} | {} | {} | {} |\n\n\
         A failed case is one in which upstream's driver answers in another way than csi-sanity expects. None of them comes from the installation.\n",
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
    text.push_str("\n## Every case\n\n| of | case | result | csi-sanity says |\n|---|---|---|---|\n");
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
Those of Kubernetes 1.34 (`k8s.io/kubernetes/test/e2e`) are not run: searched by their names and by the pods that they make, none that is about these drivers does without a kubelet.\n\n\
| part | without a kubelet | why |\n|---|---|---|\n\
| storage, for the driver that a file of `-storage.testdriver` describes (`test/e2e/storage/testsuites`) | none | each case that makes a volume has a pod write to it, read it, or report its size, file system, owner or mode; \
that needs mounts. `volume-expand` has a pod in every case. `capacity` wants capacities from the driver, which has none. `volumeLimits` reads CSINodes, which here are the test bed's |\n\
| storage, the lifecycles of StorageClasses, CSIDrivers, CSINodes, VolumeAttachments, CSIStorageCapacities, PersistentVolumes and claims (`[Conformance]`) | all | they call the API server alone, with a driver that does \
not exist: what they show is that upstream's kube-apiserver is upstream's |\n\
| storage, other cases (`csimock`, local and in-tree volumes, `subpath`, `emptyDir`) | none | other drivers, and pods that run |\n\
| cloud provider (`test/e2e/cloud`) | none | all but one are for GCE; that one deletes a machine through code of the cloud, and the code for vSphere has no such call |\n\n\
In a cluster with nodes, `vdoctl selftest` makes a volume, has a pod write to it, makes it larger, takes a snapshot and restores it, and moves the pod ([selftest.md](selftest.md)).\n\n\
Without real nodes it is not shown anywhere here that the node plugin formats, mounts, grows and unmounts a disk, what the kubelet does with its answers, and that the registrar registers it. \
[testing.md](testing.md#what-is-not-proven-here) has the whole list.\n";
