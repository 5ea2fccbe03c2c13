// SPDX-License-Identifier: Apache-2.0
//! Patches of the specification: what no value reaches.

use crate::common::{Bed, NS, PATIENCE, condition};
use crate::fixture::INSTALLED;
use crate::matrix_web::until_driver;
use crate::page::open;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use vdo_testbed::{Probe, until};

const CSI: &str = "vmware-system-csi";
const VDO: &str = "vdo.vmware.com/v1alpha1";
const CONTROLLER: &str = "vsphere-csi-controller";

async fn controller(bed: &Bed) -> Result<Value> {
    bed.get("apps/v1", "Deployment", CSI, CONTROLLER).await
}

/// The driver's container in the controller, with its place.
fn driver(controller: &Value) -> Result<(usize, &Value)> {
    let containers = controller["spec"]["template"]["spec"]["containers"]
        .as_array()
        .context("containers")?;
    let found = containers.iter().enumerate().find(|(_, one)| one["name"] == CONTROLLER);
    found.context("no container of the driver")
}

/// The value of the variable that the patches of these tests add.
fn variable(controller: &Value) -> Result<Value> {
    let (_, driver) = driver(controller)?;
    let all = driver["env"].as_array().context("variables")?;
    let found = all.iter().find(|variable| variable["name"] == "PATCHED");
    Ok(found.map(|variable| variable["value"].clone()).unwrap_or_default())
}

fn target() -> Value {
    json!({"driver": "vsphere-csi", "kind": "Deployment", "name": CONTROLLER})
}

fn merge(part: Value) -> Value {
    json!({"target": target(), "strategicMerge": part})
}

/// A merge into the driver's container.
fn of_driver(mut part: Value) -> Value {
    part["name"] = CONTROLLER.into();
    merge(json!({"spec": {"template": {"spec": {"containers": [part]}}}}))
}

fn config(bed: &Bed, version: &str, patches: Value) -> Value {
    bed.config(json!({"cloudProvider": {}, "storageProvider": {"version": version}, "patches": patches}))
}

async fn until_variable(bed: &Bed, value: &Value) -> Result<()> {
    until(&format!("the variable to be {value}"), PATIENCE, async || {
        let found = variable(&controller(bed).await?)?;
        Ok(Probe::when(found == *value, found))
    })
    .await
}

/// Waits until the newest specification is refused with these words, and the driver is as before.
async fn refused(bed: &Bed, patches: Value, words: &str, before: &Value) -> Result<()> {
    bed.merge(VDO, "VDOConfig", NS, "vdo", json!({"spec": {"patches": patches}}))
        .await?;
    until(&format!("Ready to say {words:?}"), PATIENCE, async || {
        let config = bed.get(VDO, "VDOConfig", NS, "vdo").await?;
        let ready = condition(&config, "Ready");
        let current = config["status"]["observedGeneration"] == config["metadata"]["generation"];
        let message = ready["message"].as_str().unwrap_or_default();
        Ok(Probe::when(
            current && ready["status"] == "False" && message.contains(words),
            &ready,
        ))
    })
    .await?;
    let now = controller(bed).await?["spec"].clone();
    ensure!(now == *before, "{words}: it was changed: {now}");
    Ok(())
}

/// A preview, the plan, the objects and the live object show a patch; an upgrade keeps it.
#[test]
#[ignore = "long"]
fn patch_is_shown_with_its_origin_and_kept_over_an_upgrade() -> Result<()> {
    INSTALLED.run(async |bed| {
        bed.apply(&config(bed, "3.6.3", json!([]))).await?;
        until_driver(bed, "3.6.3").await?;
        bed.until_ready().await?;
        let patches = json!([of_driver(
            json!({"env": [{"name": "PATCHED", "value": "yes"}], "livenessProbe": {"timeoutSeconds": 31}})
        )]);
        let file = bed.cluster.dir().join("patched.yaml");
        std::fs::write(&file, config(bed, "3.6.3", patches.clone()).to_string())?;
        let (code, shown, said) = bed.vdoctl(&["diff", "-f", &file.display().to_string()])?;
        ensure!(
            code == 1 && shown.contains("patched by spec.patches[0]") && shown.contains("PATCHED") && !shown.contains("refused"),
            "{code} {shown} {said}"
        );
        ensure!(variable(&controller(bed).await?)?.is_null(), "a preview changed something");

        bed.apply(&config(bed, "3.6.3", patches.clone())).await?;
        until_variable(bed, &json!("yes")).await?;
        bed.until_ready().await?;
        let (code, shown, said) = bed.vdoctl(&["plan", "-o", "json"])?;
        ensure!(code == 0, "{code} {said}");
        let plan: Value = serde_json::from_str(&shown)?;
        for item in plan["objects"].as_array().context("objects")? {
            let ours = item["object"]["kind"] == "Deployment" && item["object"]["name"] == CONTROLLER;
            let expected = if ours { json!(["spec.patches[0]"]) } else { json!([]) };
            ensure!(item["patchedBy"] == expected, "{item}");
        }
        let (_, rendered, _) = bed.vdoctl(&["render"])?;
        ensure!(rendered.contains("PATCHED"), "{rendered}");
        let (_, history, _) = bed.vdoctl(&["history", "csi"])?;
        ensure!(history.contains("patches changed"), "{history}");

        bed.apply(&config(bed, "3.8.0", patches)).await?;
        until_driver(bed, "3.8.0").await?;
        bed.until_ready().await?;
        let live = controller(bed).await?;
        let (_, container) = driver(&live)?;
        ensure!(
            variable(&live)? == "yes" && container["livenessProbe"]["timeoutSeconds"] == 31,
            "{container}"
        );
        bed.apply(&config(bed, "3.8.0", json!([]))).await?;
        until_variable(bed, &Value::Null).await?;
        bed.until_ready().await?;
        Ok(())
    })
}

/// What the new version does not have holds it back: the version that runs stays, and is repaired with its patch.
#[test]
#[ignore = "long"]
fn patch_that_no_longer_applies_keeps_the_version_that_runs() -> Result<()> {
    INSTALLED.run(async |bed| {
        bed.apply(&config(bed, "3.6.3", json!([]))).await?;
        until_driver(bed, "3.6.3").await?;
        let live = controller(bed).await?;
        let (place, container) = driver(&live)?;
        let image = container["image"].clone();
        let pointer = format!("/spec/template/spec/containers/{place}");
        let patches = json!([{"target": target(), "jsonPatch": [
            {"op": "test", "path": format!("{pointer}/image"), "value": image},
            {"op": "add", "path": format!("{pointer}/env/-"), "value": {"name": "PATCHED", "value": "old"}},
        ]}]);
        bed.apply(&config(bed, "3.6.3", patches.clone())).await?;
        until_variable(bed, &json!("old")).await?;
        bed.until_ready().await?;

        bed.apply(&config(bed, "3.8.0", patches)).await?;
        let found = bed.until_reason("Ready", "PatchNotApplicable").await?;
        let message = found["message"].as_str().unwrap_or_default();
        let expected = format!(
            "spec.patches[0] does not apply to Deployment {CSI}/{CONTROLLER}: jsonPatch[0]: \
             the value at {pointer}/image differs from the value of the operation test"
        );
        ensure!(
            message.contains(&expected) && message.contains("kubectl edit vdoconfigs --namespace"),
            "{message}"
        );
        let (code, _, said) = bed.vdoctl(&["plan"])?;
        ensure!(code == 4 && said.contains("spec.patches[0]"), "{code} {said}");
        let (code, _, said) = bed.vdoctl(&["wait", "--timeout", "2m"])?;
        ensure!(code == 7 && said.contains("spec.patches[0]"), "{code} {said}");
        let mut changed = controller(bed).await?["spec"]["template"]["spec"]["containers"].clone();
        ensure!(changed[place]["image"] == image, "it was upgraded: {}", changed[place]);
        changed[place]["env"].as_array_mut().context("variables")?.pop();
        let change = json!({"spec": {"template": {"spec": {"containers": changed}}}});
        bed.merge("apps/v1", "Deployment", CSI, CONTROLLER, change).await?;
        until_variable(bed, &json!("old")).await?;

        let corrected = json!([of_driver(json!({"env": [{"name": "PATCHED", "value": "new"}]}))]);
        bed.apply(&config(bed, "3.8.0", corrected)).await?;
        until_driver(bed, "3.8.0").await?;
        until_variable(bed, &json!("new")).await?;
        bed.until_ready().await?;
        Ok(())
    })
}

/// Each is refused with its place, and what runs is not touched.
#[test]
#[ignore = "long"]
fn patches_that_are_wrong_change_nothing() -> Result<()> {
    INSTALLED.run(async |bed| {
        bed.until_ready().await?;
        let before = controller(bed).await?["spec"].clone();
        let pod = |part: Value| merge(json!({"spec": {"template": {"spec": part}}}));
        let remove = |path: &str| json!({"target": target(), "jsonPatch": [{"op": "remove", "path": path}]});
        let gone = json!({"target": {"driver": "vsphere-csi", "kind": "Deployment", "name": "gone*"}, "strategicMerge": {"spec": {}}});
        let other = json!({"target": {"driver": "antrea", "kind": "Deployment"}, "strategicMerge": {"spec": {"replicas": 1}}});
        let constraint =
            json!({"topologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": 0, "whenUnsatisfiable": "DoNotSchedule"}]});
        for (patches, words) in [
            (
                json!([remove("/metadata/labels/app.kubernetes.io~1managed-by")]),
                "app.kubernetes.io/managed-by is set only by the operator",
            ),
            (
                json!([of_driver(json!({"$patch": "delete"}))]),
                "container vsphere-csi-controller of the chart would be removed",
            ),
            (
                json!([merge(json!({"spec": {"replicas": 2}})), merge(json!({"spec": {"replicas": 1}}))]),
                "spec.patches[0] writes another value to spec.replicas",
            ),
            (json!([gone]), "the chart has no Deployment gone*"),
            (
                json!([other]),
                "spec.patches[0] does not apply to antrea: the VDOConfig requests no driver of this name",
            ),
            (json!([remove("/spec/none")]), "jsonPatch[0]: there is no /spec/none"),
            // The API server drops the null of such a request.
            (json!([pod(json!({"dnsConfig": null}))]), "strategicMerge writes no field"),
            (
                json!([pod(json!({"priorityClassName": "other"}))]),
                "the admission policy does not allow the result: spec.template.spec.priorityClassName",
            ),
            (
                json!([pod(json!({"hostNetwork": true}))]),
                "the admission policy does not allow the result: spec.template.spec.hostNetwork",
            ),
            // The policy allows it, and the API server does not.
            (
                json!([pod(constraint)]),
                "spec.patches[0] changes Deployment vmware-system-csi/vsphere-csi-controller",
            ),
        ] {
            refused(bed, patches, words, &before).await?;
        }
        bed.merge(VDO, "VDOConfig", NS, "vdo", json!({"spec": {"patches": null}})).await?;
        bed.until_ready().await?;
        for (patch, words) in [
            (json!({"target": target()}), "write either jsonPatch or strategicMerge"),
            (json!({"target": target(), "jsonPatch": []}), "spec.patches[0].jsonPatch"),
            (
                json!({"target": {"driver": "vsphere-csi"}, "strategicMerge": {}}),
                "spec.patches[0].target.kind",
            ),
            (
                json!({"target": target(), "jsonPatch": [{"op": "drop", "path": "/spec"}]}),
                "spec.patches[0].jsonPatch[0].op",
            ),
            (
                json!({"target": target(), "jsonPatch": [{"op": "move", "path": "/spec"}]}),
                "from is required for move and copy",
            ),
            (
                json!({"target": target(), "jsonPatch": [{"op": "remove", "path": "spec"}]}),
                "spec.patches[0].jsonPatch[0].path",
            ),
        ] {
            let object = bed.config(json!({"patches": [patch]}));
            let error = bed.apply(&object).await.err().with_context(|| format!("{object} was accepted"))?;
            ensure!(format!("{error:#}").contains(words), "{words:?} is not in {error:#}");
        }
        let many = bed.config(json!({"patches": vec![remove("/spec/none"); 65]}));
        ensure!(bed.apply(&many).await.is_err(), "65 patches were accepted");
        Ok(())
    })
}

#[test]
#[ignore = "long"]
fn page_patches_works_as_written() -> Result<()> {
    INSTALLED.run(async |bed| {
        open(bed, "patches.md")?.run_all()?;
        bed.until_ready().await?;
        let live = controller(bed).await?;
        let (_, container) = driver(&live)?;
        ensure!(
            container["livenessProbe"]["timeoutSeconds"] != 30,
            "the patch is still there: {container}"
        );
        Ok(())
    })
}
