// SPDX-License-Identifier: Apache-2.0
//! The messages and commands when a user has to choose between several cluster ids (pure).

use super::ClusterId;
use kube::ResourceExt;
use vdo_api::api::{Reason, STATE, TAKE_OVER_CLUSTER_ID, VDOConfig};
use vdo_api::types::{ObjectId, count, name_list, with_remedy};
use vdo_core::drivers::STORAGE;
use vdo_core::install::OPERATOR;
use vdo_core::plan::Wait;

/// Why an identity is not certain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::reconcile) enum Doubt {
    /// The stored inventory has this other one.
    Stored(String),
    /// Installations and volumes of this cluster have several, each with the place where it was found.
    Several(Vec<(String, String)>),
    /// The cluster has so many volumes of the driver, and no place says under which identity.
    Unknown {
        /// How many PersistentVolumes.
        volumes: usize,
        /// Configuration that the operator has no right to read.
        unreadable: Vec<ObjectId>,
        /// Configuration in namespaces of others, which only a person judges.
        elsewhere: Vec<ObjectId>,
    },
}

/// The commands that let the operator read an object: it lists by name.
fn granted(id: &ObjectId, home: &str) -> String {
    let (namespace, name) = (&id.namespace, &id.name);
    let (resource, role) = (format!("{}s", id.kind().to_lowercase()), format!("{OPERATOR}-reads-{name}"));
    format!(
        "kubectl --namespace {namespace} create role {role} --verb list --resource {resource} --resource-name {name}; kubectl --namespace \
         {namespace} create rolebinding {role} --role {role} --serviceaccount {home}:{OPERATOR}"
    )
}

fn listed(introduction: &str, ids: &[ObjectId]) -> String {
    let names: Vec<String> = ids.iter().map(ToString::to_string).collect();
    match names.as_slice() {
        [] => String::new(),
        names => format!("; {introduction}: {}", name_list(names)),
    }
}

/// What the CSI driver waits for where a person has to confirm its id.
pub(in crate::reconcile) fn doubtful(config: &VDOConfig, found: &ClusterId) -> Option<Wait> {
    let now = &found.id;
    let home = config.namespace().unwrap_or_default();
    let name = config.name_any();
    let annotate = |id: &str| format!("kubectl -n {home} annotate --overwrite vdoconfig {name} {TAKE_OVER_CLUSTER_ID}={id}");
    let set = |id: &str| {
        format!(
            "kubectl -n {home} patch vdoconfig {name} --type merge --patch '{{\"spec\":{{\"storageProvider\":{{\"clusterId\":\"{id}\"}}}}}}'"
        )
    };
    let (reason, what, remedy) = match found.doubt.as_ref()? {
        Doubt::Stored(stored) => (
            Reason::ClusterIdChanged,
            format!(
                "the operator does not change the CSI driver: \
                 Secret {STATE} contains cluster id {stored}, but the id of this cluster is {now}; the cause may be a manual change, or \
                 the restore of a backup of another cluster"
            ),
            format!("To keep {now}: {}. To change it to {stored}: {}.", annotate(now), annotate(stored)),
        ),
        Doubt::Several(places) => {
            let each: Vec<String> = places.iter().map(|(id, place)| format!("{id} ({place})")).collect();
            (
                Reason::ClusterIdAmbiguous,
                format!(
                    "the operator does not install the CSI driver: this cluster has several cluster ids: {}",
                    each.join(", ")
                ),
                format!(
                    "Find out under which of these ids the volumes are registered in vCenter, and set this id: {}.",
                    set("ID")
                ),
            )
        }
        Doubt::Unknown {
            volumes,
            unreadable,
            elsewhere,
        } => {
            let hidden = listed("the operator lacks the right to read", unreadable)
                + &listed(
                    "the operator does not read the following, because a tenant may have written it",
                    elsewhere,
                );
            let grants = unreadable
                .iter()
                .map(|id| format!(" Let the operator read {id}: {}.", granted(id, &home)));
            let person = if elsewhere.is_empty() {
                ""
            } else {
                " vdoctl adopt reads such configurations in every namespace, with your rights."
            };
            let more: String = grants.chain([person.to_owned()]).collect();
            (
                Reason::ClusterIdUnknown,
                format!(
                    "the operator does not install the CSI driver: the cluster has {} of this driver, but neither the configuration of an \
                     installed driver nor a vCenter contains the cluster id of these volumes{hidden}",
                    count(*volumes, "PersistentVolume")
                ),
                format!(
                    "The id is in the configuration of the driver that created the volumes (csi-vsphere.conf, cluster-id), or in vCenter \
                     (govc volume.ls -json). Set this id: {}. If no volume is registered under any id, for example after a restore, set the \
                     id of this cluster: {}.{more}",
                    set("ID"),
                    set(now)
                ),
            )
        }
    };
    Some(Wait {
        driver: STORAGE.name.to_owned(),
        reason,
        message: with_remedy(&what, &remedy),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The exact right: verb, resource, name and namespace, for the operator's account.
    #[test]
    fn cluster_id_unknown_names_the_right_to_read_a_configuration() {
        let id = |namespace: &str, name: &str| ObjectId::new("", "Secret", namespace, name);
        let mut config = VDOConfig::new("vdo", vdo_api::api::VDOConfigSpec::default());
        config.metadata.namespace = Some("home".to_owned());
        let found = ClusterId {
            id: "uid".to_owned(),
            used: false,
            doubt: Some(Doubt::Unknown {
                volumes: 2,
                unreadable: vec![id("kube-system", "csi-file")],
                elsewhere: vec![id("storage", "conf")],
            }),
        };
        let message = doubtful(&config, &found).expect("it waits").message;
        for words in [
            "the operator lacks the right to read: Secret kube-system/csi-file",
            "the operator does not read the following, because a tenant may have written it: Secret storage/conf",
            "kubectl --namespace kube-system create role vdo-operator-reads-csi-file --verb list --resource secrets --resource-name csi-file",
            "create rolebinding vdo-operator-reads-csi-file --role vdo-operator-reads-csi-file --serviceaccount home:vdo-operator",
            "vdoctl adopt reads such configurations in every namespace",
        ] {
            assert!(message.contains(words), "{words} is not in {message}");
        }
    }
}
