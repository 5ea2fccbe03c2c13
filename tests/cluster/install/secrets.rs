// SPDX-License-Identifier: Apache-2.0
//! Where secrets go, and where they do not.

use super::{restart, until_at_rest};
use crate::common::{Bed, OPERATOR};
use crate::fixture::INSTALLED;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use vdo_testbed::{Grammar, Mark, parsed};

/// The real drivers' own parsers read what was meant.
#[test]
fn password_arrives_byte_exact_in_driver_configuration() -> Result<()> {
    INSTALLED.run(async |bed| {
        until_at_rest(bed).await?;
        let secret = bed.get("v1", "Secret", "vmware-system-csi", "vsphere-config-secret").await?;
        let tree = parsed(Grammar::Csi, &decoded(&secret, "csi-vsphere.conf")?)?;
        let text = tree.to_string();
        let center = tree
            .pointer("/VirtualCenter")
            .and_then(Value::as_object)
            .and_then(|m| m.values().next())
            .context("no vCenter")?;
        let field = |name: &str| {
            center
                .as_object()
                .into_iter()
                .flatten()
                .find(|(k, _)| k.eq_ignore_ascii_case(name))
                .and_then(|(_, v)| v.as_str())
                .map(str::to_owned)
        };
        assert_eq!(field("password").as_deref(), Some(bed.vcenter.password()), "{text}");
        assert_eq!(field("user").as_deref(), Some(bed.vcenter.user()), "{text}");
        let uid = bed.get("v1", "Namespace", "", "kube-system").await?["metadata"]["uid"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        assert!(text.contains(&uid), "the cluster id is the UID of kube-system: {text}");

        let config = bed.get("v1", "ConfigMap", "kube-system", "vsphere-cloud-config").await?;
        let conf = config["data"]["vsphere.conf"].as_str().context("vsphere.conf")?;
        assert!(!conf.contains(bed.vcenter.password()), "no credentials in the ConfigMap");
        parsed(Grammar::Cpi, conf)?;
        Ok(())
    })
}

fn decoded(secret: &Value, key: &str) -> Result<String> {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD.decode(secret["data"][key].as_str().context("the key")?)?;
    Ok(String::from_utf8(bytes)?)
}

/// Secrets are watched by name. The one list is of metadata, in the driver's own namespace before that goes.
pub async fn ensure_secrets_are_watched_by_name(bed: &Bed, since: Mark) -> Result<()> {
    let asked = bed
        .cluster
        .audit()
        .since(since)
        .await?
        .of(OPERATOR)
        .only(|e| e.resource == "secrets");
    ensure!(!asked.is_empty(), "the operator has never asked for a Secret");
    let by_name = |uri: &str| uri.contains("fieldSelector=metadata.name");
    let last_look = |e: &vdo_testbed::Entry| e.verb == "list" && e.namespace == "vmware-system-csi";
    let listed = asked.only(|e| matches!(e.verb.as_str(), "list" | "watch") && !by_name(&e.uri) && !last_look(e));
    ensure!(listed.is_empty(), "Secrets were listed:\n{listed}");
    Ok(())
}

#[test]
fn secrets_after_restart_are_watched_by_name() -> Result<()> {
    INSTALLED.run(async |bed| {
        bed.kill_operator();
        let mark = bed.cluster.audit().mark().await?;
        restart(bed).await?;
        ensure_secrets_are_watched_by_name(bed, mark).await
    })
}

/// The password is in the Secrets of the drivers and nowhere else.
#[test]
fn password_is_in_no_log_metric_or_other_object() -> Result<()> {
    use base64::Engine as _;
    INSTALLED.run(async |bed| {
        // The operator's process may be new: it has to have something to say.
        until_at_rest(bed).await?;
        let password = bed.vcenter.password();
        let shapes = [
            password.to_owned(),
            base64::engine::general_purpose::STANDARD.encode(password),
            serde_json::to_string(password)?.trim_matches('"').to_owned(),
        ];
        let mut places = vec![
            ("the log".to_owned(), std::fs::read_to_string(bed.operator_log())?),
            ("the metrics".into(), bed.fetch("/metrics").await?),
        ];
        for (api_version, kind) in [
            ("vdo.vmware.com/v1alpha1", "VDOConfig"),
            ("vdo.vmware.com/v1alpha1", "VsphereCloudConfig"),
            ("v1", "ConfigMap"),
            ("events.k8s.io/v1", "Event"),
            ("apps/v1", "DaemonSet"),
            ("apps/v1", "Deployment"),
        ] {
            for object in bed.list(api_version, kind, "").await? {
                places.push((format!("{kind} {}", object["metadata"]["name"]), object.to_string()));
            }
        }
        for (place, text) in places {
            for shape in &shapes {
                assert!(!text.contains(shape.as_str()), "the password is in {place}");
            }
        }
        Ok(())
    })
}
