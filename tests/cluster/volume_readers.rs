// SPDX-License-Identifier: Apache-2.0
//! The roles of deploy/ for people who look at volumes: enough for `vdoctl doctor volumes`, and each of their rights is needed.

use crate::common::{Bed, NS, PATIENCE};
use crate::fixture::INSTALLED;
use crate::preconditions::definition;
use crate::rights::granted::documents;
use crate::volumes::{claim, found};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use vdo_testbed::{Probe, until};

const RBAC: &str = "rbac.authorization.k8s.io/v1";
const DEFINITIONS: &str = "apiextensions.k8s.io/v1";
const GROUP: &str = "on-call";
const OF_CLUSTER: &str = "vdo-volumes-reader";
const OF_CONNECTIONS: &str = "vdo-connections-reader";
const FINDING: &str = "ClassNotFound PersistentVolumeClaim default/gone-class";

/// What a user with nothing but these roles is shown.
fn shown(bed: &Bed) -> Result<Value> {
    let (code, out, err) = bed.vdoctl(&["doctor", "volumes", "-o", "json", "--as", "reader", "--as-group", GROUP])?;
    serde_json::from_str(&out).with_context(|| format!("{code}\n{out}{err}"))
}

fn kinds(document: &Value) -> BTreeSet<String> {
    let all = document["read"].as_array().into_iter().flatten();
    all.filter_map(|read| read["kind"].as_str().map(str::to_owned)).collect()
}

/// Applies the roles of the file as they stand, and binds them to a group as the file says; gives them.
async fn bound(bed: &Bed) -> Result<Vec<Value>> {
    let roles = documents("readers-rbac.yaml")?;
    for role in &roles {
        bed.apply(role).await?;
    }
    for (kind, role, namespace) in [("ClusterRoleBinding", OF_CLUSTER, None), ("RoleBinding", OF_CONNECTIONS, Some(NS))] {
        let mut metadata = json!({"name": role});
        if let Some(namespace) = namespace {
            metadata["namespace"] = namespace.into();
        }
        bed.apply(&json!({"apiVersion": RBAC, "kind": kind, "metadata": metadata,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": GROUP}]}))
            .await?;
    }
    Ok(roles)
}

/// Every kind is served, the connection refers to a ConfigMap, and there is something to find.
async fn with_something_of_each(bed: &Bed) -> Result<()> {
    for kind in ["VolumeSnapshot", "VolumeSnapshotContent", "VolumeSnapshotClass"] {
        bed.apply(&definition(kind, kind == "VolumeSnapshot")).await?;
    }
    let authority = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "vcenter-ca", "namespace": NS},
        "data": {"ca.crt": bed.vcenter.ca_pem()}});
    bed.apply(&authority).await?;
    let mut connection = bed.connection("vc1");
    let spec = connection["spec"].as_object_mut().context("a spec")?;
    spec.shift_remove("thumbprint");
    spec.insert("caBundle".into(), json!({"configMap": "vcenter-ca"}));
    bed.apply(&connection).await?;
    bed.apply(&claim("gone-class", Some("gone"))).await
}

async fn as_before(bed: &Bed) -> Result<()> {
    bed.apply(&bed.connection("vc1")).await?;
    bed.delete("v1", "PersistentVolumeClaim", "default", "gone-class").await?;
    for kind in ["volumesnapshots", "volumesnapshotcontents", "volumesnapshotclasses"] {
        let name = format!("{kind}.snapshot.storage.k8s.io");
        bed.delete(DEFINITIONS, "CustomResourceDefinition", "", &name).await?;
    }
    bed.until_ready().await?;
    Ok(())
}

/// A role without this resource.
fn without(role: &Value, resource: &str) -> Value {
    let mut less = role.clone();
    for rule in less["rules"].as_array_mut().into_iter().flatten() {
        if let Some(all) = rule["resources"].as_array_mut() {
            all.retain(|one| one != resource);
        }
    }
    if let Some(rules) = less["rules"].as_array_mut() {
        rules.retain(|rule| rule["resources"] != json!([]));
    }
    less
}

#[test]
#[ignore = "long"]
fn volumes_readers_see_all_that_an_administrator_sees_and_each_of_their_rights_is_needed() -> Result<()> {
    INSTALLED.run(async |bed| {
        with_something_of_each(bed).await?;
        let roles = bound(bed).await?;
        let whole = until("the whole of the volumes", PATIENCE, async || {
            let seen = shown(bed)?;
            let whole = seen["notRead"] == json!([]) && kinds(&seen).contains("VolumeSnapshotClass");
            Ok(match whole && found(&seen).contains(FINDING) {
                true => Probe::Ready(seen),
                false => Probe::not_yet(seen),
            })
        })
        .await?;
        let (_, out, _) = bed.vdoctl(&["doctor", "volumes", "-o", "json"])?;
        let of_administrator: Value = serde_json::from_str(&out)?;
        ensure!(
            kinds(&whole) == kinds(&of_administrator) && found(&whole) == found(&of_administrator),
            "{whole:#} {of_administrator:#}"
        );
        ensure!(kinds(&whole).contains("volumes in vCenter"), "{whole:#}");
        for role in &roles {
            let rules = role["rules"].as_array().context("rules")?;
            let resources = rules.iter().flat_map(|rule| rule["resources"].as_array().into_iter().flatten());
            for resource in resources.filter_map(Value::as_str) {
                bed.apply(&without(role, resource)).await?;
                is_named(bed, resource, &kinds(&whole)).await?;
                bed.apply(role).await?;
            }
        }
        as_before(bed).await
    })
}

/// The right is named with the rule that gives it, and everything else is read.
async fn is_named(bed: &Bed, resource: &str, whole: &BTreeSet<String>) -> Result<()> {
    until(&format!("the right to list {resource} alone to be named"), PATIENCE, async || {
        let seen = shown(bed)?;
        let unread = seen["notRead"].as_array().cloned().unwrap_or_default();
        let named = unread.len() == 1 && unread[0]["remedy"].as_str().is_some_and(|rule| rule.contains(resource));
        let read = kinds(&seen);
        let lost: Vec<&String> = whole.difference(&read).collect();
        let judged = matches!(resource, "persistentvolumeclaims" | "storageclasses") || found(&seen).contains(FINDING);
        Ok(Probe::when(named && lost.len() == 1 && judged, format!("{lost:?} {seen:#}")))
    })
    .await
}
