// SPDX-License-Identifier: Apache-2.0
//! deploy/operator.yaml as a cluster takes it that has no working node yet. That it is admitted and runs there is shown on the real
//! control plane in `install`.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::path::Path;

fn read(file: &str) -> Result<Value> {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy").join(file))?;
    vdo_api::yaml::load_all(&text)?
        .into_iter()
        .next()
        .with_context(|| format!("{file} is empty"))
}

#[test]
fn deployment_of_the_operator_fits_a_cluster_without_working_nodes() -> Result<()> {
    let deployment = read("operator.yaml")?;
    for (place, wanted) in [
        ("/spec/replicas", json!(1)),
        ("/spec/strategy/rollingUpdate/maxUnavailable", json!(0)),
        ("/spec/template/spec/priorityClassName", json!("system-cluster-critical")),
        ("/spec/template/spec/securityContext/runAsNonRoot", json!(true)),
        ("/spec/template/spec/securityContext/seccompProfile/type", json!("RuntimeDefault")),
        (
            "/spec/template/spec/containers/0/securityContext/readOnlyRootFilesystem",
            json!(true),
        ),
        (
            "/spec/template/spec/containers/0/securityContext/allowPrivilegeEscalation",
            json!(false),
        ),
        ("/spec/template/spec/containers/0/securityContext/capabilities/drop", json!(["ALL"])),
    ] {
        ensure!(
            deployment.pointer(place) == Some(&wanted),
            "{place} is {:?}",
            deployment.pointer(place)
        );
    }
    let pod = &deployment["spec"]["template"]["spec"];
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let tolerations = list(&pod["tolerations"]);
    for taint in [
        "node.cloudprovider.kubernetes.io/uninitialized",
        "node.kubernetes.io/not-ready",
        "node-role.kubernetes.io/control-plane",
        "node-role.kubernetes.io/master",
    ] {
        let tolerated = |t: &Value| t["key"] == taint && t["operator"] == "Exists" && t["effect"] == "NoSchedule";
        ensure!(tolerations.iter().any(tolerated), "{taint} keeps the operator out");
    }
    let terms = list(&pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]);
    let bound = |term: &Value| {
        list(&term["matchExpressions"])
            .iter()
            .any(|e| e["key"].as_str().is_some_and(|key| key.starts_with("node-role.")))
    };
    ensure!(
        !terms.is_empty() && terms.iter().all(bound),
        "it may run elsewhere than on the control plane"
    );
    for forbidden in ["hostPath", "hostNetwork", "hostPID", "hostPort", "privileged"] {
        ensure!(!pod.to_string().contains(forbidden), "it uses {forbidden}");
    }
    let namespace = read("namespace.yaml")?;
    ensure!(
        namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted",
        "its namespace is not restricted"
    );
    Ok(())
}
