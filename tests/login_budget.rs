//! However often the operator starts and however many connections share it, a wrong password is sent once.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod bed;

use anyhow::{Result, ensure};
use bed::{Bed, NS, PATIENCE, condition};
use serde_json::{Value, json};
use std::time::Duration;
use vdo_testbed::soap::{Act, Lockout, Rule, SoapOptions, SoapProxy};
use vdo_testbed::{Logins, Probe, until};

const CONNECTIONS: usize = 20;
const RESTARTS: usize = 100;
/// Longer than any test here, and much longer than the operator waits.
const FOREVER: Duration = Duration::from_secs(900);

/// A cluster with twenty connections that share one Secret, and a vCenter that locks accounts as a real one does.
struct Shared {
    bed: Bed,
    proxy: SoapProxy,
}

fn name(number: usize) -> String {
    format!("vc{number}")
}

impl Shared {
    async fn start(password: &str) -> Result<Self> {
        bed::prepare();
        let mut bed = Bed::start().await?;
        bed.flags.push(("connection-interval", "1s"));
        let options = SoapOptions {
            lockout: Some(Lockout::default()),
            ..SoapOptions::default()
        };
        let proxy = SoapProxy::start(&bed.vcenter, options).await?;
        bed.apply(&bed.secret(password)).await?;
        for number in 0..CONNECTIONS {
            let mut connection = bed.connection(&name(number));
            connection["spec"]["port"] = proxy.port().into();
            connection["spec"]["thumbprint"] = proxy.thumbprint_sha256().into();
            bed.apply(&connection).await?;
        }
        Ok(Self { bed, proxy })
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
            Ok(Probe::when(count == CONNECTIONS, format!("{count} are")))
        })
        .await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_restarts_of_twenty_connections_send_a_wrong_password_once() -> Result<()> {
    let mut shared = Shared::start("wrong").await?;
    for restart in 0..RESTARTS {
        let before = shared.calls("RetrieveServiceContent");
        shared.bed.start_operator().await?;
        // Killed when everybody knows, as soon as it is ready, after its first look, and in the middle of all looks. The first
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
        "{RESTARTS} restarts of {CONNECTIONS} connections with one wrong password: {} failed login, {looks} looks",
        logins.failed
    );
    ensure!(logins == Logins { succeeded: 0, failed: 1 }, "{logins:?}");
    ensure!(looks >= 500, "only {looks} looks: the operator was hardly there");

    // A right one is tried at once, and everybody who shares it shares the session.
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
}

/// Killed in the middle of the attempt: the vCenter has counted it and nobody has heard, or it has not even heard of it.
#[tokio::test(flavor = "multi_thread")]
async fn killed_during_the_attempt() -> Result<()> {
    let mut shared = Shared::start("wrong").await?;
    for (act, password, failed) in [(Act::Late(FOREVER), "wrong", 1), (Act::Stall(FOREVER), "wrong as well", 1)] {
        let attempts = shared.calls("Login");
        shared.proxy.rule(Rule::on("Login", act));
        shared.bed.apply(&shared.bed.secret(password)).await?;
        shared.bed.start_operator().await?;
        shared.until_called("Login", attempts + 1).await?;
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
            shared.calls("Login") == attempts + 1 && all.failed == failed,
            "{} attempts, {all:?}",
            shared.calls("Login")
        );
    }
    Ok(())
}

/// The service for tags takes the same password and counts on its own: it refuses once, and nobody asks again before the Secret changes,
/// however often the operator starts. What needs no tags is told as ever.
#[tokio::test(flavor = "multi_thread")]
async fn the_service_for_tags_refuses_once() -> Result<()> {
    const LOGIN: &str = "POST /rest/com/vmware/cis/session";
    let mut shared = Shared::start(bed::NEXT_PASSWORD).await?;
    shared
        .bed
        .apply(&shared.bed.config(json!({"storageProvider": {"topologyCategories": ["zone"]}})))
        .await?;
    shared.proxy.rule(Rule::on(LOGIN, Act::Status(401, vec![], "{}".into())));
    let told = async |shared: &Shared, reason: &str| -> Result<()> {
        until(&format!("all connections to say {reason} of their tags"), PATIENCE, async || {
            let all = shared.objects().await?;
            let right =
                |o: &&Value| condition(o, "TopologyConsistent")["reason"] == reason && condition(o, "Authenticated")["status"] == "True";
            let count = all.iter().filter(right).count();
            Ok(Probe::when(count == CONNECTIONS, format!("{count} do")))
        })
        .await
    };
    for restart in 0..5 {
        let before = shared.calls("DestroyView");
        shared.bed.start_operator().await?;
        told(&shared, "TagLoginRefused").await?;
        shared.until_called("DestroyView", before + 40).await?;
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
    told(&shared, "TopologyCategoryNotFound").await?;
    ensure!(shared.calls(LOGIN) == 2, "{} logins", shared.calls(LOGIN));
    if let Some(mut operator) = shared.bed.operator.take() {
        operator.stop(PATIENCE);
    }
    Ok(())
}

/// Sessions: one for all connections and looks, had again when it ends, gone when the operator goes.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_looks_have_one_session() -> Result<()> {
    let password = bed::NEXT_PASSWORD;
    let mut shared = Shared::start(password).await?;
    shared.bed.start_operator().await?;
    shared.all_are("Healthy").await?;
    for round in 1..=4 {
        shared.until_called("DestroyView", round * 250).await?;
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

    // Told to stop, it logs out.
    if let Some(mut operator) = shared.bed.operator.take() {
        operator.stop(PATIENCE);
    }
    until("the last session to be logged out", PATIENCE, async || {
        Ok(Probe::when(
            shared.proxy.sessions().live == 0,
            format!("{:?}", shared.proxy.sessions()),
        ))
    })
    .await?;
    // Killed, it leaves one behind each time, which the vCenter ends by itself; and no more.
    for kill in 1..=5 {
        shared.bed.start_operator().await?;
        until("a session", PATIENCE, async || {
            Ok(Probe::when(shared.logins().succeeded >= 4 + kill, format!("{:?}", shared.logins())))
        })
        .await?;
        shared.bed.kill_operator();
        ensure!(
            shared.proxy.sessions().live == usize::try_from(kill)?,
            "{:?}",
            shared.proxy.sessions()
        );
    }
    let reading = [
        "RetrieveServiceContent",
        "Login",
        "Logout",
        "CreateContainerView",
        "DestroyView",
        "RetrievePropertiesEx",
        "ContinueRetrievePropertiesEx",
    ];
    let others: Vec<String> = shared
        .proxy
        .calls()
        .into_keys()
        .filter(|call| !reading.contains(&call.as_str()))
        .collect();
    ensure!(others.is_empty(), "called beyond reading: {others:?}");
    let agents = shared.proxy.agents();
    ensure!(
        agents.len() == 1 && agents.iter().all(|agent| agent.starts_with("vdo/")),
        "{agents:?}"
    );
    Ok(())
}
