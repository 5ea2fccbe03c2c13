// SPDX-License-Identifier: Apache-2.0
//! The ways to an API server that kubectl knows, too: proxies, other names, other users, deadlines of requests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

use crate::common::{Bed, OPERATOR as OPERATOR_USER, PATIENCE};
use crate::fixture::{EMPTY, OPERATOR};
use anyhow::{Context as _, Result, ensure};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, WatchEvent, WatchParams};
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use vdo::cluster::KubeOptions;
use vdo_testbed::{Act, Gateway, Microsocks, Proxy, Squid};

/// A name that resolves nowhere but at a proxy.
const NAME: &str = "api.test";
const PASSWORDS: [&str; 2] = ["let-m3-by", "wr0ng"];

/// What a command ended with and wrote.
struct Ended {
    code: i32,
    out: String,
    err: String,
}

impl Ended {
    /// Checks code and words, and that no password of a proxy is shown.
    fn with(self, code: i32, says: &[&str]) -> Result<Self> {
        let text = format!("exit {}\n{}{}", self.code, self.out, self.err);
        let silent = says.iter().find(|part| !text.contains(**part));
        ensure!(
            self.code == code && silent.is_none(),
            "{code} was expected, and {silent:?}:\n{text}"
        );
        ensure!(
            !PASSWORDS.iter().any(|password| text.contains(password)),
            "a password is shown:\n{text}"
        );
        Ok(self)
    }

    /// The cluster was asked.
    fn arrived(self) -> Result<Self> {
        self.with(3, &["VDOConfig"])
    }
}

/// A desk: a kubeconfig, and what a command finds in the environment.
struct Desk {
    folder: tempfile::TempDir,
    config: Value,
}

impl Desk {
    /// The kubeconfig of the administrator, whose API server has this host.
    fn of(bed: &Bed, host: &str) -> Result<Self> {
        let text = std::fs::read_to_string(bed.cluster.kubeconfig())?;
        let mut config: Value = serde_json::from_str(&text)?;
        let port = bed.cluster.server_url().rsplit(':').next().context("a port")?.to_owned();
        let cluster = &mut config["clusters"][0]["cluster"];
        cluster["server"] = json!(format!("https://{host}:{port}"));
        // What its certificate is for, whatever the server is called on the way there.
        cluster["tls-server-name"] = json!("localhost");
        Ok(Self {
            folder: tempfile::tempdir()?,
            config,
        })
    }

    /// The same through this proxy.
    fn through(mut self, proxy: &str) -> Self {
        self.config["clusters"][0]["cluster"]["proxy-url"] = json!(proxy);
        self
    }

    fn file(&self, name: &str, content: &str) -> Result<PathBuf> {
        let path = self.folder.path().join(name);
        std::fs::write(&path, content)?;
        Ok(path)
    }

    fn kubeconfig(&self) -> Result<PathBuf> {
        self.file("config", &self.config.to_string())
    }

    fn run(&self, args: &[&str], environment: &[(&str, &str)]) -> Result<Ended> {
        self.run_with(args, environment, "")
    }

    fn run_with(&self, args: &[&str], environment: &[(&str, &str)], typed: &str) -> Result<Ended> {
        let mut command = Command::new(vdo_testbed::vdoctl());
        command.env_clear().args(args).envs(environment.iter().copied());
        command.env("KUBECONFIG", self.kubeconfig()?);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        child.stdin.take().context("stdin")?.write_all(typed.as_bytes())?;
        let output = child.wait_with_output()?;
        Ok(Ended {
            code: output.status.code().context("killed")?,
            out: String::from_utf8(output.stdout)?,
            err: String::from_utf8(output.stderr)?,
        })
    }
}

#[test]
fn api_server_is_reached_through_the_proxy_of_the_kubeconfig() -> Result<()> {
    EMPTY.run(async |bed| {
        for (wants_login, scheme, how) in [
            (false, "http", "connect"),
            (true, "http", "connect"),
            (true, "https", "tls"),
            (false, "socks5", "socks"),
            (true, "socks5", "socks"),
            (true, "socks5h", "socks"),
        ] {
            let gateway = Gateway::start(wants_login).await?;
            let desk = Desk::of(bed, NAME)?.through(&gateway.url(scheme, wants_login.then_some(true)));
            // An exclusion is about the proxies of the environment, which are not asked.
            let authority = desk.file("ca.pem", &gateway.authority())?;
            let environment = [
                ("SSL_CERT_FILE", authority.to_str().context("UTF-8")?),
                ("NO_PROXY", "*"),
                ("HTTPS_PROXY", "http://127.0.0.1:9"),
            ];
            desk.run(&["status"], &environment)?.arrived().with_context(|| scheme.to_owned())?;
            let passed = gateway.passed();
            let expected = format!("{how} {NAME}:");
            ensure!(
                !passed.is_empty() && passed.iter().all(|passed| passed.starts_with(&expected)),
                "{scheme}: {passed:?}"
            );
        }
        Ok(())
    })
}

#[test]
fn api_server_behind_the_proxy_of_the_environment_is_excluded_by_no_proxy() -> Result<()> {
    EMPTY.run(async |bed| {
        let gateway = Gateway::start(false).await?;
        let (good, dead) = (gateway.url("http", None), "http://127.0.0.1:9");
        // An address of this machine that is not of the loopback network.
        let desk = Desk::of(bed, "0.0.0.0")?;
        for name in ["HTTPS_PROXY", "https_proxy"] {
            let before = gateway.passed().len();
            desk.run(&["status"], &[(name, &good)])?.arrived()?;
            ensure!(gateway.passed().len() > before, "{name} is not used");
        }
        let passed = gateway.passed();
        for (name, excluded) in [("NO_PROXY", "10.1.2.3, 0.0.0.0/8"), ("no_proxy", ",0.0.0.0,"), ("NO_PROXY", "*")] {
            desk.run(&["status"], &[("HTTPS_PROXY", dead), (name, excluded)])?.arrived()?;
        }
        desk.run(&["status"], &[("HTTPS_PROXY", dead), ("NO_PROXY", "a.test")])?.with(
            5,
            &[
                "proxy http://127.0.0.1:9 (HTTPS_PROXY) cannot be reached",
                "add the API server to NO_PROXY",
            ],
        )?;
        let said = desk.run(&["status"], &[("HTTPS_PROXY", dead), ("NO_PROXY", "a.test")])?;
        ensure!(said.err.matches("0.0.0.0").count() == 1, "{}", said.err);
        // That of plain HTTP is not for it, and this machine itself is behind none.
        desk.run(&["status"], &[("HTTP_PROXY", dead)])?.arrived()?;
        for host in ["127.0.0.1", "localhost"] {
            Desk::of(bed, host)?.run(&["status"], &[("HTTPS_PROXY", dead)])?.arrived()?;
        }
        ensure!(gateway.passed() == passed, "{:?}", gateway.passed());
        Ok(())
    })
}

/// What is said where the password of the proxy is missing or wrong, and where there is none.
fn wants_a_password(bed: &Bed, scheme: &str, name: &str, url: impl Fn(Option<bool>) -> String, refused: &str) -> Result<()> {
    for login in [None, Some(false)] {
        let desk = Desk::of(bed, name)?.through(&url(login));
        let address = url(None);
        let says = [refused, &address, "(proxy-url in the kubeconfig)", "proxy-url in the kubeconfig"];
        desk.run(&["status"], &[])?
            .with(5, &says)
            .with_context(|| format!("{scheme} {login:?}"))?;
        let desk = Desk::of(bed, "0.0.0.0")?;
        desk.run(&["status"], &[("HTTPS_PROXY", &url(login))])?
            .with(5, &[refused, &address, "(HTTPS_PROXY)"])?;
    }
    Desk::of(bed, name)?.through(&url(Some(true))).run(&["status"], &[])?.arrived()?;
    Ok(())
}

#[test]
fn proxy_that_wants_a_password_is_named_without_it() -> Result<()> {
    EMPTY.run(async |bed| {
        let gateway = Gateway::start(true).await?;
        wants_a_password(
            bed,
            "http",
            NAME,
            |login| gateway.url("http", login),
            "HTTP status 407 Proxy Authentication Required",
        )?;
        wants_a_password(bed, "socks5", NAME, |login| gateway.url("socks5", login), "SOCKS error")?;
        // The other program behind such an address.
        let of_api_server = format!(
            "http://127.0.0.1:{}",
            bed.cluster.server_url().rsplit(':').next().context("a port")?
        );
        Desk::of(bed, NAME)?
            .through(&of_api_server)
            .run(&["status"], &[])?
            .with(5, &[&of_api_server])?;
        Ok(())
    })
}

#[test]
#[ignore = "needs squid and htpasswd"]
fn api_server_behind_a_real_squid_is_reached_with_its_password() -> Result<()> {
    EMPTY.run(async |bed| {
        let squid = Squid::start(NAME).await?;
        wants_a_password(
            bed,
            "squid",
            NAME,
            |login| squid.url(login),
            "HTTP status 407 Proxy Authentication Required",
        )?;
        let desk = Desk::of(bed, "0.0.0.0")?;
        desk.run(&["status"], &[("HTTPS_PROXY", &squid.url(Some(true)))])?.arrived()?;
        let passed = squid.passed()?;
        for expected in [format!("CONNECT {NAME}:"), "CONNECT 0.0.0.0:".to_owned()] {
            ensure!(
                passed.iter().any(|line| line.contains(&expected) && line.contains("/200")),
                "{expected}: {passed:#?}"
            );
        }
        Ok(())
    })
}

/// This program resolves names itself, or gets an address: both ways of SOCKS 5.
#[test]
#[ignore = "needs microsocks"]
fn api_server_behind_a_real_microsocks_is_reached_with_its_password() -> Result<()> {
    EMPTY.run(async |bed| {
        let proxy = Microsocks::start().await?;
        wants_a_password(bed, "socks5", "localhost", |login| proxy.url("socks5", login), "SOCKS error")?;
        Desk::of(bed, "localhost")?
            .through(&proxy.url("socks5h", Some(true)))
            .run(&["status"], &[])?
            .arrived()?;
        let desk = Desk::of(bed, "0.0.0.0")?;
        desk.run(&["status"], &[("HTTPS_PROXY", &proxy.url("socks5", Some(true)))])?
            .arrived()?;
        let passed = proxy.passed()?;
        for expected in ["localhost:", "0.0.0.0:"] {
            ensure!(passed.iter().any(|line| line.contains(expected)), "{expected}: {passed:#?}");
        }
        Ok(())
    })
}

/// A watch stays open and shows what happens, and who asks is decided by a command of the kubeconfig.
#[test]
fn watches_and_commands_for_credentials_work_through_a_proxy() -> Result<()> {
    OPERATOR.run(async |bed| {
        let gateway = Gateway::start(true).await?;
        let mut desk = Desk::of(bed, NAME)?.through(&gateway.url("http", Some(true)));
        let (namespace, name) = OPERATOR_USER
            .trim_start_matches("system:serviceaccount:")
            .split_once(':')
            .context("an account")?;
        let token = bed.cluster.service_account_token(namespace, name).await?;
        let credential = json!({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": token}});
        let credential = desk.file("credential", &credential.to_string())?;
        desk.config["users"][0]["user"] = json!({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/cat",
            "args": [credential], "interactiveMode": "Never"}});
        desk.run(&["status"], &[])?.arrived()?;

        let options = KubeOptions {
            kubeconfig: Some(desk.kubeconfig()?),
            ..KubeOptions::default()
        };
        let connection = options.connect().await?;
        let maps: Api<ConfigMap> = Api::namespaced(connection.client.clone(), namespace);
        let now = maps
            .list(&Default::default())
            .await?
            .metadata
            .resource_version
            .context("a version")?;
        let mut watch = maps.watch(&WatchParams::default(), &now).await?.boxed();
        bed.apply(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "of-a-watch", "namespace": namespace}}))
            .await?;
        let seen = tokio::time::timeout(PATIENCE, async {
            while let Some(event) = watch.next().await {
                if matches!(&event, Ok(WatchEvent::Added(map)) if map.metadata.name.as_deref() == Some("of-a-watch")) {
                    return true;
                }
            }
            false
        });
        ensure!(seen.await?, "the watch ended");
        ensure!(!connection.reconnected.has_changed()?, "it began again");
        Ok(())
    })
}

#[test]
fn users_and_groups_to_act_as_reach_the_api_server() -> Result<()> {
    EMPTY.run(async |bed| {
        let desk = Desk::of(bed, "127.0.0.1")?;
        desk.run(&["status", "--as", "of-a-test"], &[])?
            .with(4, &["you lack the right to"])?;
        desk.run(&["status", "--as", "of-a-test", "--as-group", "one"], &[])?
            .with(4, &["you lack the right to"])?;
        desk.run(
            &["status", "--as", "of-a-test", "--as-group", "one", "--as-group", "system:masters"],
            &[],
        )?
        .arrived()?;
        desk.run(&["status", "--as-group", "system:masters"], &[])?
            .with(2, &["no user to impersonate", "--as"])?;
        Ok(())
    })
}

#[test]
fn cluster_user_and_token_of_the_command_line_win_over_the_context() -> Result<()> {
    EMPTY.run(async |bed| {
        let mut desk = Desk::of(bed, "127.0.0.1")?;
        let good = desk.config["clusters"][0]["cluster"].clone();
        let admin = desk.config["users"][0]["user"].clone();
        desk.config["clusters"] =
            json!([{"name": "dead", "cluster": {"server": "https://127.0.0.1:9"}}, {"name": "good", "cluster": good}]);
        desk.config["users"] = json!([{"name": "none", "user": {}}, {"name": "admin", "user": admin}]);
        desk.config["contexts"] = json!([{"name": "of-test", "context": {"cluster": "dead", "user": "none"}}]);
        desk.config["current-context"] = json!("of-test");
        let (cluster, user) = (["--kube-cluster", "good"], ["--kube-user", "admin"]);
        desk.run(&["status"], &[])?.with(5, &["127.0.0.1:9"])?;
        desk.run(&[&["status"][..], &cluster].concat(), &[])?.with(4, &[])?;
        desk.run(&[&["status"][..], &cluster, &user].concat(), &[])?.arrived()?;
        desk.run(&["status"], &[("VDO_KUBE_CLUSTER", "good"), ("VDO_KUBE_USER", "admin")])?
            .arrived()?;

        // A token is used instead of the certificate of the user.
        bed.cluster
            .apply_yaml("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: of-a-test, namespace: default}\n")
            .await?;
        let weak = bed.cluster.service_account_token("default", "of-a-test").await?;
        let file = desk.file("token", &format!("{weak}\n"))?.display().to_string();
        let token = ["--token-file", &file];
        let refused = desk
            .run(&[&["status"][..], &cluster, &user, &token].concat(), &[])?
            .with(4, &["you lack the right to"])?;
        ensure!(!refused.err.contains(&weak), "the token is shown");
        let stdin = ["--token-file", "-"];
        desk.run_with(&[&["status"][..], &cluster, &user, &stdin].concat(), &[], &weak)?
            .with(4, &["you lack the right to"])?;
        desk.run_with(&[&["status"][..], &cluster, &user, &stdin].concat(), &[], "\n")?
            .with(2, &["there is no token in -"])?;
        let wrong = desk.file("wrong", "no-token")?.display().to_string();
        desk.run(&[&["status"][..], &cluster, &["--token-file", &wrong]].concat(), &[])?
            .with(4, &["does not accept your credentials"])?;

        // Without any context.
        desk.config["contexts"] = json!([]);
        desk.config["current-context"] = json!("");
        desk.run(&[&["status"][..], &cluster, &user].concat(), &[])?.arrived()?;
        Ok(())
    })
}

/// The name in the certificate is compared with the one that the kubeconfig gives.
#[test]
fn name_in_the_certificate_is_the_one_of_the_kubeconfig() -> Result<()> {
    EMPTY.run(async |bed| {
        let mut desk = Desk::of(bed, "127.0.0.1")?;
        desk.run(&["status"], &[])?.arrived()?;
        desk.config["clusters"][0]["cluster"]["tls-server-name"] = json!("other.test");
        desk.run(&["status"], &[])?.with(5, &["certificate"])?;
        let gateway = Gateway::start(false).await?;
        desk.through(&gateway.url("http", None))
            .run(&["status"], &[])?
            .with(5, &["certificate"])?;
        // A proxy is believed by the authorities of this machine, not by that of the cluster.
        let unknown = Desk::of(bed, NAME)?.through(&gateway.url("https", None));
        unknown
            .run(&["status"], &[])?
            .with(5, &["proxy https://127.0.0.1:", "cannot be reached"])?;
        Ok(())
    })
}

#[test]
fn request_that_takes_longer_than_its_deadline_is_given_up() -> Result<()> {
    EMPTY.run(async |bed| {
        let proxy = Proxy::start(&bed.cluster).await?;
        let through = |path: &Path| proxy.kubeconfig(path);
        // The proxy passes tokens on, and no certificates.
        let account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: of-a-test, namespace: default}\n---\n\
             apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: of-a-test}\n\
             roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\n\
             subjects: [{kind: ServiceAccount, name: of-a-test, namespace: default}]\n";
        bed.cluster.apply_yaml(account).await?;
        let config = through(&bed.cluster.service_account_kubeconfig("default", "of-a-test").await?)?;
        let desk = Desk {
            folder: tempfile::tempdir()?,
            config: serde_json::from_str(&std::fs::read_to_string(config)?)?,
        };
        desk.run(&["status", "--request-timeout", "0"], &[])?.arrived()?;
        proxy.judge(|call| if call.resource.is_empty() { Act::Hold } else { Act::Pass });
        desk.run(&["status", "--request-timeout", "500ms"], &[])?
            .with(5, &["cannot be reached: no answer within 0.5 s"])?;
        proxy.judge(|call| if call.resource == "vdoconfigs" { Act::Hold } else { Act::Pass });
        desk.run(&["status", "--request-timeout", "1"], &[])?
            .with(5, &["VDOConfig", "within 1 s", "--request-timeout"])?;
        desk.run(&["status", "--request-timeout", "0", "--timeout", "2s"], &[])?
            .with(7, &["did not answer all requests within 2 s"])?;
        Ok(())
    })
}
