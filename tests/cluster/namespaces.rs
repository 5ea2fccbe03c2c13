// SPDX-License-Identifier: Apache-2.0
//! The operator reads its own namespace and no other, and sends a Secret only where it is meant to go.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use crate::common::{Bed, NS, PATIENCE, condition};
use crate::fixture::{EMPTY, INSTALLED, OPERATOR};
use crate::page::open;
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use std::time::Duration;
use vdo_testbed::soap::{SoapOptions, SoapProxy};
use vdo_testbed::{Probe, until};

const VDO: &str = "vdo.vmware.com/v1alpha1";
const TENANT: &str = "tenant";
/// Where a Secret is that has nothing to do with vSphere.
const PAYMENTS: &str = "payments";
const SECOND: &[(&str, &str)] = &[("connection-interval", "1s")];

fn moved(mut object: Value, name: &str, namespace: &str) -> Value {
    object["metadata"]["name"] = name.into();
    object["metadata"]["namespace"] = namespace.into();
    object
}

async fn namespace(bed: &Bed, name: &str) -> Result<()> {
    bed.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
        .await
}

/// No operator has written a status: it is what the definition has as the default.
fn unread(name: &str, status: &Value) -> Result<()> {
    ensure!(
        *status == json!({"observedGeneration": -1, "conditions": []}),
        "{name} has the status {status}"
    );
    Ok(())
}

/// A connection to a vCenter that writes down what it is sent, trusting it as an attacker would.
fn to(bed: &Bed, thief: &SoapProxy, name: &str, namespace: &str) -> Value {
    let mut connection = moved(bed.connection(name), name, namespace);
    connection["spec"]["port"] = thief.port().into();
    connection["spec"]["insecure"] = true.into();
    connection["spec"]["thumbprint"] = Value::Null;
    connection
}

async fn until_reason(bed: &Bed, name: &str, kind: &str, reason: &str) -> Result<Value> {
    bed.until_condition("VsphereCloudConfig", name, kind, reason).await
}

/// A connection of another namespace names a Secret of the operator's, one of a stranger's and none at all.
#[test]
fn connection_in_another_namespace_is_not_read_and_gets_no_password() -> Result<()> {
    OPERATOR.flags(SECOND).run(async |bed| {
        let thief = SoapProxy::start(&bed.vcenter, SoapOptions::default()).await?;
        namespace(bed, TENANT).await?;
        bed.apply(&bed.secret(bed.vcenter.password())).await?;
        for (name, place) in [("operators", Some(NS)), ("own", Some(TENANT)), ("default", None)] {
            let mut connection = to(bed, &thief, name, TENANT);
            if let Some(place) = place {
                connection["spec"]["credentialsNamespace"] = place.into();
            }
            bed.apply(&connection).await?;
        }
        // The operator's own one comes later and is looked at.
        bed.apply(&bed.connection("vc1")).await?;
        until_reason(bed, "vc1", "Ready", "Healthy").await?;
        ensure!(
            thief.calls().is_empty() && thief.logins().is_empty(),
            "asked: {:?}, logins: {:?}",
            thief.calls(),
            thief.logins()
        );
        for name in ["operators", "own", "default"] {
            let connection = bed.get(VDO, "VsphereCloudConfig", TENANT, name).await?;
            unread(name, &connection["status"])?;
        }
        Ok(())
    })
}

/// Neither the password nor what kind of Secret it is gets out.
#[test]
fn connection_naming_secret_of_another_namespace_is_refused_unread() -> Result<()> {
    OPERATOR.flags(SECOND).run(async |bed| {
        let thief = SoapProxy::start(&bed.vcenter, SoapOptions::default()).await?;
        namespace(bed, PAYMENTS).await?;
        bed.apply(&moved(bed.secret("of the payments"), "git-creds", PAYMENTS)).await?;
        for name in ["git-creds", "absent"] {
            let mut connection = to(bed, &thief, name, NS);
            connection["spec"]["credentials"] = name.into();
            connection["spec"]["credentialsNamespace"] = PAYMENTS.into();
            bed.apply(&connection).await?;
            let reported = until_reason(bed, name, "CredentialsFound", "SecretElsewhere").await?["message"].to_string();
            for word in [&*format!("payments/{name}"), NS, "kube-system", "Create the Secret in one of these"] {
                ensure!(reported.contains(word), "{reported} does not say {word}");
            }
            let status = bed.get(VDO, "VsphereCloudConfig", NS, name).await?["status"].clone();
            ensure!(status["credential"].is_null(), "{}", status["credential"]);
        }
        ensure!(thief.logins().is_empty(), "{:?}", thief.logins());
        Ok(())
    })
}

/// Where the original operator keeps it. The shipped role reads no Secret there, so the administrator allows this one, as the message says.
#[test]
#[ignore = "long"]
fn secret_in_kube_system_is_read_when_that_one_is_allowed() -> Result<()> {
    OPERATOR.flags(SECOND).run(async |bed| {
        bed.apply(&moved(bed.secret(bed.vcenter.password()), "vc-creds", "kube-system"))
            .await?;
        for (name, place) in [("named", Some("kube-system")), ("fallback", None)] {
            let mut connection = bed.connection(name);
            connection["spec"]["credentials"] = "vc-creds".into();
            connection["spec"]["credentialsNamespace"] = place.into();
            bed.apply(&connection).await?;
        }
        for (name, reason) in [("named", "Forbidden"), ("fallback", "SecretNotFound")] {
            let reported = until_reason(bed, name, "CredentialsFound", reason).await?["message"].to_string();
            for word in ["kube-system", "vc-creds", "Add this rule to the role of the operator", "secrets"] {
                ensure!(reported.contains(word), "{reported} does not say {word}");
            }
        }
        let mut page = open(bed, "taking-over.md")?.set("SECRET", "vc-creds");
        page.run("kubectl --namespace kube-system create role")?;
        for name in ["named", "fallback"] {
            until_reason(bed, name, "Authenticated", "Healthy").await?;
        }
        Ok(())
    })
}

/// The Secret says where it may go. Its owner adds the other server, and the connection works.
#[test]
fn secret_that_names_its_servers_is_sent_to_no_other() -> Result<()> {
    OPERATOR.flags(SECOND).run(async |bed| {
        let thief = SoapProxy::start(&bed.vcenter, SoapOptions::default()).await?;
        let servers = |list: String| json!({"metadata": {"annotations": {"vdo.vmware.com/servers": list}}});
        let mut secret = bed.secret(bed.vcenter.password());
        secret["metadata"]["annotations"] =
            servers(format!("{}:{}", bed.vcenter.host(), bed.vcenter.port()))["metadata"]["annotations"].clone();
        bed.apply(&secret).await?;
        bed.apply(&bed.connection("vc1")).await?;
        bed.apply(&to(bed, &thief, "steal", NS)).await?;
        until_reason(bed, "vc1", "Ready", "Healthy").await?;
        let reported = until_reason(bed, "steal", "Ready", "ServerNotNamed").await?["message"].to_string();
        let leads = format!("{}:{}", thief.host(), thief.port());
        for word in [&*leads, "vc1-credentials", "vdo.vmware.com/servers", "Nothing was sent"] {
            ensure!(reported.contains(word), "{reported} does not say {word}");
        }
        ensure!(thief.logins().is_empty(), "{:?}", thief.logins());
        let list = format!("{}:{}, {leads}", bed.vcenter.host(), bed.vcenter.port());
        bed.merge("v1", "Secret", NS, "vc1-credentials", servers(list)).await?;
        until_reason(bed, "steal", "Authenticated", "Healthy").await?;
        // A thumbprint counts only for a connection that asks for this proof.
        bed.merge("v1", "Secret", NS, "vc1-credentials", servers(thief.thumbprint_sha256()))
            .await?;
        until_reason(bed, "steal", "CredentialsFound", "ServerNotNamed").await?;
        let proven = json!({"spec": {"insecure": false, "thumbprint": thief.thumbprint_sha256()}});
        bed.merge(VDO, "VsphereCloudConfig", NS, "steal", proven).await?;
        until_reason(bed, "steal", "Authenticated", "Healthy").await?;
        Ok(())
    })
}

/// An older VDOConfig elsewhere changes nothing for the operator's own, and nothing is done for it.
#[test]
fn vdoconfig_in_another_namespace_never_acts() -> Result<()> {
    OPERATOR.flags(SECOND).run(async |bed| {
        namespace(bed, TENANT).await?;
        bed.apply(&moved(bed.config(json!({})), "seat", TENANT)).await?;
        // Created in a later second, so that the other one is older.
        let seat = bed.get(VDO, "VDOConfig", TENANT, "seat").await?["metadata"]["creationTimestamp"].clone();
        until("another second", PATIENCE, async || {
            bed.delete(VDO, "VDOConfig", NS, "vdo").await?;
            bed.apply(&bed.config(json!({}))).await?;
            let own = bed.get(VDO, "VDOConfig", NS, "vdo").await?["metadata"]["creationTimestamp"].clone();
            Ok(Probe::when(own.as_str() > seat.as_str(), own))
        })
        .await?;
        bed.until_reason("Ready", "NoConnections").await?;
        let status = bed.get(VDO, "VDOConfig", TENANT, "seat").await?["status"].clone();
        unread("seat", &status)?;
        let (code, out, talk) = bed.vdoctl(&["status", "-n", "default"])?;
        ensure!(
            code != 0 && talk.contains("tenant/seat") && talk.contains("only its own namespace"),
            "{code} {out} {talk}"
        );
        Ok(())
    })
}

/// Whichever of the two is deleted, as the message asks for, the other one acts at once.
#[test]
#[ignore = "long"]
fn vdoconfig_acts_when_the_older_one_is_deleted() -> Result<()> {
    INSTALLED.run(async |bed| {
        bed.merge(VDO, "VDOConfig", NS, "vdo", json!({"spec": {"deletionPolicy": "Orphan"}}))
            .await?;
        bed.apply(&moved(bed.config(json!({})), "second", NS)).await?;
        bed.until_condition("VDOConfig", "second", "Ready", "NotActive").await?;
        let begun = std::time::Instant::now();
        bed.delete(VDO, "VDOConfig", NS, "vdo").await?;
        until("the second VDOConfig to act", PATIENCE, async || {
            let ready = condition(&bed.get(VDO, "VDOConfig", NS, "second").await?, "Ready");
            Ok(Probe::when(!ready.is_null() && ready["reason"] != "NotActive", ready))
        })
        .await?;
        // Not at the next resync, which is ten minutes away.
        ensure!(begun.elapsed() < Duration::from_secs(300), "it took {:?}", begun.elapsed());
        Ok(())
    })
}

/// With the rights there, the flag moves the operator to another namespace as a whole.
#[test]
fn operator_of_another_namespace_reads_that_one_alone() -> Result<()> {
    const RBAC: &str = "rbac.authorization.k8s.io/v1";
    const ADMISSION: &str = "admissionregistration.k8s.io/v1";
    EMPTY.run(async |bed| {
        namespace(bed, TENANT).await?;
        for kind in ["Role", "RoleBinding"] {
            let mut object = bed.get(RBAC, kind, NS, "vdo-operator").await?;
            object["metadata"] = json!({"name": "vdo-operator", "namespace": TENANT});
            object["apiVersion"] = RBAC.into();
            object["kind"] = kind.into();
            bed.apply(&object).await?;
        }
        // The policy names the objects of one namespace, too. The account stays.
        let policy = bed.get(ADMISSION, "ValidatingAdmissionPolicy", "", "vdo-operator").await?;
        let spec: Value = serde_json::from_str(&policy["spec"].to_string().replace(&format!("/{NS}/"), &format!("/{TENANT}/")))?;
        bed.merge(ADMISSION, "ValidatingAdmissionPolicy", "", "vdo-operator", json!({"spec": spec}))
            .await?;
        bed.apply(&bed.config(json!({}))).await?;
        bed.apply(&moved(bed.config(json!({})), "own", TENANT)).await?;
        bed.flags = vec![("namespace", TENANT)];
        bed.start_operator().await?;
        until("the VDOConfig of the operator's namespace to be looked at", PATIENCE, async || {
            let ready = condition(&bed.get(VDO, "VDOConfig", TENANT, "own").await?, "Ready");
            Ok(Probe::when(ready["reason"] == "NoConnections", ready))
        })
        .await?;
        let other = bed.status().await?;
        unread("vdo", &other)?;
        Ok(())
    })
}
