// SPDX-License-Identifier: Apache-2.0
//! What a matrix on a web server costs: a poll without news, the verification of an index with 500 versions, and the memory of a fetch.
//! Server and client are in one process; the client has a thread of its own, whose processor time is what is shown.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    missing_docs,
    reason = "a bench that cannot start should stop, and prints"
)]

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use vdo_api::types::Secret;
use vdo_core::matrix::Index;
use vdo_source::fetch::{ChartRepository, Records};
use vdo_source::signature::{Form, PrivateKey, PublicKeys};
use vdo_testbed::WebServer;

const INDEX: &str = "/index.json";
const VERSIONS: u32 = 500;
const POLLS: u32 = 50;

/// A line of /proc/self/status, in KiB; nothing where the system does not tell.
fn memory(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// The processor time of this thread.
fn processor() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(text.split_whitespace().next()?.parse().ok()?))
}

/// As the real one is written: 500 versions with evidence, features, images and notes.
fn index(version: u64) -> String {
    let mut text = format!(
        r#"{{"apiVersion": "vdo.vmware.com/matrix/v1", "kind": "CompatibilityMatrix", "version": {version}, "generated": "2026-11-20T00:00:00Z", "sources": {{"s": {{"url": "https://vdo.example/notes", "kind": "release-notes"}}}}, "drivers": {{"x": {{"role": "storage", "versions": ["#
    );
    for i in 0..VERSIONS {
        let comma = if i == 0 { "" } else { "," };
        let (low, high) = (i % 20 + 10, i % 20 + 12);
        write!(
            text,
            r#"{comma}{{"version": "{}.{}.0", "chart": {{"urls": ["charts/x-{i}.tgz"], "sha256": "{i:064x}"}}, "kubernetes": {{"min": "1.{low}", "max": "1.{high}", "evidence": ["s"], "confidence": "primary"}}, "vsphere": {{"min": "7.0", "max": null, "evidence": ["s"], "confidence": "primary", "note": "as the release notes of version {i} have it"}}, "features": {{"snapshots": {{"vsphere": {{"min": "7.0.3"}}}}, "onlineExpansion": {{}}}}, "images": [{{"name": "driver", "ref": "registry.example.com/x/driver:v{i}"}}, {{"name": "syncer", "ref": "registry.example.com/x/syncer:v{i}"}}]}}"#,
            i / 100,
            i % 100
        )
        .unwrap();
    }
    text + "]}}}"
}

/// Counts what goes through it, in both directions, and the connections that are open.
async fn counting(to: u16) -> (u16, Arc<AtomicU64>, watch::Receiver<usize>) {
    let (listener, total) = (TcpListener::bind(("127.0.0.1", 0)).await.unwrap(), Arc::new(AtomicU64::new(0)));
    let (port, counted) = (listener.local_addr().unwrap().port(), total.clone());
    let (open, opened) = watch::channel(0);
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let (counted, open) = (counted.clone(), open.clone());
            open.send_modify(|open| *open += 1);
            tokio::spawn(async move {
                let mut server = TcpStream::connect(("127.0.0.1", to)).await.unwrap();
                if let Ok((there, back)) = tokio::io::copy_bidirectional(&mut client, &mut server).await {
                    counted.fetch_add(there + back, Ordering::SeqCst);
                }
                open.send_modify(|open| *open -= 1);
            });
        }
    });
    (port, total, opened)
}

fn main() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let pem = rcgen::KeyPair::generate().unwrap().serialize_pem();
    let key = PrivateKey::parse(&Secret::new(pem)).unwrap();
    verification(&key);
    let folder = tempfile::tempdir().unwrap();
    let (server, port, total, mut open) = runtime.block_on(async {
        let server = WebServer::start().await.unwrap();
        let port = server.url("").rsplit_once(':').unwrap().1.trim_matches('/').parse().unwrap();
        let (port, total, open) = counting(port).await;
        (server, port, total, open)
    });
    let publish = |version| {
        let text = index(version);
        server.put(&format!("{INDEX}.sig"), key.sign(text.as_bytes(), Form::Bare).unwrap());
        server.put(INDEX, text);
    };
    publish(1);
    std::fs::write(folder.path().join("keys.pem"), key.public().pem()).unwrap();
    std::fs::create_dir(folder.path().join("credentials")).unwrap();
    std::fs::write(folder.path().join("credentials/ca.crt"), server.authority().pem()).unwrap();
    let source = format!("https://localhost:{port}{INDEX}").parse().unwrap();
    let repository = ChartRepository::at(
        Some(source),
        Some(folder.path().join("keys.pem")),
        Some(folder.path().join("credentials")),
    );
    let client = std::thread::scope(|scope| {
        let work = scope.spawn(|| {
            let own = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            own.block_on(async {
                // The second one finds what the allocator and the tables of certificates need in place.
                for version in [2, 3] {
                    publish(version);
                    let before = memory("VmRSS:");
                    // Resets the peak.
                    let _ = std::fs::write("/proc/self/clear_refs", "5");
                    assert_eq!(repository.poll().await.problem, None);
                    assert_eq!(repository.index(&Records::default()).await.unwrap().index.version, version);
                    if let (Some(before), Some(peak), Some(after)) = (before, memory("VmHWM:"), memory("VmRSS:")) {
                        println!(
                            "a fetch of {VERSIONS} versions: peak {} KiB, afterwards {} KiB above the memory before (aim 5120)",
                            peak.saturating_sub(before),
                            after.saturating_sub(before)
                        );
                    }
                }
                server.forget();
                total.store(0, Ordering::SeqCst);
                let (start, used) = (Instant::now(), processor());
                for _ in 0..POLLS {
                    let polled = repository.poll().await;
                    assert!(polled.problem.is_none() && !polled.news);
                }
                let used = processor().zip(used).map(|(after, before)| (after - before) / POLLS);
                println!("a poll without news: {:?}, of which processor {used:?}", start.elapsed() / POLLS);
            });
        });
        work.join()
    });
    client.unwrap();
    // What is counted is counted when a connection ends.
    runtime.block_on(open.wait_for(|open| *open == 0)).unwrap();
    println!(
        "a poll without news: {} requests, {} bytes with the TLS handshake",
        server.asked().len() as f64 / f64::from(POLLS),
        total.load(Ordering::SeqCst) / u64::from(POLLS)
    );
}

/// What an index is put through before it is used.
fn verification(key: &PrivateKey) {
    let text = index(1);
    let signature = key.sign(text.as_bytes(), Form::Bare).unwrap();
    let keys = PublicKeys::parse(key.public().pem().as_bytes()).unwrap();
    let best = |work: &dyn Fn()| {
        let time = |_| {
            let start = Instant::now();
            work();
            start.elapsed()
        };
        (0..50).map(time).min().unwrap_or_default()
    };
    let verified = best(&|| {
        std::hint::black_box(keys.verify(text.as_bytes(), Some(signature.as_bytes())).unwrap());
    });
    let parsed = best(&|| drop(Index::parse(text.as_bytes()).unwrap()));
    println!(
        "an index with {VERSIONS} versions, {} KiB: signature verified in {verified:?}, parsed in {parsed:?} (aim 5 ms for the signature)",
        text.len() / 1024
    );
}
