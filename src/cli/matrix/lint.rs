//! `vdoctl matrix lint`: every mistake in an index, and in the charts it names.

use super::super::answer::document;
use super::super::args::Lint as Args;
use super::super::{Answer, CliError, Exit, style};
use super::bytes;
use crate::fetch::{FetchError, Store, embedded};
use crate::matrix::lint::{Finding, lint};
use serde_json::{Value, json};
use std::path::Path;

pub(super) async fn run(args: &Args) -> Result<Answer, CliError> {
    let (name, bytes) = match &args.file {
        Some(path) => (path.display().to_string(), bytes(path)?),
        None => (Store::Embedded.to_string(), embedded::index().to_vec()),
    };
    let text = String::from_utf8(bytes).map_err(|_| {
        let what = format!("{name} is not UTF-8 text");
        CliError::new(Exit::Differences, what, "A matrix index is YAML or JSON")
    })?;
    let report = lint(&text);
    let mut findings = report.findings;
    let mut elsewhere = 0_usize;
    let folder = args.file.as_deref().map(|path| {
        if path.is_dir() {
            path
        } else {
            path.parent().unwrap_or(Path::new("."))
        }
    });
    for (at, chart) in &report.charts {
        let mut result = Err(FetchError::NotFound {
            store: String::new(),
            locations: chart.urls.join(", "),
        });
        if let Some(folder) = folder {
            result = Store::Local(folder.to_owned()).chart(chart).await;
        }
        if matches!(result, Err(FetchError::NotFound { .. })) {
            result = Store::Embedded.chart(chart).await;
        }
        let (field, problem) = match result {
            Ok(_) => continue,
            Err(FetchError::NotFound { .. }) if chart.urls.iter().any(|url| url.contains("://")) => {
                elsewhere += 1;
                continue;
            }
            Err(FetchError::NotFound { locations, .. }) => (
                "chart.urls",
                format!("there is no chart at {locations}, neither beside the index nor in this vdoctl"),
            ),
            Err(error @ FetchError::DigestMismatch { .. }) => ("chart.sha256", error.to_string()),
            Err(error) => ("chart", error.to_string()),
        };
        findings.push(Finding {
            at: at.clone(),
            field: field.to_owned(),
            problem,
        });
    }
    let exit = if findings.is_empty() { Exit::Ok } else { Exit::Differences };
    let answer = Answer::formatted(
        args.output.or_table(),
        || {
            let all: Vec<Value> = findings
                .iter()
                .map(|f| json!({"file": name, "at": f.at, "field": f.field, "problem": f.problem}))
                .collect();
            document(
                "MatrixLint",
                json!({"file": name, "good": findings.is_empty(), "findings": all, "chartsElsewhere": elsewhere}),
            )
        },
        || {
            let mut text: String = findings.iter().map(|finding| line(&name, finding)).collect();
            if findings.is_empty() {
                text.push_str(&format!(
                    "{} {name}: no mistakes, {} charts checked\n",
                    style::good("✓"),
                    report.charts.len() - elsewhere
                ));
            }
            if elsewhere > 0 {
                text.push_str(&format!("{elsewhere} charts are elsewhere and were not checked\n"));
            }
            text
        },
    )?;
    Ok(answer.exit(exit))
}

fn line(file: &str, finding: &Finding) -> String {
    let place: Vec<&str> = [finding.at.as_str(), finding.field.as_str()]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect();
    let place = if place.is_empty() {
        String::new()
    } else {
        format!(" {}:", place.join(" "))
    };
    format!("{file}:{place} {}\n", finding.problem)
}
