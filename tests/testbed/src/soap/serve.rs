// SPDX-License-Identifier: Apache-2.0
//! The way of a call: in through the door, past the rules, to the vCenter and back.

use std::io;
use std::sync::Arc;

use anyhow::Result;
use base64::Engine as _;
use futures::{Stream, stream};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tokio::time::sleep;
use tokio_rustls::TlsConnector;

use super::rule::Act;
use super::tls::{Door, Entered};
use super::{State, rest, text};
use crate::body::{Body, streamed, trickle, whole};
use crate::vcenter::Vcenter;

type Sender = SendRequest<Full<Bytes>>;

/// Where the vCenter is.
pub(super) struct Upstream {
    address: String,
    tls: TlsConnector,
}

impl std::fmt::Debug for Upstream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.address)
    }
}

impl Upstream {
    pub(super) fn new(vcenter: &Vcenter) -> Result<Self> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(vcenter.ca_pem().as_bytes())?)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self {
            address: vcenter.address(),
            tls: TlsConnector::from(Arc::new(config)),
        })
    }

    async fn connect(&self) -> io::Result<Sender> {
        let stream = TcpStream::connect(&self.address).await?;
        let name = ServerName::try_from("localhost").map_err(io::Error::other)?;
        let stream = self.tls.connect(name, stream).await?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        tokio::spawn(connection);
        Ok(sender)
    }
}

/// Takes connections for ever. Each ends with its client.
pub(super) async fn accept(listener: TcpListener, door: Door, state: Arc<State>) {
    let door = Arc::new(door);
    while let Ok((stream, _)) = listener.accept().await {
        let (door, state) = (door.clone(), state.clone());
        tokio::spawn(async move {
            match door.enter(stream).await {
                Some(Entered::Tls(stream)) => talk(*stream, state).await,
                Some(Entered::Plain(stream)) => talk(stream, state).await,
                None => {}
            }
        });
    }
}

async fn talk(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, state: Arc<State>) {
    let upstream = Arc::new(Mutex::new(None));
    let service = service_fn(|request| answer(state.clone(), upstream.clone(), request));
    // A client that goes away in the middle is nothing to speak of.
    let _ = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

/// What is asked for, as far as a proxy understands it.
struct Call {
    method: String,
    user: Option<String>,
    password: Option<String>,
    /// The user agent without its version.
    agent: String,
    session: Option<String>,
    logs_in: bool,
    logs_out: bool,
    soap: bool,
}

impl Call {
    fn of(request: &http::request::Parts, body: &str) -> Self {
        let header = |name: &str| request.headers.get(name).and_then(|value| value.to_str().ok());
        let soap = text::method(body).map(str::to_owned);
        let rest = request.uri.path().ends_with("/session");
        let basic = header("authorization")
            .and_then(|value| value.strip_prefix("Basic "))
            .and_then(|value| base64::engine::general_purpose::STANDARD.decode(value).ok())
            .and_then(|value| String::from_utf8(value).ok())
            .and_then(|pair| pair.split_once(':').map(|(user, password)| (user.to_owned(), password.to_owned())));
        let named = soap.as_deref();
        Self {
            user: text::element(body, "userName").or_else(|| basic.clone().map(|(user, _)| user)),
            password: text::element(body, "password").or_else(|| basic.clone().map(|(_, password)| password)),
            agent: header("user-agent")
                .unwrap_or_default()
                .split('/')
                .next()
                .unwrap_or_default()
                .to_owned(),
            session: header("vmware-api-session-id").or_else(|| header("cookie")).map(str::to_owned),
            logs_in: named == Some("Login") || (rest && basic.is_some()),
            logs_out: named == Some("Logout") || (rest && request.method == http::Method::DELETE),
            soap: soap.is_some(),
            method: soap.unwrap_or_else(|| format!("{} {}", request.method, request.uri.path())),
        }
    }
}

/// How the REST service says that someone has to log in first.
const UNAUTHENTICATED: &str = r#"{"type":"com.vmware.vapi.std.errors.unauthenticated","value":{"messages":[]}}"#;

async fn answer(state: Arc<State>, upstream: Arc<Mutex<Option<Sender>>>, request: Request<Incoming>) -> io::Result<Response<Body>> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let envelope = String::from_utf8_lossy(&body).into_owned();
    let call = Call::of(&parts, &envelope);
    let (act, locked, ended, wrong) = {
        let mut seen = state.seen();
        *seen.calls.entry(call.method.clone()).or_default() += 1;
        let agent = parts.headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok());
        seen.agents.insert(agent.unwrap_or_default().to_owned());
        (
            seen.rules
                .iter_mut()
                .find_map(|rule| rule.takes(&call.method).then(|| rule.act.clone())),
            call.logs_in && call.user.as_deref().is_some_and(|user| seen.model.is_locked(user)),
            !call.logs_in && call.session.as_deref().is_some_and(|session| seen.model.has_ended(session)),
            call.logs_in && {
                let only = call.user.as_ref().and_then(|user| seen.passwords.get(user));
                only.is_some_and(|only| call.password.as_ref() != Some(only))
            },
        )
    };
    let own = match &act {
        Some(Act::Close) => return Err(io::ErrorKind::ConnectionAborted.into()),
        Some(Act::Status(status, headers, body)) => Some(plain(*status, headers, body.clone())),
        Some(Act::Body(body)) => Some(plain(200, &[], body.clone())),
        Some(Act::Fault(kind, words, inside)) => Some(plain(500, &[], text::fault(kind, words, inside))),
        Some(Act::Flood(bytes)) => return Ok(Response::new(streamed(flood(*bytes)))),
        _ if !call.soap && state.modern && rest::is_older(parts.uri.path()) => Some(plain(404, &[], String::new())),
        _ if !call.soap && (locked || ended || wrong) => Some(plain(401, &[], UNAUTHENTICATED.into())),
        _ if locked => Some(plain(
            500,
            &[],
            text::fault("InvalidLogin", "The account of the user is locked.", ""),
        )),
        _ if wrong => Some(plain(
            500,
            &[],
            text::fault(
                "InvalidLogin",
                "Cannot complete login due to an incorrect user name or password.",
                "",
            ),
        )),
        _ if ended => Some(plain(
            500,
            &[],
            text::fault("NotAuthenticated", "The session is not authenticated.", ""),
        )),
        _ => None,
    };
    if let Some(Act::Stall(time)) = act {
        sleep(time).await;
    }
    let mut reply = match own {
        Some(reply) => reply,
        None => forward(&state, &upstream, &call, parts, &envelope, body).await?,
    };
    note(&state, &call, &reply);
    if let Some(Act::Late(time)) = act {
        sleep(time).await;
    }
    Ok(match act {
        Some(Act::Truncate(length)) => {
            let first = reply.body().slice(..length.min(reply.body().len()));
            let broken = stream::iter([Ok(first), Err(io::ErrorKind::ConnectionAborted.into())]);
            announced(&mut reply);
            reply.map(|_| streamed(broken))
        }
        Some(Act::Trickle(pause)) => {
            announced(&mut reply);
            reply.map(|body| streamed(trickle(body, pause)))
        }
        Some(Act::Replace(changes)) => reply.map(|body| {
            let text = String::from_utf8_lossy(&body).into_owned();
            whole(changes.iter().fold(text, |text, (from, to)| text.replace(from, to)).into())
        }),
        _ => reply.map(whole),
    })
}

/// Asks the vCenter, and makes its answer what a real one's would be.
async fn forward(
    state: &State,
    upstream: &Mutex<Option<Sender>>,
    call: &Call,
    parts: http::request::Parts,
    envelope: &str,
    body: Bytes,
) -> io::Result<Response<Bytes>> {
    let translated = state.modern && !call.soap;
    let newer = parts.uri.path_and_query().map(|path| path.as_str().to_owned()).unwrap_or_default();
    let different = rest::older_request(&parts.method, &newer, &body).filter(|_| translated);
    let (older, body) = match different {
        Some((path, body)) => (Some(path), body),
        None if call.method.starts_with("Find") => (None, text::lower(&text::lower(envelope, "uuid"), "dnsName").into()),
        None => (rest::older(&newer), body),
    };
    let mut request = Request::from_parts(parts, Full::new(body));
    // The real cookie stands in quotes, which belong to it.
    if let Some(cookie) = request.headers().get(header::COOKIE).and_then(|cookie| cookie.to_str().ok()) {
        let cookie = if cookie.contains('"') {
            cookie.replace('"', "")
        } else {
            String::new()
        };
        request
            .headers_mut()
            .insert(header::COOKIE, HeaderValue::from_str(&cookie).map_err(io::Error::other)?);
    }
    request.headers_mut().remove(header::CONTENT_LENGTH);
    if translated && let Some(path) = older {
        *request.uri_mut() = path.parse().map_err(io::Error::other)?;
    }
    let mut upstream = upstream.lock().await;
    if upstream.as_ref().is_none_or(Sender::is_closed) {
        *upstream = Some(state.upstream.connect().await?);
    }
    let sender = upstream.as_mut().ok_or(io::ErrorKind::NotConnected)?;
    sender.ready().await.map_err(io::Error::other)?;
    let response = sender.send_request(request).await.map_err(io::Error::other)?;
    let (mut parts, body) = response.into_parts();
    let mut body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    for name in [header::CONTENT_LENGTH, header::TRANSFER_ENCODING, header::CONNECTION] {
        parts.headers.remove(name);
    }
    if let Some(refused) = Some(&body)
        .filter(|_| call.soap)
        .and_then(|body| text::strict(&String::from_utf8_lossy(body)))
    {
        (parts.status, body) = (StatusCode::INTERNAL_SERVER_ERROR, refused.into());
    }
    if translated {
        body = rest::unwrapped(&body);
    }
    if let Some((name, value)) = cookie(&parts.headers).as_deref().and_then(|cookie| cookie.split_once('=')) {
        let quoted = format!("{name}=\"{value}\"; Path=/; HttpOnly; Secure");
        parts
            .headers
            .insert(header::SET_COOKIE, HeaderValue::from_str(&quoted).map_err(io::Error::other)?);
    }
    Ok(Response::from_parts(parts, body))
}

/// Remembers what came of a login or a logout.
fn note(state: &State, call: &Call, reply: &Response<Bytes>) {
    let mut seen = state.seen();
    if let Some(session) = &call.session {
        let reported = String::from_utf8_lossy(reply.body()).contains("NotAuthenticatedFault");
        let over = !call.logs_in && (reported || (!call.soap && reply.status() == StatusCode::UNAUTHORIZED));
        if call.logs_out || over {
            seen.model.over(session);
            for client in seen.clients.values_mut() {
                client.sessions.remove(session);
            }
        }
    }
    let Some(user) = call.user.as_ref().filter(|_| call.logs_in) else {
        return;
    };
    if reply.status().is_success() {
        let json: serde_json::Value = serde_json::from_slice(reply.body()).unwrap_or_default();
        let id = json.as_str().or_else(|| json["value"].as_str()).map(str::to_owned);
        let session = id.or_else(|| cookie(reply.headers())).unwrap_or_default();
        seen.logins.entry(user.clone()).or_default().succeeded += 1;
        let client = seen.clients.entry(call.agent.clone()).or_default();
        client.logins.succeeded += 1;
        client.sessions.insert(session.clone());
        if !session.is_empty() {
            seen.model.begun(user, &session);
        }
    } else if reply.status() == StatusCode::UNAUTHORIZED || String::from_utf8_lossy(reply.body()).contains("InvalidLogin") {
        seen.logins.entry(user.clone()).or_default().failed += 1;
        seen.clients.entry(call.agent.clone()).or_default().logins.failed += 1;
        seen.model.failed(user);
    }
}

/// The part of a cookie that is sent back.
fn cookie(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::SET_COOKIE)?.to_str().ok()?;
    Some(value.split(';').next()?.to_owned())
}

fn plain(status: u16, headers: &[(&'static str, String)], body: String) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
    for (name, value) in headers {
        if let Ok(value) = HeaderValue::from_str(value) {
            response.headers_mut().insert(*name, value);
        }
    }
    response
}

fn announced(reply: &mut Response<Bytes>) {
    let length = reply.body().len();
    reply.headers_mut().insert(header::CONTENT_LENGTH, length.into());
}

/// An envelope whose body never comes to an end within so many bytes.
fn flood(bytes: u64) -> impl Stream<Item = io::Result<Bytes>> + Send {
    const BEGIN: &[u8] = br#"<?xml version="1.0"?><e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Body>"#;
    let more = Bytes::from("<a>x</a>".repeat(8192));
    let size = more.len() as u64;
    stream::iter(
        std::iter::once(Bytes::from_static(BEGIN))
            .chain(std::iter::repeat_n(
                more,
                usize::try_from(bytes.div_ceil(size)).unwrap_or(usize::MAX),
            ))
            .map(Ok),
    )
}
