// SPDX-License-Identifier: Apache-2.0
//! Builds the VDOConfig of an adoption from the files of the drivers and the differences of their workloads.

use crate::connections::{Connection, of_cpi, of_csi, origin, used};
use crate::cpi::CpiFile;
use crate::csi::CsiFile;
use crate::draft::Draft;
use crate::files::{controller, states, version};
use crate::origin::{Loss, Losses, Origin, Said, named};
use crate::workload::Workloads;
use crate::{DRIVERS, Installation};
use serde_json::{Value, json};
use vdo_api::api::{API_VERSION, IpFamily};
use vdo_core::drivers::{CLOUD_PROVIDER, Driver, STORAGE};

/// What a VDOConfig is made of.
pub(crate) struct Parts<'a> {
    pub installation: &'a Installation<'a>,
    pub connections: &'a [Connection],
    pub cpi: Option<&'a CpiFile>,
    pub csi: Option<&'a CsiFile>,
}

impl Parts<'_> {
    /// The object, and what it cannot express of the workloads.
    pub(crate) fn config(&self, losses: &mut Vec<Loss>) -> Draft {
        let mut config = Draft::new(json!({
            "apiVersion": API_VERSION, "kind": "VDOConfig",
            "metadata": {"name": self.installation.name, "namespace": self.installation.namespace}, "spec": {},
        }));
        if let Some(file) = self.cpi {
            self.begin(&mut config, CLOUD_PROVIDER, of_cpi);
            of_cloud_provider(&mut config, file, losses);
        }
        if let Some(file) = self.csi {
            self.begin(&mut config, STORAGE, of_csi);
            of_storage(&mut config, file, self.connections);
        }
        let all = self.workloads();
        for (_, workloads) in &all {
            workloads.settings(&mut config);
        }
        let lost = |config: &Draft| {
            let mut lost = Losses::of("");
            all.iter().for_each(|(_, workloads)| workloads.losses(config, &mut lost));
            lost.all.len()
        };
        // A field for all drivers also says that images are not taken from where they were published again.
        let mut shared = config.clone();
        one_registry(&mut shared);
        if shared.object != config.object && lost(&shared) <= lost(&config) {
            config = shared;
        }
        for (short, workloads) in &all {
            let mut lost = Losses::of(short);
            self.version(short, workloads, &mut lost);
            workloads.losses(&config, &mut lost);
            losses.append(&mut lost.all);
        }
        config
    }

    /// A driver that is there is requested, with its connections.
    fn begin(&self, config: &mut Draft, driver: &Driver, of: fn(&Connection) -> bool) {
        config.object["spec"][driver.field] = json!({});
        let names = used(self.connections, self.installation.connections, of);
        if let Some(origin) = origin(self.connections, of).filter(|_| !names.is_empty()) {
            config.set(&["spec", driver.field, "vsphereCloudConfigs"], json!(names), &origin);
        }
    }

    fn workloads(&self) -> Vec<(&'static str, Workloads<'_>)> {
        let installation = self.installation;
        let of = |(driver, short): (&'static Driver, &'static str)| {
            let found = installation.of(driver);
            let chart = installation.charts.get(driver.name)?;
            let states = controller(&found).and_then(states).and_then(|id| installation.objects.get(&id));
            let states = states.filter(|_| driver.name == STORAGE.name);
            (!found.is_empty()).then(|| (short, Workloads::of(&found, states, chart, installation.control_planes)))
        };
        DRIVERS.into_iter().filter_map(of).collect()
    }

    /// A version without a chart cannot be compared exactly.
    fn version(&self, short: &str, workloads: &Workloads<'_>, losses: &mut Losses) {
        let Some((driver, _)) = DRIVERS.iter().find(|(_, name)| *name == short) else {
            return;
        };
        let found = self.installation.of(driver);
        let (chart, first) = (&workloads.chart.metadata.version, found.first());
        if let (Some(version), Some(first)) = (version(&found), first)
            && version != chart
        {
            let origin = Origin::new(named(first.object.identity()), "image");
            losses.add(
                "version",
                origin,
                format!(
                    "the matrix has no chart of {} {version}; {chart} was compared instead",
                    driver.short
                ),
            );
        }
    }
}

/// A setting of the specification.
fn put<T>(config: &mut Draft, path: &[&str], said: Option<&Said<T>>, value: impl Fn(&T) -> Value) {
    if let Some(said) = said {
        let path = [&["spec"], path].concat();
        config.set(&path, value(&said.value), &said.origin);
    }
}

fn of_cloud_provider(config: &mut Draft, file: &CpiFile, losses: &mut Vec<Loss>) {
    let field = CLOUD_PROVIDER.field;
    let is_set = |said: &&Said<String>| !said.value.is_empty();
    match (file.zone.as_ref().filter(is_set), file.region.as_ref().filter(is_set)) {
        (Some(zone), Some(region)) => {
            put(config, &[field, "topology", "zone"], Some(zone), |text| json!(text));
            put(config, &[field, "topology", "region"], Some(region), |text| json!(text));
        }
        (Some(only), None) | (None, Some(only)) => {
            let mut lost = Losses::of("cpi");
            lost.add(
                "labels",
                only.origin.clone(),
                "the cloud provider uses zone and region only if both are set",
            );
            losses.append(&mut lost.all);
        }
        (None, None) => {}
    }
    let families = file.ip_families.as_ref().filter(|said| said.value != [IpFamily::IPv4]);
    put(config, &[field, "ipFamilies"], families, |families| json!(families));
    if !file.network_origins.is_empty() {
        config.object["spec"][field]["nodeNetworks"] = json!(file.networks);
        for ([side, key], origin) in &file.network_origins {
            config.note(&["spec", field, "nodeNetworks", side, key], origin);
        }
    }
}

fn of_storage(config: &mut Draft, file: &CsiFile, connections: &[Connection]) {
    let field = STORAGE.field;
    put(config, &[field, "clusterId"], file.cluster_id.as_ref(), |id| json!(id));
    put(
        config,
        &[field, "clusterDistribution"],
        file.cluster_distribution.as_ref(),
        |text| json!(text),
    );
    let categories = file.topology_categories.as_ref().filter(|said| !said.value.is_empty());
    put(config, &[field, "topologyCategories"], categories, |list| json!(list));
    let datastores = file.file_share_datastores.as_ref().filter(|said| !said.value.is_empty());
    put(config, &[field, "fileVolumes", "vsanDataStoreUrl"], datastores, |list| json!(list));
    if !file.net_permissions.is_empty() {
        let all: Vec<Value> = file.net_permissions.iter().map(|said| json!(said.value)).collect();
        config.object["spec"][field]["fileVolumes"]["netPermissions"] = json!(all);
        for (at, said) in file.net_permissions.iter().enumerate() {
            let at = at.to_string();
            config.note(&["spec", field, "fileVolumes", "netPermissions", &at], &said.origin);
        }
    }
    for ([group, name], said) in &file.numbers {
        put(config, &[field, group, name], Some(said), |number| json!(number));
    }
    put(
        config,
        &[field, "migrationDatastoreUrl"],
        file.migration_datastore.as_ref(),
        |url| json!(url),
    );
    let mut all = Vec::new();
    for connection in connections.iter().filter(|connection| of_csi(connection)) {
        if let Some(said) = file.file_share_clusters.get(connection.address()) {
            let at = all.len().to_string();
            config.note(&["spec", field, "fileVolumes", "vsanClusters", &at], &said.origin);
            all.push(json!({"vsphereCloudConfig": connection.name, "clusters": said.value}));
        }
    }
    if !all.is_empty() {
        config.object["spec"][field]["fileVolumes"]["vsanClusters"] = json!(all);
    }
}

/// A registry that all drivers have is written once.
fn one_registry(config: &mut Draft) {
    let path = |field: &str| format!("/spec/{field}/values/images/registry");
    let fields: Vec<&str> = DRIVERS.iter().map(|(driver, _)| driver.field).collect();
    let there = |field: &&str| config.object["spec"].get(*field).is_some();
    let drivers: Vec<&str> = fields.into_iter().filter(there).collect();
    let registries: Vec<Option<Value>> = drivers.iter().map(|field| config.object.pointer(&path(field)).cloned()).collect();
    let Some(Some(first)) = registries.first().cloned() else { return };
    if registries.iter().any(|one| one.as_ref() != Some(&first)) {
        return;
    }
    let mut origin = None;
    for field in drivers {
        let steps = ["spec", field, "values", "images", "registry"].map(str::to_owned).to_vec();
        origin = origin.or(config.origins.remove(&steps));
        let spec = &mut config.object["spec"][field];
        remove(spec, &["values", "images", "registry"]);
    }
    if let Some(origin) = origin {
        config.set(&["spec", "images", "registry"], first, &origin);
    }
}

/// Removes a field, and what is empty without it.
fn remove(value: &mut Value, path: &[&str]) {
    let (Some((first, rest)), Some(fields)) = (path.split_first(), value.as_object_mut()) else {
        return;
    };
    if let Some(inner) = fields.get_mut(*first) {
        remove(inner, rest);
        if rest.is_empty() || inner.as_object().is_some_and(serde_json::Map::is_empty) {
            fields.shift_remove(*first);
        }
    }
}
