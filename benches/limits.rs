// SPDX-License-Identifier: Apache-2.0
//! What the largest inputs that are accepted cost, and the worst that are not: memory and time of a process that reads nothing else.
//! docs/benchmarks.md has the table; `cargo bench --bench cluster -- large` measures the operator among the largest objects.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    missing_docs,
    reason = "a bench that cannot start should stop, and prints"
)]

#[path = "mirror/measured.rs"]
mod measured;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::Command;
use vdo_api::types::Digest;
use vdo_core::chart::{self, Context};
use vdo_core::matrix::{INDEX_LIMIT, Index, Shelf, StoredMatrix};
use vdo_core::mirror_lock::Lock;
use vdo_core::plan::{Inventory, PackedObjects, Stored};
use vdo_source::fetch::embedded;

/// The file that the process reads, and how.
const INPUT: &str = "VDO_BENCH_INPUT";
/// MiB that the operator may have for all of it.
const LIMIT: f64 = 256.0;
/// Bytes of a ConfigMap or Secret.
const RECORD: usize = 1 << 20;

/// What is read, what makes it, and what reads it; the answer is a word for the table.
type Case = (&'static str, fn() -> Vec<u8>, fn(&[u8]) -> String);

const CASES: [Case; 17] = [
    ("index: 5,000 versions, JSON", || index(5_000), read_index),
    (
        "index: 5,000 versions, YAML",
        || {
            vdo_api::yaml::dump(&serde_json::from_slice::<Value>(&index(5_000)).unwrap())
                .unwrap()
                .into()
        },
        read_index,
    ),
    (
        "index: unknown field with millions of values",
        || filled(INDEX_LIMIT, r#""version":1,"drivers":{},"colour":["#, "{},", "{}]", ""),
        read_index,
    ),
    (
        "index: the same in YAML",
        || filled(INDEX_LIMIT, r#""version":1,"drivers":{},"colour":["#, "{},", "{}]", "# YAML\n"),
        read_index,
    ),
    (
        "index: millions of small known values",
        || filled(INDEX_LIMIT, r#""version":1,"sources":{"s":{"url":"u","note":["#, "[],", "[]]}}", ""),
        read_index,
    ),
    (
        "index: one version with all the values",
        || {
            filled(
                INDEX_LIMIT,
                r#""drivers":{"d":{"role":"other","versions":[{"images":["#,
                "{},",
                "{}]}]}}",
                "",
            )
        },
        read_index,
    ),
    (
        "index: 60,000 of the smallest versions",
        || {
            filled(
                INDEX_LIMIT,
                r#""version":1,"drivers":{"d":{"role":"other","versions":["#,
                SMALLEST,
                &SMALLEST[..SMALLEST.len() - 1],
                "]}}",
            )
        },
        read_index,
    ),
    ("lock: 10,000 images", lock, read_lock),
    (
        "lock: 4 MiB of small values",
        || {
            b"images: ["
                .iter()
                .copied()
                .chain(b"[],".repeat((4 << 20) / 3))
                .chain(*b"[]]")
                .collect()
        },
        read_lock,
    ),
    ("chart: the largest that is embedded", || embedded_chart(&[]), read_chart),
    (
        "chart: 4 MiB of templates",
        || {
            embedded_chart(
                &(0..68)
                    .map(|at| (format!("templates/{at}.yaml"), "# {% if true %}x{% endif %}\n".repeat(2_100)))
                    .collect::<Vec<_>>(),
            )
        },
        read_chart,
    ),
    (
        "chart: a line of 4,600 tags",
        || embedded_chart(&[("templates/x.yaml".into(), "{% if true %}".repeat(4_600))]),
        read_chart,
    ),
    (
        "chart: a line of 20,000 tags",
        || embedded_chart(&[("templates/x.yaml".into(), "{% if true %}".repeat(20_000))]),
        read_chart,
    ),
    (
        "chart: 1 MiB of small values",
        || embedded_chart(&[("values.yaml".into(), format!("x: [{}[]]\n", "[],".repeat(340_000)))]),
        read_chart,
    ),
    ("matrix in ConfigMaps: one part listed 400 times", repeated_part, read_parts),
    ("records: packed objects of 1 MiB", || packed("[],"), read_packed),
    (
        "records: inventory, history and matrix of small values",
        || format!("[{}{{}}]", "{},".repeat(RECORD / 3)).into(),
        read_records,
    ),
];

const SMALLEST: &str = r#"{"version":"1.0.0","chart":{"urls":["x"],"sha256":"0000000000000000000000000000000000000000000000000000000000000000"},"kubernetes":{"confidence":"primary"},"vsphere":{"confidence":"primary"}},"#;

const HEAD: &str = r#"{"apiVersion":"vdo.vmware.com/matrix/v1","kind":"CompatibilityMatrix","#;

/// An index of so many bytes that is mostly repetition.
fn filled(most: usize, before: &str, repeated: &str, after: &str, first: &str) -> Vec<u8> {
    let (start, end) = match first.starts_with('#') {
        true => (format!("{first}{HEAD}{before}"), format!("{after}}}")),
        false => (format!("{HEAD}{before}"), format!("{after}{first}}}")),
    };
    let count = (most - start.len() - end.len()) / repeated.len();
    format!("{start}{}{end}", repeated.repeat(count)).into()
}

/// As real ones are written.
fn index(versions: u32) -> Vec<u8> {
    let version = |i: u32| {
        let support = |min: String, max: Value| json!({"min": min, "max": max, "evidence": ["s"], "confidence": "primary", "note": format!("as the release notes of version {i} have it")});
        let image = |name: &str| json!({"name": name, "ref": format!("registry.example.com/csi-vsphere/{name}:v{i}"), "digest": format!("sha256:{i:064x}")});
        let images = [
            "driver",
            "syncer",
            "attacher",
            "provisioner",
            "resizer",
            "registrar",
            "livenessprobe",
        ]
        .map(image);
        json!({"version": format!("{}.{}.{}", i / 1000, i / 10 % 100, i % 10),
            "chart": {"urls": [format!("charts/x-{i}.tgz")], "sha256": format!("{i:064x}")},
            "kubernetes": support(format!("1.{}", i % 20 + 10), format!("1.{}", i % 20 + 12).into()), "vsphere": support("7.0".into(), Value::Null),
            "features": {"snapshots": {"vsphere": {"min": "7.0.3"}, "evidence": ["s"]}, "onlineExpansion": {}, "multiVcenter": {"vsphere": {"min": "8.0"}}},
            "images": images})
    };
    let versions: Vec<Value> = (0..versions).map(version).collect();
    json!({"apiVersion": "vdo.vmware.com/matrix/v1", "kind": "CompatibilityMatrix", "version": 1, "sources": {"s": {"url": "https://vdo.example/notes"}},
        "drivers": {"x": {"role": "storage", "versions": versions}}})
    .to_string()
    .into()
}

fn read_index(bytes: &[u8]) -> String {
    said(Index::parse(bytes).map(|index| index.drivers.values().map(|driver| driver.versions.len()).sum::<usize>()))
}

fn lock() -> Vec<u8> {
    let image = |i: u32| json!({"reference": format!("registry.example.com/some/where/driver:v{i}"), "digest": format!("sha256:{i:064x}"), "whole": format!("sha256:{i:064x}")});
    let lock = json!({"apiVersion": "vdo.vmware.com/mirror/v1", "kind": "MirrorLock", "pulled": "2026-01-01T00:00:00Z", "source": "embedded",
        "index": Digest::of(b"index").to_string(), "versions": {}, "images": (0..10_000).map(image).collect::<Vec<_>>()});
    vdo_api::yaml::dump(&lock).unwrap().into()
}

fn read_lock(bytes: &[u8]) -> String {
    said(Lock::parse(bytes, &Digest::of(b"index")).map(|lock| lock.images.len()))
}

/// The CSI chart with some files replaced; packed here, because what is refused is not packaged.
fn embedded_chart(files: &[(String, String)]) -> Vec<u8> {
    let source = embedded::sources().remove("vsphere-csi").unwrap();
    let version = source.versions().last().unwrap().clone();
    let mut all = chart::archive::unpack(&chart::package(&source, &version).unwrap()).unwrap();
    all.extend(files.iter().map(|(path, text)| (path.clone(), text.clone().into_bytes())));
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    for (path, content) in &all {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, format!("x/{path}"), content.as_slice()).unwrap();
    }
    archive.into_inner().unwrap().finish().unwrap()
}

fn read_chart(bytes: &[u8]) -> String {
    match chart::open(bytes) {
        Ok(chart) => said(chart::render(&chart, &Value::Null, &Context::default()).map(|objects| objects.len())),
        Err(error) => said::<usize, _>(Err(error)),
    }
}

/// Bytes that cannot be compressed.
fn noise(count: usize) -> Vec<u8> {
    let mut next = 1_u64;
    let mut byte = || {
        next = next.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (next >> 56) as u8
    };
    (0..count).map(|_| byte()).collect()
}

/// A list of contents that names one part repeatedly.
fn repeated_part() -> Vec<u8> {
    let part = noise(700 << 10);
    let digest = Digest::of(&part).to_string();
    let contents = json!({"version": 1, "files": {"index.yaml": {"digest": digest, "size": 1, "parts": vec![digest; 400]}}});
    json!({"contents": contents.to_string()}).to_string().into()
}

fn read_parts(bytes: &[u8]) -> String {
    let part = noise(700 << 10);
    let given: Value = serde_json::from_slice(bytes).unwrap();
    said(Shelf::read(given["contents"].as_str().unwrap(), |_| Some(part.clone())).map(|_| 1))
}

/// As much of it as a megabyte holds when it is packed.
fn packed(repeated: &str) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::best());
    packer
        .write_all(format!("[{}[]]", repeated.repeat((256 << 20) / repeated.len())).as_bytes())
        .unwrap();
    packer.finish().unwrap()
}

fn read_packed(bytes: &[u8]) -> String {
    assert!(bytes.len() < RECORD);
    format!("{} objects", PackedObjects::from_bytes(bytes).objects().len())
}

fn read_records(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let stored = |key: &str| Stored {
        data: BTreeMap::from([("objects".to_owned(), "[]".to_owned()), (key.to_owned(), text.clone())]),
        binary: BTreeMap::new(),
    };
    let keys = ["objects", "history", "matrix"];
    let accepted = keys.iter().filter(|key| Inventory::parse("vdo", &stored(key)).is_ok());
    format!("{} accepted, matrix: {}", accepted.count(), StoredMatrix::parse(&text).is_some())
}

fn said<T: std::fmt::Display, E: std::error::Error>(outcome: Result<T, E>) -> String {
    match outcome {
        Ok(count) => format!("read, {count}"),
        Err(error) => {
            let mut text = error.to_string();
            if let Some(source) = error.source() {
                text = format!("{text}: {source}");
            }
            let short: String = text.chars().take(90).collect();
            format!("refused: {}", short.replace('\n', " "))
        }
    }
}

/// A support bundle with a document of small values.
fn bundle() -> Vec<u8> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::best()));
    let manifest = json!({"kind": "SupportBundle", "schema": 1, "vdoctl": "0.1.0", "taken": "2026-01-01T00:00:00Z", "cluster": {"name": "demo"}, "exits": {}});
    let many = format!("[{}[]]", "[],".repeat((4 << 20) / 3 - 1));
    for (path, text) in [
        ("b/bundle.json", manifest.to_string()),
        ("b/status.json", many),
        ("b/status.txt", String::new()),
    ] {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o600);
        archive.append_data(&mut header, path, text.as_bytes()).unwrap();
    }
    archive.into_inner().unwrap().finish().unwrap()
}

#[expect(clippy::disallowed_methods, reason = "the bench starts itself once more, marked by a variable")]
fn main() {
    if let Ok(input) = std::env::var(INPUT) {
        let (number, path) = input.split_once(' ').unwrap();
        let (_, _, read) = CASES[number.parse::<usize>().unwrap()];
        println!("{}", read(&std::fs::read(path).unwrap()));
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    println!("{:<56} {:>10} {:>10} {:>9}", "input", "KiB", "peak, MiB", "s");
    let mut most: f64 = 0.0;
    let mut row = |name: &str, size: usize, command: &mut Command| {
        let (run, code, out, err) = measured::ended(command, &log).unwrap();
        // A panic ends with 101, a signal with none.
        assert!(code.code().is_some_and(|code| code < 100), "{name}: {code}: {err}");
        let answer: String = out.chars().chain(err.chars()).take(100).collect();
        println!(
            "{name:<56} {:>10} {:>10.1} {:>9.2}   {}",
            size >> 10,
            run.peak,
            run.seconds,
            answer.replace('\n', " ")
        );
        most = most.max(run.peak);
    };
    for (number, (name, make, _)) in CASES.iter().enumerate() {
        let path = folder.path().join(number.to_string());
        let bytes = make();
        std::fs::write(&path, &bytes).unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        row(name, bytes.len(), command.env(INPUT, format!("{number} {}", path.display())));
    }
    let path = folder.path().join("bundle.tar.gz");
    let bytes = bundle();
    std::fs::write(&path, &bytes).unwrap();
    row(
        "support bundle: 4 MiB of small values, vdoctl status",
        bytes.len(),
        Command::new(vdo_testbed::vdoctl()).args(["status", "--from"]).arg(&path),
    );
    println!(
        "most memory {most:.1} MiB (less than {LIMIT}){}",
        if most < LIMIT { "" } else { "   MISSED" }
    );
}
