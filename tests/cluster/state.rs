// SPDX-License-Identifier: Apache-2.0
//! What the operator acts upon is what operators and administrators wrote: a ConfigMap that someone else makes changes nothing, and another
//! cluster id waits for a person.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use crate::common::{Bed, NS, PATIENCE, condition};
use crate::fixture::INSTALLED;
use crate::install::until_at_rest;
use crate::matrix_config_maps::Folder;
use crate::matrix_source::look;
use crate::matrix_web::{CHART, leaked, release, until_driver, until_refused, until_version};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use vdo_api::api::{CLUSTER_ANNOTATION, STATE};
use vdo_core::manifest::Object;
use vdo_core::plan::{Inventory, Outcome, PackedObjects, RevisionFailure, Stored};
use vdo_testbed::{Probe, until};

const VDO: &str = "vdo.vmware.com/v1alpha1";
const CSI: &str = "vsphere-csi";
const CSI_NS: &str = "vmware-system-csi";
/// Where operators before this one kept their state.
const FORMER: &str = "vdo-inventory";
const EVIL: &str = "registry.example/evil@sha256:0000000000000000000000000000000000000000000000000000000000000000";

/// Waits until the operator has looked at everything twice more: at what was changed, and at what that led to.
async fn until_looked(bed: &Bed, token: &str) -> Result<()> {
    for round in ["first", "second"] {
        let before = bed.reconciles().await?;
        look(bed, &format!("{token}-{round}")).await?;
        until("the operator to have looked", PATIENCE, async || {
            let now = bed.reconciles().await?;
            Ok(Probe::when(now > before, format!("{now} reconciles")))
        })
        .await?;
    }
    Ok(())
}

/// The state as it is stored.
async fn stored(bed: &Bed) -> Result<Stored> {
    let secret = bed.state().await?;
    Ok(Stored {
        data: serde_json::from_value(secret["data"].clone())?,
        binary: serde_json::from_value(secret["binaryData"].clone()).unwrap_or_default(),
    })
}

/// The same with a history that says: what runs failed, and what ran before has this image. And with an approval and a cluster id.
fn forged(stored: &Stored) -> Result<Stored> {
    let mut inventory = Inventory::parse("state", stored)?;
    inventory.approved = Some("forged".into());
    inventory.cluster_id = Some("forged".into());
    inventory.matrix = None;
    let revisions = inventory.history.get_mut(CSI).context("a history")?;
    let newest = revisions.last().context("a revision")?.clone();
    let mut objects = newest.objects.objects();
    for object in objects.iter_mut().filter(|object| object.pod_spec().is_some()) {
        let mut value = object.value().clone();
        for container in value["spec"]["template"]["spec"]["containers"].as_array_mut().into_iter().flatten() {
            container["image"] = EVIL.into();
        }
        *object = Object::new(value)?;
    }
    let mut good = newest.clone();
    good.outcome = Outcome::Deployed;
    good.deployed = Some(good.time);
    good.objects = PackedObjects::of(objects.iter());
    let mut failed = newest;
    failed.number = good.number + 1;
    failed.outcome = Outcome::Failed;
    failed.failure = Some(RevisionFailure {
        reason: "DeadlineExceeded".into(),
        message: "forged".into(),
        basis: "forged".into(),
    });
    *revisions = vec![good, failed];
    Ok(inventory.stored())
}

/// As an operator before this one stored it.
async fn make_former(bed: &Bed, stored: &Stored) -> Result<()> {
    let set = bed.get("v1", "Secret", NS, STATE).await?["metadata"]["labels"]["applyset.kubernetes.io/id"].clone();
    let set = match set {
        Value::Null => Value::from(vdo_core::manifest::apply_set_id(FORMER, NS)),
        set => set,
    };
    let labels = json!({"app.kubernetes.io/managed-by": "vdo", "applyset.kubernetes.io/id": set});
    bed.make_map(FORMER, json!({"labels": labels, "data": stored.data, "binaryData": stored.binary}))
        .await
}

async fn configuration(bed: &Bed) -> Result<Value> {
    Ok(bed.get("v1", "Secret", CSI_NS, "vsphere-config-secret").await?["data"].clone())
}

async fn ensure_nothing_changed(bed: &Bed, before: &[Value], what: &str) -> Result<()> {
    let now = bed.owned().await?;
    ensure!(now == before, "{what} changed what runs");
    ensure!(!json!(now).to_string().contains("evil"), "{what} chose an image");
    Ok(())
}

/// A history that says that what runs has failed, beside the Secret and with it lost.
#[test]
fn state_forged_in_a_config_map_changes_nothing() -> Result<()> {
    INSTALLED.run(async |bed| {
        until_at_rest(bed).await?;
        let (before, real) = (bed.owned().await?, stored(bed).await?);
        let (id, configured) = (bed.status().await?["clusterId"].clone(), configuration(bed).await?);
        let evil = forged(&real)?;
        make_former(bed, &evil).await?;
        until_looked(bed, "forged").await?;
        ensure_nothing_changed(bed, &before, "a forged ConfigMap").await?;

        // As after a restore that lacks the Secret.
        bed.kill_operator();
        make_former(bed, &evil).await?;
        bed.delete("v1", "Secret", NS, STATE).await?;
        bed.start_operator().await?;
        until("the state to be rebuilt", PATIENCE, async || {
            let now = bed.state().await?;
            Ok(Probe::when(now["data"]["objects"].is_string(), now))
        })
        .await?;
        until_looked(bed, "rebuilt").await?;
        until_at_rest(bed).await?;
        ensure_nothing_changed(bed, &before, "a ConfigMap instead of the Secret").await?;
        let now = Inventory::parse("state", &stored(bed).await?)?;
        ensure!(now.approved.is_none() && now.cluster_id.as_deref() == id.as_str(), "{now:?}");
        ensure!(configuration(bed).await? == configured, "the configuration of the driver changed");
        Ok(())
    })
}

/// What an operator before this one kept moves into the Secret, as far as something else vouches for it.
#[test]
fn state_of_a_former_operator_moves_into_the_secret_without_what_was_forged() -> Result<()> {
    INSTALLED.run(async |bed| {
        until_at_rest(bed).await?;
        let (before, real) = (bed.owned().await?, stored(bed).await?);
        let id = bed.status().await?["clusterId"].clone();
        for (what, content) in [("the real one", real.clone()), ("a forged one", forged(&real)?)] {
            bed.kill_operator();
            make_former(bed, &content).await?;
            let status = json!({"status": {"inventory": {"name": FORMER}}});
            bed.merge_status("vdo", status).await?;
            bed.delete("v1", "Secret", NS, STATE).await?;
            bed.start_operator().await?;
            until("the ConfigMap to be gone", PATIENCE, async || {
                let map = bed.get("v1", "ConfigMap", NS, FORMER).await?;
                Ok(Probe::when(map.is_null(), "it is there"))
            })
            .await?;
            until_at_rest(bed).await?;
            ensure_nothing_changed(bed, &before, what).await?;
            let now = Inventory::parse("state", &stored(bed).await?)?;
            let was = Inventory::parse("state", &real)?;
            let listed = |inventory: &Inventory| -> std::collections::BTreeMap<String, Option<String>> {
                inventory
                    .objects
                    .iter()
                    .map(|(id, entry)| (id.to_string(), entry.uid.clone()))
                    .collect()
            };
            ensure!(listed(&now) == listed(&was), "{what}: {:?}", now.objects);
            ensure!(
                now.approved.is_none() && now.cluster_id.as_deref() == id.as_str(),
                "{what}: {now:?}"
            );
            let newest = |inventory: &Inventory| inventory.history[CSI].last().map(|newest| (newest.number, newest.objects.clone()));
            if what == "the real one" {
                ensure!(
                    newest(&now) == newest(&was),
                    "the revision that runs is not kept: {:?}",
                    now.history
                );
            }
            ensure!(bed.status().await?["inventory"]["name"] == STATE, "{what}");
        }
        Ok(())
    })
}

/// Changed by hand, the id waits for a person; named by a person, it is what the person says.
#[test]
fn cluster_id_changed_in_the_state_waits_for_a_person() -> Result<()> {
    INSTALLED.run(async |bed| {
        until_at_rest(bed).await?;
        let (before, configured) = (bed.owned().await?, configuration(bed).await?);
        let id = bed.status().await?["clusterId"].as_str().context("an id")?.to_owned();
        bed.merge_state(json!({"data": {"clusterId": "of-another-cluster"}})).await?;
        let ready = bed.until_reason("Ready", "ClusterIdChanged").await?;
        let said = ready["message"].as_str().unwrap_or_default();
        ensure!(said.contains("of-another-cluster") && said.contains(&id), "{said}");
        until("an event of the changed id", PATIENCE, async || {
            let events = bed.list("events.k8s.io/v1", "Event", "").await?;
            let found = events.iter().any(|event| event["reason"] == "ClusterIdChanged");
            Ok(Probe::when(found, "none"))
        })
        .await?;
        until_looked(bed, "changed").await?;
        ensure_nothing_changed(bed, &before, "another cluster id").await?;
        ensure!(configuration(bed).await? == configured, "the driver runs under another id");
        ensure!(bed.status().await?["clusterId"] == *id, "the status believes it");
        // Also a restart believes nothing, and the cloud provider is still looked after.
        bed.kill_operator();
        bed.start_operator().await?;
        until_looked(bed, "restarted").await?;
        ensure!(
            configuration(bed).await? == configured,
            "the driver runs under another id after a restart"
        );

        let annotations = json!({"vdo.vmware.com/take-over-cluster-id": id});
        bed.merge(VDO, "VDOConfig", NS, "vdo", json!({"metadata": {"annotations": annotations}}))
            .await?;
        bed.until_ready().await?;
        until("the id to be recorded", PATIENCE, async || {
            let now = bed.state().await?["data"]["clusterId"].clone();
            Ok(Probe::when(now == *id, now))
        })
        .await?;
        ensure!(configuration(bed).await? == configured, "the driver runs under another id");
        Ok(())
    })
}

/// The backup of another cluster, with its id and history.
#[test]
fn state_of_another_cluster_is_not_used() -> Result<()> {
    INSTALLED.run(async |bed| {
        until_at_rest(bed).await?;
        let (before, id) = (bed.owned().await?, bed.status().await?["clusterId"].clone());
        bed.kill_operator();
        let evil = forged(&stored(bed).await?)?;
        bed.merge_state(json!({"data": evil.data, "binaryData": evil.binary})).await?;
        let annotations = json!({CLUSTER_ANNOTATION: "another-cluster"});
        bed.merge("v1", "Secret", NS, STATE, json!({"metadata": {"annotations": annotations}}))
            .await?;
        bed.start_operator().await?;
        until("the state to be of this cluster", PATIENCE, async || {
            let of = bed.state().await?["metadata"]["annotations"][CLUSTER_ANNOTATION].clone();
            Ok(Probe::when(of != "another-cluster", of))
        })
        .await?;
        until_looked(bed, "foreign").await?;
        until_at_rest(bed).await?;
        ensure_nothing_changed(bed, &before, "the state of another cluster").await?;
        ensure!(bed.status().await?["clusterId"] == id, "its id is used");
        Ok(())
    })
}

/// Whatever a ConfigMap names, and whatever lies in ConfigMaps, without keys as well.
#[test]
fn matrix_in_config_maps_of_a_tenant_is_not_followed() -> Result<()> {
    INSTALLED.run(async |bed| {
        until_at_rest(bed).await?;
        const PLACE: &str = "configmap://vmware-system-vdo/tenant";
        let before = bed.owned().await?;
        let version = bed.status().await?["matrix"]["version"].as_u64().context("a version")?;
        bed.apply(&bed.config(json!({"updatePolicy": "Latest"}))).await?;
        let mut folder = Folder::new(PLACE)?;
        let chart = release(&mut folder.index, false)?;
        std::fs::write(folder.path(CHART), chart)?;
        folder.sign(7001)?;
        folder.load(bed)?;
        for (map, key) in [
            ("vdo-matrix", "source"),
            ("comp-matrix-config", "versionConfigURL"),
            ("compat-matrix-config", "versionConfigURL"),
        ] {
            bed.make_map(map, json!({"data": {key: PLACE}})).await?;
            until("the source to be named as not followed", PATIENCE, async || {
                let found = condition(&bed.get(VDO, "VDOConfig", NS, "vdo").await?, "MatrixFresh");
                let said = found["message"].as_str().unwrap_or_default();
                let named = said.contains(&format!("ConfigMap {map} names the source {PLACE}, but VDO ignores this source"));
                Ok(Probe::when(named, found))
            })
            .await?;
            until_looked(bed, map).await?;
            until_version(bed, "embedded", version).await?;
            ensure_nothing_changed(bed, &before, map).await?;
            bed.delete("v1", "ConfigMap", NS, map).await?;
        }

        // The place is named by an administrator; the list of files is a ConfigMap of a tenant.
        let list = bed.get("v1", "Secret", NS, "tenant").await?["data"]["contents.json"].clone();
        let text = list.as_str().context("a list")?;
        let text = String::from_utf8(base64::Engine::decode(&base64::engine::general_purpose::STANDARD, text)?)?;
        bed.delete("v1", "Secret", NS, "tenant").await?;
        bed.make_map("tenant", json!({"data": {"contents.json": text}})).await?;
        bed.name_source(PLACE).await?;
        until_refused(bed, "MatrixIncomplete", "accepted only with --matrix-keys").await?;
        ensure_nothing_changed(bed, &before, "a list of a tenant").await
    })
}

/// The same key, another spelling of the place: still an old index.
#[test]
#[ignore = "long"]
fn matrix_of_the_same_key_from_another_place_is_no_older() -> Result<()> {
    INSTALLED.run(async |bed| {
        until_at_rest(bed).await?;
        let (one, other) = ("configmap://vmware-system-vdo/one", "configmap://vmware-system-vdo/other");
        let mut folder = Folder::new(one)?;
        bed.kill_operator();
        bed.flags.push(("matrix-keys", leaked(folder.path("keys.pem"))));
        bed.start_operator().await?;
        folder.sign(7001)?;
        let (code, text, err) = bed.vdoctl(&["matrix", "load", &folder.path(""), other])?;
        ensure!(code == 0, "{code}\n{text}\n{err}");
        folder.sign(7002)?;
        folder.load(bed)?;
        bed.name_source(one).await?;
        until_version(bed, one, 7002).await?;
        until_at_rest(bed).await?;
        bed.name_source(other).await?;
        until_refused(
            bed,
            "MatrixRolledBack",
            "the version 7001 of the index is lower than the version 7002",
        )
        .await?;
        // Also by an operator that was never there before, and over the operator's own.
        bed.name_source("embedded").await?;
        until("the operator's own to be used", PATIENCE, async || {
            let source = bed.status().await?["matrix"]["source"].clone();
            Ok(Probe::when(source == "embedded", source))
        })
        .await?;
        bed.kill_operator();
        bed.name_source(other).await?;
        bed.start_operator().await?;
        until_refused(
            bed,
            "MatrixRolledBack",
            "the version 7001 of the index is lower than the version 7002",
        )
        .await
    })
}

/// The file beside a signed index that says what a mirror holds is not signed: it chooses no image.
#[test]
fn lock_of_a_mirror_beside_a_signed_index_chooses_no_image() -> Result<()> {
    INSTALLED.run(async |bed| {
        until_at_rest(bed).await?;
        const PLACE: &str = "configmap://vmware-system-vdo/locked";
        let mut folder = Folder::new(PLACE)?;
        let chart = release(&mut folder.index, false)?;
        std::fs::write(folder.path(CHART), chart)?;
        folder.sign(7001)?;
        let index = std::fs::read(folder.path("index.yaml"))?;
        let evil = vdo_api::types::Digest::of(b"evil");
        let mut lock = vdo_core::mirror_lock::Lock::of(
            "here".into(),
            vdo_api::types::Digest::of(&index),
            k8s_openapi::jiff::Timestamp::UNIX_EPOCH,
        );
        for (driver, versions) in folder.index["drivers"].as_object().context("drivers")? {
            for version in versions["versions"].as_array().context("versions")? {
                let number = version["version"].as_str().context("a version")?.parse()?;
                lock.versions.entry(driver.clone()).or_default().insert(number);
                for image in version["images"].as_array().into_iter().flatten() {
                    lock.images.push(vdo_core::mirror_lock::Image {
                        reference: image["ref"].as_str().context("a reference")?.to_owned(),
                        digest: evil.clone(),
                        whole: None,
                        from: None,
                    });
                }
            }
        }
        std::fs::write(folder.path("mirror.yaml"), lock.text()?)?;
        folder.load(bed)?;
        bed.kill_operator();
        bed.flags.push(("matrix-keys", leaked(folder.path("keys.pem"))));
        bed.start_operator().await?;
        bed.name_source(PLACE).await?;
        until_version(bed, PLACE, 7001).await?;
        bed.apply(&bed.config(json!({"updatePolicy": "Latest"}))).await?;
        until_driver(bed, "3.8.1").await?;
        until_at_rest(bed).await?;
        let now = json!(bed.owned().await?).to_string();
        ensure!(!now.contains(&evil.to_string()), "the lock chose an image");
        Ok(())
    })
}
