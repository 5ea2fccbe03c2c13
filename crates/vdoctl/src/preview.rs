// SPDX-License-Identifier: Apache-2.0
//! Applies `-f` and `--set` for a preview: the API server tries the change, and the pipeline then runs as if the change were made.

use super::args::Preview as Args;
use super::context::{Context, id};
use super::deploy::configuration::Configuration;
use super::deploy::text;
use super::driver_fields::{field, keeping_all};
use super::object_write::{Change, set};
use super::preflight_checks::with_status;
use super::{CliError, Exit};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use vdo_api::types::DriverVersion;
use vdo_core::drivers::{KNOWN, short};
use vdo_core::install::FieldError;
use vdo_core::manifest::Object;
use vdo_core::matrix::Index;

/// From now on the cluster is read as if the change were made. What changes; nothing where nothing is to be previewed.
pub(super) async fn suppose(context: &mut Context, args: &Args) -> Result<Vec<Change>, CliError> {
    let mut wanted = match &args.file {
        Some(file) => Configuration::objects(&file.display().to_string(), &text(file)?, context.namespace())?,
        None => Vec::new(),
    };
    let mut changes = Vec::new();
    if !args.settings.is_empty() {
        let patch = spec(args)?;
        if let Some((driver, text)) = no_version(&patch) {
            let index = super::matrix::index_of(&context.ports.repository).await.ok();
            return Err(begun(driver, text, index.as_deref()));
        }
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
    let other = |change: &&Change| change.after.kind() == "VDOConfig" && *change.after.identity() != acting.id();
    match changes.iter().find(other) {
        Some(other) => Err(CliError::new(
            Exit::Refused,
            format!(
                "{} would have no effect: the operator uses the older VDOConfig {}",
                other.after,
                id(&acting)
            ),
            format!(
                "The operator uses one VDOConfig only: name {} in the file.",
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

/// The first driver that is pinned to a text that is not a version, with the text.
fn no_version(patch: &Value) -> Option<(&'static str, &str)> {
    KNOWN.iter().find_map(|driver| {
        let text = field(patch, driver.name, "version").as_str()?;
        text.parse::<DriverVersion>().is_err().then_some((driver.name, text))
    })
}

/// A version of which only the beginning was typed, with the newest one that begins so.
fn begun(driver: &str, text: &str, index: Option<&Index>) -> CliError {
    let start = format!("{}.", text.trim_end_matches('.'));
    let all = index.and_then(|index| index.drivers.get(driver)).into_iter();
    let mut all = all.flat_map(|driver| &driver.versions).map(|entry| entry.version.to_string());
    let newest = all.find(|version| version.starts_with(&start));
    let (more, remedy) = match newest {
        Some(newest) => (format!("; the newest {start}x is {newest}"), format!("Write {newest}.")),
        None => (
            String::new(),
            format!("All versions: vdoctl matrix list {}", short(driver).to_lowercase()),
        ),
    };
    CliError::new(Exit::Usage, format!("{text:?} is not a version of {}{more}", short(driver)), remedy)
}

fn unusable(error: FieldError) -> CliError {
    let (what, remedy) = match error {
        FieldError::Unknown { path, meant, known } => {
            let guess = meant.map(|near| format!("Did you mean {near}? ")).unwrap_or_default();
            let known = match known.as_slice() {
                [] => "To list the fields: kubectl explain vdoconfig.spec".to_owned(),
                known => format!("Available: {}.", known.join(", ")),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preview_begun_version_is_answered_with_the_newest_that_begins_so() {
        let pinned = |version: &str| json!({"storageProvider": {"version": version}});
        assert_eq!(no_version(&json!({"updatePolicy": "Latest"})), None);
        assert_eq!(no_version(&json!({"storageProvider": {"version": null}})), None);
        assert_eq!(no_version(&pinned("3.7.3")), None);
        assert_eq!(no_version(&pinned("3.7")), Some(("vsphere-csi", "3.7")));

        let loaded = Index::parse(include_bytes!("../../../matrix-index/index.yaml")).expect("the index");
        let error = begun("vsphere-csi", "3.7", Some(&loaded));
        assert!(
            error.what.starts_with("\"3.7\" is not a version of CSI; the newest 3.7.x is 3.7."),
            "{}",
            error.what
        );
        assert!(error.remedy.starts_with("Write 3.7."), "{}", error.remedy);
        let error = begun("vsphere-csi", "latest", Some(&loaded));
        assert_eq!(error.what, "\"latest\" is not a version of CSI");
        assert_eq!(error.remedy, "All versions: vdoctl matrix list csi");
    }
}
