// SPDX-License-Identifier: Apache-2.0
//! From one version to the next through a channel: at once, when someone approves, and not while the operator says that it must not be.

use crate::common::{Bed, NS, OPERATOR, PATIENCE};
use crate::olm_bed::{Approval, OLM, OlmBed, run};
use crate::transcript::{SUBSCRIPTIONS, Transcript, VERSIONS, WORKLOADS};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use vdo_testbed::{Mark, Probe, until};

const CONDITIONS: &str = "operators.coreos.com/v2";
/// What the operator of the first version says to OLM.
const CONDITION: &str = "get operatorcondition vdo.v0.1.0 --namespace vmware-system-vdo --output custom-columns=NAME:.metadata.name,TYPE:.spec.conditions[*].type,STATUS:.spec.conditions[*].status,REASON:.spec.conditions[*].reason";

/// A field that a newer version has.
fn with_a_new_field(definition: &mut Value) {
    let schema = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["spec"]["properties"]["addedLater"] = json!({"type": "string", "description": "A field of a newer version."});
}

/// The pods of both drivers and what makes them, by UID.
pub async fn workloads(bed: &Bed) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for (api_version, kind) in [("apps/v1", "Deployment"), ("apps/v1", "DaemonSet"), ("v1", "Pod")] {
        let found = bed.list(api_version, kind, "app.kubernetes.io/name!=vdo-operator").await?;
        all.extend(
            found
                .iter()
                .map(|object| format!("{kind} {} {}", object["metadata"]["name"], object["metadata"]["uid"])),
        );
    }
    all.sort();
    Ok(all)
}

/// That the operator has written nothing since then but what it reports and what it holds.
pub async fn ensure_wrote_nothing(bed: &Bed, since: Mark) -> Result<()> {
    let writes = bed.cluster.audit().since(since).await?.of(OPERATOR).writes();
    let writes = writes.only(|entry| {
        entry.subresource != "status"
            && !matches!(entry.resource.as_str(), "events" | "leases" | "operatorconditions")
            && entry.name != "vdo-state"
    });
    ensure!(writes.is_empty(), "the operator wrote:\n{writes}");
    Ok(())
}

#[test]
fn olm_upgrade_touches_no_driver() -> Result<()> {
    run(async |world| {
        let first = world.install("0.1.0", &[NS]).await?;
        world.bed.apply_samples().await?;
        world.bed.until_ready().await?;
        let before = workloads(&world.bed).await?;
        let mark = world.bed.cluster.audit().mark().await?;
        let mut seen = Transcript::default();
        seen.say("vdo.v0.1.0 runs, and the drivers are ready.");
        for line in [VERSIONS, WORKLOADS] {
            seen.kubectl(&world.bed, line).await?;
        }

        let second = world.release("0.2.0", with_a_new_field).await?;
        world.publish(&[&first, &second]).await?;
        world.until_succeeded("0.2.0").await?;
        until("the version before to be gone", PATIENCE, async || {
            Ok(Probe::when(world.csv("0.1.0").await?.is_null(), "it is there"))
        })
        .await?;
        // The new operator leads, reads the new field, and has nothing to write but the status.
        world
            .bed
            .merge(
                "vdo.vmware.com/v1alpha1",
                "VDOConfig",
                NS,
                "vdo",
                json!({"spec": {"addedLater": "kept"}}),
            )
            .await?;
        let config = world.bed.until_ready().await?;
        assert_eq!(config["spec"]["addedLater"], "kept");
        let pod = world.bed.operator_pod().await?;
        let lease = world
            .bed
            .get("coordination.k8s.io/v1", "Lease", "kube-system", "vdo-operator")
            .await?;
        assert_eq!(lease["spec"]["holderIdentity"], pod["metadata"]["name"]);

        assert_eq!(
            workloads(&world.bed).await?,
            before,
            "pods or workloads of the drivers were replaced"
        );
        seen.say("The catalog gets vdo.v0.2.0. Since then, no pod of a driver was replaced, and no object of a driver was written.");
        for line in [SUBSCRIPTIONS, VERSIONS, WORKLOADS] {
            seen.kubectl(&world.bed, line).await?;
        }
        seen.hold("upgrade");
        ensure_wrote_nothing(&world.bed, mark).await
    })
}

/// Asks for a version of the storage driver, or for none. A pin that keeps the drivers from the next Kubernetes minor is what the operator passes on.
async fn pin(world: &OlmBed, version: Option<&str>) -> Result<()> {
    let storage = version.map_or_else(|| json!({}), |version| json!({"version": version}));
    let spec = json!({"storageProvider": storage, "cloudProvider": {}});
    world.bed.apply(&world.bed.config(spec)).await
}

#[test]
#[ignore = "long"]
fn olm_upgrade_waits_while_the_operator_is_not_upgradeable() -> Result<()> {
    run(async |world| {
        let first = world.install("0.1.0", &[NS]).await?;
        world.bed.apply(&world.bed.secret(world.bed.vcenter.password())).await?;
        world.bed.apply(&world.bed.connection("vc1")).await?;
        pin(world, Some("3.6.3")).await?;
        world.bed.until_ready().await?;
        let mut seen = Transcript::default();
        seen.say("CSI is pinned to a version that does not support the next Kubernetes minor version. The catalog gets vdo.v0.2.0.");
        let second = world.release("0.2.0", with_a_new_field).await?;
        world.publish(&[&first, &second]).await?;
        until_waiting(world, "0.2.0").await?;
        for line in [VERSIONS, CONDITION, WORKLOADS] {
            seen.kubectl(&world.bed, line).await?;
        }
        let pod = world.bed.operator_pod().await?;
        let image = pod["spec"]["containers"][0]["image"].as_str().unwrap_or_default();
        ensure!(image.ends_with(":v0.1.0"), "{image} runs");
        // The definitions are new already, and the old operator works with them: it takes the pin away.
        pin(world, None).await?;
        world.until_succeeded("0.2.0").await?;
        world.bed.until_ready().await?;
        until("the version before to be gone", PATIENCE, async || {
            Ok(Probe::when(world.csv("0.1.0").await?.is_null(), "it is there"))
        })
        .await?;
        seen.say("The pin is removed.");
        for line in [VERSIONS, SUBSCRIPTIONS] {
            seen.kubectl(&world.bed, line).await?;
        }
        seen.hold("blocked-upgrade");

        // An administrator overrules it.
        pin(world, Some("3.6.3")).await?;
        world.bed.until_reason("Upgradeable", "IncompatiblePin").await?;
        let third = world.release("0.3.0", with_a_new_field).await?;
        world.publish(&[&first, &second, &third]).await?;
        until_waiting(world, "0.3.0").await?;
        let change = json!({"spec": {"overrides": [{"type": "Upgradeable", "status": "True", "reason": "Overruled", "message": "by the administrator"}]}});
        world.bed.merge(CONDITIONS, "OperatorCondition", NS, "vdo.v0.2.0", change).await?;
        world.until_succeeded("0.3.0").await.map(|_| ())
    })
}

/// Waits until a version is there and OLM says that the one before it is not upgradeable, and why.
async fn until_waiting(world: &OlmBed, version: &str) -> Result<()> {
    let pending = until(&format!("vdo.v{version} to wait"), PATIENCE, async || {
        let csv = world.csv(version).await?;
        let waits = csv["status"]["reason"] == "OperatorConditionNotUpgradeable";
        Ok(if waits { Probe::Ready(csv) } else { Probe::not_yet(&csv["status"]) })
    })
    .await?;
    assert_eq!(pending["status"]["phase"], "Pending");
    let message = pending["status"]["message"].to_string();
    ensure!(message.contains("CSI is pinned to 3.6.3"), "{message}");
    Ok(())
}

#[test]
#[ignore = "long"]
fn olm_manual_approval_keeps_both_versions_waiting_until_it_is_given() -> Result<()> {
    run(async |world| {
        let first = world.release("0.1.0", |_| ()).await?;
        world.publish(&[&first]).await?;
        world.apply_prerequisites().await?;
        world.group("vdo", &[NS]).await?;
        world.subscribe(Approval::Manual).await?;
        approve(world, "0.1.0").await?;
        world.until_succeeded("0.1.0").await?;
        let second = world.release("0.2.0", |_| ()).await?;
        world.publish(&[&first, &second]).await?;
        approve(world, "0.2.0").await?;
        // What is killed in the middle of an upgrade goes on where it was.
        world.olm.kill();
        world.olm.start_operators(&world.bed.cluster).await?;
        // The Subscription may go on to name the former one: OLM writes that name only together with another state of the Subscription, and the
        // crash may have come between the two.
        world.until_succeeded("0.2.0").await?;
        Ok(())
    })
}

/// Approves the InstallPlan for a version, of which nothing is there before.
async fn approve(world: &OlmBed, version: &str) -> Result<()> {
    let plan = world.until_plan("RequiresApproval").await?;
    assert_eq!(plan["spec"]["clusterServiceVersionNames"], json!([format!("vdo.v{version}")]));
    ensure!(world.csv(version).await?.is_null(), "vdo.v{version} is there without approval");
    let name = plan["metadata"]["name"].as_str().context("a name")?;
    world
        .bed
        .merge(OLM, "InstallPlan", NS, name, json!({"spec": {"approved": true}}))
        .await
}
