// SPDX-License-Identifier: Apache-2.0
//! Every write to the API server: server-side apply, dry run, delete, merge, and the handover of field ownership.

use super::bounded_deserialize::{Arrived, MANAGED, WHOLE};
use super::read::object;
use super::request_timeout::timed;
use super::{ClusterError, Fence, api};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, Preconditions, PropagationPolicy};
use kube::client::Body;
use kube::core::{Request, Status};
use kube::{Client, Resource};
use serde_json::{Value, json};
use std::fmt;
use std::sync::Arc;
use vdo_api::types::{FIELD_MANAGER, ObjectId, from_json};
use vdo_core::manifest::{Object, handed_back, handed_over};

/// What a write was, for counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
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
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The result of a server-side dry run.
#[derive(Debug)]
pub struct DryRunResult {
    /// The object as it would be.
    pub object: Object,
    /// Whether there is no such object yet.
    pub created: bool,
    /// What it warned of.
    pub warnings: Vec<String>,
}

/// The texts of warning headers (RFC 7234): `299 - "text"`.
fn warnings<'a>(headers: impl Iterator<Item = &'a [u8]>) -> Vec<String> {
    let text = |header: &[u8]| {
        let header = String::from_utf8_lossy(header);
        let quoted = header.split_once('"')?.1.rsplit_once('"')?.0;
        Some(quoted.replace("\\\"", "\"").replace("\\\\", "\\"))
    };
    headers.filter_map(text).collect()
}

/// That an object is gone already, or is another one by now, counts as deleted.
fn deleted(result: Result<(), ClusterError>) -> Result<(), ClusterError> {
    match result {
        Err(ClusterError::Refused { source, .. }) if matches!(source.code, 404 | 409) => Ok(()),
        // Its kind is gone, and every object of it.
        Err(ClusterError::NotServed { .. }) => Ok(()),
        other => other,
    }
}

/// Workloads are deleted in the foreground: they are gone only when their pods are. Nothing else waits for the garbage collector, which learns
/// of a new kind half a minute late.
fn propagation(id: &ObjectId) -> PropagationPolicy {
    match id.group() {
        "apps" | "batch" => PropagationPolicy::Foreground,
        _ => PropagationPolicy::Background,
    }
}

fn deletion(uid: &str, resource_version: Option<&str>, policy: PropagationPolicy) -> DeleteParams {
    DeleteParams {
        preconditions: Some(Preconditions {
            uid: Some(uid.to_owned()),
            resource_version: resource_version.map(str::to_owned),
        }),
        propagation_policy: Some(policy),
        ..DeleteParams::default()
    }
}

/// Called with the verb and the kind of each write.
type Seen = dyn Fn(Verb, &str) + Send + Sync;

/// Every write of the project goes through here.
#[derive(Clone)]
pub struct Writer {
    client: Client,
    manager: &'static str,
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
            manager: FIELD_MANAGER,
            fence: Fence::default(),
            seen: Arc::new(seen),
        }
    }

    /// The same writer, for which no write begins while this fence is shut.
    #[must_use]
    pub fn behind(self, fence: Fence) -> Self {
        Self { fence, ..self }
    }

    /// The same writer under the name of another field manager.
    #[must_use]
    pub fn named(self, manager: &'static str) -> Self {
        Self { manager, ..self }
    }

    /// A request that changes something, if the fence lets it pass. The write is reported while it counts as under way: who waits for the
    /// fence to be idle knows of every write that was made.
    async fn send<T>(
        &self,
        seen: Verb,
        api_version: &str,
        id: &ObjectId,
        request: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, ClusterError> {
        let verb = match seen {
            Verb::Apply | Verb::Patch => "patch",
            Verb::Delete => "delete",
        };
        let write = async {
            let answer = timed(verb, api_version, id, request).await?;
            (self.seen)(seen, id.kind());
            Ok(answer)
        };
        self.fence.pass(&id.to_string(), write).await
    }

    /// Server-side apply. Without `force` no field is taken from another manager.
    ///
    /// # Errors
    /// When the API server does not accept it.
    pub async fn apply(&self, wanted: &Object, force: bool) -> Result<Object, ClusterError> {
        let id = wanted.id();
        let api = api::<WHOLE>(&self.client, wanted.api_version(), wanted.kind(), wanted.namespace());
        let mut params = PatchParams::apply(self.manager);
        params.force = force;
        let live = self
            .send(
                Verb::Apply,
                wanted.api_version(),
                &id,
                api.patch(wanted.name(), &params, &Patch::Apply(wanted.value())),
            )
            .await;
        let live = match live {
            Ok(live) => live,
            Err(error) => return Err(self.dated(wanted, error).await),
        };
        let live = object(live, wanted.api_version(), wanted.kind()).unwrap_or_else(|| wanted.clone());
        tracing::info!(object = %id, resource_version = live.resource_version(), "applied");
        Ok(live)
    }

    /// Lets server-side apply of ours own what installers own of this object, so that an apply takes away what is no longer wanted.
    /// Nothing but the record of field managers changes, and only in the state that was read.
    ///
    /// # Errors
    /// When the API server does not accept it.
    pub async fn hand_over(&self, wanted: &Object) -> Result<(), ClusterError> {
        let id = wanted.id();
        let mut known = self.managers(wanted.api_version(), &id).await?;
        if known.as_ref().is_some_and(|(_, entries)| entries.is_empty()) {
            // The API server keeps a record from the first apply on, in which everything of before belongs to `before-first-apply`.
            self.apply(&wanted.nameplate(), false).await?;
            known = self.managers(wanted.api_version(), &id).await?;
        }
        let Some(change) = self.handing_over(known) else {
            return Ok(());
        };
        self.merge(wanted.api_version(), &id, &change, false).await?;
        tracing::info!(object = %id, "the ownership of the fields is transferred to the operator");
        Ok(())
    }

    /// Whether the fields of this object could be handed over, without storing anything: a policy may be against the object as it is.
    ///
    /// # Errors
    /// When the API server would not accept it.
    pub async fn dry_run_hand_over(&self, wanted: &Object) -> Result<(), ClusterError> {
        let known = self.managers(wanted.api_version(), &wanted.id()).await?;
        if let Some(change) = self.handing_over(known) {
            self.dry_run_merge(wanted.api_version(), &wanted.id(), &change).await?;
        }
        Ok(())
    }

    /// The change that hands over what installers own, if they own something.
    fn handing_over(&self, known: Option<(Option<String>, Vec<Value>)>) -> Option<Value> {
        let (version, entries) = known?;
        let after = handed_over(&entries, self.manager)?;
        Some(json!({"metadata": {"resourceVersion": version, "managedFields": after}}))
    }

    /// Changes the metadata of an object that is not ours from now on, and makes `heir` the manager of the fields that we have applied, so
    /// that its next server-side apply meets no conflict. Gives the object as it is then.
    ///
    /// # Errors
    /// When the API server does not accept it.
    pub async fn hand_back(&self, api_version: &str, id: &ObjectId, metadata: Value, heir: &str) -> Result<Option<Object>, ClusterError> {
        let mut metadata = metadata;
        let known = self.managers(api_version, id).await?;
        if let Some((version, after)) = known.and_then(|(version, all)| Some((version, handed_back(&all, self.manager, heir)?))) {
            metadata["resourceVersion"] = json!(version);
            metadata["managedFields"] = after.into();
        }
        self.merge(api_version, id, &json!({"metadata": metadata}), false).await
    }

    /// The record of field managers of an object, with the resource version it was read at.
    async fn managers(&self, api_version: &str, id: &ObjectId) -> Result<Option<(Option<String>, Vec<Value>)>, ClusterError> {
        let api = api::<MANAGED>(&self.client, api_version, id.kind(), &id.namespace);
        let named = ListParams::default().fields(&format!("metadata.name={}", id.name));
        let found = timed("list", api_version, id, api.list(&named)).await?;
        Ok(found.items.into_iter().next().map(|live| {
            let version = live.meta().resource_version.clone();
            let mut live = live.into_value();
            let entries = live.pointer_mut("/metadata/managedFields").map(Value::take);
            let entries = entries.and_then(|entries| serde_json::from_value(entries).ok()).unwrap_or_default();
            (version, entries)
        }))
    }

    /// The same error with the times at which the other managers wrote, which the server does not say in a conflict.
    pub async fn dated(&self, wanted: &Object, error: ClusterError) -> ClusterError {
        let ClusterError::Conflict { id, mut fields } = error else {
            return error;
        };
        let entries = self
            .managers(wanted.api_version(), &wanted.id())
            .await
            .ok()
            .flatten()
            .map(|(_, entries)| entries)
            .unwrap_or_default();
        for field in &mut fields {
            let of_manager = entries.iter().filter(|entry| entry["manager"] == field.manager.as_str());
            field.since = of_manager.filter_map(|entry| entry["time"].as_str()).max().map(str::to_owned);
        }
        ClusterError::Conflict { id, fields }
    }

    /// What a server-side apply would lead to, without storing anything. Needs the right to patch, as the API server asks for
    /// it in a dry run too.
    ///
    /// # Errors
    /// When the API server would not accept it.
    pub async fn dry_run(&self, wanted: &Object, force: bool) -> Result<DryRunResult, ClusterError> {
        let id = wanted.id();
        let mut params = PatchParams::apply(self.manager).dry_run();
        params.force = force;
        let request = async {
            let place = Request::new(api::<WHOLE>(&self.client, wanted.api_version(), wanted.kind(), wanted.namespace()).resource_url());
            let request = place
                .patch(wanted.name(), &params, &Patch::Apply(wanted.value()))
                .map_err(kube::Error::BuildRequest)?;
            let answer = self.client.send(request.map(Body::from)).await?;
            let (code, warnings) = (
                answer.status().as_u16(),
                warnings(answer.headers().get_all("warning").iter().map(AsRef::as_ref)),
            );
            let bytes = answer.into_body().collect_bytes().await?;
            if !(200..300).contains(&code) {
                let status = from_json(&bytes).unwrap_or_else(|_| Status::failure("it gave no reason", "").with_code(code));
                return Err(kube::Error::Api(Box::new(status)));
            }
            let found: Arrived<WHOLE> = serde_json::from_slice(&bytes).map_err(kube::Error::SerdeError)?;
            Ok((found, code == 201, warnings))
        };
        let answer = timed("patch", wanted.api_version(), &id, request).await;
        let (found, created, warnings) = answer?;
        Ok(DryRunResult {
            object: object(found, wanted.api_version(), wanted.kind()).unwrap_or_else(|| wanted.clone()),
            created,
            warnings,
        })
    }

    /// Whether exactly this instance may be deleted, without deleting it.
    ///
    /// # Errors
    /// When the API server would not accept it.
    pub async fn dry_run_delete(&self, api_version: &str, id: &ObjectId, uid: &str) -> Result<(), ClusterError> {
        let params = deletion(uid, None, propagation(id)).dry_run();
        let request = async {
            let place = Request::new(api::<WHOLE>(&self.client, api_version, id.kind(), &id.namespace).resource_url());
            let mut request = place.delete(&id.name, &params).map_err(kube::Error::BuildRequest)?;
            // The body has it; the address has it too, so that an audit log shows that nothing was deleted.
            if let Ok(address) = format!("{}dryRun=All", request.uri()).parse() {
                *request.uri_mut() = address;
            }
            self.client.request_text(request).await
        };
        deleted(timed("delete", api_version, id, request).await.map(drop))
    }

    /// Deletes an object exactly as it was seen: the same instance in the same state. With `keep_dependents` its pods stay.
    /// Whether it was deleted or is gone; `false` when it is there in another state.
    ///
    /// # Errors
    /// When the API server does not accept it.
    pub async fn delete_as_seen(&self, api_version: &str, seen: &Object, keep_dependents: bool) -> Result<bool, ClusterError> {
        let (id, uid) = (seen.id(), seen.uid());
        let api = api::<WHOLE>(&self.client, api_version, id.kind(), &id.namespace);
        let policy = match keep_dependents {
            true => PropagationPolicy::Orphan,
            false => propagation(&id),
        };
        let params = deletion(uid, Some(seen.resource_version()), policy);
        match self.send(Verb::Delete, api_version, &id, api.delete(&id.name, &params)).await {
            Ok(_) => {
                tracing::info!(object = %id, uid, resource_version = seen.resource_version(), "deleted");
                Ok(true)
            }
            Err(ClusterError::Refused { source, .. }) if source.code == 404 => Ok(true),
            // Its kind is gone, and every object of it.
            Err(ClusterError::NotServed { .. }) => Ok(true),
            Err(ClusterError::Refused { source, .. }) if source.code == 409 => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// What a merge would lead to, without storing anything. A field that its definition does not know is refused.
    ///
    /// # Errors
    /// When the API server would not accept it.
    pub async fn dry_run_merge(&self, api_version: &str, id: &ObjectId, change: &Value) -> Result<Option<Object>, ClusterError> {
        let api = api::<WHOLE>(&self.client, api_version, id.kind(), &id.namespace);
        let params = PatchParams {
            field_manager: Some(self.manager.into()),
            dry_run: true,
            ..PatchParams::default()
        };
        let params = params.validation_strict();
        let patch = Patch::Merge(change);
        let request = api.patch(&id.name, &params, &patch);
        let found = timed("patch", api_version, id, request).await?;
        Ok(object(found, api_version, id.kind()))
    }

    /// Merges a change into an object, or into its status.
    ///
    /// # Errors
    /// When the API server does not accept it.
    pub async fn merge(&self, api_version: &str, id: &ObjectId, change: &Value, status: bool) -> Result<Option<Object>, ClusterError> {
        let api = api::<WHOLE>(&self.client, api_version, id.kind(), &id.namespace);
        let params = PatchParams {
            field_manager: Some(self.manager.into()),
            ..PatchParams::default()
        };
        let patch = Patch::Merge(change);
        let live = if status {
            self.send(Verb::Patch, api_version, id, api.patch_status(&id.name, &params, &patch))
                .await?
        } else {
            self.send(Verb::Patch, api_version, id, api.patch(&id.name, &params, &patch))
                .await?
        };
        Ok(object(live, api_version, id.kind()))
    }
}

#[cfg(test)]
mod tests {
    use super::{propagation, warnings};
    use kube::api::PropagationPolicy;
    use vdo_api::types::ObjectId;

    #[test]
    fn workloads_are_gone_with_their_pods_and_nothing_else_waits() {
        for (group, kind, expected) in [
            ("apps", "DaemonSet", PropagationPolicy::Foreground),
            ("batch", "Job", PropagationPolicy::Foreground),
            ("", "ConfigMap", PropagationPolicy::Background),
            ("vdo.vmware.com", "VsphereCloudConfig", PropagationPolicy::Background),
        ] {
            assert_eq!(propagation(&ObjectId::new(group, kind, "n", "a")), expected, "{kind}");
        }
    }

    #[test]
    fn api_warning_headers_are_parsed() {
        let headers = [
            br#"299 - "would violate PodSecurity \"restricted:latest\": x""#.as_slice(),
            b"299 - broken",
        ];
        assert_eq!(
            warnings(headers.into_iter()),
            [r#"would violate PodSecurity "restricted:latest": x"#]
        );
    }
}
