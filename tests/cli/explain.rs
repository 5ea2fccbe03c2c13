// SPDX-License-Identifier: Apache-2.0
//! `vdoctl explain` as its users meet it: offline, every reason and every exit code.

use crate::sample::some_or_all;
use assert_cmd::Command;
use insta::{assert_snapshot, with_settings};
use serde_json::Value;
use vdo_api::api::{ConditionType, Reason};

/// Exit code, stdout and stderr, of a vdoctl that no environment and no cluster reaches.
fn vdoctl(arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::cargo_bin("vdoctl").expect("vdoctl is built with the tests");
    let output = command.env_clear().arg("explain").args(arguments).output().expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (output.status.code().expect("a code"), text(output.stdout), text(output.stderr))
}

#[test]
fn explain_every_reason_has_cause_and_remedy() {
    for reason in some_or_all("reasons", Reason::ALL, 40) {
        let word = reason.as_str();
        let (code, text, talk) = vdoctl(&[&word.to_lowercase()]);
        assert_eq!((code, talk.as_str()), (0, ""), "{word}");
        assert!(
            text.starts_with(word) && text.contains("\nCause:\n  ") && text.contains("\nRemedy:\n  "),
            "{text}"
        );

        let (code, text, _) = vdoctl(&[word, "-o", "json"]);
        let json: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(
            (code, &json["apiVersion"], &json["kind"]),
            (0, &"vdoctl/v1".into(), &"Reason".into())
        );
        assert_eq!(json["reason"], word);
        for part in ["section", "cause", "shownIn", "remedy"] {
            assert!(json[part].as_str().is_some_and(|text| !text.is_empty()), "{word} {part}: {json}");
        }
    }
}

/// A condition leads to the reasons that it may have, and every reason that the page shows in a condition is found that way.
#[test]
fn explain_every_condition_has_meaning_and_reasons() {
    let mut found = std::collections::BTreeSet::new();
    let kinds = ConditionType::of_config().chain(ConditionType::of_connection());
    // RolledBack is a reason, too, and that says more.
    for kind in kinds.filter(|kind| Reason::ALL.iter().all(|reason| reason.as_str() != kind.as_str())) {
        let (code, text, talk) = vdoctl(&[&kind.as_str().to_lowercase()]);
        assert_eq!((code, talk.as_str()), (0, ""), "{kind}");
        assert!(text.starts_with(kind.as_str()) && text.contains("\nMeaning:\n  "), "{text}");
        let (_, json, _) = vdoctl(&[kind.as_str(), "-o", "json"]);
        let json: Value = serde_json::from_str(&json).expect("JSON");
        assert!(
            json["kind"] == "Condition" && json["meaning"].as_str().is_some_and(|meaning| meaning.ends_with('.')),
            "{json}"
        );
        let reasons: Vec<String> = serde_json::from_value(json["reasons"].clone()).expect("reasons");
        let words: Vec<&str> = text.split(|sign: char| !sign.is_ascii_alphanumeric()).collect();
        assert!(reasons.iter().all(|reason| words.contains(&reason.as_str())), "{text}");
        found.extend(reasons);
    }
    assert!(found.len() > 100, "{} of {} reasons", found.len(), Reason::ALL.len());
    let (_, text, _) = vdoctl(&["NodesFound"]);
    assert!(
        text.starts_with("NodesFound  (condition of a vSphere connection)\n") && text.contains("\n  DiskUuidDisabled "),
        "{text}"
    );
    let (_, text, _) = vdoctl(&["UpgradeAvailable"]);
    assert!(text.contains("If the condition is not reported, it counts as False."), "{text}");
}

#[test]
fn explain_without_argument_lists_every_reason() {
    let (code, text, _) = vdoctl(&[]);
    assert_eq!(code, 0);
    let (code, json, _) = vdoctl(&["-o", "json"]);
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let listed: Vec<&str> = json["reasons"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|r| r["reason"].as_str())
        .collect();
    assert_eq!((code, listed.len()), (0, Reason::ALL.len()));
    for word in listed {
        assert!(
            text.lines().any(|line| line.starts_with(&format!("  {word} "))),
            "{word} is not in\n{text}"
        );
    }
}

/// The codes that are explained are those that docs/cli.md tells.
#[test]
fn explain_every_exit_code_of_cli_page_is_known() {
    let page = std::fs::read_to_string("docs/cli.md").expect("docs/cli.md");
    let reported: String = page
        .split("## Exit codes")
        .nth(1)
        .expect("a section")
        .split("\n## ")
        .next()
        .unwrap_or_default()
        .into();
    let reported: Vec<&str> = reported
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split_once(" |"))
        .flat_map(|(codes, _)| codes.split(", "))
        .filter(|code| code.parse::<u8>().is_ok())
        .collect();
    assert!(reported.len() > 8, "{reported:?}");
    for code in &reported {
        let (exit, text, _) = vdoctl(&[code]);
        assert!(exit == 0 && text.starts_with(&format!("exit code {code} ")), "{code}: {text}");
        assert!(*code == "0" || text.contains("\nRemedy:\n  "), "{code}: {text}");
    }
    let (_, json, _) = vdoctl(&["-o", "json"]);
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["exitCodes"].as_array().map(Vec::len), Some(reported.len()));
}

#[test]
fn explain_misspelled_word_suggests_nearest() {
    for (word, suggestion) in [
        ("AcountLocked", "Did you mean AccountLocked?"),
        ("locked", "Did you mean AccountLocked"),
        ("thumbprint", "Did you mean ThumbprintMismatch?"),
        ("99", "`vdoctl explain` lists them all."),
        ("", "`vdoctl explain` lists them all."),
        ("Bogus", "`vdoctl explain` lists them all."),
    ] {
        let (code, text, talk) = vdoctl(&[word]);
        assert!(
            code == 3 && text.is_empty() && talk.contains(suggestion),
            "{word}: {code} {text} {talk}"
        );
    }
    assert!(!vdoctl(&["Bogus"]).2.contains("Did you mean"));
}

#[test]
fn explain_selected_words_match_snapshots() {
    for word in ["ThumbprintMismatch", "AccountLocked", "6", "Thumbprintmissmatch"] {
        let (code, text, talk) = vdoctl(&[word]);
        let seen = format!("exit {code}\n--- stdout\n{text}--- stderr\n{talk}");
        with_settings!({ omit_expression => true }, { assert_snapshot!(format!("explain_{word}"), seen) });
    }
}
