// SPDX-License-Identifier: Apache-2.0
//! Servers that answer slowly, without end, or with what takes a thousand times its size: each ends its own inspection, in time, within its
//! memory, and delays no other work.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests")]

mod attacks;
mod evil;
mod inspection;
mod measure;
mod seeds;
mod together;

use evil::{Evil, Reply, machine, page, place, response};
use hyper::body::Bytes;
use inspection::{credentials, inspect};
use std::time::{Duration, Instant};
use vdo_api::types::Remedy as _;
use vdo_vsphere::vcenter::{Budget, Limits, Pool, Session};
use vdo_vsphere::vsphere::SessionError;

async fn failure(server: &Evil, limits: Limits, pool: Pool) -> String {
    let error = inspect(server.port, &Budget::new(limits, &pool)).await.unwrap_err();
    assert!(
        error.remedy().is_some_and(|remedy| remedy.ends_with('.')),
        "{error:?} has no remedy"
    );
    // What is read on a thread of its own lets go of its memory at its next step.
    for _ in 0..500 {
        if pool.used() == 0 {
            return error.to_string();
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{} bytes are still held after {error}", pool.used());
}

#[tokio::test(flavor = "multi_thread")]
async fn inspection_of_sound_server_finds_everything() {
    let server = Evil::start([]).await;
    let seen = inspect(server.port, &Budget::default()).await.unwrap();
    assert_eq!(seen.inventory.machines.len(), 20);
    assert_eq!(seen.inventory.machines[1].path, "/DC0/vm/machine-of-someone-000001");
    assert_eq!(seen.policies.unwrap()[0].name, "gold");
    assert_eq!(seen.tagging.unwrap().categories.len(), 2);
    assert_eq!(seen.nodes[0].at, Some(1));
}

/// The answer to one call takes the whole of what one answer may be, or of what it may become.
#[tokio::test(flavor = "multi_thread")]
async fn inspection_answer_of_empty_elements_is_refused() {
    let call = "CreateContainerView";
    for (elements, expected) in [
        (15_000_000, "is larger than 16777216 bytes"),
        (2_000_000, "the answer has more than 50000 XML elements"),
    ] {
        let bomb = Reply::Body(response(call, &"<x/>".repeat(elements)).into());
        let server = Evil::start([(call, bomb)]).await;
        let reported = failure(&server, Limits::default(), Pool::default()).await;
        assert!(reported.contains(expected), "{reported} does not say {expected:?}");
        assert_eq!(server.calls("DestroyView"), 0);
    }
}

/// A thousand pages, each within all limits of a page.
#[tokio::test(flavor = "multi_thread")]
async fn inspection_pages_without_end_are_refused() {
    let (first, next) = ("RetrievePropertiesEx", "ContinueRetrievePropertiesEx");
    let some: String = (0..1000).map(|i| machine(i, "group-d1")).collect();
    let text = "n".repeat(5000);
    let large = format!("<objects><obj type=\"Folder\">group-d2</obj><x>{text}</x></objects>").repeat(1000);
    let small = "<objects><x/></objects>".repeat(100_000);
    let limits = Limits {
        received: 24 << 20,
        elements: 400_000,
        ..Limits::default()
    };
    for (objects, pool, expected) in [
        (&some, 8, "sent more than fits into memory, and the rest was not read"),
        (&large, 80, "sent more than 24 MiB, and the rest was not read"),
        (&small, 80, "sent more than 400000 elements, and the rest was not read"),
    ] {
        let pages = [first, next].map(|call| (call, Reply::Body(page(call, Some("more"), objects).into())));
        let server = Evil::start(pages).await;
        let reported = failure(&server, limits, Pool::new(pool << 20)).await;
        assert!(reported.contains(expected), "{reported} does not say {expected:?}");
        assert!(server.calls(next) < 10, "{} pages", server.calls(next));
    }
}

/// Each page in time for itself, and all of them not.
#[tokio::test(flavor = "multi_thread")]
async fn inspection_slow_pages_end_at_its_deadline() {
    let pages = ["RetrievePropertiesEx", "ContinueRetrievePropertiesEx"]
        .map(|call| (call, Reply::Late(Duration::from_millis(700), page(call, Some("more"), "").into())));
    let server = Evil::start(pages).await;
    let limits = Limits {
        whole: Duration::from_secs(2),
        ..Limits::default()
    };
    let started = Instant::now();
    let reported = failure(&server, limits, Pool::default()).await;
    assert!(reported.ends_with("did not finish answering within 2s"), "{reported}");
    assert!((2.0..4.0).contains(&started.elapsed().as_secs_f64()), "{:?}", started.elapsed());
    // The certificate and the login took time of the same account.
    assert!((1..=2).contains(&server.calls("ContinueRetrievePropertiesEx")));
}

/// The same wherever it stalls: no call has a time of its own beyond the end of the inspection.
#[tokio::test(flavor = "multi_thread")]
async fn inspection_stalled_call_ends_at_its_deadline() {
    for call in [
        "Login",
        "CreateContainerView",
        "HasPrivilegeOnEntities",
        "PbmQueryProfile",
        "/rest/com/vmware/cis/tagging/category",
    ] {
        let server = Evil::start([(call, Reply::Stalls(Bytes::from_static(b"<")))]).await;
        let limits = Limits {
            whole: Duration::from_secs(1),
            ..Limits::default()
        };
        let started = Instant::now();
        let reported = failure(&server, limits, Pool::default()).await;
        assert!(reported.ends_with("did not finish answering within 1s"), "{call}: {reported}");
        assert!(started.elapsed() < Duration::from_secs(3), "{call}: {:?}", started.elapsed());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn inspection_call_in_its_own_time_is_distinguished() {
    let server = Evil::start([("CreateContainerView", Reply::Stalls(Bytes::new()))]).await;
    let limits = Limits {
        call: Duration::from_millis(500),
        ..Limits::default()
    };
    let reported = failure(&server, limits, Pool::default()).await;
    assert!(reported.ends_with("did not answer CreateContainerView within 500ms"), "{reported}");
}

/// Values of JSON take seventy bytes each, and stand in two.
#[tokio::test(flavor = "multi_thread")]
async fn inspection_json_bomb_in_tags_is_refused() {
    let call = "/rest/com/vmware/cis/tagging/category";
    for bomb in [
        format!("{{\"value\":[{}0]}}", "0,".repeat(1_000_000)),
        format!("{{\"value\":{}{}}}", "[{\"a\":".repeat(10), "[],".repeat(1_000_000)),
    ] {
        let server = Evil::start([(call, Reply::Body(bomb.into()))]).await;
        let reported = failure(&server, Limits::default(), Pool::default()).await;
        assert!(reported.contains("sent more than fits into memory"), "{reported}");
    }
}

/// What a server calls its things is not sent back when it is not an identifier.
#[tokio::test(flavor = "multi_thread")]
async fn inspection_identifier_of_any_length_is_refused() {
    let long = "x".repeat(100_000);
    let view = |kind: &str, id: &str| format!("<returnval type=\"{kind}\">{id}</returnval>");
    for (call, text) in [
        (
            "CreateContainerView",
            response("CreateContainerView", &view("ContainerView", &long)),
        ),
        (
            "CreateContainerView",
            response("CreateContainerView", &view("Container View", "view-1")),
        ),
        (
            "CreateContainerView",
            response("CreateContainerView", &view("ContainerView", "view 1")),
        ),
        ("RetrievePropertiesEx", page("RetrievePropertiesEx", Some(&long), "")),
        ("RetrievePropertiesEx", page("RetrievePropertiesEx", Some("a&#10;b"), "")),
        (
            "RetrievePropertiesEx",
            page("RetrievePropertiesEx", None, &place("Folder", "group-d2", "f", &long)),
        ),
        ("Login", response("Login", &format!("<returnval><key>{long}</key></returnval>"))),
    ] {
        let server = Evil::start([(call, Reply::Body(text.into()))]).await;
        let error = inspect(server.port, &Budget::default()).await.unwrap_err();
        let reported = error.to_string();
        assert!(
            matches!(error, SessionError::Connection(_)) && reported.len() < 500,
            "{call}: {reported}"
        );
    }
    for categories in ["[\"../../session\"]", "[\"..\"]", "[\"a?x=y\"]", &format!("[\"{long}\"]")] {
        let text = format!("{{\"value\":{categories}}}");
        let server = Evil::start([("/rest/com/vmware/cis/tagging/category", Reply::Body(text.into()))]).await;
        let seen = inspect(server.port, &Budget::default()).await.unwrap();
        let reported = seen.tagging.unwrap_err().to_string();
        assert!(reported.contains("the tag id") && reported.len() < 500, "{reported}");
        assert_eq!(server.calls("/rest/com/vmware/cis/tagging/category/"), 0);
    }
}

/// 20,000 machines with four networks each, in fifty datacenters.
#[tokio::test(flavor = "multi_thread")]
async fn inspection_of_large_vcenter_is_within_budget() {
    let pool = Pool::default();
    let places: String = (0..50)
        .map(|i| {
            place("Datacenter", &format!("datacenter-{i}"), &format!("Datacenter {i}"), "group-d1")
                + &place("Folder", &format!("group-v{i}"), "vm", &format!("datacenter-{i}"))
        })
        .collect();
    // One answer of 1,000 is repeated twenty times: the reader does not look whether a machine comes twice.
    let objects: String = (0..1000).map(|i| machine(i, &format!("group-v{}", i % 50))).collect();
    let next = Reply::Body(page("ContinueRetrievePropertiesEx", Some("more"), &objects).into());
    let server = Evil::start([
        (
            "RetrievePropertiesEx",
            Reply::Body(page("RetrievePropertiesEx", Some("more"), &places).into()),
        ),
        ("ContinueRetrievePropertiesEx", next),
    ])
    .await;
    let session = Session::open(server.endpoint(), credentials(), &Budget::default()).await.unwrap();
    let budget = Budget::new(Limits::default(), &pool);
    let error = session.inventory(&budget).await.unwrap_err();
    assert!(error.to_string().contains("sent more than"), "{error:?}");
    let machines = server.calls("ContinueRetrievePropertiesEx") * 1000;
    println!("{machines} machines, {} bytes a page", objects.len());
    assert!(machines >= 20_000, "only {machines} machines fit");
}

/// Nothing else waits while an answer is read, even where one thread does everything.
#[test]
fn inspection_of_long_answer_leaves_others_their_time() {
    let (reported, hear) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let call = "RetrievePropertiesEx";
            let long = page(call, None, &"<objects><x/><x/><x/></objects>".repeat(400_000));
            let server = Evil::start([(call, Reply::Body(long.into()))]).await;
            reported.send(server.port).unwrap();
            std::future::pending::<()>().await;
        });
    });
    let port = hear.recv().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (longest, whole) = runtime.block_on(async {
        let started = Instant::now();
        let budget = Budget::default();
        let mut inspection = Box::pin(inspect(port, &budget));
        let (mut longest, mut last) = (Duration::ZERO, Instant::now());
        loop {
            tokio::select! {
                read = &mut inspection => { read.unwrap(); break }
                () = tokio::time::sleep(Duration::from_millis(5)) => {}
            };
            longest = longest.max(last.elapsed());
            last = Instant::now();
        }
        (longest, started.elapsed())
    });
    assert!(longest * 2 < whole, "everything stood still for {longest:?} of {whole:?}");
}
