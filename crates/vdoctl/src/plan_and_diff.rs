// SPDX-License-Identifier: Apache-2.0
//! Computes the plan that `vdoctl plan` and `vdoctl diff` show: all objects after a dry run, refusals, waits, summary and exit code.

use super::context::{Context, Decided, Deciding, Left, id};
use super::driver_changes::{drivers, is_label_only};
use super::error::sentence;
use super::matrix::Used;
use super::object_write::Change;
use super::preview::suppose;
use super::views::plan::{DriverChangeView, FieldView, ItemView, ObjectView, PlannedView, SkipView, WaitView};
use super::{CliError, Exit, args, field_view, style};
use kube::ResourceExt;
use std::collections::BTreeSet;
use std::fmt;
use vdo::cluster::ClusterError;
use vdo::reconcile::{Scope, TakenAway, dry_run, is_uninstalled, taken_away};
use vdo_api::api::{APPROVE, Approval, Classify as _, DeletionPolicy, Reason, VDOConfig};
use vdo_api::types::{ObjectId, Remedy as _, count, verb};
use vdo_core::drivers::{STORAGE, short};
use vdo_core::matrix::Resolution;
use vdo_core::patches::Origins;
use vdo_core::plan::{Action, Because, Item, Plan, Skip, Wait, hash, outline};

/// That the operator decides with another matrix than the one that was named, if it does.
fn other_matrix(context: &Deciding, config: &VDOConfig) -> Option<String> {
    let other = config.status.as_ref()?.matrix.as_ref()?;
    let differs = context.used.is_given() && other.digest != context.used.digest().to_string();
    differs.then(|| {
        format!(
            "The operator uses another matrix: {}, version {}. Without --matrix, this answer uses the matrix of the operator.",
            other.source, other.version
        )
    })
}

/// An object that the API server would refuse.
pub(super) struct Refusal {
    pub id: ObjectId,
    pub reason: Reason,
    /// What is wrong, in a sentence.
    pub what: String,
    /// What to do about it; empty where the sentence says it.
    pub remedy: String,
}

impl Refusal {
    fn of(id: &ObjectId, error: &ClusterError) -> Self {
        Self {
            id: id.clone(),
            reason: error.reason(),
            what: sentence(error),
            remedy: error.remedy().unwrap_or_default().into_owned(),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.id, self.what)?;
        match self.remedy.as_str() {
            "" => Ok(()),
            remedy => write!(f, "\n{remedy}"),
        }
    }
}

/// A whole plan, as it is shown.
pub(super) struct Planned {
    /// The VDOConfig, as namespace/name.
    pub config: String,
    /// The matrix that was decided with; `None` for a removal, which needs none.
    pub matrix: Option<Used>,
    /// The hash by which the plan is approved; `None` when nothing has to be.
    pub hash: Option<String>,
    /// Who lets it happen.
    pub approval: Approval,
    /// Whether a person has approved it, or no one has to.
    pub approved: bool,
    /// What it takes away from volumes or drivers that are there, for which a person has to approve it.
    pub taken_away: Vec<TakenAway>,
    /// Every object.
    pub items: Vec<Item>,
    /// What the server would refuse.
    pub refusals: Vec<Refusal>,
    /// Which patches of the VDOConfig are in the objects.
    pub patched: Origins,
    /// What stays although it is no longer desired.
    pub stays: Vec<Skip>,
    /// What is waited for.
    pub waiting: Vec<Wait>,
    /// What waits for a person, such as a removal for its volumes.
    pub blocked: Vec<Wait>,
    /// What the server could not be asked about.
    pub deferred: Vec<Skip>,
    /// What should be known of how this was found out.
    pub notes: Vec<String>,
    /// Drivers that are left at what was applied last, each with why.
    pub left: Vec<Left>,
    /// Their names.
    pub undecided: BTreeSet<String>,
    /// What happens to each driver.
    pub drivers: Vec<DriverChangeView>,
    /// The change that was supposed; empty where the plan is that of the cluster as it is.
    pub supposed: Vec<Change>,
}

impl Planned {
    /// The plan, after a change that was not made yet.
    pub(super) async fn after(context: &mut Deciding, preview: &args::Preview) -> Result<Self, CliError> {
        let supposed = suppose(context, preview).await?;
        let planned = Self::of(context).await?;
        Ok(Self { supposed, ..planned })
    }

    /// Decides, and has the whole plan tried on the server. A user who may not write gets the plain comparison, with a note.
    pub(super) async fn of(context: &Deciding) -> Result<Self, CliError> {
        let config = context.acting().await?;
        if is_uninstalled(&config) {
            return Self::of_removal(context, &config).await;
        }
        Self::tried(context, context.decide().await?).await
    }

    /// What was decided, tried on the server.
    pub(super) async fn tried(context: &Deciding, decided: Decided) -> Result<Self, CliError> {
        let mut notes: Vec<String> = other_matrix(context, &decided.config).into_iter().collect();
        let Decided {
            config,
            left,
            undecided,
            state,
            mut planned,
            ..
        } = decided;
        let dry_run = dry_run(&context.ports, &state, &mut planned, Scope::Everything).await?;
        dry_run.refine(&mut planned.plan, &planned.observed);
        let mut refusals = Vec::new();
        let mut blind = false;
        for (id, refusal) in &dry_run.refusals {
            match refusal.as_ref() {
                ClusterError::Unavailable { .. } | ClusterError::TimedOut { .. } => return Err(CliError::cluster(refusal.as_ref())),
                // What the operator may is another question.
                ClusterError::Forbidden { .. } => blind = true,
                // Its namespace comes with the operator.
                ClusterError::Refused { source, .. } if source.code == 404 && context.supposes() => {}
                other => refusals.push(Refusal::of(id, other)),
            }
        }
        if blind {
            notes.push(
                "You have fewer rights than the operator, so some differences may be false, and some refusals may be missing.".to_owned(),
            );
        }
        let hash = hash(&planned.plan, &planned.record.drawn);
        let status = config.status.as_ref().and_then(|status| status.plan.clone());
        if let (Some(own), Some(operator)) = (&hash, &status)
            && *own != operator.hash
            && !context.supposes()
        {
            notes.push(format!(
                "The operator has another plan, {}, which it made with its own charts and at another time.",
                operator.hash
            ));
        }
        let items = outline(&planned.plan, &planned.desired);
        let taken_away = taken_away(&context.ports.reader, &config, &state, &planned).await?;
        planned.plan.waiting.extend(planned.held());
        planned.plan.waiting.extend(taken_away.iter().map(|taken| Wait {
            driver: STORAGE.name.to_owned(),
            reason: Reason::ApprovalRequired,
            message: taken.message(),
        }));
        let given = hash.as_ref().is_some_and(|hash| config.annotations().get(APPROVE) == Some(hash));
        Ok(Self {
            config: id(&config),
            matrix: Some(context.used.clone()),
            approval: config.spec.approval,
            approved: hash.is_none()
                || given
                || (taken_away.is_empty() && (config.spec.approval == Approval::Automatic || status.is_some_and(|status| status.approved))),
            taken_away,
            hash,
            drivers: drivers(&items, &planned.runs.resolution()),
            items,
            refusals,
            patched: planned.runs.patched(),
            stays: planned.plan.skipped,
            waiting: planned.plan.waiting,
            blocked: planned.plan.blocked,
            deferred: dry_run.deferred,
            notes,
            left,
            undecided,
            supposed: Vec::new(),
        })
    }

    /// What goes, and what it waits for, where the drivers are being uninstalled.
    async fn of_removal(context: &Context, config: &VDOConfig) -> Result<Self, CliError> {
        let (_, plan) = context.removal(config).await?;
        let name = id(config);
        let deleted = config.metadata.deletion_timestamp.is_some();
        let orphaned = deleted && config.spec.deletion_policy == DeletionPolicy::Orphan;
        let note = match (deleted, orphaned) {
            (_, true) => format!("VDOConfig {name} is being deleted, and the drivers stay, because its deletionPolicy is Orphan."),
            (true, _) => format!("VDOConfig {name} is being deleted together with its drivers."),
            _ => format!("The drivers are uninstalled, because the managementState of VDOConfig {name} is Removed."),
        };
        let plan = if orphaned { Plan::default() } else { plan };
        let items = outline(&plan, &[]);
        Ok(Self {
            config: name,
            matrix: None,
            hash: None,
            approval: Approval::Automatic,
            approved: true,
            taken_away: Vec::new(),
            drivers: drivers(&items, &Resolution::default()),
            items,
            refusals: Vec::new(),
            patched: Origins::default(),
            stays: plan.skipped,
            waiting: plan.waiting,
            blocked: plan.blocked,
            deferred: Vec::new(),
            notes: vec![note],
            left: Vec::new(),
            undecided: BTreeSet::new(),
            supposed: Vec::new(),
        })
    }

    /// Objects of which something would change.
    pub(super) fn changing(&self) -> impl Iterator<Item = &Item> {
        self.items.iter().filter(|item| item.action != Action::Keep)
    }

    /// What is said beside the plan.
    pub(super) fn talk(&self) -> impl Iterator<Item = String> {
        let warning = self.matrix.as_ref().and_then(Used::warning);
        let left = self.left.iter().map(ToString::to_string);
        warning.into_iter().chain(self.notes.iter().cloned()).chain(left)
    }

    /// The header: which matrix was decided with.
    pub(super) fn header(&self) -> String {
        self.matrix
            .as_ref()
            .map(|matrix| format!("{}\n", matrix.line()))
            .unwrap_or_default()
    }

    /// Exit codes as those of `kubectl diff`; a driver that cannot be decided about is an error.
    pub(super) fn exit(&self) -> Exit {
        if !self.left.is_empty() {
            Exit::Refused
        } else if self.changing().next().is_none() {
            Exit::Ok
        } else {
            Exit::Differences
        }
    }

    /// How many of each, in one line.
    pub(super) fn summary(&self) -> String {
        let count = |action| self.items.iter().filter(|item| item.action == action).count();
        let undecided = self.undecided();
        if self.changing().next().is_none() {
            return match undecided {
                None => format!("no differences: all {} objects match VDOConfig {}", self.items.len(), self.config),
                Some(undecided) => format!("no differences{}; {undecided}", self.decided()),
            };
        }
        let words = [
            (Action::Create, "to create"),
            (Action::Apply, "to change"),
            (Action::Adopt, "to adopt"),
            (Action::Recreate, "to recreate"),
            (Action::Prune, "to remove"),
            (Action::Keep, "in sync"),
        ];
        let parts: Vec<String> = words
            .into_iter()
            .map(|(action, word)| (count(action), word))
            .filter(|(n, _)| *n > 0)
            .map(|(n, word)| format!("{n} {word}"))
            .collect();
        let counts = parts.join(", ");
        undecided.map_or(counts.clone(), |undecided| format!("{counts}; {undecided}"))
    }

    /// The summary, and whose pods restart where some run already.
    pub(super) fn effect(&self) -> String {
        let restarts: Vec<&str> = self
            .drivers
            .iter()
            .flat_map(|driver| &driver.restarts)
            .map(String::as_str)
            .collect();
        match restarts.is_empty() {
            true if self.takes_over() => format!("{}; no pod restarts", self.summary()),
            true => self.summary(),
            false => format!("{}; the pods of {} restart", self.summary(), restarts.join(" and ")),
        }
    }

    /// Whether objects of another tool are taken over.
    pub(super) fn takes_over(&self) -> bool {
        self.items.iter().any(|item| item.action == Action::Adopt)
    }

    /// `CSI cannot be planned`, where some driver cannot.
    fn undecided(&self) -> Option<String> {
        let names: Vec<&str> = self.undecided.iter().map(|driver| short(driver)).collect();
        (!names.is_empty()).then(|| format!("{} cannot be planned", names.join(" and ")))
    }

    /// ` for CPI`: the drivers that were planned, where some were.
    fn decided(&self) -> String {
        let planned = self.drivers.iter().map(|change| change.driver.as_str());
        let names: Vec<&str> = planned.filter(|driver| !self.undecided.contains(*driver)).map(short).collect();
        match names.len() {
            0 => String::new(),
            _ => format!(" for {}", names.join(" and ")),
        }
    }

    /// The lines of one object.
    pub(super) fn line(&self, item: &Item) -> String {
        let (sign, word) = match (item.action, item.because) {
            (Action::Create, Because::Deleted) => (style::good("+"), "was deleted by another user and would be recreated"),
            (Action::Create, _) => (style::good("+"), "would be created"),
            (Action::Apply, Because::Drifted) => (style::warn("~"), "was changed by another manager and would be repaired"),
            (Action::Apply, _) => (style::warn("~"), "would be changed"),
            (Action::Adopt, _) => (style::warn("~"), "is not managed by VDO yet and would be adopted"),
            (Action::Recreate, _) => (style::bad("±"), "would be deleted and recreated, because a field cannot be changed"),
            (Action::Prune, _) => (style::bad("-"), "would be removed"),
            (Action::Keep, _) => (style::faint("="), "is in sync"),
        };
        let mut text = format!("{sign} {} {} {word}\n", item.id, style::faint(&format!("({})", item.driver)));
        let patches = self.patched.of(&item.id);
        if !patches.is_empty() {
            text.push_str(&format!("    patched by {}\n", patches.join(" and ")));
        }
        text.extend(item.fields.iter().map(field_view::lines));
        if item.action == Action::Apply && item.fields.is_empty() {
            text.push_str("    the only known change is the annotation vdo.vmware.com/applied (the digest of the applied object)\n");
        }
        for refusal in self.refusals.iter().filter(|refusal| refusal.id == item.id) {
            text.push_str(&format!("    {} {}\n", style::bad("! refused:"), refusal.what));
            if !refusal.remedy.is_empty() {
                text.push_str(&format!("    {}\n", refusal.remedy));
            }
        }
        text
    }

    /// The objects that change, for people: those that change in the label of the version only are counted, unless all are asked for.
    pub(super) fn shown(&self, all: bool) -> (Vec<&Item>, String) {
        let (labels, shown): (Vec<&Item>, Vec<&Item>) = self.changing().partition(|item| !all && is_label_only(item));
        let folded = match labels.len() {
            0 => String::new(),
            some => format!(
                "{} {} {} only in the version label; -o wide lists them\n",
                style::warn("~"),
                count(some, "object"),
                verb(some, "changes", "change")
            ),
        };
        (shown, folded)
    }

    /// The change that was supposed.
    pub(super) fn supposition(&self) -> String {
        let of = |change: &Change| {
            let fields: String = change.fields().iter().map(field_view::lines).collect();
            let word = match &change.before {
                None => "would be created",
                Some(_) if fields.is_empty() => "would not change",
                Some(_) => "would be changed",
            };
            format!("{} {} {word}\n{fields}", style::head("PREVIEW"), change.after)
        };
        self.supposed.iter().map(of).collect()
    }

    /// What stays, and what is waited for.
    pub(super) fn rest(&self) -> String {
        let mut text = String::new();
        for message in self.blocked.iter().map(|wait| &wait.message) {
            text.push_str(&format!("{} {message}\n", style::bad("!")));
        }
        for skip in &self.stays {
            text.push_str(&format!("= {}\n", skip.message));
        }
        for message in self.waiting.iter().map(|wait| &wait.message) {
            text.push_str(&format!("… {message}\n"));
        }
        text
    }

    /// What is shown to programs, with these objects.
    pub(super) fn view(&self, items: &[&Item]) -> PlannedView {
        PlannedView {
            config: self.config.clone(),
            matrix: self.matrix.as_ref().map(Used::view),
            hash: self.hash.clone(),
            approval: self.approval,
            approved: self.approved,
            supposed: self.supposed.iter().map(Change::view).collect(),
            drivers: self.drivers.clone(),
            objects: items.iter().map(|item| self.object(item)).collect(),
            stays: self.stays.iter().map(SkipView::from).collect(),
            waiting: self.waiting.iter().map(WaitView::from).collect(),
            blocked: self.blocked.iter().map(WaitView::from).collect(),
            not_tried: self.deferred.iter().map(SkipView::from).collect(),
            left_alone: self.left.iter().map(ToString::to_string).collect(),
        }
    }

    fn object(&self, item: &Item) -> ItemView {
        let refusal = self.refusals.iter().find(|refusal| refusal.id == item.id);
        ItemView {
            action: item.action,
            because: item.because,
            object: ObjectView {
                api_version: item.api_version.clone(),
                kind: item.id.kind().to_owned(),
                namespace: item.id.namespace.clone(),
                name: item.id.name.to_string(),
            },
            driver: item.driver.clone(),
            wave: item.wave,
            fields: item.fields.iter().map(FieldView::from).collect(),
            patched_by: self.patched.of(&item.id),
            refusal: refusal.map(|refusal| refusal.what.clone()),
        }
    }
}
