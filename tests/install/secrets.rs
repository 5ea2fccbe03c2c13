//! Where secrets go, and where they do not.

use crate::bed::{Bed, OPERATOR};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use vdo_testbed::{Grammar, parsed};

/// The real drivers' own parsers read what was meant.
pub async fn password_arrives_byte_exact(bed: &Bed) -> Result<()> {
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

    // The cloud provider has logged in with it: the nodes are initialised.
    let logins = bed.vcenter.logins().await?;
    assert!(logins.values().any(|l| l.succeeded > 0), "{logins:?}");
    let config = bed.get("v1", "ConfigMap", "kube-system", "vsphere-cloud-config").await?;
    let conf = config["data"]["vsphere.conf"].as_str().context("vsphere.conf")?;
    assert!(!conf.contains(bed.vcenter.password()), "no credentials in the ConfigMap");
    parsed(Grammar::Cpi, conf)?;
    Ok(())
}

pub fn decoded(secret: &Value, key: &str) -> Result<String> {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD.decode(secret["data"][key].as_str().context("the key")?)?;
    Ok(String::from_utf8(bytes)?)
}

/// Secrets are watched by name. The one list is of metadata, in the driver's own namespace before that goes.
pub async fn secrets_are_watched_by_name(bed: &Bed) -> Result<()> {
    let asked = bed
        .cluster
        .audit()
        .requests(|e| e.user == OPERATOR && e.resource == "secrets")
        .await?;
    ensure!(!asked.is_empty(), "the operator has never asked for a Secret");
    let by_name = |uri: &str| uri.contains("fieldSelector=metadata.name");
    let last_look = |e: &vdo_testbed::Entry| e.verb == "list" && e.namespace == "vmware-system-csi";
    let listed = asked.only(|e| matches!(e.verb.as_str(), "list" | "watch") && !by_name(&e.uri) && !last_look(e));
    ensure!(listed.is_empty(), "Secrets were listed:\n{listed}");
    Ok(())
}

/// The password is in the Secrets of the drivers and nowhere else.
pub async fn secrets_are_nowhere(bed: &Bed) -> Result<()> {
    use base64::Engine as _;
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
}
