// SPDX-License-Identifier: Apache-2.0
//! The command that `vdoctl users create` shows at its end: `deploy` or `configure connection` with the new account's Secret.

use super::super::args::{Global, UsersCreate};
use super::site::Site;
use kube::ResourceExt;
use std::collections::BTreeSet;
use vdo_api::types::{Trust, shell_word};
use vdo_core::drivers::KNOWN;

/// The command that goes on, with the values of this one. None where the Secret is one that a connection names already.
pub(super) fn command(site: &Site, args: &UsersCreate, global: &Global) -> Option<String> {
    let new: Vec<_> = site.targets.iter().filter(|target| target.connection.is_none()).collect();
    let stored = args.change.account.existing.is_none() || args.account_password_file.is_some();
    if new.is_empty() || !stored {
        return None;
    }
    let (place, cluster) = (place(site, args), global.of_the_cluster());
    let secrets: Vec<(BTreeSet<&str>, &str)> = new
        .iter()
        .map(|target| {
            (
                target.mark.drivers.iter().map(String::as_str).collect(),
                target.secret.name.as_str(),
            )
        })
        .collect();
    let connections: Vec<String> = site.connections.iter().map(ResourceExt::name_any).collect();
    Some(match site.config {
        None => format!("Continue with: vdoctl deploy{place}{}{cluster}", flags(&secrets)),
        Some(_) => secrets
            .iter()
            .zip(free(&connections))
            .map(|((_, secret), name)| {
                format!("Continue with: vdoctl configure connection {name}{place} --credentials-secret {secret}{cluster}")
            })
            .collect::<Vec<_>>()
            .join("\n"),
    })
}

/// The Secrets as `vdoctl deploy` takes them.
fn flags(secrets: &[(BTreeSet<&str>, &str)]) -> String {
    let flag = |(drivers, secret): &(BTreeSet<&str>, &str)| match drivers.iter().next() {
        Some(driver) if drivers.len() < KNOWN.len() => format!(" --credentials-secret {driver}={secret}"),
        _ => format!(" --credentials-secret {secret}"),
    };
    secrets.iter().map(flag).collect()
}

/// Names for new connections: vc1, vc2 and so on.
fn free(known: &[String]) -> impl Iterator<Item = String> {
    (1..).map(|number| format!("vc{number}")).filter(|name| !known.contains(name))
}

/// Where the vCenter is, and how it is trusted.
fn place(site: &Site, args: &UsersCreate) -> String {
    let endpoint = &site.endpoint;
    let address = match endpoint.port {
        443 => endpoint.server.clone(),
        port => format!("{}:{port}", endpoint.server),
    };
    let trust = match (&endpoint.trust, &args.change.account.vcenter.trust.ca_file) {
        (Trust::Thumbprint(print), _) => format!(" --thumbprint {print}"),
        (Trust::Insecure, _) => " --insecure".to_owned(),
        (Trust::CaBundle(_), Some(file)) => format!(" --ca-file {}", shell_word(&file.display().to_string())),
        _ => String::new(),
    };
    format!(" --vcenter {}{trust}", shell_word(&address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follow_names_secret_of_each_driver_or_one_for_both() {
        for (secrets, expected) in [
            (vec![(BTreeSet::from(["cpi", "csi"]), "one")], " --credentials-secret one"),
            (
                vec![(BTreeSet::from(["cpi"]), "a"), (BTreeSet::from(["csi"]), "b")],
                " --credentials-secret cpi=a --credentials-secret csi=b",
            ),
        ] {
            assert_eq!(flags(&secrets), expected);
        }
        let known = ["vc1".to_owned(), "vc3".to_owned()];
        assert_eq!(free(&known).take(2).collect::<Vec<_>>(), ["vc2", "vc4"]);
    }
}
