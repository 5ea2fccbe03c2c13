// SPDX-License-Identifier: Apache-2.0
//! Asks for the confirmation of each fix of `doctor --fix` and `--undo`, and decides when `--yes` is sufficient.

use super::super::super::args::DoctorFixing;
use super::super::super::progress::{Mark, Progress};
use super::super::super::{CliError, Exit, prompt};
use vdo_admin::fixes::Step;
use vdo_api::types::count;

/// Whether steps are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Consent {
    /// They are.
    Given,
    /// A person is asked.
    Ask,
    /// No one can be asked.
    Missing,
}

/// Whether steps are wanted that belong together. `yes` is said once for all that can be undone; what cannot be undone was allowed by name
/// before it got into a plan, and is still asked about where there is a terminal.
fn consent(steps: &[Step], yes: bool, terminal: bool) -> Consent {
    let reversible = steps.iter().all(Step::is_reversible);
    match (yes, terminal) {
        (true, true) if !reversible => Consent::Ask,
        (true, _) => Consent::Given,
        (false, true) => Consent::Ask,
        (false, false) => Consent::Missing,
    }
}

fn of(args: &DoctorFixing, steps: &[Step]) -> Consent {
    consent(steps, args.yes, prompt::is_terminal())
}

/// Refuses before anything is changed where no one could be asked.
pub(super) fn can_be_had<'a>(args: &DoctorFixing, mut all: impl Iterator<Item = &'a [Step]>) -> Result<(), CliError> {
    match all.any(|steps| of(args, steps) == Consent::Missing) {
        true => Err(CliError::new(
            Exit::Refused,
            "nothing was changed: there is no terminal on which to confirm",
            "Check the changes with --dry-run, and confirm the changes with --yes.",
        )),
        false => Ok(()),
    }
}

/// Whether these steps are wanted.
pub(super) fn is_given(args: &DoctorFixing, message: &str, steps: &[Step], progress: &mut Progress) -> Result<bool, CliError> {
    if of(args, steps) != Consent::Ask {
        return Ok(true);
    }
    if !progress.is_data() {
        let steps = steps.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        progress.step(Mark::Note, &format!("{message}\n{steps}"));
    }
    prompt::yes(&format!("Make {}?", count(steps.len(), "change"))).map_err(|error| CliError::internal(&error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use vdo_admin::fixes::MachineRef;

    #[test]
    fn fix_consent_each_case() {
        let machine = MachineRef {
            id: "vm-n1".into(),
            instance_uuid: "uuid-n1".into(),
            path: "/DC0/vm/n1".into(),
        };
        let setting = Step::SetDiskUuid {
            machine: machine.clone(),
            value: Some("TRUE".into()),
            before: None,
        };
        let hardware = Step::UpgradeHardware {
            machine,
            from: "vmx-13".into(),
            to: "vmx-15".into(),
        };
        let (back, none) = ([setting], [hardware]);
        for (steps, yes, terminal, expected) in [
            (&back, false, true, Consent::Ask),
            (&back, true, true, Consent::Given),
            (&back, true, false, Consent::Given),
            (&back, false, false, Consent::Missing),
            // What cannot be undone was named with --allow, and is still asked about.
            (&none, false, true, Consent::Ask),
            (&none, true, true, Consent::Ask),
            (&none, true, false, Consent::Given),
            (&none, false, false, Consent::Missing),
        ] {
            assert_eq!(consent(steps, yes, terminal), expected, "{steps:?} {yes} {terminal}");
        }
    }
}
