//! `doctor --fix`.

use super::super::super::args::{Allow, Doctor as Args};
use super::super::super::progress::{Mark, Progress};
use super::super::super::{Answer, CliError};
use super::site::Site;
use super::store::Store;
use super::{Line, Outcome, answer, consent, failed};
use crate::accounts::ChangeError;
use crate::fixes::{Catalog, Fix, Step, check_machine, plan, read_for};
use crate::types::Remedy as _;
use crate::vsphere::ManagedObject;

pub(super) async fn run(args: &Args, site: &Site, progress: &mut Progress) -> Result<Answer, CliError> {
    let mut store = Store::open(site)?;
    let error = |error: ChangeError| failed(&error, 0);
    let inventory = site.admin.inventory().await.map_err(error)?;
    let reports = site.reports(&inventory);
    let objects = read_for(&inventory, &reports);
    let mut work = Work {
        site,
        objects,
        catalog: Catalog::default(),
        made: 0,
    };
    work.read_tags().await?;
    let allowed = args.fixing.allow.contains(&Allow::HardwareVersion);
    let fixes = plan(&site.requirements, &site.nodes, &reports, &inventory, &work.catalog, allowed);
    let with_steps = || fixes.iter().filter(|fix| !fix.steps.is_empty());
    if args.fixing.dry_run {
        let outcome = |fix: &Fix| if fix.steps.is_empty() { Outcome::ByHand } else { Outcome::Planned };
        let lines: Vec<Line> = fixes.iter().map(|fix| Line::of(fix, outcome(fix))).collect();
        return answer(args, "DoctorFixes", &lines, Some("This was a dry run; nothing was changed.".into()));
    }
    consent::can_be_had(&args.fixing, with_steps().map(|fix| fix.steps.as_slice()))?;
    let mut lines = Vec::new();
    for fix in with_steps() {
        if !consent::is_given(&args.fixing, &fix.message, &fix.steps, progress)? {
            lines.push(Line::of(fix, Outcome::Declined));
            continue;
        }
        lines.push(match work.make(fix, &mut store, progress).await? {
            None => Line::of(fix, Outcome::Made),
            Some((message, remedy)) => Line {
                message,
                steps: Vec::new(),
                remedy: remedy.into(),
                ..Line::of(fix, Outcome::ByHand)
            },
        });
    }
    lines.extend(
        fixes
            .iter()
            .filter(|fix| fix.steps.is_empty())
            .map(|fix| Line::of(fix, Outcome::ByHand)),
    );
    let note = match (fixes.is_empty(), work.made) {
        (true, _) => Some("There is nothing to fix.".to_owned()),
        (false, 0) => None,
        (false, _) => Some(format!("Recorded in {}; vdoctl doctor --undo takes it back.", store.name())),
    };
    answer(args, "DoctorFixes", &lines, note)
}

struct Work<'a> {
    site: &'a Site,
    objects: Vec<ManagedObject>,
    catalog: Catalog,
    made: usize,
}

impl Work<'_> {
    async fn read_tags(&mut self) -> Result<(), CliError> {
        let categories = self.site.requirements.all_categories();
        if !categories.is_empty() {
            let read = self.site.admin.catalog(&categories, &self.objects, false).await;
            self.catalog = read.map_err(|error| failed(&error, self.made))?;
        }
        Ok(())
    }

    /// Makes the steps of a fix. Why it was not made, and what to do, where the machine is not as it was any more.
    async fn make(&mut self, fix: &Fix, store: &mut Store, progress: &mut Progress) -> Result<Option<(String, String)>, CliError> {
        for planned in &fix.steps {
            let seen = match planned.machine() {
                Some(machine) => {
                    let seen = self.site.admin.machine(&machine.object()).await;
                    seen.map_err(|error| failed(&error, self.made))?
                }
                None => None,
            };
            if let Err(unfit) = check_machine(planned, seen.as_ref()) {
                return Ok(Some((unfit.to_string(), unfit.remedy().unwrap_or_default().into_owned())));
            }
            let step = planned.after(seen.as_ref());
            store.add(&step)?;
            let made = self
                .site
                .admin
                .repair(&step, seen.as_ref(), &self.catalog, &store.record.mark)
                .await;
            match made {
                Ok(id) => self.catalog.apply(&step, &store.record.mark, &id),
                // Another user was faster, and it is that user's.
                Err(error) if error.is_already_there() && matches!(step, Step::CreateCategory { .. } | Step::CreateTag { .. }) => {
                    store.remove(&step)?;
                    self.read_tags().await?;
                    continue;
                }
                Err(error) => {
                    // What the vCenter has refused was not made; after anything else that is not known.
                    if matches!(error, ChangeError::NotPermitted { .. } | ChangeError::Refused { .. }) {
                        store.remove(&step)?;
                    }
                    return Err(failed(&error, self.made));
                }
            }
            self.made += 1;
            if !progress.is_data() {
                progress.step(Mark::Done, &step.to_string());
            }
        }
        Ok(None)
    }
}
