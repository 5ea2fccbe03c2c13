// SPDX-License-Identifier: Apache-2.0
//! Logging in to a simulated vCenter and reading what is in it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, Mutex, OnceLock};
use vdo_api::facts::Credentials;
use vdo_api::types::{Secret, Trust};
use vdo_testbed::soap::{Act, Rule, SoapOptions, SoapProxy};
use vdo_testbed::{Logins, Vcenter, VcenterOptions};
use vdo_vsphere::vcenter::{Budget, Endpoint, Session};
use vdo_vsphere::vsphere::{ManagedObject, ProbeError, SessionError};

fn budget() -> Budget {
    Budget::default()
}

fn endpoint(vcenter: &Vcenter) -> Endpoint {
    Endpoint {
        server: vcenter.host().into(),
        port: vcenter.port(),
        trust: Trust::CaBundle(vcenter.ca_pem().into()),
    }
}

async fn open(vcenter: &Vcenter, user: &str, password: &str) -> Result<Session, SessionError> {
    let credentials = Credentials {
        user: user.into(),
        password: Secret::new(password),
    };
    Session::open(endpoint(vcenter), credentials, &budget()).await
}

async fn logins(vcenter: &Vcenter, user: &str) -> Result<Logins> {
    Ok(vcenter.logins().await?.get(user).copied().unwrap_or_default())
}

/// What all tests of this file log, at the level that shows everything.
static LOG: OnceLock<Log> = OnceLock::new();

fn prepare() -> &'static Log {
    let _ = rustls::crypto::ring::default_provider().install_default();
    LOG.get_or_init(|| {
        let log = Log::default();
        let sink = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_writer(move || sink.clone())
            .finish();
        tracing::subscriber::set_global_default(subscriber).unwrap();
        log
    })
}

/// Passwords of every printable character arrive as they are; a wrong one is recognised, and none is sent when there is none.
#[tokio::test(flavor = "multi_thread")]
async fn session_login_wrong_or_empty_password_is_rejected() -> Result<()> {
    prepare();
    let printable: String = (' '..='~').collect();
    let users = [("printable@x", printable.as_str()), ("ключ 🔑&<@x", " пароль\t密码\r\n ")];
    let vcenter = Vcenter::start(VcenterOptions {
        more_users: users.iter().map(|(user, password)| ((*user).into(), (*password).into())).collect(),
        ..VcenterOptions::with_vms([("vm-1", "10.0.0.1")])
    })
    .await?;
    for (user, password) in users.into_iter().chain([(vcenter.user(), vcenter.password())]) {
        open(&vcenter, user, password).await?.close().await;
        assert_eq!(logins(&vcenter, user).await?, Logins { succeeded: 1, failed: 0 });
        let error = open(&vcenter, user, "wrong").await.unwrap_err();
        assert!(
            matches!(error, SessionError::InvalidLogin { .. }) && error.is_rejection(),
            "{error:?}"
        );
        assert!(error.to_string().contains(&vcenter.address()), "{error}");
        assert_eq!(logins(&vcenter, user).await?, Logins { succeeded: 1, failed: 1 });
        assert!(open(&vcenter, user, "").await.unwrap_err().is_rejection());
        assert_eq!(logins(&vcenter, user).await?, Logins { succeeded: 1, failed: 1 });
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn session_login_without_permission_is_refused() -> Result<()> {
    prepare();
    let vcenter = Vcenter::start(VcenterOptions::with_vms([("vm-1", "10.0.0.1")])).await?;
    vcenter.fail_next("Login", "NoPermission", 1).await?;
    let error = open(&vcenter, vcenter.user(), vcenter.password()).await.unwrap_err();
    assert!(matches!(error, SessionError::Refused { .. }), "{error:?}");
    Ok(())
}

/// Nothing is sent to who is not the right one.
#[tokio::test(flavor = "multi_thread")]
async fn session_untrusted_certificate_sends_no_password() -> Result<()> {
    prepare();
    let vcenter = Vcenter::start(VcenterOptions::with_vms([("vm-1", "10.0.0.1")])).await?;
    let other = Vcenter::start(VcenterOptions::with_vms([("vm-1", "10.0.0.1")])).await?;
    let mut wrong = endpoint(&vcenter);
    wrong.trust = Trust::CaBundle(other.ca_pem().into());
    let credentials = Credentials {
        user: vcenter.user().into(),
        password: Secret::new(vcenter.password()),
    };
    let error = Session::open(wrong, credentials, &budget()).await.unwrap_err();
    assert!(
        matches!(
            error,
            SessionError::Connection(ProbeError::UnknownIssuer { .. } | ProbeError::BadCertificate { .. })
        ),
        "{error:?}"
    );
    assert_eq!(vcenter.logins().await?, BTreeMap::new());
    Ok(())
}

/// What is needed of a machine is read; the pages of a long list are put together.
#[tokio::test(flavor = "multi_thread")]
async fn session_inventory_long_list_is_read_in_pages() -> Result<()> {
    prepare();
    let names: Vec<(String, String)> = (0..600)
        .map(|i| (format!("vm-{i:03}"), format!("10.0.{}.{}", i / 200, i % 200 + 1)))
        .collect();
    let vcenter = Vcenter::start(VcenterOptions::with_vms(names.iter().map(|(n, a)| (n.as_str(), a.as_str())))).await?;
    let session = open(&vcenter, vcenter.user(), vcenter.password()).await?;
    let found = session.inventory(&budget()).await?;
    assert_eq!(found.datacenters, ["/DC0"]);
    assert_eq!(found.machines.len(), 600);
    for (machine, (name, address)) in found.machines.iter().zip(&names) {
        assert_eq!(machine.path, format!("/DC0/vm/{name}"));
        assert_eq!((&machine.host_name, machine.addresses()), (name, vec![address.clone()]));
    }
    let first = found.machines.first().context("a machine")?;
    assert_eq!((first.datacenter.as_str(), first.hardware.as_str()), ("/DC0", "vmx-19"));
    assert_eq!(
        (first.disk_uuid, first.tools_running, first.power.as_str()),
        (Some(true), true, "poweredOn")
    );
    assert!(first.uuid.len() == 36 && first.instance_uuid.len() == 36 && first.uuid != first.instance_uuid);
    assert_eq!(session.inventory(&budget()).await?, found, "the same question has the same answer");
    assert_eq!(logins(&vcenter, vcenter.user()).await?.succeeded, 1);
    Ok(())
}

/// A session that the vCenter has ended is had again by one login, however many callers ask; a refused one is not tried again.
#[tokio::test(flavor = "multi_thread")]
async fn session_ended_by_vcenter_is_renewed_by_one_login() -> Result<()> {
    prepare();
    let vcenter = Vcenter::start(VcenterOptions::with_vms([("vm-1", "10.0.0.1")])).await?;
    let session = Arc::new(open(&vcenter, vcenter.user(), vcenter.password()).await?);
    vcenter.fail_next("CreateContainerView", "NotAuthenticated", 1).await?;
    let asking: Vec<_> = (0..8)
        .map(|_| {
            let session = session.clone();
            tokio::spawn(async move { session.inventory(&budget()).await.map(|found| found.machines.len()) })
        })
        .collect();
    for one in asking {
        assert_eq!(one.await??, 1);
    }
    let logged_in = Logins { succeeded: 2, failed: 0 };
    assert_eq!(logins(&vcenter, vcenter.user()).await?, logged_in);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn session_after_vcenter_restart_is_renewed() -> Result<()> {
    prepare();
    let mut vcenter = Vcenter::start(VcenterOptions::with_vms([("vm-1", "10.0.0.1")])).await?;
    let session = open(&vcenter, vcenter.user(), vcenter.password()).await?;
    // A restart of the vCenter breaks the connection and forgets the session.
    vcenter.stop();
    assert!(matches!(
        session.inventory(&budget()).await.unwrap_err(),
        SessionError::Connection(_)
    ));
    vcenter.resume().await?;
    assert_eq!(session.inventory(&budget()).await?.machines.len(), 1);
    assert_eq!(logins(&vcenter, vcenter.user()).await?, Logins { succeeded: 1, failed: 0 });
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn session_renewal_refused_is_not_retried() -> Result<()> {
    prepare();
    let vcenter = Vcenter::start(VcenterOptions::with_vms([("vm-1", "10.0.0.1")])).await?;
    let session = open(&vcenter, vcenter.user(), vcenter.password()).await?;
    // The account has lost its right to log in: seen once.
    vcenter.fail_next("CreateContainerView", "NotAuthenticated", 1).await?;
    vcenter.fail_next("Login", "NoPermission", 1).await?;
    assert!(session.inventory(&budget()).await.unwrap_err().is_rejection());
    assert!(matches!(session.inventory(&budget()).await.unwrap_err(), SessionError::Lost { .. }));
    assert_eq!(logins(&vcenter, vcenter.user()).await?, Logins { succeeded: 1, failed: 0 });
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn session_request_fault_is_reported_and_session_survives() -> Result<()> {
    prepare();
    let vcenter = Vcenter::start(VcenterOptions::with_vms([("vm-1", "10.0.0.1")])).await?;
    let session = open(&vcenter, vcenter.user(), vcenter.password()).await?;
    vcenter.fail_next("RetrievePropertiesEx", "NoPermission", 1).await?;
    let error = session.inventory(&budget()).await.unwrap_err();
    assert!(
        matches!(
            error,
            SessionError::Forbidden {
                method: "RetrievePropertiesEx",
                ..
            }
        ),
        "{error:?}"
    );
    vcenter.fail_next("RetrievePropertiesEx", "InvalidState", 1).await?;
    let error = session.inventory(&budget()).await.unwrap_err();
    assert!(
        matches!(&error, SessionError::Fault { kind, .. } if kind == "InvalidState"),
        "{error:?}"
    );
    assert_eq!(
        session.inventory(&budget()).await?.machines.len(),
        1,
        "a fault does not harm the session"
    );
    Ok(())
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// At the level that shows everything, neither the password nor the cookie is shown.
#[tokio::test]
async fn session_trace_log_contains_no_password() -> Result<()> {
    let log = prepare();
    let vcenter = Vcenter::start(VcenterOptions::with_vms([("vm-1", "10.0.0.1")])).await?;
    let session = open(&vcenter, vcenter.user(), vcenter.password()).await?;
    vcenter.fail_next("CreateContainerView", "NotAuthenticated", 1).await?;
    session.inventory(&budget()).await?;
    let shown = format!("{session:?}");
    let error = open(&vcenter, vcenter.user(), "hunter2-wrong").await.unwrap_err();
    session.close().await;
    let text = String::from_utf8(log.0.lock().unwrap().clone())? + &shown + &format!("{error:?} {error}");
    assert!(text.contains("logging in again"), "the log shows nothing");
    for secret in [vcenter.password(), "p@ss", "hunter2", "vmware_soap_session="] {
        assert!(!text.contains(secret), "{secret} is in the log");
    }
    Ok(())
}

/// Privileges are those of the session itself, on each object by itself; policies and tags come from services of their own.
#[tokio::test(flavor = "multi_thread")]
async fn session_privileges_policies_and_tags_are_read() -> Result<()> {
    prepare();
    let vcenter = Vcenter::start(VcenterOptions {
        hosts: 2,
        datastores: 2,
        ..VcenterOptions::with_vms([("vm-1", "10.0.0.1"), ("vm-2", "10.0.0.2")])
    })
    .await?;
    let session = open(&vcenter, vcenter.user(), vcenter.password()).await?;
    let mut inventory = session.inventory(&budget()).await?;
    assert_eq!((inventory.hosts.len(), inventory.datastores.len()), (2, 2));
    let datastore = inventory.datastores.first().context("a datastore")?;
    assert_eq!(
        (datastore.path.as_str(), datastore.hosts.len(), datastore.accessible),
        ("/DC0/datastore/LocalDS_0", 2, true)
    );
    assert!(datastore.url.starts_with("ds:///") || datastore.url.contains('/'), "{datastore:?}");
    let machine = inventory.machines.first().context("a machine")?;
    let way: Vec<&str> = inventory.ancestry(&machine.host).iter().map(|id| inventory.name_of(id)).collect();
    assert_eq!(way[1..], ["/DC0/host/DC0_C0", "/DC0/host", "/DC0", "/"]);
    assert_eq!(machine.controllers, None);
    session.look_into(&mut inventory, &[0], &budget()).await?;
    assert_eq!(
        inventory.machines[0].controllers,
        Some(vec!["ParaVirtualSCSIController".to_owned()])
    );

    let machine = |at: usize| ManagedObject {
        kind: "VirtualMachine".into(),
        id: inventory.machines[at].id.clone(),
    };
    let (first, second) = (machine(0), machine(1));
    let question = [(vec![first.clone(), second.clone()], vec!["A.B".to_owned(), "C.D".to_owned()])];
    let principal = session.granted(&question, false, &budget()).await?.principal;
    vcenter.deny(&principal, &["A.B"]).await?;
    vcenter.deny_on(&principal, &first.id, &["C.D"]).await?;
    let granted = session.granted(&question, true, &budget()).await?;
    let has = |object: &ManagedObject, privilege: &str| granted.has(&object.id, privilege);
    assert_eq!(
        (has(&first, "A.B"), has(&first, "C.D"), has(&second, "A.B"), has(&second, "C.D")),
        (false, false, false, true)
    );
    assert!(granted.all[&first].contains("System.Read"), "{granted:?}");

    let policies = session.policies(&budget()).await?;
    let encrypts = |name: &str| policies.iter().find(|policy| policy.name == name).map(|policy| policy.encrypts);
    assert_eq!(encrypts("vSAN Default Storage Policy"), Some(false));
    assert_eq!(encrypts("VM Encryption Policy"), Some(true));

    vcenter.tag("zone", "a", "ClusterComputeResource", "DC0_C0").await?;
    vcenter.tag("rack", "7", "ClusterComputeResource", "DC0_C0").await?;
    let cluster = inventory
        .places
        .values()
        .find(|place| place.path.ends_with("DC0_C0"))
        .context("a cluster")?;
    let objects = [cluster.object.clone(), inventory.root.clone()];
    for _ in 0..3 {
        let tagging = session.tags(&["zone", "none"].into(), &objects, &budget()).await?;
        assert_eq!(tagging.categories, ["zone".to_owned()].into());
        assert_eq!(
            tagging.attached,
            [(cluster.object.id.clone(), [("zone".to_owned(), "a".to_owned())].into())].into()
        );
    }
    session.close().await;
    // Once for SOAP, once for REST, and twice by the test itself; never again for more questions.
    let all: u64 = vcenter.logins().await?.values().map(|logins| logins.succeeded).sum();
    assert_eq!(all, 4, "{:?}", vcenter.logins().await?);
    Ok(())
}

/// The service for tags in both of its dialects: one login of its own, none left behind; a refusal there harms nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn tag_service_both_dialects_use_one_login() -> Result<()> {
    prepare();
    let vcenter = Vcenter::start(VcenterOptions::with_vms([("vm-1", "10.0.0.1")])).await?;
    vcenter.tag("zone", "a", "ClusterComputeResource", "DC0_C0").await?;
    for (modern, session_path) in [(false, "/rest/com/vmware/cis/session"), (true, "/api/session")] {
        let options = SoapOptions {
            modern,
            ..SoapOptions::default()
        };
        let proxy = SoapProxy::start(&vcenter, options).await?;
        let open = async || {
            let endpoint = Endpoint {
                server: proxy.host().into(),
                port: proxy.port(),
                trust: Trust::CaBundle(proxy.ca_pem().into()),
            };
            let credentials = Credentials {
                user: vcenter.user().into(),
                password: Secret::new(vcenter.password()),
            };
            Session::open(endpoint, credentials, &budget()).await
        };
        let calls = |what: &str| proxy.calls().get(&format!("{what} {session_path}")).copied().unwrap_or_default();
        let failed = || proxy.logins().values().map(|logins| logins.failed).sum::<u64>();
        let session = open().await?;
        let inventory = session.inventory(&budget()).await?;
        let cluster = inventory
            .places
            .values()
            .find(|place| place.path.ends_with("DC0_C0"))
            .context("a cluster")?;
        let objects = [cluster.object.clone()];
        let wanted = [(cluster.object.id.clone(), [("zone".to_owned(), "a".to_owned())].into())].into();
        for _ in 0..3 {
            assert_eq!(
                session.tags(&["zone"].into(), &objects, &budget()).await?.attached,
                wanted,
                "modern: {modern}"
            );
        }
        assert_eq!((calls("POST"), proxy.sessions().live), (1, 2));
        // All sessions end, as after an idle night: each is had again once.
        proxy.end_sessions();
        assert_eq!(session.tags(&["zone"].into(), &objects, &budget()).await?.attached, wanted);
        assert_eq!((calls("POST"), failed()), (2, 0));
        assert_eq!(session.inventory(&budget()).await?.machines.len(), 1);
        session.close().await;
        assert_eq!((calls("DELETE"), proxy.sessions().live), (1, 0), "{:?}", proxy.calls());

        let session = open().await?;
        let login = format!("POST {session_path}");
        proxy.rule(Rule::on(&login, Act::Status(401, vec![], "{}".into())));
        let error = session.tags(&["zone"].into(), &objects, &budget()).await.unwrap_err();
        assert!(
            matches!(error, SessionError::TagsRefused { .. }) && !error.is_rejection(),
            "{error:?}"
        );
        assert_eq!((session.inventory(&budget()).await?.machines.len(), failed()), (1, 1));
        proxy.no_more_rules();
        let listed = if modern {
            "GET /api/cis/tagging/category"
        } else {
            "GET /rest/com/vmware/cis/tagging/category"
        };
        proxy.rule(Rule::on(listed, Act::Status(403, vec![], "{}".into())));
        let error = session.tags(&["zone"].into(), &objects, &budget()).await.unwrap_err();
        assert!(matches!(error, SessionError::Forbidden { .. }), "{error:?}");
        session.close().await;
        assert_eq!(proxy.sessions().live, 0, "a session was left behind");
    }
    Ok(())
}

/// Three hundred random passwords log in byte by byte: what was sent is read by the simulator's own parser.
#[tokio::test(flavor = "multi_thread")]
async fn session_login_random_passwords_are_accepted() -> Result<()> {
    use proptest::prelude::*;
    use proptest::strategy::ValueTree as _;
    prepare();
    let any = prop_oneof!["[ -~]{1,60}", "[<>&;'\"\\]\\[!#x0-9 \t\n\r-]{1,24}", "\\PC{1,30}"];
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let passwords: Vec<String> = (0..300).map(|_| any.new_tree(&mut runner).unwrap().current()).collect();
    let user = |at: usize| format!("user-{at}@x");
    let vcenter = Vcenter::start(VcenterOptions {
        more_users: passwords
            .iter()
            .enumerate()
            .map(|(at, password)| (user(at), password.clone()))
            .collect(),
        ..VcenterOptions::with_vms([("vm-1", "10.0.0.1")])
    })
    .await?;
    for (at, password) in passwords.iter().enumerate() {
        let session = open(&vcenter, &user(at), password).await.with_context(|| format!("{password:?}"))?;
        session.close().await;
    }
    let all = vcenter.logins().await?;
    assert!(
        all.values().all(|logins| logins.failed == 0) && all.len() == passwords.len(),
        "{all:?}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn session_login_control_character_is_not_sent() -> Result<()> {
    prepare();
    let vcenter = Vcenter::start(VcenterOptions::with_vms([("vm-1", "10.0.0.1")])).await?;
    let user = |at: usize| format!("user-{at}@x");
    let all = vcenter.logins().await?;
    let error = open(&vcenter, &user(0), "bell\u{7}").await.unwrap_err();
    assert!(matches!(error, SessionError::Unsendable { .. }), "{error:?}");
    assert_eq!(vcenter.logins().await?, all, "what cannot be sent was sent");
    Ok(())
}

/// 5,000 machines in 50 nested datacenters are read with few requests, and soon.
#[tokio::test(flavor = "multi_thread")]
async fn session_inventory_large_vcenter_needs_few_requests() -> Result<()> {
    prepare();
    let vcenter = Vcenter::start(VcenterOptions {
        large: Some((50, 100)),
        ..VcenterOptions::default()
    })
    .await?;
    let session = open(&vcenter, vcenter.user(), vcenter.password()).await?;
    let before = vcenter.requests().await?;
    let (started, memory) = (std::time::Instant::now(), peak());
    let inventory = session.inventory(&budget()).await?;
    let (took, requests) = (started.elapsed(), vcenter.requests().await? - before);
    assert_eq!((inventory.machines.len(), inventory.datacenters.len()), (5000, 50));
    assert!(
        inventory
            .machines
            .iter()
            .all(|machine| machine.datacenter.starts_with("/F") && machine.path.starts_with(&machine.datacenter))
    );
    // The memory of the process is that of all tests of this file, unless this one runs alone.
    println!(
        "5000 machines: {requests} requests, {took:?}, {} KiB more at the peak",
        peak() - memory
    );
    assert!(requests <= 12, "{requests} requests");
    Ok(())
}

/// The most memory that this process ever had, as the kernel says it, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or_default()
}
