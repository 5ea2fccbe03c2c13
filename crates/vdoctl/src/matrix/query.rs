// SPDX-License-Identifier: Apache-2.0
//! Collects the input of a choice of versions: Kubernetes, vCenters, drivers and installed versions, from flags or from the cluster.

use super::super::args::{Global, Platform};
use super::super::context::{Context, Deployed, now};
use super::super::error::unknown;
use super::super::{Answer, CliError, Exit, style};
use kube::ResourceExt;
use std::collections::{BTreeMap, BTreeSet};
use vdo::reconcile;
use vdo_api::api::{ConditionType, Conditions};
use vdo_api::types::{DriverName, DriverVersion, KubernetesVersion, VcenterVersion};
use vdo_core::matrix::{DriverRequest, Index, Query, UpdatePolicy};

/// Everything that is asked, whether it was typed or found.
pub(crate) struct Question {
    pub kubernetes: KubernetesVersion,
    pub vcenters: Vec<(String, VcenterVersion)>,
    pub drivers: BTreeMap<DriverName, DriverRequest>,
    pub installed: BTreeMap<DriverName, DriverVersion>,
    pub policy: UpdatePolicy,
    /// What was typed and makes no difference.
    warnings: Vec<String>,
    /// The cluster that what was not typed comes from.
    cluster: Option<String>,
}

impl Question {
    /// For all drivers of the index, with none installed.
    fn new(kubernetes: KubernetesVersion, vcenters: Vec<(String, VcenterVersion)>, index: &Index) -> Self {
        Self {
            kubernetes,
            vcenters,
            drivers: all(index),
            installed: BTreeMap::new(),
            policy: UpdatePolicy::Compatible,
            warnings: Vec::new(),
            cluster: None,
        }
    }

    /// The same for the resolver.
    pub(crate) fn query(&self) -> Query<'_> {
        Query {
            kubernetes: &self.kubernetes,
            vcenters: &self.vcenters,
            drivers: &self.drivers,
            installed: &self.installed,
            policy: self.policy,
        }
    }

    pub(super) fn title(&self) -> String {
        let title = title(&self.kubernetes, &self.vcenters);
        match &self.cluster {
            Some(cluster) => format!("{title} (with the versions that are installed in cluster {cluster})"),
            None => title,
        }
    }

    /// An answer to this question, with what is to be said of the question itself.
    pub(super) fn answer(&self, answer: Answer) -> Answer {
        let said = |answer: Answer, line: &String| answer.note(format!("{} {line}", style::warn("warning:")));
        self.warnings.iter().fold(answer, said)
    }
}

/// `Kubernetes v1.34.4, vCenter 8.0.3 (vc1)`.
pub(super) fn title(kubernetes: &KubernetesVersion, vcenters: &[(String, VcenterVersion)]) -> String {
    let name = |(name, version): &(String, VcenterVersion)| {
        if name == ONLY {
            version.to_string()
        } else {
            format!("{version} ({name})")
        }
    };
    let vcenters: Vec<String> = vcenters.iter().map(name).collect();
    format!("Kubernetes {kubernetes}, vCenter {}", vcenters.join(", "))
}

/// Takes what was typed, and asks the cluster for the rest.
pub(super) async fn question(args: &Platform, global: &Global, index: &Index) -> Result<Question, CliError> {
    let typed = typed_drivers(args, index)?;
    let installed = typed_versions(args, index)?;
    let vcenters = typed_vcenters(args)?;
    let mut question = match &args.kubernetes {
        Some(kubernetes) if !vcenters.is_empty() => Question::new(kubernetes.clone(), vcenters, index),
        _ => ask_cluster(args, global, vcenters, index).await.map_err(|mut error| {
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
    if !typed.is_empty() {
        question.drivers = narrowed(std::mem::take(&mut question.drivers), typed);
    }
    if !installed.is_empty() {
        question.installed = installed;
        for name in question.installed.keys().filter(|name| !question.drivers.contains_key(*name)) {
            let line = format!("--installed {name} has no effect, because this command does not choose a version of that driver");
            question.warnings.push(line);
        }
    }
    features(&args.feature, &mut question.drivers, index)?;
    question.policy = index.policy(question.policy, now());
    Ok(question)
}

fn all(index: &Index) -> BTreeMap<DriverName, DriverRequest> {
    index.usual().map(|name| (name.clone(), DriverRequest::default())).collect()
}

/// A word of the command line that may stand there once only.
pub(super) fn distinct<'a>(flag: &str, names: impl Iterator<Item = &'a str>) -> Result<(), CliError> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            let what = if name.is_empty() {
                format!("{flag} is given twice for all vCenters")
            } else {
                format!("{flag} is given twice for {name}")
            };
            return Err(CliError::new(
                Exit::Usage,
                what,
                "Leave one of them out, or give them different names.",
            ));
        }
    }
    Ok(())
}

/// The drivers that were named, by their names in the index, perhaps with a version.
fn typed_drivers(args: &Platform, index: &Index) -> Result<Vec<(DriverName, Option<DriverVersion>)>, CliError> {
    let mut drivers = Vec::new();
    for ask in &args.driver {
        let (name, _) = super::driver(index, &ask.driver)?;
        drivers.push((name.to_owned(), ask.pin.clone()));
    }
    distinct("--driver", drivers.iter().map(|(name, _)| name.as_str()))?;
    Ok(drivers)
}

fn typed_versions(args: &Platform, index: &Index) -> Result<BTreeMap<DriverName, DriverVersion>, CliError> {
    let mut installed = Vec::new();
    for ask in &args.installed {
        let (name, _) = super::driver(index, &ask.driver)?;
        let Some(version) = ask.pin.clone() else {
            let what = format!("--installed {} names no version", ask.driver);
            let remedy = format!("Write for example --installed {}=3.7.3", ask.driver);
            return Err(CliError::new(Exit::Usage, what, remedy));
        };
        installed.push((name.to_owned(), version));
    }
    distinct("--installed", installed.iter().map(|(name, _)| name.as_str()))?;
    Ok(installed.into_iter().collect())
}

/// Only what was named, with what the specification says of it; a version that was named wins over its pin.
fn narrowed(
    mut asked: BTreeMap<DriverName, DriverRequest>,
    typed: Vec<(DriverName, Option<DriverVersion>)>,
) -> BTreeMap<DriverName, DriverRequest> {
    let one = |(name, pin): (DriverName, Option<DriverVersion>)| {
        let mut request = asked.remove(&name).unwrap_or_default();
        if pin.is_some() {
            (request.pin, request.pinned_by) = (pin, Some("--driver".to_owned()));
        }
        (name, request)
    };
    typed.into_iter().map(one).collect()
}

/// Asks every driver that has it in some version for a feature.
fn features(asked: &[String], drivers: &mut BTreeMap<DriverName, DriverRequest>, index: &Index) -> Result<(), CliError> {
    let of = |name: &DriverName| -> BTreeSet<&str> {
        let versions = index.drivers.get(name).into_iter().flat_map(|driver| &driver.versions);
        versions.flat_map(|entry| entry.features.keys()).map(String::as_str).collect()
    };
    for feature in asked {
        let able: Vec<&DriverName> = index.drivers.keys().filter(|name| of(name).contains(feature.as_str())).collect();
        let Some(first) = able.first() else {
            let known: BTreeSet<&str> = index.drivers.keys().flat_map(of).collect();
            return Err(unknown("feature", feature, &known.into_iter().collect::<Vec<_>>()));
        };
        let mut some = false;
        for (_, request) in drivers.iter_mut().filter(|(name, _)| able.contains(name)) {
            request.features.insert(feature.clone(), format!("--feature {feature}"));
            some = true;
        }
        if !some {
            let what = format!("--feature {feature} belongs to {first}, and this command does not choose a version of that driver");
            return Err(CliError::new(
                Exit::Usage,
                what,
                format!("Add --driver {first}, or leave the feature out."),
            ));
        }
    }
    Ok(())
}

/// What the one vCenter is called that was given no name.
const ONLY: &str = "the vCenter";

fn typed_vcenters(args: &Platform) -> Result<Vec<(String, VcenterVersion)>, CliError> {
    let name = |i: usize| {
        if args.vcenter.len() == 1 {
            ONLY.to_owned()
        } else {
            format!("vCenter {}", i + 1)
        }
    };
    let named = args.vcenter.iter().enumerate();
    let vcenters: Vec<_> = named
        .map(|(i, v)| (v.name.clone().unwrap_or_else(|| name(i)), v.version.clone()))
        .collect();
    distinct("--vcenter", vcenters.iter().map(|(name, _)| name.as_str()))?;
    Ok(vcenters)
}

/// Fills in from the cluster what was not typed.
async fn ask_cluster(
    args: &Platform,
    global: &Global,
    vcenters: Vec<(String, VcenterVersion)>,
    index: &Index,
) -> Result<Question, CliError> {
    let context = Context::open(global).await?;
    let reader = &context.ports.reader;
    let deployed = context.find_config().await?;
    if args.vcenter.is_empty() && matches!(deployed, Deployed::Nothing) {
        let remedy = "Name the vCenter versions instead: --vcenter 8.0.3";
        return Err(CliError {
            remedy: remedy.into(),
            ..context.no_config_error(&deployed)
        });
    }
    let objects = if args.vcenter.is_empty() {
        reconcile::connection_objects(reader, &global.namespace).await?
    } else {
        Vec::new()
    };
    let existing = objects.iter().map(ResourceExt::name_any).collect();
    let kubernetes = args.kubernetes.clone().unwrap_or_else(|| context.kubernetes.clone());
    let mut question = Question::new(kubernetes, vcenters, index);
    question.cluster = Some(context.name.clone());
    let mut used = None;
    if let Deployed::Config(config) = &deployed {
        let named = reconcile::named(reader, config).await;
        question.policy = match named.is_ok_and(|named| named.frozen()) {
            true => UpdatePolicy::Disabled,
            false => reconcile::policy(config.spec.update_policy),
        };
        let state = reconcile::observe(reader, config, context.kubernetes.clone()).await?;
        question.installed = state.versions();
        if args.vcenter.is_empty() {
            let mut asked = reconcile::asked(&config.spec, &global.namespace, &existing).map_err(|error| CliError::from(error.as_ref()))?;
            asked.leave_to(index);
            reconcile::hold_upgrades(reader, &state, &objects, index, &mut asked).await?;
            reconcile::hold_attached(reader, &mut asked).await;
            used = Some(asked.used().into_iter().map(str::to_owned).collect::<Vec<_>>());
            question.drivers = asked.questions();
        }
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
            global.namespace, context.name
        );
        return Err(CliError::new(
            Exit::NotFound,
            what,
            "Name the vCenter versions instead: --vcenter 8.0.3",
        ));
    }
    Ok(question)
}

fn version(object: &vdo_api::api::VsphereCloudConfig) -> Result<VcenterVersion, CliError> {
    reconcile::vcenter_version(object).ok_or_else(|| {
        let conditions = object
            .status
            .as_ref()
            .map(|status| status.conditions.as_slice())
            .unwrap_or_default();
        let message = Conditions::find(conditions, ConditionType::Ready)
            .map_or("the vSphere connection has not been checked yet", |c| c.message.as_str());
        let what = format!(
            "the vCenter version of vSphere connection {} ({}) is not known: {}",
            object.name_any(),
            object.spec.vc_ip,
            message
        );
        CliError::new(
            Exit::Vcenter,
            what,
            format!("Name the version instead: --vcenter {}=8.0.3", object.name_any()),
        )
    })
}
