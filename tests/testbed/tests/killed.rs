//! A process that holds a cluster is killed: nothing of the cluster stays.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use vdo_testbed::{Cluster, ClusterOptions, Probe, until};

const HOLDER: &str = "VDO_TESTBED_TEST_HOLDER";

/// Runs only when the test below runs this file again: holds a cluster until it is killed.
#[tokio::test(flavor = "multi_thread")]
async fn holder() -> Result<()> {
    if std::env::var_os(HOLDER).is_none() {
        return Ok(());
    }
    let cluster = Cluster::start(ClusterOptions::api_only()).await?;
    let groups: Vec<String> = cluster.process_groups().iter().map(u32::to_string).collect();
    let line = format!("HOLDING {} {}\n", cluster.dir().display(), groups.join(" "));
    std::io::stdout().write_all(line.as_bytes())?;
    std::future::pending::<Result<()>>().await
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_survives_a_kill() -> Result<()> {
    let mut holder = Command::new(std::env::current_exe()?)
        .args(["--exact", "holder", "--nocapture"])
        .env(HOLDER, "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let lines = BufReader::new(holder.stdout.take().context("no output")?).lines();
    let line = lines
        .map_while(Result::ok)
        .find_map(|line| line.split_once("HOLDING ").map(|(_, rest)| rest.to_owned()));
    let line = line.context("the holder said nothing")?;
    let mut words = line.split_whitespace();
    let dir = PathBuf::from(words.next().context("no folder")?);
    let groups: Vec<i32> = words.map(str::parse).collect::<Result<_, _>>()?;
    assert_eq!(groups.len(), 2);
    assert!(dir.is_dir());
    assert!(groups.iter().all(|group| alive(*group)));

    holder.kill()?;
    holder.wait()?;
    until("the cluster's end", Duration::from_secs(10), async || {
        let left: Vec<&i32> = groups.iter().filter(|group| alive(**group)).collect();
        Ok(Probe::when(
            left.is_empty() && !dir.exists(),
            format!("left: groups {left:?}, folder: {}", dir.exists()),
        ))
    })
    .await
}

/// Whether any process of the group is left.
fn alive(group: i32) -> bool {
    nix::sys::signal::killpg(nix::unistd::Pid::from_raw(group), None).is_ok()
}
