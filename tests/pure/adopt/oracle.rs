// SPDX-License-Identifier: Apache-2.0
//! The reader of gcfg against the driver's own parser.

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use vdo_core::driverconfig::gcfg_reader;

/// A value in any spelling, right or wrong.
fn spelling() -> impl Strategy<Value = String> {
    prop_oneof![
        r#"[ -~]{0,12}"#,
        r#"[ab ;#"\\nt=\[\]\t]{0,10}"#,
        r#""[ab;#=\[ ]{0,6}(\\\\|\\"|\\n|\\t){0,2}[ab]{0,2}""#,
        r#"[ab]{1,3}("[ab ]{1,3}")?[ab ]{0,3}"#,
        Just("a\\\nb".to_owned()),
        Just("é ü".to_owned()),
    ]
}

#[test]
fn gcfg_values_in_any_spelling_are_read_as_the_driver_reads_them() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let values: Vec<String> = (0..2_000).map(|_| spelling().new_tree(&mut runner).unwrap().current()).collect();
    let text = |value: &str| format!("[Global]\nuser = {value}\n");
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    for value in values {
        match gcfg_reader::read(text(&value).as_bytes()) {
            Ok(read) if read.entries.len() == 1 && read.sections.len() == 1 => good.push((value, read)),
            Ok(_) => {}
            Err(_) => bad.push(value),
        }
    }
    assert!(good.len() > 500 && bad.len() > 100, "{} and {}", good.len(), bad.len());
    let texts: Vec<String> = good.iter().map(|(value, _)| text(value)).collect();
    let parsed = vdo_testbed::parsed_many(vdo_testbed::Grammar::Csi, &texts).unwrap();
    for ((value, read), theirs) in good.iter().zip(parsed) {
        assert_eq!(
            read.get("global", "user").unwrap_or_default(),
            theirs["Global"]["user"],
            "{value:?}"
        );
    }
    for value in bad.iter().take(60) {
        let theirs = vdo_testbed::parsed(vdo_testbed::Grammar::Csi, &text(value));
        assert!(theirs.is_err(), "the driver reads {value:?}");
    }
}
