//! render: the chosen charts, the specification and the connections → the objects that should exist (pure).

use super::error::ReconcileError;
use super::select::Asked;
use super::survey::Survey;
use super::webhook::{Material, SERVED};
use crate::api::{CREDENTIALS_ANNOTATION, Permission, StorageProvider, VDOConfigSpec};
use crate::chart::{self, Chart, Configuration};
use crate::driverconfig::{self, cpi, csi};
use crate::facts::{Cluster, Connection};
use crate::manifest::{Object, Owner, stamp};
use crate::plan::{Desired, Drawn, wave};
use crate::types::{CPI, CSI, DriverName, DriverVersion, Secret};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// What objects are made from.
pub struct Wanted<'a> {
    /// The specification.
    pub spec: &'a VDOConfigSpec,
    /// What it asks for.
    pub asked: &'a Asked,
    /// The cluster.
    pub cluster: &'a Cluster,
    /// The connections in use.
    pub connections: &'a [Connection],
    /// The chart of each driver.
    pub charts: &'a BTreeMap<DriverName, Arc<Chart>>,
    /// The identity under which volumes are registered.
    pub cluster_id: &'a str,
    /// The id of the apply set.
    pub apply_set: &'a str,
    /// The namespace of the VDOConfig.
    pub namespace: &'a str,
    /// The certificate of the CSI driver's webhook, where that is asked for.
    pub webhook: Option<&'a Material>,
}

/// The objects that were made last for each driver, with what they were made from: the same is not made again in every reconcile.
/// It may be lost at any instant without harm.
#[derive(Default)]
pub struct Renders(Mutex<BTreeMap<DriverName, (Ingredients, Vec<Desired>)>>);

/// Everything that the objects of a driver depend on.
struct Ingredients {
    chart: Arc<Chart>,
    values: Value,
    context: chart::Context,
    /// Objects that are in no chart.
    more: Vec<Object>,
    owner: Owner,
}

impl PartialEq for Ingredients {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.chart, &other.chart)
            && (&self.values, &self.context) == (&other.values, &other.context)
            && (&self.more, &self.owner) == (&other.more, &other.owner)
    }
}

impl Ingredients {
    /// The objects, in the order in which they are applied.
    fn make(&self) -> Result<Vec<Desired>, ReconcileError> {
        let rendered = chart::render(&self.chart, &self.values, &self.context)?;
        let mut objects = rendered.into_iter().map(Object::new).collect::<Result<Vec<_>, _>>()?;
        objects.extend(self.more.iter().cloned());
        stamp(&mut objects, &self.owner);
        let driver: Arc<str> = self.owner.driver.as_str().into();
        let desired = |object: Object| Desired {
            wave: wave(object.kind(), self.chart.metadata.role),
            driver: driver.clone(),
            object: object.at_rest(),
        };
        let mut all: Vec<Desired> = objects.into_iter().map(desired).collect();
        all.sort_by_key(|d| (d.wave, d.object.id()));
        Ok(all)
    }
}

impl Renders {
    fn made(&self, from: Ingredients) -> Result<Vec<Desired>, ReconcileError> {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((last, objects)) = lock().get(&from.owner.driver)
            && *last == from
        {
            return Ok(objects.clone());
        }
        let objects = from.make()?;
        lock().insert(from.owner.driver.clone(), (from, objects.clone()));
        Ok(objects)
    }
}

/// Every object of a driver, stamped, with its wave.
///
/// # Errors
/// When values break the chart's schema, a template fails, or a setting cannot be written in the driver's grammar.
pub fn render(wanted: &Wanted<'_>, driver: &str, renders: &Renders) -> Result<Vec<Desired>, ReconcileError> {
    let Some(chart) = wanted.charts.get(driver) else {
        return Ok(Vec::new());
    };
    let own = wanted.connections_of(driver);
    let values = values(wanted, chart);
    let effective = chart::accepted(chart, &values)?;
    let place = Place {
        configuration: chart.metadata.configuration,
        version: &chart.metadata.version,
        namespace: effective.get("namespace").and_then(Value::as_str).unwrap_or_default(),
    };
    renders.made(Ingredients {
        chart: chart.clone(),
        context: context(wanted, &own),
        more: configuration(wanted, &place, &own)?,
        values,
        owner: wanted.owner(driver, chart.metadata.version.to_string()),
    })
}

impl Wanted<'_> {
    fn connections_of(&self, driver: &str) -> Vec<Connection> {
        let names = self.asked.connections.get(driver);
        let own = self
            .connections
            .iter()
            .filter(|c| names.is_some_and(|names| names.contains(&c.name)));
        own.cloned().collect()
    }

    fn owner(&self, driver: &str, version: String) -> Owner {
        Owner {
            apply_set: self.apply_set.into(),
            driver: driver.into(),
            version,
            salt: self.cluster.uid.clone(),
        }
    }
}

/// The configuration of what is installed, as it may have been applied last: with every connection that can be read, and with those that
/// are verified. What really was applied is known by its digest.
#[must_use]
pub(super) fn last_configuration(wanted: &Wanted<'_>, survey: &Survey) -> Vec<Object> {
    let mut all = Vec::new();
    for (driver, version) in survey.versions() {
        let secrets = survey
            .inventory
            .objects
            .iter()
            .filter(|(id, entry)| entry.driver == driver && id.kind() == "Secret");
        let Some((first, _)) = secrets.into_iter().next() else { continue };
        let place = Place {
            configuration: match driver.as_str() {
                CPI => Configuration::CpiYaml,
                CSI => Configuration::CsiGcfg,
                _ => continue,
            },
            version: &version,
            namespace: &first.namespace,
        };
        let verified = |c: &&Connection| c.version.is_some() && c.blocked.is_none();
        let readable: Vec<Connection> = wanted.connections.to_vec();
        let own = wanted.connections_of(&driver);
        let sets = [
            own.iter().filter(verified).cloned().collect(),
            own.clone(),
            readable.iter().filter(verified).cloned().collect(),
            readable,
        ];
        for connections in sets {
            let Ok(mut objects) = configuration(wanted, &place, &connections) else {
                continue;
            };
            stamp(&mut objects, &wanted.owner(&driver, version.to_string()));
            all.extend(objects.into_iter().filter(Object::is_secret));
        }
    }
    all
}

/// What of these objects comes from the certificate, whose keys are drawn by chance: the digest of each such object as it would be with
/// any certificate.
///
/// # Errors
/// As for [`render`].
pub(super) fn drawn(wanted: &Wanted<'_>, all: &[Desired]) -> Result<Drawn, ReconcileError> {
    if wanted.webhook.is_none() {
        return Ok(Drawn::new());
    }
    let any = Material {
        bundle: "any".into(),
        certificate: "any".into(),
        key: Secret::new("any"),
    };
    let masked = Wanted {
        webhook: Some(&any),
        ..*wanted
    };
    // Not kept: what is kept are the real ones.
    let renders = Renders::default();
    let mut masked_all = Vec::new();
    for driver in masked.charts.keys().filter(|driver| all.iter().any(|d| *d.driver == ***driver)) {
        masked_all.extend(render(&masked, driver, &renders)?);
    }
    let masked = masked_all;
    let digest = |d: &Desired| d.object.applied().map(str::to_owned);
    let both = all.iter().zip(&masked).filter(|(real, any)| digest(real) != digest(any));
    Ok(both.filter_map(|(_, any)| Some((any.object.id(), digest(any)?))).collect())
}

fn context(wanted: &Wanted<'_>, connections: &[Connection]) -> chart::Context {
    chart::Context {
        cluster: chart::Cluster {
            version: wanted.cluster.version.raw().into(),
            minor: wanted.cluster.version.minor(),
            distribution: wanted.spec.storage_provider.as_ref().and_then(|s| s.cluster_distribution.clone()),
            uid: wanted.cluster.uid.clone(),
            control_plane: chart::ControlPlane {
                count: u32::try_from(wanted.cluster.control_plane_count()).unwrap_or(u32::MAX),
            },
        },
        connections: connections
            .iter()
            .map(|c| chart::Connection {
                name: c.name.clone(),
                server: c.server.clone(),
                port: c.port,
                datacenters: c.datacenters.clone(),
            })
            .collect(),
        namespace: wanted.namespace.into(),
    }
}

/// The values of a chart: fields of the specification, overlaid with its free values.
fn values(wanted: &Wanted<'_>, chart: &Chart) -> Value {
    let spec = wanted.spec;
    let mut values = json!({});
    let mut set = |path: &[&str], value: Value| put(&mut values, path, value);
    // A mirror holds what the matrix lists. Without one, an image whose first registry is gone comes from where it is now.
    let mirrored = spec.images.as_ref().is_some_and(|images| images.registry.is_some());
    if !mirrored && chart.values.pointer("/images/useRepublished").is_some() {
        set(&["images", "useRepublished"], true.into());
    }
    if let Some(images) = &spec.images {
        if let Some(registry) = &images.registry {
            set(&["images", "registry"], registry.clone().into());
        }
        if !images.pull_secrets.is_empty() {
            set(&["imagePullSecrets"], json!(images.pull_secrets));
        }
    }
    let free = match chart.metadata.configuration {
        Configuration::CsiGcfg => {
            let csi = spec.storage_provider.clone().unwrap_or_default();
            // One replica for each control-plane node, up to the three that upstream wants: more would stay pending for ever.
            set(&["controller", "replicas"], "auto".into());
            if let Some(path) = &csi.custom_kubelet_path {
                set(&["kubeletPath"], path.clone().into());
            }
            if !csi.topology_categories.is_empty() {
                set(&["topology", "enabled"], true.into());
            }
            if let Some(windows) = csi.windows {
                set(&["windows", "enabled"], windows.into());
            }
            if let Some(material) = wanted.webhook {
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
        Configuration::CpiYaml => spec.cloud_provider.clone().unwrap_or_default().values,
        Configuration::None => Map::new(),
    };
    chart::values::merge(&mut values, &Value::Object(free));
    values
}

fn put(values: &mut Value, path: &[&str], value: Value) {
    let mut at = values;
    for step in path {
        at = &mut at[*step];
    }
    *at = value;
}

/// Where a configuration is for.
struct Place<'a> {
    configuration: Configuration,
    version: &'a DriverVersion,
    namespace: &'a str,
}

/// The objects with the driver's own configuration. They are not in any chart, because they hold the passwords.
fn configuration(wanted: &Wanted<'_>, place: &Place<'_>, connections: &[Connection]) -> Result<Vec<Object>, ReconcileError> {
    const SECRET: &str = "vsphere-config-secret";
    const CPI_SECRET: &str = "vsphere-cloud-secret";
    const CPI_CONFIG: &str = "vsphere-cloud-config";
    let connections: Vec<driverconfig::Connection> = connections.iter().map(connection).collect();
    let namespace = place.namespace.to_owned();
    let objects = match place.configuration {
        Configuration::None => Vec::new(),
        Configuration::CsiGcfg => {
            let options = csi_options(wanted.cluster_id, &wanted.spec.storage_provider.clone().unwrap_or_default());
            let data = csi::render(place.version, &options, &connections)?;
            let mut secrets = vec![secret(&namespace, SECRET, &data)];
            secrets.extend(wanted.webhook.map(|material| secret(&namespace, SERVED, &served(material))));
            secrets
        }
        Configuration::CpiYaml => {
            let topology = wanted.spec.cloud_provider.as_ref().and_then(|c| c.topology.clone());
            let options = cpi::CpiOptions {
                secret_name: CPI_SECRET.into(),
                secret_namespace: namespace.clone(),
                topology: topology.map(|t| cpi::Topology {
                    zone: t.zone,
                    region: t.region,
                }),
                ip_families: Vec::new(),
            };
            let config = cpi::render(place.version, &options, &connections)?;
            let mut data = config.files;
            data.insert("vsphere.conf".into(), config.conf);
            let secret = secret(&namespace, CPI_SECRET, &config.secret);
            // The pods mount the ConfigMap, which names the Secret: a change of the Secret is a change of the configuration.
            let credentials = Object::new(secret.clone())?.digest(&wanted.cluster.uid).hex();
            let config_map = json!({
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": CPI_CONFIG, "namespace": namespace, "annotations": {CREDENTIALS_ANNOTATION: credentials}},
                "data": data,
            });
            vec![config_map, secret]
        }
    };
    Ok(objects.into_iter().map(Object::new).collect::<Result<_, _>>()?)
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

fn secret(namespace: &str, name: &str, data: &BTreeMap<String, Secret>) -> Value {
    let data: Map<String, Value> = data
        .iter()
        .map(|(key, value)| (key.clone(), STANDARD.encode(value.expose()).into()))
        .collect();
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}, "type": "Opaque", "data": data})
}

pub(super) fn connection(facts: &Connection) -> driverconfig::Connection {
    driverconfig::Connection {
        name: facts.name.clone(),
        server: facts.server.clone(),
        port: facts.port,
        datacenters: facts.datacenters.clone(),
        trust: facts.trust.clone(),
        sha1: facts.sha1.clone(),
        user: facts.credentials.user.clone(),
        password: facts.credentials.password.clone(),
    }
}

fn csi_options(cluster_id: &str, spec: &StorageProvider) -> csi::CsiOptions {
    let mut options = csi::CsiOptions::new(cluster_id);
    options.cluster_distribution.clone_from(&spec.cluster_distribution);
    options.topology_categories.clone_from(&spec.topology_categories);
    if let Some(files) = &spec.file_volumes {
        options.file_share_datastore_urls.clone_from(&files.vsan_data_store_url);
        options.net_permissions = files
            .net_permissions
            .iter()
            .map(|p| csi::NetPermission {
                ips: p.ips.clone(),
                access: match p.permissions {
                    None | Some(Permission::ReadWrite) => csi::Access::ReadWrite,
                    Some(Permission::ReadOnly) => csi::Access::ReadOnly,
                    Some(Permission::NoAccess) => csi::Access::None,
                },
                root_squash: p.root_squash.unwrap_or(false),
            })
            .collect();
    }
    options.snapshots.per_volume = spec
        .snapshots
        .as_ref()
        .and_then(|s| s.max_per_volume)
        .and_then(|n| u32::try_from(n).ok());
    options
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{BindingMode, Images, StorageClass};

    fn chart(name: &str, version: &str) -> Result<Chart, Box<dyn std::error::Error>> {
        let sources = crate::fetch::embedded::sources();
        let (_, source) = sources.iter().find(|(driver, _)| *driver == name).ok_or("no such chart")?;
        Ok(chart::open(&chart::package(source, &version.parse()?)?)?)
    }

    fn values_of(spec: &VDOConfigSpec, chart: &Chart) -> Result<Value, Box<dyn std::error::Error>> {
        let cluster = Cluster {
            version: "v1.34.4".parse()?,
            uid: "uid".into(),
            nodes: Vec::new(),
        };
        let asked = Asked {
            drivers: BTreeMap::new(),
            connections: BTreeMap::new(),
        };
        let wanted = Wanted {
            spec,
            asked: &asked,
            cluster: &cluster,
            connections: &[],
            charts: &BTreeMap::new(),
            cluster_id: "id",
            apply_set: "set",
            namespace: "ns",
            webhook: None,
        };
        let values = values(&wanted, chart);
        chart::accepted(chart, &values)?;
        Ok(values)
    }

    #[test]
    fn chart_values_default_spec_sets_images_and_replicas() -> Result<(), Box<dyn std::error::Error>> {
        let csi = chart("vsphere-csi", "3.7.3")?;
        let cpi = chart("vsphere-cpi", "1.34.0")?;
        let spec = VDOConfigSpec::default();
        let plain = json!({"images": {"useRepublished": true}, "controller": {"replicas": "auto"}});
        assert_eq!(values_of(&spec, &csi)?, plain);
        assert_eq!(values_of(&spec, &cpi)?, json!({"images": {"useRepublished": true}}));
        Ok(())
    }

    /// A mirror holds the references that the matrix lists.
    #[test]
    fn chart_values_image_registry_in_spec_is_used() -> Result<(), Box<dyn std::error::Error>> {
        let cpi = chart("vsphere-cpi", "1.34.0")?;
        let spec = VDOConfigSpec {
            images: Some(Images {
                registry: Some("mirror.example".into()),
                ..Images::default()
            }),
            ..VDOConfigSpec::default()
        };
        assert_eq!(values_of(&spec, &cpi)?, json!({"images": {"registry": "mirror.example"}}));
        Ok(())
    }

    #[test]
    fn chart_values_storage_classes_in_spec_are_rendered() -> Result<(), Box<dyn std::error::Error>> {
        let csi = chart("vsphere-csi", "3.7.3")?;
        let spec = VDOConfigSpec {
            storage_provider: Some(StorageProvider {
                storage_classes: vec![StorageClass {
                    name: "gold".into(),
                    storage_policy: Some("Gold".into()),
                    binding_mode: Some(BindingMode::Immediate),
                    ..StorageClass::default()
                }],
                ..StorageProvider::default()
            }),
            ..VDOConfigSpec::default()
        };
        let values = values_of(&spec, &csi)?;
        let expected = json!([{"name": "gold", "storagePolicy": "Gold", "bindingMode": "Immediate"}]);
        assert_eq!(values["storageClasses"], expected);
        Ok(())
    }
}
