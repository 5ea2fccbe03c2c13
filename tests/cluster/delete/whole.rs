// SPDX-License-Identifier: Apache-2.0
//! From an installation to nothing, and to drivers without an operator.

use super::{CSI_NS, VDO, delete, ensure_nothing_is_left, ensure_says, install, is_there};
use crate::common::interrupt::interrupted;
use crate::common::{Bed, NS, PATIENCE};
use crate::deploy::{Deploy, administrator, operate};
use crate::fixture::BARE;
use anyhow::{Context, Result, ensure};
use kube::api::{Api, DynamicObject, ListParams};
use kube::discovery::{Discovery, verbs};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use vdo_testbed::{Act, Launch, Probe, until};

/// What Kubernetes, the nodes and the drivers keep or change by themselves, and why it is not compared.
const EXCEPTIONS: [(&str, &str); 6] = [
    // They say what happened.
    ("Event", ""),
    // Their holders write them: the kubelets, the API server, the sidecars of the drivers.
    ("Lease", ""),
    // The cloud provider has initialised them.
    ("Node", ""),
    // The kubelet writes them when a CSI driver registers.
    ("CSINode", ""),
    // Of the API server itself: its address.
    ("EndpointSlice", ""),
    // The controller manager fills it by and by.
    ("ClusterRole", "system:aggregate"),
];

/// Every object of every kind that the cluster serves, without what differs between two instances of the same content.
async fn everything(bed: &Bed) -> Result<BTreeMap<String, Value>> {
    let client = bed.cluster.client();
    let served = Discovery::new(client.clone()).run().await?;
    let mut all = BTreeMap::new();
    for (kind, can) in served.groups().flat_map(|group| group.recommended_resources()) {
        if !can.supports_operation(verbs::LIST) {
            continue;
        }
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
        let found = match api.list(&ListParams::default()).await {
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 405) => continue,
            found => found.with_context(|| kind.kind.clone())?,
        };
        for object in found {
            let mut value = serde_json::to_value(&object)?;
            let name = object.metadata.name.clone().unwrap_or_default();
            if EXCEPTIONS
                .iter()
                .any(|(excepted, prefix)| *excepted == kind.kind && name.starts_with(prefix))
            {
                continue;
            }
            value.as_object_mut().context("an object")?.shift_remove("status");
            let metadata = value["metadata"].as_object_mut().context("metadata")?;
            for field in ["uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"] {
                metadata.shift_remove(field);
            }
            let place = object.metadata.namespace.clone().unwrap_or_default();
            all.insert(format!("{} {} {place}/{name}", kind.api_version, kind.kind), value);
        }
    }
    Ok(all)
}

fn ensure_same(before: &BTreeMap<String, Value>, after: &BTreeMap<String, Value>) -> Result<()> {
    let left: Vec<&String> = after.keys().filter(|key| !before.contains_key(*key)).collect();
    let lost: Vec<&String> = before.keys().filter(|key| !after.contains_key(*key)).collect();
    let changed: Vec<String> = before
        .iter()
        .filter_map(|(key, old)| {
            let new = after.get(key)?;
            (new != old).then(|| format!("{key}:\n  {old}\n  {new}"))
        })
        .collect();
    ensure!(left.is_empty(), "left behind: {left:?}");
    ensure!(lost.is_empty(), "lost: {lost:?}");
    ensure!(changed.is_empty(), "changed:\n{}", changed.join("\n"));
    println!("{} objects are as before", before.len());
    Ok(())
}

/// What an administrator of OLM has applied, so that nothing removes the operator too early.
fn removal_guard() -> Result<Vec<Value>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("bundle/prerequisites.yaml");
    let mut all = vdo_api::yaml::load_all(&std::fs::read_to_string(file)?)?;
    all.retain(|object| object["metadata"]["name"] == "vdo-removal");
    ensure!(all.len() == 2, "{all:?}");
    Ok(all)
}

/// All objects of all kinds before the installation and after the deletion.
#[test]
#[ignore = "long"]
fn delete_after_install_leaves_every_object_as_before() -> Result<()> {
    BARE.run(async |bed| {
        let before = everything(bed).await?;
        install(bed).await?;
        for object in removal_guard()? {
            bed.apply(&object).await?;
        }
        ensure!(everything(bed).await?.len() > before.len() + 40, "nothing was installed");
        let (code, out, err) = delete(bed, &["--yes"])?;
        ensure!(code == 0, "{code}");
        ensure_says(
            &out,
            &[
                "deleted VDOConfig vmware-system-vdo/vdo",
                "deleted CustomResourceDefinition compatibilityconfigs",
                "Interrupting is safe",
            ],
        )?;
        ensure_says(&err, &["VDO is removed"])?;
        ensure!(
            !out.contains("vdoctl removes the drivers itself"),
            "the operator was not asked:\n{out}"
        );
        ensure!(!err.contains("stays"), "{err}");
        ensure_nothing_is_left(bed).await?;
        ensure_same(&before, &everything(bed).await?)?;
        let (code, _, err) = delete(bed, &[])?;
        ensure!(code == 0 && err.contains("there is nothing to remove"), "{code} {err}");
        Ok(())
    })
}

/// A role and a binding of others bear the names of a driver's: the others keep every right while VDO is there, and get back what they had.
#[test]
#[ignore = "long"]
fn delete_gives_a_shared_role_back_as_it_was() -> Result<()> {
    const RBAC: &str = "rbac.authorization.k8s.io/v1";
    const ROLE: &str = "vsphere-csi-controller-role";
    BARE.run(async |bed| {
        let rules = json!([{"apiGroups": ["shop.example.com"], "resources": ["orders"], "verbs": ["list", "get"]},
            {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}]);
        bed.apply(&json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "shop", "namespace": "default"}}))
            .await?;
        bed.apply(&json!({"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": ROLE}, "rules": rules}))
            .await?;
        for name in ["shop", "vsphere-csi-controller-binding"] {
            bed.apply(
                &json!({"apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": {"name": name},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ROLE},
                "subjects": [{"kind": "ServiceAccount", "name": "shop", "namespace": "default"}]}),
            )
            .await?;
        }
        let before = everything(bed).await?;
        let deploy = Deploy::to(bed)?;
        let written = async || {
            let output = deploy.run(bed, &["--no-wait"])?;
            ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Ok(bed.get(RBAC, "ClusterRole", "", ROLE).await?["rules"].clone())
        };
        let all = written().await?;
        let is_kept = |rule: &Value| all.as_array().is_some_and(|all| all.contains(rule));
        ensure!(
            rules.as_array().context("rules")?.iter().all(is_kept),
            "the others lost a right: {all}"
        );
        ensure!(written().await? == all, "the second deployment changed the role");
        operate(bed).await?;
        // The operator finds the rights of its drivers in the role.
        bed.until_ready().await?;
        let (code, _, err) = delete(bed, &["--yes"])?;
        ensure!(code == 0, "{code}");
        ensure_says(&err, &[ROLE, "stays"])?;
        ensure_same(&before, &everything(bed).await?)
    })
}

/// The UID and the pods' template of a driver.
async fn running(bed: &Bed) -> Result<(String, String)> {
    let found = bed.get("apps/v1", "Deployment", CSI_NS, "vsphere-csi-controller").await?;
    Ok((found["metadata"]["uid"].to_string(), found["spec"]["template"].to_string()))
}

/// The credentials are the user's own, and keep their namespace. The drivers keep what they need, and run on as they are.
#[test]
#[ignore = "long"]
fn delete_keep_drivers_leaves_them_running_with_their_rights() -> Result<()> {
    BARE.run(async |bed| {
        install(bed).await?;
        bed.merge("v1", "Secret", NS, "vc1-credentials", json!({"metadata": {"labels": null}}))
            .await?;
        let (before, owned) = (running(bed).await?, bed.owned().await?);
        ensure!(!owned.is_empty(), "nothing is installed");
        let (code, _, err) = delete(bed, &["--yes", "--keep-drivers"])?;
        ensure!(code == 0, "{code}");
        ensure_says(
            &err,
            &[
                "Namespace vmware-system-vdo stays: it contains Secret vc1-credentials",
                "install VDO and create a VDOConfig",
            ],
        )?;
        ensure!(running(bed).await? == before, "the driver was touched");
        for object in &owned {
            let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
            let (kind, place, name) = (text("/kind"), text("/metadata/namespace"), text("/metadata/name"));
            ensure!(
                is_there(bed, &text("/apiVersion"), &kind, &place, &name).await?,
                "{kind} {place}/{name} is gone"
            );
        }
        for (kind, name) in [
            ("ClusterRole", "vsphere-csi-controller-role"),
            ("ClusterRoleBinding", "vsphere-csi-controller-binding"),
        ] {
            ensure!(
                is_there(bed, "rbac.authorization.k8s.io/v1", kind, "", name).await?,
                "{kind} {name} is gone"
            );
        }
        ensure!(
            !is_there(bed, "rbac.authorization.k8s.io/v1", "ClusterRole", "", "vdo-operator").await?,
            "a role is left"
        );
        ensure!(
            !is_there(bed, super::CRD, "CustomResourceDefinition", "", "vdoconfigs.vdo.vmware.com").await?,
            "a definition is left"
        );
        ensure!(
            is_there(bed, "v1", "Secret", NS, "vc1-credentials").await?,
            "the user's Secret is gone"
        );
        // Taken over again, as they run.
        bed.kill_operator();
        install(bed).await?;
        ensure!(running(bed).await?.0 == before.0, "recreated");
        Ok(())
    })
}

/// Killed before its k-th write; the next run goes on, and the end is the same.
#[test]
#[ignore = "long"]
fn delete_killed_at_any_write_is_finished_by_the_next() -> Result<()> {
    BARE.run(async |bed| {
        let (proxy, through) = administrator(bed).await?;
        install(bed).await?;
        bed.kill_operator();
        // Without an operator every write is this process's own. Each run is killed a few writes after the last one's end.
        let mut kills = 0;
        const LAST: usize = 14;
        for write in [1, 3, 8, LAST] {
            proxy.begin(move |call| if call.write == Some(write) { Act::StopBefore } else { Act::Pass });
            let log = bed.cluster.dir().join(format!("delete-{kills}.log"));
            let mut vdoctl = Launch::new("vdoctl", vdo_testbed::vdoctl(), &log)
                .arg("delete")
                .arg("--yes")
                .arg("--kubeconfig")
                .arg(&through)
                .spawn()?;
            let stopped = until("vdoctl to be stopped or to end", PATIENCE, async || {
                let ended = vdoctl.exited().is_some();
                Ok(match (proxy.is_stopped(), ended) {
                    (true, _) => Probe::Ready(true),
                    (_, true) => Probe::Ready(false),
                    _ => Probe::not_yet(format!("{} writes; log {}", proxy.writes(), log.display())),
                })
            })
            .await?;
            vdoctl.kill();
            proxy.resume();
            if !stopped {
                break;
            }
            kills += 1;
            if write < LAST {
                // The Lease of a killed vdoctl expires after 15 s; the last one is waited for.
                bed.delete("coordination.k8s.io/v1", "Lease", "kube-system", "vdo-operator").await?;
            }
        }
        ensure!(kills >= 3, "only {kills} runs were killed");
        println!("killed {kills} times");
        let (code, _, _) = delete(bed, &["--yes"])?;
        ensure!(code == 0, "{code}");
        ensure_nothing_is_left(bed).await?;
        ensure!(!is_there(bed, VDO, "VDOConfig", NS, "vdo").await?, "the VDOConfig is left");
        Ok(())
    })
}

/// Ctrl-C in the middle: the command ends after the write that it makes, says how to continue, and leaves no Lease that the next one waits for.
#[test]
#[ignore = "long"]
fn delete_interrupted_says_how_to_continue_and_releases_its_lease() -> Result<()> {
    BARE.run(async |bed| {
        const HELD: usize = 5;
        let (proxy, through) = administrator(bed).await?;
        install(bed).await?;
        bed.kill_operator();
        let mut command = Command::new(vdo_testbed::vdoctl());
        let output = interrupted(&proxy, Some(HELD), command.args(["delete", "--yes", "--kubeconfig"]).arg(&through)).await?;
        let said = String::from_utf8(output.stderr)?;
        ensure!(output.status.code() == Some(130), "{}: {said}", output.status);
        ensure_says(&said, &["interrupted: not everything is removed yet", "Run the same command again"])?;
        ensure!(is_there(bed, VDO, "VDOConfig", NS, "vdo").await?, "the VDOConfig is gone: {said}");
        let lease = bed.get("coordination.k8s.io/v1", "Lease", "kube-system", "vdo-operator").await?;
        ensure!(lease["spec"]["holderIdentity"].as_str().unwrap_or_default().is_empty(), "{lease}");
        let (code, _, _) = delete(bed, &["--yes"])?;
        ensure!(code == 0, "{code}");
        ensure_nothing_is_left(bed).await
    })
}

/// Another installer has bindings of the same names. Its accounts keep their rights meanwhile, and afterwards the bindings are as they were.
#[test]
#[ignore = "long"]
fn delete_hands_bindings_of_others_back_as_they_were() -> Result<()> {
    const RBAC: &str = "rbac.authorization.k8s.io";
    const READER: &str = "servicecatalog.k8s.io:apiserver-authentication-reader";
    const CONTROLLER: &str = "vsphere-csi-controller-binding";
    BARE.run(async |bed| {
        let account = |name: &str| json!({"kind": "ServiceAccount", "namespace": "kube-system", "name": name});
        let theirs = [
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "their-csi", "namespace": "kube-system"}}),
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "their-cpi", "namespace": "kube-system"}}),
            json!({"apiVersion": format!("{RBAC}/v1"), "kind": "RoleBinding", "metadata": {"name": READER, "namespace": "kube-system"},
                "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "extension-apiserver-authentication-reader"},
                "subjects": [account("their-cpi")]}),
            json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": CONTROLLER},
                "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "vsphere-csi-controller-role"},
                "subjects": [account("their-csi"), account("not-yet")]}),
        ];
        for object in &theirs {
            bed.apply(object).await?;
        }
        let subjects = async |bed: &Bed| -> Result<[Value; 2]> {
            let rbac = format!("{RBAC}/v1");
            let reader = bed.get(&rbac, "RoleBinding", "kube-system", READER).await?["subjects"].clone();
            Ok([
                reader,
                bed.get(&rbac, "ClusterRoleBinding", "", CONTROLLER).await?["subjects"].clone(),
            ])
        };
        let before = subjects(bed).await?;
        let output = Deploy::to(bed)?.run(bed, &["--no-wait"])?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let during = subjects(bed).await?;
        for (place, ours) in ["cloud-controller-manager", "vsphere-csi-controller"].into_iter().enumerate() {
            ensure!(
                during[place].to_string().contains(ours) && during[place].to_string().contains("their-"),
                "{ours}: {}",
                during[place]
            );
        }
        let (code, _, err) = delete(bed, &["--yes"])?;
        ensure!(code == 0, "{code} {err}");
        // A user is no account that is gone with the driver.
        let after = subjects(bed).await?.map(|mut subjects| {
            if let Some(all) = subjects.as_array_mut() {
                all.retain(|subject| subject["kind"] == "ServiceAccount");
                all.iter_mut()
                    .for_each(|subject| *subject = account(subject["name"].as_str().unwrap_or_default()));
            }
            subjects
        });
        ensure!(after == before, "{before:?}\n{after:?}");
        for object in theirs.iter().rev() {
            let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            bed.delete(
                text("/apiVersion"),
                text("/kind"),
                text("/metadata/namespace"),
                text("/metadata/name"),
            )
            .await?;
        }
        bed.delete(&format!("{RBAC}/v1"), "ClusterRole", "", "vsphere-csi-controller-role")
            .await
    })
}

/// What does not come to its end is named, and a second run ends it.
#[test]
#[ignore = "long"]
fn delete_past_timeout_names_what_it_waited_for() -> Result<()> {
    BARE.run(async |bed| {
        install(bed).await?;
        let hold = |finalizers: Value| json!({"metadata": {"finalizers": finalizers}});
        let (kind, object) = ("Deployment", "vsphere-csi-controller");
        bed.merge("apps/v1", kind, CSI_NS, object, hold(json!(["example.com/keeper"])))
            .await?;
        let (code, _, err) = delete(bed, &["--yes", "--timeout", "8s"])?;
        ensure!(code == 7, "{code}");
        ensure_says(&err, &["within 8 s", "it waited for", "Run vdoctl delete again"])?;
        bed.merge("apps/v1", kind, CSI_NS, object, hold(Value::Null)).await?;
        let (code, _, _) = delete(bed, &["--yes"])?;
        ensure!(code == 0, "{code}");
        tokio::time::timeout(Duration::from_secs(5), ensure_nothing_is_left(bed)).await?
    })
}
