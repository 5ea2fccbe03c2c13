// SPDX-License-Identifier: Apache-2.0
//! The drivers' parsers say what the facts say.

use anyhow::Result;
use vdo_testbed::{Grammar, parsed};

#[test]
fn csi_grammar_each_spelling_parses_like_driver() -> Result<()> {
    let file = |password: &str| format!("[Global]\nunknown = 1\n[VirtualCenter \"vc\"]\npassword = {password}\ninsecure-flag = yes\n");
    for (written, meant) in [
        (r#""p@ss\"w\\or d#;%$='""#, r#"p@ss"w\or d#;%$='"#),
        ("a;b", "a"),
        ("'a b'", "'a b'"),
        (r#""a\tb""#, "a\tb"),
    ] {
        let tree = parsed(Grammar::Csi, &file(written))?;
        assert_eq!(tree["VirtualCenter"]["vc"]["password"], meant, "{written}");
        assert_eq!(tree["VirtualCenter"]["vc"]["insecure-flag"], true);
    }
    Ok(())
}

#[test]
fn csi_grammar_bad_escape_is_error() -> Result<()> {
    let file = |password: &str| format!("[Global]\nunknown = 1\n[VirtualCenter \"vc\"]\npassword = {password}\ninsecure-flag = yes\n");
    for wrong in [r#""a\b""#, r"a\b"] {
        assert!(parsed(Grammar::Csi, &file(wrong)).is_err(), "{wrong}");
    }
    Ok(())
}

#[test]
fn cpi_grammar_yaml_parses_like_driver() -> Result<()> {
    let tree = parsed(
        Grammar::Cpi,
        "global: {port: 443, insecureFlag: yes}\nvcenter:\n  a: {server: \"::1\"}\n",
    )?;
    assert_eq!(tree["global"]["insecureFlag"], true);
    assert_eq!(tree["vcenter"]["a"]["server"], "::1");
    Ok(())
}

#[test]
fn cpi_grammar_broken_yaml_is_error() -> Result<()> {
    assert!(parsed(Grammar::Cpi, "global: [\n").is_err());
    Ok(())
}
