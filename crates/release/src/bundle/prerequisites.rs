// SPDX-License-Identifier: Apache-2.0
//! Writes the bundle's prerequisites.yaml, the objects that OLM does not create: Namespaces, Roles, bindings and admission policies.
//!
//! One of the policies refuses the removal of the operator while a VDOConfig needs it.

use super::csv::own_rules;
use super::{NAMESPACE, PACKAGE, Source, text as at};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use vdo_api::yaml;
use vdo_core::install::REMOVAL_GUARD;

const HEAD: &str = "# Apply this file before you create the Subscription, and keep its objects until the drivers are uninstalled:
#   kubectl apply --server-side -f prerequisites.yaml
# The kinds ValidatingAdmissionPolicy and ValidatingAdmissionPolicyBinding need Kubernetes 1.30, which is OpenShift 4.17.
";

pub(super) fn text(source: &Source) -> Result<String> {
    let mut all = source.namespaces.clone();
    all.extend(source.objects.iter().filter(|object| is_missing(object)).cloned());
    all.extend(definitions(source)?);
    all.extend(guard());
    let kinds = all.iter().filter(|object| object["kind"] == "Role").count();
    (kinds > 2).then_some(()).context("the manifests lack Roles")?;
    Ok(format!("{HEAD}{}", yaml::dump_all(&all)))
}

/// Whether OLM brings an object neither from the CSV nor from manifests/.
fn is_missing(object: &Value) -> bool {
    let kind = at(object, "/kind");
    let own = at(object, "/metadata/namespace") == NAMESPACE;
    let of_the_csv = matches!(kind, "ClusterRole" | "ClusterRoleBinding") && at(object, "/metadata/name") == "vdo-operator";
    !own && !of_the_csv
}

/// The operator's right to write the definitions of a driver that brings some.
fn definitions(source: &Source) -> Result<[Value; 2]> {
    const GROUP: &str = "rbac.authorization.k8s.io";
    let metadata = json!({"name": "vdo-operator-definitions", "labels": {"app.kubernetes.io/name": "vdo-operator"}});
    let role = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "ClusterRole", "metadata": metadata, "rules": own_rules(source, true)?});
    let binding = json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": "ClusterRoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": metadata["name"]},
        "subjects": [{"kind": "ServiceAccount", "name": "vdo-operator", "namespace": NAMESPACE}],
    });
    Ok([role, binding])
}

/// Without the operator, a VDOConfig keeps its finalizer for ever; and an OLM that deletes the rights of the drivers with it would leave
/// them running without any. OLM's own accounts are let through: at an upgrade they delete the version before.
fn guard() -> [Value; 2] {
    let labels = json!({"app.kubernetes.io/name": "vdo-operator"});
    let message = "'VDOConfig ' + params.metadata.namespace + '/' + params.metadata.name + ' needs this operator to uninstall its drivers; \
         delete the VDOConfig first: kubectl delete vdoconfig ' + params.metadata.name + ' --namespace ' + params.metadata.namespace";
    let ours = format!(
        "request.resource.group == 'operators.coreos.com' \
         ? request.namespace == '{NAMESPACE}' && oldObject.metadata.name.startsWith('{PACKAGE}.v') \
         : has(oldObject.spec.source) && has(oldObject.spec.source.catalog) && oldObject.spec.source.catalog.packageName == '{PACKAGE}'"
    );
    let accounts = "!request.userInfo.username.matches(\
                    '^system:serviceaccount:(olm|openshift-operator-lifecycle-manager|olmv1-system|openshift-operator-controller):')";
    let rule = |group: &str, resource: &str| json!({"apiGroups": [group], "apiVersions": ["*"], "operations": ["DELETE"], "resources": [resource]});
    [
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": REMOVAL_GUARD, "labels": labels},
            "spec": {
                "failurePolicy": "Fail",
                "paramKind": {"apiVersion": "vdo.vmware.com/v1alpha1", "kind": "VDOConfig"},
                "matchConstraints": {"resourceRules": [
                    rule("operators.coreos.com", "clusterserviceversions"),
                    rule("olm.operatorframework.io", "clusterextensions"),
                ]},
                "matchConditions": [
                    {"name": "of-this-operator", "expression": ours},
                    {"name": "not-by-olm", "expression": accounts},
                ],
                "validations": [{"expression": "false", "messageExpression": message}],
            },
        }),
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": REMOVAL_GUARD, "labels": labels},
            "spec": {
                "policyName": REMOVAL_GUARD,
                "validationActions": ["Deny"],
                "paramRef": {"namespace": NAMESPACE, "selector": {}, "parameterNotFoundAction": "Allow"},
            },
        }),
    ]
}
