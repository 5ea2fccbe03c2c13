// SPDX-License-Identifier: Apache-2.0
//! What is in the way of an account: one sentence, a remedy, and nothing else is changed.

use super::{listed, user_in_secret, users};
use crate::common::Bed;
use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use std::collections::BTreeSet;
use vdo_admin::accounts::{Consent, Mark, OwnRole, Principal, Step, role_name};
use vdo_admin::administrator::Administrator;
use vdo_api::facts::Credentials;
use vdo_api::types::{Secret, Trust};
use vdo_vsphere::vcenter::Endpoint;

pub const PASSWORD: &str = "Aa1-Aa1-Aa1-Aa1-Aa1";
const NOW: jiff::Timestamp = jiff::Timestamp::UNIX_EPOCH;

pub fn endpoint(bed: &Bed) -> Endpoint {
    Endpoint {
        server: bed.vcenter.host().into(),
        port: bed.vcenter.port(),
        trust: Trust::CaBundle(bed.vcenter.ca_pem().into()),
    }
}

pub async fn administrator(bed: &Bed) -> Result<Administrator> {
    let credentials = Credentials {
        user: bed.vcenter.user().into(),
        password: Secret::new(bed.vcenter.password()),
    };
    Ok(Administrator::open(endpoint(bed), credentials, &Consent::given()).await?)
}

/// `users create` ends with this code and these words.
pub fn is_refused(bed: &Bed, more: &[&str], expected: i32, words: [&str; 2]) -> Result<()> {
    let (code, text) = users(bed, "create", &[&["--yes"], more].concat())?;
    let said = words.iter().all(|words| text.contains(words));
    ensure!(code == expected && said, "exit {code}, not {expected} with {words:?}\n{text}");
    Ok(())
}

pub async fn each_changes_nothing(bed: &Bed) -> Result<()> {
    let vcenter = &bed.vcenter;
    let root = vcenter.id("Folder", "Datacenters").await?;

    let admin = administrator(bed).await?;
    let user = "storage@vsphere.local".to_owned();
    let foreign = Step::CreateUser {
        user: user.clone(),
        description: "storage team".into(),
    };
    admin.carry_out(&foreign, &Secret::new(PASSWORD), NOW).await?;
    is_refused(
        bed,
        &["--name", "storage"],
        4,
        ["was not created by vdoctl users", "--existing storage@vsphere.local"],
    )?;
    admin.carry_out(&Step::DeleteUser { user }, &Secret::default(), NOW).await?;
    vcenter.freeze_users(true).await?;
    is_refused(bed, &[], 6, ["The domain can only be read", "--existing"])?;
    vcenter.freeze_users(false).await?;
    vcenter.demand_password(30, 20).await?;
    is_refused(bed, &[], 4, ["no password meets the policy", "Single Sign On"])?;
    vcenter.demand_password(8, 20).await?;
    vcenter.deny_on(vcenter.user(), &root, &["Authorization.ModifyPermissions"]).await?;
    let needed = "needs the privilege Authorization.ModifyPermissions on Folder /";
    is_refused(
        bed,
        &[],
        4,
        [needed, "Log in as a user with Authorization.ModifyPermissions on Folder /"],
    )?;
    vcenter.deny(vcenter.user(), &[]).await?;
    is_refused(bed, &["--storage-policy", "Gold"], 3, ["Gold", "vSAN Default Storage Policy"])?;
    vcenter.place("aa6d5a82-1c88-45da-85d3-3d74b91a5bad", &["datastore-0"]).await?;
    let policy = ["--storage-policy", "vSAN Default Storage Policy"];
    is_refused(bed, &policy, 4, ["no datastore meets storage policy vSAN", "--datastore"])?;
    vcenter.place("aa6d5a82-1c88-45da-85d3-3d74b91a5bad", &[]).await?;
    let found = listed(bed)?;
    ensure!(
        found["accounts"] == json!([]) && found["roles"] == json!([]),
        "something was changed: {found}"
    );

    let needed: BTreeSet<String> = ["Cns.Searchable".to_owned(), "StorageProfile.View".into()].into();
    let role = OwnRole {
        name: role_name(&needed),
        privileges: &needed | &["VApp.Import".to_owned()].into(),
    };
    let name = role.name.clone();
    admin.carry_out(&Step::CreateRole(role), &Secret::default(), NOW).await?;
    is_refused(bed, &[], 4, ["must not have: VApp.Import", "users shrink"])?;
    admin.carry_out(&Step::DeleteRole { name }, &Secret::default(), NOW).await?;

    // A session that ends halfway: the next run goes on with what is there.
    vcenter.fail_next("SetEntityPermissions", "NotAuthenticated", 1).await?;
    is_refused(bed, &[], 6, ["the session", "the command continues where it stopped"])?;
    ensure!(user_in_secret(bed).await? == vcenter.user(), "the Secret was written");
    admin.close().await;
    Ok(())
}

pub async fn when_locked(bed: &Bed, account: &str) -> Result<()> {
    bed.vcenter.lock(account, true).await?;
    is_refused(bed, &[], 4, ["is locked in vCenter", "Unlock or enable"])?;
    bed.vcenter.lock(account, false).await
}

/// Makes or deletes a user of the same cluster in a vCenter that shares the domain; gives its name.
pub async fn user_of_another_vcenter(bed: &Bed, made: bool) -> Result<String> {
    let admin = administrator(bed).await?;
    let own = admin.people("vsphere.local", "vdo-", NOW).await?;
    let own: Option<Mark> = own.iter().find_map(|person| person.description.parse().ok());
    let mark = Mark {
        vcenter: "11111111-6a55-4c8e-9d43-0f6f3a1c7e11".into(),
        ..own.context("an account")?
    };
    let user = Principal::user(&mark.names()[0], "vsphere.local").to_string();
    let step = match made {
        true => Step::CreateUser {
            user: user.clone(),
            description: mark.to_string(),
        },
        false => Step::DeleteUser { user: user.clone() },
    };
    admin.carry_out(&step, &Secret::new(PASSWORD), NOW).await?;
    admin.close().await;
    Ok(user)
}
