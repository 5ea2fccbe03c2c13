// SPDX-License-Identifier: Apache-2.0
//! Every remedy that is a command is run: those that messages contain, and those of docs/errors.md.

use crate::common::NS;
use crate::fixture::INSTALLED;
use crate::page::run;
use crate::sources::{literals, product_texts, root};
use anyhow::{Result, ensure};
use std::collections::BTreeSet;

/// How a command begins in the source or in docs/errors.md, and how it is run here: as it stands, with names of what is in the test bed, and
/// tried by the API server only where it would change something.
const RUN: [(&str, &str); 64] = [
    (
        "kubectl edit vdoconfigs --namespace",
        "env KUBE_EDITOR=true kubectl edit vdoconfigs --namespace NS",
    ),
    ("kubectl get csidriver", "kubectl get csidriver"),
    ("kubectl get csinode NODE", "kubectl get csinode w-1 --output yaml"),
    ("kubectl get node NODE", "kubectl get node w-1"),
    ("kubectl get storageclass", "kubectl get storageclass --output yaml"),
    ("kubectl get persistentvolume", "kubectl get persistentvolume --output yaml"),
    (
        "kubectl get vdoconfig --all-namespaces",
        "kubectl get vdoconfig --all-namespaces --output yaml",
    ),
    ("kubectl get volumeattachment", "kubectl get volumeattachment"),
    (
        "kubectl patch vdoconfig {} --namespace {} --type=json --patch",
        r#"kubectl patch vdoconfig vdo --namespace NS --type=json --patch '[{"op":"add","path":"/spec/drivers","value":[{"name":"snapshot-controller"}]}]' --dry-run=server"#,
    ),
    (
        "kubectl patch customresourcedefinition",
        r#"kubectl patch customresourcedefinition vdoconfigs.vdo.vmware.com --type=merge --patch '{"spec":{"conversion":{"strategy":"None","webhook":null}}}' --dry-run=server"#,
    ),
    ("kubectl get KIND NAME --output yaml", "kubectl get csinode w-1 --output yaml"),
    (
        "kubectl delete volumeattachment NAME",
        "kubectl delete volumeattachment none --ignore-not-found --dry-run=server",
    ),
    (
        "kubectl annotate storageclass NAME",
        "kubectl annotate storageclass --all storageclass.kubernetes.io/is-default-class=false --overwrite --dry-run=server",
    ),
    (
        "kubectl label namespace {namespace} pod-security.kubernetes.io/enforce=privileged --overwrite",
        "kubectl label namespace kube-system pod-security.kubernetes.io/enforce=privileged --overwrite --dry-run=server",
    ),
    (
        "kubectl --namespace {namespace} get resourcequotas",
        "kubectl --namespace kube-system get resourcequotas",
    ),
    (
        "kubectl --namespace {namespace} create role {role} --verb list",
        "kubectl --namespace kube-system create role vdo-operator-reads-file --verb list --resource secrets --resource-name file --dry-run=server",
    ),
    (
        "kubectl --namespace {namespace} create rolebinding {role}",
        "kubectl --namespace kube-system create rolebinding vdo-operator-reads-file --role vdo-operator-reads-file --serviceaccount NS:vdo-operator --dry-run=server",
    ),
    (
        "kubectl --namespace {namespace} delete daemonset {name}",
        "kubectl --namespace vmware-system-csi delete daemonset vsphere-csi-node --dry-run=server",
    ),
    (
        "kubectl --namespace {namespace} delete {kind} {name}",
        "kubectl --namespace vmware-system-csi delete deployment vsphere-csi-controller --dry-run=server",
    ),
    (
        "kubectl --namespace {namespace} delete secret --selector owner=helm,name={release}",
        "kubectl --namespace kube-system delete secret --selector owner=helm,name=vsphere-csi --dry-run=server",
    ),
    (
        "kubectl --namespace {namespace} delete configmap,secret --selector {MOVED}",
        "kubectl --namespace kube-system delete configmap,secret --selector vdo.vmware.com/moved --dry-run=server",
    ),
    (
        "kubectl --namespace {namespace} annotate {kind} {name} {MOVED}-",
        "kubectl --namespace vmware-system-csi annotate daemonset vsphere-csi-node vdo.vmware.com/moved- --dry-run=server",
    ),
    (
        "kubectl --namespace {namespace} scale {} {name} --replicas 0",
        "kubectl --namespace vmware-system-csi scale deployment vsphere-csi-controller --replicas 0 --dry-run=server",
    ),
    (
        "kubectl -n {home} patch vdoconfig {name} --type merge --patch",
        r#"kubectl -n NS patch vdoconfig vdo --type merge --patch '{"metadata":{"labels":{"a":"b"}}}' --dry-run=server"#,
    ),
    (
        "kubectl apply --server-side --force-conflicts -f -",
        "vdoctl rights | kubectl apply --server-side --force-conflicts -f - --dry-run=server",
    ),
    ("kubectl explain vdoconfig.spec", "kubectl explain vdoconfig.spec"),
    ("kubectl get --raw /readyz", "kubectl get --raw /readyz"),
    ("kubectl config view --minify", "kubectl config view --minify"),
    ("kubectl explain {} describes", "kubectl explain vspherecloudconfig"),
    (
        "kubectl --namespace {} annotate vdoconfig {} {REMOVE_DESPITE_VOLUMES}=true",
        "kubectl --namespace NS annotate vdoconfig vdo vdo.vmware.com/remove-despite-volumes=true --dry-run=server",
    ),
    (
        "kubectl -n kube-system get lease {VDOCTL}",
        "kubectl -n kube-system get lease vdo-operator",
    ),
    (
        "kubectl -n {namespace} scale deployment {OPERATOR} --replicas=1",
        "kubectl -n vmware-system-csi scale deployment vsphere-csi-controller --replicas=1 --dry-run=server",
    ),
    ("kubectl -n {namespace} get pods", "kubectl -n vmware-system-csi get pods"),
    (
        "kubectl -n {namespace} logs deployment/{OPERATOR}",
        "kubectl logs --help | grep -q 'kubectl logs' && kubectl -n vmware-system-csi get deployment/vsphere-csi-controller",
    ),
    (
        "kubectl -n {namespace} get deployments,pods",
        "kubectl -n vmware-system-csi get deployments,pods",
    ),
    (
        "kubectl -n {namespace} logs deployment/vdo-operator",
        "kubectl logs --help | grep -q 'kubectl logs deployment/'",
    ),
    (
        "kubectl -n {home} annotate --overwrite vdoconfig {name} {TAKE_OVER_CLUSTER_ID}={id}",
        "kubectl -n NS annotate --overwrite vdoconfig vdo vdo.vmware.com/take-over-cluster-id=x --dry-run=server",
    ),
    ("kubectl -n {} get pods", "kubectl -n NS get pods"),
    (
        "kubectl -n {DRIVERS} delete --ignore-not-found",
        "kubectl -n NS delete --ignore-not-found deployment/a daemonset/b --dry-run=server",
    ),
    (
        "kubectl delete csidriver",
        "kubectl delete csidriver csi.vsphere.vmware.com --dry-run=server",
    ),
    ("kubectl create namespace {}", "kubectl create namespace another --dry-run=server"),
    (
        "kubectl create configmap NAME -n NAMESPACE --from-file=values.yaml",
        "echo 'logLevel: DEVELOPMENT' | kubectl create configmap more -n NS --from-file=values.yaml=/dev/stdin --dry-run=server",
    ),
    (
        "kubectl annotate --overwrite -n NAMESPACE vdoconfig NAME vdo.vmware.com/accept-matrix-version=",
        "kubectl annotate --overwrite -n NS vdoconfig vdo vdo.vmware.com/accept-matrix-version=3 --dry-run=server",
    ),
    (
        "kubectl label node {} {}=VALUE",
        "kubectl label node w-1 example.com/zone=VALUE --dry-run=server",
    ),
    (
        "kubectl drain {node} --ignore-daemonsets --delete-emptydir-data",
        "kubectl drain w-1 --ignore-daemonsets --delete-emptydir-data --dry-run=server",
    ),
    ("kubectl uncordon {node}", "kubectl uncordon w-1 --dry-run=server"),
    (
        "kubectl logs --previous -n {} {} -c {}",
        "kubectl logs --help | grep -q -- '--previous' && kubectl logs --help | grep -q -- '-c, --container'",
    ),
    (
        "kubectl describe pod -n {} {}",
        "kubectl describe pod -n vmware-system-csi $(kubectl get pods -n vmware-system-csi -o name | head -1 | cut -d/ -f2)",
    ),
    (
        "kubectl delete {}{place} {}",
        "kubectl delete clusterrolebinding vsphere-csi-controller-binding --dry-run=server && \
         kubectl delete rolebinding -n vmware-system-csi vsphere-csi-node-binding --dry-run=server",
    ),
    (
        "kubectl annotate --overwrite -n {namespace} vdoconfig {name} {APPROVE}={hash}",
        "kubectl annotate --overwrite -n NS vdoconfig vdo vdo.vmware.com/approve=0123456789abcdef --dry-run=server",
    ),
    ("kubectl describe pod", "kubectl describe pod -n vmware-system-csi"),
    (
        "kubectl taint node {first} node.cloudprovider.kubernetes.io/uninitialized=true:NoSchedule",
        "kubectl taint node w-1 node.cloudprovider.kubernetes.io/uninitialized=true:NoSchedule --dry-run=server",
    ),
    ("kubectl delete node {}", "kubectl delete node w-1 --dry-run=server"),
    (
        "kubectl get KIND NAME -n NAMESPACE -o jsonpath='{.metadata.finalizers}'",
        "kubectl get vdoconfig vdo -n NS -o jsonpath='{.metadata.finalizers}'",
    ),
    (
        "kubectl describe -n NAMESPACE vsphereconnection NAME",
        "kubectl describe -n NS vsphereconnection vc1",
    ),
    (
        "kubectl create -n NAMESPACE secret generic NAME --type=kubernetes.io/basic-auth",
        "echo x | kubectl create -n NS secret generic another --type=kubernetes.io/basic-auth --from-literal=username=u \
         --from-file=password=/dev/stdin --dry-run=server",
    ),
    (
        "kubectl annotate --overwrite -n NAMESPACE secret NAME vdo.vmware.com/servers=",
        "kubectl annotate --overwrite -n NS secret vc1-credentials vdo.vmware.com/servers=vcenter.example.com --dry-run=server",
    ),
    (
        "kubectl annotate --overwrite -n NAMESPACE vsphereconnection NAME vdo.vmware.com/reconcile-at=",
        "kubectl annotate --overwrite -n NS vsphereconnection vc1 vdo.vmware.com/reconcile-at=\"$(date)\" --dry-run=server",
    ),
    (
        "kubectl annotate --overwrite -n NAMESPACE vdoconfig NAME vdo.vmware.com/approve=HASH",
        "kubectl annotate --overwrite -n NS vdoconfig vdo vdo.vmware.com/approve=0123456789abcdef --dry-run=server",
    ),
    ("kubectl get pv,volumeattachment", "kubectl get pv,volumeattachment"),
    ("kubectl get volumeattachments", "kubectl get volumeattachments"),
    (
        "kubectl get nodes -o custom-columns=",
        "kubectl get nodes -o 'custom-columns=NAME:.metadata.name,ID:.spec.providerID,TAINTS:.spec.taints[*].key'",
    ),
    (
        "kubectl taint node NAME node.cloudprovider.kubernetes.io/uninitialized=true:NoSchedule",
        "kubectl taint node w-1 node.cloudprovider.kubernetes.io/uninitialized=true:NoSchedule --dry-run=server",
    ),
    (
        "kubectl get endpointslices,pods -n vmware-system-csi",
        "kubectl get endpointslices,pods -n vmware-system-csi",
    ),
];

/// Where the program is only named, and a command of which the test bed lacks the kind: that for OpenShift is run in `openshift.rs`.
const NAMED: [&str; 14] = [
    "kubectl patch clustercsidriver",
    "kubectl -n {namespace} get subscriptions.operators.coreos.com,installplans",
    "kubectl -n {namespace} delete clusterserviceversion {name}",
    "kubectl -n {namespace} delete subscriptions.operators.coreos.com/{subscription}",
    "kubectl edit clusterextension",
    "kubectl delete clusterextension",
    "kubectl vdo",
    "kubectl accepts.",
    "kubectl apply",
    "kubectl delete.",
    "kubectl describe",
    "kubectl wait --for=condition=UpgradeAvailable",
    "kubectl get volumesnapshot",
    "kubectl get volumesnapshotcontent",
];

/// Every command of kubectl that a message or the list of errors contains is run below, and none is run that nothing names.
#[test]
fn remedies_that_are_commands_are_all_run() -> Result<()> {
    let product = product_texts().into_iter().filter(|(file, _)| !file.ends_with("/tests.rs"));
    let mut texts: Vec<(String, String)> = product.map(|(file, text)| (file, literals(&text))).collect();
    texts.push(("docs/errors.md".into(), std::fs::read_to_string(root().join("docs/errors.md"))?));
    let (mut unknown, mut used) = (Vec::new(), BTreeSet::new());
    for (file, text) in &texts {
        for (at, _) in text.match_indices("kubectl ") {
            let command = text[at..].lines().next().unwrap_or_default();
            // The longest that fits: some begin like others.
            let known = RUN
                .iter()
                .map(|(begin, _)| *begin)
                .chain(NAMED)
                .filter(|begin| command.starts_with(begin));
            match known.max_by_key(|begin| begin.len()) {
                Some(begin) => drop(used.insert(begin)),
                None => unknown.push(format!("{file}: {}", command.chars().take(120).collect::<String>())),
            }
        }
    }
    ensure!(unknown.is_empty(), "no test runs\n{}", unknown.join("\n"));
    let idle: Vec<&str> = RUN.iter().map(|(begin, _)| *begin).filter(|begin| !used.contains(begin)).collect();
    ensure!(idle.is_empty(), "nothing names {idle:?}");
    Ok(())
}

#[test]
#[ignore = "long"]
fn remedies_that_are_commands_are_taken_by_kubectl_and_the_api_server() -> Result<()> {
    INSTALLED.run(async |bed| {
        let mut refused = Vec::new();
        for (begin, command) in RUN {
            if let Err(error) = run(bed, &command.replace("NS", NS)) {
                refused.push(format!("{begin}\n{error}"));
            }
        }
        ensure!(refused.is_empty(), "{}", refused.join("\n\n"));
        Ok(())
    })
}
