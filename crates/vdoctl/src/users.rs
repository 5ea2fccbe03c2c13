// SPDX-License-Identifier: Apache-2.0
//! `vdoctl users`: calls its verbs, which create, check, rotate and delete the drivers' accounts in a vCenter, as an administrator.
//!
//! ```text
//! site     the cluster, the connections and the accounts that these need
//! login    an administrator's login, and the accounts that exist
//! plan     the steps (pure, in the module `accounts`)
//! ask      every step is shown; nothing is changed without confirmation
//! change   step by step; after an interruption, the next run continues
//! ```
//!
//! The administrator's password is read once, sent to the vCenter and its token service, and wiped with the session.

mod consent;
mod create;
mod login_and_datastores;
mod next_command;
mod rotate;
mod show;
mod shrink_and_delete;
mod site;
mod store;

pub(super) use create::create_shared;
pub(super) use login_and_datastores::log_in;
pub(super) use site::place;

use super::args::{Format, Global, Users as Args, UsersVerb};
use super::context::now;
use super::output::View;
use super::printer::Printer;
use super::progress::Progress;
use super::views::users::{ChangedUserView, ChangedUsersView, UsersView};
use super::{Answer, CliError, Exit};
use vdo_admin::accounts::ChangeError;
use vdo_api::types::Remedy as _;

/// The domain in which a vCenter keeps users of its own, unless it was installed with another one.
pub(super) const DOMAIN: &str = "vsphere.local";

pub(super) async fn run(args: &Args, global: &Global, printer: &Printer) -> Result<Answer, CliError> {
    let vcenter = match &args.verb {
        UsersVerb::List(vcenter) => vcenter,
        UsersVerb::Verify(account) => &account.vcenter,
        UsersVerb::Create(args) => &args.change.account.vcenter,
        UsersVerb::Shrink(args) | UsersVerb::Rotate(args) | UsersVerb::Delete(args) => &args.account.vcenter,
    };
    let mut progress = Progress::new(printer, vcenter.output.unwrap_or(Format::Table));
    let answer = match &args.verb {
        UsersVerb::Create(args) => create::run(args, global, &mut progress).await,
        UsersVerb::List(args) => show::list(args, global).await,
        UsersVerb::Verify(args) => show::verify(args, global).await,
        UsersVerb::Shrink(args) => shrink_and_delete::shrink(args, global, &mut progress).await,
        UsersVerb::Delete(args) => shrink_and_delete::delete(args, global, &mut progress).await,
        UsersVerb::Rotate(args) => rotate::run(args, global, &mut progress).await,
    };
    match progress.end() {
        Some(exit) => answer.map(|answer| answer.exit(exit)),
        None => answer,
    }
}

/// An error of the vCenter, with the code that it ends the command with.
pub(super) fn failed(error: &ChangeError) -> CliError {
    let exit = match error {
        ChangeError::NotPermitted { .. } | ChangeError::NoUserManager { .. } => Exit::Refused,
        _ => Exit::Vcenter,
    };
    CliError::new(exit, error.to_string(), error.remedy().unwrap_or_default())
}

/// The answer: a document for programs, the text for people.
fn answer<V: View>(format: Option<Format>, view: &V, text: String) -> Result<Answer, CliError> {
    Answer::view(format.unwrap_or(Format::Table), view, || text)
}

/// What was done to accounts.
fn done(accounts: Vec<ChangedUserView>) -> UsersView {
    UsersView::Changed(ChangedUsersView { changed: true, accounts })
}
