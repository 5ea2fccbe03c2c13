// SPDX-License-Identifier: Apache-2.0
//! Secrets of every shape are planted, and looked for wherever they must not be.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod bundle;
pub mod scan;
mod shapes;

use crate::common::{Bed, NS, PATIENCE, condition};
use crate::fixture::alone;
use anyhow::{Context, Result, ensure};
use scan::{ENCODINGS, Scanner, encode, seen_of_process};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use vdo_testbed::soap::{Act, Rule, SoapOptions, SoapProxy};
use vdo_testbed::{Logins, Probe, VcenterOptions, until};

fn user(number: usize) -> String {
    format!("user-{number}@vsphere.local")
}

/// A secret of any shape is found in any encoding in the middle of something else, and nothing is found where nothing is.
#[test]
fn scanner_finds_every_shape_in_every_encoding() {
    let shapes = shapes::all();
    assert!(shapes.len() >= 40, "{} shapes", shapes.len());
    let scanner = Scanner::new(&shapes);
    let mut found = 0;
    for shape in &shapes {
        for encoding in ENCODINGS {
            for before in ["", "x", "xy"] {
                let hay = format!("2026-01-01 INFO {before}{} and more", encode(shape, encoding));
                assert!(
                    scanner.find(hay.as_bytes()).is_some(),
                    "{shape:?} as {encoding} was not found in {hay:?}"
                );
            }
            found += 1;
        }
    }
    println!(
        "{} shapes in {} encodings: {found} of {} found",
        shapes.len(),
        ENCODINGS.len(),
        shapes.len() * ENCODINGS.len()
    );
    for clean in [
        "Cargo.lock",
        "docs/errors.md",
        "docs/cli.md",
        "deploy/rbac.yaml",
        "crates/vdo-vsphere/src/vcenter/session.rs",
    ] {
        let text = std::fs::read(clean).unwrap();
        assert_eq!(scanner.find(&text), None, "{clean}");
    }
}

/// Where something was looked for, and what was found.
#[derive(Default)]
struct Search {
    bytes: BTreeMap<String, usize>,
    hits: Vec<String>,
}

impl Search {
    fn look(&mut self, scanner: &Scanner, surface: &str, place: &str, bytes: &[u8]) {
        *self.bytes.entry(surface.to_owned()).or_default() += bytes.len();
        if let Some((value, form)) = scanner.find(bytes) {
            self.hits.push(format!("{surface}: {place}: {value:?} as {form}"));
        }
    }
}

fn vdoctl(bed: &Bed, arguments: &[&str]) -> Result<Vec<u8>> {
    let output = Command::new(vdo_testbed::vdoctl())
        .env_clear()
        .env("VDO_KUBECONFIG", bed.cluster.kubeconfig())
        .args(arguments)
        .output()?;
    Ok([output.stdout, output.stderr].concat())
}

/// With a vCenter that has a user for each shape.
#[test]
#[ignore = "long"]
fn secrets_of_every_shape_are_in_no_output() -> Result<()> {
    alone(async || {
        let shapes = shapes::all();
        let mut bed = Bed::start_with(VcenterOptions {
            more_users: shapes.iter().enumerate().map(|(n, shape)| (user(n), shape.clone())).collect(),
            ..VcenterOptions::with_vms(crate::common::NODES)
        })
        .await?;
        bed.flags.push(("log-level", "trace"));
        bed.flags.push(("connection-interval", "5s"));

        // Right ones, one connection each.
        for (number, shape) in shapes.iter().enumerate() {
            let name = format!("shape-{number}");
            bed.apply(&secret(
                &name,
                "kubernetes.io/basic-auth",
                json!({"username": user(number), "password": shape}),
            ))
            .await?;
            bed.apply(&connection(&bed, &name, json!({}))).await?;
        }
        // Wrong ones, in every way in which an error could show them.
        let wrong: Vec<String> = ["refused", "opaque", "misplaced", "bundle", "echoed", "renewed"]
            .map(|word| format!("Planted&<\"{word}\">-%-Zq8Yw5"))
            .into();
        bed.apply(&secret(
            "refused",
            "kubernetes.io/basic-auth",
            json!({"username": bed.vcenter.user(), "password": wrong[0]}),
        ))
        .await?;
        bed.apply(&connection(&bed, "refused", json!({}))).await?;
        bed.apply(&secret("opaque", "Opaque", json!({"username": "u", "password": wrong[1]})))
            .await?;
        bed.apply(&connection(&bed, "opaque", json!({}))).await?;
        bed.apply(&secret("misplaced", "Opaque", json!({"passwd": wrong[2]}))).await?;
        bed.apply(&connection(&bed, "misplaced", json!({}))).await?;
        bed.apply(&secret("bundle", "Opaque", json!({"ca.crt": wrong[3]}))).await?;
        bed.apply(&connection(
            &bed,
            "bundle",
            json!({"credentials": "shape-1", "caBundle": {"secret": "bundle"}, "thumbprint": null}),
        ))
        .await?;
        // A server that repeats in its error what it was sent.
        let proxy = SoapProxy::start(&bed.vcenter, SoapOptions::default()).await?;
        let words: &'static str = format!("cannot log in echoed with {}", encode(&wrong[4], "xml")).leak();
        proxy.rule(Rule::on("Login", Act::Fault("SystemError", words, "")));
        bed.apply(&secret(
            "echoed",
            "kubernetes.io/basic-auth",
            json!({"username": "echo@vsphere.local", "password": wrong[4]}),
        ))
        .await?;
        bed.apply(&connection(
            &bed,
            "echoed",
            json!({"port": proxy.port(), "thumbprint": proxy.thumbprint_sha256()}),
        ))
        .await?;

        bed.apply(&bed.secret(bed.vcenter.password())).await?;
        bed.apply(&bed.connection("vc1")).await?;
        let spec = json!({"cloudProvider": {"vsphereCloudConfigs": ["vc1"]}, "storageProvider": {"vsphereCloudConfigs": ["vc1"]}});
        bed.apply(&bed.config(spec)).await?;
        bed.start_operator().await?;
        bed.until_ready().await?;
        until("every shape to have logged in", PATIENCE, async || {
            let all = bed.list("vdo.vmware.com/v1alpha1", "VsphereCloudConfig", "").await?;
            let named = |o: &&Value| o["metadata"]["name"].as_str().is_some_and(|name| name.starts_with("shape-"));
            let waiting: Vec<Value> = all
                .iter()
                .filter(named)
                .filter(|o| condition(o, "Authenticated")["status"] != "True")
                .map(|o| condition(o, "Ready"))
                .collect();
            Ok(Probe::when(waiting.is_empty(), format!("{waiting:?}")))
        })
        .await?;
        // The vCenter has compared each byte by byte.
        let logins = bed.vcenter.logins().await?;
        for (number, shape) in shapes.iter().enumerate() {
            ensure!(
                logins[&user(number)] == Logins { succeeded: 1, failed: 0 },
                "{shape:?}: {:?}",
                logins[&user(number)]
            );
        }
        for (name, reason) in [
            ("refused", "InvalidCredentials"),
            ("opaque", "SecretWrongType"),
            ("misplaced", "SecretWrongType"),
            ("bundle", "CaBundleInvalid"),
        ] {
            bed.until_condition("VsphereCloudConfig", name, "Ready", reason).await?;
        }
        until("the echo", PATIENCE, async || {
            Ok(Probe::when(proxy.calls().contains_key("Login"), "no login"))
        })
        .await?;

        // A rotation through the drivers' configuration, one that fails, and an outage.
        for number in [0, 11, 37] {
            bed.apply(&secret(
                "vc1-credentials",
                "kubernetes.io/basic-auth",
                json!({"username": user(number), "password": shapes[number]}),
            ))
            .await?;
            let version = bed.get("v1", "Secret", NS, "vc1-credentials").await?["metadata"]["resourceVersion"].clone();
            until("the rotated credentials to be verified", PATIENCE, async || {
                let object = bed.get("vdo.vmware.com/v1alpha1", "VsphereCloudConfig", NS, "vc1").await?;
                Ok(Probe::when(
                    object["status"]["credential"]["verified"] == version,
                    object["status"]["credential"].clone(),
                ))
            })
            .await?;
            bed.until_ready().await?;
        }
        bed.apply(&secret(
            "vc1-credentials",
            "kubernetes.io/basic-auth",
            json!({"username": user(0), "password": wrong[5]}),
        ))
        .await?;
        bed.until_condition("VsphereCloudConfig", "vc1", "Authenticated", "InvalidCredentials")
            .await?;
        bed.vcenter.stop();
        bed.until_condition("VsphereCloudConfig", "vc1", "Connected", "Unreachable").await?;

        let planted: Vec<String> = shapes
            .iter()
            .chain(&wrong)
            .cloned()
            .chain([bed.vcenter.password().to_owned()])
            .collect();
        let scanner = Scanner::new(&planted);
        let mut search = Search::default();
        for (key, bytes) in bed.cluster.stored().await? {
            search.look(&scanner, "etcd outside Secrets", &key, key.as_bytes());
            if !key.starts_with("/registry/secrets/") {
                search.look(&scanner, "etcd outside Secrets", &key, &bytes);
            }
        }
        let log = std::fs::read(bed.operator_log())?;
        ensure!(
            String::from_utf8_lossy(&log).contains("\"level\":\"TRACE\""),
            "the log is not at the level that shows everything"
        );
        for (number, line) in log.split(|byte| *byte == b'\n').enumerate() {
            search.look(&scanner, "log at level trace", &format!("line {number}"), line);
        }
        search.look(&scanner, "log at level trace", "as a whole", &log);
        search.look(
            &scanner,
            "audit log",
            "as a whole",
            &std::fs::read(bed.cluster.dir().join("audit.log"))?,
        );
        for path in ["metrics", "healthz", "readyz"] {
            let answer = bed.fetch(&format!("/{path}")).await?;
            ensure!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
            search.look(&scanner, "metrics and health", path, answer.as_bytes());
        }
        for process in bed.operator.as_ref().context("an operator")?.family()? {
            for (part, content) in seen_of_process(process)? {
                search.look(&scanner, "arguments and environment", &format!("{process}/{part}"), &content);
            }
        }
        for arguments in [
            &["status"][..],
            &["status", "-o", "json"],
            &["status", "-o", "wide"],
            &["diff"],
            &["diff", "-o", "json"],
            &["diff", "-o", "yaml"],
            &["plan", "--set", "updatePolicy=Latest", "-o", "json"],
            &["secrets", "list", "-o", "json"],
            &["report", "--html", "-"],
            &["render"],
            &["render", "-o", "json"],
            &["render", "-o", "table"],
            &["matrix", "resolve", "-o", "json"],
            &["doctor"],
            &["doctor", "-o", "json"],
            &["doctor", "nodes"],
            &["doctor", "privileges", "--surplus"],
            &["doctor", "connection", "refused", "-o", "yaml"],
        ] {
            let output = vdoctl(&bed, arguments)?;
            ensure!(!output.is_empty(), "vdoctl {arguments:?} says nothing");
            search.look(&scanner, "vdoctl", &arguments.join(" "), &output);
        }
        let bundle = bed.cluster.dir().join("support.tar.gz");
        // Whatever was left there, and whatever the umask.
        std::os::unix::fs::symlink("elsewhere", &bundle)?;
        vdoctl(&bed, &["support-bundle", "--output", &bundle.display().to_string()])?;
        let written = std::fs::symlink_metadata(&bundle)?;
        ensure!(written.is_file() && written.permissions().mode() & 0o777 == 0o600, "{written:?}");
        let mut unpacked = Vec::new();
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(std::fs::File::open(bundle)?), &mut unpacked)?;
        ensure!(
            unpacked.len() > 100_000,
            "there is little in the support bundle: {} bytes",
            unpacked.len()
        );
        search.look(&scanner, "support bundle", "unpacked", &unpacked);
        println!("{} secrets in {} encodings were looked for in:", planted.len(), ENCODINGS.len());
        for (surface, bytes) in &search.bytes {
            println!("  {surface:<28} {:>9.1} KiB", f64::from(u32::try_from(*bytes)?) / 1024.0);
        }
        println!(
            "  and {}",
            if search.hits.is_empty() {
                "found nowhere".into()
            } else {
                format!("found {} times", search.hits.len())
            }
        );
        ensure!(search.hits.is_empty(), "{}", search.hits.join("\n"));

        // The same eyes see them where they are.
        let stored = bed.cluster.stored().await?;
        let seen = stored
            .iter()
            .filter(|(key, bytes)| key.starts_with("/registry/secrets/") && scanner.find(bytes).is_some())
            .count();
        ensure!(
            seen >= planted.len() - 2,
            "of {} planted secrets {seen} are where they were planted",
            planted.len()
        );
        Ok(())
    })
}

fn secret(name: &str, kind: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": NS}, "type": kind, "stringData": data})
}

/// A connection with a Secret of its own name, and changes; null takes a field away.
fn connection(bed: &Bed, name: &str, changes: Value) -> Value {
    let mut connection = bed.connection(name);
    connection["spec"]["credentials"] = name.into();
    for (field, value) in changes.as_object().into_iter().flatten() {
        connection["spec"][field] = value.clone();
    }
    connection
}
