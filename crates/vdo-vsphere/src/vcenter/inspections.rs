// SPDX-License-Identifier: Apache-2.0
//! Limits the inspections that run at the same time: one for each vCenter, 64 in the process (`Inspections::begin`).

use super::{Budget, Limits, Pool};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::Semaphore;

/// Inspections at the same time. Each costs some hundred kilobytes besides what the pool counts: TLS, a connection, a task.
const MANY: usize = 64;

/// The inspections of a process: one for each server at a time, and slow servers delay only themselves.
#[derive(Debug)]
pub struct Inspections {
    limits: Limits,
    pool: Pool,
    places: Arc<Semaphore>,
    servers: Mutex<HashMap<String, Weak<tokio::sync::Mutex<()>>>>,
}

impl Default for Inspections {
    fn default() -> Self {
        Self::new(Limits::default(), Pool::default())
    }
}

impl Inspections {
    /// With these limits for each and this memory for all.
    #[must_use]
    pub fn new(limits: Limits, pool: Pool) -> Self {
        Self {
            limits,
            pool,
            places: Arc::new(Semaphore::new(MANY)),
            servers: Mutex::default(),
        }
    }

    /// Waits until no other inspection of this server runs, and begins. The inspection ends when the last clone of its budget is dropped.
    pub async fn begin(&self, server: &str) -> Budget {
        // First the server: who waits for it takes no place from others.
        let own = self.server(&server.to_ascii_lowercase()).lock_owned().await;
        let place = self.places.clone().acquire_owned().await.ok();
        Budget::in_place(self.limits, &self.pool, place.map(|place| (own, place)))
    }

    fn server(&self, server: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = servers.get(server).and_then(Weak::upgrade) {
            return own;
        }
        servers.retain(|_, own| own.strong_count() > 0);
        let own = Arc::default();
        servers.insert(server.to_owned(), Arc::downgrade(&own));
        own
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::timeout;

    const MOMENT: Duration = Duration::from_millis(50);

    #[tokio::test]
    async fn inspection_of_one_server_waits_and_of_another_does_not() {
        let inspections = Inspections::default();
        let first = inspections.begin("VC1:443").await;
        let clone = first.clone();
        assert!(timeout(MOMENT, inspections.begin("vc1:443")).await.is_err());
        assert!(timeout(MOMENT, inspections.begin("vc2:443")).await.is_ok());
        drop(first);
        assert!(timeout(MOMENT, inspections.begin("vc1:443")).await.is_err(), "a clone still reads");
        drop(clone);
        assert!(timeout(MOMENT, inspections.begin("vc1:443")).await.is_ok());
    }

    #[tokio::test]
    async fn inspection_of_many_slow_servers_leaves_a_place() {
        let inspections = Inspections::default();
        let mut slow = vec![];
        for i in 0..MANY - 1 {
            slow.push(inspections.begin(&format!("slow{i}:443")).await);
        }
        // Those who wait for a server hold no place.
        let waiting: Vec<_> = (0..5).map(|_| Box::pin(inspections.begin("slow0:443"))).collect();
        let _ = timeout(MOMENT, futures::future::join_all(waiting)).await;
        let healthy = timeout(MOMENT, inspections.begin("healthy:443")).await.expect("a place");
        assert!(timeout(MOMENT, inspections.begin("one too many:443")).await.is_err());
        drop((slow, healthy));
        inspections.begin("later:443").await;
        assert_eq!(
            inspections.servers.lock().expect("a lock").len(),
            1,
            "servers that are gone are forgotten"
        );
    }
}
