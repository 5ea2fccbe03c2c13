// SPDX-License-Identifier: Apache-2.0
//! `vdoctl doctor topology`: prints the table of nodes with their zone and region labels and the vCenter tags of these labels.

use super::super::args::Format;
use super::super::style::{bad, faint, good, table, warn};
use super::super::views::doctor::{OfConnection, TopologyView};
use super::super::{Answer, CliError, Exit};
use vdo_vsphere::vsphere::{NodeTopology, TagPlace};

/// The table, and 1 where something does not fit.
pub(super) fn answer(lines: &[OfConnection<NodeTopology>], format: Format) -> Result<Answer, CliError> {
    let view = TopologyView { topology: lines };
    let answer = Answer::view(format, &view, || text(lines, format == Format::Wide))?;
    let fits = lines.iter().all(|line| line.of.reason.is_empty());
    Ok(answer.exit(if fits { Exit::Ok } else { Exit::Differences }))
}

fn text(lines: &[OfConnection<NodeTopology>], wide: bool) -> String {
    if lines.is_empty() {
        return format!("{} no node has a zone or region, neither as a label nor as a tag\n", warn("-"));
    }
    let rows: Vec<Vec<String>> = lines.iter().map(|line| row(&line.connection, &line.of, wide)).collect();
    let mut heading = vec!["NODE", "CATEGORY", "LABEL", "TAG", "ON", "VERDICT"];
    if wide {
        heading.splice(1..1, ["CONNECTION", "VM"]);
    }
    let mut text = table(&heading, &rows);
    for line in lines.iter().map(|line| &line.of).filter(|line| !line.reason.is_empty()) {
        let what = format!("node {}, category {}: {}", line.node, line.category, line.problem);
        text.push_str(&format!("\n{} {what}\n", bad("✗")));
        text.push_str(&format!("      {}\n", faint(&format!("(vdoctl explain {})", line.reason))));
    }
    text
}

fn row(connection: &str, line: &NodeTopology, wide: bool) -> Vec<String> {
    let dash = |text: String| if text.is_empty() { "-".to_owned() } else { text };
    let mut values: Vec<&str> = line.labels.values().map(String::as_str).collect();
    values.dedup();
    let labels = match wide {
        true => line
            .labels
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect::<Vec<_>>()
            .join(" "),
        false => values.join(", "),
    };
    let on: Vec<String> = line.tags.iter().map(|place| place_of(place, wide)).collect();
    let on = match wide {
        true => on.join(", "),
        false => on.first().cloned().unwrap_or_default(),
    };
    let mut row = vec![
        line.node.clone(),
        line.category.clone(),
        dash(labels),
        dash(line.tag.clone()),
        dash(on),
    ];
    if wide {
        row.splice(1..1, [connection.to_owned(), dash(line.machine.clone())]);
    }
    row.push(match line.reason.as_str() {
        "" => good("✓"),
        reason => format!("{} {}", bad("✗"), reason.trim_start_matches("Topology")),
    });
    row
}

/// Where a tag is: in few words, or all of them.
fn place_of(place: &TagPlace, wide: bool) -> String {
    if wide {
        return format!("{}={} {}", place.kind, place.tag, place.path);
    }
    let kind = match place.kind.as_str() {
        "VirtualMachine" => "VM",
        "HostSystem" => "host",
        "ClusterComputeResource" | "ComputeResource" => "cluster",
        "Datacenter" => "datacenter",
        _ => "folder",
    };
    format!("{kind} {}", place.path.rsplit('/').find(|part| !part.is_empty()).unwrap_or("/"))
}

#[cfg(test)]
mod tests {
    use super::super::super::style::width;
    use super::super::super::wrap::fit;
    use super::*;

    #[test]
    fn topology_screen_fits_80_columns_and_shows_the_problem() {
        let line = |node: &str, category: &str, tag: &str, kind: &str, path: &str, reason: &str, problem: &str| {
            let place = TagPlace {
                tag: tag.into(),
                kind: kind.into(),
                path: path.into(),
            };
            let line = NodeTopology {
                node: node.into(),
                machine: format!("/DC0/vm/{node}"),
                category: category.into(),
                labels: [(format!("topology.kubernetes.io/{category}"), "eu-central-1".to_owned())].into(),
                tag: tag.into(),
                tags: if tag.is_empty() { vec![] } else { vec![place] },
                reason: reason.into(),
                problem: problem.into(),
            };
            OfConnection {
                of: line,
                connection: "vc1".to_owned(),
            }
        };
        let problem = "label topology.kubernetes.io/zone is \"eu-central-1\", but the tag is \"eu-central-2\"";
        let lines = [
            line("w-1", "k8s-region", "eu-central-1", "Datacenter", "/DC0", "", ""),
            line(
                "w-1",
                "k8s-zone",
                "eu-central-2",
                "HostSystem",
                "/DC0/host/C0/esx-1",
                "TopologyLabelDiffers",
                problem,
            ),
            line(
                "w-2",
                "k8s-zone",
                "",
                "",
                "",
                "TopologyTagMissing",
                "its host and the objects above it have no tag",
            ),
        ];
        let shown = fit(&text(&lines, false), Some(80));
        assert!(shown.lines().all(|line| width(line) <= 80), "{shown}");
        let plain = anstream::adapter::strip_str(&shown).to_string();
        let table: Vec<&str> = plain.lines().take(4).collect();
        assert_eq!(
            table,
            [
                "NODE  CATEGORY    LABEL         TAG           ON              VERDICT",
                "w-1   k8s-region  eu-central-1  eu-central-1  datacenter DC0  ✓",
                "w-1   k8s-zone    eu-central-1  eu-central-2  host esx-1      ✗ LabelDiffers",
                "w-2   k8s-zone    eu-central-1  -             -               ✗ TagMissing",
            ]
        );
        assert!(
            plain.contains("✗ node w-2, category k8s-zone: its host and the objects above it have no tag"),
            "{plain}"
        );
        let wide = anstream::adapter::strip_str(&text(&lines, true)).to_string();
        assert!(
            wide.contains("topology.kubernetes.io/k8s-zone=eu-central-1") && wide.contains("HostSystem=eu-central-2 /DC0/host/C0/esx-1"),
            "{wide}"
        );
        assert!(text(&[], false).contains("no node has a zone or region"));
    }
}
