// SPDX-License-Identifier: Apache-2.0
//! `vdoctl delete`: asks for confirmation, then removes the drivers, and after the drivers the operator with its objects.
//!
//! It keeps no state: every run reads the remaining objects and continues with these.

mod drivers;
mod guards;
mod kept_namespaces_and_roles;
mod objects_to_delete;
mod remove;
mod rights;

use super::args::{Delete as Args, DryRun, Format, Global};
use super::context::{Context, id, now};
use super::operator_running::{Installer, Presence};
use super::printer::Printer;
use super::progress::{Mark, Progress};
use super::views::delete::{DataView, DeleteView, StaysView};
use super::{Answer, CliError, Exit, prompt, stopping};
use objects_to_delete::{Scope, Target};
use remove::Stays;
use std::collections::BTreeSet;
use std::time::Duration;
use vdo::reconcile;
use vdo_api::api::DriverStatus;
use vdo_api::types::{Ids, ObjectId};
use vdo_core::drivers::{STORAGE, short};
use vdo_core::manifest::Object;
use vdo_core::plan::{Plan, StorageData, left_running};

/// How often is looked at what is waited for.
const PACE: Duration = Duration::from_secs(1);

/// That the cluster does not answer once ends nothing that is under way.
fn transient(error: &CliError) -> bool {
    error.exit == Exit::Cluster
}

pub(super) async fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<Answer, CliError> {
    let timeout = global.timeout_with_drivers();
    let mut progress = Progress::new(printer, args.output.unwrap_or(Format::Table));
    let looked = tokio::time::timeout(global.timeout(), look(args, global)).await;
    let (mut context, target, data, left) = looked.map_err(|_| CliError::timed_out(global.timeout()))??;
    if target.is_empty() {
        return answer(&progress, &context, Stay::of(Vec::new(), data), "there is nothing to remove");
    }
    announce(&context, &target, &data, &left, &mut progress);
    if args.dry_run != DryRun::None {
        if args.dry_run == DryRun::Server {
            dry_run(&context, &target).await?;
        }
        return answer(
            &progress,
            &context,
            Stay::of(Vec::new(), data),
            "this was a dry run, and nothing was removed",
        );
    }
    stopping::when_stopped("nothing was removed", "");
    confirm(args, &context, &target)?;
    stopping::when_stopped("not everything is removed yet", "Run the same command again to remove the rest.");
    let carried_out = tokio::time::timeout(timeout, carry_out(&mut context, &target, global, &mut progress)).await;
    let stays = match carried_out {
        Ok(stays) => stays?,
        Err(_) => return Err(timed_out(timeout, &progress)),
    };
    stopping::forget();
    progress.end();
    let done = match target.scope {
        Scope::Drivers => "the drivers are removed; the operator stays",
        Scope::Operator => {
            "the operator is removed; the drivers keep running without it. To manage them again: install VDO and create a VDOConfig"
        }
        Scope::Everything => "VDO is removed",
    };
    let data = tokio::time::timeout(global.timeout(), guards::data(&context, false)).await;
    let data = data.unwrap_or_else(|_| Err(CliError::timed_out(global.timeout())));
    let unknown = data
        .as_ref()
        .err()
        .map(|error| format!("  it is not known which volumes and claims stay: {}", error.what));
    let answer = answer(&progress, &context, Stay::of(stays, data.unwrap_or_default()), done)?;
    Ok(unknown.into_iter().fold(answer, Answer::note))
}

/// What is there, that it may be removed by this user, what leads to data and stays, and which drivers were there before VDO and stay.
async fn look(args: &Args, global: &Global) -> Result<(Context, Target, StorageData, BTreeSet<String>), CliError> {
    let context = Context::open(global).await?;
    let target = Target::find(&context, &global.namespace, Scope::of(args)).await?;
    let data = guards::data(&context, target.scope != Scope::Operator).await?;
    let mut left = BTreeSet::new();
    if target.is_empty() && target.elsewhere.is_empty() {
        return Ok((context, target, data, left));
    }
    guards::refuse(&target, &context.name)?;
    let mut plan: Option<Plan> = None;
    if let Some(acting) = reconcile::acting(target.configs.iter().map(AsRef::as_ref)) {
        if target.scope != Scope::Operator {
            let (state, removal) = context.removal(acting).await?;
            let (objects, live) = (&state.inventory.objects, &state.live);
            left.extend(
                left_running(objects, live, &Ids::default(), &state.apply_set)
                    .into_iter()
                    .map(str::to_owned),
            );
            if !left.contains(STORAGE.name) {
                guards::refuse_volumes(acting, &state.inventory, &data.volumes)?;
            }
            plan = Some(removal);
        }
        if Presence::find(&context, &global.namespace).await?.absence(now()).is_none() {
            // The operator removes the drivers, with its own rights.
            plan = None;
        }
    }
    rights::require(&context, &target, plan.as_ref()).await?;
    Ok((context, target, data, left))
}

/// Names the cluster, what is removed, and what of the storage driver's stays.
fn announce(context: &Context, target: &Target, data: &StorageData, left: &BTreeSet<String>, progress: &mut Progress) {
    let statuses = target.configs.iter().filter_map(|config| config.status.as_ref());
    let (stay, go): (Vec<_>, Vec<_>) = statuses
        .flat_map(|status| &status.drivers)
        .partition(|driver| left.contains(&driver.name));
    let names = |drivers: Vec<&DriverStatus>| -> Vec<String> {
        let each = drivers.into_iter();
        each.map(|driver| format!("driver {} {}", short(&driver.name), driver.version))
            .collect()
    };
    let drivers = names(go);
    let mut lines = vec![format!("to be removed from cluster {} ({}):", context.name, context.server)];
    lines.extend(target.summary(&drivers));
    progress.step(Mark::Note, &lines.join("\n"));
    let mut kept: Vec<String> = names(stay)
        .into_iter()
        .map(|driver| format!("{driver}, which was installed before VDO"))
        .collect();
    kept.extend(data.lines());
    if !kept.is_empty() {
        progress.step(Mark::Note, &format!("to be kept unchanged\n{}", kept.join("\n")));
    }
    if let Some(installer) = &target.manager {
        let by = installer.manager.installed_by();
        progress.step(
            Mark::Note,
            &format!("the operator itself was installed {by}, so vdoctl does not remove it"),
        );
    }
}

/// Asks, unless the answer was given.
fn confirm(args: &Args, context: &Context, target: &Target) -> Result<(), CliError> {
    if args.yes {
        return Ok(());
    }
    let what = match target.scope {
        Scope::Drivers => "the drivers",
        Scope::Operator => "the operator",
        Scope::Everything => "all of this",
    };
    let cluster = &context.name;
    let nothing = format!("nothing was removed from cluster {cluster}");
    let question = format!("Remove {what} from cluster {cluster}?");
    prompt::confirmed(&question, &nothing, "Confirm the deletion with --yes.", "")
}

/// Removes it all, in order. What stays, and why.
async fn carry_out(context: &mut Context, target: &Target, global: &Global, progress: &mut Progress) -> Result<Stays, CliError> {
    progress.step(Mark::Note, "Interrupting is safe: vdoctl delete continues when it is run again.");
    if !target.configs.is_empty() {
        drivers::remove(context, target, &global.namespace, progress).await?;
        let names: Vec<String> = target.configs.iter().map(|config| id(config)).collect();
        let drivers = if target.scope == Scope::Operator {
            "kept its drivers"
        } else {
            "removed its drivers"
        };
        progress.step(Mark::Done, &format!("deleted VDOConfig {}, and {drivers}", names.join(", ")));
    }
    if target.scope == Scope::Drivers {
        return Ok(Stays::new());
    }
    let configuration: Vec<Object> = target.connections.iter().chain(&target.secrets).cloned().collect();
    remove::gone(context, &configuration, progress).await?;
    match &target.manager {
        Some(installer) => Ok(left(installer, target, &global.namespace)),
        None => remove::all(context, target, progress).await,
    }
}

/// What another program keeps is removed by that program: its record would be wrong otherwise, or it would install the operator again.
fn left(installer: &Installer, target: &Target, namespace: &str) -> Stays {
    let deployment = target.objects.iter().find(|object| object.kind() == "Deployment");
    let by = installer.manager.installed_by();
    let removal = installer.removal(namespace);
    let because = format!("it was installed {by}; run {removal}, then run vdoctl delete again to remove the rest");
    deployment.map(|deployment| (deployment.id(), because)).into_iter().collect()
}

/// Has the API server try every delete of this process.
async fn dry_run(context: &Context, target: &Target) -> Result<(), CliError> {
    for object in target.connections.iter().chain(&target.secrets).chain(&target.objects) {
        let writer = &context.ports.writer;
        writer.dry_run_delete(object.api_version(), &object.id(), object.uid()).await?;
    }
    Ok(())
}

fn timed_out(timeout: Duration, progress: &Progress) -> CliError {
    let awaited = progress.awaited();
    CliError::new(
        Exit::TimedOut,
        format!(
            "vdoctl delete did not finish within {} s{}",
            timeout.as_secs(),
            if awaited.is_empty() {
                String::new()
            } else {
                format!("; it waited for: {}", awaited.join("; "))
            }
        ),
        "Run vdoctl delete again to continue; --timeout sets a longer time.",
    )
}

/// What stays: of VDO, each with why, and what leads to data.
struct Stay {
    objects: Stays,
    data: StorageData,
}

impl Stay {
    fn of(objects: Stays, data: StorageData) -> Self {
        Self { objects, data }
    }

    fn view(&self, cluster: &str, done: &str) -> DeleteView {
        let names = |ids: &[ObjectId]| ids.iter().map(ToString::to_string).collect();
        let stays = self.objects.iter().map(|(id, because)| StaysView {
            object: id.to_string(),
            because: because.clone(),
        });
        DeleteView {
            cluster: cluster.to_owned(),
            message: done.to_owned(),
            stays: stays.collect(),
            data: DataView {
                volumes: self.data.volumes.count,
                named: self.data.volumes.named.clone(),
                pending_claims: names(&self.data.pending),
                classes: names(&self.data.classes),
            },
        }
    }
}

/// What was done, and what stays.
fn answer(progress: &Progress, context: &Context, stay: Stay, done: &str) -> Result<Answer, CliError> {
    let answer = match progress.is_data() {
        true => progress.last(&stay.view(&context.name, done)),
        false => Answer::text(""),
    };
    let answer = answer.note(format!("cluster {}: {done}", context.name));
    let objects = stay.objects.iter().map(|(id, because)| format!("  {id} stays: {because}"));
    let data = stay.data.lines_of_rest().into_iter().map(|line| format!("  {line}"));
    Ok(objects.chain(data).fold(answer, Answer::note))
}
