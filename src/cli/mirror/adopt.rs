//! How a cluster is made to use a mirror.

use super::super::args::Global;
use super::super::context::Context;
use super::super::{CliError, Exit};
use super::Prefix;
use crate::api::{API_VERSION, MANAGED_BY_LABEL};
use crate::install::{MATRIX, MATRIX_SOURCE, VDOCTL};
use crate::manifest::Object;
use crate::reconcile;
use serde_json::{Value, json};

/// Makes the cluster use a mirror: first its matrix, then its images.
pub(super) async fn adopt(prefix: &Prefix, global: &Global) -> Result<String, CliError> {
    let context = Context::open(global).await?;
    let config = context.acting().await?;
    let source = format!("oci://{}", prefix.matrix()?);
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": MATRIX, "namespace": global.namespace, "labels": {MANAGED_BY_LABEL: VDOCTL}},
        "data": {MATRIX_SOURCE: source},
    });
    let map = Object::new(map).map_err(|error| CliError::of(Exit::Refused, &error))?;
    let writer = context.world.writer.clone().named(VDOCTL);
    writer.apply(&map, true).await?;
    let change: Value = json!({"spec": {"images": {"registry": prefix.0}}});
    writer.merge(API_VERSION, &reconcile::id(&config), &change, false).await?;
    Ok(format!(
        "cluster {}: ConfigMap {MATRIX} names {source}, and spec.images.registry is {}",
        context.name, prefix.0
    ))
}
