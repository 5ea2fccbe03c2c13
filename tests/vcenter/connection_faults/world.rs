// SPDX-License-Identifier: Apache-2.0
//! Where the faults happen: a vCenter that is as it should be, a proxy before it, and a connection that leads there. A fault that is a
//! change in the vCenter has one of its own, in the same process.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;
use kube::api::ObjectMeta;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use vdo::reconcile::ReconcileError;
use vdo::reconcile::connection::{Inputs, Permission, inspect, known_index};
use vdo_api::api::{ConditionType, Reason, VsphereCloudConfig, VsphereCloudConfigSpec};
use vdo_api::facts::StoredCredentials;
use vdo_api::facts::{Credentials, Node};
use vdo_api::types::{Secret, Trust};
use vdo_core::drivers::{CPI, CSI};
use vdo_core::matrix::Index;
use vdo_source::fetch::{ChartRepository, MatrixSource};
use vdo_testbed::soap::{Lockout, Rule, SoapOptions, SoapProxy};
use vdo_testbed::{Vcenter, VcenterOptions};
use vdo_vsphere::vcenter::Budget;
use vdo_vsphere::vsphere::{Feature, Requirements};
use vdo_vsphere::vsphere::{Inspection, InspectionRequest, coverage, cross_checks, fold_status};

/// A fault, and what must be found.
pub struct Case {
    pub name: &'static str,
    pub stage: ConditionType,
    pub reason: Reason,
    /// Words that the message must hold, so that a person can act.
    pub says: &'static str,
    pub set: Box<dyn Fn(&mut Setting) + Send + Sync>,
}

/// Everything that a fault can change.
pub struct Setting {
    pub proxy: SoapOptions,
    pub rules: Vec<Rule>,
    pub spec: VsphereCloudConfigSpec,
    /// How the certificate is trusted; `None` is the authority of the proxy.
    pub trust: Option<Result<Trust, ReconcileError>>,
    pub credentials: Result<Credentials, ReconcileError>,
    pub nodes: Vec<Arc<Node>>,
    /// Wrong passwords that another user has sent before.
    pub failures: usize,
    /// A server of another kind at the port.
    pub elsewhere: Option<Elsewhere>,
    /// What the drivers ask of the vCenter.
    pub requirements: Requirements,
    /// Changes in the vCenter, which then is one of its own.
    pub changes: Vec<Change>,
    /// Another connection of the same drivers.
    pub other: Option<Other>,
}

/// Another connection, and where it leads.
#[derive(Clone, Default)]
pub struct Other {
    /// Whether to another vCenter, which has machines of the same names.
    pub elsewhere: bool,
    /// The datacenters that it looks at.
    pub datacenters: Vec<String>,
}

/// A change in a vCenter.
#[derive(Clone, Copy)]
pub enum Change {
    /// Kind, name, what of it, and its new value.
    Set(&'static str, &'static str, &'static str, &'static str),
    /// A privilege that the account loses, on one object by kind and name, or everywhere.
    Deny(&'static str, Option<(&'static str, &'static str)>),
    /// Category, tag, kind and name of the object.
    Tag(&'static str, &'static str, &'static str, &'static str),
    /// So many hosts in the cluster.
    Hosts(usize),
    /// So many datacenters, each in a folder of its own and with one machine.
    Datacenters(usize),
    /// Another vCenter altogether.
    Elsewhere,
}

/// What is at the port instead of the proxy.
#[derive(Clone, Copy)]
pub enum Elsewhere {
    /// Nothing listens.
    Closed,
    /// Packets are swallowed.
    Blackhole,
}

pub struct World {
    vcenter: Vcenter,
    index: Option<Arc<Index>>,
}

impl World {
    pub async fn start() -> Result<Self> {
        let vcenter = Vcenter::start(options()).await?;
        let index = known_index(&ChartRepository::new(MatrixSource::Embedded)).await;
        ensure!(index.is_some(), "there is no matrix");
        Ok(Self { vcenter, index })
    }

    /// Injects a fault and looks.
    pub async fn look(&self, case: &Case) -> Result<Seen> {
        let mut setting = Setting {
            proxy: SoapOptions::default(),
            rules: Vec::new(),
            spec: VsphereCloudConfigSpec {
                vc_ip: "localhost".into(),
                credentials: "vc1-credentials".into(),
                ..VsphereCloudConfigSpec::default()
            },
            trust: None,
            credentials: Ok(Credentials {
                user: self.vcenter.user().into(),
                password: Secret::new(self.vcenter.password()),
            }),
            nodes: ["vm-1", "vm-2"].map(node).into(),
            failures: 0,
            elsewhere: None,
            requirements: Requirements {
                drivers: [CPI, CSI].map(Into::into).into(),
                features: [Feature::CloudProvider, Feature::Block].into(),
                ..Requirements::default()
            },
            changes: Vec::new(),
            other: None,
        };
        (case.set)(&mut setting);
        let own = if setting.changes.is_empty() {
            None
        } else {
            Some(self.changed(&setting.changes).await?)
        };
        let vcenter = own.as_ref().unwrap_or(&self.vcenter);
        let proxy = SoapProxy::start(vcenter, setting.proxy.clone()).await?;
        setting.rules.into_iter().for_each(|rule| proxy.rule(rule));
        let (port, _held) = match setting.elsewhere {
            None => (proxy.port(), Vec::new()),
            Some(Elsewhere::Closed) => (closed().await?, Vec::new()),
            Some(Elsewhere::Blackhole) => blackhole().await?,
        };
        setting.spec.port = port.into();
        let object = VsphereCloudConfig {
            metadata: ObjectMeta {
                name: Some("vc1".into()),
                namespace: Some("vmware-system-vdo".into()),
                generation: Some(1),
                ..ObjectMeta::default()
            },
            spec: setting.spec,
            status: None,
        };
        let inputs = |credentials| Inputs {
            trust: match &setting.trust {
                None => Ok(Trust::CaBundle(proxy.ca_pem().into())),
                Some(Ok(trust)) => Ok(trust.clone()),
                Some(Err(_)) => Err(no_ca()),
            },
            credentials,
        };
        let found = |credentials: Credentials| StoredCredentials {
            credentials,
            secret: "vmware-system-vdo/vc1-credentials".into(),
            version: "1".into(),
        };
        for _ in 0..setting.failures {
            let wrong = Credentials {
                user: self.vcenter.user().into(),
                password: Secret::new("another user's"),
            };
            inspect(
                &object,
                &inputs(Ok(found(wrong))),
                InspectionRequest::default(),
                Permission::Given,
                &Budget::default(),
            )
            .await;
        }
        let inputs = inputs(setting.credentials.map(found));
        let question = InspectionRequest {
            server: object.spec.vc_ip.clone(),
            datacenters: object.spec.datacenters.clone(),
            requirements: setting.requirements,
            nodes: setting.nodes,
            alone: true,
            surplus: false,
            machine_tags: false,
            index: self.index.clone(),
            claim: None,
            counted: None,
        };
        let look = inspect(&object, &inputs, question.clone(), Permission::Given, &Budget::default()).await;
        let cross_checks = match &setting.other {
            None => None,
            Some(other) => {
                let own = coverage("vc1", &look).context("the first connection shows nothing")?;
                let there = self.look_of(other, &proxy, question).await?;
                let there = coverage("vc2", &there).context("the other connection shows nothing")?;
                Some(cross_checks(&own, &[Arc::new(own.clone()), Arc::new(there)]))
            }
        };
        let status = fold_status(&object, inputs.credentials.as_ref(), Some(&look), cross_checks, &Time(now()));
        Ok(Seen {
            conditions: status.conditions,
            failed: proxy.logins().values().map(|logins| logins.failed).sum::<u64>(),
            live: proxy.sessions().live,
            allowed_failures: u64::try_from(setting.failures)? + 1,
        })
    }

    /// What another connection shows, through the same proxy or at another vCenter.
    async fn look_of(&self, other: &Other, proxy: &SoapProxy, question: InspectionRequest) -> Result<Inspection> {
        let elsewhere = match other.elsewhere {
            false => None,
            true => {
                let own = Change::Set("Datastore", "LocalDS_0", "url", "ds:///vmfs/volumes/there/");
                Some(self.changed(&[Change::Elsewhere, own]).await?)
            }
        };
        let (port, ca) = elsewhere
            .as_ref()
            .map_or((proxy.port(), proxy.ca_pem()), |vcenter| (vcenter.port(), vcenter.ca_pem()));
        let mut object = VsphereCloudConfig::new("vc2", VsphereCloudConfigSpec::default());
        (object.spec.vc_ip, object.spec.port) = ("localhost".into(), port.into());
        let inputs = Inputs {
            trust: Ok(Trust::CaBundle(ca.into())),
            credentials: Ok(StoredCredentials {
                credentials: Credentials {
                    user: self.vcenter.user().into(),
                    password: Secret::new(self.vcenter.password()),
                },
                secret: "vmware-system-vdo/vc2-credentials".into(),
                version: "1".into(),
            }),
        };
        let question = InspectionRequest {
            datacenters: other.datacenters.clone(),
            ..question
        };
        Ok(inspect(&object, &inputs, question, Permission::Given, &Budget::default()).await)
    }

    /// A vCenter with these changes.
    async fn changed(&self, changes: &[Change]) -> Result<Vcenter> {
        let mut options = options();
        for change in changes {
            match change {
                Change::Hosts(hosts) => options.hosts = *hosts,
                Change::Datacenters(count) => options.large = Some((*count, 1)),
                Change::Elsewhere => options.instance_uuid = "5c7d5a43-6f0e-4b0e-8a8e-52a1d1e0c0de".into(),
                Change::Set(..) | Change::Tag(..) | Change::Deny(..) => {}
            }
        }
        let vcenter = self.vcenter.beside(options).await?;
        for change in changes {
            match change {
                Change::Set(kind, name, key, value) => vcenter.set(kind, name, &[(key, value)]).await?,
                Change::Tag(category, tag, kind, name) => vcenter.tag(category, tag, kind, name).await?,
                Change::Deny(privilege, None) => vcenter.deny(vcenter.user(), &[privilege]).await?,
                Change::Deny(privilege, Some((kind, name))) => {
                    let object = vcenter.id(kind, name).await?;
                    vcenter.deny_on(vcenter.user(), &object, &[privilege]).await?;
                }
                Change::Hosts(_) | Change::Datacenters(_) | Change::Elsewhere => {}
            }
        }
        Ok(vcenter)
    }
}

#[expect(clippy::disallowed_methods, reason = "a test has a clock")]
fn now() -> Timestamp {
    Timestamp::now()
}

fn options() -> VcenterOptions {
    VcenterOptions::with_vms([("vm-1", "10.0.0.1"), ("vm-2", "10.0.0.2")])
}

/// A node as the kubelet would describe that machine.
pub fn node(name: &str) -> Arc<Node> {
    Arc::new(Node {
        name: name.into(),
        linux: true,
        ..Node::default()
    })
}

/// The error of a CA bundle that is not there.
pub fn no_ca() -> ReconcileError {
    ReconcileError::CaBundle {
        connection: "vc1".into(),
        place: "ConfigMap vcenter-ca".into(),
        key: "ca.crt".into(),
    }
}

/// As a vCenter is delivered.
pub fn locks() -> Option<Lockout> {
    Some(Lockout::default())
}

async fn closed() -> Result<u16> {
    Ok(tokio::net::TcpListener::bind("127.0.0.1:0").await?.local_addr()?.port())
}

/// A port whose queue is full: the kernel drops what asks for more, as a firewall does.
async fn blackhole() -> Result<(u16, Vec<tokio::net::TcpStream>)> {
    let socket = tokio::net::TcpSocket::new_v4()?;
    socket.bind("127.0.0.1:0".parse()?)?;
    let listener = socket.listen(1)?;
    let address = listener.local_addr()?;
    // No one takes them out.
    std::mem::forget(listener);
    let mut held = Vec::new();
    while let Ok(Ok(stream)) = tokio::time::timeout(Duration::from_millis(300), tokio::net::TcpStream::connect(address)).await {
        ensure!(held.len() < 64, "the queue of a listener does not fill");
        held.push(stream);
    }
    Ok((address.port(), held))
}

/// What a look has shown.
pub struct Seen {
    conditions: Vec<Condition>,
    failed: u64,
    live: usize,
    allowed_failures: u64,
}

impl Seen {
    fn reason(condition: &Condition) -> Option<Reason> {
        Reason::ALL.iter().copied().find(|reason| reason.as_str() == condition.reason)
    }

    /// The first stage that does not hold by itself, in the order of the stages; Ready sums them up and is none.
    pub fn first(&self) -> Option<(ConditionType, Reason)> {
        STAGES.iter().find_map(|stage| {
            let condition = self.conditions.iter().find(|c| c.type_ == stage.as_str())?;
            let reason = Self::reason(condition)?;
            // One that holds may still have something to tell.
            let reported = condition.status != "True" || reason != Reason::Healthy;
            (reported && reason != Reason::NotChecked).then_some((*stage, reason))
        })
    }

    /// That the fault and nothing else is reported: the stages before hold, those after are not judged, Ready says the same, and the message
    /// says what to do without a word of Rust.
    pub fn check(&self, case: &Case) -> Result<()> {
        let at = STAGES.iter().position(|stage| *stage == case.stage).unwrap_or_default();
        for (i, stage) in STAGES.iter().enumerate() {
            let Some(condition) = self.conditions.iter().find(|c| c.type_ == stage.as_str()) else {
                continue;
            };
            ensure!(condition.observed_generation == Some(1), "{stage} does not say of which generation");
            match i.cmp(&at) {
                std::cmp::Ordering::Less => {
                    let waits = condition.status == "Unknown" && condition.reason == "NotChecked";
                    ensure!(condition.status == "True" || waits, "{stage} is {}", condition.status);
                }
                std::cmp::Ordering::Equal => {
                    ensure!(condition.reason == case.reason.as_str(), "{stage} has reason {}", condition.reason);
                    let words = &condition.message;
                    ensure!(words.contains(case.says), "{words:?} does not say {:?}", case.says);
                    ensure!(words.len() > 20 && words.len() < 1500 && !words.contains('\n'), "{words:?}");
                    for debug in ["Some(", "Err(", "Error {", "\\\""] {
                        ensure!(!words.contains(debug), "{words:?} shows insides");
                    }
                }
                std::cmp::Ordering::Greater => {}
            }
        }
        ensure!(self.failed <= self.allowed_failures, "{} logins failed", self.failed);
        ensure!(self.live == 0, "{} sessions were left behind", self.live);
        Ok(())
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in &self.conditions {
            writeln!(f, "    {:<18} {:<8} {:<24} {}", c.type_, c.status, c.reason, c.message)?;
        }
        Ok(())
    }
}

/// The stages, in their order.
const STAGES: [ConditionType; 12] = [
    ConditionType::Resolved,
    ConditionType::Connected,
    ConditionType::Trusted,
    ConditionType::IsVCenter,
    ConditionType::CredentialsFound,
    ConditionType::Authenticated,
    ConditionType::DatacentersFound,
    ConditionType::StorageFound,
    ConditionType::Authorized,
    ConditionType::NodesFound,
    ConditionType::TopologyConsistent,
    ConditionType::Distinct,
];
