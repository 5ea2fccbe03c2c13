use super::read::{object, timed};
use super::{ClusterError, Fence, api};
use crate::manifest::Object;
use crate::types::{FIELD_MANAGER, ObjectId};
use kube::Client;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions, PropagationPolicy};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// What a write was, for counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Server-side apply.
    Apply,
    /// Delete.
    Delete,
    /// A change of status or metadata.
    Patch,
}

impl Verb {
    /// The verb as a metric label.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "apply",
            Self::Delete => "delete",
            Self::Patch => "patch",
        }
    }
}

/// Is told the verb and the kind of each write.
type Seen = dyn Fn(Verb, &str) + Send + Sync;

/// Every write of the project goes through here.
#[derive(Clone)]
pub struct Writer {
    client: Client,
    fence: Fence,
    seen: Arc<Seen>,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Writer")
    }
}

impl Writer {
    /// A writer that tells `seen` of each write that was made.
    pub fn new(client: Client, seen: impl Fn(Verb, &str) + Send + Sync + 'static) -> Self {
        Self {
            client,
            fence: Fence::default(),
            seen: Arc::new(seen),
        }
    }

    /// The same writer, for which no write begins while this fence is shut.
    #[must_use]
    pub fn behind(self, fence: Fence) -> Self {
        Self { fence, ..self }
    }

    /// A request that changes something, if the fence lets it pass.
    async fn send<T>(
        &self,
        verb: &str,
        api_version: &str,
        id: &ObjectId,
        request: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, ClusterError> {
        self.fence.pass(&id.to_string(), timed(verb, api_version, id, request)).await
    }

    /// Server-side apply. Without `force` no field is taken from another manager.
    ///
    /// # Errors
    /// When the API server does not accept it.
    pub async fn apply(&self, wanted: &Object, force: bool) -> Result<Object, ClusterError> {
        let id = wanted.id();
        let api = api(&self.client, wanted.api_version(), wanted.kind(), wanted.namespace());
        let mut params = PatchParams::apply(FIELD_MANAGER);
        params.force = force;
        let live = self
            .send(
                "patch",
                wanted.api_version(),
                &id,
                api.patch(wanted.name(), &params, &Patch::Apply(wanted.value())),
            )
            .await?;
        (self.seen)(Verb::Apply, id.kind());
        let live = object(live).unwrap_or_else(|| wanted.clone());
        tracing::info!(object = %id, resource_version = live.resource_version(), "applied");
        Ok(live)
    }

    /// What a server-side apply would lead to, without storing anything. Needs the right to patch, as the API server asks for
    /// it in a dry run too.
    ///
    /// # Errors
    /// When the API server would not accept it.
    pub async fn rehearse(&self, wanted: &Object) -> Result<Object, ClusterError> {
        let id = wanted.id();
        let api = api(&self.client, wanted.api_version(), wanted.kind(), wanted.namespace());
        let params = PatchParams::apply(FIELD_MANAGER).force().dry_run();
        let result = timed(
            "patch",
            wanted.api_version(),
            &id,
            api.patch(wanted.name(), &params, &Patch::Apply(wanted.value())),
        )
        .await?;
        Ok(object(result).unwrap_or_else(|| wanted.clone()))
    }

    /// Deletes exactly the instance with this UID. That it is gone already counts as done. Dependents go first, so that
    /// a workload is gone only when its pods are.
    ///
    /// # Errors
    /// When the API server does not accept it.
    pub async fn delete(&self, api_version: &str, id: &ObjectId, uid: &str) -> Result<(), ClusterError> {
        let api = api(&self.client, api_version, id.kind(), &id.namespace);
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: Some(uid.to_owned()),
                resource_version: None,
            }),
            propagation_policy: Some(PropagationPolicy::Foreground),
            ..DeleteParams::default()
        };
        match self.send("delete", api_version, id, api.delete(&id.name, &params)).await {
            Ok(_) => {
                (self.seen)(Verb::Delete, id.kind());
                tracing::info!(object = %id, uid, "deleted");
                Ok(())
            }
            Err(ClusterError::Refused { source, .. }) if matches!(source.code, 404 | 409) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Deletes an object exactly as it was seen: the same instance in the same state. Dependents go first, so that a
    /// workload is gone only when its pods are. Whether it was deleted or is gone; `false` when it is there in another state.
    ///
    /// # Errors
    /// When the API server does not accept it.
    pub async fn delete_as_seen(&self, api_version: &str, seen: &Object) -> Result<bool, ClusterError> {
        let (id, uid) = (seen.id(), seen.uid());
        let api = api(&self.client, api_version, id.kind(), &id.namespace);
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: Some(uid.to_owned()),
                resource_version: Some(seen.resource_version().to_owned()),
            }),
            propagation_policy: Some(PropagationPolicy::Foreground),
            ..DeleteParams::default()
        };
        match self.send("delete", api_version, &id, api.delete(&id.name, &params)).await {
            Ok(_) => {
                (self.seen)(Verb::Delete, id.kind());
                tracing::info!(object = %id, uid, resource_version = seen.resource_version(), "deleted");
                Ok(true)
            }
            Err(ClusterError::Refused { source, .. }) if source.code == 404 => Ok(true),
            Err(ClusterError::Refused { source, .. }) if source.code == 409 => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Merges a change into an object, or into its status.
    ///
    /// # Errors
    /// When the API server does not accept it.
    pub async fn merge(&self, api_version: &str, id: &ObjectId, change: &Value, status: bool) -> Result<Option<Object>, ClusterError> {
        let api = api(&self.client, api_version, id.kind(), &id.namespace);
        let params = PatchParams {
            field_manager: Some(FIELD_MANAGER.into()),
            ..PatchParams::default()
        };
        let patch = Patch::Merge(change);
        let live = if status {
            self.send("patch", api_version, id, api.patch_status(&id.name, &params, &patch))
                .await?
        } else {
            self.send("patch", api_version, id, api.patch(&id.name, &params, &patch)).await?
        };
        (self.seen)(Verb::Patch, id.kind());
        Ok(object(live))
    }
}
