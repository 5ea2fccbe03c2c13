// SPDX-License-Identifier: Apache-2.0
//! Records Kubernetes events, at most one for the same object and reason in five minutes.

use super::Context;
use crate::cluster::ClusterError;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use vdo_api::api::chain;
use vdo_api::types::ObjectId;
use vdo_core::status::Note;

/// Records an event for each of these.
pub(super) async fn record_all(context: &Context, reference: &ObjectReference, notes: impl IntoIterator<Item = Note>) {
    for note in notes {
        record(context, reference, &note, None).await;
    }
}

/// Records an event, unless another operator leads. That an event could not be recorded never fails anything.
pub(super) async fn record(context: &Context, reference: &ObjectReference, note: &Note, related: Option<ObjectReference>) {
    if !context.fence.is_open() {
        return;
    }
    match context.recorder.record(reference, note, related).await {
        Recorded::Published => context.metrics.event("published"),
        Recorded::Held => context.metrics.event("held"),
        Recorded::Failed => {}
    }
}

/// How long the same event is not published again. Less than the six minutes after which another series would begin.
const PAUSE: Duration = Duration::from_secs(300);

/// More than a message needs, less than the API server takes.
const LONGEST: usize = 1000;

/// Object, reason and action, whether it is a warning, and the related object.
type Series = (
    String,
    (String, String),
    bool,
    Option<(Option<String>, Option<String>, Option<String>)>,
);

/// What became of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// The API server has it.
    Published,
    /// The same was reported a moment ago.
    Held,
    /// The API server does not take it. Nothing depends on it.
    Failed,
}

/// Records events.
pub struct EventRecorder {
    recorder: Recorder,
    said: Mutex<HashMap<Series, Instant>>,
    /// Whether the last one failed, and that was logged.
    failing: AtomicBool,
}

impl EventRecorder {
    /// Records in the name of the operator.
    #[must_use]
    pub fn new(client: Client) -> Self {
        let reporter = Reporter {
            controller: "vdo-operator".into(),
            instance: None,
        };
        Self {
            recorder: Recorder::new(client, reporter),
            said: Mutex::default(),
            failing: AtomicBool::new(false),
        }
    }

    /// Records an event for an object, and for one that it is related to, unless the same was reported within five minutes.
    pub async fn record(&self, reference: &ObjectReference, note: &Note, related: Option<ObjectReference>) -> Recorded {
        let other = related.as_ref().map(|r| (r.kind.clone(), r.namespace.clone(), r.name.clone()));
        let what = (note.reason.clone(), note.action.clone());
        let series = (reference.uid.clone().unwrap_or_default(), what, note.warning, other);
        if !self.is_new(&series, Instant::now()) {
            return Recorded::Held;
        }
        let event = Event {
            type_: if note.warning { EventType::Warning } else { EventType::Normal },
            reason: note.reason.clone(),
            note: Some(note.message.chars().take(LONGEST).collect()),
            action: note.action.clone(),
            secondary: related,
        };
        match self.recorder.publish(&event, reference).await {
            Ok(()) => {
                self.failing.store(false, Ordering::Relaxed);
                Recorded::Published
            }
            Err(error) => {
                let id = ObjectId::new("events.k8s.io", "Event", reference.namespace.clone().unwrap_or_default(), "");
                let error = ClusterError::of("create", "events.k8s.io/v1", &id, error);
                // Logged once: nothing depends on events, and they may be many.
                if self.failing.swap(true, Ordering::Relaxed) {
                    tracing::debug!(error = %chain(&error), "an event could not be recorded");
                } else {
                    tracing::warn!(error = %chain(&error), "events cannot be recorded");
                }
                self.said.lock().unwrap_or_else(PoisonError::into_inner).remove(&series);
                Recorded::Failed
            }
        }
    }

    fn is_new(&self, series: &Series, now: Instant) -> bool {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        said.retain(|_, at| now.saturating_duration_since(*at) < PAUSE);
        if said.contains_key(series) {
            return false;
        }
        let (uid, _, warning, related) = series;
        if *warning && related.is_none() {
            // After a warning it is news that all is well again.
            said.retain(|(other, _, warned, _), _| other != uid || *warned);
        }
        said.insert(series.clone(), now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn event_of_recovery_is_published_again_after_a_warning() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let config = kube::Config::new("http://127.0.0.1:1".parse().expect("an address"));
        let recorder = EventRecorder::new(Client::try_from(config).expect("a client"));
        let start = Instant::now();
        let series = |reason: &str, warning| ("uid".to_owned(), (reason.to_owned(), "Reconcile".to_owned()), warning, None);
        for (second, reason, warning, expected) in [
            (0, "Healthy", false, true),
            (1, "Healthy", false, false),
            (2, "PodsFailing", true, true),
            (3, "Healthy", false, true),
            // Nothing flaps more often than that.
            (4, "PodsFailing", true, false),
            (5, "Healthy", false, false),
            (303, "PodsFailing", true, true),
            (304, "Healthy", false, true),
        ] {
            let new = recorder.is_new(&series(reason, warning), start + Duration::from_secs(second));
            assert_eq!(new, expected, "{reason} after {second} s");
        }
    }
}
