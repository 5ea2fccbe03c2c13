//! `doctor volumes`: why claims wait, volumes do not attach and snapshots fail.
//!
//! It only reads: lists in large pages, pods and events by field selectors, and of each vCenter the volumes that it has registered for this
//! cluster. What its user may not read is named, and everything else is still judged.

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
use vdo::reconcile::connection::{self, inputs, requirements};
use vdo::reconcile::connection_objects;
use vdo_api::api::{VDOConfig, VsphereCloudConfig};
use vdo_core::drivers::STORAGE;
use vdo_core::volumes::{Listed, Observed, findings};
use vdo_vsphere::vcenter::Budget;

const SNAPSHOTS: &str = "snapshot.storage.k8s.io/v1";

pub(super) async fn inspect(global: &Global) -> Result<VolumesView, CliError> {
    let context = super::open(global).await?;
    let mut reading = Reading {
        context: &context,
        view: VolumesView::default(),
    };
    let mut observed = reading.cluster().await?;
    if let Deployed::Config(config) = context.deployed().await? {
        let csi = config.spec.storage_provider.clone().unwrap_or_default();
        observed.features = csi.features;
        observed.registered = reading.vcenters(&config, global).await;
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

    /// The warnings about claims, volumes and pods; `None` where one of these could not be read.
    async fn events<T: DeserializeOwned + Clone>(&mut self) -> Result<Option<Vec<T>>, CliError> {
        let mut all = Vec::new();
        for kind in ["PersistentVolumeClaim", "PersistentVolume", "Pod"] {
            let selector = format!("type=Warning,involvedObject.kind={kind}");
            match self.list("v1", "Event", &selector).await? {
                Some(found) => all.extend(found),
                None => return Ok(None),
            }
        }
        Ok(Some(all))
    }

    /// The objects of a kind; `None` where this user may not read them. A kind that the API server does not serve has none.
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
            Err(error @ ClusterError::Forbidden { .. }) => {
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

    /// The volumes that the vCenters of the storage driver have registered for this cluster; `None` where one of them was not read: its
    /// volumes would seem to be missing.
    async fn vcenters(&mut self, config: &VDOConfig, global: &Global) -> Option<BTreeMap<String, Listed>> {
        let cluster_id = config.status.as_ref().and_then(|status| status.cluster_id.clone())?;
        let own = match connection_objects(&self.context.ports.reader, &global.namespace).await {
            Ok(own) => own,
            Err(error) => {
                let error = CliError::from(error);
                self.not_read("VsphereCloudConfig", error.what, error.remedy);
                return None;
            }
        };
        let names = own.iter().map(ResourceExt::name_any).collect();
        let uses = |object: &&VsphereCloudConfig| {
            let required = requirements(config, &global.namespace, &names, &object.name_any());
            required.drivers.contains(STORAGE.name)
        };
        let mut all = BTreeMap::new();
        let mut complete = false;
        for object in own.iter().filter(uses) {
            let inputs = inputs(&self.context.ports.reader, object).await;
            let budget = Budget::for_person(global.timeout);
            let name = format!("vSphere connection {}", object.name_any());
            match connection::registered_volumes(object, &inputs, (&own, now()), &cluster_id, &budget).await {
                Ok(Some(found)) => {
                    self.counted("volumes in vCenter", found.len());
                    all.extend(found.into_iter().map(|volume| {
                        let listed = Listed {
                            name: volume.name,
                            persistent_volumes: volume.persistent_volumes,
                        };
                        (volume.id, listed)
                    }));
                    complete = true;
                }
                Ok(None) => {
                    let message = "its vCenter cannot be asked with the account in its Secret".to_owned();
                    let remedy = format!("vdoctl doctor connection {} says why.", object.name_any());
                    self.not_read(&name, message, remedy);
                    return None;
                }
                Err(error) => {
                    let message = format!("its vCenter does not list volumes: {}", sentence(&error));
                    let remedy = format!("vdoctl doctor connection {} makes every check.", object.name_any());
                    self.not_read(&name, message, remedy);
                    return None;
                }
            }
        }
        complete.then_some(all)
    }
}
