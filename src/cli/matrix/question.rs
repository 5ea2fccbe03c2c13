//! What a choice is asked for: typed, or found in the cluster.

use super::super::args::{Global, Platform};
use super::super::failure::parts;
use super::super::session::{Deployed, Session};
use super::super::{CliError, Exit};
use crate::api::{ConditionType, Conditions};
use crate::matrix::{DriverRequest, Index, Query, UpdatePolicy};
use crate::reconcile;
use crate::types::{CSI, DriverName, DriverVersion, KubernetesVersion, VcenterVersion};
use kube::ResourceExt;
use std::collections::BTreeMap;

/// Everything that is asked, whether it was typed or found.
pub(super) struct Question {
    pub kubernetes: KubernetesVersion,
    pub vcenters: Vec<(String, VcenterVersion)>,
    pub drivers: BTreeMap<DriverName, DriverRequest>,
    pub installed: BTreeMap<DriverName, DriverVersion>,
    pub policy: UpdatePolicy,
}

impl Question {
    /// The same for the resolver.
    pub(super) fn query(&self) -> Query<'_> {
        Query {
            kubernetes: &self.kubernetes,
            vcenters: &self.vcenters,
            drivers: &self.drivers,
            installed: &self.installed,
            policy: self.policy,
        }
    }

    /// `Kubernetes v1.34.4, vCenter 8.0.3 (vc1)`.
    pub(super) fn title(&self) -> String {
        let name = |(name, version): &(String, VcenterVersion)| {
            if name == ONLY {
                version.to_string()
            } else {
                format!("{version} ({name})")
            }
        };
        let vcenters: Vec<String> = self.vcenters.iter().map(name).collect();
        format!("Kubernetes {}, vCenter {}", self.kubernetes, vcenters.join(", "))
    }
}

/// Takes what was typed, and asks the cluster for the rest.
pub(super) async fn question(args: &Platform, global: &Global, index: &Index) -> Result<Question, CliError> {
    let typed = typed_drivers(args, index)?;
    let mut question = match &args.kubernetes {
        Some(kubernetes) if !args.vcenter.is_empty() => Question {
            kubernetes: kubernetes.clone(),
            vcenters: typed_vcenters(args),
            drivers: typed.unwrap_or_else(|| all(index)),
            installed: BTreeMap::new(),
            policy: UpdatePolicy::Compatible,
        },
        _ => ask_cluster(args, global, typed, index).await.map_err(|mut error| {
            // Half of the question was typed, so the other half can be.
            if error.exit == Exit::Cluster && (args.kubernetes.is_some() || !args.vcenter.is_empty()) {
                error.remedy =
                    "Give both --kubernetes and --vcenter, such as --kubernetes 1.34 --vcenter 8.0.3, or name a kubeconfig.".into();
            }
            error
        })?,
    };
    for (_, version) in &mut question.vcenters {
        *version = index.vcenter(version, None);
    }
    if !args.installed.is_empty() {
        question.installed = BTreeMap::new();
        for ask in &args.installed {
            let (name, _) = super::driver(index, &ask.driver)?;
            let Some(version) = ask.pin.clone() else {
                let what = format!("--installed {} names no version", ask.driver);
                return Err(CliError::new(
                    Exit::Usage,
                    what,
                    format!("Write for example --installed {}=3.7.3", ask.driver),
                ));
            };
            question.installed.insert(name.to_owned(), version);
        }
    }
    if !args.feature.is_empty()
        && let Some(request) = question.drivers.get_mut(CSI)
    {
        request.features = args.feature.iter().map(|name| (name.clone(), "--feature".to_owned())).collect();
        let features = index
            .drivers
            .get(CSI)
            .into_iter()
            .flat_map(|d| &d.versions)
            .flat_map(|e| e.features.keys());
        let known: std::collections::BTreeSet<&str> = features.map(String::as_str).collect();
        if let Some(wrong) = args.feature.iter().find(|feature| !known.contains(feature.as_str())) {
            return Err(super::super::failure::unknown(
                "feature",
                wrong,
                &known.into_iter().collect::<Vec<_>>(),
            ));
        }
    }
    Ok(question)
}

fn all(index: &Index) -> BTreeMap<DriverName, DriverRequest> {
    index.drivers.keys().map(|name| (name.clone(), DriverRequest::default())).collect()
}

fn typed_drivers(args: &Platform, index: &Index) -> Result<Option<BTreeMap<DriverName, DriverRequest>>, CliError> {
    let mut drivers = BTreeMap::new();
    for ask in &args.driver {
        let (name, _) = super::driver(index, &ask.driver)?;
        drivers.insert(
            name.to_owned(),
            DriverRequest {
                pin: ask.pin.clone(),
                ..DriverRequest::default()
            },
        );
    }
    Ok(Some(drivers).filter(|drivers| !drivers.is_empty()))
}

/// What the one vCenter is called that was given no name.
const ONLY: &str = "the vCenter";

fn typed_vcenters(args: &Platform) -> Vec<(String, VcenterVersion)> {
    let name = |i: usize| {
        if args.vcenter.len() == 1 {
            ONLY.to_owned()
        } else {
            format!("vCenter {}", i + 1)
        }
    };
    args.vcenter
        .iter()
        .enumerate()
        .map(|(i, v)| (v.name.clone().unwrap_or_else(|| name(i)), v.version.clone()))
        .collect()
}

/// Fills in from the cluster what was not typed.
async fn ask_cluster(
    args: &Platform,
    global: &Global,
    typed: Option<BTreeMap<DriverName, DriverRequest>>,
    index: &Index,
) -> Result<Question, CliError> {
    let session = Session::open(global).await?;
    let reader = &session.world.reader;
    let deployed = session.deployed().await?;
    if args.vcenter.is_empty() && matches!(deployed, Deployed::Nothing) {
        let remedy = "Name the vCenters instead: --vcenter 8.0.3";
        return Err(CliError {
            remedy: remedy.into(),
            ..session.missing(&deployed)
        });
    }
    let objects = if args.vcenter.is_empty() {
        reconcile::connection_objects(reader, &global.namespace).await?
    } else {
        Vec::new()
    };
    let existing = objects.iter().map(ResourceExt::name_any).collect();
    let mut question = Question {
        kubernetes: args.kubernetes.clone().unwrap_or_else(|| session.kubernetes.clone()),
        vcenters: typed_vcenters(args),
        drivers: all(index),
        installed: BTreeMap::new(),
        policy: UpdatePolicy::Compatible,
    };
    let mut used = None;
    if let Deployed::Config(config, _) = &deployed {
        question.policy = reconcile::policy(config.spec.update_policy);
        let survey = reconcile::survey(reader, config, session.kubernetes.clone()).await?;
        question.installed = survey.versions();
        if args.vcenter.is_empty() {
            let mut asked = reconcile::asked(&config.spec, &global.namespace, &existing)?;
            asked.leave_to(index);
            reconcile::hold_upgrades(reader, &survey, &objects, index, &mut asked).await?;
            reconcile::hold_attached(reader, &mut asked).await;
            used = Some(asked.used().into_iter().map(str::to_owned).collect::<Vec<_>>());
            question.drivers = asked.drivers;
        }
    }
    if let Some(typed) = typed {
        question.drivers = typed;
    }
    for object in objects
        .iter()
        .filter(|o| used.as_ref().is_none_or(|used| used.contains(&o.name_any())))
    {
        let build = object
            .status
            .as_ref()
            .and_then(|status| status.about.as_ref())
            .map(|about| about.build.as_str());
        question.vcenters.push((object.name_any(), index.vcenter(&version(object)?, build)));
    }
    if question.vcenters.is_empty() {
        let what = format!(
            "there is no vSphere connection in namespace {} of cluster {}",
            global.namespace, session.name
        );
        return Err(CliError::new(Exit::NotFound, what, "Name the vCenters instead: --vcenter 8.0.3"));
    }
    Ok(question)
}

fn version(object: &crate::api::VsphereCloudConfig) -> Result<VcenterVersion, CliError> {
    reconcile::vcenter_version(object).ok_or_else(|| {
        let conditions = object
            .status
            .as_ref()
            .map(|status| status.conditions.as_slice())
            .unwrap_or_default();
        let message = Conditions::find(conditions, ConditionType::Ready).map_or("it has not been checked yet", |c| c.message.as_str());
        let what = format!(
            "the version of vSphere connection {} ({}) is not known: {}",
            object.name_any(),
            object.spec.vc_ip,
            parts(message).0
        );
        CliError::new(
            Exit::Vcenter,
            what,
            format!("Name it instead: --vcenter {}=8.0.3", object.name_any()),
        )
    })
}
