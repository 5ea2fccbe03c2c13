// SPDX-License-Identifier: Apache-2.0
//! The objects that `vdoctl selftest` creates: namespace, claims, snapshot, and pods with their script. Pure.

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use vdo_api::types::Digest;

/// The label of a namespace that a selftest has made.
pub(super) const OURS: &str = "vdo.vmware.com/selftest";
/// Whose run it is, and a number that grows as long as the run lives.
pub(super) const BEAT: &str = "vdo.vmware.com/selftest-beat";
pub(super) const SNAPSHOTS: &str = "snapshot.storage.k8s.io/v1";
/// How large claims are, and how large they become.
pub(super) const SIZE: &str = "1Gi";
pub(super) const LARGER: &str = "2Gi";
/// A file system of the smaller volume has fewer kilobytes.
const SMALLER_KILOBYTES: &str = "1048576";
/// A user that no image needs to know.
const USER: u32 = 65532;

/// Writes a text that only this run writes, and reads it back. The reader makes the same text again, so that it needs nothing of the writer.
const SCRIPT: &str = r#"set -eu
file="/data/vdo-selftest"
content() { i=0; while [ "$i" -lt 20000 ]; do echo "$RUN $i"; i=$((i+1)); done; }
if [ "$ROLE" = writer ]; then content > "$file"; sync; fi
wanted=$(content | sha256sum); found=$(sha256sum < "$file")
if [ "$wanted" != "$found" ]; then echo "the data differs: sha256 $found, expected $wanted"; exit 1; fi
if [ -n "$MORE_THAN" ]; then
  set -- $(df -Pk "$file" | tail -n 1)
  if [ "$2" -le "$MORE_THAN" ]; then echo "the file system has $2 KiB, expected more than $MORE_THAN"; exit 1; fi
fi
"#;

/// What the objects of a run have in common.
#[derive(Debug, Clone, Default)]
pub(super) struct Setting {
    /// The namespace.
    pub namespace: String,
    /// What only this run writes.
    pub run: String,
    /// The StorageClass.
    pub class: String,
    /// The access mode.
    pub access_mode: String,
    /// The image of the pods.
    pub image: String,
    /// Whether OpenShift chooses the user.
    pub user_is_assigned: bool,
}

/// A zone, or the cluster as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// The end of the names of its objects; empty for the only place.
    pub suffix: String,
    /// The labels of its nodes.
    pub labels: BTreeMap<String, String>,
}

impl Place {
    /// How people call it.
    pub(super) fn zone(&self) -> String {
        self.labels.values().cloned().collect::<Vec<_>>().join("/")
    }

    /// The name of an object in it.
    pub(super) fn named(&self, name: &str) -> String {
        format!("{name}{}", self.suffix)
    }
}

/// What a pod does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Task<'a> {
    /// Writes and reads.
    Write,
    /// Reads.
    Read,
    /// Reads on another node than this one; the file system has grown.
    ReadElsewhere { not_on: &'a str, grown: bool },
}

impl Setting {
    pub(super) fn namespace(&self) -> Value {
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {
            "name": self.namespace,
            "labels": {OURS: "true", "pod-security.kubernetes.io/enforce": "restricted"},
            "annotations": {BEAT: format!("{}/0", self.run)},
        }})
    }

    fn metadata(&self, name: &str) -> Value {
        json!({"name": name, "namespace": self.namespace, "labels": {OURS: "true"}})
    }

    /// A claim, empty or from a snapshot.
    pub(super) fn claim(&self, name: &str, size: &str, snapshot: Option<&str>) -> Value {
        let mut spec =
            json!({"accessModes": [self.access_mode], "storageClassName": self.class, "resources": {"requests": {"storage": size}}});
        if let Some(snapshot) = snapshot {
            spec["dataSource"] = json!({"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": snapshot});
        }
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": self.metadata(name), "spec": spec})
    }

    pub(super) fn snapshot(&self, name: &str, class: &str, claim: &str) -> Value {
        json!({"apiVersion": SNAPSHOTS, "kind": "VolumeSnapshot", "metadata": self.metadata(name),
            "spec": {"volumeSnapshotClassName": class, "source": {"persistentVolumeClaimName": claim}}})
    }

    /// A pod that does its task and ends. It satisfies the Pod Security Standard restricted and OpenShift's restricted-v2.
    pub(super) fn pod(&self, name: &str, claim: &str, place: &Place, task: Task<'_>) -> Value {
        let mut security = json!({"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}});
        if !self.user_is_assigned {
            for field in ["runAsUser", "runAsGroup", "fsGroup"] {
                security[field] = USER.into();
            }
        }
        let (role, more_than) = match task {
            Task::Write => ("writer", ""),
            Task::Read | Task::ReadElsewhere { grown: false, .. } => ("reader", ""),
            Task::ReadElsewhere { grown: true, .. } => ("reader", SMALLER_KILOBYTES),
        };
        let env: Vec<Value> = [("RUN", self.run.as_str()), ("ROLE", role), ("MORE_THAN", more_than)]
            .iter()
            .map(|(name, value)| json!({"name": name, "value": value}))
            .collect();
        let mut spec = json!({
            "restartPolicy": "Never",
            "automountServiceAccountToken": false,
            "terminationGracePeriodSeconds": 5,
            "securityContext": security,
            "containers": [{
                "name": "selftest", "image": self.image, "imagePullPolicy": "IfNotPresent",
                "command": ["/bin/sh", "-c", SCRIPT], "env": env,
                "terminationMessagePolicy": "FallbackToLogsOnError",
                "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"cpu": "500m", "memory": "64Mi"}},
                "securityContext": {"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]}},
                "volumeMounts": [{"name": "data", "mountPath": "/data"}],
            }],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}],
        });
        if let Some(fields) = spec.as_object_mut() {
            placed(fields, place, task);
        }
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": self.metadata(name), "spec": spec})
    }

    /// Every object that a run in one place makes, for a dry run.
    pub(super) fn all(&self, place: &Place, snapshot_class: Option<&str>) -> Vec<Value> {
        let name = |name: &str| place.named(name);
        let mut all = vec![
            self.claim(&name("data"), SIZE, None),
            self.pod(&name("writer"), &name("data"), place, Task::Write),
        ];
        if let Some(class) = snapshot_class {
            all.push(self.snapshot(&name("snapshot"), class, &name("data")));
            all.push(self.claim(&name("restored"), SIZE, Some(&name("snapshot"))));
            all.push(self.pod(&name("restored-reader"), &name("restored"), place, Task::Read));
        }
        let not_on = "node-of-the-writer";
        let elsewhere = Task::ReadElsewhere { not_on, grown: false };
        all.push(self.pod(&name("reader"), &name("data"), place, elsewhere));
        all
    }
}

fn placed(spec: &mut Map<String, Value>, place: &Place, task: Task<'_>) {
    if !place.labels.is_empty() {
        spec.insert("nodeSelector".into(), json!(place.labels));
    }
    if let Task::ReadElsewhere { not_on, .. } = task {
        // By name: the label kubernetes.io/hostname may have another value.
        let terms = json!([{"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": [not_on]}]}]);
        let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}});
        spec.insert("affinity".into(), affinity);
    }
}

/// The name that Kubernetes gives the attachment of a volume of the driver to a node, from the volume's handle.
pub(super) fn attachment_name(handle: &str, driver: &str, node: &str) -> String {
    format!("csi-{}", Digest::of(format!("{handle}{driver}{node}").as_bytes()).hex())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(user_is_assigned: bool) -> Setting {
        Setting {
            namespace: "ns".into(),
            run: "r".into(),
            class: "fast".into(),
            access_mode: "ReadWriteOnce".into(),
            image: "i".into(),
            user_is_assigned,
        }
    }

    #[test]
    fn pod_of_selftest_is_restricted_and_leaves_the_user_to_openshift() {
        for assigned in [false, true] {
            let pod = setting(assigned).pod("p", "c", &Place::default(), Task::Write);
            let security = &pod["spec"]["securityContext"];
            assert_eq!(security["runAsNonRoot"], true);
            assert_eq!(security["seccompProfile"]["type"], "RuntimeDefault");
            for field in ["runAsUser", "runAsGroup", "fsGroup"] {
                assert_eq!(security[field].is_null(), assigned, "{field}");
            }
            let container = &pod["spec"]["containers"][0]["securityContext"];
            assert_eq!(container["allowPrivilegeEscalation"], false);
            assert_eq!(container["capabilities"]["drop"], json!(["ALL"]));
        }
    }

    #[test]
    fn reader_of_selftest_is_placed_elsewhere_and_in_the_zone() {
        let place = Place {
            suffix: "-1".into(),
            labels: [("zone".to_owned(), "z-1".to_owned())].into(),
        };
        let task = Task::ReadElsewhere {
            not_on: "w-1",
            grown: true,
        };
        let pod = setting(false).pod("p", "c", &place, task);
        let term =
            pod.pointer("/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchFields/0");
        assert_eq!(term, Some(&json!({"key": "metadata.name", "operator": "NotIn", "values": ["w-1"]})));
        assert_eq!(pod["spec"]["nodeSelector"], json!({"zone": "z-1"}));
        let env = pod["spec"]["containers"][0]["env"].to_string();
        assert!(env.contains(SMALLER_KILOBYTES) && env.contains("reader"), "{env}");
        assert_eq!((place.zone(), place.named("data")), ("z-1".into(), "data-1".into()));
    }

    /// The script does what its pod is for: with a shell of this machine, in a folder of its own.
    #[test]
    fn script_of_selftest_notices_data_that_differs() {
        let folder = tempfile::tempdir().expect("a folder");
        let script = SCRIPT.replace("/data", &folder.path().display().to_string());
        let run = |role: &str, run: &str, more_than: &str| {
            let mut shell = std::process::Command::new("/bin/sh");
            shell
                .args(["-c", &script])
                .env("ROLE", role)
                .env("RUN", run)
                .env("MORE_THAN", more_than);
            let out = shell.output().expect("a shell");
            (out.status.success(), String::from_utf8_lossy(&out.stdout).into_owned())
        };
        assert!(!run("reader", "a", "").0, "there is nothing yet");
        assert_eq!(run("writer", "a", ""), (true, String::new()));
        assert_eq!(run("reader", "a", "1"), (true, String::new()));
        let (passed, out) = run("reader", "b", "");
        assert!(!passed && out.starts_with("the data differs"), "{out}");
        let (passed, out) = run("reader", "a", "99999999999999");
        assert!(!passed && out.starts_with("the file system has "), "{out}");
    }

    #[test]
    fn attachment_has_the_name_that_kubernetes_gives_it() {
        // printf 'handlecsi.vsphere.vmware.comnode' | sha256sum
        let name = attachment_name("handle", "csi.vsphere.vmware.com", "node");
        assert_eq!(name, "csi-51bdc5a3f9d1e21564dd9fe1a09caaf2a6be549211bae4ea0c4fa88630dfd799");
    }
}
