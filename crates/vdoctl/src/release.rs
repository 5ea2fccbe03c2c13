// SPDX-License-Identifier: Apache-2.0
//! `vdoctl release`: writes the drivers' objects as manifests or as a Helm chart, and prints the commands for the handover.
//!
//! Nothing is changed in the cluster. A person runs the commands.

use super::args::{Global, NewOwner, Release as Args};
use super::context::{Context, joined};
use super::{Answer, CliError, Exit, atomic_files};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use vdo_api::types::{count, shell_word};
use vdo_api::yaml::dump_all;
use vdo_core::drivers::STORAGE;
use vdo_core::plan::{Desired, unmarked};

/// The name of the Helm release and of its chart.
const NAME: &str = "vsphere-drivers";

pub(super) async fn run(args: &Args, global: &Global) -> Result<Answer, CliError> {
    let context = Context::open(global).await?.choosing_from(&args.index, global).await?;
    let decided = context.decide().await?;
    if !decided.left.is_empty() {
        return Err(CliError::new(
            Exit::Refused,
            format!("some drivers cannot be planned: {}", joined(&decided.left)),
            "Fix the problem first, so that the files match the installed drivers.",
        ));
    }
    let mut desired: Vec<&Desired> = decided.planned.desired.iter().collect();
    desired.sort_by_key(|d| (d.wave, d.object.id()));
    let objects: Vec<Value> = desired.iter().map(|d| unmarked(&d.object)).collect();
    let files = match args.to {
        NewOwner::Manifests => vec![("drivers.yaml".into(), dump_all(&objects))],
        NewOwner::Helm => chart(&objects),
    };
    for (file, text) in &files {
        write(&args.output_dir.join(file), text)?;
    }
    let answer = Answer::text(commands(args, global)).note(format!(
        "{} written to {}, with the Secrets of the drivers; nothing was changed in cluster {}.",
        count(objects.len(), "object"),
        args.output_dir.display(),
        context.name
    ));
    Ok(context.matrix_lines().fold(answer, Answer::note))
}

/// A chart that renders exactly these objects.
fn chart(objects: &[Value]) -> Vec<(PathBuf, String)> {
    let about =
        json!({"apiVersion": "v2", "name": NAME, "version": "1.0.0", "description": "The vSphere drivers as VDO has installed them"});
    // Braces that are meant for another program are not Helm's.
    let templates = dump_all(objects).replace("{{", "{{ \"{{\" }}");
    vec![
        ("Chart.yaml".into(), dump_all(&[about])),
        ("templates/drivers.yaml".into(), templates),
    ]
}

fn write(path: &Path, text: &str) -> Result<(), CliError> {
    let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    made.and_then(|()| atomic_files::write_private(path, text.as_bytes()))
        .map_err(|error| super::support::unwritable(path, &error))
}

/// The way to the new owner, as a shell reads it.
fn commands(args: &Args, global: &Global) -> String {
    let folder = args.output_dir.display().to_string();
    let folder = shell_word(&folder);
    let namespace = match global.namespace.as_str() {
        vdo_api::api::OPERATOR_NAMESPACE => String::new(),
        other => format!("--namespace {other}"),
    };
    let take = match args.to {
        NewOwner::Manifests => format!("kubectl apply --server-side --filename {folder}"),
        NewOwner::Helm => format!("helm install {NAME} {folder} --namespace {} --take-ownership", STORAGE.namespace),
    };
    let lines = [
        "# The drivers keep running with the same pods. Their roles and bindings stay as they are.".to_owned(),
        format!("vdoctl delete --keep-drivers --yes {namespace}").trim_end().to_owned(),
        take,
    ];
    lines.map(|line| line + "\n").concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chart_keeps_braces_of_other_programs_from_helm() {
        let files = chart(&[json!({"kind": "ConfigMap", "data": {"a": "{{ .Node }}"}})]);
        assert_eq!(files[1].1, "---\nkind: ConfigMap\ndata:\n  a: \"{{ \"{{\" }} .Node }}\"\n");
    }
}
