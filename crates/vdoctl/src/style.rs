// SPDX-License-Identifier: Apache-2.0
//! Formats text for people: colours, tables, columns, relative times (`5m`); the printer removes colours where they are not wanted.

use super::terminal_escapes;
use k8s_openapi::jiff::Timestamp;
use owo_colors::Style;
use std::borrow::Cow;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::LazyLock;
pub use vdo_api::types::nearest;

/// How every style of ours begins: as a control sequence, with a number that is random in every process. Foreign text
/// cannot know it, so the printer tells our styles from what others would like to look like.
pub fn mark() -> &'static str {
    static MARK: LazyLock<String> = LazyLock::new(|| format!("\x1b[{};", RandomState::new().hash_one("style")));
    &MARK
}

fn styled(style: Style, text: &str) -> String {
    let begin = ours(&style.prefix_formatter().to_string());
    let end = ours(&style.suffix_formatter().to_string());
    format!("{begin}{text}{end}")
}

/// A text that this program has painted in the way of terminals, with its styles as ours. It must hold nothing foreign.
pub fn ours(painted: &str) -> String {
    painted.replace("\x1b[", mark())
}

/// A text without our styles, for programs. What is foreign in it stays as it is.
pub fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains(mark()) {
        return Cow::Borrowed(text);
    }
    let mut parts = text.split(mark());
    let first = parts.next().unwrap_or_default().to_owned();
    Cow::Owned(parts.fold(first, |out, part| out + part.split_once('m').map_or(part, |(_, rest)| rest)))
}

/// Something is wrong.
pub fn bad(text: &str) -> String {
    styled(Style::new().red().bold(), text)
}

/// Something is as it should be.
pub fn good(text: &str) -> String {
    styled(Style::new().green(), text)
}

/// Something is under way, or should be known.
pub fn warn(text: &str) -> String {
    styled(Style::new().yellow(), text)
}

/// A heading.
pub fn head(text: &str) -> String {
    styled(Style::new().bold(), text)
}

/// Something of less interest.
pub fn faint(text: &str) -> String {
    styled(Style::new().dimmed(), text)
}

/// Rows under a heading, in columns.
pub fn table(heading: &[&str], rows: &[Vec<String>]) -> String {
    let heading: Vec<String> = heading.iter().map(|cell| head(cell)).collect();
    columns(std::iter::once(&heading).chain(rows))
}

/// Rows in columns two blanks apart. Nothing is cut or wrapped: lines stay greppable.
pub fn columns<'a>(rows: impl Iterator<Item = &'a Vec<String>> + Clone) -> String {
    let mut widths: Vec<usize> = vec![];
    for row in rows.clone() {
        widths.resize(widths.len().max(row.len()), 0);
        row.iter().zip(&mut widths).for_each(|(cell, wide)| *wide = width(cell).max(*wide));
    }
    let padded = |(cell, wide): (&String, &usize)| format!("{cell}{}", " ".repeat(wide - width(cell)));
    let line = |row: &Vec<String>| row.iter().zip(&widths).map(padded).collect::<Vec<_>>().join("  ");
    rows.map(|row| format!("{}\n", line(row).trim_end())).collect()
}

/// How many characters of a styled text are seen.
pub fn width(text: &str) -> usize {
    anstream::adapter::strip_str(&terminal_escapes::shown(text))
        .to_string()
        .chars()
        .count()
}

/// How long ago: `12s`, `5m`, `3h`, `9d`.
pub fn ago(then: Timestamp, now: Timestamp) -> String {
    let seconds = (now.as_second() - then.as_second()).max(0);
    match seconds {
        0..=119 => format!("{seconds}s"),
        120..=7199 => format!("{}m", seconds / 60),
        7200..=172_799 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86400),
    }
}

/// A time to the second: `2026-11-25T07:52:58Z`.
pub fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A text with its times counted from now: `since TIME` becomes `for 5m`, and `at TIME` becomes `in 14m` or `5m ago`.
pub fn counted_from(text: &str, now: Timestamp) -> String {
    let mut shown = String::new();
    let mut rest = text;
    let begin = |rest: &str| {
        [" since ", " at "]
            .into_iter()
            .filter_map(|word| Some((rest.find(word)?, word)))
            .min()
    };
    while let Some((at, word)) = begin(rest) {
        let (before, after) = (&rest[..at], &rest[at + word.len()..]);
        let end = after.find('Z').map_or(0, |last| last + 1);
        shown.push_str(before);
        match after[..end].parse::<Timestamp>() {
            Ok(time) => {
                shown.push_str(&match (word, time > now) {
                    (" at ", true) => format!(" in {}", ago(now, time)),
                    (" at ", false) => format!(" {} ago", ago(time, now)),
                    _ => format!(" for {}", ago(time, now)),
                });
                rest = &after[end..];
            }
            Err(_) => {
                shown.push_str(word);
                rest = after;
            }
        }
    }
    shown + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_has_no_fraction_of_a_second() {
        let at: Timestamp = "2026-11-25T07:52:58.43357148Z".parse().expect("a time");
        assert_eq!(time(at), "2026-11-25T07:52:58Z");
    }

    #[test]
    fn times_in_a_text_are_counted_from_now() {
        let now = "2026-01-01T01:00:00Z".parse().expect("a time");
        for (text, expected) in [
            ("the next attempt is at 2026-01-01T01:14:00Z.", "the next attempt is in 14m."),
            ("it was tried at 2026-01-01T00:55:00Z", "it was tried 5m ago"),
            (
                "Pod n/p has been terminating since 2026-01-01T00:30:00Z: its pods must terminate first",
                "Pod n/p has been terminating for 30m: its pods must terminate first",
            ),
            (
                "the login at vc was refused since Zoe came",
                "the login at vc was refused since Zoe came",
            ),
            (
                "since long at vc at 2026-01-01T00:55:00Z and at 2026-01-01T00:50:00Z",
                "since long at vc 5m ago and 10m ago",
            ),
        ] {
            assert_eq!(counted_from(text, now), expected);
        }
    }

    #[test]
    fn table_styled_cells_align_columns() {
        let text = table(
            &["A", "LONG"],
            &[vec![good("healthy"), "x".into()], vec!["no".into(), String::new()]],
        );
        assert_eq!(anstream::adapter::strip_str(&text).to_string(), "A        LONG\nhealthy  x\nno\n");
    }

    #[test]
    fn plain_text_loses_our_styles_and_no_foreign_ones() {
        let foreign = "a\u{1b}[31mb";
        assert_eq!(plain(foreign), foreign);
        assert_eq!(plain(&format!("x {} y {}", bad(foreign), good("z"))), format!("x {foreign} y z"));
        assert_eq!(plain(&ours("\u{1b}[1m--flag\u{1b}[0m")), "--flag");
    }

    #[test]
    fn table_foreign_control_characters_keep_columns() {
        let text = table(
            &["A", "B"],
            &[vec!["x\u{1b}[8m".into(), "1".into()], vec!["longer than that".into(), "2".into()]],
        );
        let shown = anstream::adapter::strip_str(&terminal_escapes::shown(&text)).to_string();
        assert_eq!(shown, "A                 B\nx\\u{1b}[8m        1\nlonger than that  2\n");
    }

    #[test]
    fn nearest_name_similar_word_is_suggested() {
        let known = ["vsphere-cpi", "vsphere-csi"];
        assert_eq!(nearest("vsphere-cis", known), Some("vsphere-csi"));
        assert_eq!(nearest("vsphere-scpi", known), Some("vsphere-cpi"));
        assert_eq!(nearest("calico", known), None);
    }
}
