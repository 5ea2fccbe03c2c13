// SPDX-License-Identifier: Apache-2.0
//! Converts the file of the CSI driver (`csi-vsphere.conf`) into settings and losses; `ini.rs` parses the text.

use crate::error::AdoptError;
use crate::ini::ini;
use crate::origin::{Losses, Origin, Said};
use crate::server::{Server, Trusting};
use crate::text::{boolean, list, number, port, thumbprint, wrong};
use std::collections::BTreeMap;
use vdo_api::api::{NetPermission, Permission};
use vdo_api::types::{DriverVersion, Secret};
use vdo_core::driverconfig::csi::{self, since};
use vdo_core::driverconfig::gcfg_reader::{Contents, Entry};

/// What the file of the CSI driver says.
#[derive(Debug, Default)]
pub(crate) struct CsiFile {
    pub servers: Vec<Server>,
    pub cluster_id: Option<Said<String>>,
    pub cluster_distribution: Option<Said<String>>,
    pub topology_categories: Option<Said<Vec<String>>>,
    pub net_permissions: Vec<Said<NetPermission>>,
    pub file_share_datastores: Option<Said<Vec<String>>>,
    /// Numbers of the specification, each by its path in it.
    pub numbers: BTreeMap<[&'static str; 2], Said<i32>>,
    /// Clusters for file volumes, by the address of the vCenter.
    pub file_share_clusters: BTreeMap<String, Said<Vec<String>>>,
    pub migration_datastore: Option<Said<String>>,
}

/// A number that a field of the specification has.
struct Number {
    key: &'static str,
    field: [&'static str; 2],
    /// What the driver does without it; where a file says the same no field is set.
    default: &'static [i64],
    /// The largest that the field takes.
    most: i32,
    /// The first version that reads it.
    since: &'static str,
}

const fn tuning(setting: since::Key, default: &'static [i64]) -> Number {
    Number {
        key: setting.key,
        field: setting.field,
        default,
        most: i32::MAX,
        since: setting.since,
    }
}

const fn snapshots(key: &'static str, field: &'static str, default: &'static [i64]) -> Number {
    Number {
        key,
        field: ["snapshots", field],
        default,
        most: 32,
        since: since::SNAPSHOTS,
    }
}

const TUNING: [Number; 4] = [
    tuning(since::QUERY_LIMIT, &[10_000]),
    tuning(since::LIST_VOLUME_THRESHOLD, &[50]),
    tuning(since::AUTH_CHECK, &[5]),
    tuning(since::PREFERRED_DATASTORES, &[0, 5]),
];

const SNAPSHOTS: [Number; 3] = [
    snapshots("global-max-snapshots-per-block-volume", "maxPerVolume", &[3]),
    snapshots("granular-max-snapshots-per-block-volume-vsan", "maxPerVsanVolume", &[]),
    snapshots("granular-max-snapshots-per-block-volume-vvol", "maxPerVvolVolume", &[]),
];

/// Keys that no field has, each with what the driver does without them. Where a file says the same nothing is lost.
const DEFAULTS: [(&str, &[&str]); 5] = [
    ("cnsregistervolumes-cleanup-intervalinmin", &["0", "720"]),
    ("cnspvcprotection-cleanup-intervalinmin", &["0", "10"]),
    ("volumemigration-cr-cleanup-intervalinmin", &["0", "120"]),
    ("cnsvolumeoperationrequest-cleanup-intervalinmin", &["0"]),
    ("supervisor-id", &[]),
];

pub(crate) const NO_FIELD: &str = "VDO has no field for this setting";
const UNKNOWN: &str = "the driver does not know this setting";

/// One reading of the file.
struct Reading<'a> {
    file: &'a Origin,
    version: Option<&'a DriverVersion>,
    /// The content of a file beside this one.
    ca: &'a dyn Fn(&str, &Origin) -> Result<String, AdoptError>,
    found: CsiFile,
    global: Server,
    losses: Losses,
}

/// Reads the file of a version; the newest grammar where that is not known.
///
/// # Errors
/// Where the driver refuses the file, or two of its lines contradict each other.
pub(crate) fn read(
    bytes: &[u8],
    file: &Origin,
    version: Option<&DriverVersion>,
    ca: &dyn Fn(&str, &Origin) -> Result<String, AdoptError>,
) -> Result<(CsiFile, Losses), AdoptError> {
    let contents = ini(bytes, file)?;
    let mut reading = Reading {
        file,
        version,
        ca,
        found: CsiFile::default(),
        global: Server::new("", file.clone()),
        losses: Losses::of("csi"),
    };
    reading.sections(&contents);
    for entry in &contents.entries {
        reading.entry(entry, &file.line(entry.line))?;
    }
    let Reading {
        mut found, global, losses, ..
    } = reading;
    if found.servers.is_empty() {
        return Err(AdoptError::NoServer { origin: file.clone() });
    }
    for server in &mut found.servers {
        server.inherit(&global);
        server.complete()?;
    }
    Ok((found, losses))
}

impl Reading<'_> {
    /// A section without keys is a vCenter, too: all of its values may be those of `[Global]`.
    fn sections(&mut self, contents: &Contents) {
        for section in &contents.sections {
            let origin = self.file.line(section.line);
            match (section.name.as_str(), &section.subsection) {
                ("virtualcenter", Some(server)) => self.found.servers.push(Server::new(server, origin)),
                ("netpermissions", Some(_)) => {
                    let everyone = NetPermission {
                        ips: "*".to_owned(),
                        ..NetPermission::default()
                    };
                    self.found.net_permissions.push(Said::new(everyone, origin));
                }
                _ => {}
            }
        }
    }

    fn before(&self, version: &str) -> bool {
        let limit = version.parse::<DriverVersion>().ok();
        self.version.is_some_and(|own| limit.is_some_and(|limit| *own < limit))
    }

    fn entry(&mut self, entry: &Entry, origin: &Origin) -> Result<(), AdoptError> {
        let text = entry.value.as_deref().unwrap_or_default();
        let is_switch = matches!(entry.key.as_str(), "insecure-flag" | "rootsquash");
        match &entry.value {
            None if !is_switch => return Err(wrong(&entry.key, "followed by a value", origin)),
            Some(value) if value.is_empty() && !is_switch => return Ok(()),
            _ => {}
        }
        match (entry.section.as_str(), entry.subsection.as_deref()) {
            ("global", None) => self.global(entry, text, origin),
            ("virtualcenter", Some(server)) => self.vcenter(server, entry, text, origin),
            ("netpermissions", Some(_)) => self.net_permission(entry, text, origin),
            ("labels", None) => {
                self.label(entry, text, origin);
                Ok(())
            }
            ("snapshot", None) => self.snapshot(entry, text, origin),
            ("topologycategory", Some(category)) => {
                if entry.key != "label" {
                    self.lose(entry, origin, UNKNOWN);
                } else if text != format!("topology.csi.vmware.com/{category}") {
                    let because = "the VDOConfig supports only the default label of a tag category, but the node affinity of existing \
                                   volumes contains this other label";
                    self.lose(entry, origin, because);
                }
                Ok(())
            }
            _ => {
                self.lose(entry, origin, UNKNOWN);
                Ok(())
            }
        }
    }

    fn lose(&mut self, entry: &Entry, origin: &Origin, because: &str) {
        let section = match &entry.subsection {
            Some(subsection) => format!("{}[{subsection}]", entry.section),
            None => entry.section.clone(),
        };
        self.losses.add(&format!("{section}/{}", entry.key), origin.clone(), because);
    }

    fn global(&mut self, entry: &Entry, text: &str, origin: &Origin) -> Result<(), AdoptError> {
        let said = || Some(Said::new(text.to_owned(), origin.clone()));
        match entry.key.as_str() {
            "cluster-id" => self.found.cluster_id = said(),
            "cluster-distribution" => self.found.cluster_distribution = said(),
            key if Server::has(key) => {
                let trusting = Trusting { ca: self.ca };
                self.global.set(entry, origin, &trusting)?;
            }
            key if TUNING.iter().any(|number| number.key == key) => self.number(&TUNING, entry, text, origin)?,
            "cnsvolumeoperationrequest-cleanup-intervalinmin" if text == if self.before("3.6.0") { "1440" } else { "15" } => {}
            "vc-client-timeout" if !self.before("3.3.1") => {}
            key => match DEFAULTS.iter().find(|(name, _)| *name == key) {
                Some((_, same)) if same.contains(&text) => {}
                Some(_) => self.lose(entry, origin, NO_FIELD),
                None if key == "vc-client-timeout" => self.lose(entry, origin, NO_FIELD),
                None => self.lose(entry, origin, UNKNOWN),
            },
        }
        Ok(())
    }

    fn vcenter(&mut self, name: &str, entry: &Entry, text: &str, origin: &Origin) -> Result<(), AdoptError> {
        match entry.key.as_str() {
            // Older versions have one way of trust for all, in [Global].
            "ca-file" | "thumbprint" if self.before(since::TRUST_PER_VCENTER) => {
                self.lose(entry, origin, "this version of the driver reads this setting only in [Global]");
            }
            key if Server::has(key) => {
                let trusting = Trusting { ca: self.ca };
                if let Some(server) = self.found.servers.iter_mut().find(|server| server.address == name) {
                    server.set(entry, origin, &trusting)?;
                }
            }
            "targetvsanfilesharedatastoreurls" if self.before(since::WITHOUT_FILE_SHARE_DATASTORES) => self.datastores(entry, text, origin),
            "targetvsanfilesharedatastoreurls" => self.lose(entry, origin, "driver versions since 3.2.0 do not read this setting"),
            "targetvsanfileshareclusters" if list(text).iter().all(|id| is_cluster(id)) => {
                let clusters = Said::new(list(text), origin.clone());
                self.found.file_share_clusters.insert(name.to_owned(), clusters);
            }
            "targetvsanfileshareclusters" => self.lose(entry, origin, "the field accepts only managed object IDs such as domain-c8"),
            "migration-datastore-url" if self.before(since::MIGRATION_DATASTORE) => {
                self.lose(entry, origin, "only driver versions since 3.0.0 read this setting")
            }
            "migration-datastore-url" if self.found.servers.len() > 1 => {
                self.lose(entry, origin, "the driver does not read this setting if there are several vCenters");
            }
            "migration-datastore-url" => self.found.migration_datastore = Some(Said::new(text.to_owned(), origin.clone())),
            "vc-session-manager-url" | "vc-session-manager-token" => self.lose(entry, origin, NO_FIELD),
            _ => self.lose(entry, origin, UNKNOWN),
        }
        Ok(())
    }

    /// One list of the specification is for all vCenters, so that they must have the same.
    fn datastores(&mut self, entry: &Entry, text: &str, origin: &Origin) {
        let urls = list(text);
        match &self.found.file_share_datastores {
            Some(said) if said.value != urls => self.lose(
                entry,
                origin,
                "VDO has one list of datastores for all vCenters, and another vCenter of this file has a different list",
            ),
            Some(_) => {}
            None => self.found.file_share_datastores = Some(Said::new(urls, origin.clone())),
        }
    }

    fn net_permission(&mut self, entry: &Entry, text: &str, origin: &Origin) -> Result<(), AdoptError> {
        let line = |said: &Said<NetPermission>| said.origin.line;
        // The keys of a section follow its header.
        let last = self.found.net_permissions.iter_mut().filter(|said| line(said) <= origin.line);
        let Some(said) = last.last() else { return Ok(()) };
        match entry.key.as_str() {
            "ips" if !csi::is_clients(text) => {
                return Err(wrong("ips", "an address, a subnet, a range or *", origin));
            }
            "ips" => text.clone_into(&mut said.value.ips),
            "permissions" => {
                said.value.permissions = Some(match text {
                    "READ_WRITE" => Permission::ReadWrite,
                    "READ_ONLY" => Permission::ReadOnly,
                    "NO_ACCESS" => Permission::NoAccess,
                    _ => return Err(wrong("permissions", "READ_WRITE, READ_ONLY or NO_ACCESS", origin)),
                });
            }
            "rootsquash" => said.value.root_squash = Some(boolean(entry.value.as_deref(), "rootsquash", origin)?),
            _ => self.lose(entry, origin, UNKNOWN),
        }
        Ok(())
    }

    fn label(&mut self, entry: &Entry, text: &str, origin: &Origin) {
        match entry.key.as_str() {
            "topology-categories" => self.found.topology_categories = Some(Said::new(list(text), origin.clone())),
            "zone" | "region" => {
                let because = "the field topologyCategories replaces this setting; nodes and volumes then get other labels";
                self.lose(entry, origin, because);
            }
            _ => self.lose(entry, origin, UNKNOWN),
        }
    }

    fn snapshot(&mut self, entry: &Entry, text: &str, origin: &Origin) -> Result<(), AdoptError> {
        match SNAPSHOTS.iter().any(|number| number.key == entry.key) {
            true => self.number(&SNAPSHOTS, entry, text, origin),
            false => {
                self.lose(entry, origin, UNKNOWN);
                Ok(())
            }
        }
    }

    /// A number of one of these fields.
    fn number(&mut self, fields: &[Number], entry: &Entry, text: &str, origin: &Origin) -> Result<(), AdoptError> {
        let Some(known) = fields.iter().find(|number| number.key == entry.key) else {
            return Ok(());
        };
        let value = number(text, &entry.key, origin)?;
        if known.default.contains(&value) {
            self.found.numbers.remove(&known.field);
            return Ok(());
        }
        match i32::try_from(value) {
            _ if self.before(known.since) => self.lose(entry, origin, "this version of the driver does not read this setting"),
            Ok(value) if (1..=known.most).contains(&value) => {
                self.found.numbers.insert(known.field, Said::new(value, origin.clone()));
            }
            _ if known.most == 32 => self.lose(entry, origin, "the field accepts only 1 to 32"),
            _ => self.lose(entry, origin, "the field accepts only numbers of 1 or more"),
        }
        Ok(())
    }
}

/// Whether a text is the managed object ID of a cluster.
fn is_cluster(text: &str) -> bool {
    let digits = text.strip_prefix("domain-c").unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// The parts of a section that every vCenter has.
impl Server {
    /// Whether a key is one of them.
    pub(crate) fn has(key: &str) -> bool {
        matches!(
            key,
            "user" | "password" | "port" | "insecure-flag" | "ca-file" | "thumbprint" | "datacenters"
        )
    }

    /// Takes the value of such a key.
    pub(crate) fn set(&mut self, entry: &Entry, origin: &Origin, trusting: &Trusting<'_>) -> Result<(), AdoptError> {
        let text = entry.value.as_deref().unwrap_or_default();
        let key = entry.key.as_str();
        let origin = || origin.clone();
        match key {
            "user" => self.user = Some(Said::new(text.to_owned(), origin())),
            "password" => self.password = Some(Said::new(Secret::new(text), origin())),
            "port" => self.port = Some(Said::new(port(text, key, &origin())?, origin())),
            "insecure-flag" => {
                let insecure = boolean(entry.value.as_deref(), key, &origin())?;
                self.insecure = Some(Said::new(insecure, origin()));
            }
            "ca-file" => self.ca = Some(Said::new((trusting.ca)(text, &origin())?, origin())),
            "thumbprint" => self.thumbprint = Some(Said::new(thumbprint(text, key, &origin())?, origin())),
            "datacenters" => self.datacenters = Some(Said::new(list(text), origin())),
            _ => {}
        }
        Ok(())
    }
}
