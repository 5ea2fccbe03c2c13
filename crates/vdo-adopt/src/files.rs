// SPDX-License-Identifier: Apache-2.0
//! Finds and reads the configuration files of both drivers in mounted Secrets and ConfigMaps, by the paths that the programs read.
//!
//! It also lists the Secrets and ConfigMaps that an adoption still has to read from the cluster (`missing`).

use crate::Installation;
use crate::cpi::{self, CpiFile};
use crate::credentials::Credentials;
use crate::csi::{self, CsiFile};
use crate::error::AdoptError;
use crate::mounts::{Place, content, file, folder, mounted};
use crate::origin::{Losses, Origin, Said, named};
use crate::workload::Role;
use crate::workload::{flags, variables};
use serde_json::Value;
use std::collections::BTreeSet;
use vdo_api::types::{DriverVersion, ObjectId};
use vdo_core::driverconfig::csi::FILE;
use vdo_core::drivers::{CLOUD_PROVIDER, CSI_SECRET, STORAGE};
use vdo_core::installed::Installed;

/// Where the CSI driver looks for its file without a variable that names another.
const CSI_FILE: &str = "/etc/cloud/csi-vsphere.conf";
/// Where the CSI driver keeps the identity that it made up itself.
const GENERATED_ID: &str = "vsphere-csi-cluster-id";

/// How much is read of an installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// The files, with the accounts, certificates and the identity that other objects have.
    Everything,
    /// Only what the files themselves say.
    Files,
}

/// A file, and who reads it.
struct Read<'a> {
    place: Place,
    bytes: Vec<u8>,
    by: &'a Installed,
    container: &'a Value,
}

impl Read<'_> {
    /// The content of another file of the same container, as text.
    fn beside(&self, installation: &Installation<'_>, depth: Depth, path: &str, key: &Origin) -> Result<String, AdoptError> {
        if depth == Depth::Files {
            return Ok(String::new());
        }
        let workload = named(self.by.object.identity());
        let nowhere = || AdoptError::NoFile {
            workload: format!("{workload} ({key})"),
            path: path.to_owned(),
        };
        let pod = self.by.object.pod_spec().ok_or_else(nowhere)?;
        let place = file(pod, self.container, self.by.object.namespace(), path).ok_or_else(nowhere)?;
        let bytes = installation.objects.content(&place, &workload)?;
        String::from_utf8(bytes).map_err(|_| crate::text::wrong("the file", "a text", &place.origin()))
    }
}

/// The file of the CSI driver; `None` where the driver does not run.
pub(crate) fn csi(installation: &Installation<'_>, depth: Depth) -> Result<Option<(CsiFile, Losses)>, AdoptError> {
    let workloads = installation.of(STORAGE);
    if workloads.is_empty() {
        return Ok(None);
    }
    let is_half = !workloads.iter().any(|one| is_controller(one));
    let found = match one_file(installation, &workloads, csi_path)? {
        None if is_half => left(installation, &workloads),
        found => found,
    };
    let Some(read) = found else {
        return match depth {
            Depth::Everything if is_half => Ok(Some(unknown(&workloads))),
            _ => Err(AdoptError::NoFile {
                workload: names(&workloads),
                path: CSI_FILE.to_owned(),
            }),
        };
    };
    let origin = read.place.origin();
    let ca = |path: &str, key: &Origin| read.beside(installation, depth, path, key);
    let (mut found, losses) = csi::read(&read.bytes, &origin, version(&workloads), &ca)?;
    if depth == Depth::Everything {
        generated_id(installation, read.by, &mut found)?;
    }
    Ok(Some((found, losses)))
}

/// The file that a controller has left behind when it was removed: the node plugin mounts none.
fn left<'a>(installation: &Installation<'_>, workloads: &[&'a Installed]) -> Option<Read<'a>> {
    workloads.iter().find_map(|by| {
        let place = Place {
            object: configuration(by),
            key: FILE.to_owned(),
        };
        let bytes = content(installation.objects.get(&place.object)?, FILE)?;
        let container = by.object.pod_spec()?["containers"].get(0)?;
        Some(Read {
            place,
            bytes,
            by,
            container,
        })
    })
}

/// The Secret in which the documentation of the driver has people put its file.
fn configuration(one: &Installed) -> ObjectId {
    ObjectId::new("", "Secret", one.object.namespace(), CSI_SECRET)
}

/// What is said of half an installation: that its file is lost, as one setting.
fn unknown(workloads: &[&Installed]) -> (CsiFile, Losses) {
    let mut losses = Losses::of("csi");
    losses.add(
        "file",
        Origin::new(names(workloads), ""),
        format!(
            "there is no controller and no Secret {CSI_SECRET}, so the settings in {FILE} (vCenters, cluster id and others) are unknown"
        ),
    );
    (CsiFile::default(), losses)
}

/// The names of workloads for people.
pub(crate) fn names(workloads: &[&Installed]) -> String {
    let names: Vec<String> = workloads.iter().map(|one| named(one.object.identity())).collect();
    names.join(" and ")
}

/// The identity that the driver made up, where its file names none. Both cannot be.
fn generated_id(installation: &Installation<'_>, by: &Installed, found: &mut CsiFile) -> Result<(), AdoptError> {
    let id = ObjectId::new("", "ConfigMap", by.object.namespace(), GENERATED_ID);
    let Some(map) = installation.objects.get(&id) else { return Ok(()) };
    let text = map.text("/data/clusterID");
    let origin = Origin::new(named(&id), "clusterID");
    match &found.cluster_id {
        _ if text.is_empty() => {}
        Some(said) if said.value == text => {}
        Some(said) => {
            return Err(AdoptError::Contradiction {
                what: "the cluster id".to_owned(),
                first: said.origin.clone(),
                second: origin,
            });
        }
        None => found.cluster_id = Some(Said::new(text.to_owned(), origin)),
    }
    Ok(())
}

/// The file of the cloud provider, with the accounts of its Secrets; `None` where it does not run.
pub(crate) fn cpi(installation: &Installation<'_>, depth: Depth) -> Result<Option<(CpiFile, Losses)>, AdoptError> {
    let workloads = installation.of(CLOUD_PROVIDER);
    let Some(first) = workloads.first() else { return Ok(None) };
    let Some(read) = one_file(installation, &workloads, cpi_path)? else {
        return Err(AdoptError::NoFile {
            workload: named(first.object.identity()),
            path: "the file of --cloud-config".to_owned(),
        });
    };
    let ca = |path: &str, key: &Origin| read.beside(installation, depth, path, key);
    let (mut found, mut losses) = cpi::read(&read.bytes, &read.place.origin(), &ca)?;
    if depth == Depth::Everything {
        add_accounts(installation, &read, &mut found, &mut losses)?;
    }
    Ok(Some((found, losses)))
}

/// Adds the accounts of the Secrets that the file of the cloud provider names.
fn add_accounts(installation: &Installation<'_>, read: &Read<'_>, found: &mut CpiFile, losses: &mut Losses) -> Result<(), AdoptError> {
    let by = read.place.origin().to_string();
    let directory = found.secrets_directory.as_ref().map(|said| said.value.clone());
    let pod = read.by.object.pod_spec().cloned().unwrap_or_default();
    let mounted = directory.map(|path| folder(&pod, read.container, read.by.object.namespace(), &path));
    let shared = found
        .secret
        .whole()
        .map(|(namespace, name)| (namespace.to_owned(), name.to_owned()));
    for one in &mut found.servers {
        let own = one.secret.whole().map(|(namespace, name)| (namespace.to_owned(), name.to_owned()));
        let secrets: Vec<ObjectId> = match (own.or_else(|| shared.clone()), &mounted) {
            (Some((namespace, name)), _) => vec![ObjectId::new("", "Secret", &namespace, &name)],
            (None, Some(mounted)) => mounted.clone(),
            (None, None) => Vec::new(),
        };
        for id in secrets {
            let Some(secret) = installation.objects.get(&id) else {
                return Err(AdoptError::Missing { object: named(&id), by });
            };
            Credentials::read(secret, losses).complete(&mut one.server);
        }
        one.server.complete()?;
    }
    Ok(())
}

/// The file that the containers of a driver read; the same for all of them.
fn one_file<'a>(
    installation: &Installation<'_>,
    workloads: &[&'a Installed],
    path: fn(&Value) -> Option<String>,
) -> Result<Option<Read<'a>>, AdoptError> {
    let mut found: Option<Read<'a>> = None;
    for by in workloads {
        let Some(pod) = by.object.pod_spec() else { continue };
        for container in pod["containers"].as_array().into_iter().flatten() {
            let Some(path) = path(container) else { continue };
            let Some(place) = file(pod, container, by.object.namespace(), &path) else {
                continue;
            };
            if found.as_ref().is_some_and(|found| found.place == place) {
                continue;
            }
            let bytes = installation.objects.content(&place, &named(by.object.identity()))?;
            match &found {
                Some(first) if first.bytes != bytes => {
                    return Err(AdoptError::Contradiction {
                        what: format!("the configuration of {}", by.driver.what),
                        first: first.place.origin(),
                        second: place.origin(),
                    });
                }
                Some(_) => {}
                None => {
                    found = Some(Read {
                        place,
                        bytes,
                        by,
                        container,
                    });
                }
            }
        }
    }
    Ok(found)
}

fn csi_path(container: &Value) -> Option<String> {
    let variables = variables(container);
    let named = variables.iter().find(|(name, _)| *name == "VSPHERE_CSI_CONFIG");
    Some(named.and_then(|(_, value)| *value).unwrap_or(CSI_FILE).to_owned())
}

fn cpi_path(container: &Value) -> Option<String> {
    flags(container).remove("cloud-config")
}

/// The version of a driver; the newest while its workloads are being changed.
pub(crate) fn version<'a>(workloads: &[&'a Installed]) -> Option<&'a DriverVersion> {
    let versions = workloads.iter().filter_map(|one| one.version.as_ref());
    versions.max()
}

/// The Secrets and ConfigMaps that are needed to read an installation and that are not among its objects yet. Which Secrets the cloud
/// provider uses is known once its file is.
#[must_use]
pub fn missing(installation: &Installation<'_>) -> BTreeSet<ObjectId> {
    let mut all = BTreeSet::new();
    for one in installation.of(CLOUD_PROVIDER).into_iter().chain(installation.of(STORAGE)) {
        let pod = one.object.pod_spec();
        all.extend(pod.into_iter().flat_map(|pod| mounted(pod, one.object.namespace())));
    }
    for one in installation.of(STORAGE) {
        let namespace = one.object.namespace();
        all.insert(ObjectId::new("", "ConfigMap", namespace, GENERATED_ID));
        all.insert(configuration(one));
        all.extend(states(one));
    }
    all.extend(accounts(installation));
    all.retain(|id| installation.objects.get(id).is_none());
    all
}

/// The Secrets that the file of the cloud provider names.
fn accounts(installation: &Installation<'_>) -> Vec<ObjectId> {
    let workloads = installation.of(CLOUD_PROVIDER);
    let Ok(Some(read)) = one_file(installation, &workloads, cpi_path) else {
        return Vec::new();
    };
    let no_ca = |_: &str, _: &Origin| Ok(String::new());
    let Ok((found, _)) = cpi::read(&read.bytes, &read.place.origin(), &no_ca) else {
        return Vec::new();
    };
    let secrets = found.servers.iter().map(|one| &one.secret).chain([&found.secret]);
    let named = secrets.filter_map(|secret| secret.whole());
    named
        .map(|(namespace, name)| ObjectId::new("", "Secret", namespace, name))
        .collect()
}

/// The ConfigMap with the feature states of a workload of the CSI driver.
pub(crate) fn states(one: &Installed) -> Option<ObjectId> {
    let pod = one.object.pod_spec()?;
    let flags = pod["containers"].as_array()?.iter().map(flags);
    let name = flags.clone().find_map(|mut flags| flags.remove("fss-name"))?;
    let namespace = flags.clone().find_map(|mut flags| flags.remove("fss-namespace"));
    // `$(CSI_NAMESPACE)` is the namespace of the pods.
    let namespace = namespace.filter(|namespace| !namespace.contains('$') && !namespace.is_empty());
    let namespace = namespace.unwrap_or_else(|| one.object.namespace().to_owned());
    Some(ObjectId::new("", "ConfigMap", &namespace, &name))
}

/// The first workload of the CSI driver that is a controller, else any.
pub(crate) fn controller<'a>(workloads: &[&'a Installed]) -> Option<&'a Installed> {
    workloads.iter().find(|one| is_controller(one)).or(workloads.first()).copied()
}

fn is_controller(one: &Installed) -> bool {
    Role::of(&one.object, STORAGE.name) == Some(Role::Controller)
}
