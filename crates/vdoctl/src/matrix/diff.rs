// SPDX-License-Identifier: Apache-2.0
//! `vdoctl matrix diff`: compares two matrices, and prints for which clusters an operator would choose other versions.

use super::super::args::{Global, MatrixDiff, MatrixFile};
use super::super::views::matrix_resolve::{MatrixDiffView, situation};
use super::super::{Answer, CliError, Exit, style};
use super::Loaded;
use std::collections::{BTreeMap, BTreeSet};
use vdo_api::types::{DriverVersion, KubernetesVersion, VcenterVersion, count};
use vdo_core::matrix::{Choice, Difference, difference, known_minors, known_vcenters};
use vdo_source::fetch::MatrixSource;

pub(super) async fn run(args: &MatrixDiff, global: &Global) -> Result<Answer, CliError> {
    let read = |source: &MatrixSource| {
        let named = MatrixFile {
            matrix: Some(source.clone()),
            matrix_keys: args.matrix_keys.clone(),
            matrix_credentials: args.matrix_credentials.clone(),
        };
        async move { Loaded::read(&named, global).await }
    };
    let (old, new) = (read(&args.old).await?, read(&args.new).await?);
    let indexes = [&*old.index, &*new.index];
    let or = |given: &[KubernetesVersion]| if given.is_empty() { known_minors(indexes) } else { given.to_vec() };
    let kubernetes = or(&args.kubernetes);
    let vcenters = match args.vcenter.as_slice() {
        [] => known_vcenters(indexes),
        given => given.to_vec(),
    };
    let found = difference(&old.index, &new.index, &kubernetes, &vcenters);
    let view = MatrixDiffView::of(old.view(), new.view(), &found);
    let text = || text(&old, &new, &found, (kubernetes.len(), vcenters.len()));
    let answer = Answer::view(args.output.or_table(), &view, text)?;
    let exit = if found.is_same() { Exit::Ok } else { Exit::Differences };
    Ok(new.answer(answer).exit(exit))
}

fn text(old: &Loaded, new: &Loaded, found: &Difference, (minors, vcenters): (usize, usize)) -> String {
    let mut text = format!("version {} -> {}\n", old.index.version, new.index.version);
    for (driver, version, what) in &found.versions {
        text.push_str(&format!("  {driver} {version} {}\n", what.join("; ")));
    }
    for rule in &found.rules {
        text.push_str(&format!("  {rule}\n"));
    }
    if found.is_same() {
        let (minors, vcenters) = (count(minors, "Kubernetes minor"), count(vcenters, "vCenter version"));
        text.push_str(&format!(
            "{} With both matrices, an operator would do the same ({minors}, {vcenters}).\n",
            style::good("✓")
        ));
        return text;
    }
    if found.choices.is_empty() {
        return text;
    }
    let shown = |version: &Option<DriverVersion>| version.as_ref().map_or("nothing fits".to_owned(), ToString::to_string);
    let other = |choice: &Choice| match choice.old.is_some() && choice.old == choice.new {
        true => format!("{}, another chart", shown(&choice.new)),
        false => shown(&choice.new),
    };
    let rows: Vec<Vec<String>> = found
        .choices
        .iter()
        .map(|choice| {
            vec![
                choice.driver.to_string(),
                situation(choice.situation).to_owned(),
                shown(&choice.old),
                other(choice),
                places(&choice.platforms),
            ]
        })
        .collect();
    text + "\n" + &style::table(&["DRIVER", "CLUSTER", "OLD", "NEW", "WHERE"], &rows)
}

/// `Kubernetes 1.33, 1.34 with vCenter 8.0.3`: the minors together that have the same vCenters.
fn places(platforms: &[(KubernetesVersion, VcenterVersion)]) -> String {
    let mut minors: BTreeMap<&KubernetesVersion, BTreeSet<&VcenterVersion>> = BTreeMap::new();
    for (kubernetes, vcenter) in platforms {
        minors.entry(kubernetes).or_default().insert(vcenter);
    }
    let mut groups: BTreeMap<Vec<&VcenterVersion>, Vec<&KubernetesVersion>> = BTreeMap::new();
    for (minor, vcenters) in minors {
        groups.entry(vcenters.into_iter().collect()).or_default().push(minor);
    }
    let list = |versions: Vec<String>| match versions.as_slice() {
        [first, .., last] if versions.len() > 2 => format!("{first} to {last}"),
        few => few.join(", "),
    };
    let group = |(vcenters, minors): (Vec<&VcenterVersion>, Vec<&KubernetesVersion>)| {
        let minors = list(minors.iter().map(ToString::to_string).collect());
        let vcenters = list(vcenters.iter().map(ToString::to_string).collect());
        format!("Kubernetes {minors} with vCenter {vcenters}")
    };
    groups.into_iter().map(group).collect::<Vec<_>>().join("; ")
}
