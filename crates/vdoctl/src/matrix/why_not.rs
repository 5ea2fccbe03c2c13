// SPDX-License-Identifier: Apache-2.0
//! `vdoctl matrix why-not`: prints the reasons why a version does not fit, the smallest change that helps, and the versions that fit.

use super::super::args::{Global, WhyNot};
use super::super::views::matrix_resolve::WhyNotView;
use super::super::{Answer, CliError, Exit, style};
use super::{Loaded, confidence, query, show};
use vdo_api::types::DriverVersion;
use vdo_core::matrix::{self, Entry, Rejection};

pub(super) async fn why_not(args: &WhyNot, global: &Global) -> Result<Answer, CliError> {
    let loaded = Loaded::read(&args.index, global).await?;
    let (name, driver, entry) = show::entry_of(&loaded, &args.name, &args.version)?;
    let question = query::question(&args.platform, global, &loaded.index).await?;
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
    let instead = pick
        .filter(|_| !chosen)
        .map(|pick| format!("{} is chosen: {}", pick.version, pick.because));
    let remedies: Vec<String> = reasons.iter().filter_map(Rejection::remedy).collect();
    let helps = (!remedies.is_empty() && remedies.len() == reasons.len()).then(|| remedies.join("; and "));
    let fits = runs(candidates.get(name).map_or(&[], Vec::as_slice));
    let view = WhyNotView {
        matrix: loaded.view(),
        driver: name.to_owned(),
        version: entry.version.clone(),
        chosen,
        reasons: reasons.iter().map(Rejection::to_string).collect(),
        helps,
        fits,
        instead,
    };
    let text = || {
        let mut text = format!("{}{}\n\n", loaded.header(), question.title());
        match (reasons.as_slice(), chosen) {
            ([], true) => text.push_str(&format!("{} {name} {} is chosen\n", style::good("✓"), entry.version)),
            ([], false) => text.push_str(&format!("{name} {} fits\n", entry.version)),
            (all, _) => all.iter().for_each(|reason| {
                let sources = sources(entry, reason);
                text.push_str(&format!("{} {name} {} {reason}{sources}\n", style::bad("✗"), entry.version));
            }),
        }
        if let Some(helps) = &view.helps {
            text.push_str(&format!("  Smallest change that would make this version fit: {helps}\n"));
        }
        view.instead.iter().for_each(|line| text.push_str(&format!("  {line}\n")));
        if !reasons.is_empty() {
            let fits = if view.fits.is_empty() {
                "no version".to_owned()
            } else {
                view.fits.join(", ")
            };
            text.push_str(&format!("  Versions that fit now: {fits}\n"));
        }
        text
    };
    let answer = Answer::view(args.output.or_table(), &view, text)?;
    let exit = if view.reasons.is_empty() { Exit::Ok } else { Exit::Differences };
    Ok(question.answer(loaded.answer(answer)).exit(exit))
}

/// Where it is written that a version supports no more than it does.
fn sources(entry: &Entry, reason: &Rejection) -> String {
    let support = match reason {
        Rejection::Kubernetes { .. } => &entry.kubernetes,
        Rejection::Vsphere { .. } => &entry.vsphere,
        _ => return String::new(),
    };
    let sources = match support.evidence.len() {
        0 => "without a source".to_owned(),
        _ => format!("{} sources, which vdoctl matrix show lists", confidence(support.confidence)),
    };
    format!(" ({sources})")
}

/// What fits, newest first: `3.7.0–3.7.3`, where nothing in between does not.
pub(super) fn runs(candidates: &[(DriverVersion, Option<Rejection>)]) -> Vec<String> {
    let mut runs: Vec<(&DriverVersion, &DriverVersion)> = Vec::new();
    let mut open = false;
    for (version, reason) in candidates {
        match runs.last_mut().filter(|(newest, _)| open && newest.minor() == version.minor()) {
            _ if reason.is_some() => {}
            Some((_, oldest)) => *oldest = version,
            None => runs.push((version, version)),
        }
        open = reason.is_none();
    }
    let words = |(newest, oldest): (&DriverVersion, &DriverVersion)| {
        if newest == oldest {
            newest.to_string()
        } else {
            format!("{oldest}–{newest}")
        }
    };
    runs.into_iter().map(words).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_runs_adjacent_versions_are_joined_to_ranges() {
        let candidates = |text: &str| -> Vec<(DriverVersion, Option<Rejection>)> {
            let one = |word: &str| {
                let (version, barred) = word.strip_prefix('!').map_or((word, false), |version| (version, true));
                (version.parse().expect("a version"), barred.then_some(Rejection::NoChart))
            };
            text.split_whitespace().map(one).collect()
        };
        for (text, expected) in [
            ("", ""),
            ("3.7.3", "3.7.3"),
            ("3.7.3 3.7.2 3.7.1 3.6.3 !3.6.2 3.6.1 3.6.0", "3.7.1–3.7.3, 3.6.3, 3.6.0–3.6.1"),
            ("!3.7.3 !3.7.2", ""),
        ] {
            assert_eq!(runs(&candidates(text)).join(", "), expected);
        }
    }
}
