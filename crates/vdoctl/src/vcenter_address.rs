// SPDX-License-Identifier: Apache-2.0
//! Converts `--vcenter`, `--thumbprint`, `--ca-file` and `--insecure` of any command into the address and trust of a vCenter.

use super::{CliError, Exit};
use std::path::Path;
use vdo_api::types::{Thumbprint, Trust};
use vdo_vsphere::vcenter::Endpoint;

/// Where a vCenter is, from an address as it is typed.
pub(crate) fn endpoint(address: &str, trust: Trust) -> Result<Endpoint, CliError> {
    let (server, port) = match address.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((server, rest)) => (server.to_owned(), rest.strip_prefix(':').map(str::to_owned)),
        None if address.matches(':').count() == 1 => {
            let (server, port) = address.split_once(':').unwrap_or_default();
            (server.to_owned(), Some(port.to_owned()))
        }
        None => (address.to_owned(), None),
    };
    let port = port.map_or(Ok(443), |port| port.parse::<u16>()).map_err(|_| {
        CliError::new(
            Exit::Usage,
            format!("the port in {address:?} is not a number"),
            "Write the host name or the address, and the port if it is not 443: vcenter.example.com:8443",
        )
    })?;
    Ok(Endpoint { server, port, trust })
}

/// How a vCenter is trusted, from what is typed.
pub(crate) fn trust(thumbprint: Option<&Thumbprint>, ca_file: Option<&Path>, insecure: bool) -> Result<Trust, CliError> {
    Ok(match (ca_file, thumbprint) {
        _ if insecure => Trust::Insecure,
        (Some(file), _) => Trust::CaBundle(std::fs::read_to_string(file).map_err(|error| {
            CliError::new(
                Exit::Usage,
                format!("{} cannot be read: {error}", file.display()),
                "Name a file with PEM certificates.",
            )
        })?),
        (None, Some(print)) => Trust::Thumbprint(print.clone()),
        (None, None) => Trust::SystemRoots,
    })
}
