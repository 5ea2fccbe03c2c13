//! Verbs that put things in order before they stop: a signal asks them to, and a second one ends them at once.

use super::Exit;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::watch;

static ASKED: LazyLock<watch::Sender<Option<Exit>>> = LazyLock::new(|| watch::Sender::new(None));
static ARMED: AtomicBool = AtomicBool::new(false);

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
