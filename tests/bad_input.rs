//! Bad input: a clear error that names the object and the way out, and the drivers that run are left as they are.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

mod bed;

use anyhow::{Context, Result, ensure};
use bed::{Bed, NS, PATIENCE, condition};
use serde_json::{Value, json};
use vdo_testbed::{Mark, Probe, until};

#[tokio::test(flavor = "multi_thread")]
async fn bad_input_is_explained_and_nothing_that_runs_is_touched() -> Result<()> {
    bed::prepare();
    let mut bed = Bed::start().await?;
    bed.flags.push(("connection-interval", "2s"));
    bed.start_operator().await?;
    before_anything_is_installed(&bed).await?;
    bed.apply_samples().await?;
    bed.until_ready().await?;
    secrets(&bed).await?;
    passwords(&bed).await?;
    datacenters(&bed).await?;
    names_and_versions(&bed).await?;
    vcenters(&mut bed).await?;
    missing_right(&bed).await?;
    two_configs(&bed).await?;
    refused_by_the_schema(&bed).await?;
    objects_of_the_original(&bed).await
}

/// What must not change while something is wrong.
struct Guard {
    workloads: Vec<(String, Value, Value)>,
    mark: Mark,
}

async fn workloads(bed: &Bed) -> Result<Vec<(String, Value, Value)>> {
    let mut all = Vec::new();
    for kind in ["DaemonSet", "Deployment"] {
        for object in bed.list("apps/v1", kind, "vdo.vmware.com/driver").await? {
            all.push((
                object["metadata"]["name"].to_string(),
                object["metadata"]["uid"].clone(),
                object["spec"].clone(),
            ));
        }
    }
    ensure!(all.len() == 4, "there are {} workloads", all.len());
    Ok(all)
}

async fn guard(bed: &Bed) -> Result<Guard> {
    Ok(Guard {
        workloads: workloads(bed).await?,
        mark: bed.cluster.audit().mark().await?,
    })
}

/// Nothing but status and events was written, and the workloads are the same.
async fn untouched(bed: &Bed, guard: Guard, case: &str) -> Result<()> {
    let written = bed
        .operator_requests(guard.mark)
        .await?
        .writes()
        .only(|e| e.subresource != "status" && e.resource != "events");
    ensure!(written.is_empty(), "{case}: the operator wrote:\n{written}");
    ensure!(workloads(bed).await? == guard.workloads, "{case}: a workload changed");
    Ok(())
}

/// Waits until a condition has this reason and its message holds these words: the object, what happened, what to do.
async fn told(bed: &Bed, (object, name): (&str, &str), (kind, reason): (&str, &str), words: &[&str]) -> Result<Value> {
    let found = until(
        &format!("{object} {name} to be {kind} for {reason} with the words {words:?}"),
        PATIENCE,
        async || {
            let live = bed.get("vdo.vmware.com/v1alpha1", object, NS, name).await?;
            let found = condition(&live, kind);
            let current = live["status"]["observedGeneration"] == live["metadata"]["generation"];
            let message = found["message"].as_str().unwrap_or_default();
            let told = current && found["reason"] == reason && words.iter().all(|word| message.contains(word));
            Ok(if told { Probe::Ready(found) } else { Probe::not_yet(found) })
        },
    )
    .await?;
    println!("{reason:24} {}", found["message"].as_str().unwrap_or_default());
    ensure!(
        found["lastTransitionTime"].is_string() && found["observedGeneration"].is_number(),
        "{found}"
    );
    Ok(found)
}

const VDO: (&str, &str) = ("VDOConfig", "vdo");
const VC1: (&str, &str) = ("VsphereCloudConfig", "vc1");

async fn before_anything_is_installed(bed: &Bed) -> Result<()> {
    bed.apply(&bed.config(json!({}))).await?;
    told(bed, VDO, ("Ready", "NoConnections"), &[NS, "create a VsphereCloudConfig"]).await?;
    ensure!(bed.owned().await?.is_empty(), "nothing is installed without a vCenter");
    Ok(())
}

async fn secrets(bed: &Bed) -> Result<()> {
    let restore = bed.secret(bed.vcenter.password());
    let (guard_missing, name) = (guard(bed).await?, "vc1-credentials");
    bed.delete("v1", "Secret", NS, name).await?;
    told(
        bed,
        VDO,
        ("Ready", "SecretNotFound"),
        &[name, NS, "kubernetes.io/basic-auth", "username and password"],
    )
    .await?;
    told(bed, VC1, ("CredentialsFound", "SecretNotFound"), &[name]).await?;
    untouched(bed, guard_missing, "missing Secret").await?;

    let opaque = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": NS}, "type": "Opaque", "stringData": {"username": "u", "password": "p"}});
    let guard_type = guard(bed).await?;
    bed.apply(&opaque).await?;
    told(
        bed,
        VDO,
        ("Ready", "SecretWrongType"),
        &[name, "Opaque", "kubernetes.io/basic-auth"],
    )
    .await?;
    untouched(bed, guard_type, "wrong type").await?;

    bed.delete("v1", "Secret", NS, name).await?;
    let guard_empty = guard(bed).await?;
    bed.apply(&bed.secret("")).await?;
    told(bed, VDO, ("Ready", "SecretIncomplete"), &[name, "password", "missing or empty"]).await?;
    untouched(bed, guard_empty, "empty password").await?;

    bed.apply(&restore).await?;
    bed.until_ready().await?;
    Ok(())
}

/// A wrong password is tried once and reaches no driver; a right one takes its place without help.
async fn passwords(bed: &Bed) -> Result<()> {
    let failed = async || {
        anyhow::Ok(
            bed.vcenter
                .logins()
                .await?
                .get(bed.vcenter.user())
                .map_or(0, |logins| logins.failed),
        )
    };
    let (guard, before) = (guard(bed).await?, failed().await?);
    bed.apply(&bed.secret("hunter2-wrong")).await?;
    let words = [
        bed.vcenter.user(),
        "vc1-credentials",
        "Correct username and password",
        "next attempt is at",
    ];
    told(bed, VC1, ("Authenticated", "InvalidCredentials"), &words).await?;
    told(bed, VC1, ("Ready", "InvalidCredentials"), &words).await?;
    told(bed, VDO, ("Ready", "ConnectionNotReady"), &["vc1", "Correct username and password"]).await?;
    // The connection is looked at every two seconds.
    tokio::time::sleep(std::time::Duration::from_secs(7)).await;
    untouched(bed, guard, "wrong password").await?;
    ensure!(
        failed().await? == before + 1,
        "the wrong password was sent {} times",
        failed().await? - before
    );
    let secret = bed.get("v1", "Secret", "vmware-system-csi", "vsphere-config-secret").await?;
    ensure!(!secret.to_string().contains("hunter2"), "it reached the driver");
    let log = std::fs::read_to_string(bed.operator_log())?;
    ensure!(!log.contains("hunter2"), "it is in the log");

    bed.apply(&bed.secret(bed.vcenter.password())).await?;
    bed.until_ready().await?;
    bed.until_condition("VsphereCloudConfig", "vc1", "Authenticated", "Healthy").await?;
    ensure!(failed().await? == before + 1, "a right password failed");
    Ok(())
}

async fn datacenters(bed: &Bed) -> Result<()> {
    let guard = guard(bed).await?;
    let mut wrong = bed.connection("vc1");
    wrong["spec"]["datacenters"] = json!(["dc0"]);
    bed.apply(&wrong).await?;
    told(
        bed,
        VC1,
        ("DatacentersFound", "DatacenterNotFound"),
        &["\"dc0\"", "did you mean /DC0?"],
    )
    .await?;
    told(bed, VDO, ("Ready", "ConnectionNotReady"), &["vc1", "did you mean /DC0?"]).await?;
    untouched(bed, guard, "wrong datacenter").await?;
    let mut right = bed.connection("vc1");
    right["spec"]["datacenters"] = json!([]);
    bed.apply(&right).await?;
    bed.until_ready().await?;
    Ok(())
}

async fn names_and_versions(bed: &Bed) -> Result<()> {
    for (spec, reason, words) in [
        (
            json!({"cloudProvider": {}, "storageProvider": {"vsphereCloudConfigs": ["vc9"]}}),
            "ConnectionNotFound",
            &["vc9", "there are: vc1"][..],
        ),
        (
            json!({"storageProvider": {"version": "9.9.9"}, "cloudProvider": {}}),
            "UnknownVersion",
            &["vsphere-csi", "9.9.9", "3.7.3"],
        ),
        (
            json!({"storageProvider": {"version": "3.5.1"}, "cloudProvider": {}}),
            "IncompatiblePin",
            &["3.5.1", "1.33", "1.34", "3.7.3"],
        ),
        (
            json!({"cloudProvider": {"version": "1.33.1"}, "storageProvider": {}}),
            "IncompatiblePin",
            &["vsphere-cpi", "1.33.1", "1.34"],
        ),
        (
            json!({"cloudProvider": {"version": "newest"}, "storageProvider": {}}),
            "InvalidSpec",
            &["spec.cloudProvider.version", "newest"],
        ),
        (
            json!({"cloudProvider": {"values": {"logLevl": 3}}, "storageProvider": {}}),
            "InvalidValues",
            &["logLevl", "vsphere-cpi"],
        ),
    ] {
        let guard = guard(bed).await?;
        bed.apply(&bed.config(spec)).await?;
        told(bed, VDO, ("Ready", reason), words).await?;
        told(bed, VDO, ("Stalled", reason), words).await?;
        untouched(bed, guard, reason).await?;
    }
    bed.apply(&bed.config(json!({}))).await?;
    bed.until_ready().await?;
    Ok(())
}

async fn vcenters(bed: &mut Bed) -> Result<()> {
    // Another thumbprint: the presented one is shown.
    let guard_print = guard(bed).await?;
    let mut wrong = bed.connection("vc1");
    wrong["spec"]["thumbprint"] = "AA".repeat(32).into();
    bed.apply(&wrong).await?;
    told(
        bed,
        VC1,
        ("Trusted", "ThumbprintMismatch"),
        &[&bed.vcenter.thumbprint_sha256(), &bed.vcenter.address()],
    )
    .await?;
    told(
        bed,
        VDO,
        ("Ready", "ConnectionNotReady"),
        &["vc1", &bed.vcenter.thumbprint_sha256()],
    )
    .await?;
    untouched(bed, guard_print, "wrong thumbprint").await?;

    // Something else listens there.
    let guard_other = guard(bed).await?;
    let bundle = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other-ca", "namespace": NS}, "data": {"ca.crt": bed.cluster.ca_pem()}});
    bed.apply(&bundle).await?;
    let port: u16 = bed
        .cluster
        .server_url()
        .rsplit(':')
        .next()
        .context("a port")?
        .trim_end_matches('/')
        .parse()?;
    let mut other = bed.connection("vc1");
    other["spec"]["thumbprint"] = "".into();
    other["spec"]["port"] = port.into();
    other["spec"]["caBundle"] = json!({"configMap": "other-ca"});
    bed.apply(&other).await?;
    told(bed, VC1, ("IsVCenter", "NotAVcenter"), &["127.0.0.1"]).await?;
    untouched(bed, guard_other, "not a vCenter").await?;

    bed.delete("vdo.vmware.com/v1alpha1", "VsphereCloudConfig", NS, "vc1").await?;
    bed.apply(&bed.connection("vc1")).await?;
    bed.until_ready().await?;

    // An outage is no statement about what runs: Unknown, and the last answer is kept.
    let guard_outage = guard(bed).await?;
    bed.vcenter.stop();
    let found = told(bed, VC1, ("Ready", "Unreachable"), &[&bed.vcenter.address()]).await?;
    assert_eq!(found["status"], "Unknown", "{found}");
    until("the VDOConfig to say so", PATIENCE, async || {
        let config = bed.get("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await?;
        let found = condition(&config, "ConnectionsReady");
        Ok(Probe::when(
            found["status"] == "Unknown" && condition(&config, "Ready")["status"] == "True",
            found,
        ))
    })
    .await?;
    untouched(bed, guard_outage, "outage").await?;
    bed.vcenter.resume().await?;
    bed.until_condition("VsphereCloudConfig", "vc1", "Ready", "Healthy").await?;

    // A name that leads nowhere, known before anything was seen there.
    let mut nowhere = bed.connection("vc2");
    nowhere["spec"]["vcIp"] = "vcenter.invalid".into();
    let guard_name = guard(bed).await?;
    bed.apply(&nowhere).await?;
    told(
        bed,
        ("VsphereCloudConfig", "vc2"),
        ("Resolved", "NameNotResolved"),
        &["vcenter.invalid"],
    )
    .await?;
    told(bed, VDO, ("Ready", "ConnectionNotReady"), &["vc2", "vcenter.invalid"]).await?;
    untouched(bed, guard_name, "unknown name").await?;
    bed.delete("vdo.vmware.com/v1alpha1", "VsphereCloudConfig", NS, "vc2").await?;
    bed.until_ready().await?;
    Ok(())
}

/// A right that is missing is named as the rule to add, and is used as soon as it is given.
async fn missing_right(bed: &Bed) -> Result<()> {
    let role = bed
        .get("rbac.authorization.k8s.io/v1", "Role", "kube-system", "vdo-operator")
        .await?;
    let mut rules = role["rules"].as_array().context("rules")?.clone();
    for rule in &mut rules {
        if rule["resources"].to_string().contains("daemonsets") && rule["verbs"].to_string().contains("patch") {
            rule["verbs"] = json!(["create", "delete"]);
        }
    }
    bed.merge(
        "rbac.authorization.k8s.io/v1",
        "Role",
        "kube-system",
        "vdo-operator",
        json!({"rules": rules}),
    )
    .await?;
    let before = workloads(bed).await?;
    bed.apply(&bed.config(json!({"cloudProvider": {"values": {"logLevel": 4}}, "storageProvider": {}})))
        .await?;
    told(
        bed,
        VDO,
        ("Ready", "Forbidden"),
        &[
            "patch",
            "DaemonSet kube-system/vsphere-cloud-controller-manager",
            "apiGroups: [\"apps\"]",
            "resources: [daemonsets]",
            "Role in namespace kube-system",
        ],
    )
    .await?;
    ensure!(workloads(bed).await? == before, "a workload changed");
    bed.merge(
        "rbac.authorization.k8s.io/v1",
        "Role",
        "kube-system",
        "vdo-operator",
        json!({"rules": role["rules"]}),
    )
    .await?;
    bed.until_ready().await?;
    let daemon_set = bed
        .get("apps/v1", "DaemonSet", "kube-system", "vsphere-cloud-controller-manager")
        .await?;
    ensure!(
        daemon_set["spec"].to_string().contains("--v=4"),
        "the change came through once the right was there"
    );
    Ok(())
}

async fn two_configs(bed: &Bed) -> Result<()> {
    let guard = guard(bed).await?;
    let mut second = bed.config(json!({}));
    second["metadata"]["name"] = "second".into();
    bed.apply(&second).await?;
    told(
        bed,
        ("VDOConfig", "second"),
        ("Ready", "NotActive"),
        &["vmware-system-vdo/vdo", "delete one of the two"],
    )
    .await?;
    untouched(bed, guard, "second VDOConfig").await?;
    bed.delete("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "second").await?;
    until("the second VDOConfig to be gone", PATIENCE, async || {
        Ok(Probe::when(
            bed.get("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "second").await? == Value::Null,
            "still there",
        ))
    })
    .await
}

/// What the schema can see is refused at once, with the words to write instead.
async fn refused_by_the_schema(bed: &Bed) -> Result<()> {
    let connection = |change: Value| {
        let mut object = bed.connection("vc3");
        object["spec"]
            .as_object_mut()
            .expect("a map")
            .extend(change.as_object().expect("a map").clone());
        object
    };
    let config = |spec: Value| {
        let mut object = bed.config(spec);
        object["metadata"]["name"] = "third".into();
        object
    };
    for (object, words) in [
        (
            connection(json!({"vcIp": "https://vcenter.example.com/sdk"})),
            "write the host name or IP address alone",
        ),
        (
            connection(json!({"thumbprint": "12:34"})),
            "write 40 (SHA-1) or 64 (SHA-256) hex digits",
        ),
        (
            connection(json!({"caBundle": {"configMap": "a"}})),
            "write either caBundle or thumbprint",
        ),
        (
            connection(json!({"thumbprint": "", "caBundle": {"configMap": "a", "secret": "b"}})),
            "write either configMap or secret",
        ),
        (connection(json!({"port": 70000})), "65535"),
        (
            config(json!({"storageProvider": {"vsphereCloudConfig": "a", "vsphereCloudConfigs": ["b"]}})),
            "write vsphereCloudConfigs (a list) alone",
        ),
        (
            config(json!({"images": {"registry": "https://registry.example.com/"}})),
            "without https://",
        ),
        (
            config(json!({"storageProvider": {"fileVolumes": {"netPermissions": [{"ips": "*", "permissions": "ALL"}]}}})),
            "READ_WRITE",
        ),
        (
            config(json!({"storageProvider": {"customKubeletPath": "kubelet"}})),
            "write an absolute path",
        ),
    ] {
        let error = bed.apply(&object).await.err().with_context(|| format!("{object} was accepted"))?;
        let text = format!("{error:#}");
        ensure!(text.contains(words), "{words:?} is not in {text}");
    }
    // Volumes are registered under the first one: another is refused even where none was written before.
    let guard = guard(bed).await?;
    bed.apply(&bed.config(json!({"cloudProvider": {}, "storageProvider": {"clusterId": "another"}})))
        .await?;
    told(
        bed,
        VDO,
        ("Ready", "InvalidSpec"),
        &["spec.storageProvider.clusterId", &status_id(bed).await?],
    )
    .await?;
    untouched(bed, guard, "another cluster id").await?;
    bed.apply(&bed.config(json!({}))).await?;
    bed.apply(&bed.config(json!({"cloudProvider": {}, "storageProvider": {"clusterId": status_id(bed).await?}})))
        .await?;
    bed.until_ready().await?;
    let error = bed
        .apply(&bed.config(json!({"cloudProvider": {}, "storageProvider": {"clusterId": "another"}})))
        .await
        .err()
        .context("it was accepted")?;
    ensure!(format!("{error:#}").contains("clusterId cannot be changed"), "{error:#}");
    Ok(())
}

async fn status_id(bed: &Bed) -> Result<String> {
    Ok(bed.status().await?["clusterId"].as_str().context("no cluster id")?.to_owned())
}

/// Objects as they were written for the original operator.
async fn objects_of_the_original(bed: &Bed) -> Result<()> {
    for object in [
        json!({"apiVersion": "vdo.vmware.com/v1alpha1", "kind": "VsphereCloudConfig", "metadata": {"name": "old", "namespace": "default"},
            "spec": {"vcIp": "10.10.10.10", "insecure": true, "credentials": "vc-creds", "thumbprint": "", "datacenters": ["DC0"]}}),
        json!({"apiVersion": "vdo.vmware.com/v1alpha1", "kind": "VDOConfig", "metadata": {"name": "old", "namespace": "default"},
            "spec": {"cloudProvider": {"vsphereCloudConfigs": ["old"], "topology": {"zone": "k8s-zone", "region": "k8s-region"}},
                "storageProvider": {"vsphereCloudConfig": "old", "clusterDistribution": "OpenShift", "customKubeletPath": "/var/data/kubelet",
                    "fileVolumes": {"vsanDataStoreUrl": ["ds:///vmfs/volumes/vsan:1/"], "netPermissions": [{"ips": "10.0.0.0/8", "permissions": "READ_ONLY", "rootSquash": true}]}}}}),
        json!({"apiVersion": "vdo.vmware.com/v1alpha1", "kind": "CompatibilityConfig", "metadata": {"name": "old", "namespace": "default"},
            "spec": {"matrixURL": "https://example.com/matrix.json"}}),
    ] {
        bed.apply(&object).await?;
    }
    Ok(())
}
