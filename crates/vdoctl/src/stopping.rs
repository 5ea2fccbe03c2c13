// SPDX-License-Identifier: Apache-2.0
//! Stops a verb after SIGINT or SIGTERM: completes a running write, lets some verbs clean up first, and reports what was written.
//! A second signal ends the verb at once.

use super::{CliError, Exit};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use vdo::cluster::Fence;
use vdo_api::types::count;

static ASKED: LazyLock<watch::Sender<Option<Exit>>> = LazyLock::new(|| watch::Sender::new(None));
static ARMED: AtomicBool = AtomicBool::new(false);
static WRITTEN: Mutex<Option<Written>> = Mutex::new(None);
/// Of the verbs that do not stop by themselves.
static FENCE: LazyLock<Fence> = LazyLock::new(Fence::default);
static KINDS: Mutex<Option<Vec<String>>> = Mutex::new(None);

/// What a verb has written so far, and how it is continued.
#[derive(Clone)]
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

/// From now on the writes of the verb are counted, and said when the verb is stopped.
pub(super) fn count_writes() {
    *KINDS.lock().unwrap_or_else(PoisonError::into_inner) = Some(Vec::new());
}

/// What the writes of the verb pass.
pub(super) fn fence() -> Fence {
    FENCE.clone()
}

/// Waits until no write is under way. From now on none begins.
pub(super) async fn settled() {
    // Longer than a request may take.
    const LONGEST: Duration = Duration::from_secs(20);
    FENCE.stop();
    FENCE.idle(LONGEST).await;
}

/// An object of this kind was written.
pub(super) fn wrote(kind: &str) {
    if let Some(kinds) = KINDS.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
        kinds.push(kind.to_owned());
    }
}

/// What is said by the writes that were counted.
fn counted() -> Option<Written> {
    let kinds = KINDS.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
    Some(match kinds.is_empty() {
        true => Written {
            what: "nothing was written".into(),
            remedy: "",
        },
        false => Written {
            what: format!("{} written ({})", count(kinds.len(), "object"), kinds.join(", ")),
            remedy: "The operator acts on everything that was written. To see the result: vdoctl status\nIf a part is missing, run the same command again.",
        },
    })
}

/// From now on nothing is said.
pub(super) fn forget() {
    *WRITTEN.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

/// What is said of a verb that was stopped, where it writes something.
pub(super) fn stopped(exit: Exit) -> Option<CliError> {
    let written = WRITTEN.lock().unwrap_or_else(PoisonError::into_inner).clone().or_else(counted)?;
    Some(CliError::new(exit, format!("interrupted: {}", written.what), written.remedy))
}

/// The same as the failure of the verb itself.
pub(super) fn failure(exit: Exit) -> CliError {
    stopped(exit).unwrap_or_else(|| CliError::new(exit, "interrupted", ""))
}
