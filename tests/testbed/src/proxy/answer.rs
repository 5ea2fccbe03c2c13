// SPDX-License-Identifier: Apache-2.0
//! Answers in the API server's place, and older lists than it would give.

use std::time::Duration;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, Uri};
use serde_json::{Value, json};

/// The reason that goes with a status code, as the API server names it.
fn reason(code: u16) -> &'static str {
    match code {
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        409 => "Conflict",
        410 => "Expired",
        429 => "TooManyRequests",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "InternalError",
    }
}

/// A `Status` as the API server writes it.
pub(super) fn status(code: u16, retry_after: Option<Duration>) -> Value {
    let mut status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": format!("the test bed's proxy answers {code}"), "reason": reason(code), "code": code,
    });
    if let Some(after) = retry_after {
        status["details"] = json!({"retryAfterSeconds": after.as_secs()});
    }
    status
}

/// A whole answer with that `Status`.
pub(super) fn response(code: u16, retry_after: Option<Duration>) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(status(code, retry_after).to_string()));
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    if let Some(after) = retry_after {
        headers.insert("retry-after", after.as_secs().into());
    }
    response
}

/// What the API server says of itself, with another version.
pub(super) fn version(said: &[u8], version: &str) -> Result<Bytes> {
    let mut info: Value = serde_json::from_slice(said).context("the version of the API server")?;
    let mut numbers = version.trim_start_matches('v').split('.');
    info["gitVersion"] = version.into();
    for field in ["major", "minor"] {
        info[field] = numbers.next().into();
    }
    Ok(info.to_string().into())
}

/// The line of a watch that says that its place is too old.
pub(super) fn gone() -> Bytes {
    Bytes::from(format!("{}\n", json!({"type": "ERROR", "object": status(410, None)})))
}

/// The address of a list as it was at an older resource version. etcd still has it, so the API server itself answers.
pub(super) fn at(uri: &Uri, version: u64) -> Uri {
    let kept = uri.query().unwrap_or_default().split('&').filter(|pair| {
        let key = pair.split('=').next().unwrap_or_default();
        !key.is_empty() && !key.starts_with("resourceVersion")
    });
    let query: Vec<String> = kept
        .map(str::to_owned)
        .chain([format!("resourceVersion={version}"), "resourceVersionMatch=Exact".into()])
        .collect();
    let text = format!("{}?{}", uri.path(), query.join("&"));
    text.parse().unwrap_or_else(|_| uri.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_address_is_pinned_to_resource_version() {
        for (asked, wanted) in [
            ("/api/v1/pods", "/api/v1/pods?resourceVersion=7&resourceVersionMatch=Exact"),
            (
                "/api/v1/pods?limit=5&resourceVersion=0&labelSelector=a%3Db",
                "/api/v1/pods?limit=5&labelSelector=a%3Db&resourceVersion=7&resourceVersionMatch=Exact",
            ),
        ] {
            assert_eq!(at(&asked.parse().expect("an address"), 7).to_string(), wanted);
        }
    }
}
