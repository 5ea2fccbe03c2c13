// SPDX-License-Identifier: Apache-2.0
//! The same checks of a real vCenter, for what a simulated one cannot prove. Environment variables name it; docs/testing-real-vcenter.md
//! lists them and what to prepare there. Without them the tests are skipped and listed as such.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

use anyhow::{Context, Result, ensure};
use ring::rand::SecureRandom as _;
use std::sync::Arc;
use vdo::reconcile::connection::examine;
use vdo_admin::accounts::{Consent, Grant, Mark, Principal, Unused, is_of_every_role, password, plan_create, plan_delete};
use vdo_admin::administrator::Administrator;
use vdo_api::api::{ConditionType, Reason};
use vdo_api::facts::{Credentials, Node};
use vdo_api::types::{Secret, Thumbprint, Trust};
use vdo_core::drivers::{CPI, CSI};
use vdo_vsphere::vcenter::{Budget, Endpoint};
use vdo_vsphere::vsphere::{ConnectionReport, Feature, InspectionRequest, Requirements};

#[expect(
    clippy::disallowed_methods,
    reason = "a test has no argument parser; the page on testing lists the variables"
)]
fn variable(name: &str) -> Option<String> {
    std::env::var(format!("VDO_TEST_{name}")).ok().filter(|value| !value.is_empty())
}

/// The vCenter that the environment names.
fn vcenter() -> Result<Endpoint> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let address = variable("VCENTER").context("VDO_TEST_VCENTER")?;
    let (server, port) = match address.rsplit_once(':').filter(|(host, _)| !host.contains(':')) {
        Some((server, port)) => (server.to_owned(), port.parse()?),
        None => (address, 443),
    };
    let trust = match (variable("CA_FILE"), variable("THUMBPRINT")) {
        (Some(file), _) => Trust::CaBundle(std::fs::read_to_string(file)?),
        (None, Some(print)) => Trust::Thumbprint(print.parse()?),
        (None, None) => Trust::SystemRoots,
    };
    Ok(Endpoint { server, port, trust })
}

/// A user and the file with the password, by the names of their variables.
fn account(user: &str, file: &str) -> Result<Credentials> {
    let path = variable(file).with_context(|| format!("VDO_TEST_{file}"))?;
    let text = std::fs::read_to_string(path)?;
    Ok(Credentials {
        user: variable(user).with_context(|| format!("VDO_TEST_{user}"))?,
        password: Secret::new(text.trim_end_matches(['\r', '\n'])),
    })
}

/// The machines of nodes that the environment names, as `NAME=ADDRESS`.
fn nodes() -> Result<Vec<Arc<Node>>> {
    let text = variable("NODES").unwrap_or_default();
    let one = |text: &str| {
        let (name, address) = text.split_once('=').context("VDO_TEST_NODES: not NAME=ADDRESS")?;
        Ok(Arc::new(Node {
            name: name.to_owned(),
            addresses: vec![address.to_owned()],
            ..Node::default()
        }))
    };
    text.split(',').filter(|one| !one.is_empty()).map(one).collect()
}

async fn look(endpoint: &Endpoint, credentials: &Credentials) -> Result<ConnectionReport> {
    let question = InspectionRequest {
        server: endpoint.server.clone(),
        datacenters: variable("DATACENTERS")
            .map(|names| names.split(',').map(str::to_owned).collect())
            .unwrap_or_default(),
        requirements: Requirements {
            drivers: [CPI, CSI].map(Into::into).into(),
            features: [Feature::CloudProvider, Feature::Block].into(),
            ..Requirements::default()
        },
        nodes: nodes()?,
        alone: true,
        ..InspectionRequest::default()
    };
    let report = examine(endpoint, credentials, question, jiff::Timestamp::UNIX_EPOCH, &Budget::default()).await;
    for stage in &report.checks {
        println!(
            "  {:<20} {:?} {} {}",
            stage.kind.as_str(),
            stage.status,
            stage.reason,
            stage.message
        );
    }
    Ok(report)
}

fn holds(report: &ConnectionReport, kind: ConditionType) -> Option<bool> {
    report.check(kind).and_then(|stage| stage.status)
}

/// An account with the documented roles and nothing else passes every stage: enforcement by a real vCenter agrees with what is asked of it.
#[tokio::test]
#[ignore = "needs a real vCenter: VDO_TEST_VCENTER, VDO_TEST_USER and VDO_TEST_PASSWORD_FILE"]
async fn real_vcenter_documented_roles_pass_every_stage() -> Result<()> {
    let endpoint = vcenter()?;
    let report = look(&endpoint, &account("USER", "PASSWORD_FILE")?).await?;
    for stage in &report.checks {
        ensure!(stage.status == Some(true), "{stage:?}");
    }
    ensure!(report.privileges.missing.is_empty(), "{:?}", report.privileges.missing);
    Ok(())
}

/// An account that may only read learns what it lacks, and nothing is said to be there that is not.
#[tokio::test]
#[ignore = "needs a real vCenter: VDO_TEST_VCENTER, VDO_TEST_READONLY_USER and VDO_TEST_READONLY_PASSWORD_FILE"]
async fn real_vcenter_readonly_account_reports_missing_privileges() -> Result<()> {
    let endpoint = vcenter()?;
    let report = look(&endpoint, &account("READONLY_USER", "READONLY_PASSWORD_FILE")?).await?;
    let stage = report.check(ConditionType::Authorized).context("a stage")?;
    ensure!(
        (stage.status, stage.reason) == (Some(false), Reason::PrivilegesMissing),
        "{stage:?}"
    );
    // Which datastores and machines an account is asked about follows from the nodes.
    let of_nodes = ["Datastore.FileManagement", "VirtualMachine.Config.AddRemoveDevice"];
    let of_nodes = of_nodes.iter().filter(|_| variable("NODES").is_some());
    for privilege in ["Cns.Searchable", "StorageProfile.View"].iter().chain(of_nodes) {
        ensure!(
            report.privileges.missing.iter().any(|lack| lack.privilege == *privilege),
            "{privilege} is not said to be missing"
        );
    }
    Ok(())
}

/// An account is made with one permission, has exactly its privileges and none without it, logs in and is deleted: what is there afterwards
/// is what was there before.
#[tokio::test]
#[ignore = "needs a real vCenter that may be changed: VDO_TEST_VCENTER, VDO_TEST_ADMIN_USER and VDO_TEST_ADMIN_PASSWORD_FILE"]
async fn real_vcenter_account_is_made_and_leaves_nothing() -> Result<()> {
    #[expect(clippy::disallowed_methods, reason = "the clock enters the test here")]
    let now = jiff::Timestamp::now();
    let endpoint = vcenter()?;
    let administrator = account("ADMIN_USER", "ADMIN_PASSWORD_FILE")?;
    let domain = administrator.user.rsplit('@').next().context("a domain")?.to_owned();
    let admin = Administrator::open(endpoint.clone(), administrator, &Consent::given()).await?;
    let before = admin.authorization().await?;
    let mark = Mark {
        cluster: "real-vcenter-test".into(),
        vcenter: admin.instance().await?,
        drivers: ["cpi".to_owned()].into(),
    };
    let principal = Principal::user(&mark.names()[0], &domain);
    let root = admin.inventory().await?.root;
    let grants = [Grant {
        object: root.clone(),
        path: "/".into(),
        privileges: ["Cns.Searchable".to_owned()].into(),
        propagate: false,
    }];
    let random = ring::rand::SystemRandom::new();
    let secret = password(&admin.policy(&domain, now).await?, |bytes| random.fill(bytes).unwrap())?;
    let person = admin.person(&principal, now).await?;
    for step in plan_create(&principal, Some(&mark), person.as_ref(), false, &grants, &before)? {
        admin.carry_out(&step, &secret, now).await?;
    }
    let credentials = Credentials {
        user: principal.to_string(),
        password: secret.clone(),
    };
    let report = look(&endpoint, &credentials).await?;
    let held = admin.effective(&principal, std::slice::from_ref(&root)).await?;
    let live = admin.authorization().await?;
    for step in plan_delete(&principal, true, &live, Unused::Deleted, |object| object.id.clone()) {
        admin.carry_out(&step, &secret, now).await?;
    }
    ensure!(
        holds(&report, ConditionType::Authenticated) == Some(true),
        "the account could not log in"
    );
    let own: Vec<&String> = held.values().flatten().filter(|one| !is_of_every_role(one)).collect();
    ensure!(own == ["Cns.Searchable"], "{own:?}");
    let lacks = |privilege: &str| {
        report
            .privileges
            .missing
            .iter()
            .any(|one| one.object == root && one.privilege == privilege)
    };
    ensure!(
        lacks("StorageProfile.View") && !lacks("Cns.Searchable"),
        "{:?}",
        report.privileges.missing
    );
    ensure!(admin.person(&principal, now).await?.is_none(), "the user is still there");
    let after = admin.authorization().await?;
    ensure!(
        after.permissions.len() == before.permissions.len() && after.roles == before.roles,
        "something was left"
    );
    admin.close().await;
    Ok(())
}

/// A wrong password, once, for an account that is meant for it: the words of a real vCenter are understood.
#[tokio::test]
#[ignore = "needs a real vCenter: VDO_TEST_VCENTER and VDO_TEST_WRONG_USER"]
async fn real_vcenter_wrong_password_is_invalid_credentials() -> Result<()> {
    let endpoint = vcenter()?;
    let credentials = Credentials {
        user: variable("WRONG_USER").context("a user")?,
        password: Secret::new("this is not the password"),
    };
    let report = look(&endpoint, &credentials).await?;
    let stage = report.check(ConditionType::Authenticated).context("a stage")?;
    ensure!(
        (stage.status, stage.reason) == (Some(false), Reason::InvalidCredentials),
        "{stage:?}"
    );
    Ok(())
}

/// An account that has been locked before the test is distinguished from one with a wrong password. Nothing here locks it.
#[tokio::test]
#[ignore = "needs a real vCenter: VDO_TEST_VCENTER, VDO_TEST_LOCKED_USER and VDO_TEST_LOCKED_PASSWORD_FILE"]
async fn real_vcenter_locked_account_is_account_locked() -> Result<()> {
    let endpoint = vcenter()?;
    let report = look(&endpoint, &account("LOCKED_USER", "LOCKED_PASSWORD_FILE")?).await?;
    let stage = report.check(ConditionType::Authenticated).context("a stage")?;
    ensure!((stage.status, stage.reason) == (Some(false), Reason::AccountLocked), "{stage:?}");
    Ok(())
}

/// Another certificate than the one that is named ends the look before a login.
#[tokio::test]
#[ignore = "needs a real vCenter: VDO_TEST_VCENTER, VDO_TEST_USER and VDO_TEST_PASSWORD_FILE"]
async fn real_vcenter_other_thumbprint_stops_before_login() -> Result<()> {
    let mut endpoint = vcenter()?;
    endpoint.trust = Trust::Thumbprint(Thumbprint::sha256(b"another certificate"));
    let report = look(&endpoint, &account("USER", "PASSWORD_FILE")?).await?;
    ensure!(holds(&report, ConditionType::Connected) == Some(true));
    ensure!(report.first_failure().map(|stage| stage.reason) == Some(Reason::ThumbprintMismatch));
    ensure!(holds(&report, ConditionType::Authenticated).is_none());
    Ok(())
}
