//! An administrator's login, and what the vCenter has of the accounts.

use super::super::args::{UsersAccount, UsersVcenter};
use super::super::doctor::password::password;
use super::super::{CliError, Exit};
use super::site::{Site, Target};
use super::{failed, now};
use crate::accounts::{Authorization, ChangeError, Consent, Grant, Person, Principal, grants};
use crate::facts::Credentials;
use crate::types::{Remedy as _, count};
use crate::vcenter::{Administrator, Endpoint};
use crate::vsphere::{Feature, Inventory, ManagedObject, RequiredPrivilege, match_vms, required_privileges};
use std::collections::BTreeSet;

/// What the vCenter has.
pub(super) struct Looked {
    pub(super) admin: Administrator,
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
pub(super) async fn log_in(args: &UsersVcenter, endpoint: &Endpoint) -> Result<(Administrator, Option<String>), CliError> {
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

impl Looked {
    /// Reads everything that plans are made of.
    pub(super) async fn at(admin: Administrator) -> Result<Self, CliError> {
        let inventory = admin.inventory().await.map_err(|error| failed(&error))?;
        let live = admin.authorization().await.map_err(|error| failed(&error))?;
        Ok(Self { admin, inventory, live })
    }

    /// The user in its identity source; of another one nothing is asked.
    pub(super) async fn person(&self, args: &UsersAccount, principal: &Principal) -> Result<Option<Person>, CliError> {
        match args.existing {
            Some(_) => Ok(None),
            None => self.admin.person(principal, now()).await.map_err(|error| failed(&error)),
        }
    }

    /// What the account of a target needs.
    pub(super) fn needs(&self, args: &UsersAccount, site: &Site, target: &Target) -> Result<Needs, CliError> {
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
                    "none of {} is a virtual machine in {}",
                    count(found.1, "node"),
                    site.endpoint.address()
                ),
                "An account needs permissions on the machines of the nodes. vdoctl doctor nodes shows how they are looked for.",
            ));
        }
        let encrypted = target.requirements.features.contains(&Feature::Encryption);
        let mut required = required_privileges(&target.requirements, encrypted, &self.inventory, &nodes);
        // Of the datastores of which one would be enough, those that were named.
        let datastores = self.datastores(&args.datastore)?;
        let kept = |one: &RequiredPrivilege| {
            datastores.is_empty() || one.choice.is_none() || one.object.kind != "Datastore" || datastores.contains(&one.object.id)
        };
        required.retain(kept);
        let all = grants(&required, &self.inventory, &nodes, &datastores);
        let all = all.map_err(|error| CliError::new(Exit::Refused, error.to_string(), error.remedy().unwrap_or_default()))?;
        Ok(Needs {
            required,
            grants: all,
            found,
        })
    }

    /// The datastores of these names, paths or URLs.
    fn datastores(&self, named: &[String]) -> Result<BTreeSet<String>, CliError> {
        let find = |name: &String| {
            let is = |url: &str| url.trim_end_matches('/') == name.trim_end_matches('/');
            let all = &self.inventory.datastores;
            let found = all.iter().filter(|one| one.name == *name || one.path == *name || is(&one.url));
            let ids: BTreeSet<String> = found.map(|one| one.id.clone()).collect();
            match ids.is_empty() {
                false => Ok(ids),
                true => {
                    let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
                    Err(super::super::error::unknown("datastore", name, &names))
                }
            }
        };
        let all: Result<Vec<_>, _> = named.iter().map(find).collect();
        Ok(all?.into_iter().flatten().collect())
    }

    /// The path of any object.
    pub(super) fn path_of(&self, object: &ManagedObject) -> String {
        crate::accounts::path_of(&self.inventory, object)
    }
}
