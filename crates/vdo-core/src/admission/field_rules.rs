// SPDX-License-Identifier: Apache-2.0
//! The table of object fields whose permitted values differ from what charts render: server defaults, free, pinned and refused fields.
//!
//! A field that is not listed here is [`Rule::Charts`]: only values are allowed that some chart renders there, and where no chart has the
//! field, it is refused. A field of a later Kubernetes is therefore refused until it is judged; `tests/pure/judged_fields.txt` lists
//! every field that was.

/// Which values a field may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// What a chart renders there, with the user's values in their places.
    Charts,
    /// The same, and what the API server writes there by itself, as JSON.
    Filled(&'static [&'static str]),
    /// Whatever: it gives nothing to the object that it does not have, or the API server decides about it alone.
    Free,
    /// A list of which each item is known by its name.
    Named,
    /// As in the chart, and never what a user's value makes of it: it leads to something else in the cluster.
    Pinned,
    /// Not even where a chart has it.
    Never,
}

use crate::openshift::constraint::REQUIRED;
use Rule::{Charts, Filled, Free, Named, Never, Pinned};

/// The constraints that the operator names in pods, as JSON.
const CONSTRAINTS: &[&str] = &[
    "\"anyuid\"",
    "\"hostnetwork-v2\"",
    "\"nonroot-v2\"",
    "\"privileged\"",
    "\"restricted-v2\"",
];

/// The fields of a place. Pods, containers, probes and metadata are the same place wherever they are.
type FieldRules = (&'static str, &'static [(&'static str, Rule)]);

pub(super) const PLACES: &[FieldRules] = &[
    (
        "metadata",
        &[
            ("name", Free),
            ("namespace", Free),
            ("labels", Filled(&["{}"])),
            ("annotations", Filled(&["{}"])),
            ("creationTimestamp", Free),
            ("deletionGracePeriodSeconds", Free),
            ("deletionTimestamp", Free),
            ("generation", Free),
            ("managedFields", Free),
            ("resourceVersion", Free),
            ("selfLink", Free),
            ("uid", Free),
            ("generateName", Never),
            ("finalizers", Never),
            // The certificate and the state of the operator have one; no chart may.
            ("ownerReferences", Charts),
        ],
    ),
    (
        "metadata.labels",
        &[
            ("app.kubernetes.io/managed-by", Free),
            ("app.kubernetes.io/part-of", Free),
            ("app.kubernetes.io/version", Free),
            ("applyset.kubernetes.io/id", Free),
            ("applyset.kubernetes.io/part-of", Free),
            ("vdo.vmware.com/driver", Free),
            ("vdo.vmware.com/matrix", Free),
        ],
    ),
    (
        "metadata.annotations",
        &[
            ("applyset.kubernetes.io/additional-namespaces", Free),
            ("applyset.kubernetes.io/contains-group-kinds", Free),
            ("applyset.kubernetes.io/tooling", Free),
            ("vdo.vmware.com/adopted-from", Free),
            ("vdo.vmware.com/applied", Free),
            ("vdo.vmware.com/cluster", Free),
            ("vdo.vmware.com/config-checksum", Free),
            ("vdo.vmware.com/credentials-checksum", Free),
            ("vdo.vmware.com/released", Free),
            ("vdo.vmware.com/volume-settings", Free),
            // OpenShift: which of the constraints is meant; whether an account may use it is asked there.
            (REQUIRED, Filled(CONSTRAINTS)),
            // The API server writes it into every DaemonSet.
            ("deprecated.daemonset.template.generation", Free),
        ],
    ),
    ("template", &[("metadata", Filled(&["{}"]))]),
    (
        "pod",
        &[
            ("containers", Named),
            ("initContainers", Named),
            ("volumes", Named),
            ("ephemeralContainers", Never),
            ("nodeName", Never),
            ("hostAliases", Never),
            ("serviceAccountName", Pinned),
            ("serviceAccount", Pinned),
            ("dnsPolicy", Filled(&["\"ClusterFirst\""])),
            ("restartPolicy", Filled(&["\"Always\""])),
            ("schedulerName", Filled(&["\"default-scheduler\""])),
            ("securityContext", Filled(&["{}"])),
            ("terminationGracePeriodSeconds", Filled(&["30"])),
            // It only says on which nodes pods are not.
            ("topologySpreadConstraints", Free),
        ],
    ),
    (
        "pod.containers[]",
        &[
            ("image", Free),
            ("env", Named),
            ("imagePullPolicy", Filled(&["\"Always\"", "\"IfNotPresent\""])),
            ("resources", Filled(&["{}"])),
            ("terminationMessagePath", Filled(&["\"/dev/termination-log\""])),
            ("terminationMessagePolicy", Filled(&["\"File\""])),
        ],
    ),
    ("pod.containers[].env[]", &[("value", Filled(&["\"\""]))]),
    (
        "pod.containers[].env[].valueFrom",
        &[("configMapKeyRef", Pinned), ("secretKeyRef", Pinned), ("fileKeyRef", Pinned)],
    ),
    ("pod.containers[].env[].valueFrom.fieldRef", &[("apiVersion", Filled(&["\"v1\""]))]),
    ("pod.containers[].envFrom[]", &[("configMapRef", Pinned), ("secretRef", Pinned)]),
    ("pod.containers[].ports[]", &[("protocol", Filled(&["\"TCP\""]))]),
    (
        "probe",
        &[
            // How often and how long is asked, which slow machines need otherwise (decision 133).
            ("failureThreshold", Free),
            ("initialDelaySeconds", Free),
            ("periodSeconds", Free),
            ("successThreshold", Free),
            ("timeoutSeconds", Free),
        ],
    ),
    ("probe.grpc", &[("service", Filled(&["\"\""]))]),
    (
        "probe.httpGet",
        &[("path", Filled(&["\"/\""])), ("scheme", Filled(&["\"HTTP\""])), ("host", Pinned)],
    ),
    ("pod.volumes[].hostPath", &[("type", Filled(&["\"\""]))]),
    ("pod.volumes[].secret", &[("secretName", Pinned), ("defaultMode", Filled(&["420"]))]),
    ("pod.volumes[].configMap", &[("name", Pinned), ("defaultMode", Filled(&["420"]))]),
    ("pod.volumes[].downwardAPI", &[("defaultMode", Filled(&["420"]))]),
    ("pod.volumes[].projected", &[("defaultMode", Filled(&["420"]))]),
    ("pod.volumes[].projected.sources[]", &[("secret", Pinned), ("configMap", Pinned)]),
    (
        "pod.volumes[].projected.sources[].serviceAccountToken",
        &[("audience", Pinned), ("expirationSeconds", Filled(&["3600"]))],
    ),
    ("pod.volumes[].persistentVolumeClaim", &[("claimName", Pinned)]),
    (
        "Deployment.spec",
        &[
            ("progressDeadlineSeconds", Filled(&["600"])),
            ("replicas", Filled(&["1"])),
            ("revisionHistoryLimit", Filled(&["10"])),
            ("strategy", Filled(&["{}"])),
        ],
    ),
    (
        "Deployment.spec.strategy",
        &[("type", Filled(&["\"RollingUpdate\""])), ("rollingUpdate", Filled(&["{}"]))],
    ),
    (
        "Deployment.spec.strategy.rollingUpdate",
        &[("maxSurge", Free), ("maxUnavailable", Free)],
    ),
    (
        "DaemonSet.spec",
        &[("revisionHistoryLimit", Filled(&["10"])), ("updateStrategy", Filled(&["{}"]))],
    ),
    (
        "DaemonSet.spec.updateStrategy",
        &[("type", Filled(&["\"RollingUpdate\""])), ("rollingUpdate", Filled(&["{}"]))],
    ),
    (
        "DaemonSet.spec.updateStrategy.rollingUpdate",
        &[("maxSurge", Free), ("maxUnavailable", Free)],
    ),
    (
        "StatefulSet.spec",
        &[
            ("persistentVolumeClaimRetentionPolicy", Free),
            ("podManagementPolicy", Filled(&["\"OrderedReady\""])),
            ("replicas", Filled(&["1"])),
            ("revisionHistoryLimit", Filled(&["10"])),
            ("updateStrategy", Filled(&["{}"])),
        ],
    ),
    (
        "StatefulSet.spec.updateStrategy",
        &[("type", Filled(&["\"RollingUpdate\""])), ("rollingUpdate", Filled(&["{}"]))],
    ),
    ("StatefulSet.spec.updateStrategy.rollingUpdate", &[("partition", Filled(&["0"]))]),
    (
        "CronJob.spec",
        &[
            ("concurrencyPolicy", Filled(&["\"Allow\""])),
            ("failedJobsHistoryLimit", Filled(&["1"])),
            ("successfulJobsHistoryLimit", Filled(&["3"])),
            ("suspend", Filled(&["false"])),
        ],
    ),
    ("CronJob.spec.jobTemplate", &[("metadata", Filled(&["{}"]))]),
    (
        "Job.spec",
        &[
            ("backoffLimit", Filled(&["6"])),
            ("completionMode", Filled(&["\"NonIndexed\""])),
            ("completions", Filled(&["1"])),
            ("manualSelector", Filled(&["false"])),
            ("parallelism", Filled(&["1"])),
            ("podReplacementPolicy", Filled(&["\"TerminatingOrFailed\"", "\"Failed\""])),
            ("selector", Free),
            ("suspend", Filled(&["false"])),
        ],
    ),
    ("Secret", &[("data", Free), ("stringData", Free), ("type", Pinned)]),
    ("ConfigMap", &[("binaryData", Free), ("data", Free)]),
    (
        "Service.spec",
        &[
            // The API server gives these out, of its own range.
            ("clusterIP", Free),
            ("clusterIPs", Free),
            ("internalTrafficPolicy", Filled(&["\"Cluster\""])),
            ("ipFamilies", Free),
            ("ipFamilyPolicy", Free),
            ("sessionAffinity", Filled(&["\"None\""])),
            ("type", Filled(&["\"ClusterIP\""])),
            ("externalIPs", Never),
            ("externalName", Never),
        ],
    ),
    (
        "Service.spec.ports[]",
        &[("protocol", Filled(&["\"TCP\""])), ("targetPort", Charts)],
    ),
    (
        "CSIDriver.spec",
        &[
            ("attachRequired", Filled(&["true"])),
            ("fsGroupPolicy", Filled(&["\"ReadWriteOnceWithFSType\""])),
            ("podInfoOnMount", Filled(&["false"])),
            ("requiresRepublish", Filled(&["false"])),
            ("seLinuxMount", Filled(&["false"])),
            ("storageCapacity", Filled(&["false"])),
            ("volumeLifecycleModes", Filled(&["[\"Persistent\"]"])),
        ],
    ),
    (
        "StorageClass",
        &[
            ("provisioner", Pinned),
            ("reclaimPolicy", Filled(&["\"Delete\""])),
            ("volumeBindingMode", Filled(&["\"Immediate\""])),
        ],
    ),
    ("VolumeSnapshotClass", &[("driver", Pinned)]),
    ("ValidatingWebhookConfiguration", &[("webhooks", Named)]),
    (
        "ValidatingWebhookConfiguration.webhooks[]",
        &[
            ("failurePolicy", Filled(&["\"Fail\""])),
            ("matchPolicy", Filled(&["\"Equivalent\""])),
            ("namespaceSelector", Filled(&["{}"])),
            ("objectSelector", Filled(&["{}"])),
            ("timeoutSeconds", Filled(&["10"])),
        ],
    ),
    ("webhook.clientConfig", &[("url", Never), ("service", Pinned)]),
    ("webhook.clientConfig.service", &[("port", Filled(&["443"]))]),
    ("webhook.rules[]", &[("scope", Filled(&["\"*\""]))]),
    ("MutatingWebhookConfiguration", &[("webhooks", Named)]),
    (
        "MutatingWebhookConfiguration.webhooks[]",
        &[
            ("failurePolicy", Filled(&["\"Fail\""])),
            ("matchPolicy", Filled(&["\"Equivalent\""])),
            ("namespaceSelector", Filled(&["{}"])),
            ("objectSelector", Filled(&["{}"])),
            ("reinvocationPolicy", Filled(&["\"Never\""])),
            ("timeoutSeconds", Filled(&["10"])),
        ],
    ),
    ("APIService.spec", &[("insecureSkipTLSVerify", Never), ("service", Pinned)]),
    ("APIService.spec.service", &[("port", Filled(&["443"]))]),
    ("Lease", &[("spec", Free)]),
    (
        // Its finalizer is the operator's to set.
        "VDOConfig.metadata",
        &[
            ("name", Free),
            ("namespace", Free),
            ("creationTimestamp", Free),
            ("deletionGracePeriodSeconds", Free),
            ("deletionTimestamp", Free),
            ("generation", Free),
            ("managedFields", Free),
            ("resourceVersion", Free),
            ("selfLink", Free),
            ("uid", Free),
            ("generateName", Never),
            ("finalizers", Charts),
            ("ownerReferences", Never),
        ],
    ),
];

/// Kinds of which only the names are bounded: their content gives no account, no Secret and no
/// node to anyone, and the API server fills in much of it.
pub(super) const BY_NAME: [&str; 14] = [
    "CustomResourceDefinition",
    "FlowSchema",
    "HorizontalPodAutoscaler",
    "Ingress",
    "IngressClass",
    "LimitRange",
    "NetworkPolicy",
    "PersistentVolumeClaim",
    "PriorityClass",
    "PriorityLevelConfiguration",
    "ResourceQuota",
    "RuntimeClass",
    "VolumeAttributesClass",
    "VolumeGroupSnapshotClass",
];

/// The rule of a field at a place.
pub(super) fn rule(place: &str, field: &str) -> Rule {
    let found = fields(place).find(|(name, _)| *name == field);
    found.map_or(Charts, |(_, rule)| rule)
}

/// The fields of a place that have a rule of their own.
pub(super) fn fields(place: &str) -> impl Iterator<Item = (&'static str, Rule)> {
    // A template of pods without metadata gets empty ones.
    let place = if place.ends_with(".template") { "template" } else { place };
    let found = PLACES.iter().find(|(name, _)| *name == place);
    found.into_iter().flat_map(|(_, fields)| fields.iter().copied())
}

/// The place of a field of a place.
pub(crate) fn below(place: &str, field: &str) -> String {
    match field {
        "metadata" if place == "VDOConfig" => "VDOConfig.metadata".to_owned(),
        "metadata" => "metadata".to_owned(),
        "initContainers" => "pod.containers".to_owned(),
        "livenessProbe" | "readinessProbe" | "startupProbe" => "probe".to_owned(),
        "clientConfig" | "rules" if place.ends_with("WebhookConfiguration.webhooks[]") => format!("webhook.{field}"),
        "spec" if place == "Pod" || place.ends_with(".template") => "pod".to_owned(),
        _ => format!("{place}.{field}"),
    }
}
