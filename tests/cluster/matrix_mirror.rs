//! A matrix behind nginx with a certificate of a private authority and a password, reached through squid with another one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

use crate::bed::PATIENCE;
use crate::fixture::INSTALLED;
use crate::install::until_at_rest;
use crate::matrix_source::{Publisher, embedded_index};
use crate::matrix_web::{CHART, leaked, release, until_driver, until_refused, until_version};
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use std::time::Instant;
use vdo_testbed::{Mirror, Probe, until};

const INDEX: &str = "/matrix/index.json";

fn publish(mirror: &Mirror, key: &Publisher, index: &mut Value, version: u64) -> Result<()> {
    index["version"] = version.into();
    let text = index.to_string();
    mirror.put(&format!("{INDEX}.sig"), key.signature(text.as_bytes())?.as_bytes())?;
    mirror.put(INDEX, text.as_bytes())
}

#[test]
#[ignore = "needs nginx, squid and htpasswd"]
fn matrix_behind_a_proxy_and_passwords_upgrades_and_says_which_password_is_wrong() -> Result<()> {
    INSTALLED.run(async |bed| {
        until_at_rest(bed).await?;
        let (mirror, key, mut index) = (Mirror::start().await?, Publisher::new()?, embedded_index()?);
        publish(&mirror, &key, &mut index, 7001)?;
        let folder = tempfile::tempdir()?;
        let file = |name: &str| leaked(folder.path().join(name).display().to_string());
        std::fs::create_dir(file("credentials"))?;
        let (user, password) = mirror.reader();
        let own = mirror.authority();
        for (key, value) in [("username", user), ("password", password), ("ca.crt", own.as_str())] {
            std::fs::write(file(&format!("credentials/{key}")), value)?;
        }
        std::fs::write(file("keys.pem"), key.public())?;
        let url = mirror.url(INDEX);
        bed.apply(&bed.config(json!({"updatePolicy": "Latest"}))).await?;
        bed.kill_operator();
        bed.flags = vec![
            ("matrix", leaked(url.clone())),
            ("matrix-credentials", file("credentials")),
            ("matrix-keys", file("keys.pem")),
            ("matrix-interval", "1s"),
        ];
        bed.environment = vec![("HTTPS_PROXY", mirror.proxy(false))];
        bed.start_operator().await?;
        until_refused(bed, "MatrixUnreachable", "proxy").await?;
        ensure!(
            mirror.answered().map_or(0, |all| all.len()) == 0,
            "a wrong password passed the proxy"
        );

        bed.kill_operator();
        bed.environment = vec![("HTTPS_PROXY", mirror.proxy(true))];
        bed.start_operator().await?;
        until_version(bed, &url, 7001).await?;
        let passed = mirror.passed()?;
        ensure!(
            passed
                .iter()
                .any(|line| line.contains("CONNECT mirror.test:") && line.contains("/200")),
            "{passed:?}"
        );
        let known = mirror.answered()?.len();
        until("polls without news", PATIENCE, async || {
            let polls = mirror.answered()?.split_off(known);
            let same = polls.iter().filter(|line| **line == format!("GET {INDEX} 304 0")).count();
            Ok(Probe::when(same >= 3, format!("{polls:?}")))
        })
        .await?;

        // A password that is changed without a restart: first a wrong one.
        std::fs::write(file("credentials/password"), "wr0ng")?;
        until_refused(bed, "MatrixUnreachable", "401").await?;
        std::fs::write(file("credentials/password"), password)?;
        bed.until_reason("MatrixFresh", "Healthy").await?;

        let chart = release(&mut index, false)?;
        mirror.put(&format!("/matrix/{CHART}"), &chart)?;
        until_at_rest(bed).await?;
        let begun = Instant::now();
        publish(&mirror, &key, &mut index, 7002)?;
        until("a pod of the new version", PATIENCE, async || {
            let pods = bed.list("v1", "Pod", "app=vsphere-csi-controller").await?;
            let new = pods.iter().any(|pod| pod["spec"]["containers"].to_string().contains("v3.7.4"));
            Ok(Probe::when(new, format!("{} pods", pods.len())))
        })
        .await?;
        println!(
            "from publication to the first changed pod, polled each second: {:?}",
            begun.elapsed()
        );
        until_driver(bed, "3.7.4").await?;
        let log = std::fs::read_to_string(bed.operator_log())?;
        for secret in [password, "let-m3-by", "wr0ng"] {
            ensure!(!log.contains(secret), "the log shows a password");
        }
        bed.environment.clear();
        Ok(())
    })
}
