// SPDX-License-Identifier: Apache-2.0
//! Several clusters at once: a control plane with the drivers, one without anything, and addresses at which no API server answers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use crate::common::{Bed, schema};
use crate::fixture::{EMPTY, Fixture, INSTALLED};
use crate::follow::Page;
use crate::pty::{screen_of, too_wide};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Runs a test with two control planes. The second one is its own: to wait for a shared one would keep the first from others.
fn with_two(other: Fixture, test: impl AsyncFnOnce(&mut Bed, &mut Bed) -> Result<()>) -> Result<()> {
    INSTALLED.run(async |first| test(first, &mut other.own().await?).await)
}

/// A desk with one kubeconfig for all.
struct Desk {
    folder: tempfile::TempDir,
    /// Accepts connections and says nothing.
    _silent: TcpListener,
}

impl Desk {
    /// The contexts `east` and `apps` of one cluster, `west` of another, `dead` with nothing at its address, and some that are silent.
    fn of(east: &Bed, west: &Bed, silent: usize) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let nothing = |address: String| json!({"server": format!("https://{address}")});
        let (mut clusters, mut users, mut contexts) = (Vec::new(), Vec::new(), Vec::new());
        for (name, bed) in [("east", east), ("west", west)] {
            let own: Value = serde_json::from_str(&std::fs::read_to_string(bed.cluster.kubeconfig())?)?;
            clusters.push(json!({"name": name, "cluster": own["clusters"][0]["cluster"]}));
            users.push(json!({"name": name, "user": own["users"][0]["user"]}));
            contexts.push(json!({"name": name, "context": {"cluster": name, "user": name}}));
        }
        let silent = (0..silent).map(|number| (format!("silent-{number}"), listener.local_addr().map(|at| at.to_string())));
        for (name, address) in silent.chain([("dead".to_owned(), Ok("127.0.0.1:9".to_owned()))]) {
            clusters.push(json!({"name": name, "cluster": nothing(address?)}));
            contexts.push(json!({"name": name, "context": {"cluster": name, "user": "east"}}));
        }
        contexts.push(json!({"name": "apps", "context": {"cluster": "east", "user": "east", "namespace": "apps"}}));
        let config = json!({"apiVersion": "v1", "kind": "Config", "clusters": clusters, "users": users, "contexts": contexts,
            "current-context": "west"});
        let folder = tempfile::tempdir()?;
        std::fs::write(folder.path().join("config"), config.to_string())?;
        Ok(Self { folder, _silent: listener })
    }

    fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("config")
    }

    fn vdoctl(&self, line: &str) -> Command {
        let mut command = Command::new(vdo_testbed::vdoctl());
        command
            .env_clear()
            .env("TERM", "xterm")
            .env("KUBECONFIG", self.kubeconfig())
            .current_dir(self.folder.path())
            .args(line.split_whitespace());
        command
    }

    /// Runs it in a pipe: what it writes to stdout and stderr. It has to end with this code.
    fn ends(&self, code: i32, line: &str) -> Result<(String, String)> {
        let output = self.vdoctl(line).output()?;
        let (out, err) = (String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?);
        ensure!(output.status.code() == Some(code), "{line}: {:?}\n{out}{err}", output.status);
        let faults = schema::faults_of(&out);
        ensure!(faults.is_empty(), "{line}: {}", faults.join("; "));
        Ok((out, err))
    }

    fn document(&self, code: i32, line: &str) -> Result<Value> {
        Ok(serde_json::from_str(&self.ends(code, line)?.0)?)
    }
}

/// The first words of each line.
fn first_words(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.split(' ').next()).collect()
}

#[test]
#[ignore = "long"]
fn status_of_several_clusters_is_one_table_with_problems_first() -> Result<()> {
    with_two(EMPTY, async |east, west| {
        let desk = Desk::of(east, west, 0)?;
        let (table, said) = desk.ends(5, "status --contexts east,west,dead,east")?;
        ensure!(first_words(&table) == ["CONTEXT", "dead", "west", "east", "More"], "{table}");
        let dead = table.lines().nth(1).context("a line")?;
        let parts = [
            "unreachable",
            "cluster dead at https://127.0.0.1:9 cannot be reached: ",
            "onnection refused",
        ];
        ensure!(parts.iter().all(|part| dead.contains(part)), "{table}");
        let east_line = table.lines().nth(3).context("a line")?;
        ensure!(
            east_line.contains("healthy") && east_line.contains("CPI ") && east_line.contains("CSI "),
            "{table}"
        );
        ensure!(
            table.ends_with("More about dead: vdoctl status --context dead\n") && said.is_empty(),
            "{table}{said}"
        );
        // It ends as the worst does.
        ensure!(first_words(&desk.ends(3, "status --contexts east,west")?.0)[1..] == ["west", "east", "More"]);
        // A command that is shown reaches the same cluster, but repeats nothing that the environment says.
        let typed = desk.ends(0, "--context west")?.0;
        ensure!(typed.contains("  vdoctl --context west "), "{typed}");
        let untyped = desk.ends(0, "")?.0;
        ensure!(untyped.contains("  vdoctl ") && !untyped.contains("--context"), "{untyped}");
        ensure!(first_words(&desk.ends(0, "status --contexts east")?.0) == ["CONTEXT", "east"]);
        ensure!(
            desk.ends(0, "status --contexts east -o wide")?
                .0
                .contains(&east.cluster.server_url().to_string())
        );

        // The documents are those of one cluster.
        let list = desk.document(5, "status --all-contexts -o json")?;
        let of = |field: &str| -> Vec<Value> {
            list["items"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|item| item[field].clone())
                .collect()
        };
        ensure!(list["kind"] == "StatusList" && of("context") == ["dead", "west", "east"], "{list}");
        ensure!(
            of("exit") == [5, 3, 0] && of("otherContexts") == [json!([]), json!([]), json!(["apps"])],
            "{list}"
        );
        let alone = desk.document(0, "status --context east -o json")?;
        for field in ["deployed", "cluster", "client", "drivers", "problems"] {
            ensure!(of("status")[2][field] == alone[field], "{field}: {list}\n{alone}");
        }
        let error = &of("error")[0];
        ensure!(
            of("status")[0].is_null() && error["remedy"].as_str().is_some_and(|remedy| remedy.contains("--context")),
            "{error}"
        );
        let said = desk.ends(5, "status --all-contexts -o name")?;
        ensure!(said.0 == "dead\nwest\neast\n", "{said:?}");
        ensure!(
            said.1 == "east has the same cluster and user as 1 other context (apps), so vdoctl queried this cluster once\n",
            "{said:?}"
        );
        let yaml = vdo_api::yaml::load_value(&desk.ends(3, "status --contexts west,east -o yaml")?.0)?;
        ensure!(
            yaml["items"][0]["context"] == "west" && yaml["items"][1]["status"]["deployed"] == true,
            "{yaml}"
        );

        for columns in [80, 40] {
            for line in ["status --all-contexts", "status --all-contexts -o wide"] {
                let shown = screen_of(desk.vdoctl(line), columns);
                ensure!(too_wide(&shown, columns).is_empty(), "{columns} columns:\n{shown}");
                ensure!(
                    ["dead", "unreachable", "west", "no VDOConfig", "east", "healthy"]
                        .iter()
                        .all(|word| shown.contains(word)),
                    "{shown}"
                );
            }
        }
        Ok(())
    })
}

/// Five of them take no longer than one.
#[test]
#[ignore = "long"]
fn status_of_several_clusters_waits_for_silent_ones_together() -> Result<()> {
    with_two(EMPTY, async |east, west| {
        let desk = Desk::of(east, west, 5)?;
        let begun = Instant::now();
        let (table, _) = desk.ends(5, "status --all-contexts --request-timeout 3s")?;
        let took = begun.elapsed();
        ensure!(took >= Duration::from_secs(3) && took < Duration::from_secs(12), "{took:?}");
        ensure!(table.matches("no answer within 3 s").count() == 5, "{table}");
        ensure!(table.contains("healthy") && table.contains("no VDOConfig"), "{table}");
        Ok(())
    })
}

#[test]
#[ignore = "long"]
fn report_of_several_clusters_is_one_page_with_what_answered() -> Result<()> {
    with_two(EMPTY, async |east, west| {
        let desk = Desk::of(east, west, 0)?;
        let (out, said) = desk.ends(5, "report --html all.html --contexts east,dead,west")?;
        ensure!(
            out.is_empty()
                && said.contains("dead is only in the table, without details: cluster dead at https://127.0.0.1:9 cannot be reached"),
            "{said}"
        );
        let page = std::fs::read_to_string(desk.folder.path().join("all.html"))?;
        let places = [
            "<h1>vSphere drivers of 3 clusters</h1>",
            ">dead<",
            ">west<",
            ">east<",
            "<h1>vSphere drivers of cluster west</h1>",
            "<h1>vSphere drivers of cluster east</h1>",
        ];
        let found: Vec<Option<usize>> = places.iter().map(|part| page.find(part)).collect();
        ensure!(found.iter().all(Option::is_some) && found.is_sorted(), "{found:?}");
        ensure!(!page.contains("<h1>vSphere drivers of cluster dead"), "it has nothing to show");
        desk.ends(0, "report --html two.html --contexts east,west")?;
        Ok(())
    })
}

#[test]
#[ignore = "long"]
fn page_fleets_works_as_written() -> Result<()> {
    with_two(INSTALLED, async |east, west| {
        let desk = Desk::of(east, west, 0)?;
        let page = Page::open("fleets.md")?.with(Path::new(vdo_testbed::vdoctl()))?;
        let page = page.instead("oci://registry.example.com/vdo/matrix:stable", "embedded")?;
        page.set("KUBECONFIG", desk.kubeconfig().display()).run_all()?;
        for bed in [east, west] {
            bed.until_ready().await?;
        }
        Ok(())
    })
}
