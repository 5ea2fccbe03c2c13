// SPDX-License-Identifier: Apache-2.0
//! How long the pure half of a reconcile takes: choose, open, render, package.
#![allow(clippy::unwrap_used, missing_docs, reason = "a bench that cannot start should stop")]

use divan::Bencher;
use serde_json::Value;
use std::collections::BTreeMap;
use vdo_core::chart::{self, Chart, Context};
use vdo_core::drivers::{CPI, CSI};
use vdo_core::matrix::{DriverRequest, Index, Query, UpdatePolicy, resolve};
use vdo_source::fetch::embedded;

fn main() {
    divan::main();
}

fn package() -> Vec<u8> {
    chart::package(&embedded::sources()[CSI], &"3.7.3".parse().unwrap()).unwrap()
}

fn csi() -> Chart {
    chart::open(&package()).unwrap()
}

#[divan::bench]
fn render_csi(bencher: Bencher) {
    let chart = csi();
    bencher.bench(|| chart::render(&chart, &Value::Null, &Context::default()).unwrap());
}

/// What a bare parser takes for the same text: `render_csi` renders, parses and validates. Their ratio is the price of the rest.
#[divan::bench]
fn parse_rendered_csi_bare(bencher: Bencher) {
    let text = vdo_api::yaml::dump_all(&chart::render(&csi(), &Value::Null, &Context::default()).unwrap());
    bencher.bench(|| serde_saphyr::from_multiple::<Value>(&text).unwrap());
}

/// Packages of all versions of all drivers.
#[divan::bench]
fn package_all(bencher: Bencher) {
    let sources = embedded::sources();
    bencher.bench(|| {
        let all = sources
            .values()
            .flat_map(|source| source.versions().into_iter().map(move |version| (source, version)));
        all.map(|(source, version)| chart::package(source, &version).unwrap().len())
            .sum::<usize>()
    });
}

#[divan::bench]
fn check_values_csi(bencher: Bencher) {
    let chart = csi();
    bencher.bench(|| chart::values::effective(&chart, &Value::Null).unwrap());
}

#[divan::bench]
fn package_csi(bencher: Bencher) {
    let source = embedded::sources().remove(CSI).unwrap();
    let version = "3.7.3".parse().unwrap();
    bencher.bench(|| chart::package(&source, &version).unwrap());
}

#[divan::bench]
fn open_csi(bencher: Bencher) {
    let bytes = package();
    bencher.bench(|| chart::open(&bytes).unwrap());
}

#[divan::bench]
fn parse_matrix() -> Index {
    Index::parse(embedded::index()).unwrap()
}

#[divan::bench]
fn resolve_both(bencher: Bencher) {
    let index = Index::parse(embedded::index()).unwrap();
    let kubernetes = "v1.34.4".parse().unwrap();
    let vcenters = [
        ("a".to_owned(), "8.0.3".parse().unwrap()),
        ("b".to_owned(), "7.0.3".parse().unwrap()),
    ];
    let drivers: BTreeMap<_, _> = [CPI, CSI].map(|driver| (driver.to_owned(), DriverRequest::default())).into();
    let installed = BTreeMap::new();
    let query = Query {
        kubernetes: &kubernetes,
        vcenters: &vcenters,
        drivers: &drivers,
        installed: &installed,
        policy: UpdatePolicy::Compatible,
    };
    bencher.bench(|| resolve(&index, &query).unwrap());
}
