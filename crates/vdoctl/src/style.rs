// SPDX-License-Identifier: Apache-2.0
//! Formats text for people: colours, tables, columns; the printer removes colours where they are not wanted.

use super::terminal_escapes;
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

#[cfg(test)]
mod tests {
    use super::*;

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
