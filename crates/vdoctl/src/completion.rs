// SPDX-License-Identifier: Apache-2.0
//! `vdoctl completion` and `vdoctl __complete`: prints the script of a shell, and answers what the script asks for each word.
//!
//! A script runs `vdoctl __complete WORD…`, and kubectl runs `kubectl_complete-vdo`. The answer has one value a line with its description
//! after a tab, and at the end a line with `:` and the directive for the shell. The values are computed here, so that all shells offer
//! the same.

mod values;
mod words;

use super::Answer;
use super::args::{self, Completion as Args};
use clap::ValueEnum;
use std::ffi::{OsStr, OsString};

/// A shell with completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    /// Bash
    Bash,
    /// Fish
    Fish,
    /// PowerShell
    #[value(alias = "pwsh")]
    Powershell,
    /// Zsh
    Zsh,
}

/// The word that a script begins its question with.
const ASK: &str = "__complete";

/// As which file kubectl finds the completion of its plugin.
const PLUGIN: &str = "kubectl_complete-vdo";

/// The words that a shell asks about; `None` where this is no such question.
pub(super) fn asked(called: &OsStr, line: &[OsString]) -> Option<Vec<String>> {
    let begin = match line.get(1) {
        _ if called == PLUGIN => 1,
        Some(word) if word == ASK => 2,
        _ => return None,
    };
    let words = line.iter().skip(begin).map(|word| word.to_string_lossy().into_owned());
    Some(words.collect())
}

/// The completion script.
pub(super) fn run(args: &Args) -> Answer {
    Answer::bytes(match args.shell {
        Shell::Bash => include_bytes!("completion/vdoctl.bash").to_vec(),
        Shell::Fish => include_bytes!("completion/vdoctl.fish").to_vec(),
        Shell::Powershell => include_bytes!("completion/vdoctl.ps1").to_vec(),
        Shell::Zsh => include_bytes!("completion/vdoctl.zsh").to_vec(),
    })
}

/// The shell adds no blank after a single value.
const NO_SPACE: u8 = 2;
/// The shell does not offer files where there is no value.
const NO_FILES: u8 = 4;

/// A value that fits, and what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Value {
    text: String,
    about: String,
}

impl Value {
    fn new(text: impl Into<String>, about: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            about: about.into(),
        }
    }
}

/// The values for the last of these words. A cluster that does not answer has none.
pub(super) async fn answer(line: &[String]) -> Answer {
    let root = args::command();
    let asked = words::read(&root, line);
    let (values, files) = match &asked.wanted {
        words::Wanted::Flags => (asked.flags(), false),
        words::Wanted::Values(place) => {
            let (mut found, files) = values::of(&asked, place).await;
            found.extend(asked.verbs());
            (found, files)
        }
    };
    let mut fitting: Vec<Value> = values.into_iter().filter(|value| value.text.starts_with(&asked.prefix)).collect();
    fitting.dedup();
    let open = |value: &Value| value.text.ends_with(['=', '.']);
    let directive = if fitting.iter().any(open) { NO_SPACE } else { 0 } | if files { 0 } else { NO_FILES };
    let mut text = String::new();
    for value in &fitting {
        let about = value.about.lines().next().unwrap_or_default();
        text.push_str(&value.text);
        if !about.is_empty() {
            text.push_str(&format!("\t{about}"));
        }
        text.push('\n');
    }
    Answer::bytes(format!("{text}:{directive}\n").into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values that are offered after these words, and how the shell treats them.
    async fn offered(words: &[&str]) -> (Vec<String>, u8) {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let text = String::from_utf8(answer(&words).await.data).expect("text");
        let (values, directive) = text.trim_end().rsplit_once(':').expect("a directive");
        let values = values.lines().map(|line| line.split('\t').next().unwrap_or_default().to_owned());
        (values.collect(), directive.parse().expect("a number"))
    }

    #[tokio::test]
    async fn completion_offers_what_fits_at_its_place() {
        for (line, some, none, directive) in [
            ("", &["status", "plan", "matrix"][..], &["--context", "__complete"][..], NO_FILES),
            ("sta", &["status"], &["plan"], NO_FILES),
            ("matrix ", &["why-not", "resolve"], &["status"], NO_FILES),
            ("matrix why-not ", &["csi", "cpi", "vsphere-csi"], &["3.7.3"], NO_FILES),
            ("matrix why-not csi 3.7", &["3.7.3", "3.7.0"], &["3.6.3", "csi"], NO_FILES),
            ("matrix show cpi 1.34", &["1.34.0"], &["3.7.3"], NO_FILES),
            ("matrix resolve --driver cs", &["csi", "csi="], &["cpi"], NO_FILES | NO_SPACE),
            ("matrix resolve --driver csi=3.7", &["csi=3.7.3"], &["csi=3.6.3"], NO_FILES),
            ("matrix resolve --kubernetes 1.3", &["1.34", "1.35"], &["v1.34"], NO_FILES),
            ("explain Vol", &["VolumesInUse"], &["DriftFight"], NO_FILES),
            ("explain ", &["VolumesInUse", "130"], &[], NO_FILES),
            ("status -o ", &["table", "json"], &["--watch"], NO_FILES),
            ("status --output=y", &["yaml"], &["json"], NO_FILES),
            ("status --", &["--watch", "--context", "--output"], &["status"], NO_FILES),
            ("status -o json --w", &["--watch"], &["--context"], NO_FILES),
            (
                "plan --set storageP",
                &["storageProvider."],
                &["cloudProvider."],
                NO_FILES | NO_SPACE,
            ),
            (
                "plan --set storageProvider.ver",
                &["storageProvider.version="],
                &[],
                NO_FILES | NO_SPACE,
            ),
            ("plan --set managementState=", &["managementState=Paused"], &[], NO_FILES),
            (
                "configure drivers --set updatePolicy=L",
                &["updatePolicy=Latest"],
                &["updatePolicy=Disabled"],
                NO_FILES,
            ),
            ("completion z", &["zsh"], &["bash"], NO_FILES),
            ("wait --for Matr", &["MatrixFresh"], &["healthy"], NO_FILES),
            ("plan -f ", &[], &["status"], 0),
            ("--color ", &["never"], &["status"], NO_FILES),
            ("-n other status --wa", &["--watch"], &[], NO_FILES),
        ] {
            let (offered, found) = offered(&line.split(' ').collect::<Vec<_>>()).await;
            for value in some {
                assert!(
                    offered.iter().any(|other| other == value),
                    "{value} is not offered after {line:?}: {offered:?}"
                );
            }
            for value in none {
                assert!(!offered.iter().any(|other| other == value), "{value} is offered after {line:?}");
            }
            assert_eq!(found, directive, "after {line:?}: {offered:?}");
        }
    }

    #[tokio::test]
    async fn completion_lists_contexts_of_the_kubeconfig() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("config");
        let context = |name: &str| format!("- {{name: {name}, context: {{cluster: c, user: u}}}}\n");
        std::fs::write(
            &path,
            format!("apiVersion: v1\nkind: Config\ncontexts:\n{}{}", context("blue"), context("green")),
        )
        .expect("written");
        let (values, _) = offered(&["status", "--kubeconfig", &path.display().to_string(), "--context", "gr"]).await;
        assert_eq!(values, ["green"]);
    }
}
