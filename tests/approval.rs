//! `spec.approval: Manual`: nothing changes until a person has approved the plan, what was approved is kept, and a restart asks
//! nobody again. And without rehearsals an installation asks half as much. On a real control plane.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

mod bed;

use anyhow::{Context, Result, ensure};
use bed::{Bed, NS, PATIENCE, condition};
use serde_json::{Value, json};
use vdo_testbed::{Mark, Probe, until};

fn manual(csi: &str) -> Value {
    json!({"approval": "Manual", "cloudProvider": {}, "storageProvider": {"version": csi}})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_lets_every_new_state_happen_and_no_old_one() -> Result<()> {
    bed::prepare();
    let mut bed = Bed::start().await?;
    bed.flags.push(("server-dry-run", "false"));
    bed.start_operator().await?;
    bed.apply(&bed.secret(bed.vcenter.password())).await?;
    bed.apply(&bed.connection("vc1")).await?;
    let mark = bed.cluster.audit().mark().await?;
    bed.apply(&bed.config(manual("3.6.3"))).await?;
    let first = waits(&bed, mark).await?;
    ensure!(bed.owned().await?.is_empty(), "something was installed unasked");
    ensure!(waits(&bed, mark).await? == first, "the hash does not last");

    // Another plan is another approval: the person looks at the first one and approves it too late.
    bed.apply(&bed.config(manual("3.7.3"))).await?;
    let second = until("another plan", PATIENCE, async || {
        let hash = waits(&bed, mark).await?;
        Ok(if hash == first { Probe::not_yet(hash) } else { Probe::Ready(hash) })
    })
    .await?;
    let (code, _, err) = bed.vdoctl(&["approve", &first])?;
    assert_eq!(code, 4, "{err}");
    assert!(err.contains(&second), "{err}");
    let (code, _, err) = bed.vdoctl(&["approve"])?;
    assert_eq!(code, 4, "without a hash it only says which one: {err}");
    let (code, out, err) = bed.vdoctl(&["plan"])?;
    assert_eq!(code, 1);
    assert!(
        out.contains(&second) && out.contains("not approved") && err.contains(&format!("vdoctl approve {second}")),
        "{out}{err}"
    );

    // It is killed in the middle of what was approved: the next run goes on without asking.
    let (code, _, err) = bed.vdoctl(&["approve", &second])?;
    assert_eq!(code, 0, "{err}");
    until("the first objects to be there", PATIENCE, async || {
        Ok(Probe::when(bed.owned().await?.len() > 3, "not yet"))
    })
    .await?;
    bed.kill_operator();
    bed.start_operator().await?;
    bed.until_ready().await?;
    assert_eq!(bed.status().await?["plan"], Value::Null, "nothing is left to do");

    drift_of_what_was_approved(&bed).await?;
    another_version(&bed, &second).await?;
    without_rehearsals_it_asks_half_as_much(&bed).await?;
    one_driver_is_refused_and_the_other_goes_on(&bed).await?;
    keys_that_are_drawn_are_no_other_plan(&mut bed).await
}

/// The condition says what is waited for and how to go on, and nothing is written meanwhile; gives the hash.
async fn waits(bed: &Bed, mark: Mark) -> Result<String> {
    let ready = bed.until_reason("Ready", "ApprovalRequired").await?;
    let config = bed.get("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await?;
    let plan = &config["status"]["plan"];
    let hash = plan["hash"].as_str().context("a hash")?.to_owned();
    let message = ready["message"].as_str().unwrap_or_default();
    for word in [
        format!("vdoctl approve {hash}"),
        format!("vdo.vmware.com/approve={hash}"),
        format!("of {} steps", plan["steps"]),
    ] {
        ensure!(message.contains(&word), "{word} is not in {message}");
    }
    ensure!(
        plan["approved"] == false && config["status"]["health"] == "Blocked",
        "{}",
        config["status"]
    );
    ensure!(condition(&config, "Stalled")["status"] == "True" && condition(&config, "Reconciling")["status"] == "False");
    let written = bed
        .operator_requests(mark)
        .await?
        .writes()
        .only(|e| e.subresource != "status" && e.resource != "events");
    ensure!(written.is_empty(), "while it waited the operator wrote:\n{written}");
    Ok(hash)
}

/// A whole installation, once more and undisturbed.
async fn without_rehearsals_it_asks_half_as_much(bed: &Bed) -> Result<()> {
    bed.uninstall().await?;
    let mark = bed.cluster.audit().mark().await?;
    bed.apply(&bed.config(json!({}))).await?;
    let config = bed.until_ready().await?;
    let objects = usize::try_from(config["status"]["inventory"]["objects"].as_i64().context("inventory")?)?;
    let requests = bed.operator_requests(mark).await?;
    let tried = requests.clone().only(vdo_testbed::Entry::tries);
    ensure!(tried.is_empty(), "it tried although it was told not to:\n{tried}");
    println!("without rehearsals: {} requests for {objects} objects", requests.len());
    ensure!(
        requests.len() <= objects + 10,
        "{} requests for {objects} objects:\n{requests}",
        requests.len()
    );
    Ok(())
}

/// Nobody has to be asked to bring back what was approved.
async fn drift_of_what_was_approved(bed: &Bed) -> Result<()> {
    let (ns, map) = ("vmware-system-csi", "internal-feature-states.csi.vsphere.vmware.com");
    bed.merge("v1", "ConfigMap", ns, map, json!({"data": {"trigger-csi-fullsync": "true"}}))
        .await?;
    bed.delete("v1", "Service", ns, "vsphere-csi-controller").await?;
    until("an edit and a deletion to be undone", PATIENCE, async || {
        let data = bed.get("v1", "ConfigMap", ns, map).await?["data"].clone();
        let service = bed.get("v1", "Service", ns, "vsphere-csi-controller").await?;
        Ok(Probe::when(
            data["trigger-csi-fullsync"] == "false" && service != Value::Null,
            &data,
        ))
    })
    .await?;
    bed.until_ready().await?;
    Ok(())
}

/// A setting and another version wait; what runs stays, and is repaired meanwhile. `kubectl annotate` approves as well.
async fn another_version(bed: &Bed, old: &str) -> Result<()> {
    let mut setting = manual("3.7.3");
    setting["cloudProvider"] = json!({"values": {"logLevel": 4}});
    bed.apply(&bed.config(setting)).await?;
    bed.until_reason("Ready", "ApprovalRequired").await?;
    let (rbac, role) = ("rbac.authorization.k8s.io/v1", "vsphere-csi-node-cluster-role");
    bed.delete(rbac, "ClusterRole", "", role).await?;
    until("what was approved to be kept while the next plan waits", PATIENCE, async || {
        Ok(Probe::when(
            bed.get(rbac, "ClusterRole", "", role).await? != Value::Null,
            "not there",
        ))
    })
    .await?;

    bed.apply(&bed.config(manual("3.6.3"))).await?;
    bed.until_reason("Ready", "ApprovalRequired").await?;
    let hash = bed.status().await?["plan"]["hash"].as_str().context("a hash")?.to_owned();
    assert_ne!(hash, old);
    let image = async || {
        let found = bed
            .get("apps/v1", "Deployment", "vmware-system-csi", "vsphere-csi-controller")
            .await?;
        anyhow::Ok(found["spec"]["template"].to_string())
    };
    assert!(image().await?.contains("driver:v3.7.3"));
    let approve = json!({"metadata": {"annotations": {"vdo.vmware.com/approve": hash}}});
    bed.merge("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo", approve).await?;
    until("the approved version", PATIENCE, async || {
        Ok(Probe::when(image().await?.contains("driver:v3.6.3"), "still the other"))
    })
    .await?;
    bed.until_ready().await?;
    // Back to the first state: that was approved once, but not from here.
    bed.apply(&bed.config(manual("3.7.3"))).await?;
    bed.until_reason("Ready", "ApprovalRequired").await?;
    Ok(())
}

/// A policy is against configuration of the CSI driver, which shows only when it is written: the cloud provider is installed all the
/// same, and of the CSI driver nothing that needs what was refused.
async fn one_driver_is_refused_and_the_other_goes_on(bed: &Bed) -> Result<()> {
    const POLICY: &str = "admissionregistration.k8s.io/v1";
    bed.uninstall().await?;
    let rules = json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]}]);
    let labels = json!({"matchLabels": {"vdo.vmware.com/driver": "vsphere-csi"}});
    bed.apply(
        &json!({"apiVersion": POLICY, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "no-storage"}, "spec": {
        "matchConstraints": {"resourceRules": rules, "objectSelector": labels},
        "validations": [{"expression": "false", "message": "no storage here"}]}}),
    )
    .await?;
    bed.apply(
        &json!({"apiVersion": POLICY, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "no-storage"},
        "spec": {"policyName": "no-storage", "validationActions": ["Deny"]}}),
    )
    .await?;
    let probe =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "probe", "namespace": NS, "labels": labels["matchLabels"]}});
    let params = kube::api::PatchParams::apply("probe").dry_run();
    until("the policy to be in force", PATIENCE, async || {
        let tried = bed
            .api("v1", "ConfigMap", NS)
            .patch("probe", &params, &kube::api::Patch::Apply(&probe))
            .await;
        Ok(Probe::when(tried.is_err(), "a ConfigMap is still let in"))
    })
    .await?;

    bed.apply(&bed.config(json!({}))).await?;
    let refused = bed.until_reason("Ready", "AdmissionDenied").await?;
    let message = refused["message"].as_str().unwrap_or_default();
    ensure!(
        message.contains("internal-feature-states.csi.vsphere.vmware.com") && message.contains("no storage here"),
        "{message}"
    );
    bed.until_reason("CloudProviderReady", "Healthy").await?;
    let config = bed.get("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await?;
    assert_eq!(
        condition(&config, "StorageReady")["status"],
        "False",
        "{}",
        config["status"]["conditions"]
    );
    assert_eq!(condition(&config, "Ready")["reason"], "AdmissionDenied");
    let started: Vec<String> = bed
        .owned()
        .await?
        .iter()
        .filter(|o| o["metadata"]["labels"]["vdo.vmware.com/driver"] == "vsphere-csi")
        .map(bed::name)
        .collect();
    println!("with its configuration refused, of the CSI driver there is {started:?}");
    let depends = |name: &&String| ["Deployment", "DaemonSet"].iter().any(|kind| name.starts_with(kind));
    ensure!(
        started.iter().find(depends).is_none(),
        "started without its configuration: {started:?}"
    );
    let map = bed.get("v1", "ConfigMap", NS, "vdo-inventory").await?;
    let objects: Vec<Value> = serde_json::from_str(map["data"]["objects"].as_str().context("objects")?)?;
    ensure!(
        objects.iter().any(|o| o["uid"].is_null()),
        "the inventory is narrowed before everything is there"
    );

    bed.delete(POLICY, "ValidatingAdmissionPolicyBinding", "", "no-storage").await?;
    bed.delete(POLICY, "ValidatingAdmissionPolicy", "", "no-storage").await?;
    bed.until_ready().await?;
    Ok(())
}

/// The webhook's certificate is drawn by chance: every look at the plan gives the same hash, which is the operator's own, and a new
/// certificate of what was approved asks nobody.
async fn keys_that_are_drawn_are_no_other_plan(bed: &mut Bed) -> Result<()> {
    let webhook = (
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
        "validation.csi.vsphere.vmware.com",
    );
    let look = |bed: &Bed| -> Result<String> {
        let (code, out, err) = bed.vdoctl(&["plan", "-o", "json"])?;
        ensure!(code == 1, "{out}{err}");
        let plan: Value = serde_json::from_str(&out)?;
        plan["hash"]
            .as_str()
            .map(str::to_owned)
            .with_context(|| format!("no hash in {out}"))
    };
    bed.kill_operator();
    bed.apply(&bed.config(json!({"approval": "Manual", "cloudProvider": {}, "storageProvider": {"webhook": true}})))
        .await?;
    ensure!(bed.get("v1", "Secret", NS, "vdo-webhook-certificate").await? == Value::Null);
    let first = look(bed)?;
    assert_eq!(look(bed)?, first, "two looks at one plan");
    bed.start_operator().await?;
    bed.until_reason("Ready", "ApprovalRequired").await?;
    assert_eq!(
        bed.status().await?["plan"]["hash"],
        first,
        "the operator has another plan than vdoctl"
    );
    assert_eq!(look(bed)?, first, "with the operator's certificate");
    let (code, _, err) = bed.vdoctl(&["approve", &first])?;
    assert_eq!(code, 0, "{err}");
    let bundle = async |bed: &Bed| {
        let live = bed.get(webhook.0, webhook.1, "", webhook.2).await?;
        anyhow::Ok(live["webhooks"][0]["clientConfig"]["caBundle"].clone())
    };
    until("the webhook", PATIENCE, async || {
        let now = bundle(bed).await?;
        Ok(Probe::when(now.is_string(), now))
    })
    .await?;
    bed.until_ready().await?;

    let before = bundle(bed).await?;
    bed.delete("v1", "Secret", NS, "vdo-webhook-certificate").await?;
    until("another certificate, without an approval", PATIENCE, async || {
        let now = bundle(bed).await?;
        Ok(Probe::when(now.is_string() && now != before, &bed.status().await?["conditions"]))
    })
    .await?;
    bed.until_ready().await?;
    // Something that is decided is another plan.
    let decided = json!({"webhook": true, "values": {"webhook": {"failurePolicy": "Ignore"}}});
    bed.apply(&bed.config(json!({"approval": "Manual", "cloudProvider": {}, "storageProvider": decided})))
        .await?;
    bed.until_reason("Ready", "ApprovalRequired").await?;
    Ok(())
}
