// SPDX-License-Identifier: Apache-2.0
//! Logs in to the vCenter as administrator for `vdoctl users`, and reads accounts, roles, machines and datastores that plans need.

use super::super::args::{Global, UsersAccount, UsersVcenter};
use super::super::error::unknown;
use super::super::password_file::password;
use super::super::{CliError, Exit};
use super::site::{Site, Target};
use super::{failed, now};
use std::collections::BTreeSet;
use vdo::reconcile::connection::known_index;
use vdo_admin::accounts::{Authorization, ChangeError, Consent, Grant, Mark, Person, Principal, Unused, grants};
use vdo_admin::administrator::Administrator;
use vdo_api::facts::Credentials;
use vdo_api::types::{Remedy as _, count};
use vdo_vsphere::vcenter::Endpoint;
use vdo_vsphere::vsphere::{Inventory, RequiredPrivilege, match_vms, required_privileges};

/// What the vCenter has.
pub(super) struct Looked {
    pub(super) admin: Administrator,
    /// The instance UUID of the vCenter.
    pub(super) vcenter: String,
    pub(super) inventory: Inventory,
    pub(super) live: Authorization,
}

/// What an account needs.
pub(super) struct Needs {
    pub(super) required: Vec<RequiredPrivilege>,
    pub(super) grants: Vec<Grant>,
    /// The machines of the nodes, so many of so many.
    pub(super) found: (usize, usize),
}

/// Logs in as the administrator. The password is asked for here and nowhere else.
pub(crate) async fn log_in(args: &UsersVcenter, endpoint: &Endpoint) -> Result<(Administrator, Option<String>), CliError> {
    let (password, warning) = password(args.password_file.as_deref(), &args.user)?;
    let credentials = Credentials {
        user: args.user.clone(),
        password,
    };
    let admin = Administrator::open(endpoint.clone(), credentials, &Consent::given()).await;
    admin
        .map(|admin| (admin, warning))
        .map_err(|error| failed(&ChangeError::Session(error)))
}

/// Looks at the cluster, logs in as the administrator and reads what the vCenter has.
pub(super) async fn enter(args: &UsersAccount, global: &Global) -> Result<(Site, Looked, Option<String>), CliError> {
    let mut site = Site::find(args, global).await?;
    let (admin, warning) = log_in(&args.vcenter, &site.endpoint).await?;
    let looked = Looked::at(admin).await?;
    for target in &mut site.targets {
        target.mark.vcenter.clone_from(&looked.vcenter);
    }
    Ok((site, looked, warning))
}

impl Looked {
    /// Reads everything that plans are made of.
    pub(super) async fn at(admin: Administrator) -> Result<Self, CliError> {
        let inventory = admin.inventory().await.map_err(|error| failed(&error))?;
        let live = admin.authorization().await.map_err(|error| failed(&error))?;
        let vcenter = admin.instance().await.map_err(|error| failed(&error))?;
        Ok(Self {
            admin,
            vcenter,
            inventory,
            live,
        })
    }

    /// The accounts of ours in a domain.
    pub(super) async fn ours(&self, domain: &str) -> Result<Vec<(Principal, Mark, Person)>, ChangeError> {
        let people = self.admin.people(domain, "", now()).await?;
        let of = |person: Person| {
            let mark = person.description.parse().ok()?;
            Some((Principal::user(&person.name, domain), mark, person))
        };
        let mut all: Vec<_> = people.into_iter().filter_map(of).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(all)
    }

    /// What becomes of roles without use: they stay where the domain has accounts of ours for another vCenter, which shares the roles.
    pub(super) async fn unused_roles(&self, domain: &str) -> Result<Unused, CliError> {
        match self.ours(domain).await {
            Ok(all) if all.iter().any(|(_, mark, _)| mark.vcenter != self.vcenter) => Ok(Unused::Kept),
            Ok(_) | Err(ChangeError::NoUserManager { .. }) => Ok(Unused::Deleted),
            Err(error) => Err(failed(&error)),
        }
    }

    /// The user in its identity source; of another one nothing is asked.
    pub(super) async fn person(&self, args: &UsersAccount, principal: &Principal) -> Result<Option<Person>, CliError> {
        match args.existing {
            Some(_) => Ok(None),
            None => self.admin.person(principal, now()).await.map_err(|error| failed(&error)),
        }
    }

    /// What the account of a target needs.
    pub(super) async fn needs(&self, args: &UsersAccount, site: &Site, target: &Target) -> Result<Needs, CliError> {
        let datacenters = target
            .connection
            .as_ref()
            .map(|one| one.spec.datacenters.clone())
            .unwrap_or_default();
        let nodes = match_vms(&site.nodes, &self.inventory, &datacenters, &target.requirements);
        let found = (nodes.iter().filter(|node| node.is_found()).count(), nodes.len());
        if found.0 == 0 {
            return Err(CliError::new(
                Exit::Refused,
                format!(
                    "{}: no node of the cluster has exactly one matching virtual machine there ({})",
                    site.endpoint.address(),
                    count(found.1, "node")
                ),
                "An account needs permissions on the virtual machines of the nodes. vdoctl doctor nodes shows how each machine is found.",
            ));
        }
        let encrypted = match target.requirements.policies.is_empty() {
            true => false,
            false => target
                .requirements
                .encrypts(&self.admin.policies().await.map_err(|error| failed(&error))?),
        };
        let index = known_index(&site.context.ports.repository).await;
        let mut required = required_privileges(&target.requirements, encrypted, (&self.inventory, &nodes), index.as_deref());
        // Of the datastores of which one would be enough, those that were chosen.
        let datastores = self.datastores(args).await?;
        let is_chosen = |one: &RequiredPrivilege| one.object.kind == "Datastore" && datastores.contains(&one.object.id);
        let stores = required.iter().any(|one| one.object.kind == "Datastore");
        if stores && !datastores.is_empty() && !required.iter().any(is_chosen) {
            return Err(CliError::new(
                Exit::Refused,
                "no chosen datastore is accessible from all hosts of the nodes",
                "Choose other datastores with --datastore or --storage-policy. With neither flag, vdoctl uses every datastore that all \
                 nodes can reach.",
            ));
        }
        let kept =
            |one: &RequiredPrivilege| datastores.is_empty() || one.choice.is_none() || one.object.kind != "Datastore" || is_chosen(one);
        required.retain(kept);
        let all = grants(&required, &self.inventory, &nodes, &datastores);
        let all = all.map_err(|error| CliError::new(Exit::Refused, error.to_string(), error.remedy().unwrap_or_default()))?;
        Ok(Needs {
            required,
            grants: all,
            found,
        })
    }

    /// The datastores that were named by their names, paths or URLs, and those that meet the storage policies that were named.
    async fn datastores(&self, args: &UsersAccount) -> Result<BTreeSet<String>, CliError> {
        let all = &self.inventory.datastores;
        let mut chosen = BTreeSet::new();
        for name in &args.datastore {
            let is = |url: &str| url.trim_end_matches('/') == name.trim_end_matches('/');
            let found = all.iter().filter(|one| one.name == *name || one.path == *name || is(&one.url));
            let ids: Vec<String> = found.map(|one| one.id.clone()).collect();
            if ids.is_empty() {
                let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
                return Err(unknown("datastore", name, &names));
            }
            chosen.extend(ids);
        }
        for policy in &args.storage_policy {
            match self.admin.datastores_of(policy).await.map_err(|error| failed(&error))? {
                Ok(found) if found.is_empty() => {
                    return Err(CliError::new(
                        Exit::Refused,
                        format!("no datastore meets storage policy {policy}"),
                        "Change the policy in vCenter, or name datastores with --datastore.",
                    ));
                }
                Ok(found) => chosen.extend(found),
                Err(names) => {
                    let names: Vec<&str> = names.iter().map(String::as_str).collect();
                    return Err(unknown("storage policy", policy, &names));
                }
            }
        }
        Ok(chosen)
    }
}
