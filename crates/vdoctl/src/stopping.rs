// SPDX-License-Identifier: Apache-2.0
//! Verbs that put things in order before they stop: a signal asks them to, and a second one ends them at once. What a stopped verb has written
//! is said in either case.

use super::{CliError, Exit};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};
use tokio::sync::watch;

static ASKED: LazyLock<watch::Sender<Option<Exit>>> = LazyLock::new(|| watch::Sender::new(None));
static ARMED: AtomicBool = AtomicBool::new(false);
static WRITTEN: Mutex<Option<Written>> = Mutex::new(None);

/// What a verb has written so far, and how it is continued.
struct Written {
    what: String,
    remedy: &'static str,
}

/// As long as it lives, a signal is left to the verb.
pub(super) struct Armed(());

/// From now on the verb stops by itself.
pub(super) fn arm() -> Armed {
    ARMED.store(true, Ordering::SeqCst);
    Armed(())
}

impl Drop for Armed {
    fn drop(&mut self) {
        ARMED.store(false, Ordering::SeqCst);
    }
}

/// Asks the verb to stop. Whether it does so by itself.
pub(super) fn ask(exit: Exit) -> bool {
    ASKED.send_replace(Some(exit));
    ARMED.load(Ordering::SeqCst)
}

/// Waits until the verb is asked to stop.
pub(super) async fn asked() -> Exit {
    let mut asked = ASKED.subscribe();
    match asked.wait_for(Option::is_some).await {
        Ok(exit) => exit.unwrap_or(Exit::Interrupted),
        // The sender lives as long as the process.
        Err(_) => std::future::pending().await,
    }
}

/// Whether the verb was asked to stop.
pub(super) fn is_asked() -> Option<Exit> {
    *ASKED.borrow()
}

/// From now on this is said when the verb is stopped: what was written, and how to continue.
pub(super) fn when_stopped(what: impl Into<String>, remedy: &'static str) {
    *WRITTEN.lock().unwrap_or_else(PoisonError::into_inner) = Some(Written { what: what.into(), remedy });
}

/// From now on nothing is said.
pub(super) fn forget() {
    *WRITTEN.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

/// What is said of a verb that was stopped, where it writes something.
pub(super) fn stopped(exit: Exit) -> Option<CliError> {
    let written = WRITTEN.lock().unwrap_or_else(PoisonError::into_inner);
    written
        .as_ref()
        .map(|written| CliError::new(exit, format!("interrupted: {}", written.what), written.remedy))
}

/// The same as the failure of the verb itself.
pub(super) fn failure(exit: Exit) -> CliError {
    stopped(exit).unwrap_or_else(|| CliError::new(exit, "interrupted", ""))
}
