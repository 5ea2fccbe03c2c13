// SPDX-License-Identifier: Apache-2.0
//! Pictures of terminals: what a command has really printed, recorded by a test, as text with its colours.

use std::fmt::Write as _;

/// Sizes in pixels: of a character, and of a line.
const WIDE: f32 = 7.5;
const HIGH: usize = 17;
/// How many characters a line has.
const COLUMNS: usize = 80;

/// In addition to the style of every picture.
const STYLE: &str = "<style>\
    svg{--good:#1f7a3d;--bad:#c0262d}@media (prefers-color-scheme:dark){svg{--good:#5fd38d;--bad:#ff7b7b}}\
    text{font:12.5px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;white-space:pre}.bold{font-weight:600}\
    .good{fill:var(--good)}.bad{fill:var(--bad);font-weight:600}.warn{fill:var(--unsure)}</style>";

/// Characters of one style, and the column where they begin.
#[derive(Debug, PartialEq, Eq)]
struct Run<'a> {
    column: usize,
    class: &'static str,
    text: &'a str,
}

/// The record as a picture without its paper. In the record `␛` stands for the escape character.
pub(super) fn drawn(record: &str, label: &str) -> String {
    let lines: Vec<&str> = record.lines().collect();
    let (width, height) = ((COLUMNS as f32 * WIDE) as usize, lines.len() * HIGH);
    let mut text = format!(
        "<svg viewBox=\"-10 -10 {} {}\" width=\"{}\" role=\"img\" aria-label=\"{label}\" xml:space=\"preserve\">{STYLE}",
        width + 20,
        height + 20,
        width + 20
    );
    for (row, line) in lines.iter().enumerate() {
        for run in runs(line) {
            let class = match run.class {
                "" => String::new(),
                class => format!(" class=\"{class}\""),
            };
            let _ = write!(
                text,
                "<text x=\"{}\" y=\"{}\" textLength=\"{}\"{class}>{}</text>",
                run.column as f32 * WIDE,
                row * HIGH + HIGH - 4,
                run.text.chars().count() as f32 * WIDE,
                escaped(run.text)
            );
        }
    }
    text + "</svg>"
}

/// The parts of a line between its styles, without blanks around them. A command that is typed is bold.
fn runs(line: &str) -> Vec<Run<'_>> {
    let mut class = if line.starts_with("$ ") { "bold" } else { "" };
    let (mut column, mut all) = (0, Vec::new());
    for (at, part) in line.split("␛[").enumerate() {
        let shown = match part.split_once('m').filter(|_| at > 0) {
            Some((style, shown)) => {
                class = class_of(style);
                shown
            }
            None => part,
        };
        let (blanks, text) = (shown.chars().take_while(|c| *c == ' ').count(), shown.trim());
        if !text.is_empty() {
            all.push(Run {
                column: column + blanks,
                class,
                text,
            });
        }
        column += shown.chars().count();
    }
    all
}

/// The styles of vdoctl.
fn class_of(style: &str) -> &'static str {
    match style {
        "1" => "bold",
        "2" => "faint",
        "31" | "31;1" => "bad",
        "32" => "good",
        "33" => "warn",
        _ => "",
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn screen_runs_have_the_column_and_the_style_of_their_characters() {
        let run = |column, class, text| Run { column, class, text };
        for (line, expected) in [
            ("", vec![]),
            ("plain  text ", vec![run(0, "", "plain  text")]),
            ("$ vdoctl status", vec![run(0, "bold", "$ vdoctl status")]),
            (
                "  ␛[31;1m✗␛[0m a ␛[32mhealthy␛[0m",
                vec![run(2, "bad", "✗"), run(4, "", "a"), run(6, "good", "healthy")],
            ),
            ("␛[2m  ·␛[0m", vec![run(2, "faint", "·")]),
        ] {
            assert_eq!(runs(line), expected, "{line}");
        }
    }

    #[test]
    fn screen_picture_has_no_markup_of_the_record() {
        assert!(drawn("a <b> & c", "label").contains(">a &lt;b&gt; &amp; c<"));
    }
}
