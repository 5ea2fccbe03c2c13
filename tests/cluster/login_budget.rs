// SPDX-License-Identifier: Apache-2.0
//! However often the operator starts and however many connections share it, a wrong password is sent once.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use crate::common::sample::all_wanted;
use crate::common::{Bed, NEXT_PASSWORD, NS, PATIENCE, condition};
use crate::fixture::EMPTY;
use anyhow::{Result, ensure};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use std::time::Duration;
use vdo_testbed::soap::{Act, Lockout, Rule, SoapOptions, SoapProxy};
use vdo_testbed::{Logins, Probe, until};

const CONNECTIONS: usize = 20;
/// As many as make a difference, where each look is long.
const FEW: usize = 5;

/// How often the operator is restarted, and how many inspections share a session: a fifth of what `make test-all` asks for.
fn of_many(all: u64) -> u64 {
    if all_wanted() { all } else { all / 5 }
}
/// Longer than any test here, and much longer than the operator waits.
const FOREVER: Duration = Duration::from_secs(900);

/// A cluster with connections that share one Secret, and a vCenter that locks accounts as a real one does.
struct Shared<'a> {
    bed: &'a mut Bed,
    proxy: SoapProxy,
    connections: usize,
}

impl<'a> Shared<'a> {
    async fn start(bed: &'a mut Bed, password: &str, connections: usize) -> Result<Self> {
        bed.lead_directly();
        bed.flags = vec![("connection-interval", "1s")];
        let options = SoapOptions {
            lockout: Some(Lockout::default()),
            ..SoapOptions::default()
        };
        let proxy = SoapProxy::start(&bed.vcenter, options).await?;
        bed.apply(&bed.secret(password)).await?;
        for number in 0..connections {
            let mut connection = bed.connection(&format!("shared-{number}"));
            connection["spec"]["port"] = proxy.port().into();
            connection["spec"]["thumbprint"] = proxy.thumbprint_sha256().into();
            bed.apply(&connection).await?;
        }
        Ok(Self { bed, proxy, connections })
    }

    fn logins(&self) -> Logins {
        self.proxy.logins().get(self.bed.vcenter.user()).copied().unwrap_or_default()
    }

    fn calls(&self, method: &str) -> u64 {
        self.proxy.calls().get(method).copied().unwrap_or_default()
    }

    /// Waits until a method was called so often.
    async fn until_called(&self, method: &str, times: u64) -> Result<()> {
        until(&format!("{times} calls of {method}"), PATIENCE, async || {
            let calls = self.calls(method);
            Ok(Probe::when(calls >= times, format!("there were {calls}")))
        })
        .await
    }

    async fn objects(&self) -> Result<Vec<Value>> {
        self.bed.list("vdo.vmware.com/v1alpha1", "VsphereCloudConfig", "").await
    }

    /// Waits until all connections say this of the login with the Secret's newest version.
    async fn all_are(&self, reason: &str) -> Result<()> {
        let secret = self.bed.get("v1", "Secret", NS, "vc1-credentials").await?;
        let version = &secret["metadata"]["resourceVersion"];
        until(&format!("all connections to be {reason}"), PATIENCE, async || {
            let all = self.objects().await?;
            let right = |o: &&Value| condition(o, "Authenticated")["reason"] == reason && &o["status"]["credential"]["version"] == version;
            let count = all.iter().filter(right).count();
            Ok(Probe::when(count == self.connections, format!("{count} are")))
        })
        .await
    }

    /// Waits until all connections are let in and say this of their tags.
    async fn all_tags_are(&self, reason: &str) -> Result<()> {
        until(&format!("all connections to say {reason} of their tags"), PATIENCE, async || {
            let all = self.objects().await?;
            let right =
                |o: &&Value| condition(o, "TopologyConsistent")["reason"] == reason && condition(o, "Authenticated")["status"] == "True";
            let count = all.iter().filter(right).count();
            Ok(Probe::when(count == self.connections, format!("{count} do")))
        })
        .await
    }

    /// Ends the operator with SIGTERM.
    fn stop_operator(&mut self) {
        if let Some(mut operator) = self.bed.operator.take() {
            operator.stop(PATIENCE);
        }
    }

    /// Nothing but reading was asked of the vCenter, and the operator said its name.
    fn only_reads(&self) -> Result<()> {
        let reading = [
            "RetrieveServiceContent",
            "Login",
            "Logout",
            "CreateContainerView",
            "DestroyView",
            "RetrievePropertiesEx",
            "ContinueRetrievePropertiesEx",
        ];
        let others: Vec<String> = self
            .proxy
            .calls()
            .into_keys()
            .filter(|call| !reading.contains(&call.as_str()))
            .collect();
        ensure!(others.is_empty(), "called beyond reading: {others:?}");
        let agents = self.proxy.agents();
        ensure!(
            agents.len() == 1 && agents.iter().all(|agent| agent.starts_with("vdo/")),
            "{agents:?}"
        );
        Ok(())
    }
}

#[test]
#[ignore = "long"]
fn wrong_password_is_sent_once_in_many_restarts() -> Result<()> {
    EMPTY.run(async |bed| {
        let (shared, restarts) = (Shared::start(bed, "wrong", CONNECTIONS).await?, of_many(100));
        for restart in 0..restarts {
            let before = shared.calls("RetrieveServiceContent");
            shared.bed.start_operator().await?;
            // Killed when all connections know, as soon as it is ready, after its first look, and in the middle of all looks. The first
            // attempt has its answer; one that is killed before is a test of its own.
            match restart % 4 {
                0 => shared.all_are("InvalidCredentials").await?,
                1 => {}
                2 => shared.until_called("RetrieveServiceContent", before + 1).await?,
                _ => shared.until_called("RetrieveServiceContent", before + 20).await?,
            }
            shared.bed.kill_operator();
        }
        let (logins, looks) = (shared.logins(), shared.calls("RetrieveServiceContent"));
        println!(
            "{restarts} restarts of {CONNECTIONS} connections with one wrong password: {} failed login, {looks} looks",
            logins.failed
        );
        ensure!(logins == Logins { succeeded: 0, failed: 1 }, "{logins:?}");
        ensure!(looks >= 5 * restarts, "only {looks} looks: the operator was hardly there");
        // However long ago it was refused.
        for object in shared.objects().await? {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let long_ago = json!({"status": {"credential": {"lastTried": "2020-01-01T00:00:00Z"}}});
            let api = shared.bed.api("vdo.vmware.com/v1alpha1", "VsphereCloudConfig", NS);
            api.patch_status(name, &PatchParams::default(), &Patch::Merge(long_ago)).await?;
        }
        shared.bed.start_operator().await?;
        shared
            .until_called("RetrieveServiceContent", looks + 2 * u64::try_from(CONNECTIONS)?)
            .await?;
        shared.all_are("InvalidCredentials").await?;
        shared.bed.kill_operator();
        ensure!(shared.logins() == Logins { succeeded: 0, failed: 1 }, "{:?}", shared.logins());
        Ok(())
    })
}

/// It is tried at once, and all connections that share it share the session.
#[test]
#[ignore = "long"]
fn right_password_after_a_wrong_one_is_sent_once_for_all_connections() -> Result<()> {
    EMPTY.run(async |bed| {
        let shared = Shared::start(bed, "wrong", CONNECTIONS).await?;
        shared.bed.start_operator().await?;
        shared.all_are("InvalidCredentials").await?;
        shared.bed.kill_operator();
        shared.bed.start_operator().await?;
        shared.bed.apply(&shared.bed.secret(shared.bed.vcenter.password())).await?;
        shared.all_are("Healthy").await?;
        for object in shared.objects().await? {
            let credential = &object["status"]["credential"];
            ensure!(
                !credential["attempts"].is_number() && !credential["refused"].is_string(),
                "{credential}"
            );
        }
        ensure!(shared.logins() == Logins { succeeded: 1, failed: 1 }, "{:?}", shared.logins());
        Ok(())
    })
}

/// Kills the operator in the middle of its attempt, and then wherever it is ten times more.
async fn killed_during_the_attempt(bed: &mut Bed, act: Act, failed: u64) -> Result<()> {
    let shared = Shared::start(bed, "wrong", CONNECTIONS).await?;
    shared.proxy.rule(Rule::on("Login", act));
    shared.bed.start_operator().await?;
    shared.until_called("Login", 1).await?;
    shared.bed.kill_operator();
    shared.proxy.no_more_rules();
    for _ in 0..10 {
        let before = shared.calls("RetrieveServiceContent");
        shared.bed.start_operator().await?;
        shared.until_called("RetrieveServiceContent", before + 20).await?;
        shared.bed.kill_operator();
    }
    // Those who read the record wait as it says; none makes an attempt of its own.
    let all = shared.logins();
    ensure!(
        shared.calls("Login") == 1 && all.failed == failed,
        "{} attempts, {all:?}",
        shared.calls("Login")
    );
    Ok(())
}

/// The vCenter has counted the attempt, and its answer was lost.
#[test]
#[ignore = "long"]
fn login_without_answer_is_not_repeated_after_restart() -> Result<()> {
    EMPTY.run(async |bed| killed_during_the_attempt(bed, Act::Late(FOREVER), 1).await)
}

/// The attempt was written down, and the vCenter has not even heard of it.
#[test]
#[ignore = "long"]
fn login_that_never_arrived_is_not_repeated_after_restart() -> Result<()> {
    EMPTY.run(async |bed| killed_during_the_attempt(bed, Act::Stall(FOREVER), 0).await)
}

/// The service for tags takes the same password and counts on its own: it refuses once, and is not asked again before the Secret
/// changes, however often the operator starts. What needs no tags is reported as ever.
#[test]
#[ignore = "long"]
fn tag_login_refused_is_sent_once_in_five_restarts() -> Result<()> {
    EMPTY.run(async |bed| {
        const LOGIN: &str = "POST /rest/com/vmware/cis/session";
        let mut shared = Shared::start(bed, NEXT_PASSWORD, FEW).await?;
        // It is one vCenter under two names.
        for number in (1..FEW).step_by(2) {
            let name = format!("shared-{number}");
            let change = json!({"spec": {"vcIp": "localhost"}});
            shared
                .bed
                .merge("vdo.vmware.com/v1alpha1", "VsphereCloudConfig", NS, &name, change)
                .await?;
        }
        shared
            .bed
            .apply(&shared.bed.config(json!({"storageProvider": {"topologyCategories": ["zone"]}})))
            .await?;
        shared.proxy.rule(Rule::on(LOGIN, Act::Status(401, vec![], "{}".into())));
        for restart in 0..5 {
            let before = shared.calls("DestroyView");
            shared.bed.start_operator().await?;
            shared.all_tags_are("TagLoginRefused").await?;
            shared.until_called("DestroyView", before + 3 * FEW as u64).await?;
            shared.bed.kill_operator();
            ensure!(
                shared.calls(LOGIN) == 1,
                "{} logins after {} starts",
                shared.calls(LOGIN),
                restart + 1
            );
        }
        for object in shared.objects().await? {
            let storage = condition(&object, "StorageFound");
            ensure!(
                storage["status"] == "True" && condition(&object, "Ready")["status"] == "True",
                "{storage}"
            );
        }
        // Another version of the Secret is tried at once, once for all.
        shared.proxy.no_more_rules();
        shared.bed.start_operator().await?;
        shared.bed.apply(&shared.bed.secret(shared.bed.vcenter.password())).await?;
        shared.all_tags_are("TopologyCategoryNotFound").await?;
        ensure!(shared.calls(LOGIN) == 3, "{} logins, one for each name", shared.calls(LOGIN));
        shared.stop_operator();
        Ok(())
    })
}

/// One for all connections and looks, and one more each time that the vCenter ends it. With more connections the looks are made sooner.
#[test]
#[ignore = "long"]
fn session_is_shared_by_many_inspections() -> Result<()> {
    EMPTY.run(async |bed| {
        let shared = Shared::start(bed, NEXT_PASSWORD, CONNECTIONS).await?;
        shared.bed.start_operator().await?;
        shared.all_are("Healthy").await?;
        for round in 1..=4 {
            shared.until_called("DestroyView", round * of_many(1000) / 4).await?;
            ensure!(
                shared.proxy.sessions().live == 1 && shared.proxy.sessions().most == 1,
                "{:?}",
                shared.proxy.sessions()
            );
            if round < 4 {
                shared.proxy.end_sessions();
                until("a new session", PATIENCE, async || {
                    let logins = shared.logins();
                    Ok(Probe::when(logins.succeeded == round + 1, format!("{logins:?}")))
                })
                .await?;
            }
        }
        let (looks, logins, sessions) = (shared.calls("DestroyView"), shared.logins(), shared.proxy.sessions());
        println!(
            "{looks} looks at the inventory, {} logins (3 sessions were ended by the vCenter), at most {} session",
            logins.succeeded, sessions.most
        );
        ensure!(logins == Logins { succeeded: 4, failed: 0 }, "{logins:?}");
        shared.only_reads()
    })
}

/// Stopped with SIGTERM, the operator logs out. Killed, it leaves one session behind each time, which the vCenter ends by itself.
#[test]
#[ignore = "long"]
fn session_is_closed_on_stop_and_left_behind_on_kill() -> Result<()> {
    EMPTY.run(async |bed| {
        let mut shared = Shared::start(bed, NEXT_PASSWORD, CONNECTIONS).await?;
        shared.bed.start_operator().await?;
        shared.all_are("Healthy").await?;
        ensure!(shared.proxy.sessions().live == 1, "{:?}", shared.proxy.sessions());
        shared.stop_operator();
        until("the last session to be logged out", PATIENCE, async || {
            Ok(Probe::when(
                shared.proxy.sessions().live == 0,
                format!("{:?}", shared.proxy.sessions()),
            ))
        })
        .await?;
        for kill in 1..=5 {
            shared.bed.start_operator().await?;
            until("a session", PATIENCE, async || {
                Ok(Probe::when(shared.logins().succeeded > kill, format!("{:?}", shared.logins())))
            })
            .await?;
            shared.bed.kill_operator();
            ensure!(
                shared.proxy.sessions().live == usize::try_from(kill)?,
                "{:?}",
                shared.proxy.sessions()
            );
        }
        shared.only_reads()
    })
}
