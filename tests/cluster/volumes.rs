// SPDX-License-Identifier: Apache-2.0
//! `vdoctl doctor volumes`: what keeps volumes from working, each made on a real API server, with the objects and events as Kubernetes and the
//! driver write them. What the driver itself produces is in `real_csi`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use crate::common::{Bed, NS, PATIENCE};
use crate::fixture::INSTALLED;
use crate::page::open;
use crate::uninstall::volumes::volume;
use anyhow::{Context, Result, ensure};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use vdo_testbed::soap::{Act, Rule, SoapOptions, SoapProxy};
use vdo_testbed::{Cluster, Probe, until};

const CLAIM: &str = "PersistentVolumeClaim";
const STORAGE: &str = "storage.k8s.io/v1";

/// The document, after the exit code that is expected.
pub fn document(bed: &Bed, code: i32, more: &[&str]) -> Result<Value> {
    let (ended, out, err) = bed.vdoctl(&[&["doctor", "volumes", "-o", "json"], more].concat())?;
    ensure!(ended == code, "exit {ended}\n{out}{err}");
    serde_json::from_str(&out).context(out)
}

/// `Cause Kind namespace/name` of every finding.
pub fn found(document: &Value) -> BTreeSet<String> {
    let all = document["findings"].as_array().into_iter().flatten();
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap_or_default().to_owned();
    all.map(|finding| {
        let namespace = text(finding, "namespace");
        let separator = if namespace.is_empty() { "" } else { "/" };
        let (cause, kind, name) = (text(finding, "cause"), text(finding, "kind"), text(finding, "name"));
        format!("{cause} {kind} {namespace}{separator}{name}")
    })
    .collect()
}

pub fn claim(name: &str, class: Option<&str>) -> Value {
    let mut claim = json!({"apiVersion": "v1", "kind": CLAIM, "metadata": {"name": name, "namespace": "default"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    if let Some(class) = class {
        claim["spec"]["storageClassName"] = class.into();
    }
    claim
}

fn class(name: &str, provisioner: &str, mode: &str) -> Value {
    json!({"apiVersion": STORAGE, "kind": "StorageClass", "metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode})
}

/// A warning as a component of Kubernetes records it.
async fn warned(bed: &Bed, about: (&str, &str, &str), reason: &str, message: &str) -> Result<()> {
    let (kind, namespace, name) = about;
    let object = bed.get("v1", kind, namespace, name).await?;
    let home = if namespace.is_empty() { "default" } else { namespace };
    bed.apply(
        &json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": format!("{name}.{}", reason.to_lowercase()), "namespace": home},
        "involvedObject": {"kind": kind, "namespace": namespace, "name": name, "uid": object["metadata"]["uid"]},
        "type": "Warning", "reason": reason, "message": message, "lastTimestamp": object["metadata"]["creationTimestamp"]}),
    )
    .await
}

async fn set_status(bed: &Bed, (api_version, kind, name): (&str, &str, &str), status: Value) -> Result<()> {
    let api = bed.api(api_version, kind, "");
    api.patch_status(name, &PatchParams::default(), &Patch::Merge(json!({"status": status})))
        .await?;
    Ok(())
}

fn attachment(name: &str, volume: &str, node: &str) -> Value {
    json!({"apiVersion": STORAGE, "kind": "VolumeAttachment", "metadata": {"name": name},
        "spec": {"attacher": "csi.vsphere.vmware.com", "nodeName": node, "source": {"persistentVolumeName": volume}}})
}

/// Waits until these findings are among those that are shown.
async fn until_found(bed: &Bed, expected: &[&str]) -> Result<Value> {
    until(&format!("the findings {expected:?}"), PATIENCE, async || {
        let (_, out, err) = bed.vdoctl(&["doctor", "volumes", "-o", "json"])?;
        let document: Value = serde_json::from_str(&out).with_context(|| format!("{out}{err}"))?;
        let shown = found(&document);
        let whole = expected.iter().all(|line| shown.contains(*line));
        Ok(match whole {
            true => Probe::Ready(document),
            false => Probe::not_yet(format!("{shown:#?}\n{err}")),
        })
    })
    .await
}

/// A support bundle has what was found, for the verb and for the page.
fn bundle_shows_the_same(bed: &Bed) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let [bundle, page] = ["bundle.tar.gz", "page.html"].map(|name| folder.path().join(name).display().to_string());
    let (code, _, err) = bed.vdoctl(&["support-bundle", "-o", &bundle])?;
    ensure!(code == 0, "{err}");
    let seen = document(bed, 1, &[])?;
    let live = found(&seen);
    let kept = found(&document(bed, 1, &["--from", &bundle])?);
    ensure!(kept == live, "of the bundle: {kept:#?}\nof the cluster: {live:#?}");
    let (_, _, err) = bed.vdoctl(&["report", "--html", &page, "--from", &bundle])?;
    let html = std::fs::read_to_string(&page).context(err)?;
    let all = seen["findings"].as_array().context("findings")?;
    for fault in all.iter().filter(|finding| finding["isFault"] == true) {
        let cause = fault["cause"].as_str().unwrap_or_default();
        ensure!(html.contains(cause), "{cause} is not on the page");
    }
    Ok(())
}

async fn clean(bed: &Bed) -> Result<()> {
    for name in ["va-gone", "va-full"] {
        bed.delete(STORAGE, "VolumeAttachment", "", name).await?;
    }
    for name in ["no-class", "gone-class", "waits", "typo", "policy"] {
        bed.delete("v1", CLAIM, "default", name).await?;
    }
    for name in ["pv-kept", "pv-full", "pv-built-in"] {
        bed.delete("v1", "PersistentVolume", "", name).await?;
    }
    for name in ["waiting", "typo", "gold", "one", "two"] {
        bed.delete(STORAGE, "StorageClass", "", name).await?;
    }
    Ok(())
}

#[test]
fn volumes_in_trouble_are_named_with_cause_and_remedy() -> Result<()> {
    INSTALLED.run(async |bed| {
        let before = document(bed, 0, &[])?;
        ensure!(found(&before).is_empty(), "{before:#}");
        for object in [
            class("waiting", "csi.vsphere.vmware.com", "WaitForFirstConsumer"),
            class("typo", "csi.vsphere.vmware.co", "Immediate"),
            class("gold", "csi.vsphere.vmware.com", "Immediate"),
            claim("no-class", None),
            claim("gone-class", Some("gone")),
            claim("waits", Some("waiting")),
            claim("typo", Some("typo")),
            claim("policy", Some("gold")),
            volume("pv-kept"),
            volume("pv-full"),
            attachment("va-gone", "pv-kept", "w-9"),
            attachment("va-full", "pv-full", "w-1"),
        ] {
            bed.apply(&object).await?;
        }
        let mut built_in = volume("pv-built-in");
        built_in["spec"]["csi"] = Value::Null;
        built_in["spec"]["vsphereVolume"] = json!({"volumePath": "[LocalDS_0] kubevols/a.vmdk"});
        bed.apply(&built_in).await?;
        let refused = "failed to provision volume with StorageClass \"gold\": rpc error: code = Internal desc = failed to create volume. \
            Error: no pbm profile found with name: \"gold\"";
        warned(bed, (CLAIM, "default", "policy"), "ProvisioningFailed", refused).await?;
        let full = json!({"attached": false, "attachError": {"message": "rpc error: code = Internal desc = failed to attach disk: fault: \
            \"(*types.LocalizedMethodFault)({ Fault: (types.TooManyDevices)\""}});
        set_status(bed, (STORAGE, "VolumeAttachment", "va-full"), full).await?;
        let seen = until_found(
            bed,
            &[
                "NoDefaultClass PersistentVolumeClaim default/no-class",
                "ClassNotFound PersistentVolumeClaim default/gone-class",
                "WaitsForPod PersistentVolumeClaim default/waits",
                "UnknownProvisioner PersistentVolumeClaim default/typo",
                "PolicyNotFound PersistentVolumeClaim default/policy",
                "NodeGone VolumeAttachment va-gone",
                "TooManyDisks VolumeAttachment va-full",
                "BuiltInVolume PersistentVolume pv-built-in",
            ],
        )
        .await?;
        ensure!(seen["faults"].as_u64().is_some_and(|faults| faults >= 5), "{seen:#}");
        ensure!(seen["notRead"] == json!([]), "{seen:#}");
        // The condition has what was warned about, and the drivers are as they were.
        until("VolumesHealthy to name three claims", PATIENCE, async || {
            let found = bed.until_reason("VolumesHealthy", "VolumesFailing").await?;
            let message = found["message"].as_str().unwrap_or_default();
            let expected = [
                "default/policy: the storage policy that the class names does not exist",
                "default/no-class: ",
                "default/gone-class: ",
            ];
            Ok(Probe::when(expected.iter().all(|part| message.contains(part)), &found))
        })
        .await?;
        bed.until_ready().await?;

        bundle_shows_the_same(bed)?;
        for (name, mark) in [("one", "true"), ("two", "true")] {
            let mut marked = class(name, "example.com/nfs", "Immediate");
            marked["metadata"]["annotations"] = json!({"storageclass.kubernetes.io/is-default-class": mark});
            bed.apply(&marked).await?;
        }
        until_found(
            bed,
            &["SeveralDefaultClasses StorageClass one", "SeveralDefaultClasses StorageClass two"],
        )
        .await?;
        let (code, out, err) = bed.vdoctl(&["doctor", "volumes"])?;
        ensure!(code == 1 && out.contains("kubectl annotate storageclass one"), "{code}\n{out}{err}");
        let (_, names, _) = bed.vdoctl(&["doctor", "volumes", "-o", "name"])?;
        ensure!(names.lines().any(|line| line == "persistentvolumeclaim/default/policy"), "{names}");
        clean(bed).await?;
        bed.until_reason("VolumesHealthy", "Healthy").await.map(|_| ())
    })
}

#[test]
fn page_volumes_works_as_written() -> Result<()> {
    INSTALLED.run(async |bed| open(bed, "volumes.md")?.run_all())
}

/// Rights of a person who sees claims and classes alone: what is not read is named, what is read is judged.
#[test]
fn volumes_without_a_right_are_judged_by_what_is_read() -> Result<()> {
    INSTALLED.run(async |bed| {
        let rights = [
            json!({"apiGroups": [""], "resources": ["persistentvolumeclaims"], "verbs": ["list"]}),
            json!({"apiGroups": ["storage.k8s.io"], "resources": ["storageclasses"], "verbs": ["list"]}),
            json!({"apiGroups": ["vdo.vmware.com"], "resources": ["vdoconfigs"], "verbs": ["list"]}),
        ];
        let meta = json!({"name": "sees-claims"});
        bed.apply(&json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": meta, "rules": rights}))
            .await?;
        bed.apply(
            &json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": meta,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "sees-claims"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "claims"}]}),
        )
        .await?;
        bed.apply(&claim("gone-class", Some("gone"))).await?;
        let seen = document(bed, 1, &["--as", "claims"])?;
        let shown = found(&seen);
        ensure!(shown.contains("ClassNotFound PersistentVolumeClaim default/gone-class"), "{seen:#}");
        let unread = seen["notRead"].to_string();
        for kind in ["PersistentVolume", "Pod", "VolumeAttachment"] {
            ensure!(unread.contains(&format!("\"{kind}\"")), "{kind} is not in {unread}");
        }
        ensure!(unread.contains("Ask for a role with this rule"), "{unread}");
        bed.delete("v1", CLAIM, "default", "gone-class").await?;
        for kind in ["ClusterRole", "ClusterRoleBinding"] {
            bed.delete("rbac.authorization.k8s.io/v1", kind, "", "sees-claims").await?;
        }
        Ok(())
    })
}

/// It only reads, and with few requests.
#[test]
fn volumes_are_looked_at_with_few_requests_that_only_read() -> Result<()> {
    INSTALLED.run(async |bed| {
        let mark = bed.cluster.audit().mark().await?;
        // Both programs have one name there, so the operator is ended meanwhile.
        bed.kill_operator();
        bed.vcenter.forget_calls("vdo").await?;
        document(bed, 0, &[])?;
        // 5,000 volumes are one page more.
        let calls = bed.vcenter.calls("vdo").await?;
        bed.start_operator().await?;
        let count: u64 = calls.values().sum();
        ensure!(count > 0 && count < 6, "{count} requests to the vCenter: {calls:?}");
        let requests = bed.cluster.audit().since(mark).await?;
        let own = requests.of(Cluster::ADMIN).only(|request| !request.uri.starts_with("/livez"));
        let own = &own.0;
        let writes: Vec<_> = own.iter().filter(|request| !matches!(&*request.verb, "get" | "list")).collect();
        ensure!(writes.is_empty(), "{writes:?}");
        // 5,000 claims, volumes and attachments are two pages more of each.
        ensure!(!own.is_empty() && own.len() + 6 <= 25, "{} requests: {own:#?}", own.len());
        Ok(())
    })
}

/// Without the password of a connection its volumes are named as not read, and what the cluster has is judged.
#[test]
fn volumes_without_the_secret_of_a_connection_are_judged_and_not_compared() -> Result<()> {
    INSTALLED.run(async |bed| {
        let listed = |seen: &Value| seen["read"].to_string().contains("volumes in vCenter");
        let before = document(bed, 0, &[])?;
        ensure!(listed(&before) && before["notRead"] == json!([]), "{before:#}");
        bed.apply(&claim("gone-class", Some("gone"))).await?;
        bed.delete("v1", "Secret", NS, "vc1-credentials").await?;
        let seen = document(bed, 1, &[])?;
        bed.apply(&bed.secret(bed.vcenter.password())).await?;
        ensure!(!listed(&seen), "{seen:#}");
        let unread = seen["notRead"].to_string();
        ensure!(unread.contains("vSphere connection vc1") && unread.contains("Secret"), "{unread}");
        let shown = found(&seen);
        ensure!(shown.contains("ClassNotFound PersistentVolumeClaim default/gone-class"), "{seen:#}");
        bed.delete("v1", CLAIM, "default", "gone-class").await?;
        bed.until_ready().await?;
        until("the volumes to be compared again", PATIENCE, async || {
            let after = document(bed, 0, &[])?;
            Ok(Probe::when(listed(&after), after))
        })
        .await
        .map(|_| ())
    })
}

/// The drivers, the operator and vdoctl reach the vCenter through a proxy, which answers in its place where the simulator does not answer as a
/// vCenter does.
pub async fn through_a_proxy(bed: &Bed) -> Result<SoapProxy> {
    let proxy = SoapProxy::start(&bed.vcenter, SoapOptions::default()).await?;
    let mut connection = bed.connection("vc1");
    connection["spec"]["port"] = proxy.port().into();
    connection["spec"]["thumbprint"] = proxy.thumbprint_sha256().into();
    bed.apply(&connection).await?;
    Ok(proxy)
}

/// A vCenter without the service for container volumes, or with one that is stopped: that is named, and what the cluster has is judged.
#[test]
#[ignore = "long"]
fn volumes_of_a_vcenter_without_cns_are_judged_by_what_the_cluster_has() -> Result<()> {
    INSTALLED.run(async |bed| {
        let proxy = through_a_proxy(bed).await?;
        bed.apply(&claim("gone-class", Some("gone"))).await?;
        let listed = |seen: &Value| seen["read"].to_string().contains("volumes in vCenter");
        let whole = until("the volumes to be listed through the proxy", PATIENCE, async || {
            let seen = document(bed, 1, &[])?;
            Ok(match listed(&seen) && seen["notRead"] == json!([]) {
                true => Probe::Ready(seen),
                false => Probe::not_yet(seen),
            })
        })
        .await?;
        for status in [404, 503] {
            proxy.rule(Rule::on("CnsQueryVolume", Act::Status(status, Vec::new(), String::new())));
            let seen = document(bed, 1, &[])?;
            let unread = &seen["notRead"][0];
            let message = unread["message"].as_str().unwrap_or_default();
            ensure!(
                unread["what"] == "vSphere connection vc1" && message.contains("(CNS)") && message.contains(&status.to_string()),
                "{seen:#}"
            );
            ensure!(
                unread["remedy"].as_str().is_some_and(|remedy| remedy.contains("vsan-health")),
                "{unread}"
            );
            ensure!(!listed(&seen) && found(&seen) == found(&whole), "{seen:#} {whole:#}");
            let (code, out, err) = bed.vdoctl(&["doctor", "volumes"])?;
            ensure!(code == 1 && out.contains("? vSphere connection vc1 not read"), "{code}\n{out}{err}");
            proxy.no_more_rules();
        }
        bed.delete("v1", CLAIM, "default", "gone-class").await?;
        bed.apply(&bed.connection("vc1")).await?;
        bed.until_ready().await?;
        Ok(())
    })
}

/// Anyone who may write events writes any text there. No terminal, no document and no page obeys it.
#[test]
fn volumes_texts_of_others_command_neither_terminal_nor_page() -> Result<()> {
    INSTALLED.run(async |bed| {
        bed.apply(&class("gold", "csi.vsphere.vmware.com", "Immediate")).await?;
        bed.apply(&claim("policy", Some("gold"))).await?;
        let hostile = "failed: \u{1b}[2J\u{1b}]0;title\u{7}\u{202e} <b>x</b> no pbm profile found with name: \"gold\"\r";
        warned(bed, (CLAIM, "default", "policy"), "ProvisioningFailed", hostile).await?;
        until_found(bed, &["PolicyNotFound PersistentVolumeClaim default/policy"]).await?;
        let folder = tempfile::tempdir()?;
        let [bundle, page] = ["bundle.tar.gz", "page.html"].map(|name| folder.path().join(name).display().to_string());
        let (_, table, _) = bed.vdoctl(&["doctor", "volumes"])?;
        let (_, json, _) = bed.vdoctl(&["doctor", "volumes", "-o", "json"])?;
        let (code, _, err) = bed.vdoctl(&["support-bundle", "-o", &bundle])?;
        ensure!(code == 0, "{err}");
        let (_, _, err) = bed.vdoctl(&["report", "--html", &page, "--from", &bundle])?;
        let html = std::fs::read_to_string(&page).context(err)?;
        for (what, text) in [("table", &table), ("json", &json), ("page", &html)] {
            ensure!(text.contains("no pbm profile found"), "{what}: {text}");
            let obeyed = text.chars().find(|c| c.is_control() && *c != '\n' && *c != '\t');
            ensure!(obeyed.is_none(), "{what} has {obeyed:?}");
        }
        ensure!(!html.contains("<b>x"), "the page has the markup of an event");
        let condition = bed.until_reason("VolumesHealthy", "VolumesFailing").await?;
        let message = condition["message"].as_str().unwrap_or_default();
        ensure!(!message.chars().any(char::is_control), "{message:?}");
        clean(bed).await?;
        bed.until_reason("VolumesHealthy", "Healthy").await.map(|_| ())
    })
}
