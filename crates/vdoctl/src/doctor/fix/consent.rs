// SPDX-License-Identifier: Apache-2.0
//! Shows the steps of one fix and asks about them.

use super::super::super::args::DoctorFixing;
use super::super::super::progress::{Mark, Progress};
use super::super::super::{CliError, Exit, prompt};
use vdo_admin::fixes::{Consent, Step, consent};
use vdo_api::types::count;

fn of(args: &DoctorFixing, steps: &[Step]) -> Consent {
    consent(steps, args.yes, prompt::is_terminal())
}

/// Refuses before anything is changed where no one could be asked.
pub(super) fn can_be_had<'a>(args: &DoctorFixing, mut all: impl Iterator<Item = &'a [Step]>) -> Result<(), CliError> {
    match all.any(|steps| of(args, steps) == Consent::Missing) {
        true => Err(CliError::new(
            Exit::Refused,
            "nothing was changed: there is no terminal to ask on",
            "Look at the changes with --dry-run, and confirm them with --yes.",
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
