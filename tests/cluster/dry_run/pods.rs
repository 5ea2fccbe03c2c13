// SPDX-License-Identifier: Apache-2.0
//! Pods are tried before a change: what quotas, limits and policies have against them is a condition with a remedy, and nothing is half-done.

use super::{CSI_NS, VDO, connect, discard, nothing_is_there, refused};
use crate::common::{Bed, NS, PATIENCE, condition};
use crate::fixture::{INSTALLED, OPERATOR};
use anyhow::{Context, Result, ensure};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use vdo_testbed::{Probe, until};

const POLICY: &str = "admissionregistration.k8s.io/v1";
const HOME: &str = "kube-system";
const CPI: &str = "vsphere-cloud-controller-manager";

/// Something that an administrator has put up, and what it does to a first installation of the drivers.
struct Case {
    rule: Rule,
    /// The words of the condition; none where the installation is not held.
    words: &'static [&'static str],
}

enum Rule {
    /// An object in the namespace of the cloud provider.
    Object(Value),
    /// A policy on these resources, with this expression.
    Policy(&'static str, &'static str, &'static str),
}

impl Case {
    /// The objects.
    fn objects(&self) -> Vec<Value> {
        match &self.rule {
            Rule::Object(object) => vec![object.clone()],
            Rule::Policy(group, resource, expression) => {
                let rules =
                    json!([{"apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": [resource]}]);
                let spec = json!({"failurePolicy": "Fail", "matchConstraints": {"resourceRules": rules},
                    "validations": [{"expression": expression, "message": "our house rule"}]});
                let binding = json!({"policyName": "house", "validationActions": ["Deny"]});
                let metadata = json!({"name": "house"});
                vec![
                    json!({"apiVersion": POLICY, "kind": "ValidatingAdmissionPolicy", "metadata": metadata, "spec": spec}),
                    json!({"apiVersion": POLICY, "kind": "ValidatingAdmissionPolicyBinding", "metadata": metadata, "spec": binding}),
                ]
            }
        }
    }

    /// Puts it up, and waits until the API server judges by it.
    async fn put_up(&self, bed: &Bed) -> Result<()> {
        for object in self.objects() {
            bed.apply(&object).await?;
        }
        match &self.rule {
            Rule::Object(object) if object["kind"] == "ResourceQuota" => until("the quota to count", PATIENCE, async || {
                let found = bed.get("v1", "ResourceQuota", HOME, "house").await?;
                Ok(Probe::when(found["status"]["used"].is_object(), found["status"].clone()))
            })
            .await
            .map(drop),
            Rule::Object(_) => until("the limits to count", PATIENCE, async || {
                let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe", "namespace": HOME},
                    "spec": {"containers": [{"name": "c", "image": "c"}]}});
                let answer = bed.api("v1", "Pod", HOME).patch("probe", &dry(), &Patch::Apply(&pod)).await?;
                let limits = answer.data["spec"]["containers"][0]["resources"]["limits"].clone();
                Ok(Probe::when(limits.is_object(), "no limits are set"))
            })
            .await
            .map(drop),
            Rule::Policy(_, resource, _) => until("the policy to be in force", PATIENCE, async || {
                let (api_version, kind, probe) = match *resource {
                    "pods" => (
                        "v1",
                        "Pod",
                        json!({"hostNetwork": true, "containers": [{"name": "c", "image": "c"}]}),
                    ),
                    _ => {
                        let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "c"}]}});
                        (
                            "apps/v1",
                            "DaemonSet",
                            json!({"selector": {"matchLabels": {"a": "b"}}, "template": template}),
                        )
                    }
                };
                let object =
                    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "probe", "namespace": HOME}, "spec": probe});
                let answer = bed
                    .api(api_version, kind, HOME)
                    .patch("probe", &dry(), &Patch::Apply(&object))
                    .await;
                Ok(Probe::when(
                    answer.is_err_and(|error| error.to_string().contains("our house rule")),
                    "it is accepted",
                ))
            })
            .await
            .map(drop),
        }
    }

    async fn take_down(&self, bed: &Bed) -> Result<()> {
        for object in self.objects().iter().rev() {
            let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            bed.delete(text("/apiVersion"), text("/kind"), text("/metadata/namespace"), "house")
                .await?;
        }
        Ok(())
    }
}

fn dry() -> PatchParams {
    PatchParams::apply("probe").dry_run()
}

fn object(kind: &str, spec: Value) -> Rule {
    Rule::Object(json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "house", "namespace": HOME}, "spec": spec}))
}

const CONTAINERS: &str = "object.spec.template.spec.containers.all(c, ";

fn privileged() -> Case {
    Case {
        rule: Rule::Policy("", "pods", "!has(object.spec.hostNetwork) || !object.spec.hostNetwork"),
        words: &[
            "refused a pod of DaemonSet kube-system/vsphere-cloud-controller-manager",
            "our house rule",
            "Change the policy that the message names",
        ],
    }
}

fn cases() -> Vec<Case> {
    vec![
        privileged(),
        Case {
            rule: object(
                "LimitRange",
                json!({"limits": [{"type": "Container", "default": {"cpu": "90m"}, "max": {"cpu": "90m"}}]}),
            ),
            words: &[
                "refused a pod of DaemonSet kube-system/vsphere-cloud-controller-manager",
                "cpu limit",
                "vdoctl configure drivers --set cloudProvider.values.resources.",
            ],
        },
        Case {
            rule: object("ResourceQuota", json!({"hard": {"pods": "0"}})),
            words: &["exceeded quota: house", "kubectl --namespace kube-system get resourcequotas"],
        },
        Case {
            rule: object("ResourceQuota", json!({"hard": {"limits.memory": "64Gi"}})),
            words: &[
                "must specify limits.memory",
                "vdoctl configure drivers --set cloudProvider.values.resources.",
            ],
        },
        Case {
            rule: Rule::Policy(
                "apps",
                "daemonsets",
                "has(object.metadata.labels) && 'cost-centre' in object.metadata.labels",
            ),
            words: &["refused DaemonSet kube-system/", "our house rule"],
        },
        Case {
            rule: Rule::Policy(
                "apps",
                "daemonsets",
                const_format(
                    CONTAINERS,
                    "has(c.resources) && has(c.resources.limits) && 'memory' in c.resources.limits)",
                ),
            ),
            words: &["refused DaemonSet kube-system/", "our house rule"],
        },
        Case {
            rule: Rule::Policy("apps", "daemonsets", const_format(CONTAINERS, "has(c.startupProbe))")),
            words: &["refused DaemonSet kube-system/", "our house rule"],
        },
    ]
}

/// Both parts of an expression, which lives as long as the tests do.
fn const_format(first: &str, second: &str) -> &'static str {
    format!("{first}{second}").leak()
}

#[test]
#[ignore = "long"]
fn dry_run_of_pods_holds_a_first_installation_and_names_the_remedy() -> Result<()> {
    OPERATOR.run(async |bed| {
        connect(bed).await?;
        for case in cases() {
            case.put_up(bed).await?;
            let mark = bed.cluster.audit().mark().await?;
            bed.apply(&bed.config(json!({}))).await?;
            refused(bed, mark, "AdmissionDenied", case.words).await?;
            nothing_is_there(bed).await?;
            // What only looks says the same.
            let (_, plan, _) = bed.vdoctl(&["plan"])?;
            let one_line = plan.split_whitespace().collect::<Vec<_>>().join(" ");
            ensure!(one_line.contains(case.words[0].trim_start_matches("refused ")), "{plan}");
            let (_, status, _) = bed.vdoctl(&["status"])?;
            ensure!(!status.contains("Nothing to do"), "{status}");
            discard(bed).await?;
            case.take_down(bed).await?;
            bed.start_operator().await?;
        }
        Ok(())
    })
}

/// What has limits of its own does not keep the drivers away, and what was refused goes on by itself when it is allowed.
#[test]
#[ignore = "long"]
fn dry_run_of_pods_lets_the_installation_go_on_when_the_rule_goes() -> Result<()> {
    OPERATOR.run(async |bed| {
        connect(bed).await?;
        let limits = Case {
            rule: object(
                "LimitRange",
                json!({"limits": [{"type": "Container", "default": {"cpu": "400m"}, "defaultRequest": {"cpu": "20m"}, "max": {"cpu": "700m"}}]}),
            ),
            words: &[],
        };
        limits.put_up(bed).await?;
        let rule = privileged();
        rule.put_up(bed).await?;
        bed.apply(&bed.config(json!({}))).await?;
        bed.until_reason("Ready", "AdmissionDenied").await?;
        rule.take_down(bed).await?;
        bed.until_ready().await?;
        limits.take_down(bed).await
    })
}

/// Before an upgrade, too; a quota that is full of the pods to be replaced holds nothing.
#[test]
#[ignore = "long"]
fn dry_run_of_pods_holds_a_change_of_what_runs() -> Result<()> {
    INSTALLED.run(async |bed| {
        let live = async || bed.get("apps/v1", "DaemonSet", HOME, CPI).await;
        let before = live().await?;
        let mark = bed.cluster.audit().mark().await?;
        let rule = privileged();
        rule.put_up(bed).await?;
        let level = |level: u8| bed.config(json!({"cloudProvider": {"values": {"logLevel": level}}, "storageProvider": {}}));
        bed.apply(&level(5)).await?;
        refused(bed, mark, "AdmissionDenied", rule.words).await?;
        ensure!(
            live().await?["metadata"]["generation"] == before["metadata"]["generation"],
            "it was changed"
        );
        rule.take_down(bed).await?;
        bed.until_ready().await?;
        let pods = bed.get("apps/v1", "DaemonSet", HOME, CPI).await?["status"]["currentNumberScheduled"].clone();
        let full = Case {
            rule: object("ResourceQuota", json!({"hard": {"pods": pods.to_string()}})),
            words: &[],
        };
        full.put_up(bed).await?;
        bed.apply(&level(6)).await?;
        until("the change to be made", PATIENCE, async || {
            let args = live().await?["spec"]["template"].to_string();
            Ok(Probe::when(
                args.contains("--v=6"),
                condition(&bed.get(VDO, "VDOConfig", NS, "vdo").await?, "Ready"),
            ))
        })
        .await?;
        bed.until_ready().await?;
        full.take_down(bed).await
    })
}

/// A right that an older installation lacks keeps nothing back.
#[test]
#[ignore = "long"]
fn dry_run_of_pods_without_the_right_installs() -> Result<()> {
    OPERATOR.run(async |bed| {
        connect(bed).await?;
        let rbac = "rbac.authorization.k8s.io/v1";
        for namespace in [HOME, CSI_NS] {
            let role = bed.get(rbac, "Role", namespace, "vdo-operator").await?;
            let mut rules = role["rules"].as_array().context("rules")?.clone();
            let count = rules.len();
            rules.retain(|rule| !rule["resourceNames"].to_string().contains("vdo-dry-run"));
            ensure!(rules.len() < count, "there is no such right in {namespace}");
            bed.merge(rbac, "Role", namespace, "vdo-operator", json!({"rules": rules})).await?;
        }
        bed.apply(&bed.config(json!({}))).await?;
        bed.until_ready().await?;
        let log = std::fs::read_to_string(bed.operator_log())?;
        let said = log.matches("pods get no dry run before a change").count();
        ensure!((1..=2).contains(&said), "it is said {said} times");
        Ok(())
    })
}

/// A rule that comes later is seen by the events of what cannot be made.
#[test]
#[ignore = "long"]
fn refused_pods_of_what_runs_are_shown_with_the_words_of_the_event() -> Result<()> {
    INSTALLED.run(async |bed| {
        let rule = privileged();
        rule.put_up(bed).await?;
        let pods = bed.list("v1", "Pod", "").await?;
        for pod in pods.iter().filter(|pod| pod["metadata"]["name"].to_string().contains(CPI)) {
            bed.delete("v1", "Pod", HOME, pod["metadata"]["name"].as_str().unwrap_or_default())
                .await?;
        }
        // For a moment the deleted pods themselves may be the reason.
        let words = [
            "cannot create its pods: FailedCreate",
            "our house rule",
            "change the policy that the message names",
        ];
        until("the refusal in the words of the event", PATIENCE, async || {
            let ready = condition(&bed.get(VDO, "VDOConfig", NS, "vdo").await?, "Ready");
            let message = ready["message"].to_string();
            let said = ready["reason"] == "PodsFailing" && words.iter().all(|word| message.contains(word));
            Ok(Probe::when(said, ready))
        })
        .await?;
        for verb in ["status", "doctor"] {
            let (code, shown, _) = bed.vdoctl(&[verb])?;
            let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
            ensure!(
                code == 1 && shown.contains("our house rule") && !shown.contains("Nothing to do"),
                "{verb} ended with {code}: {shown}"
            );
        }
        rule.take_down(bed).await?;
        bed.until_ready().await?;
        Ok(())
    })
}

/// The account of the operator creates no pod, also not of the name that it may try.
#[test]
fn account_of_the_operator_tries_pods_and_creates_none() -> Result<()> {
    OPERATOR.run(async |bed| {
        let client = bed.cluster.service_account_client(NS, "vdo-operator").await?;
        let pods: kube::Api<k8s_openapi::api::core::v1::Pod> = kube::Api::namespaced(client, HOME);
        let pod = |name: &str| {
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": HOME},
                "spec": {"containers": [{"name": "c", "image": "c"}]}})
        };
        let real = PatchParams::apply("probe");
        // The policy acts, and the account of pods is there, a moment after the cluster is.
        until("a pod to be tried and its creation to be refused", PATIENCE, async || {
            let of = async |params: &PatchParams| {
                let answer = pods.patch("vdo-dry-run", params, &Patch::Apply(&pod("vdo-dry-run"))).await;
                answer.err().map(|error| error.to_string())
            };
            if let Some(refused) = of(&dry()).await {
                return Ok(Probe::not_yet(refused));
            }
            Ok(match of(&real).await {
                Some(refused) if refused.contains("the operator may write only") => Probe::Ready(()),
                other => {
                    bed.delete("v1", "Pod", HOME, "vdo-dry-run").await?;
                    Probe::not_yet(other.unwrap_or_else(|| "a pod was created".to_owned()))
                }
            })
        })
        .await?;
        for (name, params, expected) in [
            ("vdo-dry-run", dry(), None),
            ("vdo-dry-run", real.clone(), Some("the operator may write only")),
            ("another", dry(), Some("cannot patch")),
            ("another", real, Some("cannot patch")),
        ] {
            let answer = pods.patch(name, &params, &Patch::Apply(&pod(name))).await;
            let said = answer.err().map(|error| error.to_string());
            let fits = match (&said, expected) {
                (None, None) => true,
                (Some(said), Some(words)) => said.contains(words),
                _ => false,
            };
            ensure!(fits, "{name}, dry run {}: {said:?}", params.dry_run);
        }
        ensure!(bed.get("v1", "Pod", HOME, "vdo-dry-run").await? == Value::Null, "there is a pod");
        Ok(())
    })
}
