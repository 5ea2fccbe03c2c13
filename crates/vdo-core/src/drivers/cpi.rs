//! The vSphere cloud provider.

use super::setup::secret;
use super::{Driver, Material, OnNodes, Request, Setter, Setup, SetupError, Uses};
use crate::driverconfig::cpi as config;
use crate::manifest::Object;
use serde_json::{Map, Value, json};
use vdo_api::api::{CREDENTIALS_ANNOTATION, ConditionType, IpFamily, NodeNetwork, Reason, VDOConfigSpec};
use vdo_api::facts::Node;
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
    // OpenShift runs it so.
    also_runs_as: &[("apps/v1", "Deployment")],
    on_nodes: OnNodes {
        waits_for: Node::lacks,
        reason: Reason::WaitingForNodes,
        done: "initialised by the cloud provider",
        count: |nodes| nodes.initialized,
    },
    request,
    values,
    ignored: |_, _| Vec::new(),
    write,
};

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

/// The configuration in a ConfigMap, the passwords in a Secret.
fn write(setup: &Setup<'_>) -> Result<Vec<Value>, SetupError> {
    let cpi = setup.spec.cloud_provider.clone().unwrap_or_default();
    let networks = cpi.node_networks.unwrap_or_default();
    let options = config::CpiOptions {
        secret_name: SECRET.into(),
        secret_namespace: setup.namespace.into(),
        topology: cpi.topology.map(|t| config::Topology {
            zone: t.zone,
            region: t.region,
        }),
        ip_families: cpi
            .ip_families
            .iter()
            .map(|family| match family {
                IpFamily::IPv4 => config::IpFamily::V4,
                IpFamily::IPv6 => config::IpFamily::V6,
            })
            .collect(),
        internal: network(networks.internal),
        external: network(networks.external),
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
