//! A change of the configuration that was not made yet: what the API server has to say to it, and the pipeline as if it were made.

use super::args::Preview as Args;
use super::change::{Change, set};
use super::context::{Context, id};
use super::deploy::configuration::Configuration;
use super::deploy::text;
use super::driver_fields::keeping_all;
use super::{CliError, Exit};
use crate::manifest::Object;
use crate::reconcile;
use serde_json::{Value, json};

/// From now on the cluster is read as if the change were made. What changes; nothing where nothing is to be previewed.
pub(super) async fn suppose(context: &mut Context, args: &Args) -> Result<Vec<Change>, CliError> {
    let mut wanted = match &args.file {
        Some(file) => Configuration::objects(&file.display().to_string(), &text(file)?, context.namespace())?,
        None => Vec::new(),
    };
    let mut changes = Vec::new();
    if !args.settings.is_empty() {
        let patch = spec(args);
        match wanted.iter_mut().find(|object| object.kind() == "VDOConfig") {
            Some(config) => {
                let mut value = config.value().clone();
                set(&mut value, json!({"spec": patch}));
                *config = Object::new(value).map_err(|error| CliError::internal(&error))?;
            }
            None => {
                let live = context.acting_object().await?;
                let patch = keeping_all(&live.value()["spec"], patch);
                changes.push(Change::merge(context, live, json!({"spec": patch})).await?);
            }
        }
    }
    for object in &wanted {
        changes.push(Change::apply(context, object).await?);
    }
    if changes.is_empty() {
        return Ok(changes);
    }
    context.suppose(changes.iter().map(|change| change.after.clone()).collect());
    let acting = context.acting().await?;
    let other = |change: &&Change| change.after.kind() == "VDOConfig" && *change.after.identity() != reconcile::id(&acting);
    match changes.iter().find(other) {
        Some(other) => Err(CliError::new(
            Exit::Refused,
            format!("{} would not act: VDOConfig {} is older", other.after, id(&acting)),
            format!(
                "One VDOConfig acts for a cluster: name {} in the file.",
                acting.metadata.name.unwrap_or_default()
            ),
        )),
        None => Ok(changes),
    }
}

/// What the flags set of a specification; a path may begin with `spec`, as messages name it.
fn spec(args: &Args) -> Value {
    let mut all = json!({});
    args.settings.iter().for_each(|setting| set(&mut all, setting.below("spec")));
    all
}
