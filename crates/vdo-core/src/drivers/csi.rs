// SPDX-License-Identifier: Apache-2.0
//! The CSI driver in the driver table: required features, chart values, topology keys, cluster id, and its Secrets.
//! `options` converts `spec.storageProvider` to the options of `csi-vsphere.conf`.

use super::setup::secret;
use super::{Driver, OnNodes, Request, Setter, Setup, SetupError, Uses, VolumeSettings};
use crate::chart::Chart;
use crate::driverconfig::csi;
use crate::installed::{self, Evidence, Image};
use crate::manifest::Object;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use vdo_api::api::{ConditionType, NetPermission, Permission, Reason, StorageProvider, VDOConfigSpec, VOLUME_SETTINGS_ANNOTATION};
use vdo_api::facts::Node;
use vdo_api::types::{DriverRole, Secret};

/// Its name in the matrix.
pub const CSI: &str = "vsphere-csi";

/// The name that CSIDriver and CSINode objects give it.
pub const CSI_DRIVER: &str = "csi.vsphere.vmware.com";

/// The Secret that the chart mounts into the webhook.
pub const SERVED: &str = "vsphere-webhook-certs";

const NAMESPACE: &str = "vmware-system-csi";
/// The Secret with its file, which upstream's documentation names, too.
pub const CSI_SECRET: &str = "vsphere-config-secret";

pub(super) const DRIVER: Driver = Driver {
    name: CSI,
    short: "CSI",
    what: "the driver",
    role: DriverRole::Storage,
    field: "storageProvider",
    condition: ConditionType::StorageReady,
    csi_driver: Some(CSI_DRIVER),
    places: &[
        ("v1", "ConfigMap", NAMESPACE),
        ("v1", "Service", NAMESPACE),
        ("v1", "ServiceAccount", NAMESPACE),
        ("apps/v1", "Deployment", NAMESPACE),
        ("apps/v1", "DaemonSet", NAMESPACE),
        ("policy/v1", "PodDisruptionBudget", NAMESPACE),
        ("storage.k8s.io/v1", "CSIDriver", ""),
        ("storage.k8s.io/v1", "StorageClass", ""),
        ("snapshot.storage.k8s.io/v1", "VolumeSnapshotClass", ""),
        ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", ""),
    ],
    namespace: NAMESPACE,
    written: &[("Secret", CSI_SECRET), ("Secret", SERVED)],
    workloads: &[
        "vsphere-csi-controller",
        "vsphere-csi-node",
        "vsphere-csi-node-windows",
        "vsphere-csi-webhook",
    ],
    is_image,
    runs,
    on_nodes: OnNodes {
        waits_for,
        by_pods: true,
        reason: Reason::WaitingForCsiNodes,
        done: "registered with the CSI driver",
        count: |nodes| nodes.csi_registered,
    },
    request,
    values,
    ignored,
    write,
};

/// What its webhook serves with, and what the API server trusts.
#[derive(Debug, Clone)]
pub struct Material {
    /// The authorities that the API server trusts, PEM.
    pub bundle: String,
    /// What the webhook serves with, PEM.
    pub certificate: String,
    /// Its key, PEM.
    pub key: Secret,
}

/// Its image is the driver's and not that of a side car, which has the name of the project, too.
fn is_image(image: &Image<'_>) -> bool {
    let named = image.path.contains("vsphere-csi-driver") && !image.has_word("operator");
    image.path.contains("vsphere") && image.has_word("csi") && (image.last_word() == "driver" || named)
}

/// Its program, an argument that only it has, or the folder in which it listens on a node; its name alone proves nothing.
fn runs(pod: &Value) -> Option<Evidence> {
    let of_container = |container: &Value| {
        let reference = container["image"].as_str().unwrap_or_default();
        if Image::parse(reference).is_some_and(|image| is_image(&image)) {
            return Some(Evidence::Image(reference.to_owned()));
        }
        let values = container["env"].as_array().into_iter().flatten();
        let mut words = installed::words(container).chain(values.filter_map(|variable| variable["value"].as_str()));
        let named = words
            .clone()
            .find(|word| word.starts_with("--fss-name=") && word.contains(CSI_DRIVER));
        let named = named.map(|word| Evidence::Argument(word.to_owned()));
        named.or_else(|| {
            words
                .find(|word| word.contains(CSI_DRIVER))
                .map(|word| Evidence::Mention(word.to_owned()))
        })
    };
    let volumes = pod["volumes"].as_array().into_iter().flatten();
    let paths = volumes.filter_map(|volume| volume["hostPath"]["path"].as_str());
    let socket = paths
        .filter(|path| path.split('/').any(|part| part == CSI_DRIVER))
        .map(|path| Evidence::Socket(path.to_owned()));
    installed::containers(pod)
        .filter_map(of_container)
        .chain(socket)
        .max_by_key(Evidence::degree)
}

fn request(spec: &VDOConfigSpec) -> Option<Request> {
    let csi = spec.storage_provider.clone()?;
    let features = features(&csi);
    let mut connections = csi.vsphere_cloud_configs;
    connections.extend(csi.vsphere_cloud_config);
    Some(Request {
        state: csi.management_state,
        version: csi.version,
        allow_incompatible: csi.allow_incompatible,
        uses: Uses::of(connections),
        features,
        states: csi.features,
        ..Request::of(CSI)
    })
}

/// What a version must be able to do, by the names of features in a matrix, each with the field that asks for it.
fn features(csi: &StorageProvider) -> BTreeMap<String, String> {
    /// Feature states of the driver that are of no use where the vCenter cannot do what they switch on.
    const STATES: [(&str, &str); 6] = [
        ("block-volume-snapshot", "snapshots"),
        ("csi-migration", "inTreeMigration"),
        ("csi-transaction-support", "transactions"),
        ("high-pv-node-density", "manyVolumesPerNode"),
        ("multi-vcenter-csi-topology", "multiVcenter"),
        ("online-volume-extend", "onlineExpansion"),
    ];
    let mut asked = BTreeMap::new();
    for (state, feature) in STATES {
        if csi.features.get(state) == Some(&true) {
            asked.insert(feature.to_owned(), format!("spec.storageProvider.features[{state}]"));
        }
    }
    if let Some(class) = csi.storage_classes.iter().find(|class| class.file_share == Some(true)) {
        let by = format!("spec.storageProvider.storageClasses[{}].fileShare", class.name);
        asked.insert("fileVolumes".to_owned(), by);
    }
    if csi.file_volumes.is_some() {
        asked.insert("fileVolumes".to_owned(), "spec.storageProvider.fileVolumes".to_owned());
    }
    if csi.snapshots.is_some() {
        asked.insert("snapshots".to_owned(), "spec.storageProvider.snapshots".to_owned());
    }
    asked
}

/// The tag categories by which the node plugin registers, on the template of its pods: with others it has to register again.
const CATEGORIES_ANNOTATION: &str = "topology.csi.vmware.com/categories";

/// The topology keys with which the node plugin of a workload registers.
#[must_use]
pub fn topology_keys(workload: &Object) -> BTreeSet<String> {
    plugin_categories(workload).map(topology_key).collect()
}

/// The label of nodes, and of the affinity of volumes, for a tag category.
fn topology_key(category: &str) -> String {
    format!("topology.csi.vmware.com/{category}")
}

/// The tag categories by which the node plugin of a workload registers.
pub(super) fn plugin_categories(workload: &Object) -> impl Iterator<Item = &str> {
    let template = workload.value().pointer("/spec/template/metadata/annotations");
    let categories = template.and_then(|all| all.get(CATEGORIES_ANNOTATION)).and_then(Value::as_str);
    categories.into_iter().flat_map(|all| all.split(','))
}

fn waits_for(node: &Node, keys: &BTreeSet<String>) -> Option<&'static str> {
    match (node.linux, node.csi_registered) {
        (false, _) => None,
        (true, false) => Some("CSI registration"),
        (true, true) => (!keys.is_subset(&node.topology_keys)).then_some("CSI registration with topology"),
    }
}

fn values(spec: &VDOConfigSpec, webhook: Option<&Material>, set: &mut Setter<'_>) -> Map<String, Value> {
    let csi = spec.storage_provider.clone().unwrap_or_default();
    // One replica for each control-plane node, up to the three that upstream wants: more would stay pending for ever.
    set(&["controller", "replicas"], "auto".into());
    if let Some(path) = &csi.custom_kubelet_path {
        set(&["kubeletPath"], path.clone().into());
    }
    if !csi.topology_categories.is_empty() {
        set(&["topology", "enabled"], true.into());
        set(&["topology", "categories"], json!(csi.topology_categories));
    }
    if let Some(windows) = csi.windows {
        set(&["windows", "enabled"], windows.into());
    }
    if let Some(material) = webhook {
        set(&["webhook", "enabled"], true.into());
        set(&["webhook", "secretName"], SERVED.into());
        set(&["webhook", "caBundle"], STANDARD.encode(&material.bundle).into());
    }
    if !csi.storage_classes.is_empty() {
        set(&["storageClasses"], json!(csi.storage_classes));
    }
    for (feature, on) in &csi.features {
        set(&["featureStates", feature], (*on).into());
    }
    csi.values
}

/// Options that the configuration of this version has no place for, and feature states that are switched on and that it does not know.
fn ignored(spec: &VDOConfigSpec, chart: &Chart) -> Vec<(String, String)> {
    let csi = spec.storage_provider.clone().unwrap_or_default();
    let options = csi::ignored(&chart.metadata.version, &options("", &csi));
    let mut all: Vec<(String, String)> = options.into_iter().map(|one| (one.option, one.because)).collect();
    if let Some(known) = chart.release_data.get("featureStates").and_then(Value::as_object) {
        let fields = csi
            .features
            .iter()
            .filter(|(_, on)| **on)
            .map(|(state, _)| (state, format!("features[{state}]")));
        let free = csi.values.get("featureStates").and_then(Value::as_object).into_iter().flatten();
        let free = free
            .filter(|(_, on)| **on == json!(true))
            .map(|(state, _)| (state, format!("values.featureStates[{state}]")));
        let unknown = fields.chain(free).filter(|(state, _)| !known.contains_key(*state));
        all.extend(unknown.map(|(_, option)| (option, "the version has no feature state of this name".into())));
    }
    all
}

/// The configuration in a Secret, because it holds the passwords; and what the webhook serves with.
fn write(setup: &Setup<'_>) -> Result<Vec<Value>, SetupError> {
    let options = options(setup.cluster_id, &setup.spec.storage_provider.clone().unwrap_or_default());
    let data = csi::render(setup.version, &options, &setup.connections)?;
    let mut configuration = secret(setup.namespace, CSI_SECRET, &data);
    configuration["metadata"]["annotations"] = json!({VOLUME_SETTINGS_ANNOTATION: settings(&options, setup).note()});
    let mut secrets = vec![configuration];
    secrets.extend(setup.webhook.map(|material| secret(setup.namespace, SERVED, &served(material))));
    Ok(secrets)
}

/// The settings that volumes depend on.
fn settings(options: &csi::CsiOptions, setup: &Setup<'_>) -> VolumeSettings {
    VolumeSettings {
        cluster_id: options.cluster_id.clone(),
        vcenters: setup.connections.iter().map(|connection| connection.server.clone()).collect(),
        topology_keys: options.topology_categories.iter().map(|category| topology_key(category)).collect(),
    }
}

/// Where the identity is under which a driver that was installed before us, or whose inventory is lost, registers its volumes: kind,
/// namespace and name of its configuration, and of where it keeps the one that it made up.
#[must_use]
pub fn cluster_id_places() -> [(&'static str, &'static str, &'static str); 4] {
    const MADE_UP: &str = "vsphere-csi-cluster-id";
    [
        ("Secret", NAMESPACE, CSI_SECRET),
        ("ConfigMap", NAMESPACE, MADE_UP),
        // Many installers put the driver there.
        ("Secret", "kube-system", CSI_SECRET),
        ("ConfigMap", "kube-system", MADE_UP),
    ]
}

/// That identity, from what is in one of these places.
#[must_use]
pub fn cluster_id(found: &Object) -> Option<String> {
    let id = match found.is_secret() {
        true => {
            let file = STANDARD.decode(found.text(&format!("/data/{}", csi::FILE))).ok()?;
            csi::cluster_id(&file)?
        }
        false => found.text("/data/clusterID").to_owned(),
    };
    Some(id).filter(|id| !id.is_empty())
}

/// What the webhook reads at its start.
fn served(material: &Material) -> BTreeMap<String, Secret> {
    const CONFIG: &str =
        "[WebHookConfig]\nport = \"8443\"\ncert-file = \"/run/secrets/tls/tls.crt\"\nkey-file = \"/run/secrets/tls/tls.key\"\n";
    [
        ("tls.crt", Secret::new(material.certificate.clone())),
        ("tls.key", material.key.clone()),
        ("webhook.config", Secret::new(CONFIG)),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into()
}

fn options(cluster_id: &str, spec: &StorageProvider) -> csi::CsiOptions {
    let mut options = csi::CsiOptions::new(cluster_id);
    options.cluster_distribution.clone_from(&spec.cluster_distribution);
    options.topology_categories.clone_from(&spec.topology_categories);
    options.migration_datastore_url.clone_from(&spec.migration_datastore_url);
    if let Some(files) = &spec.file_volumes {
        options.file_share_datastore_urls.clone_from(&files.vsan_data_store_url);
        let clusters = files.vsan_clusters.iter().filter(|one| !one.clusters.is_empty());
        options.file_share_clusters = clusters
            .map(|one| (one.vsphere_cloud_config.clone(), one.clusters.clone()))
            .collect();
        options.net_permissions = files.net_permissions.iter().map(net_permission).collect();
    }
    let number = |number: Option<i32>| number.and_then(|number| u32::try_from(number).ok());
    if let Some(snapshots) = &spec.snapshots {
        options.snapshots = csi::SnapshotLimits {
            per_volume: number(snapshots.max_per_volume),
            vsan: number(snapshots.max_per_vsan_volume),
            vvol: number(snapshots.max_per_vvol_volume),
        };
    }
    if let Some(tuning) = &spec.tuning {
        options.tuning = csi::Tuning {
            query_limit: number(tuning.query_limit),
            list_volume_threshold: number(tuning.list_volume_threshold),
            auth_check_minutes: number(tuning.auth_check_minutes),
            preferred_datastores_minutes: number(tuning.preferred_datastores_minutes),
        };
    }
    options
}

fn net_permission(permission: &NetPermission) -> csi::NetPermission {
    csi::NetPermission {
        ips: permission.ips.clone(),
        access: match permission.permissions {
            None | Some(Permission::ReadWrite) => csi::Access::ReadWrite,
            Some(Permission::ReadOnly) => csi::Access::ReadOnly,
            Some(Permission::NoAccess) => csi::Access::None,
        },
        root_squash: permission.root_squash.unwrap_or(false),
    }
}
