// SPDX-License-Identifier: Apache-2.0
//! What shall happen to which call.

use std::time::Duration;

/// What happens instead of, or to, an answer.
#[derive(Clone, Debug)]
pub enum Act {
    /// A status with headers and a body, such as a load balancer's 503 or a redirect.
    Status(u16, Vec<(&'static str, String)>, String),
    /// This body with status 200.
    Body(String),
    /// This SOAP fault: its type, the server's words, and the elements inside it.
    Fault(&'static str, &'static str, &'static str),
    /// The real answer, announced whole and cut off after so many bytes.
    Truncate(usize),
    /// So many bytes of well-formed nothing.
    Flood(u64),
    /// The server hears of the call after this time, and answers.
    Stall(Duration),
    /// The server does what was asked, and answers after this time.
    Late(Duration),
    /// The real answer, one byte each time that this has passed.
    Trickle(Duration),
    /// The connection is closed, and the server never hears of the call.
    Close,
    /// The real answer with every occurrence of the first text replaced by the second.
    Replace(Vec<(&'static str, String)>),
}

/// An act, and the calls that it is for.
#[derive(Clone, Debug)]
pub struct Rule {
    method: Option<String>,
    spare: u64,
    times: Option<u64>,
    pub(super) act: Act,
}

impl Rule {
    /// For every call of a method; the name is as [`SoapProxy::calls`](super::SoapProxy::calls) tells it.
    #[must_use]
    pub fn on(method: &str, act: Act) -> Self {
        Self {
            method: Some(method.into()),
            ..Self::always(act)
        }
    }

    /// For every call.
    #[must_use]
    pub fn always(act: Act) -> Self {
        Self {
            method: None,
            spare: 0,
            times: None,
            act,
        }
    }

    /// Not for the first so many calls that would fit.
    #[must_use]
    pub fn after(mut self, calls: u64) -> Self {
        self.spare = calls;
        self
    }

    /// For so many calls only.
    #[must_use]
    pub fn times(mut self, calls: u64) -> Self {
        self.times = Some(calls);
        self
    }

    /// Whether it acts on this call, which counts.
    pub(super) fn takes(&mut self, method: &str) -> bool {
        if self.method.as_ref().is_some_and(|own| own != method) || self.times == Some(0) {
            return false;
        }
        if self.spare > 0 {
            self.spare -= 1;
            return false;
        }
        self.times = self.times.map(|times| times - 1);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn soap_rule_after_and_times_limit_its_matches() {
        let mut rule = Rule::on("Login", Act::Close).after(1).times(2);
        let taken: Vec<bool> = ["Login", "Logout", "Login", "Login", "Login"].map(|m| rule.takes(m)).into();
        assert_eq!(taken, [false, false, true, true, false]);
    }
}
