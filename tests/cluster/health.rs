// SPDX-License-Identifier: Apache-2.0
//! Health: what the status says of drivers that fail after they worked, and of what they need, on a real control plane.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

use crate::common::{Bed, NS, PATIENCE, condition};
use crate::fixture::{INSTALLED, OPERATOR};
use anyhow::{Context, Result, ensure};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use vdo_testbed::{Probe, TROUBLE, until};

const CSI: &str = "vmware-system-csi";

async fn config(bed: &Bed) -> Result<Value> {
    bed.get("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await
}

/// Waits for a condition that `wanted` accepts.
async fn until_condition(bed: &Bed, kind: &str, wanted: impl Fn(&Value) -> bool) -> Result<Value> {
    until(&format!("the condition {kind}"), PATIENCE, async || {
        let found = condition(&config(bed).await?, kind);
        Ok(if wanted(&found) {
            Probe::Ready(found)
        } else {
            Probe::not_yet(&found)
        })
    })
    .await
}

fn says(condition: &Value, status: &str, reason: &str) -> bool {
    condition["status"] == status && condition["reason"] == reason
}

/// Wherever a reconcile ends, its status is written: for this generation, with the reason, and with what still runs.
#[test]
fn status_of_a_wrong_spec_names_reason_and_what_runs() -> Result<()> {
    INSTALLED.run(async |bed| {
        for (spec, ready, reason, stalled) in [
            (json!({"storageProvider": {"version": "9.9.9"}}), "False", "UnknownVersion", "True"),
            (json!({"storageProvider": {"version": "3.0.0"}}), "False", "IncompatiblePin", "True"),
            (
                json!({"cloudProvider": {"vsphereCloudConfigs": ["absent"]}}),
                "False",
                "ConnectionNotFound",
                "True",
            ),
            (
                json!({"storageProvider": {"values": {"controller": {"replicas": "many"}}}}),
                "False",
                "InvalidValues",
                "True",
            ),
            (json!({"storageProvider": {"clusterId": "another"}}), "False", "InvalidSpec", "True"),
        ] {
            bed.apply(&bed.config(spec.clone())).await?;
            let found = until(&format!("Ready to have the reason {reason} for {spec}"), PATIENCE, async || {
                let config = config(bed).await?;
                let current = config["status"]["observedGeneration"] == config["metadata"]["generation"];
                let said = says(&condition(&config, "Ready"), ready, reason);
                Ok(if current && said {
                    Probe::Ready(config)
                } else {
                    Probe::not_yet(condition(&config, "Ready"))
                })
            })
            .await?;
            ensure!(
                condition(&found, "Stalled")["status"] == stalled,
                "{reason}: {}",
                found["status"]["conditions"]
            );
            let drivers = found["status"]["drivers"].as_array().context("drivers")?;
            ensure!(
                !drivers.is_empty() && drivers.iter().all(|d| d["running"].is_string()),
                "{reason}: {drivers:?}"
            );
        }
        bed.apply(&bed.config(json!({}))).await?;
        bed.until_ready().await?;
        Ok(())
    })
}

#[test]
fn preconditions_of_installed_drivers_are_all_true() -> Result<()> {
    INSTALLED.run(async |bed| {
        // The test before may have changed what one of them is about.
        for kind in [
            "KubernetesSupported",
            "VSphereSupported",
            "NodesInitialized",
            "NetworkReady",
            "ControlPlaneEligible",
            "MatrixFresh",
        ] {
            until_condition(bed, kind, |found| found["status"] == "True" && found["observedGeneration"].is_i64()).await?;
        }
        Ok(())
    })
}

/// The name of the pod of the CSI controller, and that of its node.
async fn controller_pod(bed: &Bed) -> Result<(String, String)> {
    let pods = bed.list("v1", "Pod", "app=vsphere-csi-controller").await?;
    let text = |pointer: &str| anyhow::Ok(pods[0].pointer(pointer).and_then(Value::as_str).context("a name")?.to_owned());
    Ok((text("/metadata/name")?, text("/spec/nodeName")?))
}

/// The events that speak of failing pods.
async fn failing(bed: &Bed) -> Result<Vec<Value>> {
    let mut events = bed.list("events.k8s.io/v1", "Event", "").await?;
    events.retain(|event| event["reason"] == "PodsFailing");
    Ok(events)
}

fn is_in(event: &Value, known: &[Value]) -> bool {
    known.iter().any(|other| other["metadata"]["uid"] == event["metadata"]["uid"])
}

async fn crash(bed: &Bed, pod: &str) -> Result<()> {
    let change = json!({"metadata": {"annotations": {TROUBLE: "crash"}}});
    bed.merge("v1", "Pod", CSI, pod, change).await
}

#[test]
fn pod_with_crashing_container_is_named_with_termination_message() -> Result<()> {
    INSTALLED.run(async |bed| {
        // A new process, which has not yet recorded an event of this series.
        bed.kill_operator();
        bed.start_operator().await?;
        let known = failing(bed).await?;
        let name = controller_pod(bed).await?.0;
        crash(bed, &name).await?;
        let found = until_condition(bed, "StorageReady", |c| says(c, "False", "PodsFailing")).await?;
        let message = found["message"].as_str().unwrap_or_default().to_owned();
        let said = format!("pod {CSI}/{name}: container ");
        ensure!(
            message.contains(&said) && message.contains("is in CrashLoopBackOff, last exit code 1"),
            "{message}"
        );
        ensure!(
            message.contains(&format!("kubectl logs --previous -n {CSI} {name} -c ")),
            "{message}"
        );

        // The kubelet is out of reach; what a container leaves as its termination message is as good as its log.
        let mut pod = bed.get("v1", "Pod", CSI, &name).await?;
        for status in pod["status"]["containerStatuses"].as_array_mut().context("statuses")? {
            status["lastState"]["terminated"]["message"] =
                "I1121 14:00:00.000001       1 main.go:1] starting\nE1121 14:00:01.000001       1 server.go:33] cannot log in: password=hunter2 was refused, as was PASSWORD\n"
                    .replace("PASSWORD", bed.vcenter.password())
                    .into();
        }
        let change = json!({"status": {"containerStatuses": pod["status"]["containerStatuses"]}});
        bed.api("v1", "Pod", CSI)
            .patch_status(&name, &PatchParams::default(), &Patch::Merge(&change))
            .await?;
        let ready = until_condition(bed, "Ready", |c| c["message"].as_str().is_some_and(|m| m.contains("its last output: "))).await?;
        let message = ready["message"].as_str().unwrap_or_default();
        ensure!(
            message.contains("its last output: cannot log in: password=****** was refused, as was ******;"),
            "{message}"
        );
        let config = config(bed).await?;
        assert_eq!(config["status"]["health"], "Degraded");
        assert_eq!(
            condition(&config, "CloudProviderReady")["status"],
            "True",
            "the other driver is not blamed"
        );
        ensure!(config["status"]["waitingSince"].is_string(), "{}", config["status"]);
        // It goes back and forth between its words, and there is only one event.
        let events: Vec<Value> = failing(bed).await?.into_iter().filter(|e| !is_in(e, &known)).collect();
        assert_eq!(events.len(), 1, "{events:?}");

        bed.delete("v1", "Pod", CSI, &name).await?;
        until_condition(bed, "Ready", |c| says(c, "True", "Healthy")).await?;
        Ok(())
    })
}

/// Asked for through the API server, of the one container that is named, and of the run that ended. What is secret in it is not
/// repeated.
#[test]
fn log_of_crashed_container_is_read_and_quoted_masked() -> Result<()> {
    INSTALLED.run(async |bed| {
        let (name, node) = controller_pod(bed).await?;
        let password = bed.vcenter.password();
        // As klog writes it: quotes and backslashes are escaped.
        let quoted = json!(password).to_string().trim_matches('"').to_owned();
        bed.cluster.containers_say(
            "E1121 14:00:09.000001       1 server.go:33] error: this is said by the container that runs now",
            &format!(
                "I1121 14:00:00.000001       1 main.go:1] starting\n\
                 E1121 14:00:01.000001       1 server.go:33] \"cannot log in\" password=\"hunter2\" as=\"user with {quoted}\" err=\"refused\"\n\
                 I1121 14:00:02.000001       1 main.go:9] going down",
            ),
        )?;
        let addresses = bed.get("v1", "Node", "", &node).await?["status"]["addresses"].clone();
        // The cloud provider may just be writing the addresses that it knows.
        let mut kept = 0;
        until("the node to keep the address of this machine", PATIENCE, async || {
            let now = bed.get("v1", "Node", "", &node).await?["status"]["addresses"].clone();
            if now == json!([{"type": "InternalIP", "address": "127.0.0.1"}]) {
                kept += 1;
            } else {
                kept = 0;
                bed.cluster.bring_kubelet_into_reach(&node).await?;
            }
            Ok(Probe::when(kept > 10, now))
        })
        .await?;
        let mark = bed.cluster.audit().mark().await?;
        crash(bed, &name).await?;
        let mut rewritten = 0;
        let ready = until("the last output in the condition Ready", PATIENCE, async || {
            // It may do so at any time.
            let now = bed.get("v1", "Node", "", &node).await?["status"]["addresses"].clone();
            if now != json!([{"type": "InternalIP", "address": "127.0.0.1"}]) {
                rewritten += 1;
                bed.cluster.bring_kubelet_into_reach(&node).await?;
            }
            let found = condition(&config(bed).await?, "Ready");
            Ok(match found["message"].as_str().is_some_and(|message| message.contains("its last output: ")) {
                true => Probe::Ready(found),
                false => Probe::not_yet(&found),
            })
        })
        .await?;
        let message = ready["message"].as_str().unwrap_or_default();
        ensure!(
            message.contains(r#"its last output: "cannot log in" password=****** as="user with ******" err="refused";"#),
            "{message}"
        );
        let container = message
            .split("container ")
            .nth(1)
            .and_then(|rest| rest.split(' ').next())
            .context("a container")?;
        let asked = bed
            .cluster
            .audit()
            .since(mark)
            .await?
            .of(crate::common::OPERATOR)
            .only(|e| e.subresource == "log");
        // Only an address that the cloud provider has written again makes another attempt necessary.
        let (one, failed) = asked.0.split_last().context("a log that was read")?;
        ensure!(
            failed.len() <= rewritten && failed.iter().all(|failed| failed.name == name && failed.code != 200),
            "one container ended once, and {} logs were read: {asked}",
            asked.len()
        );
        ensure!(
            one.name == name && one.code == 200 && one.uri.contains(&format!("container={container}&")) && one.uri.contains("previous=true"),
            "{message}; asked was {}",
            one.uri
        );
        let (config, log) = (config(bed).await?.to_string(), std::fs::read_to_string(bed.operator_log())?);
        for secret in [password, &quoted, "hunter2"] {
            ensure!(!config.contains(secret) && !log.contains(secret), "{secret} is shown: {config}");
        }
        let change = json!({"status": {"addresses": addresses}});
        bed.api("v1", "Node", "")
            .patch_status(&node, &PatchParams::default(), &Patch::Merge(&change))
            .await?;
        bed.delete("v1", "Pod", CSI, &name).await?;
        until_condition(bed, "Ready", |c| says(c, "True", "Healthy")).await?;
        Ok(())
    })
}

/// A controller that runs stays where it is; that it could not be placed again is reported at once.
#[test]
fn controller_without_eligible_node_is_reported_while_it_runs() -> Result<()> {
    INSTALLED.run(async |bed| {
        const ROLE: &str = "node-role.kubernetes.io/control-plane";
        bed.merge("v1", "Node", "", "cp-1", json!({"metadata": {"labels": {ROLE: null}}}))
            .await?;
        let found = until_condition(bed, "ControlPlaneEligible", |c| says(c, "False", "NoEligibleNode")).await?;
        let message = found["message"].as_str().unwrap_or_default();
        ensure!(
            message.contains("vsphere-csi-controller") && message.contains("can be scheduled on 0 of 4 nodes") && message.contains(ROLE),
            "{message}"
        );
        // What runs is not called broken.
        until_condition(bed, "StorageReady", |c| c["status"] == "True").await?;
        bed.merge("v1", "Node", "", "cp-1", json!({"metadata": {"labels": {ROLE: ""}}}))
            .await?;
        until_condition(bed, "ControlPlaneEligible", |c| says(c, "True", "Healthy")).await?;
        Ok(())
    })
}

/// A node that is not simulated says of itself what a kubelet without a network plugin says. This is before there is a cloud
/// provider, which would remove a node without a machine.
#[test]
fn pod_network_that_is_not_ready_is_reported() -> Result<()> {
    OPERATOR.run(async |bed| {
        let paused = json!({"apiVersion": "vdo.vmware.com/v1alpha1", "kind": "VDOConfig", "metadata": {"name": "vdo", "namespace": NS}, "spec": {"managementState": "Paused"}});
        bed.apply(&paused).await?;
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "x-1", "labels": {"kubernetes.io/os": "linux"}}, "spec": {"providerID": "vsphere://x-1"}});
        bed.apply(&node).await?;
        let change = json!({"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": vdo_testbed::NO_NETWORK_SAYS}]}});
        bed.api("v1", "Node", "")
            .patch_status("x-1", &PatchParams::default(), &Patch::Merge(&change))
            .await?;
        let found = until_condition(bed, "NetworkReady", |c| says(c, "False", "NetworkNotReady")).await?;
        let said = found["message"].as_str().unwrap_or_default();
        ensure!(
            said.contains("1 of 5 nodes: x-1; node x-1 reports KubeletNotReady: container runtime network not ready"),
            "{said}"
        );
        bed.delete("v1", "Node", "", "x-1").await?;
        until_condition(bed, "NetworkReady", |c| says(c, "True", "Healthy")).await?;
        Ok(())
    })
}
