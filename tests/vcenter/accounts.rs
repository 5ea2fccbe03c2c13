//! Accounts made by an administrator in a vCenter that enforces privileges: they can do their work, and nothing else.
#![cfg(feature = "io")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests")]

use anyhow::{Context, Result, ensure};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;
use vdo::accounts::{
    Authorization, ChangeError, Consent, Grant, Mark, OwnRole, PasswordPolicy, Person, Principal, Review, Step, grants, password, path_of,
    plan_create, plan_delete, plan_shrink, review,
};
use vdo::api::ConditionType;
use vdo::drivers::{CPI, CSI};
use vdo::facts::{Credentials, Node};
use vdo::reconcile::connection::examine;
use vdo::types::{Remedy as _, Secret, Trust};
use vdo::vcenter::{Administrator, Budget, Endpoint, Session};
use vdo::vsphere::{
    ConnectionReport, Feature, InspectionRequest, Inventory, ManagedObject, RequiredPrivilege, Requirements, SessionError, match_vms,
    required_privileges,
};
use vdo_testbed::{Logins, Vcenter, VcenterOptions};

const NODES: [(&str, &str); 3] = [("n-1", "10.0.0.1"), ("n-2", "10.0.0.2"), ("n-3", "10.0.0.3")];
const NOW: jiff::Timestamp = jiff::Timestamp::UNIX_EPOCH;

/// A vCenter that enforces privileges, with an administrator logged in.
struct Lab {
    vcenter: Vcenter,
    admin: Administrator,
    inventory: Inventory,
    nodes: Vec<Arc<Node>>,
    password: Secret,
}

fn endpoint(vcenter: &Vcenter) -> Endpoint {
    Endpoint {
        server: vcenter.host().into(),
        port: vcenter.port(),
        trust: Trust::CaBundle(vcenter.ca_pem().into()),
    }
}

async fn administrator(vcenter: &Vcenter, user: &str, password: &str) -> Result<Administrator, SessionError> {
    let credentials = Credentials {
        user: user.into(),
        password: Secret::new(password),
    };
    Administrator::open(endpoint(vcenter), credentials, &Consent::given()).await
}

fn requirements(features: &[Feature]) -> Requirements {
    Requirements {
        drivers: [CPI, CSI].map(Into::into).into(),
        features: features.iter().copied().collect(),
        ..Requirements::default()
    }
}

fn user(name: &str) -> Principal {
    Principal::user(name, "vsphere.local")
}

fn mark() -> Mark {
    Mark {
        cluster: "0c9c2a4e-7d1b-4a7e-9a50-3f5d1f2e7b11".into(),
        drivers: ["csi".to_owned()].into(),
    }
}

impl Lab {
    async fn start(options: VcenterOptions, nodes: impl IntoIterator<Item = (String, String)>) -> Result<Self> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let vcenter = Vcenter::start(options).await?;
        vcenter.enforce(true).await?;
        let admin = administrator(&vcenter, vcenter.user(), vcenter.password()).await?;
        let inventory = admin.inventory().await?;
        let node = |(name, address): (String, String)| {
            Arc::new(Node {
                name,
                addresses: vec![address],
                ..Node::default()
            })
        };
        Ok(Self {
            inventory,
            admin,
            vcenter,
            nodes: nodes.into_iter().map(node).collect(),
            password: Secret::new("Aa1-Aa1-Aa1-Aa1-Aa1"),
        })
    }

    async fn small() -> Result<Self> {
        let options = VcenterOptions {
            hosts: 2,
            more_users: [("half@vsphere.local".to_owned(), "half".to_owned())].into(),
            // A machine that is no node.
            ..VcenterOptions::with_vms(NODES.into_iter().chain([("other", "10.0.0.9")]))
        };
        Self::start(options, NODES.map(|(name, address)| (name.to_owned(), address.to_owned()))).await
    }

    fn needs(&self, features: &[Feature]) -> Result<(Vec<RequiredPrivilege>, Vec<Grant>)> {
        let requirements = requirements(features);
        let found = match_vms(&self.nodes, &self.inventory, &[], &requirements);
        let required = required_privileges(&requirements, false, &self.inventory, &found);
        let all = grants(&required, &self.inventory, &found, &BTreeSet::new())?;
        Ok((required, all))
    }

    async fn plan(&self, principal: &Principal, features: &[Feature], known: bool) -> Result<Vec<Step>> {
        let person = self.admin.person(principal, NOW).await?;
        let live = self.admin.authorization().await?;
        Ok(plan_create(
            principal,
            Some(&mark()),
            person.as_ref(),
            known,
            &self.needs(features)?.1,
            &live,
        )?)
    }

    async fn carry_out(&self, steps: &[Step]) -> Result<(), ChangeError> {
        for step in steps {
            self.admin.carry_out(step, &self.password, NOW).await?;
        }
        Ok(())
    }

    /// Everything that the operator checks, as this account.
    async fn examined(&self, principal: &Principal, features: &[Feature]) -> ConnectionReport {
        let credentials = Credentials {
            user: principal.to_string(),
            password: self.password.clone(),
        };
        let request = InspectionRequest {
            requirements: requirements(features),
            nodes: self.nodes.clone(),
            alone: true,
            ..InspectionRequest::default()
        };
        examine(&endpoint(&self.vcenter), &credentials, request, NOW, &Budget::default()).await
    }

    async fn review(&self, principal: &Principal, features: &[Feature]) -> Result<Review> {
        let (required, granted) = self.needs(features)?;
        let live = self.admin.authorization().await?;
        let own = live.of(principal).map(|(permission, _)| permission.object.clone());
        let objects: BTreeSet<ManagedObject> = required.iter().map(|one| one.object.clone()).chain(own).collect();
        let effective = self.admin.effective(principal, &objects.into_iter().collect::<Vec<_>>()).await?;
        Ok(review(principal, &required, &granted, &effective, &live, &self.inventory))
    }

    async fn delete(&self, principal: &Principal) -> Result<Vec<Step>> {
        let live = self.admin.authorization().await?;
        Ok(plan_delete(principal, true, &live, |object| path_of(&self.inventory, object)))
    }

    async fn all(&self) -> Result<Authorization> {
        let mut all = self.admin.authorization().await?;
        all.permissions
            .sort_by(|a, b| (&a.object, &a.principal).cmp(&(&b.object, &b.principal)));
        Ok(all)
    }
}

/// For each set of features: made, killed in the middle and repeated, the account passes every check of the operator and has nothing
/// beyond; shrunk and deleted, nothing of it is left.
#[tokio::test(flavor = "multi_thread")]
async fn account_has_exactly_what_is_needed_and_leaves_nothing() -> Result<()> {
    let lab = Lab::small().await?;
    let before = lab.all().await?;
    let k8s = user("k8s");
    for features in [
        &[Feature::CloudProvider][..],
        &[Feature::Block],
        &[Feature::CloudProvider, Feature::Block, Feature::Topology],
    ] {
        let whole = lab.plan(&k8s, features, false).await?;
        lab.carry_out(&whole[..whole.len() / 2]).await?;
        lab.carry_out(&lab.plan(&k8s, features, false).await?).await?;
        ensure!(
            lab.plan(&k8s, features, true).await?.is_empty(),
            "{features:?}: a second run has something to do"
        );
        let report = lab.examined(&k8s, features).await;
        for kind in [ConditionType::Authenticated, ConditionType::Authorized, ConditionType::NodesFound] {
            let check = report.check(kind).context("a check")?;
            ensure!(check.status == Some(true), "{features:?}: {}", check.text());
        }
        ensure!(report.privileges.checked > 3, "{:?}", report.privileges);
        ensure!(
            lab.review(&k8s, features).await? == Review::default(),
            "{:?}",
            lab.review(&k8s, features).await?
        );
        lab.carry_out(&lab.delete(&k8s).await?).await?;
        ensure!(lab.admin.person(&k8s, NOW).await?.is_none());
        ensure!(lab.all().await? == before, "{features:?}: something was left");
    }
    Ok(())
}

/// Remove any single privilege: exactly that one is named. Add one: it is named, with where it comes from, and shrink takes it.
#[tokio::test(flavor = "multi_thread")]
async fn account_review_names_single_changes() -> Result<()> {
    let lab = Lab::small().await?;
    let (k8s, features) = (user("k8s"), [Feature::Block, Feature::Topology]);
    lab.carry_out(&lab.plan(&k8s, &features, false).await?).await?;
    let name = k8s.down_level();
    for one in lab.needs(&features)?.0 {
        lab.vcenter.deny_on(&name, &one.object.id, &[&one.privilege]).await?;
        let found = lab.review(&k8s, &features).await?;
        let named: Vec<_> = found.missing.iter().map(|lack| (&lack.object, &lack.privilege)).collect();
        ensure!(named == [(&one.object, &one.privilege)], "{one:?}: {found:?}");
        lab.vcenter.deny(&name, &[]).await?;
    }
    // Another administrator adds a privilege to a role, and puts the account into a group.
    let live = lab.admin.authorization().await?;
    let disks = live
        .roles
        .iter()
        .find(|role| role.name.starts_with("vdo-virtualmachine"))
        .context("a role")?;
    let mut more = disks.privileges.clone();
    more.insert("VirtualMachine.Interact.PowerOff".into());
    let changed = OwnRole {
        name: disks.name.clone(),
        privileges: more,
    };
    let correct = |role| Step::CorrectRole {
        role,
        add: vec![],
        remove: vec![],
    };
    lab.carry_out(&[correct(changed)]).await?;
    let found = lab.review(&k8s, &features).await?;
    ensure!(found.missing.is_empty() && found.surplus.len() == NODES.len(), "{found:?}");
    ensure!(
        found.surplus[0].via.to_string() == format!("role {} there", disks.name),
        "{found:?}"
    );
    let grants = lab.needs(&features)?.1;
    lab.carry_out(&plan_shrink(&k8s, &grants, &live, |object| path_of(&lab.inventory, object)))
        .await?;
    let live = lab.admin.authorization().await?;
    lab.carry_out(&plan_shrink(&k8s, &grants, &live, |object| path_of(&lab.inventory, object)))
        .await?;
    ensure!(lab.review(&k8s, &features).await? == Review::default());

    lab.vcenter.join("k8s@vsphere.local", "storage@vsphere.local").await?;
    let role = OwnRole {
        name: "Importers".into(),
        privileges: ["VApp.Import".to_owned()].into(),
    };
    let grant = Step::Grant {
        principal: "VSPHERE.LOCAL\\storage".into(),
        group: true,
        object: lab.inventory.root.clone(),
        path: "/".into(),
        role: "Importers".into(),
        propagate: true,
        replaces: None,
    };
    lab.carry_out(&[Step::CreateRole(role), grant]).await?;
    ensure!(
        lab.review(&k8s, &features).await? == Review::default(),
        "a permission of the user hides those of its groups"
    );
    Ok(())
}

/// An old password ends with the new one, and sessions of an account can be ended.
#[tokio::test(flavor = "multi_thread")]
async fn account_password_and_sessions_can_be_replaced() -> Result<()> {
    let mut lab = Lab::small().await?;
    let k8s = user("k8s");
    lab.carry_out(&lab.plan(&k8s, &[Feature::Block], false).await?).await?;
    let credentials = |password: &Secret| Credentials {
        user: k8s.to_string(),
        password: password.clone(),
    };
    let old = lab.password.clone();
    let session = Session::open(endpoint(&lab.vcenter), credentials(&old), &Budget::default()).await?;
    let mut seed = 1_u8;
    let policy = lab.admin.policy("vsphere.local", NOW).await?;
    ensure!(policy == PasswordPolicy::default(), "{policy:?}");
    lab.password = password(&policy, |bytes| {
        for byte in bytes {
            seed = seed.wrapping_mul(167).wrapping_add(31);
            *byte = seed;
        }
    })?;
    let steps = lab.plan(&k8s, &[Feature::Block], false).await?;
    ensure!(matches!(&steps[..], [Step::SetPassword { .. }]), "{steps:?}");
    lab.carry_out(&steps).await?;
    let refused = Session::open(endpoint(&lab.vcenter), credentials(&old), &Budget::default()).await;
    ensure!(matches!(refused, Err(SessionError::InvalidLogin { .. })), "{refused:?}");
    Session::open(endpoint(&lab.vcenter), credentials(&lab.password), &Budget::default())
        .await?
        .close()
        .await;
    ensure!(lab.admin.end_sessions(&k8s).await? == 1);
    ensure!(lab.admin.end_sessions(&k8s).await? == 0);
    drop(session);
    Ok(())
}

/// A user who may not do something learns which privilege that needs, and where; nothing else is changed.
#[tokio::test(flavor = "multi_thread")]
async fn account_change_refused_names_what_is_missing() -> Result<()> {
    let lab = Lab::small().await?;
    let half = "half@vsphere.local";
    let role = OwnRole {
        name: "RolesOnly".into(),
        privileges: ["Authorization.ModifyRoles".to_owned()].into(),
    };
    let grant = Step::Grant {
        principal: user("half").down_level(),
        group: false,
        object: lab.inventory.root.clone(),
        path: "/".into(),
        role: "RolesOnly".into(),
        propagate: true,
        replaces: None,
    };
    lab.carry_out(&[Step::CreateRole(role), grant.clone()]).await?;
    let before = lab.all().await?;
    let other = administrator(&lab.vcenter, half, "half").await?;
    let error = other.carry_out(&grant, &lab.password, NOW).await.unwrap_err();
    ensure!(
        matches!(&error, ChangeError::NotPermitted { privilege, object, .. } if privilege == "Authorization.ModifyPermissions" && *object == format!("Folder {}", lab.inventory.root.id)),
        "{error:?}"
    );
    let error = other.person(&user("k8s"), NOW).await.unwrap_err();
    ensure!(
        matches!(&error, ChangeError::NoUserManager { domain, .. } if domain == "vsphere.local"),
        "{error:?}"
    );
    ensure!(error.remedy().is_some_and(|remedy| remedy.contains("--existing")), "{error:?}");

    let create = Step::CreateUser {
        user: "k8s@vsphere.local".into(),
        description: mark().to_string(),
    };
    lab.vcenter.freeze_users(true).await?;
    let error = lab.admin.carry_out(&create, &lab.password, NOW).await.unwrap_err();
    ensure!(
        error.to_string().contains("can only be read") && !error.to_string().contains(lab.password.expose()),
        "{error}"
    );
    lab.vcenter.freeze_users(false).await?;
    lab.vcenter.demand_password(30, 40).await?;
    ensure!(lab.admin.carry_out(&create, &lab.password, NOW).await.is_err());
    ensure!(lab.admin.policy("vsphere.local", NOW).await?.min_length == 30);
    lab.carry_out(&[Step::DeleteUser {
        user: "k8s@vsphere.local".into(),
    }])
    .await?;
    ensure!(lab.admin.person(&user("k8s"), NOW).await?.is_none());
    ensure!(lab.all().await? == before);

    // A session that the vCenter ended is not had again with the password.
    lab.vcenter.fail_next("AddAuthorizationRole", "NotAuthenticated", 1).await?;
    let role = Step::CreateRole(OwnRole::of(&BTreeSet::new()));
    let error = lab.admin.carry_out(&role, &lab.password, NOW).await.unwrap_err();
    ensure!(matches!(error, ChangeError::Session(SessionError::Lost { .. })), "{error:?}");
    ensure!(error.remedy().is_some_and(|remedy| remedy.contains("same command")), "{error:?}");
    Ok(())
}

/// A wrong password of the administrator is sent once, and nowhere else.
#[tokio::test(flavor = "multi_thread")]
async fn account_administrator_password_wrong_is_sent_once() -> Result<()> {
    let lab = Lab::small().await?;
    let refused = administrator(&lab.vcenter, lab.vcenter.user(), "wrong").await;
    ensure!(matches!(refused.err(), Some(SessionError::InvalidLogin { .. })));
    let logins: BTreeMap<String, Logins> = lab.vcenter.logins().await?;
    ensure!(logins.values().map(|one| one.failed).sum::<u64>() == 1, "{logins:?}");
    lab.admin.person(&user("k8s"), NOW).await?;
    lab.admin.close().await;
    let logins = lab.vcenter.logins().await?;
    let own = logins.get(lab.vcenter.user()).copied().unwrap_or_default();
    ensure!(
        (own.succeeded, own.failed) == (2, 1),
        "once for the vCenter, once for the token service: {logins:?}"
    );
    Ok(())
}

/// A user of that name that is not ours is left as it is.
#[tokio::test(flavor = "multi_thread")]
async fn account_of_another_owner_is_left_alone() -> Result<()> {
    let lab = Lab::small().await?;
    let foreign = Step::CreateUser {
        user: "k8s@vsphere.local".into(),
        description: "storage team".into(),
    };
    lab.carry_out(&[foreign]).await?;
    let error = lab.plan(&user("k8s"), &[Feature::Block], false).await.unwrap_err();
    ensure!(error.to_string().contains("was not made by vdoctl users"), "{error}");
    let found = lab.admin.people("vsphere.local", "", NOW).await?;
    let expected = Person {
        name: "k8s".into(),
        description: "storage team".into(),
        ..Person::default()
    };
    ensure!(found.contains(&expected), "{found:?}");
    Ok(())
}

/// With thousands of machines in folders of their own: one permission for each object, and few other calls.
#[tokio::test(flavor = "multi_thread")]
async fn account_in_a_large_vcenter_needs_few_calls() -> Result<()> {
    let options = VcenterOptions {
        large: Some((1, 500)),
        datastores: 20,
        hosts: 4,
        ..VcenterOptions::default()
    };
    let mut lab = Lab::start(options, []).await?;
    let machines = lab.inventory.machines.iter().take(50);
    let node = |machine: &vdo::vsphere::Machine| {
        Arc::new(Node {
            name: machine.host_name.clone(),
            addresses: machine.addresses.clone(),
            ..Node::default()
        })
    };
    lab.nodes = machines.map(node).collect();
    let (k8s, features) = (user("k8s"), [Feature::Block, Feature::CloudProvider]);
    let (before, begun) = (lab.vcenter.requests().await?, Instant::now());
    let steps = lab.plan(&k8s, &features, false).await?;
    lab.carry_out(&steps).await?;
    let calls = lab.vcenter.requests().await? - before;
    let permissions = steps.iter().filter(|step| matches!(step, Step::Grant { .. })).count() as u64;
    let report = lab.examined(&k8s, &features).await;
    ensure!(report.check(ConditionType::Authorized).and_then(|check| check.status) == Some(true));
    ensure!(
        permissions > 70 && calls <= permissions + 40,
        "{calls} calls for {permissions} permissions"
    );
    println!("{calls} calls, {permissions} of them permissions, in {:?}", begun.elapsed());
    Ok(())
}
