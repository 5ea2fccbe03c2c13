// SPDX-License-Identifier: Apache-2.0
//! A process that holds a cluster is killed: nothing of the cluster is left.
#![allow(clippy::disallowed_methods, reason = "a test has no arguments of its own")]

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::fixture::alone;
use anyhow::{Context, Result};
use vdo_testbed::{Cluster, ClusterOptions, PATIENCE, Probe, until};

const HOLDER: &str = "VDO_TESTBED_TEST_HOLDER";

/// No test: holds a cluster until it is killed, when the test below runs it in another process.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "no test: is run by process_killed_leaves_nothing_of_its_cluster"]
async fn holder() -> Result<()> {
    if std::env::var_os(HOLDER).is_none() {
        return Ok(());
    }
    let cluster = Cluster::start(ClusterOptions::api_only()).await?;
    let groups: Vec<String> = cluster.process_groups().iter().map(u32::to_string).collect();
    let line = format!("HOLDING {} {}\n", groups.join(" "), cluster.dir().display());
    std::io::stdout().write_all(line.as_bytes())?;
    std::future::pending::<Result<()>>().await
}

#[test]
#[ignore = "long"]
fn process_killed_leaves_nothing_of_its_cluster() -> Result<()> {
    alone(async || {
        let mut holder = Command::new(std::env::current_exe()?)
            .args(["--exact", "testbed_killed::holder", "--ignored", "--nocapture"])
            .env(HOLDER, "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let lines = BufReader::new(holder.stdout.take().context("no output")?).lines();
        let line = lines
            .map_while(Result::ok)
            .find_map(|line| line.split_once("HOLDING ").map(|(_, rest)| rest.to_owned()));
        let line = line.context("the holder said nothing")?;
        // Two groups, and a folder whose path may have spaces.
        let words: Vec<&str> = line.splitn(3, ' ').collect();
        let [first, second, dir] = words[..] else {
            anyhow::bail!("the holder said {line:?}")
        };
        let (groups, dir) = ([first.parse::<i32>()?, second.parse()?], PathBuf::from(dir));
        assert!(dir.is_dir());
        assert!(groups.iter().all(|group| alive(*group)));

        holder.kill()?;
        holder.wait()?;
        until("the cluster's end", PATIENCE, async || {
            let left: Vec<&i32> = groups.iter().filter(|group| alive(**group)).collect();
            Ok(Probe::when(
                left.is_empty() && !dir.exists(),
                format!("left: groups {left:?}, folder: {}", dir.exists()),
            ))
        })
        .await
    })
}

/// Whether any process of the group is left.
fn alive(group: i32) -> bool {
    nix::sys::signal::killpg(nix::unistd::Pid::from_raw(group), None).is_ok()
}
