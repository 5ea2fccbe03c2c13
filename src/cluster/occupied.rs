use super::{ClusterError, Select, Watch, read};
use crate::api::{MANAGED_BY, MANAGED_BY_LABEL};
use crate::manifest::Object;
use kube::Client;

/// Whether a namespace holds objects that neither we nor Kubernetes itself put there. Asked only before a namespace is
/// deleted, because everything in it would go too. Only metadata is read: what is in a Secret is nobody's business here.
///
/// # Errors
/// When one of the kinds cannot be listed: then it is not known, and the namespace must stay.
pub async fn occupied(client: &Client, namespace: &str) -> Result<bool, ClusterError> {
    const KINDS: [(&str, &str); 9] = [
        ("v1", "Pod"),
        ("v1", "PersistentVolumeClaim"),
        ("v1", "ConfigMap"),
        ("v1", "Secret"),
        ("v1", "Service"),
        ("v1", "ServiceAccount"),
        ("apps/v1", "Deployment"),
        ("apps/v1", "DaemonSet"),
        ("apps/v1", "StatefulSet"),
    ];
    for (api_version, kind) in KINDS {
        let found = read::list_metadata(client, &Watch::new(api_version, kind, namespace, Select::All)).await?;
        if found.iter().any(|object| !expected(object)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What Kubernetes puts into every namespace, what is ours, and what is on its way out.
fn expected(object: &Object) -> bool {
    let own = object.label(MANAGED_BY_LABEL) == Some(MANAGED_BY);
    let standard = matches!(
        (object.kind(), object.name()),
        ("ConfigMap", "kube-root-ca.crt") | ("ServiceAccount", "default")
    );
    own || standard || !object.text("/metadata/deletionTimestamp").is_empty()
}
