// SPDX-License-Identifier: Apache-2.0
//! `vdoctl doctor volumes`: reads claims, volumes, snapshots, pods, events and the vCenters' volumes for the diagnosis.
//!
//! It only reads: lists in large pages, pods and events by field selectors, and of each vCenter the volumes that it has registered for
//! this cluster. Kinds that its user may not read are reported, and everything else is still diagnosed.

mod screen;

use super::super::args::{Format, Global};
use super::super::context::{Context, Deployed, now};
use super::super::error::sentence;
use super::super::views::volumes::{NotReadView, ReadView, VolumesView};
use super::super::{Answer, CliError, Exit};
use kube::ResourceExt;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use vdo::cluster::{ClusterError, list_as};
use vdo::reconcile::connection::{self, Inputs, Stored, inputs, requirements};
use vdo::reconcile::connection_objects;
use vdo_api::api::{VDOConfig, VsphereCloudConfig};
use vdo_core::drivers::{STORAGE, feature_states};
use vdo_core::volume_diagnosis::{Listed, Observed, Reached, findings, machines, needs_datastores};
use vdo_vsphere::vcenter::Budget;
use vdo_vsphere::vsphere::RegisteredVolume;

const SNAPSHOTS: &str = "snapshot.storage.k8s.io/v1";

pub(super) async fn inspect(global: &Global) -> Result<VolumesView, CliError> {
    let context = super::open(global).await?;
    let mut reading = Reading {
        context: &context,
        view: VolumesView::default(),
    };
    let mut observed = reading.cluster().await?;
    match context.find_config().await {
        Ok(Deployed::Config(config)) => {
            observed.features = feature_states(&config);
            reading.vsphere(&config, global, &mut observed).await;
        }
        Ok(_) => {}
        Err(error) => reading.not_read("VDOConfig", error.what, error.remedy),
    }
    let mut view = reading.view;
    view.findings = findings(&observed);
    view.faults = view.findings.iter().filter(|finding| finding.is_fault).count();
    Ok(view)
}

/// The screen or the document, and 1 where something has to be done.
pub(super) fn answer(view: &VolumesView, format: Format) -> Result<Answer, CliError> {
    let answer = Answer::view(format, view, || screen::text(view, format == Format::Wide))?;
    Ok(answer.exit(if view.faults > 0 { Exit::Differences } else { Exit::Ok }))
}

/// What has been read so far, and what could not be.
struct Reading<'a> {
    context: &'a Context,
    view: VolumesView,
}

impl Reading<'_> {
    async fn cluster(&mut self) -> Result<Observed, CliError> {
        Ok(Observed {
            now: now(),
            claims: self.list("v1", "PersistentVolumeClaim", "").await?,
            volumes: self.list("v1", "PersistentVolume", "").await?,
            classes: self.list("storage.k8s.io/v1", "StorageClass", "").await?,
            attachments: self.list("storage.k8s.io/v1", "VolumeAttachment", "").await?,
            csi_nodes: self.list("storage.k8s.io/v1", "CSINode", "").await?,
            nodes: self.list("v1", "Node", "").await?,
            drivers: self.list("storage.k8s.io/v1", "CSIDriver", "").await?,
            pods: self.list("v1", "Pod", "status.phase=Pending").await?,
            events: self.events().await?,
            snapshots: self.list(SNAPSHOTS, "VolumeSnapshot", "").await?,
            snapshot_classes: self.list(SNAPSHOTS, "VolumeSnapshotClass", "").await?,
            quotas: self.list("v1", "ResourceQuota", "").await?,
            ..Observed::default()
        })
    }

    /// The warnings about claims, volumes, pods and StatefulSets that get no claim; `None` where one of these could not be read.
    async fn events<T: DeserializeOwned + Clone>(&mut self) -> Result<Option<Vec<T>>, CliError> {
        let mut all = Vec::new();
        for about in [
            "involvedObject.kind=PersistentVolumeClaim",
            "involvedObject.kind=PersistentVolume",
            "involvedObject.kind=Pod",
            "involvedObject.kind=StatefulSet,reason=FailedCreate",
        ] {
            match self.list("v1", "Event", &format!("type=Warning,{about}")).await? {
                Some(found) => all.extend(found),
                None => return Ok(None),
            }
        }
        Ok(Some(all))
    }

    /// The objects of a kind; `None` where this user may not read them, or the list has no end. A kind that the API server does not serve has none.
    async fn list<T: DeserializeOwned + Clone>(
        &mut self,
        api_version: &str,
        kind: &str,
        selector: &str,
    ) -> Result<Option<Vec<T>>, CliError> {
        match list_as::<T>(&self.context.ports.client, api_version, kind, selector).await {
            Ok(found) => {
                self.counted(kind, found.len());
                Ok(Some(found))
            }
            Err(ClusterError::NotServed { .. }) => Ok(Some(Vec::new())),
            Err(error @ (ClusterError::Forbidden { .. } | ClusterError::Unfinished { .. })) => {
                let error = CliError::cluster(&error);
                self.not_read(kind, error.what, error.remedy);
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn counted(&mut self, kind: &str, count: usize) {
        match self.view.read.iter_mut().find(|read| read.kind == kind) {
            Some(read) => read.count += count,
            None => self.view.read.push(ReadView {
                kind: kind.to_owned(),
                count,
            }),
        }
    }

    fn not_read(&mut self, what: &str, message: String, remedy: String) {
        let what = what.to_owned();
        self.view.not_read.push(NotReadView { what, message, remedy });
    }

    /// What the connections and their vCenters have of volumes and machines. Volumes are not compared where one of the vCenters was not
    /// read: its volumes would seem to be missing.
    async fn vsphere(&mut self, config: &VDOConfig, global: &Global, observed: &mut Observed) {
        let own = match connection_objects(&self.context.ports.reader, &global.namespace).await {
            Ok(own) => own,
            Err(error) => {
                let error = CliError::from(error);
                return self.not_read("VsphereCloudConfig", error.what, error.remedy);
            }
        };
        observed.machines = machines(&own);
        let Some(cluster_id) = config.status.as_ref().and_then(|status| status.cluster_id.clone()) else {
            return;
        };
        let names = own.iter().map(ResourceExt::name_any).collect();
        let uses = |object: &&VsphereCloudConfig| {
            let required = requirements(config, &global.namespace, &names, &object.name_any());
            required.drivers.contains(STORAGE.name)
        };
        let question = Question {
            own: &own,
            cluster_id: &cluster_id,
            with_datastores: needs_datastores(observed),
        };
        let (mut registered, mut reached) = (None, None::<Vec<Reached>>);
        for object in own.iter().filter(uses) {
            let Some(found) = self.vcenter(object, &question, global).await else {
                return;
            };
            self.counted("volumes in vCenter", found.volumes.len());
            registered
                .get_or_insert_with(BTreeMap::new)
                .extend(found.volumes.into_iter().map(listed));
            let datastores = found
                .datastores
                .map(|all| all.into_iter().map(|(datastore, hosts)| Reached { datastore, hosts }));
            reached = datastores.map(|all| reached.unwrap_or_default().into_iter().chain(all).collect::<Vec<_>>());
        }
        observed.cluster_id = cluster_id;
        (observed.registered, observed.reached) = (registered, reached);
    }

    /// What one vCenter has; `None`, with the reason noted, where it was not read.
    async fn vcenter(&mut self, object: &VsphereCloudConfig, question: &Question<'_>, global: &Global) -> Option<Stored> {
        let name = object.name_any();
        let what = format!("vSphere connection {name}");
        let inputs = match inputs(&self.context.ports.reader, object).await {
            Inputs { trust: Err(error), .. }
            | Inputs {
                credentials: Err(error), ..
            } => {
                let error = CliError::from(error);
                self.not_read(&what, error.what, error.remedy);
                return None;
            }
            inputs => inputs,
        };
        let budget = Budget::for_person(global.timeout);
        let asked = (question.cluster_id, question.with_datastores);
        let (message, remedy) = match connection::stored_volumes(object, &inputs, (question.own, now()), asked, &budget).await {
            Ok(Some(found)) => return Some(found),
            Ok(None) => (
                "the vCenter of this connection cannot be read with the account in the connection's Secret".to_owned(),
                "shows the cause",
            ),
            Err(error) => (
                format!(
                    "the vCenter of this connection does not list container volumes (CNS): {}",
                    sentence(&error)
                ),
                "runs every check. The service vsan-health provides the list, in vCenter 6.7 Update 3 or newer",
            ),
        };
        self.not_read(&what, message, format!("vdoctl doctor connection {name} {remedy}."));
        None
    }
}

/// What is asked of each vCenter.
struct Question<'a> {
    /// All connections, of which the status says whether a login may be made.
    own: &'a [VsphereCloudConfig],
    cluster_id: &'a str,
    with_datastores: bool,
}

fn listed(volume: RegisteredVolume) -> (String, Listed) {
    let listed = Listed {
        name: volume.name,
        mebibytes: volume.mebibytes,
        persistent_volumes: volume.persistent_volumes,
    };
    (volume.id, listed)
}
