// SPDX-License-Identifier: Apache-2.0
//! What the test bed itself asks a simulated vCenter over SOAP.

use super::Vcenter;
use anyhow::{Context as _, Result, ensure};
use http_body_util::BodyExt as _;
use kube::client::Body;

impl Vcenter {
    /// A session of the administrator under the bare name, so that logins under the whole name are those of others.
    pub(crate) async fn soap_session(&self) -> Result<String> {
        let text = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;");
        let user = self.user().split('@').next().unwrap_or_default();
        let login = format!("<userName>{}</userName><password>{}</password>", text(user), text(self.password()));
        let (cookie, answer) = self.soap("/sdk", "", &of_sessions("Login", &login)).await?;
        cookie.with_context(|| format!("no session: {answer}"))
    }

    /// Ends a session.
    pub(crate) async fn end_soap_session(&self, session: &str) -> Result<()> {
        self.soap("/sdk", session, &of_sessions("Logout", "")).await?;
        Ok(())
    }

    /// The cookie and the text of an answer.
    pub(crate) async fn soap(&self, path: &str, session: &str, body: &str) -> Result<(Option<String>, String)> {
        let envelope = format!(
            "<Envelope xmlns=\"http://schemas.xmlsoap.org/soap/envelope/\" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"><Body>{body}</Body></Envelope>"
        );
        let request = http::Request::post(path)
            .header("Content-Type", "text/xml")
            .header("Cookie", session)
            .body(Body::from(envelope.into_bytes()))?;
        let answer = self.http()?.send(request).await?;
        let (status, cookie) = (answer.status(), answer.headers().get("Set-Cookie").cloned());
        let text = String::from_utf8(answer.into_body().collect().await?.to_bytes().to_vec())?;
        ensure!(status.is_success(), "{status}: {text}");
        let cookie = cookie.and_then(|cookie| Some(cookie.to_str().ok()?.split(';').next()?.to_owned()));
        Ok((cookie, text))
    }
}

fn of_sessions(method: &str, arguments: &str) -> String {
    format!("<{method} xmlns=\"urn:vim25\"><_this type=\"SessionManager\">SessionManager</_this>{arguments}</{method}>")
}
