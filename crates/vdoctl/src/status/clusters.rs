// SPDX-License-Identifier: Apache-2.0
//! `vdoctl status --contexts`: queries several clusters and prints one line for each cluster, problems first.

use super::super::args::{Global, Status as Args};
use super::super::context::{Context, now};
use super::super::style::{bad, head, plain, table, width};
use super::super::views::status::StatusView;
use super::super::views::status_list::{ClusterStatusView, StatusListView};
use super::super::wrap::ROOM;
use super::super::{Answer, CliError, Exit, several_clusters};
use super::attention::attention;
use super::status_screen::{Layout, state, versions};
use super::{layout, seen};
use k8s_openapi::jiff::Timestamp;
use vdo_api::types::count;
use vdo_core::drivers::short;

/// What is shown of each cluster, beside what is wrong.
const HEADING: [&str; 4] = ["CONTEXT", "STATE", "KUBERNETES", "DRIVERS"];

/// What is shown besides where there is much room.
const WIDE: [&str; 2] = ["SERVER", "NODES"];

const LAST: &str = "PROBLEM";

/// Asks all of them. It ends as the command for the worst of them alone does.
pub(super) async fn run(args: &Args, global: &Global) -> Result<Answer, CliError> {
    let one = async |global: &Global| seen(&Context::open(global).await?).await;
    let asked = several_clusters::ask(&args.contexts, global, global.timeout(), one).await?;
    let of = |asked| ClusterStatusView::of(asked, |seen: &super::Seen| (Some(seen.view.clone()), seen.exit as u8));
    let mut items: Vec<ClusterStatusView> = asked.iter().map(of).collect();
    items.sort_by_key(attention);
    let list = StatusListView { items };
    let exit = list.items.first().and_then(|worst| Exit::of(worst.exit)).unwrap_or(Exit::Ok);
    let format = args.output.or_table();
    let answer = Answer::view(format, &list, || draw(&list, global, layout(format), now()))?;
    let once = several_clusters::once(list.items.iter().map(|item| (&item.context, &item.other_contexts)));
    Ok(once.into_iter().fold(answer.exit(exit), Answer::note))
}

/// The columns that fit beside what is wrong; of a narrow terminal only context and state, with what is wrong below them.
fn draw(list: &StatusListView, global: &Global, layout: Layout, now: Timestamp) -> String {
    let mut heading: Vec<&str> = HEADING.to_vec();
    if layout.wide {
        heading.extend(WIDE);
    }
    let rows: Vec<Vec<String>> = list.items.iter().map(|item| cells(item, layout.wide, now)).collect();
    let of = |columns: usize| -> Vec<Vec<String>> { rows.iter().map(|row| row[..columns].to_vec()).collect() };
    let fits = |columns: &usize| {
        let wide = table(&heading[..*columns], &of(*columns)).lines().map(width).max();
        layout
            .columns
            .is_none_or(|all| wide.unwrap_or_default().saturating_add(2 + ROOM) <= all)
    };
    let problems = list.items.iter().map(problem);
    let mut text = match [heading.len(), HEADING.len(), 2].iter().find(|columns| fits(columns)) {
        Some(columns) => {
            let rows: Vec<_> = of(*columns)
                .into_iter()
                .zip(problems)
                .map(|(row, last)| [row, vec![last]].concat())
                .collect();
            table(&[&heading[..*columns], &[LAST]].concat(), &rows)
        }
        None => {
            let above = table(&heading[..2], &of(2));
            let below = std::iter::once(String::new()).chain(problems.map(|problem| match problem.is_empty() {
                true => problem,
                false => format!("  {problem}\n"),
            }));
            above.lines().zip(below).map(|(above, below)| format!("{above}\n{below}")).collect()
        }
    };
    if let Some(worst) = list.items.first().filter(|worst| worst.exit != 0) {
        let own = Global {
            context: Some(worst.context.clone()),
            ..global.clone()
        };
        let command = format!("vdoctl status{}", own.of_the_cluster());
        text.push_str(&format!("More about {}: {}\n", worst.context, head(&command)));
    }
    text
}

/// All but what is wrong.
fn cells(item: &ClusterStatusView, wide: bool, now: Timestamp) -> Vec<String> {
    let seen = item.status.as_ref();
    let dash = |text: Option<String>| text.filter(|text| !text.is_empty()).unwrap_or_else(|| "-".into());
    let mut row = vec![
        item.context.clone(),
        seen.map_or_else(|| bad(unanswered(item)), |status| state(status, now)),
        dash(seen.map(|status| status.cluster.version.clone())),
        dash(seen.map(drivers)),
    ];
    if wide {
        row.push(dash(seen.map(|status| status.cluster.server.clone())));
        row.push(dash(seen.and_then(|status| status.cluster.nodes).map(|nodes| nodes.to_string())));
    }
    row
}

/// A cluster in one row for other screens: its context, state, version, drivers and what is wrong.
pub(crate) fn row(item: &ClusterStatusView, now: Timestamp) -> Vec<String> {
    let cells = cells(item, false, now).into_iter().chain([problem(item)]);
    cells.map(|cell| plain(&cell).into_owned()).collect()
}

/// The state of a cluster that gave no answer.
fn unanswered(item: &ClusterStatusView) -> &'static str {
    match Exit::of(item.exit) {
        Some(Exit::Cluster) => "unreachable",
        Some(Exit::TimedOut) => "no answer in time",
        Some(Exit::Refused) => "refused",
        _ => "not known",
    }
}

fn drivers(status: &StatusView) -> String {
    let all = status
        .drivers
        .iter()
        .map(|driver| format!("{} {}", short(&driver.name), versions(driver)));
    all.collect::<Vec<_>>().join(", ")
}

/// What is wrong, in one line: the worst, and how much there is besides.
fn problem(item: &ClusterStatusView) -> String {
    let config = item.status.as_ref().and_then(|status| status.config.as_ref());
    let problems = item
        .status
        .iter()
        .flat_map(|status| &status.problems)
        .map(|problem| problem.message.as_str());
    let stuck = config.and_then(|config| config.stuck.as_ref()).map(|stuck| stuck.message.as_str());
    let silence = config
        .and_then(|config| config.silence.as_ref())
        .map(|silence| silence.message.as_str());
    let error = item.error.iter().map(|error| error.message.as_str());
    let mut all = error.chain(stuck).chain(silence).chain(problems);
    let first = all.next().unwrap_or_default().replace('\n', " ");
    match all.count() {
        0 => first,
        more => format!("{first} (and {})", count(more, "more problem")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::args::{Cli, command};
    use super::super::super::views::status_list::ErrorView;
    use super::super::super::wrap::fit;
    use super::*;
    use clap::FromArgMatches as _;
    use serde_json::{Value, json};

    fn item(context: &str, exit: Exit, status: Option<Value>) -> ClusterStatusView {
        let error = status.is_none().then(|| ErrorView {
            message: format!("cluster {context} at https://a.test cannot be reached: no answer"),
            remedy: String::new(),
        });
        ClusterStatusView {
            context: context.into(),
            other_contexts: Vec::new(),
            exit: exit as u8,
            status: status.map(|status| serde_json::from_value(status).expect("a status")),
            error,
        }
    }

    fn status(config: &Value, problems: &[&str]) -> Option<Value> {
        let problem = |message: &&str| json!({"condition": "StorageReady", "reason": "PodsFailing", "progress": false, "known": true, "fault": true, "message": message});
        let driver = json!({"name": "vsphere-csi", "version": "3.7.3", "running": "3.6.3", "newest": "", "because": "", "pods": "", "ready": "", "state": "",
            "message": "", "objects": 1, "chart": ""});
        let drivers = if config.is_null() { Vec::new() } else { vec![driver] };
        Some(
            json!({"deployed": true, "cluster": {"name": "", "server": "https://b.test", "version": "v1.34.4", "nodes": 4}, "client": {"version": "1"},
            "config": config, "drivers": drivers, "vcenters": [], "problems": problems.iter().map(problem).collect::<Vec<_>>()}),
        )
    }

    fn config(health: &str) -> Value {
        json!({"name": "n/vdo", "current": true, "deleting": false, "upgradePins": {}, "kept": [], "ready": "True", "health": health, "since": "2026-01-01T00:00:00Z"})
    }

    fn list() -> StatusListView {
        let mut items = vec![
            item("well", Exit::Ok, status(&config("Healthy"), &[])),
            item("changing", Exit::Ok, status(&config("Progressing"), &[])),
            item("bare", Exit::NotFound, status(&Value::Null, &[])),
            item("ill", Exit::Differences, status(&config("Degraded"), &["a pod of CSI\nfails", "b"])),
            item("dead", Exit::Cluster, None),
            item("late", Exit::TimedOut, None),
        ];
        items.sort_by_key(attention);
        StatusListView { items }
    }

    fn drawn(columns: Option<usize>, wide: bool) -> String {
        let matches = command().try_get_matches_from(["vdoctl", "options"]).expect("a command line");
        let global = Cli::from_arg_matches(&matches).expect("arguments").global;
        let now = "2026-01-01T01:00:00Z".parse().expect("a time");
        let text = draw(&list(), &global, Layout { columns, wide }, now);
        anstream::adapter::strip_str(&fit(&text, columns)).to_string()
    }

    #[test]
    fn clusters_in_a_pipe_have_a_line_each_problems_first() {
        let expected = "\
CONTEXT   STATE              KUBERNETES  DRIVERS            PROBLEM
dead      unreachable        -           -                  cluster dead at https://a.test cannot be reached: no answer
late      no answer in time  -           -                  cluster late at https://a.test cannot be reached: no answer
ill       degraded 60m       v1.34.4     CSI 3.6.3 → 3.7.3  a pod of CSI fails (and 1 more problem)
bare      not deployed       v1.34.4     -
changing  progressing 60m    v1.34.4     CSI 3.6.3 → 3.7.3
well      healthy 60m        v1.34.4     CSI 3.6.3 → 3.7.3
More about dead: vdoctl status --context dead
";
        assert_eq!(drawn(None, false), expected);
        assert!(drawn(None, true).contains("https://b.test  4"), "{}", drawn(None, true));
    }

    #[test]
    fn clusters_on_a_terminal_fit_it() {
        for (columns, below) in [(120, true), (80, true), (60, true), (40, false)] {
            for wide in [false, true] {
                let text = drawn(Some(columns), wide);
                text.lines()
                    .for_each(|line| assert!(width(line) <= columns, "{columns}: {line}\n{text}"));
                assert_eq!(text.contains("PROBLEM"), below, "{text}");
                for word in ["dead", "unreachable", "degraded 60m"] {
                    assert!(text.contains(word), "{columns}: {word}\n{text}");
                }
            }
        }
    }
}
