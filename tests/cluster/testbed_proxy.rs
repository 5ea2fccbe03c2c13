// SPDX-License-Identifier: Apache-2.0
//! The proxy does to a client what a test asks for, and what it says of requests is what the API server did.

#![allow(clippy::panic, reason = "tests")]

use std::time::{Duration, Instant};

use crate::common::Bed;
use crate::fixture::EMPTY;
use anyhow::{Context, Result, ensure};
use futures::{Stream, StreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, ResourceExt};
use serde_json::json;
use vdo_testbed::{Act, Call, Cut, PATIENCE, Probe, Proxy, until};

const RIGHTS: &str = "
apiVersion: v1
kind: ServiceAccount
metadata: {name: robot, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: robot}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: robot, namespace: default}]
";
/// Long enough for a request to be answered, if it were.
const WHILE: Duration = Duration::from_millis(300);

struct Test {
    proxy: Proxy,
    /// Through the proxy.
    maps: Api<ConfigMap>,
    /// Past the proxy.
    truth: Api<ConfigMap>,
}

/// The shared cluster with a robot that reaches it through a proxy.
fn through_a_proxy(test: impl AsyncFnOnce(&Test) -> Result<()>) -> Result<()> {
    EMPTY.run(async |bed| test(&Test::start(bed).await?).await)
}

fn map(name: &str) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.to_owned());
    map
}

/// A write of this number meets this act, everything else passes.
fn at(write: usize, act: Act) -> impl Fn(&Call) -> Act + Send + Sync + 'static {
    move |call| if call.write == Some(write) { act } else { Act::Pass }
}

impl Test {
    async fn start(bed: &Bed) -> Result<Self> {
        bed.cluster.apply_yaml(RIGHTS).await?;
        let proxy = Proxy::start(&bed.cluster).await?;
        let through = proxy.kubeconfig(&bed.cluster.service_account_kubeconfig("default", "robot").await?)?;
        let mut config = Config::from_custom_kubeconfig(Kubeconfig::read_from(through)?, &KubeConfigOptions::default()).await?;
        config.default_retry = false;
        let test = Self {
            proxy,
            maps: Api::namespaced(Client::try_from(config)?, "default"),
            truth: Api::namespaced(bed.cluster.client(), "default"),
        };
        until("the robot's rights", PATIENCE, async || {
            Ok(Probe::when(test.maps.list(&ListParams::default()).await.is_ok(), "refused"))
        })
        .await?;
        Ok(test)
    }

    async fn create(&self, name: &str) -> Result<ConfigMap, kube::Error> {
        self.maps.create(&PostParams::default(), &map(name)).await
    }

    async fn exists(&self, name: &str) -> Result<bool> {
        Ok(self.truth.get_opt(name).await?.is_some())
    }

    async fn watch(&self) -> Result<impl Stream<Item = kube::Result<WatchEvent<ConfigMap>>> + Unpin> {
        let here = self
            .truth
            .list(&ListParams::default())
            .await?
            .metadata
            .resource_version
            .context("a version")?;
        let before = self.proxy.watches(is_map);
        let stream = self.maps.watch(&WatchParams::default(), &here).await?.boxed();
        ensure!(self.proxy.watches(is_map) == before + 1);
        Ok(stream)
    }
}

#[test]
fn proxy_passes_requests_on_and_numbers_them() -> Result<()> {
    through_a_proxy(async |test| {
        test.proxy.begin(|_| Act::Pass);
        test.create("one").await?;
        test.maps.get("one").await?;
        let dry = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        test.maps.create(&dry, &map("never")).await?;
        test.maps
            .patch("one", &PatchParams::default(), &Patch::Merge(json!({"data": {"n": "1"}})))
            .await?;
        test.maps.delete("one", &DeleteParams::default()).await?;
        let seen: Vec<_> = test
            .proxy
            .handled()
            .into_iter()
            .map(|h| (h.call.line(), h.call.number, h.call.write, h.code))
            .collect();
        let wanted = [
            ("create configmaps default", 1, Some(1), Some(201)),
            ("get configmaps default/one", 2, None, Some(200)),
            ("create configmaps default", 3, None, Some(201)),
            ("patch configmaps default/one", 4, Some(2), Some(200)),
            ("delete configmaps default/one", 5, Some(3), Some(200)),
        ]
        .map(|(line, number, write, code)| (line.to_owned(), number, write, code));
        assert_eq!(seen, wanted);
        assert_eq!(test.proxy.writes(), 3);
        Ok(())
    })
}

#[test]
fn proxy_answer_replaces_the_write() -> Result<()> {
    through_a_proxy(async |test| {
        for (code, reason) in [
            (409, "Conflict"),
            (429, "TooManyRequests"),
            (500, "InternalError"),
            (503, "ServiceUnavailable"),
        ] {
            let after = Some(Duration::from_secs(7));
            test.proxy.begin(at(1, Act::Answer { code, retry_after: after }));
            let error = test.create("refused").await.expect_err("the proxy refuses");
            let kube::Error::Api(status) = error else { panic!("{error}") };
            assert_eq!((status.code, status.reason.as_str()), (code, reason));
            assert_eq!(status.details.context("details")?.retry_after_seconds, 7);
            ensure!(!test.exists("refused").await?, "{code} let the write through");
        }
        Ok(())
    })
}

#[test]
fn proxy_delay_holds_the_write_back() -> Result<()> {
    through_a_proxy(async |test| {
        test.proxy.begin(at(1, Act::Delay(WHILE)));
        let before = Instant::now();
        test.create("late").await?;
        ensure!(before.elapsed() >= WHILE, "it came too soon");
        Ok(())
    })
}

#[test]
fn proxy_lost_answer_follows_a_stored_write() -> Result<()> {
    through_a_proxy(async |test| {
        test.proxy.begin(at(1, Act::LoseAnswer));
        let error = test.create("lost").await.expect_err("no answer");
        assert!(!matches!(error, kube::Error::Api(_)), "{error}");
        ensure!(test.exists("lost").await?, "the write was not carried out");
        assert_eq!(test.proxy.handled().first().and_then(|h| h.code), Some(201));
        test.create("after").await.context("the next request passes")?;
        Ok(())
    })
}

#[test]
fn proxy_stop_answers_no_request_until_resumed() -> Result<()> {
    through_a_proxy(async |test| {
        for (act, name, committed) in [(Act::StopBefore, "before", false), (Act::StopAfter, "behind", true)] {
            test.proxy.begin(at(2, act));
            test.create(&format!("{name}-1")).await?;
            ensure!(!test.proxy.is_stopped());
            let (maps, object) = (test.maps.clone(), map(name));
            let waiting = tokio::spawn(async move { maps.create(&PostParams::default(), &object).await });
            test.proxy.stopped(PATIENCE).await?;
            assert_eq!(test.exists(name).await?, committed, "{act:?}");
            let other = tokio::time::timeout(WHILE, test.create(&format!("{name}-3"))).await;
            ensure!(other.is_err(), "{act:?}: something was answered: {other:?}");
            ensure!(!test.exists(&format!("{name}-3")).await?, "{act:?}: something was passed on");
            ensure!(!waiting.is_finished(), "{act:?}: the write was answered");
            waiting.abort();
            test.proxy.resume();
            test.create(&format!("{name}-4")).await.context("it goes on")?;
        }
        Ok(())
    })
}

#[test]
fn proxy_cut_ends_watches_in_each_way() -> Result<()> {
    through_a_proxy(async |test| {
        test.proxy.begin(|_| Act::Pass);
        for how in [Cut::Reset, Cut::End, Cut::Gone] {
            let mut stream = test.watch().await?;
            test.create(&format!("seen-{how:?}").to_lowercase()).await?;
            let first = next(&mut stream).await?;
            ensure!(matches!(first, Some(Ok(WatchEvent::Added(_)))), "{how:?}: {first:?}");
            assert_eq!(test.proxy.cut(how, |call| call.resource == "pods"), 0);
            assert_eq!(test.proxy.cut(how, is_map), 1);
            let last = next(&mut stream).await?;
            match (how, &last) {
                (Cut::Reset, Some(Err(_))) | (Cut::End, None) => {}
                (Cut::Gone, Some(Ok(WatchEvent::Error(status)))) if status.code == 410 => {}
                _ => panic!("{how:?}: {last:?}"),
            }
            drop(stream);
            until("the watch to be forgotten", PATIENCE, async || {
                Ok(Probe::when(test.proxy.watches(is_map) == 0, "it is not"))
            })
            .await?;
        }
        test.proxy.begin(|call| match call.verb {
            "watch" => Act::Answer {
                code: 410,
                retry_after: None,
            },
            _ => Act::Pass,
        });
        let refused = test.maps.watch(&WatchParams::default(), "0").await.err().context("no watch")?;
        ensure!(matches!(&refused, kube::Error::Api(s) if s.code == 410), "{refused}");
        Ok(())
    })
}

#[test]
fn proxy_hold_silences_watches_and_past_lists_are_old() -> Result<()> {
    through_a_proxy(async |test| {
        test.proxy.begin(|_| Act::Pass);
        let past = test.truth.list(&ListParams::default()).await?;
        let version: u64 = past.metadata.resource_version.context("a version")?.parse()?;
        let mut running = test.watch().await?;
        test.proxy.hold(is_map);
        test.create("hidden").await?;
        let mut new = test.maps.watch(&WatchParams::default(), &version.to_string()).await?.boxed();
        for stream in [&mut running as &mut (dyn Stream<Item = _> + Unpin), &mut new] {
            let said = tokio::time::timeout(WHILE, stream.next()).await;
            ensure!(said.is_err(), "a held watch said {said:?}");
        }
        test.proxy.release();
        for stream in [&mut running as &mut (dyn Stream<Item = _> + Unpin), &mut new] {
            let said = next(stream).await?;
            ensure!(
                matches!(&said, Some(Ok(WatchEvent::Added(m))) if m.name_any() == "hidden"),
                "{said:?}"
            );
        }

        let names = |list: kube::core::ObjectList<ConfigMap>| list.iter().map(ResourceExt::name_any).collect::<Vec<_>>();
        test.proxy
            .begin(move |call| if call.verb == "list" { Act::At(version) } else { Act::Pass });
        let shown = names(test.maps.list(&ListParams::default()).await?);
        let truth = names(test.truth.list(&ListParams::default()).await?);
        ensure!(truth.contains(&"hidden".into()) && !shown.contains(&"hidden".into()), "{shown:?}");
        assert_eq!(shown.len() + 1, truth.len());
        Ok(())
    })
}

fn is_map(call: &Call) -> bool {
    call.resource == "configmaps"
}

async fn next<S: Stream + Unpin + ?Sized>(stream: &mut S) -> Result<Option<S::Item>> {
    tokio::time::timeout(PATIENCE, stream.next())
        .await
        .context("the watch to say something")
}
