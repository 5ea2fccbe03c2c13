// SPDX-License-Identifier: Apache-2.0
//! The operator's image as OpenShift runs it: under a user of the namespace's range, with another account, and with the authorities that OpenShift
//! writes into a ConfigMap.

use crate::common::{Bed, NS, PATIENCE, condition};
use crate::fixture::alone;
use crate::matrix_source::embedded_index;
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use vdo_testbed::{Isolation, Probe, WebServer, until};

/// Of the range that OpenShift gives a namespace.
const USER: u32 = 1_000_680_000;
const ACCOUNT: &str = "an-account-of-ours";
const VDO: &str = "vdo.vmware.com/v1alpha1";

/// Waits until this condition of the connection has this status.
async fn until_trusted(bed: &Bed, status: &str) -> Result<()> {
    until(&format!("the connection to have Trusted {status}"), PATIENCE, async || {
        let connection = bed.get(VDO, "VsphereCloudConfig", NS, "vc1").await?;
        let found = condition(&connection, "Trusted");
        let current = connection["status"]["observedGeneration"] == connection["metadata"]["generation"];
        Ok(Probe::when(
            current && found["status"] == status,
            format!("{found}\n{}", bed.agent.logs()),
        ))
    })
    .await
}

/// The source of a matrix is trusted once its authority is among those that are injected, too.
async fn matrix_source(bed: &Bed) -> Result<()> {
    let server = WebServer::start().await?;
    let mut index = embedded_index()?;
    index["version"] = 7001.into();
    server.put("/index.json", index.to_string());
    bed.name_source(&server.url("/index.json")).await?;
    until("the certificate of the matrix source to be refused", PATIENCE, async || {
        let found = condition(&bed.get(VDO, "VDOConfig", NS, "vdo").await?, "MatrixFresh");
        let refused = found["status"] != "True" && found["message"].as_str().is_some_and(|said| said.contains("certificate"));
        Ok(Probe::when(refused, found))
    })
    .await?;
    bed.apply(&injected(&[bed.vcenter.ca_pem(), &server.authority().pem()])).await?;
    until("the matrix to come from its source", PATIENCE, async || {
        let config = bed.get(VDO, "VDOConfig", NS, "vdo").await?;
        let matrix = &config["status"]["matrix"];
        Ok(Probe::when(
            matrix["version"] == 7001,
            format!("{matrix} {}", condition(&config, "MatrixFresh")),
        ))
    })
    .await
}

/// The ConfigMap as OpenShift fills it.
fn injected(authorities: &[&str]) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "vdo-trusted-ca", "namespace": NS},
        "data": {"ca-bundle.crt": authorities.concat()}})
}

/// The roles are bound to the account that `--service-account` names; afterwards the one of the Deployment is known by itself.
#[test]
#[ignore = "long"]
fn operator_image_runs_as_any_user_with_any_account_and_trusts_the_injected_authorities() -> Result<()> {
    alone(async || {
        let bed = Bed::start_for_images().await?;
        bed.deploy().await?;
        bed.until_operator_pod_is_ready(0).await?;
        let (code, rights, said) = bed.vdoctl(&["rights", "--service-account", ACCOUNT, "--admission-policy"])?;
        ensure!(code == 0, "{code}: {said}");
        bed.cluster.apply_yaml(&rights).await?;
        let pod = json!({"serviceAccountName": ACCOUNT, "securityContext": {"runAsUser": USER, "runAsGroup": 0}});
        let change = json!({"spec": {"template": {"spec": pod}}});
        bed.merge("apps/v1", "Deployment", NS, "vdo-operator", change).await?;
        until("a pod of that user to be there alone", PATIENCE, async || {
            let pods = bed.list("v1", "Pod", "app.kubernetes.io/name=vdo-operator").await?;
            let alone = pods.len() == 1 && pods[0]["spec"]["securityContext"]["runAsUser"] == USER;
            Ok(Probe::when(alone, bed.agent.logs()))
        })
        .await?;
        let (pod, run) = bed.until_operator_pod_is_ready(0).await?;
        assert_eq!(pod["spec"]["serviceAccountName"], ACCOUNT);
        let container = &pod["spec"]["containers"][0]["securityContext"];
        assert_eq!(container["readOnlyRootFilesystem"], true, "{container}");
        match (bed.agent.isolation(), run.pid) {
            (Isolation::Namespaces, Some(pid)) => {
                let map = std::fs::read_to_string(format!("/proc/{pid}/uid_map"))?;
                ensure!(map.split_whitespace().next() == Some("1000680000"), "{map}");
            }
            (isolation, _) => println!("SKIPPED: needs user namespaces: the user of the operator ({isolation:?})"),
        }
        bed.apply_samples().await?;
        bed.until_ready().await?;
        let (code, lacking, said) = bed.vdoctl(&["rights", "--missing"])?;
        ensure!(code == 0 && said.contains("has all required rights"), "{code}: {lacking}{said}");
        let (code, lacking, _) = bed.vdoctl(&["rights", "--missing", "--service-account", "vdo-operator"])?;
        ensure!(
            code == 0 && lacking.contains("kind: RoleBinding") && lacking.contains("name: vdo-operator"),
            "{code}: {lacking}"
        );

        let without = json!({"spec": {"thumbprint": null}});
        bed.merge(VDO, "VsphereCloudConfig", NS, "vc1", without).await?;
        until_trusted(&bed, "False").await?;
        bed.apply(&injected(&[bed.vcenter.ca_pem()])).await?;
        until_trusted(&bed, "True").await?;
        matrix_source(&bed).await?;
        let (after, _) = bed.until_operator_pod_is_ready(0).await?;
        assert_eq!(after["metadata"]["uid"], pod["metadata"]["uid"], "it was started again");
        ensure!(bed.get("v1", "ConfigMap", NS, "vdo-trusted-ca").await?["data"] != Value::Null);
        Ok(())
    })
}
