// SPDX-License-Identifier: Apache-2.0
//! The watch cache: starts and ends watches, and serves live objects from memory, corrected by the operator's own writes.

mod backoff;
mod beats;
mod cached_object;
mod events;
mod in_sync;
mod memory_limits;
mod own_writes;
mod transform;

pub use in_sync::InSync;
pub use own_writes::version_number;

use super::bounded_deserialize::for_kind;
use super::read::PAGE;
use super::watch::{Select, Watch, covers};
use super::{ClusterError, api, rights};
use backoff::WatchBackoff;
use cached_object::CachedObject;
use events::{Content, take_in};
use futures::StreamExt;
use kube::Client;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher;
use memory_limits::Rooms;
use own_writes::{Gone, Written, corrected, version};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use transform::trim;
use vdo_api::types::{ById, Later as _, ObjectId};
use vdo_core::manifest::Object;

struct Running {
    /// That of its watch.
    id: ObjectId,
    content: Arc<Mutex<Content>>,
    /// When its task last gave a sign of life.
    beat: Arc<Mutex<Instant>>,
    task: JoinHandle<()>,
    /// When it was last asked for.
    asked: Instant,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// How long a refusal counts. A refused watch is retried at least every twenty seconds, and gives no sign when it is allowed.
const REFUSED: Duration = Duration::from_secs(25);

/// How long an answer counts that something still uses an object which is to be deleted.
const HELD: Duration = Duration::from_secs(60);

/// Live objects as the watches show them, corrected by our own writes.
///
/// # Guarantees
/// * A write of ours is visible at once, and no older state is shown after it.
/// * While a watch is being restarted, the last complete state is served.
/// * Everything in here may be lost at any instant without harm.
pub struct Cache {
    client: Client,
    watches: Mutex<BTreeMap<Watch, Running>>,
    written: Mutex<HashMap<ObjectId, Written>>,
    gone: Arc<Mutex<Gone>>,
    in_sync: InSync,
    rooms: Rooms,
    held: Mutex<HashMap<String, (String, Instant)>>,
    changed: watch::Sender<()>,
    arrived: Arc<Notify>,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Cache {
    /// For what is asked besides the watches.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// An empty cache; `changed` is sent to whenever an object in it changes in a way that matters.
    #[must_use]
    pub fn new(client: Client, changed: watch::Sender<()>) -> Self {
        Self {
            client,
            watches: Mutex::default(),
            written: Mutex::default(),
            gone: Arc::default(),
            in_sync: InSync::default(),
            rooms: Rooms::default(),
            held: Mutex::default(),
            changed,
            arrived: Arc::default(),
        }
    }

    /// Starts watches that do not run yet and waits until each has its first complete list.
    ///
    /// # Errors
    /// With the error of the first watch that cannot be started, or when the deadline passes.
    pub async fn ensure(&self, wanted: &BTreeSet<Watch>, deadline: Duration) -> Result<(), ClusterError> {
        {
            let mut watches = lock(&self.watches);
            for watch in wanted {
                let running = watches.entry(watch.clone()).or_insert_with(|| self.start(watch));
                running.asked = Instant::now();
            }
        }
        let end = Instant::now().later(deadline);
        for watch in wanted {
            loop {
                let arrived = self.arrived.notified();
                tokio::pin!(arrived);
                arrived.as_mut().enable();
                if let Some(result) = self.state(watch) {
                    if result.is_err() && self.is_let_in(watch).await {
                        continue;
                    }
                    result?;
                    break;
                }
                let left = end.saturating_duration_since(Instant::now());
                if left.is_zero() || tokio::time::timeout(left, arrived).await.is_err() {
                    return Err(ClusterError::TimedOut {
                        verb: "watch".into(),
                        what: watch.id().to_string(),
                        after: deadline,
                    });
                }
            }
        }
        Ok(())
    }

    /// Ends the watches that were not asked for during this time: what they show is no longer used, so it need not wake anything. The next
    /// request for one of them waits for a new first list.
    pub fn sweep(&self, idle: Duration) {
        lock(&self.watches).retain(|watch, running| {
            let wanted = running.asked.elapsed() <= idle;
            if !wanted {
                tracing::debug!(watch = %watch.id(), "a watch that is no longer used is ended");
            }
            wanted
        });
    }

    /// `None` while the first list is not there yet. An error is handed out once; the watch tries again by itself. A watch that
    /// has become a picture of the past because a right is missing is an error too; an outage is not.
    fn state(&self, watch: &Watch) -> Option<Result<(), ClusterError>> {
        let watches = lock(&self.watches);
        let mut content = lock(&watches.get(watch)?.content);
        let refused = content.refused.as_ref().filter(|(at, _)| at.elapsed() < REFUSED);
        if let Some(error) = refused.and_then(|(_, error)| error.repeated()) {
            return Some(Err(error));
        }
        if content.synced {
            return Some(Ok(()));
        }
        content.error.take().map(Err)
    }

    /// Whether a watch that was refused is known to be allowed by now. It says nothing itself when it is let in, and an API server that
    /// has just started refuses what it does not know to be allowed yet.
    async fn is_let_in(&self, watch: &Watch) -> bool {
        let content = lock(&self.watches).get(watch).map(|running| running.content.clone());
        let Some(content) = content.filter(|content| lock(content).refused.is_some()) else {
            return false;
        };
        let Ok(own) = rights(&self.client, &watch.namespace).await else {
            return false;
        };
        let allowed = ["list", "watch"]
            .iter()
            .all(|verb| own.grants(verb, &watch.api_version, &watch.id()));
        if allowed {
            lock(&content).refused = None;
        }
        allowed
    }

    /// A watch, of whose objects no more is read than is kept of their kind.
    fn start(&self, watch: &Watch) -> Running {
        for_kind!(&watch.kind, FIELDS => self.run::<FIELDS>(watch))
    }

    fn run<const FIELDS: usize>(&self, watch: &Watch) -> Running {
        let content: Arc<Mutex<Content>> = Arc::default();
        let config = match &watch.select {
            Select::All | Select::Drivers => watcher::Config::default(),
            Select::Labels(selector) => watcher::Config::default().labels(selector),
            Select::Fields(selector) => watcher::Config::default().fields(selector),
            Select::Name(name) => watcher::Config::default().fields(&format!("metadata.name={name}")),
        };
        let config = config.page_size(PAGE);
        let api = api::<FIELDS>(&self.client, &watch.api_version, &watch.kind, &watch.namespace);
        let (changed, arrived, state, watch) = (self.changed.clone(), self.arrived.clone(), content.clone(), watch.clone());
        let (gone, room) = (self.gone.clone(), self.rooms.of(&watch));
        let id = watch.id();
        let beat = Arc::new(Mutex::new(Instant::now()));
        let sign = beat.clone();
        let task = tokio::spawn(async move {
            let mut events = watcher::watcher(api, config).backoff(WatchBackoff::default()).boxed();
            let mut ticks = beats::ticks();
            loop {
                tokio::select! {
                    event = events.next() => {
                        let Some(event) = event else { return };
                        let matters = take_in(&mut lock(&state), &gone, (&watch, &room), event);
                        arrived.notify_waiters();
                        if matters {
                            changed.send_replace(());
                        }
                    }
                    _ = ticks.tick() => {}
                }
                *lock(&sign) = Instant::now();
            }
        });
        Running {
            id,
            content,
            beat,
            task,
            asked: Instant::now(),
        }
    }

    /// An object by its id, if any watch shows it or we have just written it.
    #[must_use]
    pub fn get(&self, id: &ObjectId) -> Option<Object> {
        self.all([id]).swap_remove(id)
    }

    /// The objects of these ids: thousands of them, looked for at once. Where several watches show one, the newest state counts: one watch
    /// may be behind another.
    #[must_use]
    pub fn all<'a>(&self, ids: impl IntoIterator<Item = &'a ObjectId>) -> ById<Object> {
        let watches = lock(&self.watches);
        let contents: Vec<_> = watches.values().map(|running| (&running.id, lock(&running.content))).collect();
        let (mut written, gone) = (lock(&self.written), lock(&self.gone));
        let mut found = ById::default();
        for id in ids {
            let covering = contents.iter().filter(|(own, _)| covers(own, id));
            let shown = covering
                .filter_map(|(_, content)| content.objects.get(id)?.object())
                .max_by_key(version);
            if let Some(object) = corrected(&mut written, &gone, id, shown) {
                found.insert(id.clone(), object);
            }
        }
        found
    }

    /// All objects that a watch shows, in the order of their ids.
    #[must_use]
    pub fn list(&self, watch: &Watch) -> Vec<Object> {
        self.each(watch, |object| object)
    }

    /// What `read` finds in each object that a watch shows, in the order of their ids.
    pub fn each<T>(&self, watch: &Watch, read: impl FnMut(Object) -> T) -> Vec<T> {
        let watches = lock(&self.watches);
        let Some(running) = watches.get(watch) else { return Vec::new() };
        let content = lock(&running.content);
        content.objects.values().filter_map(CachedObject::object).map(read).collect()
    }

    /// Remembers the answer to an apply.
    pub fn applied(&self, wanted: &Object, live: &Object) {
        self.in_sync.answered(wanted, live);
        self.wrote(live);
    }

    /// Which live objects are in sync.
    #[must_use]
    pub fn in_sync(&self) -> &InSync {
        &self.in_sync
    }

    /// Remembers the answer to any other write.
    pub fn wrote(&self, live: &Object) {
        let written = Written {
            version: version(live),
            object: trim(live).unwrap_or_else(|| live.clone()),
            deleted: false,
            at: Instant::now(),
        };
        lock(&self.written).insert(live.id(), written);
    }

    /// What holds the object of this UID, if that was found out a short while ago.
    #[must_use]
    pub fn holder(&self, uid: &str) -> Option<String> {
        let held = lock(&self.held);
        let (holder, at) = held.get(uid)?;
        (at.elapsed() < HELD).then(|| holder.clone())
    }

    /// Remembers what holds the object of this UID.
    pub fn held_by(&self, uid: &str, holder: &str) {
        let mut held = lock(&self.held);
        held.retain(|_, (_, at)| at.elapsed() < HELD);
        held.insert(uid.to_owned(), (holder.to_owned(), Instant::now()));
    }

    /// Remembers a delete.
    pub fn deleted(&self, id: &ObjectId) {
        let Some(last) = self.get(id) else { return };
        let mut value = last.value().clone();
        value["metadata"]["deletionTimestamp"] = "pending".into();
        if let Ok(object) = Object::new(value) {
            lock(&self.written).insert(
                id.clone(),
                Written {
                    version: version(&last) + 1,
                    object,
                    deleted: true,
                    at: Instant::now(),
                },
            );
        }
    }
}
