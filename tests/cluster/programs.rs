// SPDX-License-Identifier: Apache-2.0
//! What programs read: every verb that has `-o json` and every pipe is free of styles, whatever the verb.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use crate::common::{Bed, NS};
use crate::fixture::INSTALLED;
use crate::operation::private;
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// How a verb is run here: its arguments, whether it has something to show in that way, and so has to succeed.
enum Run {
    /// It ends with 0 or 1, and writes something.
    Shows(Vec<String>),
    /// It needs what is not there, such as a registry; what it says of that is looked at.
    Fails(Vec<String>),
}

use Run::{Fails, Shows};

fn words(line: &str) -> Vec<String> {
    shlex::split(line).expect("words")
}

/// A path as one word, also in a folder whose name has a space.
fn word(path: impl AsRef<str>) -> String {
    shlex::try_quote(path.as_ref()).expect("a path").into_owned()
}

/// Every verb with an output for programs. A verb that is not here fails the test.
fn runs(bed: &Bed, folder: &Path) -> Result<BTreeMap<&'static str, Vec<Run>>> {
    let password = word(private(folder, "password", bed.vcenter.password())?);
    let none = word(folder.join("none").display().to_string());
    let index = word(concat!(env!("CARGO_MANIFEST_DIR"), "/matrix-index"));
    let trust = format!(
        "--vcenter {} --thumbprint {}",
        bed.vcenter.address(),
        bed.vcenter.thumbprint_sha256()
    );
    let admin = format!("--user {} --password-file {password}", bed.vcenter.user());
    let shows = |line: &str| vec![Shows(words(line))];
    let fails = |line: &str| vec![Fails(words(line))];
    Ok(BTreeMap::from([
        ("deploy", fails(&format!("{trust} {admin} --dry-run=server"))),
        // The drivers here are those of VDO.
        ("adopt", fails("")),
        ("status", shows("")),
        (
            "plan",
            vec![Shows(words("")), Shows(words("--set cloudProvider.values.logLevel=7"))],
        ),
        ("events", shows("")),
        ("history", shows("")),
        ("upgrade plan", shows("--to csi=3.6.3")),
        ("upgrade apply", shows("--to csi=3.6.3 --yes --no-wait")),
        ("configure connection", shows("vc1 --dry-run")),
        (
            "configure drivers",
            vec![
                Shows(words("--set updatePolicy=Latest --dry-run")),
                Shows(words("--set storageProvider.values.controller.replicas=1 --dry-run")),
            ],
        ),
        ("configure matrix", fails(&format!("{none} --dry-run"))),
        ("secrets list", shows("")),
        ("secrets set", shows(&format!("vc1 --password-file {password} --dry-run"))),
        ("wait", fails("--for deleted --timeout 1s")),
        ("diff", shows("--set cloudProvider.values.logLevel=7")),
        ("render", shows("")),
        ("rights", shows("")),
        ("matrix resolve", shows("--kubernetes 1.34 --vcenter 8.0.3")),
        ("matrix explain", shows("")),
        ("matrix why-not", shows("csi 3.6.3 --kubernetes 1.34 --vcenter 8.0.3")),
        ("matrix list", shows("")),
        ("matrix show", shows("csi 3.7.3")),
        ("matrix lint", shows(&index)),
        ("matrix source", shows("")),
        ("matrix verify", fails(&none)),
        ("matrix init", fails(&index)),
        ("matrix publish", fails(&none)),
        ("matrix withdraw", fails("csi 3.7.3 --matrix embedded")),
        ("matrix deprecate", fails("csi 3.7.3 --matrix embedded")),
        ("matrix diff", shows(&format!("embedded {index}"))),
        ("mirror pull", fails(&none)),
        ("mirror verify", fails(&none)),
        ("mirror push", fails(&none)),
        ("mirror copy", fails(&none)),
        ("mirror prune", fails(&none)),
        ("chart render", shows("csi --version 3.7.3 --kubernetes 1.34")),
        ("chart images", shows("csi --version 3.7.3 --kubernetes 1.34")),
        ("chart compare", fails(&none)),
        ("chart lint", fails(&none)),
        ("doctor", shows("")),
        ("doctor nodes", shows("")),
        ("doctor topology", shows("")),
        ("doctor volumes", shows("")),
        ("doctor connection", shows("vc1")),
        ("doctor privileges", shows("")),
        ("selftest", fails("--storage-class vdo-none")),
        ("users create", shows(&format!("{admin} --dry-run"))),
        ("users list", shows(&admin)),
        ("users verify", fails(&admin)),
        ("users shrink", shows(&format!("{admin} --dry-run"))),
        ("users rotate", fails(&format!("{admin} --dry-run"))),
        ("users delete", fails(&format!("{admin} --dry-run"))),
        ("delete", shows("--dry-run=client")),
        ("explain", shows("Paused")),
        ("version", shows("")),
    ]))
}

/// Every verb of the command line, with its whole name.
fn verbs(command: &clap::Command, path: &str, all: &mut Vec<(String, clap::Command)>) {
    for verb in command.get_subcommands().filter(|verb| verb.get_name() != "help") {
        let path = format!("{path} {}", verb.get_name()).trim_start().to_owned();
        verbs(verb, &path, all);
        all.push((path, verb.clone()));
    }
}

/// Whether an argument chooses a form of output, and not a file.
fn is_output(arg: &clap::Arg) -> bool {
    let names = arg.get_value_names().unwrap_or_default();
    arg.get_long() == Some("output") && names.iter().any(|name| name.as_str() == "FORMAT")
}

/// Nothing of how text is painted, neither as it is sent to a terminal nor as it is written in JSON, YAML or escaped text.
fn ensure_plain(what: &str, text: &str) -> Result<()> {
    for paint in ["\u{1b}", "\\u001b", "\\u{1b}", "\\e[", "\\x1b", "\\x1B", "\\u001B"] {
        if let Some(at) = text.find(paint) {
            let around: String = text[..at].chars().rev().take(60).collect::<Vec<_>>().into_iter().rev().collect();
            bail!("{what}: {paint:?} after {around:?}");
        }
    }
    Ok(())
}

fn run(bed: &Bed, verb: &str, args: &[String], more: &[&str]) -> Result<(i32, String, String)> {
    let all: Vec<&str> = verb
        .split(' ')
        .chain(args.iter().map(String::as_str))
        .chain(more.iter().copied())
        .collect();
    bed.vdoctl(&all)
}

/// With `-o json`, with `-o yaml`, and as text in a pipe.
#[test]
#[ignore = "long"]
fn every_output_in_a_pipe_and_for_programs_has_no_styles() -> Result<()> {
    INSTALLED.run(async |bed| {
        let folder = tempfile::tempdir()?;
        let runs = runs(bed, folder.path())?;
        let mut all = Vec::new();
        let mut command = vdoctl::args::command();
        // What all of its verbs take is theirs only then.
        command.build();
        verbs(&command, "", &mut all);
        let with_output: Vec<String> = all
            .iter()
            .filter(|(_, verb)| verb.get_arguments().any(is_output))
            .map(|(path, _)| path.clone())
            .collect();
        let unknown: Vec<&String> = with_output.iter().filter(|verb| !runs.contains_key(verb.as_str())).collect();
        ensure!(unknown.is_empty(), "how are these run with -o json? {unknown:?}");
        let lost: Vec<_> = runs.keys().filter(|verb| !with_output.iter().any(|known| known == *verb)).collect();
        ensure!(lost.is_empty(), "there are no such verbs: {lost:?}");
        let mut wrong = Vec::new();
        for (verb, all) in &runs {
            for one in all {
                let (Shows(args) | Fails(args)) = one;
                for format in [&["-o", "json"][..], &["-o", "yaml"], &[]] {
                    let what = format!("{verb} {} {}", args.join(" "), format.join(" "));
                    let (code, out, err) = run(bed, verb, args, format)?;
                    let refused = code == 2 && format.contains(&"yaml");
                    if matches!(one, Shows(_)) && !refused && (code > 1 || (format.contains(&"json") && out.is_empty())) {
                        wrong.push(format!("{what}: {code}\n{out}{err}"));
                    }
                    wrong.extend([&out, &err].into_iter().filter_map(|text| ensure_plain(&what, text).err()).map(|error| error.to_string()));
                    if format.contains(&"json") && !out.is_empty() {
                        let read: Result<Vec<Value>, _> = serde_json::Deserializer::from_str(&out).into_iter().collect();
                        wrong.extend(read.err().map(|error| format!("{what}: {error}\n{out}")));
                    }
                }
            }
        }
        // Back to what was installed.
        let spec = json!({"spec": {"storageProvider": null, "cloudProvider": null}, "metadata": {"annotations": {"vdo.vmware.com/upgrade-pins": null}}});
        bed.merge("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo", spec).await?;
        for verb in all.iter().map(|(path, _)| path.as_str()).chain([""]) {
            for more in [&["--help"][..], &["--help", "--color", "never"]] {
                let args: Vec<&str> = verb.split(' ').filter(|word| !word.is_empty()).chain(more.iter().copied()).collect();
                let (_, out, err) = bed.vdoctl(&args)?;
                wrong.extend([&out, &err].into_iter().filter_map(|text| ensure_plain(&args.join(" "), text).err()).map(|error| error.to_string()));
            }
        }
        let (code, out, _) = bed.vdoctl(&["options"])?;
        ensure!(code == 0 && out.starts_with("      --kubeconfig <FILE> "), "{out}");
        wrong.extend(ensure_plain("options", &out).err().map(|error| error.to_string()));
        ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
        bed.until_ready().await.context("after the pin was lifted")?;
        // The verbs for accounts ask more than the operator ever does.
        bed.vcenter.forget_calls("vdo").await
    })
}
