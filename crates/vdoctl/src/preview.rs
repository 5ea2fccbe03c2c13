//! A change of the configuration that was not made yet: what the API server has to say to it, and the pipeline as if it were made.

use super::args::Preview as Args;
use super::change::{Change, set};
use super::context::{Context, id};
use super::deploy::checks::with_status;
use super::deploy::configuration::Configuration;
use super::deploy::text;
use super::driver_fields::keeping_all;
use super::{CliError, Exit};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use vdo::reconcile;
use vdo_core::install::FieldError;
use vdo_core::manifest::Object;

/// From now on the cluster is read as if the change were made. What changes; nothing where nothing is to be previewed.
pub(super) async fn suppose(context: &mut Context, args: &Args) -> Result<Vec<Change>, CliError> {
    let mut wanted = match &args.file {
        Some(file) => Configuration::objects(&file.display().to_string(), &text(file)?, context.namespace())?,
        None => Vec::new(),
    };
    let mut changes = Vec::new();
    if !args.settings.is_empty() {
        let patch = spec(args)?;
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
    let supposed: Vec<Object> = changes.iter().map(|change| change.after.clone()).collect();
    context.suppose(supposed.clone());
    let acting = context.acting().await?;
    // The operator has not looked at these, so this command does.
    let new = changes
        .iter()
        .filter(|change| change.before.is_none() && change.after.kind() == "VsphereCloudConfig");
    let new: BTreeSet<&str> = new.map(|change| change.after.name()).collect();
    if !new.is_empty() {
        let seen = with_status(context, &acting, supposed, &new).await?;
        context.suppose(seen);
    }
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
pub(super) fn spec(args: &Args) -> Result<Value, CliError> {
    let mut all = json!({});
    for setting in &args.settings {
        set(&mut all, setting.in_spec().map_err(unusable)?);
    }
    Ok(all)
}

fn unusable(error: FieldError) -> CliError {
    let (what, remedy) = match error {
        FieldError::Unknown { path, meant, known } => {
            let guess = meant.map(|near| format!("Did you mean {near}? ")).unwrap_or_default();
            let known = match known.as_slice() {
                [] => "kubectl explain vdoconfig.spec lists the fields.".to_owned(),
                known => format!("There are: {}.", known.join(", ")),
            };
            (format!("a VDOConfig has no field {path}"), format!("{guess}{known}"))
        }
        FieldError::Type { path, wanted } => {
            let example = match wanted.as_str() {
                "object" => "an object, for example {} or {a: 1}",
                "array" => "a list, for example [a, b]",
                "boolean" => "true or false",
                _ => "a number",
            };
            (format!("the value of {path} is of the wrong type"), format!("Write {example}."))
        }
    };
    CliError::new(Exit::Usage, what, remedy)
}
