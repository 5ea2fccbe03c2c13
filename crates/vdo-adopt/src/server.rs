// SPDX-License-Identifier: Apache-2.0
//! A vCenter in a driver's file: address, port, account, certificates; decides whether both drivers reach a vCenter in the same way.

use crate::error::AdoptError;
use crate::origin::{Origin, Said};
use vdo_api::types::{Secret, Thumbprint};

/// A vCenter of a file.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    /// The address, as it is written.
    pub address: String,
    /// Where it is written.
    pub origin: Origin,
    pub user: Option<Said<String>>,
    pub password: Option<Said<Secret>>,
    pub port: Option<Said<u16>>,
    pub insecure: Option<Said<bool>>,
    /// The certificates, in PEM form.
    pub ca: Option<Said<String>>,
    pub thumbprint: Option<Said<Thumbprint>>,
    pub datacenters: Option<Said<Vec<String>>>,
}

/// How certificates of authorities are found by the path of a file.
pub(crate) struct Trusting<'a> {
    pub ca: &'a dyn Fn(&str, &Origin) -> Result<String, AdoptError>,
}

impl Server {
    pub(crate) fn new(address: &str, origin: Origin) -> Self {
        Self {
            address: address.to_owned(),
            origin,
            user: None,
            password: None,
            port: None,
            insecure: None,
            ca: None,
            thumbprint: None,
            datacenters: None,
        }
    }

    /// What it does not say itself is as `global` says. That a certificate is not verified there counts for all.
    pub(crate) fn inherit(&mut self, global: &Self) {
        fn or<T: Clone>(own: &mut Option<T>, global: &Option<T>) {
            if own.is_none() {
                own.clone_from(global);
            }
        }
        or(&mut self.user, &global.user);
        or(&mut self.password, &global.password);
        or(&mut self.port, &global.port);
        or(&mut self.datacenters, &global.datacenters);
        if self.ca.is_none() && self.thumbprint.is_none() {
            self.ca.clone_from(&global.ca);
            self.thumbprint.clone_from(&global.thumbprint);
        }
        let unverified = global.insecure.as_ref().is_some_and(|said| said.value);
        if unverified || self.insecure.is_none() {
            self.insecure.clone_from(&global.insecure);
        }
    }

    /// Whether the account is there.
    pub(crate) fn complete(&self) -> Result<(), AdoptError> {
        let user = self.user.as_ref().is_some_and(|said| !said.value.is_empty());
        let password = self.password.as_ref().is_some_and(|said| !said.value.is_empty());
        match user && password {
            true => Ok(()),
            false => Err(AdoptError::NoCredentials {
                server: self.address.clone(),
                origin: self.origin.clone(),
            }),
        }
    }

    /// Whether both lead to the same vCenter in the same way, so that one connection serves both.
    pub(crate) fn agrees(&self, other: &Self) -> bool {
        fn value<T>(said: &Option<Said<T>>) -> Option<&T> {
            said.as_ref().map(|said| &said.value)
        }
        let insecure = self.is_insecure();
        value(&self.user) == value(&other.user)
            && value(&self.password) == value(&other.password)
            && self.port() == other.port()
            && insecure == other.is_insecure()
            && (insecure || (value(&self.ca) == value(&other.ca) && value(&self.thumbprint) == value(&other.thumbprint)))
            && value(&self.datacenters).map_or(&[][..], Vec::as_slice) == value(&other.datacenters).map_or(&[][..], Vec::as_slice)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port.as_ref().map_or(443, |said| said.value)
    }

    pub(crate) fn is_insecure(&self) -> bool {
        self.insecure.as_ref().is_some_and(|said| said.value)
    }

    /// The thumbprint, where it counts: the drivers prefer the authorities.
    pub(crate) fn pinned(&self) -> Option<&Said<Thumbprint>> {
        self.thumbprint.as_ref().filter(|_| self.ca.is_none())
    }
}
