// SPDX-License-Identifier: Apache-2.0
//! A vCenter is held against what a cluster needs: each fault gives its reason, and no other.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod privileges;
mod supervisor;

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use std::sync::Arc;
use vdo::reconcile::connection::examine;
use vdo_api::api::ConditionType::{self, NodesFound, StorageFound, TopologyConsistent};
use vdo_api::api::Reason;
use vdo_api::facts::{Credentials, Node};
use vdo_api::types::{Secret, Thumbprint, Trust};
use vdo_core::drivers::{CPI, CSI};
use vdo_testbed::{Vcenter, VcenterOptions};
use vdo_vsphere::vcenter::{Budget, Endpoint, Session};
use vdo_vsphere::vsphere::ConnectionReport;
use vdo_vsphere::vsphere::InspectionRequest;
use vdo_vsphere::vsphere::{Feature, Requirements, WantedDatastore, WantedPolicy};

const NODES: [(&str, &str); 3] = [("cp-1", "10.0.10.1"), ("w-1", "10.0.10.2"), ("w-2", "10.0.10.3")];
const HOST: &str = "DC0_C0_H0";
const OTHER_HOST: &str = "DC0_C0_H1";
const ALL: [Feature; 4] = [Feature::CloudProvider, Feature::Block, Feature::File, Feature::Topology];

/// The second node of a question, to change it.
fn second(question: &mut InspectionRequest) -> &mut Node {
    Arc::make_mut(&mut question.nodes[1])
}

struct Bed {
    vcenter: Vcenter,
    question: InspectionRequest,
}

impl Bed {
    /// Everything that is asked for is there.
    async fn start() -> Result<Self> {
        Self::start_beside(&[]).await
    }

    /// The same, with machines of others.
    async fn start_beside(others: &[(&str, &str)]) -> Result<Self> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let vcenter = Vcenter::start(VcenterOptions {
            hosts: 2,
            datastores: 2,
            ..VcenterOptions::with_vms(NODES.into_iter().chain(others.iter().copied()))
        })
        .await?;
        for (name, host) in [("cp-1", HOST), ("w-1", HOST), ("w-2", OTHER_HOST)] {
            vcenter.set("VirtualMachine", name, &[("host", host)]).await?;
        }
        for (name, url) in [("LocalDS_0", "ds:///vmfs/volumes/vsan:0/"), ("LocalDS_1", "ds:///vmfs/volumes/1/")] {
            vcenter.set("Datastore", name, &[("url", url)]).await?;
        }
        vcenter.set("Datastore", "LocalDS_0", &[("type", "vsan")]).await?;
        vcenter.tag("zone", "zone-a", "HostSystem", HOST).await?;
        vcenter.tag("zone", "zone-b", "HostSystem", OTHER_HOST).await?;
        vcenter.tag("region", "eu", "Datacenter", "DC0").await?;
        let mut bed = Self {
            vcenter,
            question: InspectionRequest::default(),
        };
        let credentials = bed.credentials();
        let budget = Budget::default();
        let session = Session::open(bed.endpoint(), credentials, &budget).await?;
        let inventory = session.inventory(&budget).await?;
        session.close().await;
        let uuid = |name: &str| {
            inventory
                .machines
                .iter()
                .find(|machine| machine.host_name == name)
                .map(|machine| machine.uuid.clone())
        };
        let named = |url: &str, vsan| WantedDatastore {
            url: url.into(),
            named_in: "the test".into(),
            vsan,
        };
        bed.question = InspectionRequest {
            server: bed.vcenter.host().into(),
            datacenters: vec!["DC0".into()],
            requirements: Requirements {
                drivers: [CPI, CSI].map(str::to_owned).into(),
                versions: std::collections::BTreeMap::new(),
                features: ALL.into(),
                datastores: vec![named("ds:///vmfs/volumes/vsan:0/", true), named("ds:///vmfs/volumes/1/", false)],
                policies: vec![WantedPolicy {
                    name: "vSAN Default Storage Policy".into(),
                    named_in: "the test".into(),
                }],
                addresses: Default::default(),
                zone_and_region: Some(("zone".into(), "region".into())),
                categories: vec!["zone".into()],
                others: 0,
            },
            nodes: NODES
                .iter()
                .map(|(name, address)| {
                    Ok(Arc::new(Node {
                        name: (*name).into(),
                        system_uuid: uuid(name).context("a machine")?,
                        addresses: vec![(*address).into()],
                        ..Node::default()
                    }))
                })
                .collect::<Result<_>>()?,
            alone: true,
            ..InspectionRequest::default()
        };
        Ok(bed)
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint {
            server: self.vcenter.host().into(),
            port: self.vcenter.port(),
            trust: Trust::CaBundle(self.vcenter.ca_pem().into()),
        }
    }

    fn credentials(&self) -> Credentials {
        Credentials {
            user: self.vcenter.user().into(),
            password: Secret::new(self.vcenter.password()),
        }
    }

    async fn examine(&self, question: &InspectionRequest) -> ConnectionReport {
        examine(&self.endpoint(), &self.credentials(), question.clone(), now(), &Budget::default()).await
    }

    /// What is not as it should be, as condition and reason.
    async fn reported(&self) -> Vec<(ConditionType, Reason)> {
        reported(&self.examine(&self.question).await)
    }
}

#[expect(clippy::disallowed_methods, reason = "a test has a clock")]
fn now() -> Timestamp {
    Timestamp::now()
}

fn reported(report: &ConnectionReport) -> Vec<(ConditionType, Reason)> {
    let mut all = vec![];
    for stage in &report.checks {
        if stage.findings.is_empty() && stage.reason != Reason::Healthy {
            all.push((stage.kind, stage.reason));
        }
        all.extend(stage.findings.iter().map(|finding| (stage.kind, finding.reason)));
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn connection_report_each_vcenter_fault_has_its_reason() -> Result<()> {
    let bed = Bed::start().await?;
    let vcenter = &bed.vcenter;
    ensure!(bed.reported().await.is_empty(), "{:#?}", bed.examine(&bed.question).await.checks);

    let w1 = ("VirtualMachine", "w-1");
    let host = ("HostSystem", OTHER_HOST);
    let (vsan, plain) = (("Datastore", "LocalDS_0"), ("Datastore", "LocalDS_1"));
    for ((kind, name), fault, repaired, condition, reason) in [
        (
            w1,
            ("power", "suspended"),
            ("power", "poweredOn"),
            NodesFound,
            Reason::MachinePoweredOff,
        ),
        (
            w1,
            ("hardware", "vmx-13"),
            ("hardware", "vmx-19"),
            NodesFound,
            Reason::HardwareVersionTooOld,
        ),
        (
            w1,
            ("disk-uuid", "false"),
            ("disk-uuid", "true"),
            NodesFound,
            Reason::DiskUuidDisabled,
        ),
        (w1, ("disk-uuid", ""), ("disk-uuid", "true"), NodesFound, Reason::DiskUuidDisabled),
        (
            w1,
            ("tools", "guestToolsNotRunning"),
            ("tools", "guestToolsRunning"),
            NodesFound,
            Reason::ToolsNotRunning,
        ),
        (w1, ("host-name", ""), ("host-name", "w-1"), NodesFound, Reason::GuestNameMissing),
        (w1, ("host-name", "W-1"), ("host-name", "w-1"), NodesFound, Reason::GuestNameDiffers),
        (
            w1,
            ("address", ""),
            ("address", "10.0.10.2"),
            NodesFound,
            Reason::GuestAddressMissing,
        ),
        (
            w1,
            ("address", "169.254.0.7"),
            ("address", "10.0.10.2"),
            NodesFound,
            Reason::GuestAddressMissing,
        ),
        (
            w1,
            ("snapshot", "true"),
            ("snapshot", "false"),
            NodesFound,
            Reason::SnapshotsPresent,
        ),
        (
            host,
            ("version", "6.5.0"),
            ("version", "8.0.3"),
            NodesFound,
            Reason::HostVersionTooOld,
        ),
        (
            host,
            ("state", "notResponding"),
            ("state", "connected"),
            NodesFound,
            Reason::HostDisconnected,
        ),
        (vsan, ("type", "VMFS"), ("type", "vsan"), StorageFound, Reason::DatastoreNotVsan),
        (
            plain,
            ("url", "ds:///other/"),
            ("url", "ds:///vmfs/volumes/1/"),
            StorageFound,
            Reason::DatastoreNotFound,
        ),
        (
            plain,
            ("accessible", "false"),
            ("accessible", "true"),
            StorageFound,
            Reason::DatastoreUnusable,
        ),
        (
            plain,
            ("maintenance", "inMaintenance"),
            ("maintenance", "normal"),
            StorageFound,
            Reason::DatastoreUnusable,
        ),
    ] {
        vcenter.set(kind, name, &[fault]).await?;
        let found = bed.reported().await;
        ensure!(found == [(condition, reason)], "{name} {fault:?}: {found:?} instead of {reason}");
        vcenter.set(kind, name, &[repaired]).await?;
    }
    ensure!(bed.reported().await.is_empty(), "not everything was repaired");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn connection_report_cloned_machine_is_ambiguous() -> Result<()> {
    let bed = Bed::start().await?;
    let vcenter = &bed.vcenter;
    // A clone: its UUID and all else are those of w-1. No one is chosen.
    let uuid = bed.question.nodes[1].system_uuid.clone();
    vcenter.set("VirtualMachine", "w-2", &[("uuid", &uuid)]).await?;
    let report = bed.examine(&bed.question).await;
    let ambiguous = report.nodes.iter().find(|node| node.node == "w-1").context("w-1")?;
    ensure!(
        ambiguous.machine.is_empty() && ambiguous.candidates == ["/DC0/vm/w-1", "/DC0/vm/w-2"],
        "{ambiguous:?}"
    );
    ensure!(reported(&report).contains(&(NodesFound, Reason::NodeAmbiguous)));
    vcenter
        .set("VirtualMachine", "w-2", &[("uuid", &bed.question.nodes[2].system_uuid)])
        .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn connection_report_each_wrong_setting_has_its_reason() -> Result<()> {
    let bed = Bed::start().await?;
    // What only the question can be wrong in.
    type Change = fn(&mut InspectionRequest);
    let changes: [(Change, ConditionType, Reason); 6] = [
        (
            |q| q.requirements.policies[0].name = "Gold".into(),
            StorageFound,
            Reason::StoragePolicyNotFound,
        ),
        (
            |q| q.datacenters = vec!["DC1".into()],
            ConditionType::DatacentersFound,
            Reason::DatacenterNotFound,
        ),
        (
            |q| {
                let node = second(q);
                (node.system_uuid, node.name, node.addresses) = ("x".into(), "w-9".into(), vec![]);
            },
            NodesFound,
            Reason::NodeNotFound,
        ),
        (
            |q| second(q).provider_id = "vsphere://another".into(),
            NodesFound,
            Reason::ProviderIdDiffers,
        ),
        (
            |q| q.requirements.categories = vec!["rack".into()],
            TopologyConsistent,
            Reason::TopologyCategoryNotFound,
        ),
        (
            |q| {
                second(q).place.labels = [("topology.kubernetes.io/zone".to_owned(), "zone-b".to_owned())].into();
            },
            TopologyConsistent,
            Reason::TopologyLabelDiffers,
        ),
    ];
    for (change, condition, reason) in changes {
        let mut question = bed.question.clone();
        change(&mut question);
        let report = bed.examine(&question).await;
        let found: Vec<_> = reported(&report)
            .into_iter()
            .filter(|(_, reason)| *reason != Reason::NotChecked)
            .collect();
        ensure!(found == [(condition, reason)], "{found:?} instead of {reason}: {report:#?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn connection_report_second_zone_tag_is_ambiguous() -> Result<()> {
    let bed = Bed::start().await?;
    let vcenter = &bed.vcenter;
    vcenter.tag("zone", "zone-c", "Datacenter", "DC0").await?;
    let found = bed.reported().await;
    ensure!(
        found
            .iter()
            .all(|(kind, reason)| (*kind, *reason) == (TopologyConsistent, Reason::TopologyTagAmbiguous))
            && !found.is_empty(),
        "{found:?}"
    );
    Ok(())
}

/// Hosts that do not share a datastore: by zone they need not.
#[tokio::test(flavor = "multi_thread")]
async fn connection_report_shared_datastores_are_listed_per_zone() -> Result<()> {
    let bed = Bed::start().await?;
    let report = bed.examine(&bed.question).await;
    let reported = |report: &ConnectionReport| {
        let line = |s: &vdo_vsphere::vsphere::SharedDatastores| {
            format!("{} {} {} {}", s.segment, s.hosts.join("+"), s.datastores.join("+"), s.emptied_by)
        };
        report.shared.iter().map(line).collect::<Vec<_>>()
    };
    assert_eq!(
        reported(&report),
        [
            "zone=zone-a DC0_C0_H0 LocalDS_0+LocalDS_1 ",
            "zone=zone-b DC0_C0_H1 LocalDS_0+LocalDS_1 "
        ]
    );
    let mut flat = bed.question.clone();
    flat.requirements.categories.clear();
    flat.requirements.datastores.clear();
    bed.vcenter.set("Datastore", "LocalDS_0", &[("unmount", OTHER_HOST)]).await?;
    assert_eq!(reported(&bed.examine(&flat).await), [" DC0_C0_H0+DC0_C0_H1 LocalDS_1 "]);
    bed.vcenter.set("Datastore", "LocalDS_1", &[("unmount", HOST)]).await?;
    let report = bed.examine(&flat).await;
    assert_eq!(reported(&report), [" DC0_C0_H0+DC0_C0_H1  DC0_C0_H0"]);
    let stage = report.check(ConditionType::StorageFound).unwrap();
    assert_eq!((stage.status, stage.reason), (Some(true), Reason::NoSharedDatastore));
    assert_eq!(report.first_failure(), None);
    Ok(())
}

/// A part that does not answer makes one stage unknown; an account that is refused makes all of them.
#[tokio::test(flavor = "multi_thread")]
async fn connection_report_unanswered_request_leaves_stage_unknown() -> Result<()> {
    let bed = Bed::start().await?;
    for (method, condition) in [
        ("HasPrivilegeOnEntities", ConditionType::Authorized),
        ("PbmQueryProfile", ConditionType::StorageFound),
    ] {
        bed.vcenter.fail_next(method, "InvalidState", 1).await?;
        let report = bed.examine(&bed.question).await;
        bed.vcenter.fail_no_more().await?;
        let unknown: Vec<ConditionType> = report.checks.iter().filter(|s| s.status.is_none()).map(|s| s.kind).collect();
        ensure!(unknown == [condition], "{method}: {unknown:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn connection_report_wrong_password_leaves_later_stages_unknown() -> Result<()> {
    let bed = Bed::start().await?;
    let mut credentials = bed.credentials();
    credentials.password = Secret::new("wrong");
    let report = examine(&bed.endpoint(), &credentials, bed.question.clone(), now(), &Budget::default()).await;
    let states: Vec<String> = report
        .checks
        .iter()
        .map(|s| format!("{} {:?} {}", s.kind, s.status, s.reason))
        .collect();
    assert_eq!(
        states[4..],
        [
            "Authenticated Some(false) InvalidCredentials",
            "DatacentersFound None NotChecked",
            "StorageFound None NotChecked",
            "Authorized None NotChecked",
            "NodesFound None NotChecked",
            "TopologyConsistent None NotChecked"
        ]
    );
    Ok(())
}

/// A stage that was passed says what was found there, whether or not a later one fails.
#[tokio::test(flavor = "multi_thread")]
async fn connection_report_passed_stages_say_the_same_below_a_failure() -> Result<()> {
    let bed = Bed::start().await?;
    let untrusted = Endpoint {
        trust: Trust::Thumbprint(Thumbprint::sha256(b"another")),
        ..bed.endpoint()
    };
    let passed = async |endpoint: &Endpoint| -> Vec<(ConditionType, String)> {
        let report = examine(endpoint, &bed.credentials(), bed.question.clone(), now(), &Budget::default()).await;
        let passed = report.checks.into_iter().filter(|stage| stage.status == Some(true));
        passed.map(|stage| (stage.kind, stage.message)).collect()
    };
    let (whole, begun) = (passed(&bed.endpoint()).await, passed(&untrusted).await);
    ensure!(whole.len() > begun.len() && begun.len() == 2, "{whole:?} {begun:?}");
    ensure!(whole[..2] == begun[..], "{whole:?} {begun:?}");
    let (_, resolved) = &begun[0];
    ensure!(resolved == "the name resolves", "{resolved}");
    Ok(())
}
