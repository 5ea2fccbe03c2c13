// SPDX-License-Identifier: Apache-2.0
//! Reads the Secret of the cloud provider: user and password of each vCenter, in both key forms, such as `SERVER.username`.

use crate::mounts::{content, keys};
use crate::origin::{Losses, Origin, Said, named};
use crate::server::Server;
use std::collections::BTreeMap;
use vdo_api::types::Secret;
use vdo_core::manifest::Object;

/// What a Secret says of one address.
#[derive(Default)]
struct Account {
    user: Option<Said<String>>,
    password: Option<Said<Secret>>,
}

/// The accounts of a Secret, by address.
#[derive(Default)]
pub(crate) struct Credentials(BTreeMap<String, Account>);

impl Credentials {
    /// Reads `SERVER.username` and `SERVER.password`, and the other form: `server_ID`, `username_ID` and `password_ID`.
    pub(crate) fn read(secret: &Object, losses: &mut Losses) -> Self {
        let mut found = Self::default();
        let text = |key: &str| content(secret, key).and_then(|bytes| String::from_utf8(bytes).ok());
        for key in keys(secret) {
            let origin = Origin::new(named(secret.identity()), key.clone());
            let Some(value) = text(&key) else {
                losses.add(&format!("Secret/{key}"), origin, "it is not text");
                continue;
            };
            let kind = ["username_", "password_"].into_iter().find(|start| key.starts_with(start));
            if let Some(kind) = kind {
                let server = key.strip_prefix(kind).and_then(|id| text(&format!("server_{id}")));
                match server {
                    Some(server) => found.add(server, kind == "username_", value, origin),
                    None => losses.add(
                        &format!("Secret/{key}"),
                        origin,
                        "the Secret has no key server_ID that names the vCenter of this account",
                    ),
                }
            } else if let Some(server) = key.strip_suffix(".username") {
                found.add(server.to_owned(), true, trimmed(value), origin);
            } else if let Some(server) = key.strip_suffix(".password") {
                found.add(server.to_owned(), false, trimmed(value), origin);
            } else if !key.starts_with("server_") {
                losses.add(&format!("Secret/{key}"), origin, "VDO has no field for this setting");
            }
        }
        found
    }

    fn add(&mut self, server: String, is_user: bool, value: String, origin: Origin) {
        let account = self.0.entry(server).or_default();
        match is_user {
            true => account.user = Some(Said::new(value, origin)),
            false => account.password = Some(Said::new(Secret::new(value), origin)),
        }
    }

    /// Gives a vCenter its account. The address must be spelt alike.
    pub(crate) fn complete(&self, server: &mut Server) {
        if let Some(account) = self.0.get(&server.address) {
            if let Some(user) = &account.user {
                server.user = Some(user.clone());
            }
            if let Some(password) = &account.password {
                server.password = Some(password.clone());
            }
        }
    }
}

/// The driver drops one line end.
fn trimmed(mut value: String) -> String {
    if value.ends_with('\n') {
        value.pop();
    }
    value
}
