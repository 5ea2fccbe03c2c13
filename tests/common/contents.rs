// SPDX-License-Identifier: Apache-2.0
//! Contents that no chart of the drivers has, for objects that the operator may write.

use serde_json::{Value, json};
use vdo_core::chart::{self, Context};

/// The objects of the newest version of a driver that are written by the operator.
pub fn newest(driver: &str) -> Vec<Value> {
    let source = vdo_source::fetch::embedded::sources().remove(driver).expect("a driver");
    let version = source.versions().into_iter().max().expect("a version");
    of_version(driver, &version)
}

/// The same of one version, with everything that the chart can render.
pub fn of_version(driver: &str, version: &vdo_api::types::DriverVersion) -> Vec<Value> {
    let source = vdo_source::fetch::embedded::sources().remove(driver).expect("a driver");
    let opened = chart::open(&chart::package(&source, version).expect("a package")).expect("a chart");
    let objects = chart::render(&opened, &chart::everything(&opened), &Context::default()).expect("objects");
    let written = |object: &Value| object["kind"] != "Namespace" && !object["apiVersion"].as_str().unwrap_or_default().starts_with("rbac");
    objects.into_iter().filter(written).collect()
}

/// Puts a value at a place, which is a JSON pointer; `-` at its end appends to a list. Maps on the way are created.
pub fn with(object: &Value, place: &str, value: Value) -> Value {
    let mut changed = object.clone();
    let mut at = &mut changed;
    for step in place.split('/').skip(1) {
        let end = at.as_array_mut().filter(|_| step == "-").map(|items| {
            items.push(Value::Null);
            items.len() - 1
        });
        at = match end {
            Some(end) => &mut at[end],
            None if at.is_array() => &mut at[step.parse::<usize>().expect("a number")],
            None => &mut at[step.replace("~1", "/")],
        };
    }
    *at = value;
    changed
}

fn pods() -> Vec<(&'static str, Value)> {
    vec![
        ("hostPID", json!(true)),
        ("hostIPC", json!(true)),
        ("hostUsers", json!(true)),
        ("nodeName", json!("cp-1")),
        ("hostAliases", json!([{"ip": "192.0.2.1", "hostnames": ["vcenter"]}])),
        ("runtimeClassName", json!("other")),
        ("shareProcessNamespace", json!(true)),
        ("automountServiceAccountToken", json!(true)),
        ("serviceAccountName", json!("default")),
        ("schedulerName", json!("other")),
        ("dnsConfig", json!({"nameservers": ["192.0.2.1"]})),
        ("priorityClassName", json!("other")),
        ("hostname", json!("kubernetes")),
        ("subdomain", json!("other")),
        ("setHostnameAsFQDN", json!(true)),
        ("overhead", json!({"cpu": "1"})),
        ("readinessGates", json!([{"conditionType": "a/b"}])),
        ("resourceClaims", json!([{"name": "x", "resourceClaimName": "y"}])),
        ("enableServiceLinks", json!(true)),
        ("terminationGracePeriodSeconds", json!(1_000_000)),
        ("securityContext/seccompProfile", json!({"type": "Unconfined"})),
        ("securityContext/appArmorProfile", json!({"type": "Unconfined"})),
        ("securityContext/sysctls", json!([{"name": "kernel.shm_rmid_forced", "value": "1"}])),
        ("securityContext/runAsUser", json!(0)),
        ("securityContext/fsGroup", json!(0)),
        ("initContainers", json!([{"name": "init", "image": "i"}])),
        (
            "initContainers",
            json!([{"name": "init", "image": "i", "securityContext": {"privileged": true}}]),
        ),
        ("containers/-", json!({"name": "second", "image": "i"})),
        (
            "containers/-",
            json!({"name": "second", "image": "i", "volumeMounts": [{"name": "pods-mount-dir", "mountPath": "/k"}]}),
        ),
        ("containers/0/command", json!(["sh"])),
        ("containers/0/args", json!(["--other"])),
        ("containers/0/args/-", json!("--other")),
        ("containers/0/lifecycle", json!({"postStart": {"exec": {"command": ["sh"]}}})),
        ("containers/0/envFrom", json!([{"secretRef": {"name": "other"}}])),
        ("containers/0/envFrom", json!([{"configMapRef": {"name": "other"}}])),
        ("containers/0/tty", json!(true)),
        ("containers/0/stdin", json!(true)),
        ("containers/0/workingDir", json!("/")),
        ("containers/0/securityContext/privileged", json!(true)),
        ("containers/0/securityContext/capabilities", json!({"add": ["SYS_PTRACE"]})),
        ("containers/0/securityContext/seccompProfile", json!({"type": "Unconfined"})),
        ("containers/0/securityContext/procMount", json!("Unmasked")),
        ("containers/0/securityContext/runAsUser", json!(0)),
        ("containers/0/readinessProbe", json!({"exec": {"command": ["sh"]}})),
        ("containers/0/startupProbe", json!({"httpGet": {"host": "192.0.2.1", "port": 80}})),
        ("containers/0/ports", json!([{"containerPort": 80, "hostPort": 80}])),
        ("containers/0/terminationMessagePath", json!("/host/x")),
        ("containers/0/resources", json!({"claims": [{"name": "x"}]})),
        ("containers/0/volumeMounts/-", json!({"name": "socket-dir", "mountPath": "/other"})),
    ]
}

fn volumes() -> Vec<Value> {
    vec![
        json!({"hostPath": {"path": "/"}}),
        json!({"hostPath": {"path": "/var/lib/kubelet/pki"}}),
        json!({"hostPath": {"path": "/etc/kubelet"}}),
        json!({"secret": {"secretName": "other"}}),
        json!({"configMap": {"name": "other"}}),
        json!({"projected": {"sources": [{"serviceAccountToken": {"path": "t", "audience": "vault"}}]}}),
        json!({"projected": {"sources": [{"secret": {"name": "other"}}]}}),
        json!({"csi": {"driver": "secrets-store.csi.k8s.io", "nodePublishSecretRef": {"name": "other"}}}),
        json!({"flexVolume": {"driver": "a/b", "secretRef": {"name": "other"}}}),
        json!({"iscsi": {"targetPortal": "192.0.2.1", "iqn": "iqn.2001-04.com.example:disk", "lun": 0, "secretRef": {"name": "other"}}}),
        json!({"azureFile": {"secretName": "other", "shareName": "s"}}),
        json!({"cephfs": {"monitors": ["192.0.2.1"], "secretRef": {"name": "other"}}}),
        json!({"rbd": {"monitors": ["192.0.2.1"], "image": "i", "secretRef": {"name": "other"}}}),
        json!({"nfs": {"server": "192.0.2.1", "path": "/"}}),
        json!({"persistentVolumeClaim": {"claimName": "other"}}),
        json!({"downwardAPI": {"items": [{"path": "a", "fieldRef": {"fieldPath": "metadata.name"}}]}}),
        json!({"emptyDir": {"medium": "Memory"}}),
    ]
}

/// What is refused in every workload.
fn workload(object: &Value) -> Vec<(String, Value)> {
    const POD: &str = "/spec/template/spec";
    let mut places: Vec<(String, Value)> = pods().into_iter().map(|(place, value)| (format!("{POD}/{place}"), value)).collect();
    for mut volume in volumes() {
        volume["name"] = "other".into();
        places.push((format!("{POD}/volumes/-"), volume));
    }
    if object.pointer(&format!("{POD}/containers/0/env")).is_some() {
        let key = json!({"name": "E", "valueFrom": {"secretKeyRef": {"name": "other", "key": "k"}}});
        places.push((format!("{POD}/containers/0/env/-"), key));
        if object["metadata"]["name"] != "vsphere-cloud-controller-manager" {
            places.push((format!("{POD}/containers/0/env/-"), json!({"name": "LD_PRELOAD", "value": "x"})));
        }
    }
    for (place, value) in [
        (
            "/metadata/ownerReferences",
            json!([{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}]),
        ),
        ("/metadata/finalizers", json!(["a/b"])),
        ("/metadata/annotations/other", json!("x")),
        ("/metadata/labels/other", json!("x")),
        ("/spec/template/metadata/labels/other", json!("x")),
        (
            "/spec/template/metadata/annotations/seccomp.security.alpha.kubernetes.io~1pod",
            json!("unconfined"),
        ),
        ("/spec/minReadySeconds", json!(100)),
        ("/spec/revisionHistoryLimit", json!(100_000)),
    ] {
        places.push((place.to_owned(), value));
    }
    places
        .into_iter()
        .map(|(place, value)| (format!("{place} {value}"), with(object, &place, value)))
        .collect()
}

fn secrets() -> Vec<(String, Value)> {
    let mut all = Vec::new();
    for (namespace, name) in [
        ("kube-system", "vsphere-cloud-secret"),
        ("vmware-system-csi", "vsphere-config-secret"),
        ("vmware-system-csi", "vsphere-webhook-certs"),
        ("vmware-system-vdo", "vdo-webhook-certificate"),
        ("vmware-system-vdo", "vdo-state"),
    ] {
        let kind = if name == "vdo-state" { "vdo.vmware.com/state" } else { "Opaque" };
        let plain = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}, "type": kind});
        let account = (
            "/metadata/annotations/kubernetes.io~1service-account.name",
            json!("clusterrole-aggregation-controller"),
        );
        let token = with(&plain, "/type", json!("kubernetes.io/service-account-token"));
        all.push((
            format!("{name}: a token of another account"),
            with(&token, account.0, account.1.clone()),
        ));
        for (place, value) in [
            account,
            ("/type", json!("bootstrap.kubernetes.io/token")),
            ("/metadata/labels/argocd.argoproj.io~1secret-type", json!("cluster")),
            (
                "/metadata/annotations/reflector.v1.k8s.emberstack.com~1reflection-allowed",
                json!("true"),
            ),
            ("/immutable", json!(true)),
        ] {
            all.push((format!("{name}: {place} {value}"), with(&plain, place, value)));
        }
    }
    all
}

fn others(csi: &[Value]) -> Vec<(String, Value)> {
    let of = |kind: &str| csi.iter().find(|object| object["kind"] == kind).expect("an object");
    let class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"},
        "provisioner": "csi.vsphere.vmware.com", "allowVolumeExpansion": true, "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"});
    let lease =
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "vdo-operator", "namespace": "kube-system"}});
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "vsphere-cloud-config", "namespace": "kube-system"}});
    let hook = "/webhooks/0/clientConfig/service";
    let secret =
        json!({"csi.storage.k8s.io/provisioner-secret-name": "x", "csi.storage.k8s.io/provisioner-secret-namespace": "kube-system"});
    let table = [
        (of("Service"), "/spec/externalIPs", json!(["198.51.100.1"])),
        (of("Service"), "/spec/type", json!("LoadBalancer")),
        (of("Service"), "/spec/externalName", json!("other.example")),
        (of("Service"), "/spec/loadBalancerIP", json!("198.51.100.1")),
        (of("Service"), "/spec/sessionAffinity", json!("ClientIP")),
        (of("Service"), "/spec/publishNotReadyAddresses", json!(true)),
        (of("Service"), "/spec/selector", json!({"app": "other"})),
        (of("Service"), "/spec/trafficDistribution", json!("PreferClose")),
        (of("Service"), "/spec/ports/-", json!({"name": "other", "port": 443})),
        (of("Service"), "/metadata/annotations/service.beta.kubernetes.io~1x", json!("y")),
        (of("CSIDriver"), "/spec/tokenRequests", json!([{"audience": "vault"}])),
        (of("CSIDriver"), "/spec/requiresRepublish", json!(true)),
        (of("CSIDriver"), "/spec/podInfoOnMount", json!(true)),
        (of("CSIDriver"), "/spec/storageCapacity", json!(true)),
        (of("CSIDriver"), "/spec/fsGroupPolicy", json!("None")),
        (of("CSIDriver"), "/spec/volumeLifecycleModes", json!(["Persistent", "Ephemeral"])),
        (&class, "/provisioner", json!("other.example")),
        (&class, "/mountOptions", json!(["x"])),
        (&class, "/parameters", secret),
        (
            &class,
            "/allowedTopologies",
            json!([{"matchLabelExpressions": [{"key": "a", "values": ["b"]}]}]),
        ),
        (&class, "/metadata/annotations/other", json!("x")),
        (
            of("ServiceAccount"),
            "/metadata/annotations/eks.amazonaws.com~1role-arn",
            json!("x"),
        ),
        (of("ServiceAccount"), "/secrets", json!([{"name": "x"}])),
        (of("ServiceAccount"), "/imagePullSecrets", json!([{"name": "x"}])),
        (of("ServiceAccount"), "/automountServiceAccountToken", json!(false)),
        (
            of("ValidatingWebhookConfiguration"),
            "/webhooks/0/rules",
            json!([{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}]),
        ),
        (
            of("ValidatingWebhookConfiguration"),
            "/webhooks/0/clientConfig",
            json!({"url": "https://other.example/x"}),
        ),
        (of("ValidatingWebhookConfiguration"), &format!("{hook}/namespace"), json!("default")),
        (of("ValidatingWebhookConfiguration"), &format!("{hook}/name"), json!("other")),
        (of("ValidatingWebhookConfiguration"), &format!("{hook}/path"), json!("/other")),
        (of("ValidatingWebhookConfiguration"), &format!("{hook}/port"), json!(8443)),
        (of("ValidatingWebhookConfiguration"), "/webhooks/0/timeoutSeconds", json!(30)),
        (
            of("ValidatingWebhookConfiguration"),
            "/webhooks/0/matchConditions",
            json!([{"name": "a", "expression": "true"}]),
        ),
        (&lease, "/metadata/name", json!("kube-scheduler")),
        (&map, "/metadata/name", json!("kube-root-ca.crt")),
        (&map, "/metadata/name", json!("extension-apiserver-authentication")),
        (&map, "/immutable", json!(true)),
    ];
    let change = |(object, place, value): (&Value, &str, Value)| {
        let what = format!("{} {place} {value}", object["kind"].as_str().unwrap_or_default());
        (what, with(object, place, value))
    };
    table.into_iter().map(change).collect()
}

/// Each with what it is.
pub fn attacks() -> Vec<(String, Value)> {
    let (csi, cpi) = (newest("vsphere-csi"), newest("vsphere-cpi"));
    let mut all = secrets();
    all.extend(others(&csi));
    for object in csi.iter().chain(&cpi) {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        if matches!(object["kind"].as_str(), Some("Deployment" | "DaemonSet")) {
            all.extend(
                workload(object)
                    .into_iter()
                    .map(|(what, object)| (format!("{name}: {what}"), object)),
            );
        }
        match name {
            "vsphere-csi-controller" if object["kind"] == "Deployment" => {
                all.push((format!("{name}: 100,000 replicas"), with(object, "/spec/replicas", json!(100_000))));
                all.push((
                    format!("{name}: host network"),
                    with(object, "/spec/template/spec/hostNetwork", json!(true)),
                ));
            }
            "vsphere-cloud-controller-manager" if object["kind"] == "DaemonSet" => {
                let mut root = object.clone();
                let pod = root["spec"]["template"]["spec"].as_object_mut().expect("a pod");
                pod.shift_remove("securityContext");
                all.push((format!("{name}: without its security context"), root));
            }
            "vsphere-csi-node" if object["kind"] == "DaemonSet" => {
                let mount = json!({"name": "pods-mount-dir", "mountPath": "/k"});
                let place = "/spec/template/spec/containers/0/volumeMounts/-";
                all.push((format!("{name}: kubelet's folder in the registrar"), with(object, place, mount)));
                let volumes = object
                    .pointer("/spec/template/spec/volumes")
                    .and_then(Value::as_array)
                    .expect("volumes");
                let at = volumes
                    .iter()
                    .position(|volume| volume["name"] == "pods-mount-dir")
                    .expect("a volume");
                let place = format!("/spec/template/spec/volumes/{at}/hostPath/path");
                all.push((format!("{name}: another folder of the node"), with(object, &place, json!("/etc"))));
            }
            _ => {}
        }
    }
    all
}

/// The same for objects of Antrea, which the operator may write only where it was granted that.
pub fn attacks_on_antrea() -> Vec<(String, Value)> {
    let of = |kind: &str| {
        newest("antrea")
            .into_iter()
            .find(|object| object["kind"] == kind)
            .expect("an object")
    };
    let (api, mutating, validating) = (
        of("APIService"),
        of("MutatingWebhookConfiguration"),
        of("ValidatingWebhookConfiguration"),
    );
    let mut all = vec![
        ("another Service of an API".into(), with(&api, "/spec/service/name", json!("other"))),
        ("no TLS of an API".into(), with(&api, "/spec/insecureSkipTLSVerify", json!(true))),
        ("authority of an API".into(), with(&api, "/spec/caBundle", json!("Q0E="))),
        ("another API".into(), with(&api, "/metadata/name", json!("v1.apps"))),
        ("another group of an API".into(), with(&api, "/spec/group", json!("apps"))),
    ];
    for webhooks in [mutating, validating] {
        let kind = webhooks["kind"].as_str().unwrap_or_default();
        for (what, place, value) in [
            ("address", "/webhooks/0/clientConfig/url", json!("https://192.0.2.1/")),
            ("authority", "/webhooks/0/clientConfig/caBundle", json!("Q0E=")),
            ("Service", "/webhooks/0/clientConfig/service/namespace", json!("default")),
            ("kinds", "/webhooks/0/rules/0/resources", json!(["*"])),
            ("groups", "/webhooks/0/rules/0/apiGroups", json!([""])),
            ("name", "/webhooks/0/name", json!("other.antrea.io")),
        ] {
            all.push((format!("{kind}: {what}"), with(&webhooks, place, value)));
        }
    }
    for (kind, place, value) in [
        ("DaemonSet", "/spec/template/spec/hostPID", json!(true)),
        ("DaemonSet", "/spec/template/spec/containers/0/command", json!(["sh"])),
        ("DaemonSet", "/spec/template/spec/volumes/1/hostPath/path", json!("/")),
        ("Deployment", "/spec/template/spec/serviceAccountName", json!("default")),
        (
            "Deployment",
            "/spec/template/spec/containers/0/securityContext",
            json!({"privileged": true}),
        ),
    ] {
        all.push((format!("{kind}: {place}"), with(&of(kind), place, value)));
    }
    all
}
