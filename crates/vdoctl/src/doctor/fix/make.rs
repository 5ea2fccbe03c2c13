// SPDX-License-Identifier: Apache-2.0
//! `vdoctl doctor --fix`: makes the fixes in the vCenter step by step, and records each step before it.

use super::super::super::args::{Allow, Doctor as Args};
use super::super::super::progress::{Mark, Progress};
use super::super::super::views::doctor::{FixOutcome, FixView, FixedView};
use super::super::super::{Answer, CliError};
use super::site::Site;
use super::store::Store;
use super::{answer, consent, failed};
use vdo_admin::accounts::ChangeError;
use vdo_admin::fixes::{Catalog, Fix, Step, Unfit, check_machine, plan, read_for};
use vdo_api::types::Remedy as _;
use vdo_vsphere::vsphere::ManagedObject;

pub(super) async fn run(args: &Args, site: &Site, progress: &mut Progress) -> Result<Answer, CliError> {
    let mut store = Store::open(site)?;
    let inventory = site.admin.inventory().await.map_err(|error| failed(&error))?;
    let reports = site.reports(&inventory);
    let objects = read_for(&inventory, &reports);
    let mut work = Work {
        site,
        objects,
        catalog: Catalog::default(),
        has_ended: false,
    };
    work.read_tags().await.map_err(|error| failed(&error))?;
    let allowed = args.fixing.allow.contains(&Allow::HardwareVersion);
    let fixes = plan(&site.requirements, &site.nodes, &reports, &inventory, &work.catalog, allowed);
    let with_steps = || fixes.iter().filter(|fix| !fix.steps.is_empty());
    if args.fixing.dry_run {
        let outcome = |fix: &Fix| {
            if fix.steps.is_empty() {
                FixOutcome::ByHand
            } else {
                FixOutcome::Planned
            }
        };
        let lines: Vec<FixView> = fixes.iter().map(|fix| FixView::of(fix, outcome(fix))).collect();
        return answer(
            args,
            site,
            FixedView,
            &lines,
            Some("This was a dry run; nothing was changed.".into()),
        )
        .await;
    }
    consent::can_be_had(&args.fixing, with_steps().map(|fix| fix.steps.as_slice()))?;
    let mut lines = Vec::new();
    for fix in with_steps() {
        if work.has_ended {
            lines.push(FixView::of(fix, FixOutcome::NotTried));
        } else if consent::is_given(&args.fixing, &fix.message, &fix.steps, progress)? {
            lines.extend(work.make(fix, &mut store, progress).await?);
        } else {
            lines.push(FixView::of(fix, FixOutcome::Declined));
        }
    }
    lines.extend(
        fixes
            .iter()
            .filter(|fix| fix.steps.is_empty())
            .map(|fix| FixView::of(fix, FixOutcome::ByHand)),
    );
    let changed = lines.iter().any(|line| line.outcome == FixOutcome::Made);
    let note = match (fixes.is_empty(), changed) {
        (true, _) => Some("There is nothing to fix.".to_owned()),
        (false, false) => None,
        (false, true) => Some(format!(
            "The changes are recorded in {}; vdoctl doctor --undo reverts them.",
            store.name()
        )),
    };
    answer(args, site, FixedView, &lines, note).await
}

struct Work<'a> {
    site: &'a Site,
    objects: Vec<ManagedObject>,
    catalog: Catalog,
    /// Whether nothing more can be asked of the vCenter.
    has_ended: bool,
}

/// What became of one step.
enum Made {
    /// It was made, as it is recorded.
    Step(Step),
    /// Another user was faster, and what is there is that user's.
    ByAnother,
    /// The machine is not as it was any more.
    Unfit(Unfit),
    /// It failed.
    Failed(ChangeError),
}

impl Work<'_> {
    async fn read_tags(&mut self) -> Result<(), ChangeError> {
        let categories = self.site.requirements.all_categories();
        if !categories.is_empty() {
            self.catalog = self.site.admin.catalog(&categories, &self.objects, false).await?;
        }
        Ok(())
    }

    /// Makes the steps of a fix: after one that failed, those that do not need it. A line for what was made, and one for each step that was not.
    async fn make(&mut self, fix: &Fix, store: &mut Store, progress: &mut Progress) -> Result<Vec<FixView>, CliError> {
        let (mut made, mut left): (Vec<Step>, Vec<FixView>) = (Vec::new(), Vec::new());
        for planned in &fix.steps {
            let ended = self.has_ended;
            let stopped = left
                .iter_mut()
                .rfind(|line| ended || line.steps.first().is_some_and(|failed| planned.needs(failed)));
            if let Some(line) = stopped {
                line.steps.push(planned.clone());
                continue;
            }
            match self.one(planned, store).await? {
                Made::Step(step) => {
                    if !progress.is_data() {
                        progress.step(Mark::Done, &step.to_string());
                    }
                    made.push(step);
                }
                Made::ByAnother => {}
                Made::Unfit(unfit) => left.push(FixView {
                    message: unfit.to_string(),
                    steps: Vec::new(),
                    remedy: unfit.remedy().unwrap_or_default().into(),
                    ..FixView::of(fix, FixOutcome::ByHand)
                }),
                Made::Failed(error) => {
                    left.push(FixView::failed(Some(fix.reason), planned, &error, progress));
                    self.has_ended = !error.is_of_one_object();
                }
            }
        }
        let whole = (left.is_empty() || !made.is_empty()).then(|| FixView {
            steps: made,
            ..FixView::of(fix, FixOutcome::Made)
        });
        Ok(whole.into_iter().chain(left).collect())
    }

    /// Makes a step, which is recorded before.
    async fn one(&mut self, planned: &Step, store: &mut Store) -> Result<Made, CliError> {
        let seen = match planned.machine() {
            Some(machine) => match self.site.admin.machine(&machine.object()).await {
                Err(error) => return Ok(Made::Failed(error)),
                Ok(seen) => seen,
            },
            None => None,
        };
        if let Err(unfit) = check_machine(planned, seen.as_ref()) {
            return Ok(Made::Unfit(unfit));
        }
        let step = planned.after(seen.as_ref());
        store.add(&step)?;
        let mark = &store.record.mark;
        match self.site.admin.repair(&step, seen.as_ref(), &self.catalog, mark).await {
            Ok(id) => {
                self.catalog.apply(&step, mark, &id);
                Ok(Made::Step(step))
            }
            Err(error) if error.is_already_there() && matches!(step, Step::CreateCategory { .. } | Step::CreateTag { .. }) => {
                store.remove(&step)?;
                let read = self.read_tags().await;
                Ok(read.map_or_else(Made::Failed, |()| Made::ByAnother))
            }
            Err(error) => {
                if error.is_refusal() {
                    store.remove(&step)?;
                }
                Ok(Made::Failed(error))
            }
        }
    }
}
