// SPDX-License-Identifier: Apache-2.0
//! The proxy does what a real vCenter does and the simulator does not, and counts right.

use anyhow::{Result, ensure};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use std::time::Duration;
use vdo_testbed::soap::{Act, Lockout, Rule, Sessions, SoapOptions, SoapProxy};
use vdo_testbed::{Vcenter, VcenterOptions};

/// A client that knows no more than text, and tries nothing twice.
struct Client {
    address: String,
    tls: tokio_rustls::TlsConnector,
    cookie: String,
}

impl Client {
    fn new(proxy: &SoapProxy) -> Result<Self> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(proxy.ca_pem().as_bytes())?)?;
        let config = rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        Ok(Self {
            address: format!("{}:{}", proxy.host(), proxy.port()),
            tls: std::sync::Arc::new(config).into(),
            cookie: String::new(),
        })
    }

    /// One call; gives status and body.
    async fn call(&mut self, method: &str, this: (&str, &str), inside: &str) -> Result<(u16, String)> {
        let (kind, id) = this;
        let body = format!(
            r#"<Envelope xmlns="http://schemas.xmlsoap.org/soap/envelope/" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><Body><{method} xmlns="urn:vim25"><_this type="{kind}">{id}</_this>{inside}</{method}></Body></Envelope>"#
        );
        let stream = tokio::net::TcpStream::connect(&self.address).await?;
        let stream = self.tls.connect("localhost".try_into()?, stream).await?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        let connection = tokio::spawn(connection);
        let request = http::Request::post("/sdk")
            .header("host", &self.address)
            .header("cookie", &self.cookie)
            .header("user-agent", "a test")
            .body(Full::new(Bytes::from(body)))?;
        let response = sender.send_request(request).await?;
        if let Some(cookie) = response.headers().get("set-cookie") {
            self.cookie = cookie.to_str()?.split(';').next().unwrap_or_default().to_owned();
        }
        let status = response.status().as_u16();
        let body = response.into_body().collect().await?.to_bytes();
        connection.abort();
        Ok((status, String::from_utf8(body.to_vec())?))
    }

    async fn log_in(&mut self, user: &str, password: &str) -> Result<bool> {
        let password = password.replace('&', "&amp;").replace('<', "&lt;");
        let inside = format!("<userName>{user}</userName><password>{password}</password>");
        Ok(self.call("Login", ("SessionManager", "SessionManager"), &inside).await?.0 == 200)
    }

    async fn machine(&mut self, name: &str) -> Result<(u16, String)> {
        self.call(
            "FindByDnsName",
            ("SearchIndex", "SearchIndex"),
            &format!("<dnsName>{name}</dnsName><vmSearch>true</vmSearch>"),
        )
        .await
    }

    async fn read(&mut self, path: &str) -> Result<(u16, String)> {
        let inside = format!(
            r#"<specSet><propSet><type>Folder</type><pathSet>{path}</pathSet></propSet><objectSet><obj type="Folder">group-d1</obj></objectSet></specSet><options/>"#
        );
        self.call("RetrievePropertiesEx", ("PropertyCollector", "propertyCollector"), &inside)
            .await
    }
}

async fn start(options: SoapOptions) -> Result<(Vcenter, SoapProxy)> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let vcenter = Vcenter::start(VcenterOptions::with_vms([("vm-1", "10.0.0.1")])).await?;
    let proxy = SoapProxy::start(&vcenter, options).await?;
    Ok((vcenter, proxy))
}

#[tokio::test(flavor = "multi_thread")]
async fn soap_proxy_sessions_are_counted_and_end() -> Result<()> {
    let (vcenter, proxy) = start(SoapOptions::default()).await?;
    let mut one = Client::new(&proxy)?;
    let (status, text) = one.read("name").await?;
    ensure!(
        status == 500 && text.contains("NotAuthenticatedFault"),
        "without a session: {status} {text}"
    );
    ensure!(one.log_in(vcenter.user(), vcenter.password()).await?);
    ensure!(one.cookie.contains("=\""), "the cookie stands in quotes: {}", one.cookie);
    ensure!(one.read("name").await?.1.contains("Datacenters"));
    let mut two = Client::new(&proxy)?;
    ensure!(two.log_in(vcenter.user(), vcenter.password()).await?);
    ensure!(proxy.sessions() == Sessions { live: 2, most: 2 });
    ensure!(two.call("Logout", ("SessionManager", "SessionManager"), "").await?.0 == 200);
    ensure!(proxy.sessions() == Sessions { live: 1, most: 2 });
    proxy.end_sessions();
    let (status, text) = one.read("name").await?;
    ensure!(status == 500 && text.contains("NotAuthenticatedFault"), "{status} {text}");
    ensure!(proxy.sessions().live == 0);
    ensure!(proxy.logins()[vcenter.user()].succeeded == 2 && proxy.calls()["Login"] == 2);
    ensure!(proxy.agents().contains("a test"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn soap_proxy_account_lockout_ends_after_timeout() -> Result<()> {
    let options = SoapOptions {
        lockout: Some(Lockout::default()),
        ..SoapOptions::default()
    };
    let (vcenter, proxy) = start(options).await?;
    let mut client = Client::new(&proxy)?;
    for _ in 0..5 {
        ensure!(!client.log_in(vcenter.user(), "wrong").await?);
    }
    ensure!(!client.log_in(vcenter.user(), vcenter.password()).await?, "it is locked");
    let heard = vcenter.logins().await?[vcenter.user()].failed;
    ensure!(heard == 5 && proxy.logins()[vcenter.user()].failed == 6, "{heard}");
    proxy.pass(Duration::from_secs(301));
    ensure!(client.log_in(vcenter.user(), vcenter.password()).await?);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn soap_proxy_search_and_properties_match_real_vcenter() -> Result<()> {
    let (vcenter, proxy) = start(SoapOptions::default()).await?;
    let mut client = Client::new(&proxy)?;
    ensure!(client.log_in(vcenter.user(), vcenter.password()).await?);
    ensure!(client.machine("VM-1").await?.1.contains("returnval"), "case does not matter");
    ensure!(!client.machine("vm-9").await?.1.contains("returnval"));
    let (status, text) = client.read("no.such").await?;
    ensure!(
        status == 500 && text.contains("InvalidPropertyFault") && text.contains("<name>no.such</name>"),
        "{status} {text}"
    );
    Ok(())
}

async fn about(client: &mut Client) -> Result<(u16, String)> {
    client
        .call("RetrieveServiceContent", ("ServiceInstance", "ServiceInstance"), "")
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn soap_proxy_truncate_rule_cuts_one_answer() -> Result<()> {
    let (_vcenter, proxy) = start(SoapOptions::default()).await?;
    let mut client = Client::new(&proxy)?;
    proxy.rule(Rule::on("RetrieveServiceContent", Act::Truncate(100)).times(1));
    ensure!(about(&mut client).await.is_err(), "a cut answer came whole");
    ensure!(about(&mut client).await?.1.contains("VirtualCenter"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn soap_proxy_status_rule_answers_with_that_status() -> Result<()> {
    let (_vcenter, proxy) = start(SoapOptions::default()).await?;
    let mut client = Client::new(&proxy)?;
    proxy.rule(Rule::always(Act::Status(503, vec![("retry-after", "5".into())], "<html/>".into())));
    ensure!(about(&mut client).await? == (503, "<html/>".into()));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn soap_proxy_flood_rule_answers_with_many_bytes() -> Result<()> {
    let (_vcenter, proxy) = start(SoapOptions::default()).await?;
    let mut client = Client::new(&proxy)?;
    proxy.rule(Rule::always(Act::Flood(1 << 20)));
    ensure!(about(&mut client).await?.1.len() >= 1 << 20);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn soap_proxy_close_rule_breaks_connection() -> Result<()> {
    let (_vcenter, proxy) = start(SoapOptions::default()).await?;
    let mut client = Client::new(&proxy)?;
    proxy.rule(Rule::always(Act::Close));
    ensure!(about(&mut client).await.is_err());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn soap_proxy_fault_rule_answers_with_that_fault() -> Result<()> {
    let (_vcenter, proxy) = start(SoapOptions::default()).await?;
    let mut client = Client::new(&proxy)?;
    proxy.rule(Rule::always(Act::Fault(
        "NoPermission",
        "no",
        "<privilegeId>System.View</privilegeId>",
    )));
    let (status, text) = about(&mut client).await?;
    ensure!(status == 500 && text.contains("NoPermissionFault") && text.contains("System.View"));
    Ok(())
}
