// SPDX-License-Identifier: Apache-2.0
//! What an administrator cannot do, and what is in the way: each with its sentence and its remedy, and nothing else is changed.

use super::lab::{Lab, NODES, NOW, administrator, mark, user};
use anyhow::{Result, ensure};
use std::collections::BTreeSet;
use vdo_admin::accounts::{ChangeError, OwnRole, Person, Review, Step};
use vdo_api::types::Remedy as _;
use vdo_testbed::VcenterOptions;
use vdo_vsphere::vsphere::{Feature, SessionError};

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
    let create = Step::CreateRole(OwnRole::of(&BTreeSet::new()));
    other.permits(std::slice::from_ref(&create)).await?;
    let error = other.permits(&[create, grant.clone()]).await.unwrap_err();
    ensure!(
        matches!(&error, ChangeError::NotPermitted { privilege, object, .. } if privilege == "Authorization.ModifyPermissions" && object == "Folder /"),
        "{error:?}"
    );
    ensure!(
        error
            .remedy()
            .is_some_and(|remedy| remedy.contains("Authorization.ModifyPermissions on Folder /")),
        "{error:?}"
    );
    lab.admin.permits(std::slice::from_ref(&grant)).await?;
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
    ensure!(error.to_string().contains("was not created by vdoctl users"), "{error}");
    let found = lab.admin.people("vsphere.local", "", NOW).await?;
    let expected = Person {
        name: "k8s".into(),
        description: "storage team".into(),
        ..Person::default()
    };
    ensure!(found.contains(&expected), "{found:?}");
    Ok(())
}

/// All users of a domain are read, however many there are: one of ours may be the last.
#[tokio::test(flavor = "multi_thread")]
async fn account_in_a_domain_of_many_users_is_found() -> Result<()> {
    let lab = Lab::small().await?;
    for number in 0..1100 {
        let user = Step::CreateUser {
            user: format!("user-{number}@vsphere.local"),
            description: format!("employee {number}"),
        };
        lab.carry_out(&[user]).await?;
    }
    let found = lab.admin.people("vsphere.local", "user-", NOW).await?;
    ensure!(found.len() == 1100, "{}", found.len());
    Ok(())
}

/// What is deleted between the plan and its steps is named; what is renamed is found by its identifier.
#[tokio::test(flavor = "multi_thread")]
async fn account_object_deleted_or_renamed_meanwhile() -> Result<()> {
    let mut lab = Lab::small().await?;
    let (k8s, features) = (user("k8s"), [Feature::Block]);
    let steps = lab.plan(&k8s, &features, false).await?;
    lab.vcenter.fail_next("SetEntityPermissions", "ManagedObjectNotFound", 1).await?;
    let error = lab.carry_out(&steps).await.unwrap_err();
    ensure!(
        error.to_string().contains("grant role vdo-") && error.remedy().is_some_and(|remedy| remedy.contains("deleted in the meantime")),
        "{error:?}"
    );
    lab.vcenter.set("Datacenter", "DC0", &[("new-name", "DC9")]).await?;
    lab.carry_out(&lab.plan(&k8s, &features, false).await?).await?;
    lab.inventory = lab.admin.inventory().await?;
    ensure!(lab.inventory.datacenters == ["/DC9"], "{:?}", lab.inventory.datacenters);
    ensure!(lab.plan(&k8s, &features, true).await?.is_empty());
    ensure!(lab.review(&k8s, &features).await? == Review::default());
    Ok(())
}

/// Two administrators with the same plan: a role that is there already is as good as made, a user is not, and the second one goes on.
#[tokio::test(flavor = "multi_thread")]
async fn account_made_by_two_administrators_at_once() -> Result<()> {
    let lab = Lab::small().await?;
    let (k8s, features) = (user("k8s"), [Feature::Block]);
    let plan = lab.plan(&k8s, &features, false).await?;
    lab.carry_out(&plan).await?;
    let error = lab.carry_out(&plan).await.unwrap_err();
    ensure!(
        error.is_already_there()
            && error
                .remedy()
                .is_some_and(|remedy| remedy.starts_with("Another user has created the object")),
        "{error:?}"
    );
    lab.carry_out(&plan[1..]).await?;
    let rest = lab.plan(&k8s, &features, false).await?;
    ensure!(matches!(&rest[..], [Step::SetPassword { .. }]), "{rest:?}");
    ensure!(lab.review(&k8s, &features).await? == Review::default());
    Ok(())
}

/// A locked account is not given a password.
#[tokio::test(flavor = "multi_thread")]
async fn account_that_is_locked_is_named() -> Result<()> {
    let lab = Lab::small().await?;
    let k8s = user("k8s");
    lab.carry_out(&lab.plan(&k8s, &[Feature::Block], false).await?).await?;
    lab.vcenter.lock("k8s@vsphere.local", true).await?;
    let error = lab.plan(&k8s, &[Feature::Block], false).await.unwrap_err();
    ensure!(error.to_string() == "user k8s@vsphere.local is locked in vCenter", "{error}");
    lab.vcenter.lock("k8s@vsphere.local", false).await?;
    ensure!(!lab.plan(&k8s, &[Feature::Block], false).await?.is_empty());
    Ok(())
}

/// The datastores of a storage policy are those that the vCenter names, and an unknown policy is answered with the names that there are.
#[tokio::test(flavor = "multi_thread")]
async fn account_datastores_of_a_storage_policy() -> Result<()> {
    let options = VcenterOptions {
        datastores: 3,
        ..VcenterOptions::with_vms(NODES)
    };
    let lab = Lab::start(options, []).await?;
    let ids: Vec<&str> = lab.inventory.datastores.iter().map(|one| one.id.as_str()).collect();
    let policy = "vSAN Default Storage Policy";
    let all = lab.admin.datastores_of(policy).await?;
    ensure!(all.as_ref().is_ok_and(|found| found.len() == 3), "{all:?}");
    lab.vcenter.place("aa6d5a82-1c88-45da-85d3-3d74b91a5bad", &ids[1..2]).await?;
    let one = lab.admin.datastores_of(policy).await?;
    ensure!(one == Ok([ids[1].to_owned()].into()), "{one:?}");
    let none = lab.admin.datastores_of("Gold").await?;
    ensure!(none.is_err_and(|names| names.iter().any(|name| name == policy)));
    Ok(())
}
