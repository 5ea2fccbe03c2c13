// SPDX-License-Identifier: Apache-2.0
//! Rendering the CSI chart: a function call, and whole processes.

use crate::helm;
use crate::report::{Report, median, seconds};
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::time::Instant;
use vdo_api::yaml;
use vdo_core::chart::{self, Context};
use vdo_core::drivers::CSI;
use vdo_source::fetch::embedded;

const VERSION: &str = "3.7.3";
const CALLS: usize = 100;
const PROCESSES: usize = 15;

pub fn measure([helm3, helm4]: [&Path; 2], report: &mut Report) -> Result<()> {
    let sources = embedded::sources();
    let package = chart::package(sources.get(CSI).context("the CSI chart")?, &VERSION.parse()?)?;
    let chart = chart::open(&package)?;
    let render = || chart::render(&chart, &Value::Null, &Context::default());
    let objects = render()?;
    let whole = || -> Result<String> {
        let chart = chart::open(&package)?;
        Ok(yaml::dump_all(&chart::render(&chart, &Value::Null, &Context::default())?))
    };

    let folder = tempfile::tempdir()?;
    let equivalent = folder.path().join(CSI);
    helm::write(&equivalent, &chart, &objects)?;
    let helm = |program: &Path, args: &[&str]| {
        let mut command = Command::new(program);
        for (variable, name) in [
            ("HELM_CACHE_HOME", "cache"),
            ("HELM_CONFIG_HOME", "config"),
            ("HELM_DATA_HOME", "data"),
        ] {
            command.env(variable, folder.path().join(name));
        }
        command.args(args).current_dir(folder.path());
        command
    };
    let template = |program: &Path| helm(program, &["template", CSI, CSI]);
    let vdoctl = |args: &[&str]| {
        let mut command = Command::new(vdo_testbed::vdoctl());
        command.args(args);
        command
    };
    let ours = || vdoctl(&["chart", "render", CSI, "--version", VERSION, "--output", "yaml"]);
    for program in [helm3, helm4] {
        ensure!(
            same(&objects, &stdout(template(program))?)?,
            "{} renders other objects than we do",
            program.display()
        );
    }
    let ours_can = stdout(ours()).is_ok_and(|text| same(&objects, &text).unwrap_or(false));

    let call = timed(CALLS, || Ok(render()?))?;
    let whole = timed(CALLS, whole)?;
    let mut times: [Vec<f64>; 6] = Default::default();
    // By turns, so that what else the machine does meets all alike.
    for _ in 0..PROCESSES {
        let commands = [
            Some(template(helm3)),
            Some(helm(helm3, &["version"])),
            Some(template(helm4)),
            Some(helm(helm4, &["version"])),
            ours_can.then(ours),
            ours_can.then(|| vdoctl(&["--version"])),
        ];
        for (times, command) in times.iter_mut().zip(commands) {
            if let Some(command) = command {
                let before = Instant::now();
                stdout(command)?;
                times.push(before.elapsed().as_secs_f64());
            }
        }
    }
    let [template3, start3, template4, start4, vdoctl, vdoctl_start] = times.map(median);
    let templates = || format!("helm template: 3 {}, 4 {}", seconds(template3), seconds(template4));

    report.section(&format!("Render of {} objects, {CSI} {VERSION}", objects.len()));
    report.row(
        "function call: check values, render, parse",
        seconds(call),
        templates(),
        format!("helm 4/vdo {:.0}; a call beside a whole process", template4 / call),
    );
    report.row(
        "function call: unpack and open the chart, render, write YAML",
        seconds(whole),
        templates(),
        format!("helm 4/vdo {:.0}; a call beside a whole process", template4 / whole),
    );
    report.row(
        "the same, without the start of helm's process",
        seconds(whole),
        format!("helm 3 {}, helm 4 {}", seconds(template3 - start3), seconds(template4 - start4)),
        format!(
            "helm 4/vdo {:.1}; helm version takes {} and {}",
            (template4 - start4) / whole,
            seconds(start3),
            seconds(start4)
        ),
    );
    if ours_can {
        report.row(
            "whole process: vdoctl chart render",
            seconds(vdoctl),
            templates(),
            format!(
                "helm 4/vdo {:.1}; vdoctl --version takes {}",
                template4 / vdoctl,
                seconds(vdoctl_start)
            ),
        );
    } else {
        report.row(
            "whole process: vdoctl chart render",
            "-",
            "",
            "not measured: this vdoctl does not render the chart",
        );
    }
    Ok(())
}

fn timed<T>(times: usize, work: impl Fn() -> Result<T>) -> Result<f64> {
    let mut taken = Vec::new();
    for _ in 0..times {
        let before = Instant::now();
        black_box(work()?);
        taken.push(before.elapsed().as_secs_f64());
    }
    Ok(median(taken))
}

fn stdout(mut command: Command) -> Result<String> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

/// Whether a manifest holds these objects and no others.
fn same(objects: &[Value], manifest: &str) -> Result<bool> {
    let sorted = |mut all: Vec<(vdo_api::types::ObjectId, Value)>| {
        all.sort_by(|left, right| left.0.cmp(&right.0));
        all
    };
    let named = |all: Vec<Value>| all.into_iter().map(|o| Ok((chart::object_id(&o)?, o))).collect::<Result<Vec<_>>>();
    Ok(sorted(named(objects.to_vec())?) == sorted(named(yaml::load_all(manifest)?)?))
}
