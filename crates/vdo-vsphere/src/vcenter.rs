// SPDX-License-Identifier: Apache-2.0
//! Reads the data of a vCenter: version and certificate without a login (`facts`), and the inventory in a [`Session`] after a login.
//!
//! A session can only read. [`raw`] has the calls of the protocol for sessions that can do more.
//! [`facts`] passes the stages of a connection in order (name, port, certificate, protocol), and when one fails,
//! the error names the stage, the problem and the remedy. No credential is sent, so a repetition costs nothing:
//! it cannot lock an account.
//!
//! Guarantees: nothing is sent before the certificate is accepted, unless the trust is
//! [`Trust::Insecure`](vdo_api::types::Trust); redirects are not followed; an answer before the login is cut off at
//! [`MAX_ANSWER`] bytes while it is read; everything that is read counts against the [`Budget`] of the inspection, and ends in time.
//! Answers are read on threads of their own. `HTTPS_PROXY` and `NO_PROXY` are honoured, never for loopback addresses.

mod call;
mod connect;
mod fault;
mod file_service;
#[doc(hidden)]
pub mod fuzz;
mod http;
mod identifiers;
mod inspection_limits;
mod inspections;
mod inventory;
mod inventory_objects;
mod meter;
mod offload;
mod policies;
mod privileges;
pub mod raw;
mod requests;
mod response;
mod service_content;
mod session;
mod tags;
mod tls;
mod volumes;
mod xml;

pub use inspection_limits::{Budget, Limits, Pool};
pub use inspections::Inspections;
pub use session::Session;

use crate::vsphere::{ProbeError, ProbeStage, VcenterFacts};
use vdo_api::types::Trust;

/// An answer to an anonymous question is a few kilobytes; one that grows past this is not from a vCenter.
pub const MAX_ANSWER: usize = 1 << 20;

/// Where a vCenter is, and how it proves that it is the one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Host name, IPv4, or IPv6 without brackets.
    pub server: String,
    /// The port, normally 443.
    pub port: u16,
    /// How its certificate is checked.
    pub trust: Trust,
}

impl Endpoint {
    /// `host:port`, with brackets around IPv6.
    #[must_use]
    pub fn address(&self) -> String {
        if self.server.contains(':') {
            format!("[{}]:{}", self.server, self.port)
        } else {
            format!("{}:{}", self.server, self.port)
        }
    }
}

/// Asks a vCenter who it is.
///
/// # Errors
/// One variant per way in which this can fail; [`ProbeError::stage`] tells how far it got.
pub async fn facts(endpoint: &Endpoint, budget: &Budget) -> Result<VcenterFacts, ProbeError> {
    let clock = connect::Deadline::start(endpoint, budget);
    let config = tls::Config::new(endpoint)?;
    let stream = connect::connect(endpoint, &clock).await?;
    let (stream, certificate) = tls::handshake(endpoint, &clock, config, stream).await?;
    let bounds = http::Bounds {
        answer: MAX_ANSWER,
        budget,
    };
    let answer = clock
        .within(ProbeStage::IsVcenter, async {
            http::Http1::open(endpoint, stream)
                .await?
                .post(endpoint, &requests::VIM, service_content::RETRIEVE_SERVICE_CONTENT, None, bounds)
                .await
        })
        .await??;
    let (about, _) = service_content::about(endpoint, budget, answer).await?;
    Ok(VcenterFacts {
        version: about.version,
        build: about.build,
        api_type: about.api_type,
        api_version: about.api_version,
        instance_uuid: about.instance_uuid,
        full_name: about.full_name,
        certificate,
    })
}
