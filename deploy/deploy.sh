#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs and removes the operator with kubectl and the manifests of this folder. `make` calls it; crates/load brings the image.
#
#   deploy.sh deploy       into the cluster of the current context
#   deploy.sh undeploy     out of it; exit code 4 while there is a VDOConfig
#   deploy.sh manifests    prints the manifests as a tar archive, for a node with kubectl
#   deploy.sh node-script  prints what that node runs, with the archive on its standard input
#
# VDO_IMAGE        another image of the operator
# VDO_PULL_POLICY  its imagePullPolicy: Never, where the nodes have it and no registry does
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
namespace=vmware-system-vdo

fail() { # exit code, sentences
    local code=$1
    shift
    printf '%s\n' "$@" >&2
    exit "$code"
}

needs() { command -v "$1" >/dev/null || fail 2 "$1 is missing on this machine. Install it: $2"; }

work=
trap '[[ -z $work ]] || rm -rf "$work"' EXIT

# A copy of the manifests, with VDO_IMAGE and VDO_PULL_POLICY, in $work.
copy() {
    work=$(mktemp -d)
    cp -R "$here"/*.yaml "$here"/crds "$work"
    local image=${VDO_IMAGE:-}
    [[ -n $image ]] || return 0
    [[ $image =~ ^[A-Za-z0-9][A-Za-z0-9._:/@-]*$ ]] ||
        fail 2 "VDO_IMAGE is not a reference of an image: $image" "Write a repository and a tag or digest, such as registry.example.com/vsphere/vdo-operator:v1.2.3."
    awk -v image="$image" -v policy="${VDO_PULL_POLICY:-}" '
        $1 != "image:" { print; next }
        { sub(/image: .*/, "image: " image); print }
        policy != "" { sub(/image: .*/, "imagePullPolicy: " policy); print }' "$here/operator.yaml" >"$work/operator.yaml"
}

cluster() {
    needs kubectl https://kubernetes.io/docs/tasks/tools/
    local context
    context=$(kubectl config current-context) || fail 3 "There is no current context. Choose a context: kubectl config use-context NAME"
    printf '== %s: context %s (%s)\n' "$1" "$context" "$(kubectl config view --minify -o 'jsonpath={.clusters[0].cluster.server}')"
}

# API servers before Kubernetes 1.30 serve no admission policies. For $1/kustomization.yaml.
# shellcheck disable=SC2016 # the function is also sent to a node
without_what_is_not_served='
for_this_server() {
    kubectl get --raw /apis/admissionregistration.k8s.io/v1 | grep -q "\"ValidatingAdmissionPolicy\"" && return 0
    echo "Without an admission policy for the operator, which this API server does not serve."
    grep -v "admission-policy.yaml" "$1/kustomization.yaml" >"$1/kustomization.new"
    mv "$1/kustomization.new" "$1/kustomization.yaml"
}'
eval "$without_what_is_not_served"

# OpenShift lets no pod of a driver in without these. For $1/openshift-rbac.yaml.
# shellcheck disable=SC2016 # the function is also sent to a node
with_what_openshift_asks_for='
for_openshift() {
    kubectl get --raw /apis/security.openshift.io/v1 >/dev/null 2>&1 || return 0
    kubectl apply --server-side -f "$1/openshift-rbac.yaml"
}'
eval "$with_what_openshift_asks_for"

deploy() {
    copy
    cluster "deploy the operator"
    for_this_server "$work"
    kubectl apply --server-side -f "$work/namespace.yaml"
    kubectl apply --server-side -k "$work"
    for_openshift "$work"
    printf '%s\n' "The operator is deployed. Next, create a vSphere connection and a VDOConfig: run vdoctl deploy${VDO_IMAGE:+ --image $VDO_IMAGE}, or use deploy/samples."
}

undeploy() {
    cluster "remove the operator"
    local configs='' drivers files
    # No definition, no VDOConfig. Any other failure ends this, because what is not known may be there.
    if [[ -n $(kubectl get crd vdoconfigs.vdo.vmware.com --ignore-not-found -o name) ]]; then
        configs=$(kubectl get vdoconfigs.vdo.vmware.com -A -o 'jsonpath={range .items[*]}{.metadata.namespace}/{.metadata.name} {end}')
    fi
    [[ -z $configs ]] || fail 4 \
        "VDOConfig ${configs% } exists, and only the operator can uninstall its drivers. Nothing was removed." \
        "Run vdoctl delete, which removes drivers and operator in the right order."
    drivers=$(kubectl get deployments,daemonsets -n vmware-system-csi -o name &&
        kubectl get daemonsets -n kube-system vsphere-cloud-controller-manager --ignore-not-found -o name)
    files=(-f "$here/operator.yaml" -f "$here/network-policy.yaml" -f "$here/service.yaml" -f "$here/rbac.yaml" -f "$here/readers-rbac.yaml"
        -f "$here/crds")
    if kubectl get --raw /apis/admissionregistration.k8s.io/v1 | grep -q '"ValidatingAdmissionPolicy"'; then
        files+=(-f "$here/admission-policy.yaml")
    fi
    printf '%s\n' "The namespace $namespace is deleted with the connections and Secrets in it."
    if [[ -z $drivers ]]; then
        kubectl delete --ignore-not-found "${files[@]}" -f "$here/openshift-rbac.yaml" -f "$here/drivers-rbac.yaml" -f "$here/namespace.yaml"
    else
        printf '%s\n' "The namespace and the rights of the drivers stay, because these run:" "$drivers"
        kubectl delete --ignore-not-found "${files[@]}"
        kubectl delete --ignore-not-found namespace "$namespace"
    fi
}

# What the node runs. It gets the manifests as a tar archive on its standard input.
# shellcheck disable=SC2016 # its variables are those of the node
on_the_node="set -eu
$without_what_is_not_served$with_what_openshift_asks_for"'
PATH=$PATH:/usr/local/bin:/var/lib/rancher/rke2/bin
command -v kubectl >/dev/null || { echo "kubectl is missing on the node" >&2; exit 2; }
admin=/etc/kubernetes/admin.conf
if [ -z "${KUBECONFIG:-}" ] && [ ! -e "$HOME/.kube/config" ] && [ -r "$admin" ]; then export KUBECONFIG="$admin"; fi
work=$(mktemp -d)
trap "rm -rf \"$work\"" EXIT
tar -x -C "$work" -f -
for_this_server "$work"
kubectl apply --server-side -f "$work/namespace.yaml"
kubectl apply --server-side -k "$work"
for_openshift "$work"'

manifests() {
    needs tar "your system's package tar"
    copy
    tar -c -C "$work" -f - .
}

case ${1:-} in
    deploy | undeploy | manifests) "$1" ;;
    node-script) printf '%s\n' "$on_the_node" ;;
    *) fail 2 "Usage: deploy.sh deploy | undeploy | manifests | node-script" ;;
esac
