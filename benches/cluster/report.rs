// SPDX-License-Identifier: Apache-2.0
//! Figures and how they are shown.

use std::fmt;

/// A table in sections.
#[derive(Default)]
pub struct Report {
    lines: Vec<Line>,
}

enum Line {
    Section(String),
    Row([String; 4]),
}

impl Report {
    pub fn section(&mut self, name: &str) {
        self.lines.push(Line::Section(name.to_owned()));
    }

    /// Puts another report behind this one.
    pub fn append(&mut self, other: Self) {
        self.lines.extend(other.lines);
    }

    /// A figure of ours, what stands beside it, and a remark.
    pub fn row(&mut self, what: &str, ours: impl ToString, beside: impl ToString, remark: impl ToString) {
        let cells = [what.to_owned(), ours.to_string(), beside.to_string(), remark.to_string()];
        self.lines.push(Line::Row(cells));
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut widths = [0; 4];
        for line in &self.lines {
            if let Line::Row(cells) = line {
                for (width, cell) in widths.iter_mut().zip(cells) {
                    *width = (*width).max(cell.chars().count());
                }
            }
        }
        let [what_width, ours_width, beside_width, _] = widths;
        for (number, line) in self.lines.iter().enumerate() {
            match line {
                Line::Section(name) if number == 0 => writeln!(f, "{}", name.to_uppercase())?,
                Line::Section(name) => writeln!(f, "\n{}", name.to_uppercase())?,
                Line::Row([what, ours, beside, remark]) => {
                    let text = format!("  {what:what_width$}  {ours:>ours_width$}  {beside:beside_width$}  {remark}");
                    writeln!(f, "{}", text.trim_end())?;
                }
            }
        }
        Ok(())
    }
}

/// The middle one; of an even number the lower of the two. Not a number when there is none.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(f64::NAN)
}

/// The value that so large a part of all stays at or below.
pub fn percentile(values: &[f64], part: f64) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let at = values
        .iter()
        .zip(1_u32..)
        .find(|(_, rank)| f64::from(*rank) >= part * f64::from(u32::try_from(values.len()).unwrap_or(u32::MAX)));
    at.map_or(f64::NAN, |(value, _)| *value)
}

/// The least and the most.
pub fn spread(values: impl IntoIterator<Item = f64>) -> String {
    let (least, most) = values
        .into_iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), v| (least.min(v), most.max(v)));
    format!("{} to {}", seconds(least), seconds(most))
}

pub fn seconds(value: f64) -> String {
    match value {
        v if v >= 1.0 => format!("{v:.2} s"),
        v if v >= 0.01 => format!("{:.0} ms", v * 1e3),
        v => format!("{:.2} ms", v * 1e3),
    }
}

pub fn mebibytes(kibibytes: f64) -> String {
    format!("{:.1} MiB", kibibytes / 1024.0)
}
