// SPDX-License-Identifier: Apache-2.0
//! `vdoctl mirror push --adopt`: configures the cluster to take its matrix and `spec.images.registry` from the mirror.

use super::super::CliError;
use super::super::args::Global;
use super::super::context::Context;
use super::super::object_write::Change;
use super::Prefix;
use serde_json::{Value, json};
use vdo_api::api::API_VERSION;
use vdo_core::install::{VDOCTL, matrix_source};

/// Makes the cluster use a mirror: first its matrix, then its images.
pub(super) async fn adopt(prefix: &Prefix, global: &Global) -> Result<String, CliError> {
    let context = Context::open(global).await?;
    let config = context.acting().await?;
    let source = format!("oci://{}", prefix.matrix()?);
    let secret = matrix_source(&global.namespace, &source).map_err(|error| CliError::internal(&error))?;
    Change::apply(&context, &secret).await?.make(&context).await?;
    let writer = context.ports.writer.clone().named(VDOCTL);
    let change: Value = json!({"spec": {"images": {"registry": prefix.0}}});
    writer.merge(API_VERSION, &config.id(), &change, false).await?;
    Ok(format!(
        "cluster {}: {secret} now names the matrix {source}, and spec.images.registry is {}",
        context.name, prefix.0
    ))
}
