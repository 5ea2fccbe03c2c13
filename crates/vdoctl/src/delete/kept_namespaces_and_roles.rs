// SPDX-License-Identifier: Apache-2.0
//! Decides which namespaces, bindings and roles `vdoctl delete` keeps because others use them; removes only VDO's accounts and rules there.

use super::objects_to_delete::Target;
use super::remove::Stays;
use crate::CliError;
use crate::context::Context;
use vdo::cluster::{contents, get};
use vdo_api::types::ObjectId;
use vdo_core::manifest::Object;
use vdo_core::rbac;

/// How many objects of a namespace are named.
const CONTENT: usize = 5;
/// Where the drivers themselves keep what they work at. With them it has no use.
const OF_THE_DRIVERS: &str = "cns.vmware.com/";

/// Why a namespace stays: what is in it beside ours.
pub(super) async fn kept_namespace(context: &Context, namespace: &Object) -> Result<Option<String>, CliError> {
    let live = get(&context.ports.client, "v1", &namespace.id()).await?;
    if live.is_none_or(|live| live.is_terminating()) {
        return Ok(None);
    }
    let found = match contents(&context.ports.client, namespace.name()).await {
        Ok(found) => found,
        Err(error) => return Ok(Some(format!("its objects cannot be listed: {}", CliError::from(error).what))),
    };
    Ok(holds(&found))
}

fn holds(found: &[Object]) -> Option<String> {
    let ours = |object: &&Object| !object.api_version().starts_with(OF_THE_DRIVERS) && object.kind() != "Lease";
    let named: Vec<String> = found
        .iter()
        .filter(ours)
        .map(|object| format!("{} {}", object.kind(), object.name()))
        .collect();
    let more = match named.len().saturating_sub(CONTENT) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let first = || named.iter().take(CONTENT).cloned().collect::<Vec<_>>().join(", ");
    (!named.is_empty()).then(|| format!("it contains {}{more}", first()))
}

/// Why a binding stays: an account that it is for exists, although all of ours are gone. Ours are taken out.
pub(super) async fn kept_binding(context: &Context, binding: &Object, desired: &[Object]) -> Result<Option<String>, CliError> {
    let subjects = binding.value().pointer("/subjects").and_then(serde_json::Value::as_array);
    let mut existing = Vec::new();
    for subject in subjects.into_iter().flatten().filter(|subject| subject["kind"] == "ServiceAccount") {
        let text = |key: &str| subject[key].as_str().unwrap_or_default();
        let id = ObjectId::new("", "ServiceAccount", text("namespace"), text("name"));
        let account = get(&context.ports.client, "v1", &id).await?;
        existing.extend(account.filter(|account| !account.is_terminating()).map(|_| id));
    }
    let Some(first) = existing.first() else {
        return Ok(None);
    };
    let exists = |namespace: &str, name: &str| existing.iter().any(|id| &*id.namespace == namespace && &*id.name == name);
    let ours = desired.iter().find(|object| object.id() == binding.id());
    if let Some(change) = ours.and_then(|ours| rbac::binding_handed_back(binding, ours, exists)) {
        let writer = &context.ports.writer;
        writer.merge(binding.api_version(), &binding.id(), &change, false).await?;
    }
    Ok(Some(format!("{first} gets its rights from this binding")))
}

/// Why a role stays: a binding refers to it that is not removed. Rules that were added for our drivers are taken out, unless an account of theirs
/// still has its rights from it.
pub(super) async fn kept_role(context: &Context, role: &Object, target: &Target, stays: &Stays) -> Result<Option<String>, CliError> {
    use vdo::cluster::{Select, Watch, list};
    let version = role.api_version();
    let client = &context.ports.client;
    let mut bindings = list(client, &Watch::new(version, "RoleBinding", role.namespace(), Select::All)).await?;
    if role.kind() == "ClusterRole" {
        bindings.extend(list(client, &Watch::new(version, "ClusterRoleBinding", "", Select::All)).await?);
    }
    let kept = kept_bindings(role, &bindings, &target.objects, stays);
    let Some(first) = kept.first() else {
        return Ok(None);
    };
    if !kept.iter().any(|binding| rbac::shares_a_subject(binding, &target.desired))
        && let Some(change) = rbac::role_handed_back(role)
    {
        context.ports.writer.merge(version, &role.id(), &change, false).await?;
    }
    Ok(Some(format!("{} refers to this role", first.id())))
}

/// The bindings that refer to a role and stay.
fn kept_bindings<'a>(role: &Object, bindings: &'a [Object], ours: &[Object], stays: &Stays) -> Vec<&'a Object> {
    let refers = |binding: &&Object| binding.text("/roleRef/kind") == role.kind() && binding.text("/roleRef/name") == role.name();
    let removed = |binding: &Object| {
        let id = binding.id();
        ours.iter().any(|own| own.id() == id) && stays.iter().all(|(kept, _)| *kept != id)
    };
    bindings.iter().filter(refers).filter(|binding| !removed(binding)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn object(api_version: &str, kind: &str, name: &str, more: Value) -> Object {
        let mut value = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
        value
            .as_object_mut()
            .expect("a map")
            .extend(more.as_object().cloned().unwrap_or_default());
        Object::new(value).expect("an object")
    }

    #[test]
    fn namespace_with_anything_of_others_is_kept() {
        let secret = |name: &str| object("v1", "Secret", name, json!({}));
        let lease = object("coordination.k8s.io/v1", "Lease", "external-attacher", json!({}));
        let own = object("cns.vmware.com/v1alpha1", "CnsVolumeOperationRequest", "pvc-1", json!({}));
        assert_eq!(holds(&[lease.clone(), own]), None);
        assert_eq!(holds(&[lease, secret("a")]).as_deref(), Some("it contains Secret a"));
        let many: Vec<Object> = (0..7).map(|i| secret(&i.to_string())).collect();
        let said = holds(&many).expect("kept");
        assert!(
            said.starts_with("it contains Secret 0, Secret 1,") && said.ends_with("Secret 4 and 2 more"),
            "{said}"
        );
    }

    #[test]
    fn role_is_kept_only_for_a_binding_that_stays() {
        const RBAC: &str = "rbac.authorization.k8s.io/v1";
        let role = object(RBAC, "ClusterRole", "csi", json!({}));
        let binding = |name: &str, to: &str| {
            object(
                RBAC,
                "ClusterRoleBinding",
                name,
                json!({"roleRef": {"kind": "ClusterRole", "name": to}}),
            )
        };
        let ours = [binding("own", "csi")];
        let kept = |bindings: &[Object], stays: &Stays| -> Vec<String> {
            let kept = kept_bindings(&role, bindings, &ours, stays);
            kept.iter().map(|binding| binding.name().to_owned()).collect()
        };
        let others = [binding("own", "csi"), binding("x", "other")];
        assert_eq!(kept(&others, &Stays::new()), Vec::<String>::new());
        assert_eq!(kept(&[binding("own", "csi"), binding("theirs", "csi")], &Stays::new()), ["theirs"]);
        assert_eq!(kept(&others, &vec![(ours[0].id(), String::new())]), ["own"]);
    }
}
