//! `vdoctl matrix resolve`: the choice with its reasons, or why there is none.

use super::super::answer::document;
use super::super::args::{Global, Resolve as Args};
use super::super::failure::parts;
use super::super::session::{Deployed, Session};
use super::super::{Answer, CliError, Exit, style};
use crate::api::{ConditionType, Conditions};
use crate::fetch::Store;
use crate::matrix::{self, DriverRequest, Index, NoFit, Query, Resolution, UpdatePolicy};
use crate::reconcile;
use crate::types::{DriverName, DriverVersion, KubernetesVersion, VcenterVersion};
use kube::ResourceExt;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Everything that is asked, whether it was typed or found.
struct Question {
    kubernetes: KubernetesVersion,
    vcenters: Vec<(String, VcenterVersion)>,
    drivers: BTreeMap<DriverName, DriverRequest>,
    installed: BTreeMap<DriverName, DriverVersion>,
    policy: UpdatePolicy,
}

pub(super) async fn run(args: &Args, global: &Global) -> Result<Answer, CliError> {
    let index = super::index(&Store::Embedded).await?;
    let typed = typed_drivers(args, &index)?;
    let question = match &args.kubernetes {
        Some(kubernetes) if !args.vcenter.is_empty() => Question {
            kubernetes: kubernetes.clone(),
            vcenters: typed_vcenters(args),
            drivers: typed.unwrap_or_else(|| all(&index)),
            installed: BTreeMap::new(),
            policy: UpdatePolicy::Compatible,
        },
        _ => ask_cluster(args, global, typed, &index).await?,
    };
    let result = matrix::resolve(
        &index,
        &Query {
            kubernetes: &question.kubernetes,
            vcenters: &question.vcenters,
            drivers: &question.drivers,
            installed: &question.installed,
            policy: question.policy,
        },
    );
    let exit = if result.is_ok() { Exit::Ok } else { Exit::Differences };
    let answer = Answer::formatted(
        args.output.or_table(),
        || json(&index, &question, &result),
        || text(&question, &result),
    )?;
    Ok(answer.exit(exit))
}

fn all(index: &Index) -> BTreeMap<DriverName, DriverRequest> {
    index.drivers.keys().map(|name| (name.clone(), DriverRequest::default())).collect()
}

fn typed_drivers(args: &Args, index: &Index) -> Result<Option<BTreeMap<DriverName, DriverRequest>>, CliError> {
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

fn typed_vcenters(args: &Args) -> Vec<(String, VcenterVersion)> {
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
    args: &Args,
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
        question.installed = reconcile::survey(reader, config, session.kubernetes.clone()).await?.versions();
        if args.vcenter.is_empty() {
            let asked = reconcile::asked(&config.spec, &global.namespace, &existing)?;
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
        question.vcenters.push((object.name_any(), version(object)?));
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

fn text(question: &Question, result: &Result<Resolution, Box<NoFit>>) -> String {
    let vcenters: Vec<String> = question
        .vcenters
        .iter()
        .map(|(name, version)| {
            if name == ONLY {
                version.to_string()
            } else {
                format!("{version} ({name})")
            }
        })
        .collect();
    let mut text = format!("Kubernetes {}, vCenter {}\n\n", question.kubernetes, vcenters.join(", "));
    match result {
        Ok(resolution) => {
            let rows: Vec<Vec<String>> = resolution
                .picks
                .iter()
                .map(|(name, pick)| {
                    let mut because = pick.because.clone();
                    if let Some(reason) = &pick.deprecated {
                        because.push_str(&format!("; {}: {reason}", style::warn("deprecated")));
                    }
                    let newest = pick.newest.as_ref().map_or_else(|| "-".into(), ToString::to_string);
                    vec![name.clone(), pick.version.to_string(), newest, because]
                })
                .collect();
            text.push_str(&style::table(&["DRIVER", "VERSION", "NEWEST FIT", "BECAUSE"], &rows));
        }
        Err(error) => {
            text.push_str(&format!("{} {}\n\n", style::bad("✗"), headline(error)));
            let rows: Vec<Vec<String>> = error
                .rejected
                .iter()
                .map(|r| vec![error.driver.clone(), r.version.to_string(), r.reason.to_string()])
                .collect();
            if !rows.is_empty() {
                text.push_str(&style::table(&["DRIVER", "VERSION", "REJECTED BECAUSE IT"], &rows));
            }
            if let Some(advice) = &error.advice {
                text.push_str(&format!("\n{advice}.\n"));
            }
        }
    }
    text
}

/// What could not be chosen, without the candidates: they are in the table.
fn headline(error: &NoFit) -> String {
    match &error.cause {
        matrix::Cause::NothingFits => format!("no version of {} fits {}", error.driver, error.platform),
        _ => NoFit {
            advice: None,
            ..error.clone()
        }
        .to_string(),
    }
}

fn json(index: &Index, question: &Question, result: &Result<Resolution, Box<NoFit>>) -> Value {
    let vcenters: Vec<Value> = question
        .vcenters
        .iter()
        .map(|(name, version)| json!({"connection": name, "version": version}))
        .collect();
    let picks = result.iter().flat_map(|r| &r.picks);
    let driver = |(name, pick): (&DriverName, &matrix::Pick)| {
        json!({
            "name": name,
            "version": pick.version,
            "newest": pick.newest,
            "because": pick.because,
            "deprecated": pick.deprecated,
            "chart": {"urls": pick.chart.urls, "digest": pick.chart.digest},
        })
    };
    let drivers: Vec<Value> = picks.map(driver).collect();
    let failure = result.as_ref().err().map(|error| {
        let rejected: Vec<Value> = error
            .rejected
            .iter()
            .map(|r| json!({"version": r.version, "reason": r.reason.to_string()}))
            .collect();
        json!({"driver": error.driver, "message": headline(error), "advice": error.advice, "rejected": rejected})
    });
    document(
        "Resolution",
        json!({
            "matrix": super::identity(index),
            "kubernetes": question.kubernetes,
            "vcenters": vcenters,
            "fits": result.is_ok(),
            "drivers": drivers,
            "failure": failure,
        }),
    )
}
