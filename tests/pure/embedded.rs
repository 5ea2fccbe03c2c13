// SPDX-License-Identifier: Apache-2.0
//! What the binary carries: an index that is fresh and complete, and charts that are the promised bytes.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    missing_docs,
    reason = "a failing test should stop where it fails"
)]

use std::path::Path;
use vdo_api::types::{ChartRef, Digest};
use vdo_core::chart;
use vdo_core::drivers::{self, CSI};
use vdo_core::matrix::{Confidence, Index};
use vdo_source::fetch::{Access, FetchError, MatrixSource, embedded};

use crate::generate::matrix as generate;

fn embedded_index() -> Index {
    Index::parse(embedded::index()).unwrap()
}

#[test]
fn embedded_index_is_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let written = std::fs::read_to_string(root.join("matrix-index/index.yaml")).unwrap();
    assert_eq!(
        written,
        generate::refreshed(root).unwrap(),
        "run `cargo run --example generate -- matrix`"
    );
    assert_eq!(written.as_bytes(), embedded::index(), "the build did not pick up a change");
}

/// What the operator needs for all versions is in its program, and is little.
#[test]
fn embedded_data_is_at_most_two_mebibytes() {
    let sources = embedded::sources();
    let charts: usize = sources.values().flat_map(|source| source.files.values()).map(Vec::len).sum();
    assert!(charts > 50 << 10, "{charts} bytes are not all charts");
    assert!(
        charts + embedded::index().len() <= 2 << 20,
        "{charts} bytes of charts, {} of the index",
        embedded::index().len()
    );
}

#[test]
fn embedded_index_every_version_has_chart_and_evidence() {
    let index = embedded_index();
    assert_eq!(index.unknown_fields, Vec::<String>::new());
    for (name, driver) in &index.drivers {
        for entry in &driver.versions {
            let bytes = embedded::chart(&entry.chart).unwrap();
            let chart = chart::open(&bytes).unwrap();
            assert_eq!((&chart.metadata.name, &chart.metadata.version), (name, &entry.version));
            assert_eq!(chart.metadata.role, driver.role);
            for support in [&entry.kubernetes, &entry.vsphere] {
                assert!(
                    !support.evidence.is_empty() || support.confidence == Confidence::Unverified,
                    "{name} {}",
                    entry.version
                );
            }
            assert!(!entry.images.is_empty());
        }
    }
}

/// A driver that no field of the VDOConfig is for comes only where `spec.drivers` names it.
#[test]
fn embedded_index_drivers_are_usual_or_on_request() {
    let index = embedded_index();
    let usual: Vec<&str> = index.usual().map(String::as_str).collect();
    assert_eq!(usual, drivers::KNOWN.map(|driver| driver.name));
    for name in drivers::ON_REQUEST {
        assert!(index.drivers.contains_key(name), "{name}");
    }
    let requested = drivers::requests(&vdo_api::api::VDOConfigSpec::default());
    assert!(requested.iter().all(|request| usual.contains(&request.driver.as_str())));
}

/// Runs a future that never waits.
fn now<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    match future.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop())) {
        std::task::Poll::Ready(value) => value,
        std::task::Poll::Pending => panic!("it waits"),
    }
}

#[test]
fn store_embedded_chart_has_promised_digest() {
    let index = embedded_index();
    let reference = index.drivers[CSI].versions[0].chart.clone();
    let bytes = embedded::chart(&reference).unwrap();
    assert_eq!(Digest::of(&bytes), reference.digest);
}

#[test]
fn store_local_folder_reads_charts_beside_index() {
    let index = embedded_index();
    let reference = index.drivers[CSI].versions[0].chart.clone();
    let bytes = embedded::chart(&reference).unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("charts")).unwrap();
    std::fs::write(folder.path().join("index.yaml"), embedded::index()).unwrap();
    std::fs::write(folder.path().join(&reference.urls[0]), &bytes).unwrap();
    let store = MatrixSource::Local(folder.path().to_owned());
    assert_eq!(now(store.fetch(&Access::default(), None)).unwrap().signed.index, embedded::index());
    assert_eq!(now(store.chart(&Access::default(), &reference)).unwrap(), bytes);
    let file = MatrixSource::Local(folder.path().join("index.yaml"));
    assert_eq!(
        now(file.chart(&Access::default(), &reference)).unwrap(),
        bytes,
        "charts are beside the file"
    );
    let embedded_only = index.drivers[CSI].versions[1].chart.clone();
    assert_eq!(
        Digest::of(&now(store.chart(&Access::default(), &embedded_only)).unwrap()),
        embedded_only.digest,
        "what is not there comes out of the binary"
    );
}

#[test]
fn store_changed_or_unlisted_chart_is_rejected() {
    let reference = embedded_index().drivers[CSI].versions[0].chart.clone();
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("charts")).unwrap();
    std::fs::write(folder.path().join("index.yaml"), embedded::index()).unwrap();
    let store = MatrixSource::Local(folder.path().to_owned());
    std::fs::write(folder.path().join(&reference.urls[0]), b"other").unwrap();
    assert!(matches!(
        now(store.chart(&Access::default(), &reference)),
        Err(FetchError::DigestMismatch { .. })
    ));
    let with_url = |url: &str| ChartRef {
        urls: vec![url.to_owned()],
        ..reference.clone()
    };
    for url in [
        "../index.yaml",
        "/etc/passwd",
        "https://example.com/vsphere-csi-9.9.9.tgz",
        "charts/vsphere-csi-9.9.9.tgz",
    ] {
        assert!(
            matches!(
                now(store.chart(&Access::default(), &with_url(url))),
                Err(FetchError::NotFound { .. })
            ),
            "{url}"
        );
        assert!(matches!(embedded::chart(&with_url(url)), Err(FetchError::NotFound { .. })), "{url}");
    }
    let wrong = ChartRef {
        digest: Digest::of(b"other"),
        ..reference
    };
    assert!(matches!(embedded::chart(&wrong), Err(FetchError::DigestMismatch { .. })));
}
