// SPDX-License-Identifier: Apache-2.0
//! Pictures of the matrix: which Kubernetes minors the versions support, and the way through an upgrade of Kubernetes; and one of a screen.

use super::docs::Failure;
use super::screen;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use vdo_api::types::{DriverName, KubernetesVersion, VcenterVersion};
use vdo_core::matrix::{Index, Outlook, Query, Stage, UpdatePolicy, When, outlook};
use vdoctl::support_bars;

/// The vCenter of the picture. Every version of CSI since 3.2 supports it.
const VCENTER: &str = "8.0.3";

/// How many steps of Kubernetes are shown.
const STEPS: usize = 6;

/// What a test has recorded of the demonstration.
const RECORD: &str = "tests/fixtures/demo-screen.txt";
const OF_THE_DEMO: &str = "vdoctl status names a refused password and the command for it; the command is run, and the status is healthy";

/// Sizes in pixels.
const NAME: usize = 52;
const COLUMN: usize = 112;
const ROW: usize = 34;
const MARGIN: usize = 10;

/// Readable on a light and on a dark page: it brings its own paper.
const STYLE: &str = "<style>\
    svg{--ink:#1c2530;--paper:#fff;--faint:#5b6775;--bar:#2f6fb7;--on:#fff;--unsure:#8a5a00;--line:#cfd6de}\
    @media (prefers-color-scheme:dark){svg{--ink:#e4e9ef;--paper:#14181d;--faint:#9aa7b5;--bar:#6ba6e8;--on:#10141a;--unsure:#f0c060;--line:#39434f}}\
    text{font:12px system-ui,sans-serif;fill:var(--ink)}.paper{fill:var(--paper)}.fits{fill:var(--bar)}.unsure{fill:var(--unsure);opacity:.6}\
    .old{fill:var(--faint);opacity:.5}.on{fill:var(--on)}.faint{fill:var(--faint)}.line{stroke:var(--line)}</style>";

/// The path of every picture, with its content.
pub(crate) fn files(root: &Path) -> Result<Vec<(String, String)>, Failure> {
    let index = Index::parse(&std::fs::read(root.join("matrix-index/index.yaml"))?)?;
    let record = std::fs::read_to_string(root.join(RECORD))?;
    Ok(vec![
        ("docs/pictures/support.svg".to_owned(), alone(&support_bars(&index)?)),
        ("docs/pictures/upgrade.svg".to_owned(), alone(&way(&index)?)),
        ("docs/pictures/demo.svg".to_owned(), alone(&screen::drawn(&record, OF_THE_DEMO))),
    ])
}

/// A picture as a file of its own: with its colours, and on paper.
fn alone(picture: &str) -> String {
    const NAME_OF_SVG: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" ";
    let picture = picture.replacen("<svg ", NAME_OF_SVG, 1);
    let (head, rest) = picture.split_once('>').unwrap_or((&picture, ""));
    let paper = "<rect class=\"paper\" x=\"-10\" y=\"-10\" width=\"100%\" height=\"100%\" rx=\"6\"/>";
    format!("{head}>{STYLE}{paper}{rest}\n").replace("><", ">\n<")
}

/// From the oldest of the last minors to the newest: which versions run on each, and when they change.
fn way(index: &Index) -> Result<String, Failure> {
    let minors = vdo_core::matrix::known_minors([index, index]);
    let shown = &minors[minors.len().saturating_sub(STEPS)..];
    let (Some(first), Some(last)) = (shown.first(), shown.last()) else {
        return Err("the index names no Kubernetes".into());
    };
    let vcenters: Vec<(String, VcenterVersion)> = vec![("vc".to_owned(), VCENTER.parse()?)];
    let drivers = index.usual().map(|name| (name.clone(), Default::default())).collect();
    let query = Query {
        kubernetes: first,
        vcenters: &vcenters,
        drivers: &drivers,
        installed: &BTreeMap::new(),
        policy: UpdatePolicy::Compatible,
    };
    Ok(drawn(&outlook(index, &query, Some(last), &[]), index.usual()))
}

fn drawn<'a>(outlook: &Outlook, drivers: impl Iterator<Item = &'a DriverName>) -> String {
    let stages = &outlook.stages;
    let drivers: Vec<&DriverName> = drivers.collect();
    let (width, height) = (NAME + stages.len() * COLUMN, (drivers.len() + 1) * ROW);
    let mut text = format!(
        "<svg viewBox=\"-{MARGIN} -{MARGIN} {} {}\" width=\"{}\" role=\"img\" \
         aria-label=\"Versions of the drivers while Kubernetes is upgraded minor by minor, with vCenter {VCENTER}\">",
        width + 2 * MARGIN,
        height + 2 * MARGIN,
        width + 2 * MARGIN,
    );
    for (at, stage) in stages.iter().enumerate() {
        let x = NAME + at * COLUMN;
        let _ = write!(
            text,
            "<text x=\"{}\" y=\"16\" text-anchor=\"middle\">Kubernetes {}</text><line class=\"line\" x1=\"{x}\" y1=\"0\" x2=\"{x}\" y2=\"{height}\"/>",
            x + COLUMN / 2,
            minor(&stage.kubernetes)
        );
    }
    for (row, driver) in drivers.iter().enumerate() {
        let y = (row + 1) * ROW;
        let _ = write!(
            text,
            "<text x=\"0\" y=\"{}\">{}</text>",
            y + 15,
            vdo_core::drivers::short(driver.as_str())
        );
        for (from, to, words) in bars(stages, driver) {
            let _ = write!(
                text,
                "<rect class=\"fits\" x=\"{from}\" y=\"{y}\" width=\"{}\" height=\"22\" rx=\"4\"/><text class=\"on\" x=\"{}\" y=\"{}\" \
                 text-anchor=\"middle\">{words}</text>",
                to.saturating_sub(from),
                (from + to) / 2,
                y + 15
            );
        }
        for (at, _) in stages.iter().enumerate().filter(|(_, stage)| lacks(stage, driver)) {
            let x = NAME + at * COLUMN + COLUMN / 2;
            let _ = write!(
                text,
                "<text class=\"faint\" x=\"{x}\" y=\"{}\" text-anchor=\"middle\">no version yet</text>",
                y + 15
            );
        }
    }
    text + "</svg>"
}

/// The versions of a driver one after the other: where each begins and ends, and what it is called. One that has to be there before a step
/// begins left of that step's line, one that comes with the step right of it.
fn bars(stages: &[Stage], driver: &DriverName) -> Vec<(usize, usize, String)> {
    const AHEAD: usize = 34;
    const AFTER: usize = 6;
    let mut all: Vec<(usize, usize, String)> = Vec::new();
    for (at, stage) in stages.iter().enumerate() {
        let line = NAME + at * COLUMN;
        if lacks(stage, driver) {
            continue;
        }
        let change = stage.changes.iter().find(|change| change.driver == *driver);
        let end = line + COLUMN - 2;
        match (change, all.last_mut()) {
            (None, Some(last)) => last.1 = end,
            (None, None) => {}
            (Some(change), before) => {
                let begin = match (at, change.when) {
                    (0, _) => line + 2,
                    (_, When::Before) => line - AHEAD,
                    (_, When::With) => line + AFTER,
                };
                if let Some(last) = before {
                    last.1 = begin - 2;
                }
                let path: Vec<String> = change.path.iter().map(|step| step.version.to_string()).collect();
                all.push((begin, end, path.join(" → ")));
            }
        }
    }
    all
}

fn lacks(stage: &Stage, driver: &DriverName) -> bool {
    stage.unfit.iter().flat_map(|unfit| unfit.all()).any(|one| one.driver == *driver)
}

fn minor(version: &KubernetesVersion) -> String {
    version.minor()
}
