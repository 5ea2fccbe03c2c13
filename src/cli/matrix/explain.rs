//! `vdoctl matrix explain` and `why-not`.

use super::super::answer::document;
use super::super::args::{Explain, Global, WhyNot};
use super::super::{Answer, CliError, Exit, style};
use super::{Loaded, confidence, question, resolve, show};
use crate::matrix::{self, Entry, Rejection, Support};
use serde_json::{Value, json};

pub(super) async fn explain(args: &Explain, global: &Global) -> Result<Answer, CliError> {
    let loaded = Loaded::read(args.index.matrix.as_deref()).await?;
    let question = question::question(&args.platform, global, &loaded.index).await?;
    let result = matrix::resolve(&loaded.index, &question.query());
    let candidates = matrix::candidates(&loaded.index, &question.query());
    let exit = if result.is_ok() { Exit::Ok } else { Exit::Differences };
    let pick = |name: &str| result.as_ref().ok().and_then(|resolution| resolution.picks.get(name));
    let entry = |name: &str| {
        let version = &pick(name)?.target;
        loaded.index.drivers.get(name)?.entry(version)
    };
    let answer = Answer::formatted(
        args.output.or_table(),
        || {
            let drivers: Vec<Value> = candidates
                .iter()
                .map(|(name, candidates)| {
                    let all: Vec<Value> = candidates
                        .iter()
                        .map(|(version, reason)| json!({"version": version, "rejected": reason.as_ref().map(ToString::to_string)}))
                        .collect();
                    let picked = pick(name).map(|p| {
                        json!({"version": p.version, "target": p.target, "path": p.path, "because": p.because,
                            "preconditions": p.preconditions, "waits": p.waits.as_ref().map(ToString::to_string)})
                    });
                    json!({"driver": name, "choice": picked, "facts": entry(name).map(|e| super::json(name, e)), "candidates": all})
                })
                .collect();
            document(
                "Explanation",
                json!({"matrix": loaded.identity(), "fits": result.is_ok(), "drivers": drivers}),
            )
        },
        || {
            let mut text = format!("{}\n", question.title());
            for (name, candidates) in &candidates {
                match pick(name) {
                    Some(pick) => {
                        text.push_str(&format!(
                            "\n{}\n  {}\n",
                            style::head(&format!("{name} {}", pick.version)),
                            pick.because
                        ));
                        entry(name).into_iter().for_each(|entry| text.push_str(&facts(entry)));
                        for precondition in &pick.preconditions {
                            let what = loaded.index.preconditions.get(precondition).map_or("", String::as_str);
                            text.push_str(&format!("  Check first {precondition}: {what}\n"));
                        }
                        pick.waits.iter().for_each(|waits| text.push_str(&format!("  {waits}\n")));
                    }
                    None => text.push_str(&format!("\n{}\n", style::head(name))),
                }
                let chosen = pick(name).map(|pick| &pick.version);
                let rows: Vec<Vec<String>> = candidates
                    .iter()
                    .filter(|(version, _)| Some(version) != chosen)
                    .map(|(version, reason)| {
                        let word = reason.as_ref().map_or_else(|| "fits as well".to_owned(), ToString::to_string);
                        vec![format!("  {version}"), word]
                    })
                    .collect();
                if !rows.is_empty() {
                    text.push_str(&style::table(&["  NOT", "BECAUSE IT"], &rows));
                }
            }
            if let Err(error) = &result {
                for error in error.all() {
                    text.push_str(&format!("\n{} {}\n", style::bad("✗"), resolve::headline(error)));
                    error.advice.iter().for_each(|advice| text.push_str(&format!("  {advice}.\n")));
                }
            }
            text
        },
    )?;
    Ok(answer.exit(exit))
}

fn facts(entry: &Entry) -> String {
    let line = |what: &str, support: &Support| {
        let evidence = if support.evidence.is_empty() {
            "no evidence".to_owned()
        } else {
            support.evidence.join(", ")
        };
        let note = support.note.as_ref().map(|note| format!(" {note}")).unwrap_or_default();
        format!(
            "  {what} {}: {}, from {evidence}.{note}\n",
            support.range,
            confidence(support.confidence)
        )
    };
    line("Kubernetes", &entry.kubernetes) + &line("vCenter", &entry.vsphere)
}

pub(super) async fn why_not(args: &WhyNot, global: &Global) -> Result<Answer, CliError> {
    let loaded = Loaded::read(args.index.matrix.as_deref()).await?;
    let (name, driver, entry) = show::entry(&loaded.index, &args.name, &args.version)?;
    let question = question::question(&args.platform, global, &loaded.index).await?;
    let query = question.query();
    let request = question.drivers.get(name).cloned().unwrap_or_default();
    let mut reasons = matrix::misfits(driver, entry, &query, &request);
    let candidates = matrix::candidates(&loaded.index, &query);
    let own = candidates
        .get(name)
        .into_iter()
        .flatten()
        .find(|(version, _)| *version == entry.version);
    if let Some((_, Some(reason))) = own
        && !reasons.contains(reason)
    {
        reasons.push(reason.clone());
    }
    let result = matrix::resolve(&loaded.index, &query);
    let pick = result.as_ref().ok().and_then(|resolution| resolution.picks.get(name));
    let chosen = pick.is_some_and(|pick| pick.version == entry.version);
    let barred: Vec<String> = reasons.iter().map(Rejection::to_string).collect();
    let instead = pick
        .filter(|_| !chosen)
        .map(|pick| format!("{} is taken: {}", pick.version, pick.because));
    let answer = Answer::formatted(
        args.output.or_table(),
        || {
            document(
                "WhyNot",
                json!({"matrix": loaded.identity(), "driver": name, "version": entry.version, "chosen": chosen, "reasons": barred, "instead": instead}),
            )
        },
        || {
            let mut text = format!("{}\n\n", question.title());
            match (barred.as_slice(), chosen) {
                ([], true) => text.push_str(&format!("{} {name} {} is chosen\n", style::good("✓"), entry.version)),
                ([], false) => text.push_str(&format!("{name} {} fits\n", entry.version)),
                (all, _) => all
                    .iter()
                    .for_each(|reason| text.push_str(&format!("{} {name} {} {reason}\n", style::bad("✗"), entry.version))),
            }
            instead.iter().for_each(|line| text.push_str(&format!("  {line}\n")));
            text
        },
    )?;
    Ok(answer.exit(if barred.is_empty() { Exit::Ok } else { Exit::Differences }))
}
