// SPDX-License-Identifier: Apache-2.0
//! Machines and tags fixed by an administrator, and taken back: every step, every kill, every refusal.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests")]

use anyhow::{Context, Result, ensure};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use vdo_admin::accounts::{ChangeError, Consent};
use vdo_admin::administrator::Administrator;
use vdo_admin::fixes::{Catalog, MachineState, Record, Step, Undo, check_machine, plan, read_for, undo};
use vdo_api::facts::{Credentials, Node, Place};
use vdo_api::types::{Remedy as _, Secret, Trust};
use vdo_testbed::soap::{SoapOptions, SoapProxy};
use vdo_testbed::{Vcenter, VcenterOptions};
use vdo_vsphere::vcenter::Endpoint;
use vdo_vsphere::vsphere::{ManagedObject, Requirements, SessionError, match_vms};

const NODES: [(&str, &str); 2] = [("n-1", "10.0.0.1"), ("n-2", "10.0.0.2")];
const NOW: jiff::Timestamp = jiff::Timestamp::UNIX_EPOCH;

/// A vCenter in which two powered off nodes need everything that can be fixed, and a proxy that counts what is asked of it.
struct Lab {
    vcenter: Vcenter,
    proxy: SoapProxy,
    nodes: Vec<Arc<Node>>,
    record: Record,
}

fn requirements() -> Requirements {
    Requirements {
        zone_and_region: Some(("zone".into(), "region".into())),
        categories: vec!["zone".into()],
        ..Requirements::default()
    }
}

impl Lab {
    async fn start(modern: bool) -> Result<Self> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let vcenter = Vcenter::start(VcenterOptions::with_vms(NODES)).await?;
        vcenter.enforce(true).await?;
        let off = [("power", "poweredOff"), ("hardware", "vmx-13")];
        vcenter.set("VirtualMachine", "n-1", &[off[0], off[1], ("disk-uuid", "")]).await?;
        vcenter
            .set("VirtualMachine", "n-2", &[off[0], off[1], ("disk-uuid", "false")])
            .await?;
        let options = SoapOptions {
            modern,
            ..SoapOptions::default()
        };
        let labels = ["zone", "region"].map(|what| (format!("topology.kubernetes.io/{what}"), format!("{what}-a")));
        let node = |(name, address): (&str, &str)| {
            Arc::new(Node {
                name: name.into(),
                addresses: vec![address.into()],
                uninitialized: true,
                place: Place {
                    labels: labels.iter().cloned().collect(),
                    ..Place::default()
                },
                ..Node::default()
            })
        };
        Ok(Self {
            proxy: SoapProxy::start(&vcenter, options).await?,
            vcenter,
            nodes: NODES.map(node).into(),
            record: Record::new("vc", "instance", NOW),
        })
    }

    async fn administrator(&self) -> Result<Administrator> {
        let endpoint = Endpoint {
            server: self.proxy.host().into(),
            port: self.proxy.port(),
            trust: Trust::CaBundle(self.proxy.ca_pem().into()),
        };
        let credentials = Credentials {
            user: self.vcenter.user().into(),
            password: Secret::new(self.vcenter.password()),
        };
        Ok(Administrator::open(endpoint, credentials, &Consent::given()).await?)
    }

    /// What is to be done now, and the tags that this follows from.
    async fn plan(&self, admin: &Administrator) -> Result<(Vec<Step>, Catalog)> {
        let (requirements, inventory) = (requirements(), admin.inventory().await?);
        let reports = match_vms(&self.nodes, &inventory, &[], &requirements);
        let objects = read_for(&inventory, &reports);
        let catalog = admin.catalog(&requirements.all_categories(), &objects, false).await?;
        let fixes = plan(&requirements, &self.nodes, &reports, &inventory, &catalog, true);
        Ok((fixes.into_iter().flat_map(|fix| fix.steps).collect(), catalog))
    }

    /// Makes the first so many steps of a new plan, as an administrator who logs in for it. How many there were.
    async fn fix(&mut self, most: usize) -> Result<usize> {
        let admin = self.administrator().await?;
        let (steps, mut catalog) = self.plan(&admin).await?;
        for step in steps.iter().take(most) {
            self.make(&admin, step, &mut catalog).await?;
        }
        admin.close().await;
        Ok(steps.len())
    }

    async fn make(&mut self, admin: &Administrator, step: &Step, catalog: &mut Catalog) -> Result<()> {
        let seen = match step.machine() {
            Some(machine) => admin.machine(&machine.object()).await?,
            None => None,
        };
        check_machine(step, seen.as_ref())?;
        let step = step.after(seen.as_ref());
        self.record.add(&step, NOW);
        let id = admin.repair(&step, seen.as_ref(), catalog, &self.record.mark).await?;
        catalog.apply(&step, &self.record.mark, &id);
        Ok(())
    }

    /// Undoes the last so many steps of the record; how many could be.
    async fn take_back(&mut self, most: usize) -> Result<usize> {
        let admin = self.administrator().await?;
        let mut back = 0;
        for entry in self.record.steps.clone().iter().rev().take(most) {
            let (machine, catalog) = self.live(&admin, &entry.step).await?;
            if let Undo::Step(step) = undo(&entry.step, &self.record.mark, machine.as_ref(), &catalog) {
                admin.repair(&step, machine.as_ref(), &catalog, &self.record.mark).await?;
                back += 1;
            }
            self.record.remove(&entry.step);
        }
        admin.close().await;
        Ok(back)
    }

    async fn live(&self, admin: &Administrator, step: &Step) -> Result<(Option<MachineState>, Catalog)> {
        let machine = match step.machine() {
            Some(machine) => admin.machine(&machine.object()).await?,
            None => None,
        };
        let objects: Vec<ManagedObject> = match step {
            Step::AttachTag { object, .. } => vec![object.clone()],
            _ => Vec::new(),
        };
        let requirements = requirements();
        Ok((machine, admin.catalog(&requirements.all_categories(), &objects, true).await?))
    }

    /// Everything that a fix may change: the tags and the machines, without what the vCenter counts.
    async fn everything(&self) -> Result<(Catalog, BTreeMap<String, MachineState>)> {
        let admin = self.administrator().await?;
        let inventory = admin.inventory().await?;
        let objects: Vec<ManagedObject> = inventory.places.values().map(|place| place.object.clone()).collect();
        let requirements = requirements();
        let mut catalog = admin.catalog(&requirements.all_categories(), &objects, true).await?;
        catalog.attached.retain(|_, tags| !tags.is_empty());
        let mut machines = BTreeMap::new();
        for machine in &inventory.machines {
            let object = ManagedObject {
                kind: "VirtualMachine".into(),
                id: machine.id.clone(),
            };
            let state = admin.machine(&object).await?.context("a machine")?;
            let without = MachineState {
                version: String::new(),
                ..state
            };
            machines.insert(machine.path.clone(), without);
        }
        admin.close().await;
        Ok((catalog, machines))
    }
}

/// Killed after each step, the next run goes on; at the end there is nothing left to fix. Undone, killed after each step too, everything is
/// as it was, but for the hardware version. In both dialects of the service for tags.
#[tokio::test(flavor = "multi_thread")]
async fn fix_killed_after_each_step_goes_on_and_is_undone() -> Result<()> {
    for modern in [false, true] {
        let mut lab = Lab::start(modern).await?;
        let before = lab.everything().await?;
        let number = lab.fix(0).await?;
        ensure!(
            number == 10,
            "two categories, each with one tag on one object, and two machines twice: {number}"
        );
        for left in (1..=number).rev() {
            ensure!(lab.fix(1).await? == left, "{left} left: {:?}", lab.record.steps.last());
        }
        ensure!(lab.fix(1).await? == 0, "something is left to fix");
        let (catalog, machines) = lab.everything().await?;
        ensure!(catalog.categories.len() == 2 && catalog.attached.len() == 2, "{catalog:?}");
        for (path, machine) in &machines {
            ensure!(
                (machine.disk_uuid.as_deref(), machine.hardware.as_str()) == (Some("TRUE"), "vmx-15"),
                "{path}: {machine:?}"
            );
        }
        let mut undone = 0;
        for _ in 0..number {
            undone += lab.take_back(1).await?;
        }
        ensure!(
            lab.record.steps.is_empty() && undone == number - 2,
            "all but two hardware versions: {undone}"
        );
        let (catalog, mut machines) = lab.everything().await?;
        machines.values_mut().for_each(|machine| machine.hardware = "vmx-13".into());
        ensure!((catalog, machines) == before);
    }
    Ok(())
}

/// Each privilege that is missing is named, with the object; nothing is changed then.
#[tokio::test(flavor = "multi_thread")]
async fn fix_without_a_privilege_names_it_and_the_object() -> Result<()> {
    let mut lab = Lab::start(false).await?;
    let admin = lab.administrator().await?;
    let mut seen = BTreeSet::new();
    let mut catalog = lab.plan(&admin).await?.1;
    for step in lab.plan(&admin).await?.0 {
        let (privilege, object) = step.privilege();
        let machine = lab.live(&admin, &step).await?.0;
        lab.vcenter.deny(lab.vcenter.user(), &[privilege]).await?;
        let error = admin.repair(&step, machine.as_ref(), &catalog, "mark").await.unwrap_err();
        let reported = matches!(&error, ChangeError::NotPermitted { privilege: own, object: on, .. } if own == privilege && on == object);
        ensure!(reported, "{step}: {error:?}");
        lab.vcenter.deny(lab.vcenter.user(), &[]).await?;
        seen.insert(privilege);
        lab.make(&admin, &step, &mut catalog).await?;
    }
    ensure!(seen.len() == 5, "{seen:?}");
    // And on the way back.
    for entry in lab.record.steps.clone().iter().rev() {
        let (machine, catalog) = lab.live(&admin, &entry.step).await?;
        let Undo::Step(back) = undo(&entry.step, &lab.record.mark, machine.as_ref(), &catalog) else {
            continue;
        };
        let (privilege, object) = back.privilege();
        lab.vcenter.deny(lab.vcenter.user(), &[privilege]).await?;
        let error = admin.repair(&back, machine.as_ref(), &catalog, "mark").await.unwrap_err();
        let reported = matches!(&error, ChangeError::NotPermitted { privilege: own, object: on, .. } if own == privilege && on == object);
        ensure!(reported, "{back}: {error:?}");
        lab.vcenter.deny(lab.vcenter.user(), &[]).await?;
        admin.repair(&back, machine.as_ref(), &catalog, "mark").await?;
        seen.insert(privilege);
    }
    ensure!(seen.len() == 7, "{seen:?}");
    Ok(())
}

/// What another user does meanwhile is seen, and left.
#[tokio::test(flavor = "multi_thread")]
async fn fix_of_what_changed_meanwhile_is_refused() -> Result<()> {
    let mut lab = Lab::start(false).await?;
    let admin = lab.administrator().await?;
    let (steps, mut catalog) = lab.plan(&admin).await?;
    // A category of the same name is that user's.
    lab.vcenter.tag("region", "other", "Datacenter", "DC0").await?;
    let error = admin.repair(&steps[0], None, &catalog, "mark").await.unwrap_err();
    ensure!(error.is_already_there(), "{error:?}");
    let setting = steps
        .iter()
        .find(|step| matches!(step, Step::SetDiskUuid { .. }))
        .context("a setting")?
        .clone();
    let upgrade = steps.iter().find(|step| !step.is_reversible()).context("an upgrade")?.clone();
    // Renamed and moved, a machine is the same one.
    lab.vcenter.set("VirtualMachine", "n-1", &[("vapp", "app")]).await?;
    lab.make(&admin, &setting, &mut catalog).await?;
    lab.vcenter.set("VirtualMachine", "n-1", &[("power", "poweredOn")]).await?;
    let error = lab.make(&admin, &upgrade, &mut catalog).await.unwrap_err();
    ensure!(error.to_string().contains("is poweredOn; it must be powered off"), "{error}");
    // So says the vCenter itself where it changes after the last look.
    let machine = admin.machine(&upgrade.machine().context("a machine")?.object()).await?;
    let error = admin.repair(&upgrade, machine.as_ref(), &catalog, "mark").await.unwrap_err();
    ensure!(
        matches!(&error, ChangeError::Refused { kind, .. } if kind == "InvalidPowerState"),
        "{error:?}"
    );
    lab.vcenter
        .set("VirtualMachine", "n-1", &[("power", "poweredOff"), ("instance-uuid", "another")])
        .await?;
    let error = lab.make(&admin, &upgrade, &mut catalog).await.unwrap_err();
    ensure!(error.to_string().contains("no longer exists"), "{error}");
    // A session that the vCenter has ended is not had again with the password.
    lab.vcenter
        .set(
            "VirtualMachine",
            "n-1",
            &[("instance-uuid", &setting.machine().context("a machine")?.instance_uuid)],
        )
        .await?;
    lab.vcenter.fail_next("UpgradeVM_Task", "NotAuthenticated", 1).await?;
    let error = admin.repair(&upgrade, machine.as_ref(), &catalog, "mark").await.unwrap_err();
    ensure!(matches!(&error, ChangeError::Session(SessionError::Lost { .. })), "{error:?}");
    ensure!(
        error.remedy().is_some_and(|remedy| remedy.contains("Run the same command again")),
        "{error:?}"
    );
    Ok(())
}

/// How many calls a whole fix takes: with two nodes that need everything, login and logout included.
#[tokio::test(flavor = "multi_thread")]
async fn fix_takes_few_calls() -> Result<()> {
    let mut lab = Lab::start(false).await?;
    let steps = lab.fix(usize::MAX).await? as u64;
    let calls: u64 = lab.proxy.calls().values().sum();
    println!("{calls} calls for {steps} steps: {:?}", lab.proxy.calls());
    // A login, an inventory and a logout, the tags that are there; a step of tags is one call, one of a machine at least three.
    ensure!(calls <= 15 + 4 * steps, "{calls} calls for {steps} steps: {:?}", lab.proxy.calls());
    Ok(())
}
