// SPDX-License-Identifier: Apache-2.0
//! A server that speaks enough of a vCenter's language to be logged in to and read, and answers one call as an attacker would.

use crate::probe::server::{Authority, acceptor};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use vdo_api::types::Trust;
use vdo_vsphere::vcenter::Endpoint;

/// How one call is answered.
#[derive(Clone)]
pub(crate) enum Reply {
    /// With this.
    Body(Bytes),
    /// With this, after a while.
    Late(Duration, Bytes),
    /// With this, and then nothing, not even an end.
    Stalls(Bytes),
}

/// The server. It ends with the runtime of the test.
pub(crate) struct Evil {
    pub(crate) port: u16,
    calls: Arc<Mutex<BTreeMap<String, usize>>>,
}

impl Evil {
    /// A server whose answers to these calls are bad, and to all others good.
    pub(crate) async fn start(bad: impl IntoIterator<Item = (&'static str, Reply)>) -> Self {
        let identity = Authority::new("evil").sign(&["127.0.0.1"], |_| {});
        let tls = acceptor(&identity);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let bad: Arc<BTreeMap<&'static str, Reply>> = Arc::new(bad.into_iter().collect());
        let calls: Arc<Mutex<BTreeMap<String, usize>>> = Arc::default();
        let counted = calls.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (tls, bad, counted) = (tls.clone(), bad.clone(), counted.clone());
                tokio::spawn(async move {
                    let Ok(stream) = tls.accept(stream).await else { return };
                    let service = service_fn(|request| answer(bad.clone(), counted.clone(), port, request));
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        Self { port, calls }
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        endpoint(self.port)
    }

    /// How often this was called, or with a `/` at its end what begins so.
    pub(crate) fn calls(&self, call: &str) -> usize {
        let calls = self.calls.lock().unwrap();
        calls.iter().filter(|(name, _)| is(name, call)).map(|(_, number)| number).sum()
    }
}

pub(crate) fn endpoint(port: u16) -> Endpoint {
    Endpoint {
        server: "127.0.0.1".into(),
        port,
        trust: Trust::Insecure,
    }
}

/// What is said of a path that ends so is said of all below it.
fn is(call: &str, name: &str) -> bool {
    call == name || (name.ends_with('/') && call.starts_with(name))
}

type Body = UnsyncBoxBody<Bytes, Infallible>;

async fn answer(
    bad: Arc<BTreeMap<&'static str, Reply>>,
    counted: Arc<Mutex<BTreeMap<String, usize>>>,
    port: u16,
    request: Request<Incoming>,
) -> Result<Response<Body>, hyper::Error> {
    let (parts, body) = request.into_parts();
    let text = String::from_utf8_lossy(&body.collect().await?.to_bytes()).into_owned();
    let called = text.split("<Body><").nth(1).and_then(|call| call.split([' ', '>']).next());
    let call = called.unwrap_or_else(|| parts.uri.path()).to_owned();
    *counted.lock().unwrap().entry(call.clone()).or_default() += 1;
    let reply = bad.iter().find(|(name, _)| is(&call, name));
    let body = match reply.map(|(_, reply)| reply.clone()) {
        None => whole(good(&call, &text, port).into()),
        Some(Reply::Body(body)) => whole(body),
        Some(Reply::Late(time, body)) => {
            tokio::time::sleep(time).await;
            whole(body)
        }
        Some(Reply::Stalls(body)) => {
            let first = futures::stream::iter([Ok(Frame::data(body))]);
            let never = futures::stream::pending();
            StreamBody::new(futures::StreamExt::chain(first, never)).boxed_unsync()
        }
    };
    let mut response = Response::new(body);
    if call == "Login" {
        response
            .headers_mut()
            .insert("set-cookie", "vmware_soap_session=\"52b8\"; Path=/".parse().unwrap());
    }
    Ok(response)
}

fn whole(bytes: Bytes) -> Body {
    Full::new(bytes).boxed_unsync()
}

/// What a sound vCenter would say.
fn good(call: &str, request: &str, port: u16) -> String {
    let reference = |name: &str, kind: &str, id: &str| format!("<{name} type=\"{kind}\">{id}</{name}>");
    match call {
        "RetrieveServiceContent" => {
            let parts = [
                ("rootFolder", "Folder", "group-d1"),
                ("propertyCollector", "PropertyCollector", "propertyCollector"),
                ("viewManager", "ViewManager", "ViewManager"),
                ("sessionManager", "SessionManager", "SessionManager"),
                ("authorizationManager", "AuthorizationManager", "AuthorizationManager"),
            ];
            let parts: String = parts.map(|(name, kind, id)| reference(name, kind, id)).concat();
            let about = format!(
                "<about><fullName>vCenter</fullName><version>8.0.3</version><build>1</build><apiType>VirtualCenter</apiType>\
                 <apiVersion>8.0.3.0</apiVersion><instanceUuid>u-{port}</instanceUuid></about>"
            );
            response(call, &format!("<returnval>{parts}{about}</returnval>"))
        }
        "Login" => response(call, "<returnval><key>52b8</key><userName>u</userName></returnval>"),
        "CreateContainerView" => response(call, &reference("returnval", "ContainerView", "view-1")),
        "RetrievePropertiesEx" => match request.contains("config.hardware.device") {
            true => response(call, "<returnval></returnval>"),
            false => page(call, None, &honest()),
        },
        "PbmRetrieveServiceContent" => pbm(
            call,
            &format!(
                "<returnval>{}{}</returnval>",
                reference("profileManager", "PbmProfileProfileManager", "ProfileManager"),
                reference("placementSolver", "PbmPlacementSolver", "placementSolver")
            ),
        ),
        "PbmQueryProfile" => pbm(call, "<returnval><uniqueId>p-1</uniqueId></returnval>"),
        "PbmRetrieveContent" => pbm(call, "<returnval><name>gold</name></returnval>"),
        "/rest/com/vmware/cis/session" => r#"{"value":"s-1"}"#.into(),
        "/rest/com/vmware/cis/tagging/category" => r#"{"value":["c-1","c-2"]}"#.into(),
        "/rest/com/vmware/cis/tagging/category/id:c-1" => r#"{"value":{"name":"zone"}}"#.into(),
        "/rest/com/vmware/cis/tagging/category/id:c-2" => r#"{"value":{"name":"region"}}"#.into(),
        path if path.starts_with("/rest/") => r#"{"value":[]}"#.into(),
        _ => response(call, ""),
    }
}

fn envelope(namespace: &str, call: &str, inside: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?><e:Envelope xmlns:e=\"http://schemas.xmlsoap.org/soap/envelope/\" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\">\
         <e:Body><{call}Response xmlns=\"{namespace}\">{inside}</{call}Response></e:Body></e:Envelope>"
    )
}

/// An answer of the service of everything.
pub(crate) fn response(call: &str, inside: &str) -> String {
    envelope("urn:vim25", call, inside)
}

/// An answer of the service of policies.
pub(crate) fn pbm(call: &str, inside: &str) -> String {
    envelope("urn:pbm", call, inside)
}

/// A page of objects, and where it goes on.
pub(crate) fn page(call: &str, token: Option<&str>, objects: &str) -> String {
    let token = token.map(|token| format!("<token>{token}</token>")).unwrap_or_default();
    response(call, &format!("<returnval>{token}{objects}</returnval>"))
}

/// An object with texts.
pub(crate) fn object(kind: &str, id: &str, values: &[(&str, &str)]) -> String {
    let values: String = values
        .iter()
        .map(|(name, value)| format!("<propSet><name>{name}</name><val>{value}</val></propSet>"))
        .collect();
    format!("<objects><obj type=\"{kind}\">{id}</obj>{values}</objects>")
}

/// A machine as a real vCenter describes it, some kilobytes.
pub(crate) fn machine(i: usize, folder: &str) -> String {
    let uuid = format!("4211{i:04x}-0000-1111-2222-{i:012x}");
    let nic = |n: usize| {
        format!(
            "<GuestNicInfo><network>VM Network</network><ipAddress>10.{}.{}.{n}</ipAddress><ipAddress>fe80::250:56ff:fe91:{i:x}</ipAddress>\
             <macAddress>00:50:56:91:00:{n:02x}</macAddress><connected>true</connected><deviceConfigId>{}</deviceConfigId><ipConfig>\
             <ipAddress><ipAddress>10.0.0.{n}</ipAddress><prefixLength>24</prefixLength><state>preferred</state></ipAddress></ipConfig></GuestNicInfo>",
            i / 250 % 250,
            i % 250,
            4000 + n
        )
    };
    let net = [nic(1), nic(2), nic(3), nic(4)].concat();
    object(
        "VirtualMachine",
        &format!("vm-{i}"),
        &[
            ("name", &format!("machine-of-someone-{i:06}")),
            ("parent", folder),
            ("config.template", "false"),
            ("config.uuid", &uuid),
            ("config.instanceUuid", &uuid),
            ("config.version", "vmx-19"),
            ("config.flags.diskUuidEnabled", "true"),
            ("guest.hostName", &format!("machine-of-someone-{i:06}.prod.example.com")),
            ("guest.ipAddress", &format!("10.1.{}.{}", i / 250 % 250, i % 250)),
            ("guest.net", &net),
            ("guest.toolsRunningStatus", "guestToolsRunning"),
            ("runtime.host", "host-12"),
            ("runtime.powerState", "poweredOn"),
        ],
    )
}

/// A folder or a datacenter.
pub(crate) fn place(kind: &str, id: &str, name: &str, parent: &str) -> String {
    object(kind, id, &[("name", name), ("parent", parent)])
}

/// A small inventory.
pub(crate) fn honest() -> String {
    let places = place("Datacenter", "datacenter-1", "DC0", "group-d1") + &place("Folder", "group-v1", "vm", "datacenter-1");
    places + &(0..20).map(|i| machine(i, "group-v1")).collect::<String>()
}
