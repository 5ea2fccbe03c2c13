// SPDX-License-Identifier: Apache-2.0
//! Tests pushes and pulls with a registry that is busy for a while, breaks connections or refuses, at each step.

use super::{Artifact, Fault, File, Options, Registry, push_chart, push_files};
use crate::oci::{Annotations, Descriptor};
use futures::future::join_all;
use futures::{StreamExt as _, stream};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use vdo_api::types::Digest;

/// A step of a push or a pull.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Whether the blob is there.
    Look,
    /// The upload begins.
    Begin,
    /// A piece.
    Piece,
    /// How much the registry has.
    State,
    /// The end.
    End,
    /// The blob or a part of it is read.
    Read,
    /// The tag is read.
    Tag,
    /// The manifest is written.
    Manifest,
}

/// What a registry does wrong.
#[derive(Debug, Clone, Copy)]
enum Wrong {
    /// It answers with this status, and this `Retry-After`, and has not taken what was sent.
    Refuses(u16, Option<u64>),
    /// It takes what was sent, and answers with this status.
    TakesAndSays(u16),
    /// It takes or gives half of what is sent, and breaks the connection.
    Breaks,
    /// Another publisher has written the tag, and it answers with this status.
    Overtaken(u16),
}

/// A registry with one upload.
#[derive(Default)]
struct Fake {
    wrong: Vec<(Step, Wrong)>,
    asked: Vec<Step>,
    upload: Vec<u8>,
    blobs: BTreeMap<String, Vec<u8>>,
    manifest: Option<Vec<u8>>,
}

/// An answer, unless the connection breaks.
type Answer = Result<Response<Body>, Broken>;

type Body = UnsyncBoxBody<Bytes, Broken>;

#[derive(Debug, thiserror::Error)]
#[error("the connection breaks")]
struct Broken;

impl Step {
    fn of(request: &Request<()>) -> Self {
        let is_manifest = request.uri().path().contains("/manifests/");
        match (request.method(), request.uri().path().contains("/uploads/")) {
            (&Method::PUT, _) if is_manifest => Self::Manifest,
            (&Method::GET, _) if is_manifest => Self::Tag,
            (&Method::POST, _) => Self::Begin,
            (&Method::PATCH, _) => Self::Piece,
            (&Method::PUT, _) => Self::End,
            (&Method::GET, true) => Self::State,
            (&Method::GET, false) => Self::Read,
            _ => Self::Look,
        }
    }
}

impl Fake {
    fn answer(&mut self, request: &Request<()>, body: &[u8]) -> Answer {
        let step = Step::of(request);
        self.asked.push(step);
        let next = self.wrong.iter().position(|(at, _)| *at == step);
        let wrong = next.map(|next| self.wrong.remove(next).1);
        if let Some(Wrong::Refuses(code, after)) = wrong {
            let response = after.into_iter().fold(Response::builder().status(code), |response, after| {
                response.header("retry-after", after)
            });
            return Ok(response.body(Body::default()).expect("an answer"));
        }
        let taken = match wrong {
            Some(Wrong::Breaks) => &body[..body.len() / 2],
            _ => body,
        };
        if let Some(Wrong::Overtaken(code)) = wrong {
            self.manifest = Some(b"{}".to_vec());
            return Ok(Response::builder().status(code).body(Body::default()).expect("an answer"));
        }
        if let (Step::Tag, Some(manifest)) = (step, &self.manifest) {
            let content = StreamBody::new(stream::iter([Ok(Frame::data(Bytes::copy_from_slice(manifest)))]));
            return Ok(Response::new(content.boxed_unsync()));
        }
        if step == Step::Read {
            return Ok(self.read(request, matches!(wrong, Some(Wrong::Breaks))));
        }
        let mut range = None;
        let status = match step {
            Step::Look | Step::Read => {
                let digest = request.uri().path().rsplit('/').next().unwrap_or_default();
                if self.blobs.contains_key(digest) { 200 } else { 404 }
            }
            Step::Tag => 404,
            Step::Manifest if matches!(wrong, Some(Wrong::Breaks)) => 500,
            Step::Manifest => {
                self.manifest = Some(body.to_vec());
                201
            }
            Step::Begin => {
                self.upload.clear();
                202
            }
            Step::Piece => {
                let said = request.headers().get("content-range").and_then(|range| range.to_str().ok());
                let first = said.and_then(|range| range.split('-').next()?.parse::<usize>().ok());
                assert_eq!(first, Some(self.upload.len()), "a piece has to follow what is there");
                self.upload.extend_from_slice(taken);
                202
            }
            Step::State => {
                range = Some(format!("0-{}", self.upload.len().saturating_sub(1)));
                204
            }
            Step::End => {
                self.upload.extend_from_slice(taken);
                let query = request.uri().query().unwrap_or_default();
                let digest = query.trim_start_matches("digest=").replace("%3A", ":");
                if Digest::of(&self.upload).to_string() == digest {
                    self.blobs.insert(digest, std::mem::take(&mut self.upload));
                    201
                } else {
                    400
                }
            }
        };
        let status = match wrong {
            Some(Wrong::Breaks) => return Err(Broken),
            Some(Wrong::TakesAndSays(code)) => code,
            _ => status,
        };
        let mut response = Response::builder()
            .status(status)
            .header("location", "/v2/team/thing/blobs/uploads/1");
        if let Some(range) = range {
            response = response.header("range", range);
        }
        Ok(response.body(Body::default()).expect("an answer"))
    }

    /// The rest of a blob, or half of that before the connection breaks.
    fn read(&self, request: &Request<()>, breaks: bool) -> Response<Body> {
        let digest = request.uri().path().rsplit('/').next().unwrap_or_default();
        let range = request.headers().get("range").and_then(|range| range.to_str().ok());
        let from = range.and_then(|range| range.trim_start_matches("bytes=").trim_end_matches('-').parse().ok());
        let rest = &self.blobs[digest][from.unwrap_or(0)..];
        let given = if breaks { &rest[..rest.len() / 2] } else { rest };
        let given = stream::iter([Ok(Frame::data(Bytes::copy_from_slice(given)))]);
        let broken = stream::iter(breaks.then_some(Err(Broken))).then(async |broken| {
            // What was given before is on its way.
            tokio::task::yield_now().await;
            broken
        });
        Response::builder()
            .status(if range.is_some() { 206 } else { 200 })
            .header("content-length", rest.len())
            .body(StreamBody::new(given.chain(broken)).boxed_unsync())
            .expect("an answer")
    }
}

/// Starts one; a client of it.
async fn start(wrong: &[(Step, Wrong)]) -> (Registry, Arc<Mutex<Fake>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let host = listener.local_addr().expect("an address").to_string();
    let fake = Arc::new(Mutex::new(Fake {
        wrong: wrong.to_vec(),
        ..Fake::default()
    }));
    let shared = fake.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let fake = shared.clone();
            let service = service_fn(move |request: Request<Incoming>| {
                let fake = fake.clone();
                async move {
                    let (parts, body) = request.into_parts();
                    let body = body.collect().await.map_or_else(|_| Bytes::new(), |body| body.to_bytes());
                    fake.lock().expect("the registry").answer(&Request::from_parts(parts, ()), &body)
                }
            });
            tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    let options = Options {
        plain_http: true,
        ..Options::default()
    };
    (Registry::new(&host, options).expect("a client"), fake)
}

/// How a blob is pushed.
#[derive(Debug, Clone, Copy)]
enum Push {
    /// In two pieces and an end without bytes, as mirrors are.
    Pieces,
    /// By the end alone, as what is in memory.
    AtOnce,
}

const BLOB: &[u8] = b"a blob of two pieces";

async fn push(registry: &Registry, push: Push) -> Result<(), super::RegistryError> {
    let bytes = Bytes::from_static(BLOB);
    match push {
        Push::AtOnce => registry.put_blob("team/thing", bytes).await.map(|_| ()),
        Push::Pieces => {
            let mut upload = registry.upload("team/thing").await?;
            upload.write(bytes.slice(..8)).await?;
            upload.write(bytes.slice(8..)).await?;
            upload.finish(&Digest::of(&bytes)).await
        }
    }
}

#[tokio::test]
async fn push_to_a_registry_that_is_busy_for_a_while_succeeds_at_each_step() {
    use Push::{AtOnce, Pieces};
    use Step::{Begin, End, Look, Piece, State};
    let busy = |code| Wrong::Refuses(code, None);
    let wait = |code| Wrong::Refuses(code, Some(2));
    let cases = [
        (Pieces, vec![(Begin, busy(503))]),
        (Pieces, vec![(Begin, wait(429))]),
        (Pieces, vec![(Begin, Wrong::Breaks)]),
        (Pieces, vec![(Piece, busy(502))]),
        (Pieces, vec![(Piece, wait(503))]),
        (Pieces, vec![(Piece, Wrong::Breaks)]),
        (Pieces, vec![(Piece, Wrong::TakesAndSays(502))]),
        // It counts otherwise.
        (Pieces, vec![(Piece, Wrong::Refuses(416, None))]),
        (Pieces, vec![(Piece, Wrong::Breaks), (State, busy(502)), (State, busy(503))]),
        (Pieces, vec![(Piece, busy(502)), (State, wait(503))]),
        (Pieces, vec![(End, busy(502))]),
        (Pieces, vec![(End, wait(503))]),
        (Pieces, vec![(End, busy(503)), (Look, busy(503)), (State, busy(502))]),
        // It has stored the blob, so there is no upload any more.
        (Pieces, vec![(End, Wrong::TakesAndSays(502))]),
        (AtOnce, vec![(Look, busy(503))]),
        (AtOnce, vec![(Begin, busy(502))]),
        (AtOnce, vec![(End, busy(503))]),
        (AtOnce, vec![(End, wait(503))]),
        (AtOnce, vec![(End, Wrong::Breaks), (State, busy(502))]),
        (AtOnce, vec![(End, Wrong::TakesAndSays(504))]),
        // It was started meanwhile, and knows nothing of the upload.
        (AtOnce, vec![(End, Wrong::Refuses(404, None))]),
        (AtOnce, vec![(End, busy(502)), (State, Wrong::Refuses(404, None))]),
    ];
    let all = cases.map(|(how, wrong)| async move {
        let (registry, fake) = start(&wrong).await;
        let begun = Instant::now();
        let pushed = push(&registry, how).await;
        assert!(pushed.is_ok(), "{how:?} {wrong:?}: {pushed:?}");
        let fake = fake.lock().expect("the registry");
        assert!(fake.wrong.is_empty(), "{how:?} {wrong:?}: {:?} was asked", fake.asked);
        assert_eq!(
            fake.blobs.get(&Digest::of(BLOB).to_string()).map(Vec::as_slice),
            Some(BLOB),
            "{how:?} {wrong:?}"
        );
        // Half a second, a second, … and never sooner than the registry asks for.
        let asked = wrong.iter().any(|(_, wrong)| matches!(wrong, Wrong::Refuses(_, Some(_))));
        let least = Duration::from_millis(if asked { 2000 } else { 500 });
        assert!(begun.elapsed() >= least, "{how:?} {wrong:?}: after {:?}", begun.elapsed());
    });
    join_all(all).await;
}

#[tokio::test]
async fn push_that_a_registry_refuses_is_not_repeated() {
    use Step::{Begin, End, Piece, State};
    let cases = [400, 401, 403, 404, 413].map(|code| Wrong::Refuses(code, None));
    // Longer than anyone waits in front of a screen.
    let cases = cases.into_iter().chain([Wrong::Refuses(503, Some(3600))]);
    let all = cases.flat_map(|wrong| [Begin, Piece, State, End].map(|step| (step, wrong)));
    let all = all.map(|(step, wrong)| async move {
        let before = (step == State).then_some((Piece, Wrong::Breaks));
        let (registry, fake) = start(&before.into_iter().chain([(step, wrong)]).collect::<Vec<_>>()).await;
        let pushed = push(&registry, Push::Pieces).await;
        assert!(pushed.is_err(), "{step:?} {wrong:?}");
        let fake = fake.lock().expect("the registry");
        let times = fake.asked.iter().filter(|asked| **asked == step).count();
        assert_eq!((times, fake.asked.last()), (1, Some(&step)), "{wrong:?}: {:?}", fake.asked);
    });
    join_all(all).await;
}

/// Publishes a file, and a chart.
async fn publish(registry: &Registry, is_chart: bool) -> Result<(), super::RegistryError> {
    let to = format!("{}/team/thing:1.0.0", registry.host()).parse().expect("a reference");
    if is_chart {
        let chart = push_chart(registry, &to, b"{}".to_vec(), BLOB.to_vec(), Annotations::new());
        return chart.await.map(drop);
    }
    let file = File {
        path: "thing".into(),
        media_type: "text/plain".into(),
        bytes: BLOB.to_vec(),
    };
    let artifact = Artifact {
        artifact_type: "application/vnd.example.thing".into(),
        files: vec![file],
    };
    push_files(registry, &to, &artifact, None).await.map(drop)
}

#[tokio::test]
async fn manifest_to_a_registry_that_is_busy_for_a_while_is_written() {
    use Step::{Manifest, Tag};
    let busy = |code| Wrong::Refuses(code, None);
    let cases = [
        (true, vec![(Manifest, busy(503))]),
        (true, vec![(Manifest, Wrong::Refuses(429, Some(2)))]),
        (true, vec![(Manifest, Wrong::Breaks)]),
        (true, vec![(Manifest, Wrong::TakesAndSays(502))]),
        (false, vec![(Manifest, busy(502)), (Manifest, busy(503))]),
        (false, vec![(Manifest, Wrong::Breaks)]),
        (false, vec![(Manifest, Wrong::TakesAndSays(502))]),
        (false, vec![(Tag, busy(503))]),
    ];
    let all = cases.map(|(is_chart, wrong)| async move {
        let (registry, fake) = start(&wrong).await;
        let published = publish(&registry, is_chart).await;
        assert!(published.is_ok(), "{is_chart} {wrong:?}: {published:?}");
        let fake = fake.lock().expect("the registry");
        assert!(fake.wrong.is_empty() && fake.manifest.is_some(), "{wrong:?}: {:?}", fake.asked);
    });
    join_all(all).await;
}

#[tokio::test]
async fn manifest_that_a_registry_refuses_is_not_written_again() {
    let cases = [400, 401, 403, 413].map(|code| Wrong::Refuses(code, None));
    let all = cases.into_iter().flat_map(|wrong| [true, false].map(|is_chart| (is_chart, wrong)));
    let all = all.map(|(is_chart, wrong)| async move {
        let (registry, fake) = start(&[(Step::Manifest, wrong)]).await;
        assert!(publish(&registry, is_chart).await.is_err(), "{is_chart} {wrong:?}");
        let asked = &fake.lock().expect("the registry").asked;
        assert_eq!(
            asked.iter().filter(|step| **step == Step::Manifest).count(),
            1,
            "{wrong:?}: {asked:?}"
        );
    });
    join_all(all).await;
}

#[tokio::test]
async fn manifest_of_another_publisher_between_two_attempts_is_kept() {
    let (registry, fake) = start(&[(Step::Manifest, Wrong::Overtaken(503))]).await;
    let published = publish(&registry, false).await.expect_err("another publisher was faster");
    assert!(matches!(published.fault(), Fault::Moved { .. }), "{published:?}");
    assert_eq!(fake.lock().expect("the registry").manifest.as_deref(), Some(b"{}".as_slice()));
}

#[tokio::test]
async fn pull_from_a_registry_that_breaks_off_waits_and_asks_for_the_rest() {
    use Wrong::{Breaks, Refuses};
    for (wrong, expected, least) in [
        (vec![Breaks], Some(2), 500),
        (vec![Breaks, Refuses(503, None)], Some(3), 1500),
        (vec![Breaks, Refuses(503, Some(2))], Some(3), 2500),
        (vec![Breaks, Refuses(404, None)], None, 500),
        (vec![Breaks, Refuses(503, Some(3600))], None, 500),
    ] {
        let (registry, fake) = start(&wrong.iter().map(|wrong| (Step::Read, *wrong)).collect::<Vec<_>>()).await;
        let blob = Descriptor::of("text/plain", BLOB);
        fake.lock()
            .expect("the registry")
            .blobs
            .insert(blob.digest.to_string(), BLOB.to_vec());
        let begun = Instant::now();
        let read = registry.blob_bytes("team/thing", &blob, 100).await;
        let asked = fake.lock().expect("the registry").asked.len();
        assert_eq!(read.as_deref().ok(), expected.map(|_| BLOB), "{wrong:?}: {read:?}");
        assert_eq!(asked, expected.unwrap_or(2), "{wrong:?}");
        assert!(
            begun.elapsed() >= Duration::from_millis(least),
            "{wrong:?}: after {:?}",
            begun.elapsed()
        );
    }
}
