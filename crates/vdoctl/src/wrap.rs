// SPDX-License-Identifier: Apache-2.0
//! Breaks lines at blanks for a narrow terminal, with further lines below the last column of a table.

use super::commands::{NO_BREAK, kept};
use super::style::width;
pub(super) use vdo_system::columns as columns_of;

/// The least room for what is set below the last column of a line; with less it is set near the margin.
pub(super) const ROOM: usize = 24;

/// Stays on one line, however long it is: a line that is copied.
pub(super) fn unbroken(line: &str) -> String {
    line.replace(' ', &NO_BREAK.to_string())
}

/// A whole text with no line wider than the terminal, as far as words and commands allow. What does not fit stands below the last column of
/// its line, or below its mark. Without a terminal a line stays one line, which can be searched.
pub(super) fn fit(text: &str, columns: Option<usize>) -> String {
    let Some(columns) = columns else {
        return text.replace(NO_BREAK, " ");
    };
    let fitted: String = text.split_inclusive('\n').map(|line| fit_line(line, columns)).collect();
    fitted.replace(NO_BREAK, " ")
}

fn fit_line(line: &str, columns: usize) -> String {
    let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
    if width(line) <= columns {
        return format!("{line}{end}");
    }
    let line = &kept(line);
    let lead = line.len() - line.trim_start_matches(' ').len();
    let below = match (last_column(&line[lead..]), mark(&line[lead..])) {
        (Some(column), _) if lead + column + ROOM <= columns => lead + column,
        (_, true) => lead + 2,
        (Some(_), false) => lead + 4,
        (None, false) => lead,
    };
    format!(
        "{}{}{end}",
        " ".repeat(lead),
        broken(&line[lead..], columns - lead.min(columns), below, columns.saturating_sub(below))
    )
}

/// Where the last column of a row begins, after the columns before and two blanks or more.
fn last_column(row: &str) -> Option<usize> {
    let (before, _) = row.rsplit_once("  ")?;
    Some(width(before) + 2)
}

/// Whether it begins with a single letter or sign and a blank.
fn mark(line: &str) -> bool {
    line.split_once(' ').is_some_and(|(first, _)| width(first) == 1)
}

/// Breaks a text at blanks, never within a word: the first line has this room, further ones are indented and have theirs.
pub(super) fn broken(text: &str, first: usize, indent: usize, further: usize) -> String {
    let (mut out, mut used, mut room) = (String::new(), 0, first);
    for word in text.split(' ') {
        let long = width(word);
        if used > 0 && used + 1 + long > room {
            if long == 0 {
                continue;
            }
            out.truncate(out.trim_end_matches(' ').len());
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            (used, room) = (0, further);
        } else if !out.is_empty() {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += long;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::style::{faint, table};
    use super::*;

    #[test]
    fn broken_text_keeps_words_whole_and_counts_what_is_seen() {
        let text = "one two three four five six seven eight nine ten eleven twelve thirteen";
        assert_eq!(broken(text, 80, 6, 74), text);
        assert_eq!(
            broken(text, 44, 6, 44),
            "one two three four five six seven eight nine\n      ten eleven twelve thirteen"
        );
        let styled = broken(&format!("{text} {}", faint("(vdoctl explain SnapshotsPresent)")), 50, 6, 44);
        assert!(styled.lines().all(|line| width(line) <= 50), "{styled}");
        let word = "x".repeat(90);
        assert_eq!(broken(&format!("a {word} b"), 74, 6, 74), format!("a\n      {word}\n      b"));
    }

    #[test]
    fn fit_sets_what_is_too_long_below_its_column_or_mark() {
        let four = "alpha beta gamma delta";
        for (text, columns, expected) in [
            (four, 12, "alpha beta\ngamma delta"),
            ("  alpha beta gamma\n", 13, "  alpha beta\n  gamma\n"),
            ("  ✗ alpha beta gamma", 15, "  ✗ alpha beta\n    gamma"),
            ("short\n\nalpha beta\n", 6, "short\n\nalpha\nbeta\n"),
            (
                "CSI  3.7.3  alpha beta gamma delta one",
                36,
                "CSI  3.7.3  alpha beta gamma delta\n            one",
            ),
            ("CSI  3.7.3  alpha beta", 16, "CSI  3.7.3\n    alpha beta"),
        ] {
            assert_eq!(fit(text, Some(columns)), expected);
            assert_eq!(fit(text, None), text);
        }
        let command = unbroken("kubectl get pods -n vmware-system-csi");
        assert_eq!(
            fit(&format!("Run {command} now"), Some(20)),
            "Run\nkubectl get pods -n vmware-system-csi\nnow"
        );
        assert_eq!(fit(&command, None), "kubectl get pods -n vmware-system-csi");
        for (text, expected) in [
            ("Try `vdoctl status -o wide` first", "Try\n`vdoctl status -o wide`\nfirst"),
            ("ab `b c` d`e f g", "ab\n`b c`\nd`e f\ng"),
        ] {
            assert_eq!(fit(text, Some(6)), expected);
            assert_eq!(fit(text, None), text);
        }
        let rows = [vec!["a".to_owned(), "b ".repeat(40)]];
        let text = fit(&table(&["HEAD", "TEXT"], &rows), Some(40));
        assert!(text.lines().all(|line| width(line) <= 40), "{text}");
    }
}
