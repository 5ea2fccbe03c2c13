// SPDX-License-Identifier: Apache-2.0
//! Reads the CRDs and objects of OpenShift that the drivers depend on; no request in other clusters (effect).

use super::cluster::holds;
use crate::cluster::{ClusterError, Reader, Select, View, Watch};
use vdo_core::drivers::CSI_DRIVER;
use vdo_core::manifest::Object;
use vdo_core::openshift::{DRIVERS, INFRASTRUCTURE, OpenShift, VERSION, WORKLOADS};

const CONFIG: &str = "infrastructures.config.openshift.io";
const STORAGE: &str = "clustercsidrivers.operator.openshift.io";
const CONSTRAINTS: &str = "securitycontextconstraints.security.openshift.io";
const VERSIONS: &str = "clusterversions.config.openshift.io";

/// The definitions by which OpenShift is known.
pub const DEFINITIONS: [&str; 3] = [CONFIG, STORAGE, CONSTRAINTS];

/// Further objects that only a cluster with these definitions is asked for, by group, resource and name, where all of one kind are named.
pub(in crate::reconcile) const OBJECTS: [(&str, &str, &[&str]); 4] = [
    ("apiextensions.k8s.io", "customresourcedefinitions", &[VERSIONS]),
    ("config.openshift.io", "infrastructures", &[INFRASTRUCTURE]),
    ("config.openshift.io", "clusterversions", &[VERSION]),
    ("operator.openshift.io", "clustercsidrivers", &[CSI_DRIVER]),
];

fn named(api_version: &str, kind: &str, name: &str) -> Watch {
    Watch::new(api_version, kind, "", Select::Name(name.to_owned()))
}

fn definition(name: &str) -> Watch {
    named("apiextensions.k8s.io/v1", "CustomResourceDefinition", name)
}

/// Looks; `None` in a cluster that is not OpenShift. A person who may not read definitions plans without: the operator decides with them.
///
/// # Errors
/// When something cannot be read.
pub(in crate::reconcile) async fn openshift(reader: &Reader) -> Result<Option<OpenShift>, ClusterError> {
    let view = match reader.load(DEFINITIONS.map(definition)).await {
        Err(ClusterError::Forbidden { .. }) if reader.cache().is_none() => return Ok(None),
        found => found?,
    };
    let served = |view: &View, name: &str| view.one(&definition(name)).is_some_and(|found| holds(&found, "Established"));
    let (config, storage, constraints) = (served(&view, CONFIG), served(&view, STORAGE), served(&view, CONSTRAINTS));
    if !config && !storage && !constraints {
        return Ok(None);
    }
    let versions = served(&reader.load([definition(VERSIONS)]).await?, VERSIONS);
    // Of a kind that is not served there is nothing.
    let each = async |served: bool, watches: Vec<Watch>| {
        if !served {
            return Ok(Vec::new());
        }
        let view = reader.load(watches.clone()).await?;
        Ok::<Vec<Object>, ClusterError>(watches.iter().flat_map(|watch| view.list(watch)).collect())
    };
    let infrastructure = each(config, vec![named("config.openshift.io/v1", "Infrastructure", INFRASTRUCTURE)]).await?;
    let version = each(versions, vec![named("config.openshift.io/v1", "ClusterVersion", VERSION)]).await?;
    let switch = each(storage, vec![named("operator.openshift.io/v1", "ClusterCSIDriver", CSI_DRIVER)]).await?;
    let csi_driver = each(storage, vec![named("storage.k8s.io/v1", "CSIDriver", CSI_DRIVER)]).await?;
    let workloads = WORKLOADS.map(|(kind, name)| named("apps/v1", kind, name));
    let mut workloads = each(storage, workloads.to_vec()).await?;
    workloads.retain(|object| object.namespace() == DRIVERS);
    Ok(Some(OpenShift {
        constraints,
        ..OpenShift::of(
            infrastructure.first(),
            version.first(),
            switch.first(),
            csi_driver.first(),
            &workloads,
        )
    }))
}
