//! What is there of OpenShift (effect). In other clusters none of its definitions is, and nothing else is asked for.

use super::cluster::holds;
use crate::cluster::{ClusterError, Reader, Select, Watch};
use std::collections::BTreeSet;
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
    let served = |name: &str| view.one(&definition(name)).is_some_and(|found| holds(&found, "Established"));
    let (config, storage, constraints) = (served(CONFIG), served(STORAGE), served(CONSTRAINTS));
    if !config && !storage && !constraints {
        return Ok(None);
    }
    let infrastructure = named("config.openshift.io/v1", "Infrastructure", INFRASTRUCTURE);
    let version = named("config.openshift.io/v1", "ClusterVersion", VERSION);
    let switch = named("operator.openshift.io/v1", "ClusterCSIDriver", CSI_DRIVER);
    let csi_driver = named("storage.k8s.io/v1", "CSIDriver", CSI_DRIVER);
    let workloads = WORKLOADS.map(|(kind, name)| named("apps/v1", kind, name));
    let mut watches = BTreeSet::from([definition(VERSIONS)]);
    watches.extend(config.then(|| infrastructure.clone()));
    if storage {
        watches.extend([switch.clone(), csi_driver.clone()]);
        watches.extend(workloads.clone());
    }
    let view = reader.load(watches).await?;
    let versions = view.one(&definition(VERSIONS)).is_some_and(|found| holds(&found, "Established"));
    let of_version = match versions {
        true => reader.load([version.clone()]).await?.one(&version),
        false => None,
    };
    let one = |served: bool, watch: &Watch| if served { view.one(watch) } else { None };
    let workloads: Vec<Object> = match storage {
        true => workloads.iter().flat_map(|watch| view.list(watch)).collect(),
        false => Vec::new(),
    };
    let workloads: Vec<Object> = workloads.into_iter().filter(|object| object.namespace() == DRIVERS).collect();
    Ok(Some(OpenShift {
        constraints,
        ..OpenShift::of(
            one(config, &infrastructure).as_ref(),
            of_version.as_ref(),
            one(storage, &switch).as_ref(),
            one(storage, &csi_driver).as_ref(),
            &workloads,
        )
    }))
}
