// SPDX-License-Identifier: Apache-2.0
//! Builds the VDOConfig, VsphereCloudConfigs, Secrets and ConfigMaps of `vdoctl deploy` from its flags, or reads them from `--values FILE`.

use super::super::args::{CredentialsSecret, Deploy as Args};
use super::super::{CliError, Exit};
use super::vcenter::{Account, Login};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use vdo_api::api::{API_VERSION, MANAGED_BY_LABEL, SERVERS, VDOConfig, VsphereCloudConfig};
use vdo_api::types::{Secret, Trust};
use vdo_api::yaml::load_all;
use vdo_core::drivers::KNOWN;
use vdo_core::install::{VDOCTL, unknown_field};
use vdo_core::manifest::{ManifestError, Object};

/// The connection that the flags describe.
pub(crate) const CONNECTION: &str = "vc1";

/// Secrets and ConfigMaps, then the connections, then the VDOConfig.
#[derive(Debug, Default)]
pub(crate) struct Configuration {
    /// In the order in which they are applied.
    pub(crate) objects: Vec<Object>,
}

impl Configuration {
    /// From the flags and what they are laid over: the vCenters, and what applies to all drivers.
    pub(crate) fn of_flags(args: &Args, namespace: &str, config: &str, accounts: &[Account], known: &Value) -> Result<Self, ManifestError> {
        let (mut all, mut connections) = (Vec::new(), Vec::new());
        let mut drivers = specification(args, known);
        for Account {
            connection: connection_name,
            endpoint,
            login,
            datacenters,
        } in accounts
        {
            if let Login::Typed(user, password) = login {
                all.push(secret(
                    &format!("{connection_name}-credentials"),
                    namespace,
                    &endpoint.server,
                    user,
                    password,
                ));
            }
            for (name, stored) in logins(connection_name, login) {
                let credentials = stored.map_or_else(|| format!("{name}-credentials"), |stored| stored.name.clone());
                let mut spec = json!({"vcIp": endpoint.server, "credentials": credentials});
                if endpoint.port != 443 {
                    spec["port"] = endpoint.port.into();
                }
                if !datacenters.is_empty() {
                    spec["datacenters"] = json!(datacenters);
                }
                let (fields, map) = trusting(&endpoint.trust, &name, namespace);
                all.extend(map);
                for (field, value) in fields.into_iter().filter(|(_, value)| !value.is_null()) {
                    spec[field] = value;
                }
                if let Some(field) = stored.and_then(|stored| stored.field) {
                    if drivers[field]["vsphereCloudConfigs"].is_null() {
                        drivers[field]["vsphereCloudConfigs"] = json!([]);
                    }
                    drivers[field]["vsphereCloudConfigs"]
                        .as_array_mut()
                        .into_iter()
                        .for_each(|all| all.push(json!(name)));
                }
                connections.push(connection(&name, namespace, spec));
            }
        }
        all.append(&mut connections);
        all.push(
            json!({"apiVersion": API_VERSION, "kind": "VDOConfig", "metadata": {"name": config, "namespace": namespace}, "spec": drivers}),
        );
        let objects = all.into_iter().map(Object::new).collect::<Result<_, _>>()?;
        Ok(Self { objects })
    }

    /// From the text of a file with one VDOConfig. Everything that can be said without the cluster is checked.
    pub(super) fn read(file: &str, text: &str, namespace: &str) -> Result<Self, CliError> {
        let objects = Self::objects(file, text, namespace)?;
        let configs = objects.iter().filter(|object| object.kind() == "VDOConfig").count();
        if configs != 1 {
            return Err(CliError::new(
                Exit::Usage,
                format!("{file}: it has {configs} VDOConfig objects"),
                "Write exactly one VDOConfig; an empty spec installs both drivers.",
            ));
        }
        Ok(Self { objects })
    }

    /// The objects of a part of a configuration, in the order in which they are applied.
    pub(crate) fn objects(file: &str, text: &str, namespace: &str) -> Result<Vec<Object>, CliError> {
        let wrong = |what: String, remedy: &str| CliError::new(Exit::Usage, format!("{file}: {what}"), remedy);
        let documents = load_all(text).map_err(|error| wrong(error.to_string(), "Write YAML documents that kubectl accepts."))?;
        let mut ranked: Vec<(usize, Object)> = Vec::new();
        for mut value in documents {
            if value.pointer("/metadata/namespace").is_none_or(Value::is_null)
                && let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut)
            {
                metadata.insert("namespace".into(), namespace.into());
            }
            let mut object =
                Object::new(value).map_err(|error| wrong(error.to_string(), "Every object needs apiVersion, kind and metadata.name."))?;
            object.encode_strings();
            let kinds = ["Secret", "ConfigMap", "VsphereCloudConfig", "VDOConfig"];
            let Some(rank) = kinds.iter().position(|kind| *kind == object.kind()) else {
                return Err(wrong(
                    format!("{object} does not belong in a configuration"),
                    "A configuration has Secrets, ConfigMaps, VsphereCloudConfigs and a VDOConfig; apply everything else with kubectl.",
                ));
            };
            if object.namespace() != namespace {
                return Err(wrong(
                    format!("{object} is not in the namespace of the operator, {namespace}"),
                    "The operator reads its own namespace only: leave out metadata.namespace, or name the operator's namespace with -n.",
                ));
            }
            match object.kind() {
                "VDOConfig" => typed::<VDOConfig>(&object, file)?,
                "VsphereCloudConfig" => typed::<VsphereCloudConfig>(&object, file)?,
                _ => {}
            }
            ranked.push((rank, object));
        }
        ranked.sort_by_key(|(rank, _)| *rank);
        Ok(ranked.into_iter().map(|(_, object)| object).collect())
    }

    /// The VDOConfig.
    pub(crate) fn config(&self) -> Option<VDOConfig> {
        self.of("VDOConfig").next()
    }

    /// The connections.
    pub(crate) fn connections(&self) -> Vec<VsphereCloudConfig> {
        self.of("VsphereCloudConfig").collect()
    }

    fn of<T: DeserializeOwned>(&self, kind: &str) -> impl Iterator<Item = T> {
        let of_kind = self.objects.iter().filter(move |object| object.kind() == kind);
        of_kind.filter_map(|object| serde_json::from_value(object.value().clone()).ok())
    }
}

/// The connections that an account leads to, each with its Secret where that is there already: one, or one for each driver with a Secret of
/// its own.
pub(super) fn logins<'a>(connection: &str, login: &'a Login) -> Vec<(String, Option<&'a CredentialsSecret>)> {
    match login {
        Login::Typed(..) => vec![(connection.to_owned(), None)],
        Login::Stored(all) => {
            let name = |one: &CredentialsSecret| {
                let driver = KNOWN.into_iter().find(|known| Some(known.field) == one.field);
                driver.map_or_else(
                    || connection.to_owned(),
                    |known| format!("{connection}-{}", known.short.to_lowercase()),
                )
            };
            all.iter().map(|one| (name(one), Some(one))).collect()
        }
    }
}

/// The Secret of an account, for this server only.
pub(crate) fn secret(name: &str, namespace: &str, server: &str, user: &str, password: &Secret) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace, "labels": own(), "annotations": {SERVERS: server}},
        "type": "kubernetes.io/basic-auth",
        "data": {"username": STANDARD.encode(user), "password": STANDARD.encode(password.expose())},
    })
}

/// How a connection trusts its vCenter: its fields, of which the others are null, and the ConfigMap with the authorities where there are some.
pub(crate) fn trusting(trust: &Trust, connection: &str, namespace: &str) -> ([(&'static str, Value); 3], Option<Value>) {
    let fields = |insecure, thumbprint, bundle| [("insecure", insecure), ("thumbprint", thumbprint), ("caBundle", bundle)];
    match trust {
        Trust::SystemRoots => (fields(Value::Null, Value::Null, Value::Null), None),
        Trust::Insecure => (fields(true.into(), Value::Null, Value::Null), None),
        Trust::Thumbprint(print) => (fields(Value::Null, print.to_string().into(), Value::Null), None),
        Trust::CaBundle(pem) => {
            let name = format!("{connection}-ca");
            let map = json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": name, "namespace": namespace, "labels": own()}, "data": {"ca.crt": pem},
            });
            (fields(Value::Null, Value::Null, json!({"configMap": name})), Some(map))
        }
    }
}

/// A connection.
pub(crate) fn connection(name: &str, namespace: &str, spec: Value) -> Value {
    json!({"apiVersion": API_VERSION, "kind": "VsphereCloudConfig", "metadata": {"name": name, "namespace": namespace}, "spec": spec})
}

/// `vdoctl delete` takes away what has it.
fn own() -> Value {
    json!({MANAGED_BY_LABEL: VDOCTL})
}

/// What the flags say of the drivers, over what is known. To name one of them alone would install only that one.
fn specification(args: &Args, known: &Value) -> Value {
    let mut spec = if known.is_null() { json!({}) } else { known.clone() };
    let named = ["cloudProvider", "storageProvider"].map(|field| spec.get(field).is_some());
    if let Some(policy) = args.update_policy {
        spec["updatePolicy"] = json!(policy);
    }
    if let Some(registry) = &args.image_registry {
        spec["images"] = json!({"registry": registry});
    }
    if args.cpi_image.is_some() || args.csi_image.is_some() {
        let images = [
            ("cloudProvider", "manager", &args.cpi_image),
            ("storageProvider", "driver", &args.csi_image),
        ];
        for (field, name, image) in images {
            match image {
                Some(image) => spec[field]["values"] = json!({"images": {"overrides": {name: image}}}),
                None if named == [false, false] => spec[field] = json!({}),
                None => {}
            }
        }
    }
    spec
}

/// Whether an object is what its definition says: known fields, each of its type.
fn typed<T: DeserializeOwned>(object: &Object, file: &str) -> Result<(), CliError> {
    let field = unknown_field(object);
    let wrong = match (field, serde_json::from_value::<T>(object.value().clone())) {
        (Some(field), _) => format!("there is no field {field}"),
        (None, Err(error)) => error.to_string(),
        (None, Ok(_)) => return Ok(()),
    };
    Err(CliError::new(
        Exit::Usage,
        format!("{file}: {object}: {wrong}"),
        format!(
            "Correct the object; kubectl explain {} describes every field.",
            object.kind().to_lowercase()
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use vdo_vsphere::vcenter::Endpoint;

    fn account(connection: &str, server: &str, login: Login) -> Account {
        Account {
            connection: connection.to_owned(),
            endpoint: Endpoint {
                server: server.to_owned(),
                port: 8443,
                trust: Trust::SystemRoots,
            },
            login,
            datacenters: vec![format!("dc-of-{server}")],
        }
    }

    fn typed_login() -> Login {
        Login::Typed("user".to_owned(), Secret::new("p4ss"))
    }

    #[test]
    fn several_vcenters_are_connections_with_a_secret_each() {
        let accounts = [account("vc1", "a", typed_login()), account("vc2", "b", typed_login())];
        let known = json!({"storageProvider": {"clusterId": "ocp"}});
        let made = Configuration::of_flags(&Args::default(), "ns", "vdo", &accounts, &known).expect("a configuration");
        let names: Vec<String> = made
            .objects
            .iter()
            .map(|object| format!("{} {}", object.kind(), object.name()))
            .collect();
        assert_eq!(
            names,
            [
                "Secret vc1-credentials",
                "Secret vc2-credentials",
                "VsphereCloudConfig vc1",
                "VsphereCloudConfig vc2",
                "VDOConfig vdo"
            ]
        );
        let connections = made.connections();
        let specs: Vec<_> = connections
            .iter()
            .map(|one| (&*one.spec.vc_ip, one.spec.datacenters.join(",")))
            .collect();
        assert_eq!(specs, [("a", "dc-of-a".to_owned()), ("b", "dc-of-b".to_owned())]);
        assert_eq!(made.objects[4].value()["spec"], known);
    }

    #[test]
    fn secrets_of_each_driver_lead_to_the_connections_of_every_vcenter() {
        let stored = |field, name: &str| CredentialsSecret {
            field: Some(field),
            name: name.to_owned(),
        };
        let login = Login::Stored(vec![stored("cloudProvider", "for-cpi"), stored("storageProvider", "for-csi")]);
        let accounts = [account("vc1", "a", login.clone()), account("vc2", "b", login)];
        let made = Configuration::of_flags(&Args::default(), "ns", "vdo", &accounts, &Value::Null).expect("a configuration");
        let spec = &made.objects.last().expect("a VDOConfig").value()["spec"];
        assert_eq!(spec["cloudProvider"]["vsphereCloudConfigs"], json!(["vc1-cpi", "vc2-cpi"]));
        assert_eq!(spec["storageProvider"]["vsphereCloudConfigs"], json!(["vc1-csi", "vc2-csi"]));
    }

    #[test]
    fn image_of_a_driver_is_laid_over_what_is_known_and_requests_no_other_driver() {
        let args = Args {
            csi_image: Some("example.com/csi:1".to_owned()),
            ..Args::default()
        };
        let image = json!({"images": {"overrides": {"driver": "example.com/csi:1"}}});
        for (known, expected) in [
            (Value::Null, json!({"cloudProvider": {}, "storageProvider": {"values": image}})),
            (
                json!({"storageProvider": {"clusterId": "ocp"}}),
                json!({"storageProvider": {"clusterId": "ocp", "values": image}}),
            ),
        ] {
            assert_eq!(specification(&args, &known), expected, "{known}");
        }
    }
}
