// SPDX-License-Identifier: Apache-2.0
//! Writes the result of `vdoctl selftest -o junit` as JUnit XML: a suite for each zone, a test case for each step. Pure.

use super::super::views::selftest::{SelftestView, StepView};
use super::steps::Outcome;

pub(super) fn text(view: &SelftestView) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    out.push_str(&format!("<testsuites name=\"vdoctl selftest\"{}>\n", sums(&view.steps)));
    for suite in view.steps.chunk_by(|a, b| a.zone == b.zone) {
        let zone = suite.first().map(|step| step.zone.as_str()).unwrap_or_default();
        let name = match zone {
            "" => "vdoctl.selftest".to_owned(),
            zone => format!("vdoctl.selftest.{zone}"),
        };
        let name = escaped(&name);
        out.push_str(&format!("  <testsuite name=\"{name}\"{}>\n", sums(suite)));
        suite.iter().for_each(|step| out.push_str(&case(&name, step)));
        out.push_str("  </testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

fn sums(steps: &[StepView]) -> String {
    let of = |result: Outcome| steps.iter().filter(|step| step.result == result).count();
    let time: u64 = steps.iter().map(|step| step.milliseconds).sum();
    let (failed, skipped) = (of(Outcome::Failed), of(Outcome::Skipped));
    format!(
        " tests=\"{}\" failures=\"{failed}\" errors=\"0\" skipped=\"{skipped}\" time=\"{}\"",
        steps.len(),
        seconds(time)
    )
}

fn case(suite: &str, step: &StepView) -> String {
    let begin = format!(
        "    <testcase classname=\"{suite}\" name=\"{}\" time=\"{}\"",
        step.step.name(),
        seconds(step.milliseconds)
    );
    let message = escaped(&step.message);
    match step.result {
        Outcome::Passed => format!("{begin}/>\n"),
        Outcome::Skipped => format!("{begin}>\n      <skipped message=\"{message}\"/>\n    </testcase>\n"),
        Outcome::Failed => {
            let findings = escaped(&super::found(&step.findings).join("\n"));
            format!("{begin}>\n      <failure message=\"{message}\">{findings}</failure>\n    </testcase>\n")
        }
    }
}

fn seconds(milliseconds: u64) -> String {
    format!("{}.{:03}", milliseconds / 1000, milliseconds % 1000)
}

/// A text in XML. Characters that XML 1.0 does not have are replaced.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            '\t' => out.push(' '),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::steps::Step;
    use super::*;
    use vdo_core::volume_diagnosis::{Cause, Finding};

    fn step(step: Step, zone: &str, result: Outcome, message: &str) -> StepView {
        StepView {
            step,
            zone: zone.into(),
            result,
            milliseconds: 1234,
            message: message.into(),
            findings: Vec::new(),
        }
    }

    fn view(steps: Vec<StepView>) -> SelftestView {
        SelftestView {
            result: Outcome::Failed,
            interrupted: false,
            namespace: "ns".into(),
            storage_class: "fast".into(),
            access_mode: "ReadWriteOnce".into(),
            image: "i".into(),
            milliseconds: 1234,
            steps,
        }
    }

    #[test]
    fn junit_has_a_suite_for_each_zone_and_a_case_for_each_step() {
        let mut failed = step(Step::Attach, "", Outcome::Failed, "a < b & \"c\"\u{1b}[31m");
        failed.findings.push(Finding {
            cause: Cause::VmNotFound,
            is_fault: true,
            kind: "VolumeAttachment".into(),
            namespace: String::new(),
            name: "csi-1".into(),
            message: "no VM".into(),
            remedy: "Compare.".into(),
            command: "vdoctl doctor nodes".into(),
        });
        let steps = vec![
            step(Step::Claim, "", Outcome::Passed, "bound"),
            failed,
            step(Step::Move, "", Outcome::Skipped, "one node"),
        ];
        let expected = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="vdoctl selftest" tests="3" failures="1" errors="0" skipped="1" time="3.702">
  <testsuite name="vdoctl.selftest" tests="3" failures="1" errors="0" skipped="1" time="3.702">
    <testcase classname="vdoctl.selftest" name="claim" time="1.234"/>
    <testcase classname="vdoctl.selftest" name="attach" time="1.234">
      <failure message="a &lt; b &amp; &quot;c&quot;�[31m">VmNotFound VolumeAttachment csi-1: no VM&#10;Compare.&#10;vdoctl doctor nodes</failure>
    </testcase>
    <testcase classname="vdoctl.selftest" name="move" time="1.234">
      <skipped message="one node"/>
    </testcase>
  </testsuite>
</testsuites>
"#;
        assert_eq!(text(&view(steps)), expected);
        let zones = vec![
            step(Step::Claim, "z<1", Outcome::Passed, ""),
            step(Step::Claim, "z2", Outcome::Passed, ""),
        ];
        let text = text(&view(zones));
        assert_eq!(text.matches("<testsuite ").count(), 2, "{text}");
        assert!(text.contains("<testsuite name=\"vdoctl.selftest.z&lt;1\" tests=\"1\""), "{text}");
    }
}
