// SPDX-License-Identifier: Apache-2.0
//! The cloud provider (CPI) in the driver table: how its pods are recognised, its chart values, and its ConfigMap and Secret.

use super::setup::secret;
use super::{Driver, Material, OnNodes, Request, Setter, Setup, SetupError, Uses};
use crate::driverconfig::cpi as config;
use crate::driverconfig::node_addresses::NodeAddresses;
use crate::installed::{self, Evidence, Image};
use crate::manifest::Object;
use serde_json::{Map, Value, json};
use vdo_api::api::{CREDENTIALS_ANNOTATION, ConditionType, IpFamily, NodeNetwork, Reason, VDOConfigSpec};
use vdo_api::types::DriverRole;

/// Its name in the matrix.
pub const CPI: &str = "vsphere-cpi";

const NAMESPACE: &str = "kube-system";
const SECRET: &str = "vsphere-cloud-secret";
const CONFIG: &str = "vsphere-cloud-config";

pub(super) const DRIVER: Driver = Driver {
    name: CPI,
    short: "CPI",
    what: "the cloud provider",
    role: DriverRole::CloudProvider,
    field: "cloudProvider",
    condition: ConditionType::CloudProviderReady,
    csi_driver: None,
    places: &[
        ("v1", "ConfigMap", NAMESPACE),
        ("v1", "ServiceAccount", NAMESPACE),
        ("apps/v1", "DaemonSet", NAMESPACE),
    ],
    namespace: NAMESPACE,
    written: &[("Secret", SECRET), ("ConfigMap", CONFIG)],
    workloads: &["vsphere-cloud-controller-manager"],
    is_image,
    runs,
    on_nodes: OnNodes {
        waits_for: |node, _| node.lacks(),
        by_pods: false,
        reason: Reason::WaitingForNodes,
        done: "initialised by the cloud provider",
        count: |nodes| nodes.initialized,
    },
    request,
    values,
    ignored: |_, _| Vec::new(),
    write,
};

/// Its image bears the name of the project or of the program, and has none of the CSI driver's.
fn is_image(image: &Image<'_>) -> bool {
    let named = |name: &str| image.path.contains(name);
    let program = named("cloud-provider-vsphere") || named("vsphere-cloud-controller-manager") || named("vsphere") && image.has_word("cpi");
    program && !image.has_word("csi")
}

/// Its program, or the argument with which any cloud controller manager becomes one for vSphere. Components of Kubernetes had this argument, too.
fn runs(pod: &Value) -> Option<Evidence> {
    const PROGRAM: &str = "vsphere-cloud-controller-manager";
    const KUBERNETES: [&str; 4] = ["kube-apiserver", "kube-controller-manager", "kubelet", "hyperkube"];
    let of_container = |container: &Value| {
        let reference = container["image"].as_str().unwrap_or_default();
        if Image::parse(reference).is_some_and(|image| is_image(&image)) {
            return Some(Evidence::Image(reference.to_owned()));
        }
        let words: Vec<&str> = installed::words(container).collect();
        let is_kubernetes = KUBERNETES
            .iter()
            .any(|name| reference.contains(name) || words.first().is_some_and(|first| first.contains(name)));
        let flag = words.iter().any(|word| word.contains("--cloud-provider=vsphere"))
            || words.windows(2).any(|pair| pair == ["--cloud-provider", "vsphere"]);
        let program = words.iter().any(|word| word.rsplit('/').next() == Some(PROGRAM));
        match (is_kubernetes, flag, program) {
            (false, true, _) => Some(Evidence::Argument("--cloud-provider=vsphere".to_owned())),
            (false, false, true) => Some(Evidence::Argument(PROGRAM.to_owned())),
            _ => None,
        }
    };
    installed::containers(pod).filter_map(of_container).max_by_key(Evidence::degree)
}

fn request(spec: &VDOConfigSpec) -> Option<Request> {
    let cpi = spec.cloud_provider.clone()?;
    Some(Request {
        state: cpi.management_state,
        version: cpi.version,
        allow_incompatible: cpi.allow_incompatible,
        uses: Uses::of(cpi.vsphere_cloud_configs),
        ..Request::of(CPI)
    })
}

fn values(spec: &VDOConfigSpec, _: Option<&Material>, set: &mut Setter<'_>) -> Map<String, Value> {
    let cpi = spec.cloud_provider.clone().unwrap_or_default();
    if cpi.ip_families.len() > 1 {
        // Without it the CPI refuses to start with two families.
        set(&["env", "ENABLE_ALPHA_DUAL_STACK"], "true".into());
    }
    if cpi.keep_nodes {
        set(&["skipNodeDeletion"], true.into());
    }
    cpi.values
}

fn network(of: Option<NodeNetwork>) -> config::NodeNetwork {
    let of = of.unwrap_or_default();
    config::NodeNetwork {
        subnets: of.subnets,
        excluded: of.excluded_subnets,
        name: of.name,
    }
}

/// Which of a machine's addresses a node gets, as the driver's file says.
#[must_use]
pub fn node_addresses(spec: &VDOConfigSpec) -> NodeAddresses {
    let cpi = spec.cloud_provider.clone().unwrap_or_default();
    let networks = cpi.node_networks.unwrap_or_default();
    let family = |family: &IpFamily| match family {
        IpFamily::IPv4 => config::IpFamily::V4,
        IpFamily::IPv6 => config::IpFamily::V6,
    };
    NodeAddresses {
        families: cpi.ip_families.iter().map(family).collect(),
        internal: network(networks.internal),
        external: network(networks.external),
    }
}

/// The configuration in a ConfigMap, the passwords in a Secret.
fn write(setup: &Setup<'_>) -> Result<Vec<Value>, SetupError> {
    let cpi = setup.spec.cloud_provider.clone().unwrap_or_default();
    let options = config::CpiOptions {
        secret_name: SECRET.into(),
        secret_namespace: setup.namespace.into(),
        topology: cpi.topology.map(|t| config::Topology {
            zone: t.zone,
            region: t.region,
        }),
        addresses: node_addresses(setup.spec),
    };
    let config = config::render(setup.version, &options, &setup.connections)?;
    let mut data = config.files;
    data.insert("vsphere.conf".into(), config.conf);
    let secret = secret(setup.namespace, SECRET, &config.secret);
    // The pods mount the ConfigMap, which names the Secret: a change of the Secret is a change of the configuration.
    let credentials = Object::new(secret.clone())?.digest(setup.salt).hex();
    let config_map = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": CONFIG, "namespace": setup.namespace, "annotations": {CREDENTIALS_ANNOTATION: credentials}},
        "data": data,
    });
    Ok(vec![config_map, secret])
}
