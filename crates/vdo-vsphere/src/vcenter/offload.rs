// SPDX-License-Identifier: Apache-2.0
//! Parses answers on separate threads, so that slow parsing does not block other tasks, and stops when the caller no longer waits.

use super::Endpoint;
use super::inspection_limits::{Budget, Held, refused};
use crate::vsphere::{Excess, ProbeError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use vdo_api::types::plain;

/// Why an answer was not read to its end.
#[derive(Debug, PartialEq, Eq)]
pub enum Unread {
    /// It cannot be understood: a phrase for people.
    Malformed(String),
    /// It is too much.
    Excess(Excess),
    /// No caller waits for it any more.
    Abandoned,
}

impl Unread {
    /// The same as an error of the connection.
    pub fn of(self, endpoint: &Endpoint) -> ProbeError {
        let because = match self {
            Self::Excess(excess) => return refused(endpoint, excess),
            Self::Malformed(because) => because,
            Self::Abandoned => "its caller no longer waits for it".to_owned(),
        };
        ProbeError::Malformed {
            address: endpoint.address(),
            because,
        }
    }
}

impl From<String> for Unread {
    fn from(because: String) -> Self {
        Self::Malformed(because)
    }
}

impl From<&str> for Unread {
    fn from(because: &str) -> Self {
        Self::Malformed(because.to_owned())
    }
}

impl From<Excess> for Unread {
    fn from(excess: Excess) -> Self {
        Self::Excess(excess)
    }
}

/// What the work may take, and whether anyone still waits for it.
#[derive(Debug, Clone)]
pub struct Work {
    /// What is left to take.
    pub budget: Budget,
    abandoned: Arc<AtomicBool>,
}

impl Work {
    /// To be asked every some thousand steps.
    pub fn go_on(&self) -> Result<(), Unread> {
        if self.abandoned.load(Ordering::Relaxed) {
            return Err(Unread::Abandoned);
        }
        Ok(self.budget.go_on()?)
    }

    /// Memory for as long as it is needed.
    pub fn hold(&self) -> Held {
        self.budget.hold()
    }

    /// Work that a caller waits for.
    pub fn with(budget: Budget) -> Self {
        Self {
            budget,
            abandoned: Arc::default(),
        }
    }
}

/// Tells the work that no caller waits for it.
struct Waiting(Arc<AtomicBool>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Works on a thread of its own. When this is dropped, the work ends by itself at its next step.
pub async fn offload<T: Send + 'static>(
    endpoint: &Endpoint,
    budget: &Budget,
    work: impl FnOnce(&Work) -> Result<T, Unread> + Send + 'static,
) -> Result<T, ProbeError> {
    let waiting = Waiting(Arc::default());
    let given = Work {
        budget: budget.clone(),
        abandoned: waiting.0.clone(),
    };
    let done = tokio::task::spawn_blocking(move || work(&given)).await;
    let failed = |error: tokio::task::JoinError| Err(Unread::Malformed(plain(&error.to_string())));
    done.unwrap_or_else(failed).map_err(|unread| unread.of(endpoint))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    #[tokio::test]
    async fn offload_no_one_waits_ends_work() {
        let endpoint = Endpoint {
            server: "vc".into(),
            port: 443,
            trust: vdo_api::types::Trust::Insecure,
        };
        let (reported, hear) = mpsc::channel();
        let budget = Budget::default();
        let endless = offload(&endpoint, &budget, move |work| {
            let end = loop {
                if let Err(end) = work.go_on() {
                    break end;
                }
                std::thread::sleep(Duration::from_millis(1));
            };
            reported.send(end).map_err(|_| "the test is gone")?;
            Ok(())
        });
        assert!(tokio::time::timeout(Duration::from_millis(20), endless).await.is_err());
        assert_eq!(hear.recv_timeout(Duration::from_secs(10)), Ok(Unread::Abandoned));
    }
}
