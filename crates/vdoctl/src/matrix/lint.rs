// SPDX-License-Identifier: Apache-2.0
//! `vdoctl matrix lint`: prints every mistake in an index and in its charts, with file and line.

mod charts;

use super::super::args::Lint as Args;
use super::super::views::publish::{MatrixLintView, MistakeView};
use super::super::{Answer, CliError, Exit, memory_limited_child, style};
use super::{bytes, embedded_index, not_text};
use std::path::Path;
use vdo_api::types::count;
use vdo_core::matrix::lint::lint;
use vdo_source::fetch::{MatrixSource, embedded, index_file};

pub(super) async fn run(args: &Args) -> Result<Answer, CliError> {
    if let Some(named) = &args.file
        && let Some(answer) = memory_limited_child::in_child("matrix lint", named).await?
    {
        return Ok(answer);
    }
    let file = args.file.as_deref().map(index_file);
    let (name, bytes) = match &file {
        Some(file) => (file.display().to_string(), bytes(file)?),
        None => (MatrixSource::Embedded.to_string(), embedded::index().to_vec()),
    };
    let text = String::from_utf8(bytes).map_err(|_| not_text(&name))?;
    let mut report = lint(&text, &embedded_index()?);
    let folder = file.as_deref().map(|file| file.parent().unwrap_or(Path::new(".")));
    let checked = charts::check(folder, &mut report).await;
    let findings = report.located(&text);
    let exit = if findings.is_empty() { Exit::Ok } else { Exit::Differences };
    let mistakes = findings.iter().map(|finding| MistakeView {
        file: name.clone(),
        line: finding.line,
        at: finding.at.clone(),
        field: finding.field.clone(),
        problem: finding.problem.clone(),
    });
    let view = MatrixLintView {
        file: name.clone(),
        good: findings.is_empty(),
        findings: mistakes.collect(),
        charts_checked: checked.here,
        charts_elsewhere: checked.elsewhere,
    };
    let text = || {
        let mut text: String = view.findings.iter().map(line).collect();
        if findings.is_empty() {
            let charts = count(checked.here, "chart");
            text.push_str(&format!("{} {name}: no mistakes, {charts} checked\n", style::good("✓")));
        } else {
            text.push_str(&format!("{} {}\n", style::bad("✗"), count(findings.len(), "mistake")));
        }
        if checked.elsewhere > 0 {
            text.push_str(&format!("{} elsewhere, not checked\n", count(checked.elsewhere, "chart")));
        }
        text
    };
    let answer = Answer::view(args.output.or_table(), &view, text)?;
    Ok(answer.exit(exit))
}

/// `index.yaml:120: drivers.vsphere-csi 3.7.3 kubernetes.min: …`, as editors understand it.
fn line(finding: &MistakeView) -> String {
    let number = finding.line.map(|line| format!("{line}:")).unwrap_or_default();
    let place: Vec<&str> = [finding.at.as_str(), finding.field.as_str()]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect();
    let place = if place.is_empty() {
        String::new()
    } else {
        format!(" {}:", place.join(" "))
    };
    format!("{}:{number}{place} {}\n", finding.file, finding.problem)
}
