//! The main job, from an empty cluster to healthy drivers and back, on a real control plane with the real cloud provider.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

mod bed;

use anyhow::{Context, Result, ensure};
use bed::{Bed, NEXT_PASSWORD, NS, OPERATOR, PATIENCE, condition, name};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::Command;
use vdo_testbed::{Binaries, Grammar, Part, Probe, parsed, until};

#[tokio::test(flavor = "multi_thread")]
async fn from_an_empty_cluster_to_healthy_drivers_and_back() -> Result<()> {
    bed::prepare();
    let mut bed = Bed::start().await?;
    the_deployment_runs_before_any_node_is_initialised(&bed).await?;
    bed.start_operator().await?;
    install(&bed).await?;
    password_arrives_byte_exact(&bed).await?;
    nothing_is_asked_at_rest(&bed).await?;
    what_is_shown(&bed).await?;
    people_see_the_same(&mut bed).await?;
    drift_is_repaired(&bed).await?;
    a_changed_secret_rolls_its_consumers_and_no_others(&bed).await?;
    another_version_replaces_and_prunes(&bed).await?;
    paused_and_removed(&bed).await?;
    a_restart_writes_nothing(&mut bed).await?;
    secrets_are_nowhere(&bed).await?;
    secrets_are_watched_by_name(&bed).await?;
    removal_leaves_what_is_not_ours(&bed).await?;
    Ok(())
}

/// The operator brings what initialises nodes, so it has to run before: admitted in its restricted namespace, on the control
/// plane, not to be evicted. The simulated nodes run no image, so the pod is looked at and taken away again.
async fn the_deployment_runs_before_any_node_is_initialised(bed: &Bed) -> Result<()> {
    let manifest = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/operator.yaml");
    bed.cluster.apply_file(manifest).await?;
    let pod = until("the operator's pod to run", PATIENCE, async || {
        let pods = bed.list("v1", "Pod", "app.kubernetes.io/name=vdo-operator").await?;
        let running = pods.iter().find(|p| p["status"]["phase"] == "Running").cloned();
        let deployment = bed.get("apps/v1", "Deployment", NS, "vdo-operator").await?;
        Ok(running.map_or_else(|| Probe::not_yet(&deployment["status"]), Probe::Ready))
    })
    .await?;
    assert_eq!(pod["spec"]["nodeName"], "cp-1");
    assert_eq!(pod["spec"]["priority"], 2_000_000_000);
    bed.delete("apps/v1", "Deployment", NS, "vdo-operator").await
}

/// A Secret, a connection and an empty VDOConfig are all that is needed.
async fn install(bed: &Bed) -> Result<()> {
    let mark = bed.cluster.audit().mark().await?;
    bed.apply_samples().await?;
    let config = bed.until_ready().await?;
    let versions: BTreeMap<&str, &str> = config["status"]["drivers"]
        .as_array()
        .context("drivers")?
        .iter()
        .filter_map(|d| Some((d["name"].as_str()?, d["version"].as_str()?)))
        .collect();
    assert_eq!(
        versions,
        BTreeMap::from([("vsphere-cpi", "1.34.0"), ("vsphere-csi", "3.7.3")]),
        "the CPI of the minor and the newest CSI that fits"
    );

    for node in bed.list("v1", "Node", "").await? {
        let id = node["spec"]["providerID"].as_str().unwrap_or_default();
        ensure!(id.starts_with("vsphere://"), "{} has provider ID {id:?}", name(&node));
        ensure!(
            !node["spec"]["taints"].to_string().contains("uninitialized"),
            "{} still bears the taint",
            name(&node)
        );
    }
    let controller = bed
        .get("apps/v1", "Deployment", "vmware-system-csi", "vsphere-csi-controller")
        .await?;
    assert_eq!(controller["spec"]["replicas"], 1, "one replica for one control-plane node");
    assert_eq!(controller["status"]["readyReplicas"], 1);
    for owned in bed.owned().await? {
        let live = bed
            .get(
                owned["apiVersion"].as_str().unwrap_or_default(),
                owned["kind"].as_str().unwrap_or_default(),
                owned["metadata"]["namespace"].as_str().unwrap_or_default(),
                owned["metadata"]["name"].as_str().unwrap_or_default(),
            )
            .await?;
        let managers = live["metadata"]["managedFields"].to_string();
        ensure!(managers.contains("\"vdo\""), "{} is not managed by vdo: {managers}", name(&owned));
    }
    let requests = bed.operator_requests(mark).await?;
    let objects = usize::try_from(config["status"]["inventory"]["objects"].as_i64().context("inventory")?)?;
    println!("install of {objects} objects: {} requests\n{requests}", requests.len());
    ensure!(
        requests.len() <= 2 * objects + 10,
        "{} requests for {objects} objects:\n{requests}",
        requests.len()
    );
    let refused = requests.only(|e| e.code == 403 || e.code == 409 || e.code >= 500);
    ensure!(refused.is_empty(), "requests were refused:\n{refused}");
    Ok(())
}

/// The real drivers' own parsers read what was meant.
async fn password_arrives_byte_exact(bed: &Bed) -> Result<()> {
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

fn decoded(secret: &Value, key: &str) -> Result<String> {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD.decode(secret["data"][key].as_str().context("the key")?)?;
    Ok(String::from_utf8(bytes)?)
}

/// Ten forced resyncs, no request.
async fn nothing_is_asked_at_rest(bed: &Bed) -> Result<()> {
    let mark = bed.cluster.audit().mark().await?;
    let before = bed.reconciles().await?;
    for round in 0..10 {
        bed.merge(
            "vdo.vmware.com/v1alpha1",
            "VDOConfig",
            NS,
            "vdo",
            json!({"metadata": {"annotations": {"vdo.vmware.com/reconcile-at": round.to_string()}}}),
        )
        .await?;
        until("the resync to be made", PATIENCE, async || {
            let now = bed.reconciles().await?;
            Ok(Probe::when(now > before + round, format!("{} reconciles so far", now - before)))
        })
        .await?;
    }
    let requests = bed.operator_requests(mark).await?;
    ensure!(requests.is_empty(), "at rest the operator asked:\n{requests}");
    Ok(())
}

/// Conditions, columns, events, metrics.
async fn what_is_shown(bed: &Bed) -> Result<()> {
    let config = bed.get("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await?;
    for (kind, status) in [
        ("Ready", "True"),
        ("Reconciling", "False"),
        ("Stalled", "False"),
        ("CloudProviderReady", "True"),
        ("StorageReady", "True"),
        ("ConnectionsReady", "True"),
        ("NodesInitialized", "True"),
    ] {
        let found = condition(&config, kind);
        assert_eq!(found["status"], status, "{kind}: {found}");
        assert_eq!(found["observedGeneration"], config["metadata"]["generation"], "{found}");
    }
    assert_eq!(config["status"]["health"], "Healthy");
    let connection = bed.get("vdo.vmware.com/v1alpha1", "VsphereCloudConfig", NS, "vc1").await?;
    for kind in ["Authenticated", "DatacentersFound", "NodesFound"] {
        let found = condition(&connection, kind);
        assert_eq!(found["status"], "True", "{kind}: {found}");
    }
    let credential = &connection["status"]["credential"];
    assert_eq!(credential["verified"], credential["version"], "{credential}");
    assert_eq!(connection["status"]["machines"]["found"], 4, "{}", connection["status"]["machines"]);
    assert_eq!(config["status"]["nodes"], json!({"total": 4, "initialized": 4, "csiRegistered": 4}));
    let columns = kubectl(bed, &["get", "vdoconfig,vsphereconnection", "-n", NS])?;
    println!("{columns}");
    for word in [
        "READY",
        "HEALTH",
        "CPI",
        "CSI",
        "1.34.0",
        "3.7.3",
        "Healthy",
        "ADDRESS",
        "8.0.3",
        "administrator@vsphere.local",
    ] {
        assert!(columns.contains(word), "{word} is not in:\n{columns}");
    }
    let wide = kubectl(bed, &["get", "vdoconfig", "-n", NS, "-o", "wide"])?;
    println!("{wide}");
    for word in ["CPI RUNNING", "CSI RUNNING", "NEXT RETRY", "UPGRADEABLE", "MATRIX", "REASON"] {
        assert!(wide.contains(word), "{word} is not in:\n{wide}");
    }
    assert_eq!(wide.matches("3.7.3").count(), 2, "wanted and running:\n{wide}");
    for alias in ["vsc", "vsphereconnections", "vsphere"] {
        assert!(kubectl(bed, &["get", alias, "-n", NS])?.contains("vc1"), "kubectl get {alias}");
    }
    let events = bed.list("events.k8s.io/v1", "Event", "").await?;
    let ready: Vec<&Value> = events
        .iter()
        .filter(|e| e["regarding"]["kind"] == "VDOConfig" && e["reason"] == "Healthy")
        .collect();
    assert_eq!(ready.len(), 1, "one event for one transition: {ready:?}");
    let metrics = bed.fetch("/metrics").await?;
    for line in [
        "vdo_driver_info{driver=\"vsphere-cpi\",version=\"1.34.0\"} 1",
        "vdo_connection_up{connection=\"vc1\"} 1",
    ] {
        assert!(metrics.contains(line), "{line} is not in:\n{metrics}");
    }
    assert!(bed.fetch("/readyz").await?.starts_with("HTTP/1.1 200"));
    assert!(bed.fetch("/healthz").await?.starts_with("HTTP/1.1 200"));
    Ok(())
}

fn kubectl(bed: &Bed, args: &[&str]) -> Result<String> {
    let output = Command::new(Binaries::ensure(&[Part::Kubectl])?.path(Part::Kubectl))
        .arg("--kubeconfig")
        .arg(bed.cluster.kubeconfig())
        .args(args)
        .output()?;
    ensure!(
        output.status.success(),
        "kubectl {args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8(output.stdout)?)
}

async fn people_see_the_same(bed: &mut Bed) -> Result<()> {
    let (code, status, _) = bed.vdoctl(&["status"])?;
    println!("{status}");
    assert_eq!(code, 0, "{status}");
    for word in [
        "v1.34.4",
        "4 nodes",
        "8.0.3 build 24022515",
        "administrator@vsphere.local",
        "CPI",
        "1.34.0",
        "CSI",
        "3.7.3",
        "healthy",
    ] {
        assert!(status.contains(word), "{word} is not in:\n{status}");
    }
    let (code, json, _) = bed.vdoctl(&["status", "-o", "json"])?;
    assert_eq!(
        (code, serde_json::from_str::<Value>(&json)?["apiVersion"].as_str()),
        (0, Some("vdoctl/v1"))
    );
    let (code, chosen, _) = bed.vdoctl(&["matrix", "resolve"])?;
    assert_eq!(code, 0, "{chosen}");
    assert!(chosen.contains("1.34.0") && chosen.contains("3.7.3"), "{chosen}");

    let (code, rendered, _) = bed.vdoctl(&["render"])?;
    assert_eq!(code, 0);
    assert_eq!(
        vdo::yaml::load_all(&rendered)?.len(),
        bed.owned().await?.len(),
        "as many objects as there are"
    );
    use base64::Engine as _;
    let password = base64::engine::general_purpose::STANDARD.encode(bed.vcenter.password());
    assert!(!rendered.contains(&password) && rendered.contains("******"), "secrets are masked");
    assert!(bed.vdoctl(&["render", "--show-secrets"])?.1.contains(&password), "unless asked for");

    let (code, out, err) = bed.vdoctl(&["diff"])?;
    assert_eq!(code, 0, "{out}{err}");
    bed.kill_operator();
    let (ns, map) = ("vmware-system-csi", "internal-feature-states.csi.vsphere.vmware.com");
    bed.merge("v1", "ConfigMap", ns, map, json!({"data": {"trigger-csi-fullsync": "true"}}))
        .await?;
    let (code, out, _) = bed.vdoctl(&["diff"])?;
    println!("{out}");
    assert_eq!(code, 1, "{out}");
    assert!(
        out.contains(map) && out.contains("trigger-csi-fullsync") && out.contains("true") && out.contains("false"),
        "{out}"
    );
    bed.start_operator().await
}

async fn drift_is_repaired(bed: &Bed) -> Result<()> {
    let ns = "vmware-system-csi";
    bed.merge(
        "v1",
        "ConfigMap",
        ns,
        "internal-feature-states.csi.vsphere.vmware.com",
        json!({"data": {"trigger-csi-fullsync": "true"}}),
    )
    .await?;
    until("an edit to be undone", PATIENCE, async || {
        let found = bed
            .get("v1", "ConfigMap", ns, "internal-feature-states.csi.vsphere.vmware.com")
            .await?;
        Ok(Probe::when(found["data"]["trigger-csi-fullsync"] == "false", &found["data"]))
    })
    .await?;
    bed.delete("v1", "Service", ns, "vsphere-csi-controller").await?;
    until("a deleted object to be back", PATIENCE, async || {
        let found = bed.get("v1", "Service", ns, "vsphere-csi-controller").await?;
        Ok(Probe::when(found != Value::Null, "not there"))
    })
    .await
}

async fn template(bed: &Bed, kind: &str, namespace: &str, object: &str) -> Result<String> {
    let found = bed.get("apps/v1", kind, namespace, object).await?;
    Ok(found["spec"]["template"].to_string())
}

async fn a_changed_secret_rolls_its_consumers_and_no_others(bed: &Bed) -> Result<()> {
    let consumers = [
        ("DaemonSet", "kube-system", "vsphere-cloud-controller-manager"),
        ("Deployment", "vmware-system-csi", "vsphere-csi-controller"),
    ];
    let others = [
        ("DaemonSet", "vmware-system-csi", "vsphere-csi-node"),
        ("DaemonSet", "vmware-system-csi", "vsphere-csi-node-windows"),
    ];
    let mut before = BTreeMap::new();
    for (kind, ns, object) in consumers.iter().chain(&others) {
        before.insert(*object, template(bed, kind, ns, object).await?);
    }
    bed.apply(&bed.secret(NEXT_PASSWORD)).await?;
    for (kind, ns, object) in &consumers {
        until(&format!("{object} to roll"), PATIENCE, async || {
            let now = template(bed, kind, ns, object).await?;
            Ok(Probe::when(now != before[object], "its pod template is as it was"))
        })
        .await?;
    }
    for (kind, ns, object) in &others {
        assert_eq!(
            template(bed, kind, ns, object).await?,
            before[object],
            "{object} does not read the configuration and must not roll"
        );
    }
    bed.apply(&bed.secret(bed.vcenter.password())).await?;
    for (kind, ns, object) in &consumers {
        until(&format!("{object} to return"), PATIENCE, async || {
            let now = template(bed, kind, ns, object).await?;
            Ok(Probe::when(now == before[object], "its pod template is another"))
        })
        .await?;
    }
    bed.until_ready().await?;
    Ok(())
}

/// A pin changes the version; what the new state no longer has is removed, after it is proven.
async fn another_version_replaces_and_prunes(bed: &Bed) -> Result<()> {
    bed.apply(&bed.config(json!({"cloudProvider": {}, "storageProvider": {"version": "3.6.3", "windows": false}})))
        .await?;
    let config = bed.until_ready().await?;
    assert_eq!(
        config["status"]["drivers"][1]["version"], "3.6.3",
        "{}",
        config["status"]["drivers"]
    );
    assert_eq!(
        bed.get("apps/v1", "DaemonSet", "vmware-system-csi", "vsphere-csi-node-windows")
            .await?,
        Value::Null,
        "it is no longer asked for"
    );
    let image = template(bed, "Deployment", "vmware-system-csi", "vsphere-csi-controller").await?;
    assert!(image.contains("driver:v3.6.3"), "{image}");

    // Policy Compatible: without the pin what runs stays, because it still fits.
    bed.apply(&bed.config(json!({"cloudProvider": {}, "storageProvider": {"windows": false}})))
        .await?;
    let config = bed.until_ready().await?;
    assert_eq!(config["status"]["drivers"][1]["version"], "3.6.3");
    assert_eq!(config["status"]["drivers"][1]["available"], "3.7.3");
    // Policy Latest moves on.
    bed.apply(&bed.config(json!({"updatePolicy": "Latest", "cloudProvider": {}, "storageProvider": {}})))
        .await?;
    let config = bed.until_ready().await?;
    assert_eq!(config["status"]["drivers"][1]["version"], "3.7.3");
    Ok(())
}

/// Paused: reported, not written. Removed: the drivers go and the object stays. Managed: all is back.
async fn paused_and_removed(bed: &Bed) -> Result<()> {
    let mark = bed.cluster.audit().mark().await?;
    bed.apply(&bed.config(json!({"managementState": "Paused", "cloudProvider": {}, "storageProvider": {"version": "3.6.3"}})))
        .await?;
    let found = bed.until_reason("Ready", "Paused").await?;
    assert!(found["message"].to_string().contains("writes would be made"), "{found}");
    let written = bed
        .operator_requests(mark)
        .await?
        .writes()
        .only(|e| e.subresource != "status" && e.resource != "events");
    ensure!(written.is_empty(), "while paused the operator wrote:\n{written}");

    bed.apply(&bed.config(json!({"managementState": "Removed"}))).await?;
    bed.until_reason("Ready", "Removed").await?;
    let left: Vec<String> = bed.owned().await?.iter().map(name).collect();
    ensure!(left.is_empty(), "left behind: {left:?}");
    assert_eq!(bed.status().await?["drivers"], Value::Null);

    bed.apply(&bed.config(json!({}))).await?;
    bed.until_ready().await?;
    Ok(())
}

async fn a_restart_writes_nothing(bed: &mut Bed) -> Result<()> {
    let mark = bed.cluster.audit().mark().await?;
    bed.kill_operator();
    bed.start_operator().await?;
    until("the first reconcile after the restart", PATIENCE, async || {
        Ok(Probe::when(bed.reconciles().await? > 1, "none yet"))
    })
    .await?;
    let writes = bed.operator_requests(mark).await?.writes();
    ensure!(writes.is_empty(), "after a restart the operator wrote:\n{writes}");
    Ok(())
}

/// Secrets are watched by name. The one list is of metadata, in the driver's own namespace before that goes.
async fn secrets_are_watched_by_name(bed: &Bed) -> Result<()> {
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
async fn secrets_are_nowhere(bed: &Bed) -> Result<()> {
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

async fn removal_leaves_what_is_not_ours(bed: &Bed) -> Result<()> {
    let foreign = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine", "namespace": "vmware-system-csi"}});
    let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv-1"}, "spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Retain",
        "csi": {"driver": "csi.vsphere.vmware.com", "volumeHandle": "handle"}}});
    bed.apply(&foreign).await?;
    bed.apply(&volume).await?;
    let despite = json!({"metadata": {"annotations": {"vdo.vmware.com/remove-despite-volumes": "true"}}});
    bed.merge("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo", despite).await?;
    bed.uninstall().await?;
    let left: Vec<String> = bed.owned().await?.iter().map(name).collect();
    assert_eq!(
        left,
        ["Namespace /vmware-system-csi"],
        "only the namespace stays, because it holds something of somebody else"
    );
    assert_ne!(bed.get("v1", "ConfigMap", "vmware-system-csi", "mine").await?, Value::Null);
    assert_ne!(bed.get("v1", "PersistentVolume", "", "pv-1").await?, Value::Null);
    assert_eq!(
        bed.get("v1", "ConfigMap", NS, "vdo-inventory").await?,
        Value::Null,
        "the inventory goes last"
    );
    let refused = bed.cluster.audit().requests(|e| e.user == OPERATOR && e.code == 403).await?;
    assert!(refused.is_empty(), "the operator lacked rights:\n{refused}");
    Ok(())
}
