// SPDX-License-Identifier: Apache-2.0
//! One request over plain HTTP.

use anyhow::Result;

/// An answer with its headers, as it came.
pub async fn get(address: impl tokio::net::ToSocketAddrs, path: &str, headers: &str) -> Result<String> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(address).await?;
    stream
        .write_all(format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n{headers}\r\n").as_bytes())
        .await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    Ok(text)
}
