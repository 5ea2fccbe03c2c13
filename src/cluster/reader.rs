// SPDX-License-Identifier: Apache-2.0
//! `Reader`: reads live objects from the watch cache (operator) or by one-shot reads (`vdoctl`), with one interface.

use super::{Cache, ClusterError, Select, Watch, read};
use kube::Client;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use vdo_api::types::{ById, ObjectId};
use vdo_core::manifest::Object;

/// How long the first list of a watch may take.
const FIRST_LIST: Duration = Duration::from_secs(15);

/// Where live objects are read: the operator keeps watches, a command reads once. What is done with the objects is the same.
#[derive(Clone)]
pub enum Reader {
    /// From watches, without a request when nothing is new.
    Watching(Arc<Cache>),
    /// By asking now.
    Once(Client),
    /// By asking now, as if these objects were there already, instead of those with their ids.
    Preview(Client, Arc<[Object]>),
}

/// Objects that have been read.
pub enum View {
    /// They stay current by themselves.
    Watching(Arc<Cache>),
    /// They are as they were when they were read.
    Once(BTreeMap<Watch, Vec<Object>>),
}

impl Reader {
    /// Reads what these watches would show.
    ///
    /// # Errors
    /// With the first request that fails.
    pub async fn load(&self, watches: impl IntoIterator<Item = Watch>) -> Result<View, ClusterError> {
        match self {
            Self::Watching(cache) => {
                cache.ensure(&watches.into_iter().collect(), FIRST_LIST).await?;
                Ok(View::Watching(cache.clone()))
            }
            Self::Once(client) => {
                let mut all = BTreeMap::new();
                for watch in watches {
                    let found = read::list(client, &watch).await?;
                    all.insert(watch, found);
                }
                Ok(View::Once(all))
            }
            Self::Preview(client, supposed) => {
                let mut all = BTreeMap::new();
                for watch in watches {
                    let found = as_if(supposed, &watch, read::list(client, &watch).await)?;
                    all.insert(watch, found);
                }
                Ok(View::Once(all))
            }
        }
    }

    /// The live objects of these ids, each with its API version. From watches, those that bear our labels, found by the watches given with them.
    ///
    /// # Errors
    /// With the first request that fails.
    pub async fn live(&self, ids: &[(&ObjectId, &str)], watches: impl IntoIterator<Item = Watch>) -> Result<ById<Object>, ClusterError> {
        match self {
            Self::Watching(cache) => {
                cache.ensure(&watches.into_iter().collect(), FIRST_LIST).await?;
                Ok(cache.all(ids.iter().map(|(id, _)| *id)))
            }
            Self::Once(client) | Self::Preview(client, _) => each(client, ids.iter().copied()).await,
        }
    }

    /// What a watch would show, asked now, whatever is in the watches.
    ///
    /// # Errors
    /// When the request fails.
    pub async fn now(&self, watch: &Watch) -> Result<Vec<Object>, ClusterError> {
        read::list_kept(self.client(), watch).await
    }

    /// What of it this operator has applied, asked now, with nothing but its metadata.
    ///
    /// # Errors
    /// When the request fails.
    pub async fn applied(&self, watch: &Watch) -> Result<Vec<Object>, ClusterError> {
        read::list_applied(self.client(), watch).await
    }

    fn client(&self) -> &Client {
        match self {
            Self::Watching(cache) => cache.client(),
            Self::Once(client) | Self::Preview(client, _) => client,
        }
    }

    /// The cache, where there is one.
    #[must_use]
    pub fn cache(&self) -> Option<&Arc<Cache>> {
        match self {
            Self::Watching(cache) => Some(cache),
            Self::Once(_) | Self::Preview(..) => None,
        }
    }
}

/// What a watch shows, with the objects that are supposed to be there. A kind that is not served yet has only these.
fn as_if(supposed: &[Object], watch: &Watch, found: Result<Vec<Object>, ClusterError>) -> Result<Vec<Object>, ClusterError> {
    let shown = |object: &Object| {
        let fits = object.api_version() == watch.api_version && object.kind() == watch.kind;
        let there = watch.namespace.is_empty() || object.namespace() == watch.namespace;
        fits && there
            && match &watch.select {
                Select::All => true,
                Select::Name(name) => object.name() == name,
                Select::Labels(_) | Select::Fields(_) => false,
                drivers @ Select::Drivers => drivers.keeps(object),
            }
    };
    let own: Vec<Object> = supposed.iter().filter(|object| shown(object)).cloned().collect();
    let mut all = match found {
        Err(ClusterError::NotServed { .. }) if !own.is_empty() => Vec::new(),
        found => found?,
    };
    all.retain(|object| own.iter().all(|own| own.identity() != object.identity()));
    all.extend(own);
    Ok(all)
}

/// Those of these objects that are there.
async fn each(client: &Client, ids: impl Iterator<Item = (&ObjectId, &str)>) -> Result<ById<Object>, ClusterError> {
    let mut live = ById::default();
    for (id, api_version) in ids {
        if let Some(object) = read::get(client, api_version, id).await? {
            live.insert(id.clone(), object);
        }
    }
    Ok(live)
}

impl View {
    /// All objects of a watch.
    #[must_use]
    pub fn list(&self, watch: &Watch) -> Vec<Object> {
        match self {
            Self::Watching(cache) => cache.list(watch),
            Self::Once(all) => all.get(watch).cloned().unwrap_or_default(),
        }
    }

    /// What `read` finds in each object of a watch. There may be thousands, and no more than one of them is whole at a time.
    pub fn each<T>(&self, watch: &Watch, read: impl FnMut(Object) -> T) -> Vec<T> {
        match self {
            Self::Watching(cache) => cache.each(watch, read),
            Self::Once(all) => all.get(watch).into_iter().flatten().cloned().map(read).collect(),
        }
    }

    /// The object of a watch by name, with our own writes seen at once.
    #[must_use]
    pub fn one(&self, watch: &Watch) -> Option<Object> {
        match self {
            Self::Watching(cache) => cache.get(&watch.id()),
            Self::Once(all) => all.get(watch)?.first().cloned(),
        }
    }
}
