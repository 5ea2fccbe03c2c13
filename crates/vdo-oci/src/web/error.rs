// SPDX-License-Identifier: Apache-2.0
//! Why a request to a web server failed (`WebError`): status, refused redirect, size limit or timeout, with the remedy.

use super::AccessError;
use super::client::REDIRECTS;
use reqwest::StatusCode;
use std::borrow::Cow;
use std::time::Duration;
use vdo_api::types::{Remedy, in_words};

/// A web server did not give what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// The credentials cannot be used.
    #[error("the credentials cannot be used: {0}")]
    Access(#[from] AccessError),
    /// It could not be asked, or broke off.
    #[error("{0}")]
    Asked(String),
    /// It refuses.
    #[error("the server answers with HTTP status {code}{reported}")]
    Status {
        /// What it answered.
        code: StatusCode,
        /// The beginning of what it said.
        reported: String,
        /// How long it asks to wait.
        wait: Option<Duration>,
    },
    /// It leads elsewhere.
    #[error("{0}")]
    Redirect(#[from] Led),
    /// It sends more than anything of its kind has.
    #[error("the answer is larger than {limit} bytes, so the download was stopped")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// It sends too slowly.
    #[error("the answer came too slowly: {bytes} bytes in {seconds} s, so the download was stopped")]
    TooSlow {
        /// What had come.
        bytes: u64,
        /// In which time.
        seconds: u64,
    },
    /// It is compressed, and cannot be read.
    #[error("the answer is compressed and damaged")]
    Damaged,
}

/// A redirect that is not followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Led {
    /// Anyone on the way could change what comes from there.
    #[error("the server redirects to {to}, which is not https")]
    NotHttps {
        /// Where to, without what follows the path.
        to: String,
    },
    /// What is sent may hold what only the server itself should have.
    #[error("the server redirects the upload to another server, {to}")]
    Elsewhere {
        /// Where to, without what follows the path.
        to: String,
    },
    /// It does not end.
    #[error("the server redirects more than {REDIRECTS} times")]
    TooOften,
}

impl Remedy for WebError {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some(match self {
            Self::Access(_) => "Correct the files of --matrix-credentials.".into(),
            Self::Asked(_) => "Check the address, the proxy and ca.crt in --matrix-credentials.".into(),
            Self::Status { code, .. } => match *code {
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                    "Check username and password, bearerToken, or tls.crt and tls.key in --matrix-credentials.".into()
                }
                StatusCode::PROXY_AUTHENTICATION_REQUIRED => "Put the credentials of the proxy into HTTPS_PROXY.".into(),
                StatusCode::NOT_FOUND | StatusCode::GONE => "Correct the address, or publish the file there.".into(),
                _ => "Check the log of the server; the request is retried automatically.".into(),
            },
            Self::Redirect(_) => "Use the address that the redirect leads to, if you trust that address.".into(),
            Self::TooLarge { .. } | Self::TooSlow { .. } | Self::Damaged => {
                "Check that the server is the right one; the request is retried automatically.".into()
            }
        })
    }
}

impl From<reqwest::Error> for WebError {
    fn from(error: reqwest::Error) -> Self {
        let mut cause: Option<&dyn std::error::Error> = Some(&error);
        while let Some(this) = cause {
            if let Some(led) = this.downcast_ref::<Led>() {
                return Self::Redirect(led.clone());
            }
            cause = this.source();
        }
        Self::Asked(chain(error))
    }
}

/// What happened, without the address, which is named already.
pub(super) fn chain(error: reqwest::Error) -> String {
    let error = error.without_url();
    let what = if error.is_connect() {
        "the server cannot be reached"
    } else {
        "the server did not answer properly"
    };
    let mut text = what.to_owned();
    let mut cause = std::error::Error::source(&error);
    while let Some(this) = cause {
        let said = in_words(&this.to_string());
        if !text.ends_with(&said) {
            text = format!("{text}: {said}");
        }
        cause = this.source();
    }
    text
}

/// The beginning of what a server said beside a refusal, on one line.
pub(super) fn first_words(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let is_page = text.trim_start().starts_with('<');
    let words: Vec<&str> = text.split_whitespace().collect();
    if is_page { String::new() } else { words.join(" ") }
}

/// What a server said, as a part of a message.
pub(super) fn quoted(said: &str) -> String {
    let line: String = said.chars().filter(|c| !c.is_control()).take(120).collect();
    match line.is_empty() {
        true => String::new(),
        false => format!(" and says {line:?}"),
    }
}
