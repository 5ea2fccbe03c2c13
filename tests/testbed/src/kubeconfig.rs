// SPDX-License-Identifier: Apache-2.0
//! Files and clients for the users of a cluster.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use base64::{Engine, engine::general_purpose::STANDARD};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use crate::pki::Leaf;
use crate::workdir::write_private;

/// How a user proves who they are.
pub(crate) enum Proof<'a> {
    Certificate(&'a Leaf),
    Token(&'a str),
}

/// Writes a kubeconfig that stands alone.
pub(crate) fn write(path: &Path, server: &str, ca: &str, user: &str, proof: &Proof<'_>) -> Result<PathBuf> {
    let credentials = match proof {
        Proof::Certificate(leaf) => serde_json::json!({
            "client-certificate-data": STANDARD.encode(&leaf.cert),
            "client-key-data": STANDARD.encode(&leaf.key),
        }),
        Proof::Token(token) => serde_json::json!({ "token": token }),
    };
    let config = serde_json::json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "testbed", "cluster": { "server": server, "certificate-authority-data": STANDARD.encode(ca) } }],
        "users": [{ "name": user, "user": credentials }],
        "contexts": [{ "name": "testbed", "context": { "cluster": "testbed", "user": user } }],
        "current-context": "testbed",
    });
    write_private(path, serde_json::to_string_pretty(&config)?)?;
    Ok(path.to_owned())
}

/// A client for the user of a kubeconfig.
pub async fn client(kubeconfig: &Path) -> Result<Client> {
    let text = Kubeconfig::read_from(kubeconfig).with_context(|| format!("kubeconfig {}", kubeconfig.display()))?;
    let config = Config::from_custom_kubeconfig(text, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}
