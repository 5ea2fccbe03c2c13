//! Each right to make, to repair and to remove something is taken away in turn, from the real operator on a real API server: exactly the
//! rule that is missing is named, nothing is half-done or torn down, and all goes on when the right is back.

use crate::bed::{Bed, NS, PATIENCE, condition};
use crate::granted::{Right, rights};
use crate::lab::{BEFORE_REMOVAL, Lab, everything, storage};
use crate::rules::one_for_each_resource;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::time::Instant;
use vdo_testbed::{Probe, until};

impl Lab {
    /// Nothing is made as long as a single right to make it is missing. A new storage driver does not begin without its cloud provider;
    /// the cloud provider does without the storage driver, so that one is asked for alone where a right is only its own.
    pub async fn installation(&mut self) -> Result<()> {
        let begun = Instant::now();
        let cloud = self.cloud_provider().await?;
        let own = self.all("vdo-operator").into_iter().filter(|right| right.is_for_making());
        // Whoever lacks what he grants may not grant it. To get ConfigMaps is granted in two ways, by a role of the storage driver and by
        // one of Kubernetes itself that the cloud provider is bound to; without it, each is told in its own words.
        let twice = |right: &Right| right.resource == "configmaps" && right.verb == "get";
        let granted = self
            .all("vdo-operator-drivers")
            .into_iter()
            .filter(|right| !right.is_read_by_us(self) && !twice(right));
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

    /// One repair is not possible: the others are made, and it when its right is back.
    pub async fn drift(&mut self) -> Result<()> {
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
    pub async fn removal(&mut self) -> Result<()> {
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
            self.untouched(&before, &format!("without the right to {right}")).await?;
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
    pub fn is_for_watching(&self, all: &[Self]) -> bool {
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
