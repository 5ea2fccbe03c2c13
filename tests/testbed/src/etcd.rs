// SPDX-License-Identifier: Apache-2.0
//! What is really stored, behind the API server's back.

use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};

/// Every key of an etcd with what is stored under it.
pub(crate) async fn dump(port: u16) -> Result<Vec<(String, Vec<u8>)>> {
    let stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio::spawn(connection);
    // From the smallest key on, without an end.
    let all = STANDARD.encode([0]);
    let request = http::Request::post("/v3/kv/range")
        .header("host", "127.0.0.1")
        .body(Full::new(Bytes::from(json!({"key": all, "range_end": all}).to_string())))?;
    let response = sender.send_request(request).await?;
    let status = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    connection.abort();
    ensure!(status.is_success(), "etcd answered {status}: {}", String::from_utf8_lossy(&body));
    let answer: Value = serde_json::from_slice(&body)?;
    let pairs = answer["kvs"].as_array().context("etcd says nothing of keys")?;
    pairs
        .iter()
        .map(|pair| {
            let part = |name: &str| STANDARD.decode(pair[name].as_str().unwrap_or_default());
            Ok((String::from_utf8_lossy(&part("key")?).into_owned(), part("value")?))
        })
        .collect()
}
