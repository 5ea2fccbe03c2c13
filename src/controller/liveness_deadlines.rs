// SPDX-License-Identifier: Apache-2.0
//! The deadlines of the liveness probe for the main task, the watches and each reconcile, and the heartbeats for them.

use super::Context;
use crate::cluster::{Bounded, Cache};
use crate::runtime::heartbeat::{Beat, Heartbeats};
use kube::runtime::controller::Action;
use kube::{Resource, ResourceExt};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use vdo_api::types::Later as _;

/// How often the task in which everything runs gives a sign.
const TICK: Duration = Duration::from_secs(5);
/// How long it may be without one. Nothing in it computes for more than a second or two, on a busy machine a few times that.
const BLOCKED: Duration = Duration::from_secs(60);
/// The same for a watch, which gives a sign every few seconds, whether or not anything changes.
const WATCH: Duration = Duration::from_secs(120);
/// How long one reconcile may take. Each of its requests ends within 15 seconds, the first that fails ends what depends on it, and files are read
/// within a deadline: one that takes longer hangs.
const LONGEST: Duration = Duration::from_secs(5 * 60);

/// Gives a sign of the main task for as long as it is polled there.
pub(super) async fn beat(heartbeats: &Heartbeats) {
    let mut ticks = tokio::time::interval(TICK);
    loop {
        ticks.tick().await;
        heartbeats.expect("the main task", BLOCKED);
    }
}

/// The watches of the cache give their signs, too.
pub(super) fn watches(heartbeats: &Heartbeats, cache: Arc<Cache>) {
    heartbeats.also(move || {
        let beats = cache.beats().into_iter();
        let beats = beats.map(|(watch, last)| Beat {
            name: format!("watch of {watch}"),
            due: last.later(WATCH),
        });
        beats.collect()
    });
}

/// What a reconcile of this object is called.
pub(super) fn name<K: Resource<DynamicType = ()>>(object: &K) -> String {
    format!("reconcile of {} {}", K::kind(&()), object.name_any())
}

/// Runs a reconcile, which must end in time.
pub(super) async fn within<K: Resource<DynamicType = ()>>(
    object: Arc<Bounded<K>>,
    context: Arc<Context>,
    run: impl AsyncFnOnce(Arc<K>, Arc<Context>) -> Result<Action, Infallible>,
) -> Result<Action, Infallible> {
    let Some(object) = object.object() else {
        tracing::warn!("a {} is too large to be read, so the operator ignores it", K::kind(&()));
        return Ok(Action::await_change());
    };
    let (name, heartbeats) = (name(&*object), context.heartbeats.clone());
    heartbeats.expect(&name, LONGEST);
    let done = run(object, context).await;
    heartbeats.forget(&name);
    done
}

/// Waits for a vCenter, which has deadlines of its own: one that does not answer is no reason to restart.
pub(super) async fn aside<T>(heartbeats: &Heartbeats, name: &str, waiting: impl Future<Output = T>) -> T {
    heartbeats.forget(name);
    let done = waiting.await;
    heartbeats.expect(name, LONGEST);
    done
}
