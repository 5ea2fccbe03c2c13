use crate::api::{VDOConfig, VDOConfigStatus, VsphereCloudConfig};
use crate::fetch::embedded;
use crate::matrix::{self, Index, Query, UpdatePolicy};
use crate::reconcile;
use crate::status::short;
use crate::types::{Digest, KubernetesVersion, VcenterVersion};
use kube::ResourceExt;
use serde_json::{Value, json};

/// How many minors of Kubernetes are looked ahead.
const AHEAD: u64 = 2;

/// Whether drivers are known for a newer Kubernetes.
pub(super) struct Outlook {
    /// The Kubernetes minor.
    pub kubernetes: String,
    /// The versions that would run there, or why there are none.
    pub result: Result<Vec<(String, String)>, String>,
}

impl Outlook {
    pub(super) fn json(&self) -> Value {
        let drivers = self.result.as_ref().ok().map(|all| {
            all.iter()
                .map(|(name, version)| json!({"name": name, "version": version}))
                .collect::<Vec<_>>()
        });
        json!({"kubernetes": self.kubernetes, "fits": self.result.is_ok(), "drivers": drivers, "because": self.result.as_ref().err()})
    }
}

/// Looks ahead until nothing fits any more. Says nothing when the operator uses another matrix than this binary has, or when
/// a vCenter is not known.
pub(super) fn outlook(config: &VDOConfig, status: &VDOConfigStatus, connections: &[VsphereCloudConfig]) -> Vec<Outlook> {
    ahead(config, status, connections).unwrap_or_default()
}

fn ahead(config: &VDOConfig, status: &VDOConfigStatus, connections: &[VsphereCloudConfig]) -> Option<Vec<Outlook>> {
    let bytes = embedded::index();
    if status.matrix.as_ref()?.digest != Digest::of(bytes).to_string() {
        return None;
    }
    let index = Index::parse(bytes).ok()?;
    let now: KubernetesVersion = status.kubernetes.as_ref()?.version.parse().ok()?;
    let existing = connections.iter().map(ResourceExt::name_any).collect();
    let asked = reconcile::asked(&config.spec, &config.namespace().unwrap_or_default(), &existing).ok()?;
    let used = asked.used();
    let vcenters: Vec<(String, VcenterVersion)> = connections
        .iter()
        .filter(|c| used.contains(c.name_any().as_str()))
        .map(|c| {
            let build = c
                .status
                .as_ref()
                .and_then(|status| status.about.as_ref())
                .map(|about| about.build.as_str());
            Some((c.name_any(), index.vcenter(&reconcile::vcenter_version(c)?, build)))
        })
        .collect::<Option<_>>()?;
    let installed = status
        .drivers
        .iter()
        .filter_map(|d| Some((d.name.clone(), d.version.parse().ok()?)))
        .collect();
    let (major, minor) = (now.numbers().first()?, now.numbers().get(1)?);
    let mut all = Vec::new();
    for step in 1..=AHEAD {
        let kubernetes = format!("{major}.{}", minor + step);
        let version: KubernetesVersion = kubernetes.parse().ok()?;
        let query = Query {
            kubernetes: &version,
            vcenters: &vcenters,
            drivers: &asked.drivers,
            installed: &installed,
            policy: UpdatePolicy::Compatible,
        };
        let result = match matrix::resolve(&index, &query) {
            Ok(resolution) => Ok(resolution
                .picks
                .into_iter()
                .map(|(name, pick)| (short(&name).to_owned(), pick.target.to_string()))
                .collect()),
            Err(error) => Err(match error.cause {
                matrix::Cause::PinRejected { pin, .. } => format!("{} is pinned to {pin}", short(&error.driver)),
                _ => format!("no {} version supports it yet", short(&error.driver)),
            }),
        };
        let stop = result.is_err();
        all.push(Outlook { kubernetes, result });
        if stop {
            break;
        }
    }
    Some(all)
}
