// SPDX-License-Identifier: Apache-2.0
//! Volumes that a simulated vCenter has registered under a cluster id, held against those that the cluster knows.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use anyhow::{Context as _, Result, ensure};
use jiff::Timestamp;
use std::sync::Arc;
use vdo::reconcile::connection::examine;
use vdo_api::api::{ConditionType, Reason};
use vdo_api::facts::Credentials;
use vdo_api::types::{Secret, Trust};
use vdo_testbed::soap::{Act, Rule, SoapOptions, SoapProxy};
use vdo_testbed::{Logins, Vcenter, VcenterOptions};
use vdo_vsphere::vcenter::{Budget, Endpoint, Session};
use vdo_vsphere::vsphere::{Claim, ConnectionReport, InspectionRequest, reached_datastores};

const ID: &str = "demo & <test>";

pub fn endpoint(proxy: &SoapProxy) -> Endpoint {
    let _ = rustls::crypto::ring::default_provider().install_default();
    Endpoint {
        server: proxy.host().into(),
        port: proxy.port(),
        trust: Trust::CaBundle(proxy.ca_pem().into()),
    }
}

pub fn credentials(vcenter: &Vcenter) -> Credentials {
    Credentials {
        user: vcenter.user().into(),
        password: Secret::new(vcenter.password()),
    }
}

fn claim(cluster_id: &str, handles: &[&str]) -> Arc<Claim> {
    Arc::new(Claim {
        cluster_id: cluster_id.into(),
        handles: handles.iter().map(|handle| (*handle).to_owned()).collect(),
        names: [].into(),
    })
}

pub async fn start() -> Result<(Vcenter, SoapProxy)> {
    let vcenter = Vcenter::start(VcenterOptions::with_vms([("vm-1", "10.0.0.1")])).await?;
    let proxy = SoapProxy::start(&vcenter, SoapOptions::default()).await?;
    Ok((vcenter, proxy))
}

/// What `vdoctl` and the operator find of a claim.
async fn look(vcenter: &Vcenter, proxy: &SoapProxy, claim: Option<Arc<Claim>>) -> ConnectionReport {
    let request = InspectionRequest {
        server: proxy.host().into(),
        claim,
        ..InspectionRequest::default()
    };
    examine(
        &endpoint(proxy),
        &credentials(vcenter),
        request,
        Timestamp::UNIX_EPOCH,
        &Budget::default(),
    )
    .await
}

/// Only volumes under this very id count, and those with a PersistentVolume are the cluster's own. All that needs one login.
#[tokio::test(flavor = "multi_thread")]
async fn registered_volumes_of_another_cluster_are_found_by_their_id() -> Result<()> {
    let (vcenter, proxy) = start().await?;
    let own = vcenter.register_volume("demo &amp; &lt;test&gt;", "pvc-own").await?;
    let foreign = vcenter.register_volume("demo &amp; &lt;test&gt;", "pvc-foreign").await?;
    vcenter.register_volume("another", "pvc-elsewhere").await?;

    let session = Session::open(endpoint(&proxy), credentials(&vcenter), &Budget::default()).await?;
    for (handles, count, expected) in [
        (&[][..], 2, &["pvc-foreign", "pvc-own"][..]),
        (&[own.as_str()], 2, &["pvc-foreign"]),
        (&[own.as_str(), foreign.as_str(), "gone"], 2, &[]),
    ] {
        let found = session.registered_volumes(&claim(ID, handles), &Budget::default()).await?;
        ensure!((found.count, found.foreign) == (count, expected.len()), "{found:?}");
        ensure!(found.named.iter().eq(expected), "{found:?}");
    }
    let free = session.registered_volumes(&claim("free", &[]), &Budget::default()).await?;
    ensure!((free.count, free.foreign) == (0, 0), "{free:?}");
    vcenter.delete_volume(&foreign).await?;
    let left = session.registered_volumes(&claim(ID, &[own.as_str()]), &Budget::default()).await?;
    ensure!((left.count, left.foreign) == (1, 0), "{left:?}");
    session.close().await;
    let logins = proxy.logins().get(vcenter.user()).copied().unwrap_or_default();
    ensure!(logins == Logins { succeeded: 1, failed: 0 }, "{logins:?}");
    Ok(())
}

/// A vCenter that counts its pages is asked for each; the simulator gives all at once.
#[tokio::test(flavor = "multi_thread")]
async fn registered_volumes_in_pages_are_all_read() -> Result<()> {
    let (vcenter, proxy) = start().await?;
    let page = |first: usize, volumes: usize| {
        let volumes: String = (first..first + volumes)
            .map(|i| format!("<volumes><volumeId><id>id-{i}</id></volumeId><name>pvc-{i:03}</name></volumes>"))
            .collect();
        format!(
            "<Envelope xmlns=\"http://schemas.xmlsoap.org/soap/envelope/\"><Body><CnsQueryVolumeResponse xmlns=\"urn:vsan\"><returnval>{volumes}\
             <cursor><offset>{}</offset><limit>3</limit><totalRecords>7</totalRecords></cursor></returnval></CnsQueryVolumeResponse></Body></Envelope>",
            first + 3
        )
    };
    for (first, volumes) in [(0, 3), (3, 3), (6, 1)] {
        proxy.rule(Rule::on("CnsQueryVolume", Act::Body(page(first, volumes))).times(1));
    }
    let report = look(&vcenter, &proxy, Some(claim(ID, &["id-0", "id-3", "id-6"]))).await;
    let volumes = report.volumes.context("an answer")?;
    ensure!((volumes.volumes, volumes.foreign) == (7, 4), "{volumes:?}");
    // The pages, and once under which ids the volumes of the cluster are.
    ensure!(proxy.calls().get("CnsQueryVolume") == Some(&4), "{:?}", proxy.calls());
    Ok(())
}

/// What never answers keeps nothing back and reports it; what may answer later has no answer yet. The rest of the report is as ever.
#[tokio::test(flavor = "multi_thread")]
async fn cluster_id_check_without_service_or_privilege_informs() -> Result<()> {
    let (vcenter, proxy) = start().await?;
    for (what, act, reason, is_answer, says) in [
        (
            "no service",
            Act::Status(404, vec![], "none".into()),
            Reason::NotChecked,
            true,
            "404",
        ),
        (
            "no privilege",
            Act::Fault("NoPermission", "Permission was denied.", ""),
            Reason::NotChecked,
            true,
            "CnsQueryVolume",
        ),
        ("down", Act::Status(503, vec![], "later".into()), Reason::BadAnswer, false, "503"),
        (
            "broken",
            Act::Fault("SystemError", "no", ""),
            Reason::BadAnswer,
            false,
            "SystemError",
        ),
    ] {
        proxy.rule(Rule::on("CnsQueryVolume", act));
        let report = look(&vcenter, &proxy, Some(claim(ID, &[]))).await;
        proxy.no_more_rules();
        let check = report.check(ConditionType::ClusterIdAvailable).context("no check")?;
        ensure!(check.status.is_none() && check.message.contains(says), "{what}: {check:?}");
        ensure!(check.reason == reason, "{what}: {check:?}");
        ensure!(report.volumes.is_some() == is_answer, "{what}: {:?}", report.volumes);
        let first = report.first_failure().map(|check| check.kind);
        ensure!(
            first == look(&vcenter, &proxy, None).await.first_failure().map(|check| check.kind),
            "{what}"
        );
    }
    Ok(())
}

/// Without a claim nothing is asked.
#[tokio::test(flavor = "multi_thread")]
async fn cluster_id_check_of_no_claim_asks_nothing() -> Result<()> {
    let (vcenter, proxy) = start().await?;
    let report = look(&vcenter, &proxy, None).await;
    ensure!(
        report
            .check(ConditionType::Authenticated)
            .is_some_and(|check| check.status == Some(true))
    );
    ensure!(report.check(ConditionType::ClusterIdAvailable).is_none());
    ensure!(!proxy.calls().contains_key("CnsQueryVolume"), "{:?}", proxy.calls());
    Ok(())
}

/// Hosts and datastores are those of the whole inventory, and one request is enough for them.
#[tokio::test(flavor = "multi_thread")]
async fn hosts_and_datastores_are_read_with_one_request() -> Result<()> {
    let (vcenter, proxy) = start().await?;
    let session = Session::open(endpoint(&proxy), credentials(&vcenter), &Budget::default()).await?;
    let found = session.hosts_and_datastores(&Budget::default()).await?;
    let calls = proxy.calls();
    let whole = session.inventory(&Budget::default()).await?;
    session.close().await;
    ensure!(!found.hosts.is_empty() && found.hosts == whole.hosts, "{found:?}\n{whole:?}");
    ensure!(
        !found.datastores.is_empty() && found.datastores == whole.datastores,
        "{found:?}\n{whole:?}"
    );
    ensure!(found.machines.is_empty() && !whole.machines.is_empty(), "{found:?}");
    ensure!(
        calls.get("RetrievePropertiesEx") == Some(&1) && !calls.contains_key("CreateContainerView"),
        "{calls:?}"
    );
    let reached = reached_datastores(&found);
    let is_reached =
        |(name, hosts): &(String, _)| name == "LocalDS_0" && *hosts == found.hosts.values().map(|host| host.name.clone()).collect();
    ensure!(reached.iter().any(is_reached), "{reached:?}");
    Ok(())
}

/// What `vdoctl doctor volumes` then names as not read, and compares nothing with.
#[tokio::test(flavor = "multi_thread")]
async fn volumes_without_service_or_privilege_are_not_an_empty_list() -> Result<()> {
    let (vcenter, proxy) = start().await?;
    let session = Session::open(endpoint(&proxy), credentials(&vcenter), &Budget::default()).await?;
    for (act, says) in [
        (Act::Status(404, vec![], "none".into()), "404"),
        (Act::Fault("NoPermission", "Permission was denied.", ""), "CnsQueryVolume"),
    ] {
        proxy.rule(Rule::on("CnsQueryVolume", act));
        let found = session.volumes(ID, &Budget::default()).await;
        proxy.no_more_rules();
        let error = found.err().context("a list")?;
        ensure!(vdo_api::api::chain(&error).contains(says), "{error:?}");
    }
    let volumes = session.volumes(ID, &Budget::default()).await?;
    session.close().await;
    ensure!(volumes.is_empty(), "{volumes:?}");
    Ok(())
}
