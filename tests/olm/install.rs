// SPDX-License-Identifier: Apache-2.0
//! From a catalog to healthy drivers.
#![allow(clippy::expect_used, reason = "tests")]

use crate::common::{NS, OPERATOR};
use crate::olm_bed::{Approval, run};
use crate::transcript::{DRIVERS, PLANS, SUBSCRIPTIONS, Transcript, VERSIONS};
use anyhow::{Result, ensure};
use serde_json::{Value, json};

/// Whether a user may do something in a namespace.
async fn may(bed: &crate::common::Bed, verb: &str, resource: &str, namespace: &str) -> Result<bool> {
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {"user": OPERATOR, "resourceAttributes": {"verb": verb, "resource": resource, "namespace": namespace}}});
    let api = bed.api("authorization.k8s.io/v1", "SubjectAccessReview", "");
    let answer = api
        .create(&kube::api::PostParams::default(), &serde_json::from_value(review)?)
        .await?;
    Ok(serde_json::to_value(answer)?["status"]["allowed"] == true)
}

/// The prerequisites may come late: the installation succeeds without them, the status says what is missing, and the operator goes on by itself when
/// they are there. vdoctl knows whose the operator is, and leaves it to OLM.
#[test]
fn olm_installs_the_operator_and_the_drivers_become_ready() -> Result<()> {
    run(async |world| {
        let folder = world.release("0.1.0", |_| ()).await?;
        world.publish(&[&folder]).await?;
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": NS, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
        world.bed.apply(&namespace).await?;
        world.group("vdo", &[NS]).await?;
        world.subscribe(Approval::Automatic).await?;
        world.until_plan("Complete").await?;
        let csv = world.until_succeeded("0.1.0").await?;
        assert_eq!(csv["status"]["reason"], "InstallSucceeded");
        let mut seen = Transcript::default();
        seen.say("A namespace, an OperatorGroup and a Subscription exist. The prerequisites do not exist.");
        for line in [SUBSCRIPTIONS, PLANS, VERSIONS] {
            seen.kubectl(&world.bed, line).await?;
        }
        let deployment = world.bed.get("apps/v1", "Deployment", NS, "vdo-operator").await?;
        assert_eq!(deployment["metadata"]["labels"]["olm.owner"], "vdo.v0.1.0");
        let env = &deployment["spec"]["template"]["spec"]["containers"][0]["env"];
        ensure!(
            env.to_string().contains(r#""name":"OPERATOR_CONDITION_NAME","value":"vdo.v0.1.0""#),
            "{env}"
        );

        world.bed.apply_samples().await?;
        let missing = world.bed.until_reason("Ready", "RightsMissing").await?;
        ensure!(missing["message"].to_string().contains("vdoctl rights --missing"), "{missing}");
        seen.say("A connection and an empty VDOConfig are applied. The operator reports the missing rights.");
        seen.kubectl(
            &world.bed,
            "get vdoconfig vdo --namespace vmware-system-vdo --output jsonpath='{.status.conditions[?(@.type==\"Ready\")].message}'",
        )
        .await?;
        world.apply_prerequisites().await?;
        let config = world.bed.until_ready().await?;
        seen.say("The prerequisites are applied.");
        seen.kubectl(
            &world.bed,
            "wait vdoconfig vdo --namespace vmware-system-vdo --for=condition=Ready --timeout=1m",
        )
        .await?;
        seen.kubectl(&world.bed, DRIVERS).await?;
        seen.hold("installation");
        let by = "ClusterServiceVersion vdo.v0.1.0 of Subscription vdo, channel stable";
        for verb in ["status", "version"] {
            let (_, screen, reported) = world.bed.vdoctl(&[verb])?;
            ensure!(screen.contains(by), "{verb}: {screen}{reported}");
        }
        let (code, _, refused) = world.bed.vdoctl(&["deploy", "--yes"])?;
        ensure!(
            code != 0 && refused.contains("was installed by OLM as ClusterServiceVersion vdo.v0.1.0") && refused.contains("Subscription"),
            "{code}: {refused}"
        );
        let fields = world.bed.get("apps/v1", "Deployment", NS, "vdo-operator").await?;
        ensure!(
            !fields["metadata"]["managedFields"].to_string().contains("vdoctl"),
            "vdoctl wrote the Deployment of OLM"
        );
        for driver in config["status"]["drivers"].as_array().into_iter().flatten() {
            ensure!(driver["version"] != Value::Null, "{driver}");
        }
        world.olm.check()
    })
}

/// With an OperatorGroup that selects all namespaces the operator has the same rights as with one that selects its own.
#[test]
#[ignore = "long"]
fn olm_for_all_namespaces_gives_no_rights_in_others() -> Result<()> {
    run(async |world| {
        world.install("0.1.0", &[]).await?;
        let bed = &world.bed;
        ensure!(may(bed, "list", "secrets", NS).await?, "its own Secrets");
        for (verb, resource, namespace) in [
            ("list", "secrets", "default"),
            ("list", "secrets", ""),
            ("list", "configmaps", "default"),
            ("list", "namespaces", ""),
        ] {
            ensure!(
                !may(bed, verb, resource, namespace).await?,
                "it may {verb} {resource} in {namespace:?}"
            );
        }
        // What the console offers as examples is accepted, in the namespace that is open there.
        let csv = world.csv("0.1.0").await?;
        let examples: Vec<Value> = serde_json::from_str(csv["metadata"]["annotations"]["alm-examples"].as_str().unwrap_or_default())?;
        assert_eq!(examples.len(), 3);
        for mut example in examples {
            example["metadata"]["namespace"] = "default".into();
            bed.apply(&example).await?;
        }
        Ok(())
    })
}
