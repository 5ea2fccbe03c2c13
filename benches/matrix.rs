// SPDX-License-Identifier: Apache-2.0
//! The matrix at its real size and at 5,000 versions: time, and the peak memory of this process.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    missing_docs,
    reason = "a bench that cannot start should stop, and prints"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};
use vdo_core::matrix::{DriverRequest, Index, Query, UpdatePolicy, resolve};
use vdo_source::fetch::embedded;

/// The largest resident size so far, in KiB; nothing where the system does not tell.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

fn question<T>(index: &Index, ask: impl FnOnce(&Query<'_>) -> T) -> T {
    let kubernetes = "v1.34.4".parse().unwrap();
    let vcenters = [
        ("a".to_owned(), "8.0.3".parse().unwrap()),
        ("b".to_owned(), "7.0.3".parse().unwrap()),
    ];
    let drivers: BTreeMap<_, _> = index.drivers.keys().map(|name| (name.clone(), DriverRequest::default())).collect();
    ask(&Query {
        kubernetes: &kubernetes,
        vcenters: &vcenters,
        drivers: &drivers,
        installed: &BTreeMap::new(),
        policy: UpdatePolicy::Latest,
    })
}

fn large(count: u32) -> String {
    let mut text = String::from(
        r#"{"apiVersion": "vdo.vmware.com/matrix/v1", "kind": "CompatibilityMatrix", "version": 1, "drivers": {"x": {"role": "storage", "versions": ["#,
    );
    for i in 0..count {
        let comma = if i == 0 { "" } else { "," };
        let low = i % 60;
        write!(
            text,
            r#"{comma}{{"version":"{}.{}.{}","chart":{{"urls":["x-{i}.tgz"],"sha256":"{i:064x}"}},"kubernetes":{{"min":"1.{low}","max":"1.{}","confidence":"primary"}},"vsphere":{{"min":"7.0","max":null,"confidence":"primary"}}}}"#,
            i / 10_000,
            i / 100 % 100,
            i % 100,
            low + 2
        )
        .unwrap();
    }
    text.push_str("]}}}");
    text
}

fn main() {
    let index = Index::parse(embedded::index()).unwrap();
    let versions: usize = index.drivers.values().map(|driver| driver.versions.len()).sum();
    let best = (0..200)
        .map(|_| {
            let start = Instant::now();
            question(&index, |query| resolve(&index, query).unwrap());
            start.elapsed()
        })
        .min()
        .unwrap_or(Duration::MAX);
    println!("the real matrix ({versions} versions): resolved in {best:?} (aim 1 ms)");
    drop(index);

    for count in [1_000, 5_000] {
        at(count);
    }
}

fn at(count: u32) {
    let text = large(count);
    println!(
        "{count} versions: {} KiB of text, {} KiB resident before",
        text.len() / 1024,
        peak().unwrap_or(0)
    );
    let start = Instant::now();
    match Index::parse(text.as_bytes()) {
        Ok(index) => {
            let parsed = start.elapsed();
            question(&index, |query| resolve(&index, query).unwrap());
            println!(
                "parsed in {parsed:?}, resolved in {:?} (aim 500 ms for both)",
                start.elapsed() - parsed
            );
        }
        Err(error) => println!(
            "not parsed: {error}: {}",
            std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default()
        ),
    }
    println!("peak memory {} KiB (aim 65536)", peak().unwrap_or(0));
}
