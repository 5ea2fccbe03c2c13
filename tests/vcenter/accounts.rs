// SPDX-License-Identifier: Apache-2.0
//! Accounts made by an administrator in a vCenter that enforces privileges: they can do their work, and nothing else.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests")]

pub mod lab;
mod refused;

use anyhow::{Context, Result, ensure};
use lab::{Lab, NODES, NOW, administrator, endpoint, user};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;
use vdo_admin::accounts::{OwnRole, PasswordPolicy, Review, Step, Unused, is_of_every_role, password, plan_shrink};
use vdo_api::api::ConditionType;
use vdo_api::facts::{Credentials, Node};
use vdo_api::types::Secret;
use vdo_testbed::{Logins, VcenterOptions};
use vdo_vsphere::vcenter::{Budget, Session};
use vdo_vsphere::vsphere::{Feature, SessionError};

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
        // What no role is without cannot be taken away alone.
        if !is_of_every_role(&one.privilege) {
            let report = lab.examined(&k8s, &features).await;
            let reported: Vec<_> = report
                .privileges
                .missing
                .iter()
                .map(|lack| (&lack.object, &lack.privilege, &lack.path))
                .collect();
            // The account sees less than the administrator, and calls the object by the same path.
            let named: Vec<_> = found
                .missing
                .iter()
                .map(|lack| (&lack.object, &lack.privilege, &lack.path))
                .collect();
            ensure!(reported == named, "{one:?}: {reported:?}, not {named:?}");
        }
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
        found.surplus[0].via.to_string() == format!("role {} on this object", disks.name),
        "{found:?}"
    );
    let grants = lab.needs(&features)?.1;
    lab.carry_out(&plan_shrink(&k8s, &grants, &live, Unused::Deleted, |object| {
        lab.inventory.path_of(object).to_owned()
    }))
    .await?;
    let live = lab.admin.authorization().await?;
    lab.carry_out(&plan_shrink(&k8s, &grants, &live, Unused::Deleted, |object| {
        lab.inventory.path_of(object).to_owned()
    }))
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

/// With thousands of machines in folders of their own: one permission for each object, and few other calls.
#[tokio::test(flavor = "multi_thread")]
async fn account_in_a_large_vcenter_needs_few_calls() -> Result<()> {
    let options = VcenterOptions {
        large: Some((1, 5000)),
        datastores: 200,
        hosts: 4,
        ..VcenterOptions::default()
    };
    let mut lab = Lab::start(options, []).await?;
    let machines = lab.inventory.machines.iter().take(50);
    let node = |machine: &vdo_vsphere::vsphere::Machine| {
        Arc::new(Node {
            name: machine.host_name.clone(),
            addresses: machine.addresses(),
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
        permissions > 250 && calls <= permissions + 40,
        "{calls} calls for {permissions} permissions"
    );
    println!("{calls} calls, {permissions} of them permissions, in {:?}", begun.elapsed());
    Ok(())
}
