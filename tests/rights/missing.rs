//! Each right of the operator is taken away in turn, from the real operator on a real API server: exactly the rule that is missing
//! is named, nothing is half-done or torn down, and all goes on when the right is back.

use crate::bed::{Bed, KINDS, NS, OPERATOR, PATIENCE, condition};
use crate::granted::{Right, documents, rights};
use crate::rules::{named, one_for_each_resource, rules};
use anyhow::{Context, Result, ensure};
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use vdo_testbed::{Probe, until};

/// Looked at before the storage driver goes. That they are watched then only brings the news that the last one is gone.
const BEFORE_REMOVAL: [&str; 3] = ["persistentvolumes", "volumeattachments", "volumesnapshotcontents"];

/// How long the operator may take to say what it lacks.
const TELLING: Duration = Duration::from_secs(30);

/// From the return of a right to the end that was waited for, without anybody asking for it.
const RECOVERY: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_right_is_one_condition_that_names_the_rule() -> Result<()> {
    crate::bed::prepare();
    let mut lab = Lab::start().await?;
    lab.installation().await?;
    lab.drift().await?;
    lab.removal().await?;
    for (what, (count, took)) in &lab.tried {
        println!("{what:13} {count:3} rights taken away, {:.0} s", took.as_secs_f64());
    }
    ensure!(lab.problems.is_empty(), "{:#?}", lab.problems);
    Ok(())
}

struct Lab {
    bed: Bed,
    /// The roles, each with its rights.
    roles: Vec<(Value, Vec<Right>)>,
    /// The right that is missing.
    missing: Option<Right>,
    asked: usize,
    /// What was not as it should be, of all rights.
    problems: Vec<String>,
    tried: BTreeMap<&'static str, (usize, Duration)>,
}

/// The storage driver alone, which is all that a right of its own can keep from being made.
fn storage(webhook: bool) -> Value {
    let mut spec = everything(webhook);
    spec.as_object_mut().map(|spec| spec.remove("cloudProvider"));
    spec
}

/// Everything at once but the webhook, which the API server would have to ask before it stores a StorageClass.
fn everything(webhook: bool) -> Value {
    json!({"cloudProvider": {}, "storageProvider": {"webhook": webhook, "storageClasses": [{"name": "fast"}]}})
}

impl Lab {
    async fn start() -> Result<Self> {
        let mut bed = Bed::start().await?;
        bed.start_operator().await?;
        let roles = documents()?.into_iter().filter(|d| d["rules"].is_array());
        let roles = roles.map(|role| {
            let rights = rights(&role)?;
            Ok((role, rights))
        });
        let roles = roles.collect::<Result<_>>()?;
        bed.apply(&bed.secret(bed.vcenter.password())).await?;
        bed.apply(&bed.connection("vc1")).await?;
        Ok(Self {
            bed,
            roles,
            missing: None,
            asked: 0,
            problems: Vec::new(),
            tried: BTreeMap::new(),
        })
    }

    fn all(&self, role: &str) -> Vec<Right> {
        let of_role = self.roles.iter().filter(|(document, _)| document["metadata"]["name"] == role);
        of_role.flat_map(|(_, rights)| rights.clone()).collect()
    }

    /// Takes a right away, and then gives the one before back: at no time is nothing missing.
    async fn take(&mut self, right: Option<&Right>) -> Result<()> {
        self.take_and_ask(right, None).await
    }

    /// The same, with something else asked for while both are missing.
    async fn take_and_ask(&mut self, right: Option<&Right>, spec: Option<Value>) -> Result<()> {
        let before = std::mem::replace(&mut self.missing, right.cloned());
        for (gone, spec) in [([before.as_ref(), right], spec), ([None, right], None)] {
            for (document, held) in &self.roles {
                let covers = |held: &Right, right: Option<&Right>| right.is_some_and(|right| held.covers(right));
                if !held.iter().any(|held| covers(held, before.as_ref()) || covers(held, right)) {
                    continue;
                }
                let kept = held.iter().filter(|held| !gone.iter().any(|gone| covers(held, *gone)));
                let mut document = document.clone();
                document["rules"] = kept.map(Right::rule).collect();
                self.bed.apply(&document).await?;
            }
            self.until_allowed(right, false).await?;
            if let Some(spec) = spec {
                self.bed.apply(&self.bed.config(spec)).await?;
            }
        }
        self.until_allowed(before.as_ref(), true).await
    }

    async fn until_allowed(&self, right: Option<&Right>, allowed: bool) -> Result<()> {
        let Some(right) = right else { return Ok(()) };
        until(&format!("{right} to be allowed: {allowed}"), PATIENCE, async || {
            Ok(Probe::when(self.is_allowed(right).await? == allowed, right))
        })
        .await
    }

    /// The objects of the cloud provider.
    async fn cloud_provider(&self) -> Result<Vec<Value>> {
        self.bed.until_condition("VsphereCloudConfig", "vc1", "Ready", "Healthy").await?;
        let mut spec = everything(false);
        spec["managementState"] = "Paused".into();
        self.bed.apply(&self.bed.config(spec)).await?;
        let (code, out, err) = self.bed.vdoctl(&["render", "-o", "json"])?;
        ensure!(code == 0, "{err}");
        let all: Value = serde_json::from_str(&out)?;
        let all = all.as_array().or(all["items"].as_array()).context("objects")?;
        let own = all
            .iter()
            .filter(|o| o["metadata"]["labels"]["vdo.vmware.com/driver"] == "vsphere-cpi");
        Ok(own.cloned().collect())
    }

    async fn is_allowed(&self, right: &Right) -> Result<bool> {
        let (resource, subresource) = right.resource.split_once('/').unwrap_or((&right.resource, ""));
        let review: SubjectAccessReview = serde_json::from_value(json!({"spec": {
            "user": OPERATOR,
            "groups": ["system:serviceaccounts", format!("system:serviceaccounts:{NS}"), "system:authenticated"],
            "resourceAttributes": {"namespace": right.namespace, "group": right.group, "resource": resource, "subresource": subresource,
                "verb": right.verb, "name": right.name},
        }}))?;
        let api: Api<SubjectAccessReview> = Api::all(self.bed.cluster.client());
        let answer = api.create(&PostParams::default(), &review).await?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    }

    /// Has the operator look at once, as an administrator would.
    async fn wake(&mut self) -> Result<()> {
        self.asked += 1;
        let change = json!({"metadata": {"annotations": {"vdo.vmware.com/reconcile-at": self.asked.to_string()}}});
        self.bed.merge("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo", change).await
    }

    async fn config(&self) -> Result<Value> {
        self.bed.get("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await
    }

    /// Waits until the rule of this right is named, and no other; for a right that grants, any of a role. A right that both drivers need
    /// is named for each, perhaps once in the words of the API server.
    async fn named(&self, right: &Right) -> Result<()> {
        let what = format!("a condition that names the rule for {right}");
        until(&what, TELLING, async || {
            let config = self.config().await?;
            let ready = condition(&config, "Ready");
            let named = named(&config);
            let done = ready["reason"] == "Forbidden"
                && rules(ready["message"].as_str().unwrap_or_default()).len() == 1
                && named.iter().all(|rule| right.is_in(rule));
            Ok(Probe::when(done, json!({"named": named, "ready": ready})))
        })
        .await
    }

    /// All objects of the drivers, by UID and specification.
    async fn owned(&self) -> Result<BTreeMap<String, String>> {
        let mut all = BTreeMap::new();
        let more = [
            ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
            ("storage.k8s.io/v1", "StorageClass"),
        ];
        for (api_version, kind) in KINDS.into_iter().chain(more) {
            for object in self
                .bed
                .list(api_version, kind, "app.kubernetes.io/managed-by=vdo,vdo.vmware.com/driver")
                .await?
            {
                let metadata = &object["metadata"];
                let content = json!([
                    metadata["uid"],
                    metadata["deletionTimestamp"],
                    object["spec"],
                    object["rules"],
                    object["data"]
                ]);
                all.insert(
                    format!("{kind} {}/{}", metadata["namespace"], metadata["name"]),
                    content.to_string(),
                );
            }
        }
        Ok(all)
    }

    /// Goes on with the next right: what is wrong is told of all at the end.
    fn note(&mut self, when: &str, right: &Right, found: Result<()>) {
        if let Err(error) = found {
            println!("{when} without the right to {right}: {error:#}");
            self.problems.push(format!("{when} without the right to {right}: {error:#}"));
        }
    }

    fn count(&mut self, what: &'static str, begun: Instant, count: usize) {
        self.tried.insert(what, (count, begun.elapsed()));
    }

    /// Nothing is made as long as a single right to make it is missing. A new storage driver does not begin without its cloud provider;
    /// the cloud provider does without the storage driver, so that one is asked for alone where a right is only its own.
    async fn installation(&mut self) -> Result<()> {
        let begun = Instant::now();
        let cloud = self.cloud_provider().await?;
        let own = self.all("vdo-operator").into_iter().filter(|right| right.is_for_making());
        // Whoever lacks what he grants may not grant it.
        let granted = self
            .all("vdo-operator-drivers")
            .into_iter()
            .filter(|right| !right.is_read_by_us(self));
        // The certificate of the webhook is made before there is a plan. What is written besides the objects is not tried in a
        // rehearsal; by then that has been remembered.
        let stage = |right: &Right| match (right.resource.as_str(), right.namespace.as_deref()) {
            ("secrets", Some(NS)) => 0,
            ("vdoconfigs", _) | (_, Some(NS)) => 3,
            _ if cloud.iter().any(|object| right.is_needed_for(object)) => 1,
            _ => 2,
        };
        let mut tried: Vec<Right> = own.chain(one_for_each_resource(granted)).collect();
        tried.sort_by_key(stage);
        let mut before = None;
        for right in &tried {
            let stage = stage(right);
            let spec = if stage == 2 { storage(true) } else { everything(true) };
            let spec = (before != Some(stage)).then_some(spec);
            before = Some(stage);
            self.take_and_ask(Some(right), spec).await?;
            self.wake().await?;
            let told = self.named(right).await;
            self.note("installation", right, told);
            let made = self.owned().await?;
            ensure!(made.is_empty(), "without the right to {right} this was made: {:?}", made.keys());
        }
        self.bed.apply(&self.bed.config(everything(false))).await?;
        self.take(None).await?;
        self.bed.until_ready().await.context("after the rights to install are back")?;
        self.bed.apply(&self.bed.config(everything(true))).await?;
        self.bed.until_ready().await.context("with the webhook")?;
        self.count("installation", begun, tried.len());
        Ok(())
    }

    async fn well_again(&self, since: Instant) -> Result<()> {
        self.bed.until_ready().await?;
        ensure!(since.elapsed() < RECOVERY, "it took {:.1} s", since.elapsed().as_secs_f64());
        Ok(())
    }

    /// One repair is not possible: the others are made, and it when its right is back.
    async fn drift(&mut self) -> Result<()> {
        let begun = Instant::now();
        let csi = "vmware-system-csi";
        let rights = self.all("vdo-operator");
        let find = |verb: &str, resource: &str, name: &str| {
            let found = rights
                .iter()
                .find(|r| r.verb == verb && r.resource == resource && r.name.as_deref() == Some(name));
            found.cloned().with_context(|| format!("no right to {verb} {resource} {name}"))
        };
        for (verb, resource) in [("patch", "deployments"), ("create", "serviceaccounts")] {
            let right = find(verb, resource, "vsphere-csi-controller")?;
            self.take(Some(&right)).await?;
            let damaged = match verb {
                "patch" => ("apps/v1", "Deployment", "/spec/replicas"),
                _ => ("v1", "ServiceAccount", "/metadata/uid"),
            };
            let value = async |bed: &Bed| {
                let object = bed.get(damaged.0, damaged.1, csi, "vsphere-csi-controller").await?;
                anyhow::Ok(object.pointer(damaged.2).cloned().unwrap_or_default())
            };
            let before = value(&self.bed).await?;
            match verb {
                "patch" => {
                    self.bed
                        .merge(
                            damaged.0,
                            damaged.1,
                            csi,
                            "vsphere-csi-controller",
                            json!({"spec": {"replicas": 7}}),
                        )
                        .await?;
                }
                _ => self.bed.delete(damaged.0, damaged.1, csi, "vsphere-csi-controller").await?,
            }
            let other = ("v1", "ConfigMap", "kube-system", "vsphere-cloud-config");
            self.bed.delete(other.0, other.1, other.2, other.3).await?;
            let told = self.named(&right).await;
            self.note("drift", &right, told);
            until("the other drift to be repaired", PATIENCE, async || {
                let object = self.bed.get(other.0, other.1, other.2, other.3).await?;
                Ok(Probe::when(object["metadata"]["uid"].is_string(), &object))
            })
            .await?;
            ensure!(value(&self.bed).await? != before, "it was repaired without the right to {right}");
            self.take(None).await?;
            self.well_again(Instant::now()).await?;
            let after = value(&self.bed).await?;
            ensure!(
                after.is_number() && after == before || after.is_string(),
                "{after} instead of {before}"
            );
        }
        self.count("drift", begun, 2);
        Ok(())
    }

    /// Nothing is removed as long as a single right to remove it is missing, and the namespace stays as long as it is not known
    /// that nothing of somebody else is in it.
    async fn removal(&mut self) -> Result<()> {
        let begun = Instant::now();
        let before = self.owned().await?;
        let own = self.all("vdo-operator");
        // The inventory goes last, when nothing else is left.
        let home = |right: &&Right| right.verb == "delete" && right.namespace.as_deref() == Some(NS);
        let first = |right: &&Right| {
            (right.verb == "delete" && !home(right)) || (right.verb == "list" && BEFORE_REMOVAL.contains(&right.resource.as_str()))
        };
        let tried: Vec<Right> = own.iter().filter(first).cloned().collect();
        let late = |right: &&Right| right.verb == "list" && !right.is_for_watching(&own) && !first(right);
        let late: Vec<Right> = own.iter().filter(late).chain(own.iter().filter(home)).cloned().collect();
        for (number, right) in tried.iter().enumerate() {
            self.take(Some(right)).await?;
            match number {
                0 => self.bed.delete("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await?,
                _ => self.wake().await?,
            }
            let told = self.named(right).await;
            self.note("removal", right, told);
            let now = self.owned().await?;
            let touched: Vec<&String> = before.keys().filter(|key| before.get(*key) != now.get(*key)).collect();
            ensure!(touched.is_empty(), "without the right to {right} these were touched: {touched:?}");
        }
        for right in &late {
            self.take(Some(right)).await?;
            self.wake().await?;
            let told = self.named(right).await;
            self.note("end of a removal", right, told);
            let left = self.owned().await?;
            ensure!(
                home(&right) || left.keys().any(|key| key.starts_with("Namespace")),
                "without the right to {right} the namespace went"
            );
        }
        self.take(None).await?;
        let back = Instant::now();
        until("everything to be removed", PATIENCE, async || {
            let config = self.config().await?;
            Ok(Probe::when(config == Value::Null, condition(&config, "Ready")))
        })
        .await?;
        println!("removed {:.1} s after the last right was back", back.elapsed().as_secs_f64());
        ensure!(self.owned().await?.is_empty(), "something is left");
        self.count("removal", begun, tried.len() + late.len());
        Ok(())
    }
}

impl Right {
    /// Whether it is needed to write an object of a driver, the inventory or the finalizer.
    fn is_for_making(&self) -> bool {
        let elsewhere = ["events", "leases", "vdoconfigs/status", "vspherecloudconfigs/status"];
        matches!(self.verb.as_str(), "create" | "patch") && !elsewhere.contains(&self.resource.as_str())
    }

    /// Whether it is needed to make this object: to write it, or to grant what it grants.
    fn is_needed_for(&self, object: &Value) -> bool {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let group = text("/apiVersion").rsplit_once('/').map_or("", |(group, _)| group);
        let writes = Self {
            namespace: Some(text("/metadata/namespace").to_owned()).filter(|namespace| !namespace.is_empty()),
            group: group.to_owned(),
            resource: format!("{}s", text("/kind").to_lowercase()),
            verb: self.verb.clone(),
            name: Some(text("/metadata/name").to_owned()),
        };
        self.covers(&writes) || rights(object).unwrap_or_default().iter().any(|granted| self.covers(granted))
    }

    /// Whether it is needed to see what is there, of all rights. What is only asked for before something goes is listed alone.
    fn is_for_watching(&self, all: &[Self]) -> bool {
        let watched = |other: &Self| other.verb == "watch" && (&other.group, &other.resource) == (&self.group, &self.resource);
        let same = |other: &&Self| (&other.name, &other.namespace) == (&self.name, &self.namespace);
        matches!(self.verb.as_str(), "list" | "watch")
            && !BEFORE_REMOVAL.contains(&self.resource.as_str())
            && all.iter().filter(same).any(watched)
    }

    /// Whether the operator needs it for itself too, and says so before it comes to granting it.
    fn is_read_by_us(&self, lab: &Lab) -> bool {
        lab.all("vdo-operator").iter().any(|own| self.covers(own))
    }
}
