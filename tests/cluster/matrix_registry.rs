//! A matrix in a registry, from its publication to the pods: polled, upgraded, kept when the registry is gone, and rolled back by someone.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

use crate::bed::PATIENCE;
use crate::fixture::INSTALLED;
use crate::install::until_at_rest;
use crate::matrix_attacks::{Files, Publication};
use crate::matrix_source::{Publisher, embedded_index};
use crate::matrix_web::{CHART, leaked, release, until_driver, until_refused, until_version};
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Instant;
use vdo::registry::{Login, Options, Reference, Registry, pull_matrix, push_matrix};
use vdo::types::Secret;
use vdo::web::Access;
use vdo_testbed::{LOGIN, Probe, RegistryAuth, RegistryKind, RegistryServer, until};

/// Publishes the index with this version, signed, on top of what is there.
async fn publish(to: (&Registry, &Reference), key: &Publisher, index: &mut Value, version: u64, chart: Option<&[u8]>) -> Result<()> {
    index["version"] = version.into();
    let text = index.to_string();
    let mut files = BTreeMap::from([
        ("index.yaml.sig".to_owned(), key.signature(text.as_bytes())?.into_bytes()),
        ("index.yaml".to_owned(), text.into_bytes()),
    ]);
    files.extend(chart.map(|chart| (CHART.to_owned(), chart.to_vec())));
    let before = pull_matrix(to.0, to.1).await?.map(|(digest, _)| digest);
    push_matrix(to.0, to.1, &files, before.as_ref()).await?;
    Ok(())
}

#[test]
fn matrix_in_a_registry_upgrades_and_survives_its_registry() -> Result<()> {
    INSTALLED.run(async |bed| {
        until_at_rest(bed).await?;
        let mut server = RegistryServer::start(RegistryKind::Distribution, RegistryAuth::Basic).await?;
        let (key, mut index) = (Publisher::new()?, embedded_index()?);
        let at: Reference = format!("{}/vdo/matrix:stable", server.host()).parse()?;
        let options = Options {
            access: Access::new([("ca.crt".to_owned(), server.ca())]),
            own: true,
            login: Login::Basic {
                user: LOGIN.0.into(),
                password: Secret::new(LOGIN.1),
            },
            plain_http: false,
        };
        let registry = Registry::new(&server.host(), options)?;
        publish((&registry, &at), &key, &mut index, 7001, None).await?;

        let folder = tempfile::tempdir()?;
        let file = |name: &str| leaked(folder.path().join(name).display().to_string());
        std::fs::create_dir(file("credentials"))?;
        let login = json!({"username": LOGIN.0, "password": LOGIN.1});
        let docker = json!({"auths": {server.host(): login}}).to_string();
        for (key, value) in [(".dockerconfigjson", docker), ("ca.crt", server.ca())] {
            std::fs::write(file(&format!("credentials/{key}")), value)?;
        }
        std::fs::write(file("keys.pem"), key.public())?;
        let source = format!("oci://{at}");
        bed.apply(&bed.config(json!({"updatePolicy": "Latest"}))).await?;
        bed.kill_operator();
        bed.flags = vec![
            ("matrix", leaked(source.clone())),
            ("matrix-credentials", file("credentials")),
            ("matrix-keys", file("keys.pem")),
            ("matrix-interval", "1s"),
        ];
        bed.start_operator().await?;
        until_version(bed, &source, 7001).await?;
        bed.until_reason("MatrixFresh", "Healthy").await?;
        until_at_rest(bed).await?;

        // Polls without news: a look at the tag, and no write.
        let asked = |line: &&str| line.contains("/v2/vdo/matrix/") && line.contains("http.request.method");
        let known = server.log().lines().filter(asked).count();
        let mark = bed.cluster.audit().mark().await?;
        until("three polls", PATIENCE, async || {
            let count = server.log().lines().filter(asked).count();
            Ok(Probe::when(count >= known + 6, format!("{} requests", count - known)))
        })
        .await?;
        let log = server.log();
        let gets: Vec<&str> = log
            .lines()
            .filter(asked)
            .skip(known)
            .filter(|line| line.contains("method=GET"))
            .collect();
        ensure!(gets.is_empty(), "polls without news read: {gets:?}");
        let writes = bed.cluster.audit().since(mark).await?.of(crate::bed::OPERATOR).writes();
        let writes = writes.only(|entry| entry.resource != "leases");
        ensure!(writes.is_empty(), "polls without news wrote:\n{writes}");

        let chart = release(&mut index, false)?;
        let begun = Instant::now();
        publish((&registry, &at), &key, &mut index, 7002, Some(&chart)).await?;
        until_driver(bed, "3.7.4").await?;
        println!("from publication to a healthy driver, polled each second: {:?}", begun.elapsed());
        until_at_rest(bed).await?;

        // The registry dies, and the operator starts again: it goes on with what the cluster keeps.
        server.stop();
        until_refused(bed, "MatrixUnreachable", "version 7002 from before").await?;
        bed.kill_operator();
        bed.start_operator().await?;
        until_refused(bed, "MatrixUnreachable", "version 7002 from before").await?;
        until_driver(bed, "3.7.4").await?;

        // It is back, and the tag leads to an older publication.
        server.restart().await?;
        bed.until_reason("MatrixFresh", "Healthy").await?;
        publish((&registry, &at), &key, &mut index, 7001, Some(&chart)).await?;
        until_refused(bed, "MatrixRolledBack", "version 7001 is lower than 7002").await?;

        // Someone who may write there has something else in its place.
        index["version"] = 7002.into();
        let publication = Publication::of(&key, &index.to_string())?;
        let put = async |(index, signature): Files<'_>| -> Result<()> {
            let mut files = BTreeMap::from([("index.yaml".to_owned(), index.to_vec()), (CHART.to_owned(), chart.clone())]);
            files.extend(signature.map(|signature| ("index.yaml.sig".to_owned(), signature.as_bytes().to_vec())));
            let before = registry.head(&at).await?.and_then(|seen| seen.digest);
            push_matrix(&registry, &at, &files, before.as_ref()).await?;
            Ok(())
        };
        publication.restore(bed, &put).await?;
        publication.withstands(bed, false, &put).await?;
        let log = std::fs::read_to_string(bed.operator_log())?;
        ensure!(!log.contains(LOGIN.1), "the log shows a password");
        Ok(())
    })
}
