// SPDX-License-Identifier: Apache-2.0
//! Prints the progress of a verb: finished steps, and below them what the verb waits for; on a terminal, in a pipe, or as JSON or YAML.
//!
//! On a terminal the lines below the steps are redrawn in place. A pipe gets each of these lines once, when it is new. With `-o json`
//! every change is one document on a line of its own, with `-o yaml` one document of the stream.

use super::ages::counted_from;
use super::args::Format;
use super::context::now;
use super::output::{Form, View, json_line, yaml_text};
use super::printer::Printer;
use super::style::{bad, faint, good, warn, width};
use super::views::progress::ProgressView;
use super::wrap::broken;
use super::{Answer, Exit};
use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};

/// The frames of the sign that something moves.
const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// What became of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub(super) enum Mark {
    /// It is done.
    Done,
    /// It has failed, or something stands in the way.
    Failed,
    /// Something to know.
    Note,
}

/// Where the lines go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// A terminal.
    Live,
    /// A pipe or a file.
    Lines,
    /// A program that reads one JSON document for each line.
    Json,
    /// A program that reads a stream of YAML documents.
    Yaml,
}

/// The steps of a verb on stdout.
pub(super) struct Progress {
    printer: Printer,
    shape: Shape,
    started: Instant,
    /// What is waited for, as it was shown last.
    waiting: Vec<String>,
    /// How many lines of the terminal the next text replaces.
    replaced: usize,
    frame: usize,
    /// Once stdout cannot be written: the verb goes on without it.
    closed: Option<Exit>,
}

impl Progress {
    /// Nothing is shown yet; times count from here.
    pub(super) fn new(printer: &Printer, format: Format) -> Self {
        let shape = match format {
            Format::Json => Shape::Json,
            Format::Yaml => Shape::Yaml,
            Format::Table | Format::Wide | Format::Name if io::stdout().is_terminal() => Shape::Live,
            Format::Table | Format::Wide | Format::Name => Shape::Lines,
        };
        Self {
            printer: printer.clone(),
            shape,
            started: Instant::now(),
            waiting: Vec::new(),
            replaced: 0,
            frame: 0,
            closed: None,
        }
    }

    /// Whether a person looks at it now.
    pub(super) fn is_live(&self) -> bool {
        self.shape == Shape::Live
    }

    /// Whether the output is for programs.
    pub(super) fn is_data(&self) -> bool {
        matches!(self.shape, Shape::Json | Shape::Yaml)
    }

    /// A step that stays on the screen. Further lines of the text are indented below the first.
    pub(super) fn step(&mut self, mark: Mark, text: &str) {
        let shown = match self.shape {
            Shape::Live | Shape::Lines => drawn(mark, text),
            Shape::Json | Shape::Yaml => self.event(<&str>::from(mark), &[text.to_owned()]),
        };
        self.write(&shown, 0);
        self.waiting.clear();
    }

    /// What is waited for now, one line for each thing. To be called every second or so: the elapsed time goes on counting.
    pub(super) fn waiting(&mut self, lines: &[String]) {
        self.frame += 1;
        let elapsed = clock(self.started.elapsed());
        let now = now();
        let counted = |line: &String| counted_from(line, now);
        let shown = match self.shape {
            Shape::Live => live(
                &lines.iter().map(counted).collect::<Vec<_>>(),
                FRAMES[self.frame % FRAMES.len()],
                &elapsed,
                columns(),
            ),
            Shape::Lines => lines
                .iter()
                .filter(|line| !self.waiting.contains(line))
                .map(|line| format!("  {} {}  {}\n", warn("…"), counted(line), faint(&elapsed)))
                .collect(),
            Shape::Json | Shape::Yaml if self.waiting == lines => String::new(),
            Shape::Json | Shape::Yaml => self.event("waiting", lines),
        };
        let last = if self.shape == Shape::Live { shown.lines().count() } else { 0 };
        self.write(&shown, last);
        self.waiting = lines.to_vec();
    }

    /// What was waited for last.
    pub(super) fn awaited(&self) -> &[String] {
        &self.waiting
    }

    /// The last document of the stream.
    pub(super) fn last<V: View>(&self, view: &V) -> Answer {
        match self.shape {
            Shape::Yaml => Answer::yaml(yaml_text(view).map(|text| format!("---\n{text}")).unwrap_or_default()),
            _ => Answer::json_line(view),
        }
    }

    /// Takes away what was waited for. The exit code, if stdout could not be written any more.
    pub(super) fn end(&mut self) -> Option<Exit> {
        self.write("", 0);
        self.waiting.clear();
        self.closed
    }

    fn event(&self, state: &str, lines: &[String]) -> String {
        let event = ProgressView {
            state,
            elapsed_seconds: self.started.elapsed().as_secs(),
            messages: lines,
        };
        match self.shape {
            Shape::Yaml => yaml_text(&event).map(|text| format!("---\n{text}")).unwrap_or_default(),
            _ => json_line(&event),
        }
    }

    fn write(&mut self, text: &str, last: usize) {
        let up = std::mem::replace(&mut self.replaced, last);
        if self.closed.is_some() || (up == 0 && text.is_empty()) {
            return;
        }
        let form = match self.shape {
            Shape::Live | Shape::Lines => Form::Text,
            Shape::Json => Form::Json,
            Shape::Yaml => Form::Yaml,
        };
        self.closed = self.printer.replace(up, form, text).err();
    }
}

/// How wide the terminal is.
fn columns() -> usize {
    vdo_system::columns(&io::stdout()).unwrap_or(80)
}

fn drawn(mark: Mark, text: &str) -> String {
    let sign = match mark {
        Mark::Done => good("✓"),
        Mark::Failed => bad("✗"),
        Mark::Note => faint("·"),
    };
    let mut lines = text.lines();
    let first = format!("  {sign} {}\n", lines.next().unwrap_or_default());
    lines.fold(first, |text, line| format!("{text}    {line}\n"))
}

/// How many rows of the terminal one thing may take that is waited for.
const ROWS: usize = 4;

/// The rows are counted to be replaced, so none may be wider than the terminal: a line is broken at blanks, and cut where that is not enough.
fn live(lines: &[String], frame: &str, elapsed: &str, columns: usize) -> String {
    let room = columns.saturating_sub(7 + elapsed.len()).max(10);
    let mut out = String::new();
    for (place, line) in lines.iter().enumerate() {
        let whole = broken(&line.replace(['\n', '\t'], " "), room, 0, room);
        let rows: Vec<&str> = whole.lines().collect();
        for (row, text) in rows.iter().take(ROWS).enumerate() {
            let last = row + 1 == ROWS && rows.len() > ROWS;
            let cut = match width(text) + usize::from(last) > room {
                true => text.chars().take(room - 1).chain(['…']).collect(),
                false if last => format!("{text}…"),
                false => (*text).to_owned(),
            };
            match (place, row) {
                (0, 0) => out.push_str(&format!("  {} {cut}  {}\n", warn(frame), faint(elapsed))),
                _ => out.push_str(&format!("    {cut}\n")),
            }
        }
    }
    out
}

/// Minutes and seconds.
fn clock(time: Duration) -> String {
    format!("{}:{:02}", time.as_secs() / 60, time.as_secs() % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal_escapes;

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(&terminal_escapes::shown(text)).to_string()
    }

    #[test]
    fn step_of_several_lines_is_indented_below_its_mark() {
        assert_eq!(plain(&drawn(Mark::Failed, "one\ntwo")), "  ✗ one\n    two\n");
        assert_eq!(plain(&drawn(Mark::Done, "one")), "  ✓ one\n");
    }

    #[test]
    fn live_line_wider_than_terminal_is_cut_to_one_line() {
        let lines = ["a".repeat(100), "two\nlines".to_owned()];
        let text = plain(&live(&lines, "*", "12:05", 40));
        assert_eq!(text, format!("  * {}…  12:05\n    two lines\n", "a".repeat(27)));
        assert!(text.lines().all(|line| line.chars().count() < 40), "{text}");
    }

    #[test]
    fn live_line_is_broken_at_blanks_into_few_rows() {
        let words = |count: usize| vec!["reason".to_owned(); count].join(" ");
        let text = plain(&live(&[words(15), "second".into()], "*", "0:05", 80));
        assert_eq!(text, format!("  * {}  0:05\n    {}\n    second\n", words(10), words(5)));
        let text = plain(&live(&[words(60)], "*", "0:05", 80));
        assert_eq!(text.lines().count(), 4);
        assert!(
            text.ends_with("…\n") && text.lines().all(|line| line.chars().count() < 80),
            "{text}"
        );
    }

    #[test]
    fn clock_counts_minutes_beyond_the_hour() {
        assert_eq!(clock(Duration::from_secs(5)), "0:05");
        assert_eq!(clock(Duration::from_secs(3700)), "61:40");
    }
}
