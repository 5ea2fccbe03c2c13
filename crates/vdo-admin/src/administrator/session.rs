// SPDX-License-Identifier: Apache-2.0
//! The administrator's session: login, the reads of roles, permissions and users, and the steps of `vdoctl users`.
//!
//! `repairs.rs` has the steps for machines and tags. The operator cannot open this session: it cannot give the [`Consent`] that one needs.

use super::changes::Change;
use super::sso::{Users, domain_of};
use crate::accounts::{
    Authorization, ChangeError, Consent, OwnRole, PasswordPolicy, Permission, Person, Principal, Role, Step, is_of_every_role,
};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use tokio::sync::Mutex;
use vdo_api::facts::Credentials;
use vdo_api::types::{Secret, plain};
use vdo_vsphere::vcenter::raw::identifiers::reference;
use vdo_vsphere::vcenter::raw::{
    Element, Fault, Held, Item, Operation, Tree, Unread, element, identifiers, pages, policies, privileges, properties, refer,
};
use vdo_vsphere::vcenter::{Budget, Endpoint, Session};
use vdo_vsphere::vsphere::{Inventory, ManagedObject, Policy, SessionError};

/// What a role or a permission costs in memory besides its texts.
const COST: usize = 256;

/// An administrator's session. Each change is one call, made once: after an answer that was lost the next run finds out what was done.
///
/// The password is sent to the vCenter when it is opened, and to its token service before the first question about users; a password that
/// the vCenter has refused is sent nowhere again. The session is logged out by [`Administrator::close`], or when it is dropped.
pub struct Administrator {
    pub(super) session: Session,
    users: Mutex<Option<Users>>,
    roles: Mutex<Option<BTreeMap<String, i32>>>,
}

impl Administrator {
    /// Logs in.
    ///
    /// # Errors
    /// When the vCenter cannot be reached, or does not accept the credentials.
    pub async fn open(endpoint: Endpoint, credentials: Credentials, _: &Consent) -> Result<Self, SessionError> {
        Ok(Self {
            session: Session::open(endpoint, credentials, &Budget::default()).await?,
            users: Mutex::new(None),
            roles: Mutex::new(None),
        })
    }

    /// The instance UUID of the vCenter.
    ///
    /// # Errors
    /// When the session has ended.
    pub async fn instance(&self) -> Result<String, ChangeError> {
        let budget = Budget::default();
        let mut live = self.session.live.lock().await;
        Ok(self.session.caller(&mut live, &budget)?.service().instance.clone())
    }

    /// What is in the vCenter.
    ///
    /// # Errors
    /// When it does not answer as it should.
    pub async fn inventory(&self) -> Result<Inventory, ChangeError> {
        Ok(self.session.inventory(&Budget::default()).await?)
    }

    /// All roles and permissions.
    ///
    /// # Errors
    /// When it does not answer as it should.
    pub async fn authorization(&self) -> Result<Authorization, ChangeError> {
        let roles = self.read_roles().await?;
        let budget = Budget::default();
        let taken = (vec![], budget.hold());
        let permissions = self
            .asked(
                &budget,
                "read all permissions",
                Change::RetrieveAllPermissions,
                "",
                taken,
                |taken, one| permission(taken, &one),
            )
            .await?
            .1
            .0;
        Ok(Authorization { roles, permissions })
    }

    /// Everything that an account may do on these objects, inherited and through groups.
    ///
    /// # Errors
    /// When the vCenter does not answer as it should.
    pub async fn effective(
        &self,
        principal: &Principal,
        objects: &[ManagedObject],
    ) -> Result<BTreeMap<ManagedObject, BTreeSet<String>>, ChangeError> {
        let budget = Budget::default();
        let mut live = self.session.live.lock().await;
        let mut caller = self.session.caller(&mut live, &budget)?;
        Ok(privileges::effective(&mut caller, &principal.down_level(), objects).await?)
    }

    /// The storage policies.
    ///
    /// # Errors
    /// When the vCenter does not answer as it should.
    pub async fn policies(&self) -> Result<Vec<Policy>, ChangeError> {
        Ok(self.session.policies(&Budget::default()).await?)
    }

    /// The identifiers of the datastores that meet a storage policy; the names of the policies where there is none of this name.
    ///
    /// # Errors
    /// When the vCenter does not answer as it should.
    pub async fn datastores_of(&self, policy: &str) -> Result<Result<BTreeSet<String>, Vec<String>>, ChangeError> {
        let budget = Budget::default();
        let mut live = self.session.live.lock().await;
        let mut caller = self.session.caller(&mut live, &budget)?;
        Ok(policies::datastores(&mut caller, policy).await?)
    }

    /// That this administrator may make these changes, but for those of users, which another service judges. Two questions at most; nothing
    /// is changed.
    ///
    /// # Errors
    /// When a privilege is missing, which is named with the object, or the vCenter does not answer as it should.
    pub async fn permits(&self, steps: &[Step]) -> Result<(), ChangeError> {
        let budget = Budget::default();
        let mut live = self.session.live.lock().await;
        let mut caller = self.session.caller(&mut live, &budget)?;
        let root = caller.service().root.clone();
        let needs: Vec<(&Step, Change, &ManagedObject, &str)> = steps
            .iter()
            .filter_map(|step| match step {
                Step::CreateRole(_) | Step::CorrectRole { .. } | Step::DeleteRole { .. } => {
                    Some((step, Change::AddAuthorizationRole, &root, "/"))
                }
                Step::Grant { object, path, .. } | Step::Revoke { object, path, .. } => {
                    Some((step, Change::SetEntityPermissions, object, path.as_str()))
                }
                Step::CreateUser { .. } | Step::SetPassword { .. } | Step::DeleteUser { .. } => None,
            })
            .collect();
        let mut questions: BTreeMap<&str, BTreeSet<ManagedObject>> = BTreeMap::new();
        for (_, change, object, _) in &needs {
            questions.entry(change.privilege()).or_default().insert((*object).clone());
        }
        let question = |(privilege, objects): (&str, BTreeSet<ManagedObject>)| (objects.into_iter().collect(), vec![privilege.to_owned()]);
        let questions: Vec<(Vec<ManagedObject>, Vec<String>)> = questions.into_iter().map(question).collect();
        let granted = privileges::ask(&mut caller, &questions, false).await?;
        let lacking = needs
            .into_iter()
            .find(|(_, change, object, _)| !granted.has(&object.id, change.privilege()));
        lacking.map_or(Ok(()), |(step, change, object, path)| {
            Err(ChangeError::NotPermitted {
                address: self.session.endpoint.address(),
                user: self.session.credentials.user.clone(),
                what: step.to_string(),
                privilege: change.privilege().to_owned(),
                object: format!("{} {path}", object.kind),
            })
        })
    }

    /// The user of this name, if there is one.
    ///
    /// # Errors
    /// When the identity source does not answer as it should.
    pub async fn person(&self, principal: &Principal, now: Timestamp) -> Result<Option<Person>, ChangeError> {
        self.with_users(&principal.domain, now).await?;
        let mut users = self.users.lock().await;
        match users.as_mut() {
            Some(users) => users.find(&self.session, principal).await,
            None => Ok(None),
        }
    }

    /// The users of a domain whose names contain a text.
    ///
    /// # Errors
    /// When the identity source does not answer as it should.
    pub async fn people(&self, domain: &str, text: &str, now: Timestamp) -> Result<Vec<Person>, ChangeError> {
        self.with_users(domain, now).await?;
        let mut users = self.users.lock().await;
        match users.as_mut() {
            Some(users) => users.list(&self.session, text).await,
            None => Ok(vec![]),
        }
    }

    /// What the domain demands of passwords; that of a new vCenter where this administrator may not read it.
    ///
    /// # Errors
    /// When the session has ended.
    pub async fn policy(&self, domain: &str, now: Timestamp) -> Result<PasswordPolicy, ChangeError> {
        self.with_users(domain, now).await?;
        let mut users = self.users.lock().await;
        match users.as_mut() {
            Some(users) => users.policy(&self.session).await,
            None => Ok(PasswordPolicy::default()),
        }
    }

    /// Makes one change. A password is needed for a user that gets one.
    ///
    /// # Errors
    /// When the vCenter refuses it, or does not answer. What has the wanted outcome already is none.
    pub async fn carry_out(&self, step: &Step, password: &Secret, now: Timestamp) -> Result<(), ChangeError> {
        let what = step.to_string();
        match step {
            Step::CreateRole(role) => {
                let arguments = element("name", &role.name) + &privileges_of(role);
                self.changed(&what, Change::AddAuthorizationRole, &arguments, ChangeError::is_already_there)
                    .await?;
                *self.roles.lock().await = None;
            }
            Step::CorrectRole { role, .. } => {
                let arguments = element("roleId", &self.role(&role.name).await?) + &element("newName", &role.name) + &privileges_of(role);
                self.changed(&what, Change::UpdateAuthorizationRole, &arguments, |_| false).await?;
            }
            Step::DeleteRole { name } => {
                let arguments = element("roleId", &self.role(name).await?) + &element("failIfUsed", "true");
                // One that got a user meanwhile is that user's.
                let over = |error: &ChangeError| error.is_not_found() || error.is_in_use();
                self.changed(&what, Change::RemoveAuthorizationRole, &arguments, over).await?;
                *self.roles.lock().await = None;
            }
            Step::Grant {
                principal,
                group,
                object,
                role,
                propagate,
                ..
            } => {
                let permission = element("principal", principal)
                    + &element("group", &group.to_string())
                    + &element("roleId", &self.role(role).await?)
                    + &element("propagate", &propagate.to_string());
                let arguments = refer("entity", object) + &format!("<permission>{permission}</permission>");
                self.changed(&what, Change::SetEntityPermissions, &arguments, |_| false).await?;
            }
            Step::Revoke {
                principal, group, object, ..
            } => {
                let arguments = refer("entity", object) + &element("user", principal) + &element("isGroup", &group.to_string());
                self.changed(&what, Change::RemoveEntityPermission, &arguments, ChangeError::is_not_found)
                    .await?;
            }
            Step::CreateUser { user, .. } | Step::SetPassword { user } | Step::DeleteUser { user } => {
                self.with_users(&domain_of(user), now).await?;
                if let Some(users) = self.users.lock().await.as_mut() {
                    users.change(&self.session, step, password).await?;
                }
            }
        }
        Ok(())
    }

    /// Ends the sessions of an account. How many there were.
    ///
    /// # Errors
    /// When the vCenter does not let this administrator do so.
    pub async fn end_sessions(&self, principal: &Principal) -> Result<usize, ChangeError> {
        let budget = Budget::default();
        let found = {
            let mut live = self.session.live.lock().await;
            let mut caller = self.session.caller(&mut live, &budget)?;
            let manager = caller.service().sessions.clone();
            let specification = of_object(&manager, "sessionList");
            let none = (vec![], budget.hold());
            pages(
                &mut caller,
                &specification,
                none,
                |(all, held): &mut (Vec<(String, String)>, Held), item: Item| {
                    for session in item.values.get("sessionList").into_iter().flat_map(|list| &list.children) {
                        let one = (
                            identifiers::identifier(&session.text_of("key"))?,
                            plain(&session.text_of("userName")),
                        );
                        held.grow(COST + one.0.len() + one.1.len())?;
                        all.push(one);
                    }
                    Ok(())
                },
            )
            .await?
            .0
        };
        let own: Vec<&str> = found
            .iter()
            .filter(|(_, user)| principal.is(user))
            .map(|(key, _)| key.as_str())
            .collect();
        if !own.is_empty() {
            let keys: String = own.iter().map(|key| element("sessionId", key)).collect();
            self.changed(
                "end the sessions of the account",
                Change::TerminateSession,
                &keys,
                ChangeError::is_not_found,
            )
            .await?;
        }
        Ok(own.len())
    }

    /// Ends the session.
    pub async fn close(&self) {
        if let Some(users) = self.users.lock().await.as_mut() {
            users.close(&self.session).await;
        }
        self.session.close().await;
    }

    async fn with_users(&self, domain: &str, now: Timestamp) -> Result<(), ChangeError> {
        let mut users = self.users.lock().await;
        if users.as_ref().is_none_or(|users| users.domain() != domain) {
            *users = Some(Users::open(&self.session, domain, now).await?);
        }
        Ok(())
    }

    async fn read_roles(&self) -> Result<Vec<Role>, ChangeError> {
        let budget = Budget::default();
        let mut live = self.session.live.lock().await;
        let mut caller = self.session.caller(&mut live, &budget)?;
        let manager = caller.service().authorization.clone();
        let specification = of_object(&manager, "roleList");
        let taken = (vec![], budget.hold());
        let (roles, _) = pages(
            &mut caller,
            &specification,
            taken,
            |(roles, held): &mut (Vec<Role>, Held), item: Item| {
                for one in item.values.get("roleList").into_iter().flat_map(|list| &list.children) {
                    let role = role(one)?;
                    held.grow(COST + role.name.len() + role.privileges.iter().map(|one| COST + one.len()).sum::<usize>())?;
                    roles.push(role);
                }
                Ok(())
            },
        )
        .await?;
        *self.roles.lock().await = Some(roles.iter().map(|role: &Role| (role.name.clone(), role.id)).collect());
        Ok(roles)
    }

    /// The number of a role as it is written.
    async fn role(&self, name: &str) -> Result<String, ChangeError> {
        if self.roles.lock().await.is_none() {
            self.read_roles().await?;
        }
        let found = self.roles.lock().await.as_ref().and_then(|roles| roles.get(name).copied());
        found.map(|id| id.to_string()).ok_or_else(|| ChangeError::Refused {
            address: self.session.endpoint.address(),
            what: format!("use role {name}"),
            kind: "NotFound".into(),
            text: "there is no such role".into(),
        })
    }

    /// One change, of which an error may be as good as success.
    async fn changed(&self, what: &str, change: Change, arguments: &str, over: fn(&ChangeError) -> bool) -> Result<(), ChangeError> {
        match self.asked(&Budget::default(), what, change, arguments, (), |(), _| Ok(())).await {
            Err(error) if over(&error) => Ok(()),
            result => result.map(|_| ()),
        }
    }

    async fn asked<T: Send + 'static>(
        &self,
        budget: &Budget,
        what: &str,
        change: Change,
        arguments: &str,
        taken: T,
        take: fn(&mut T, Element) -> Result<(), Unread>,
    ) -> Result<(Tree, T), ChangeError> {
        let mut live = self.session.live.lock().await;
        let mut caller = self.session.caller(&mut live, budget)?;
        let service = caller.service();
        let this = match change {
            Change::TerminateSession => service.sessions.clone(),
            _ => service.authorization.clone(),
        };
        let operation = Operation::from(change);
        let answer = caller.exchanged(&operation, &this, arguments, taken, take).await?;
        answer.map_err(|fault| self.refused(fault, what, (change.privilege(), "")))
    }

    /// What a fault means. What is `needed`, a privilege and the name of an object, is reported where the fault names none.
    pub(super) fn refused(&self, fault: Fault, what: &str, needed: (&str, &str)) -> ChangeError {
        let (address, user) = (self.session.endpoint.address(), self.session.credentials.user.clone());
        match fault.kind.as_str() {
            "NotAuthenticated" => ChangeError::Session(SessionError::Lost { address, user }),
            "NoPermission" => {
                let (privilege, object) = fault.denied.unwrap_or_else(|| (needed.0.to_owned(), String::new()));
                let object = if needed.1.is_empty() { object } else { needed.1.to_owned() };
                ChangeError::NotPermitted {
                    address,
                    user,
                    what: what.to_owned(),
                    privilege,
                    object: if object.is_empty() { "the root folder".into() } else { object },
                }
            }
            _ => ChangeError::Refused {
                address,
                what: what.to_owned(),
                kind: plain(&fault.kind),
                text: plain(&fault.text),
            },
        }
    }
}

fn privileges_of(role: &OwnRole) -> String {
    role.privileges.iter().map(|privilege| element("privIds", privilege)).collect()
}

/// A question for one property of one object.
fn of_object(object: &ManagedObject, property: &str) -> String {
    let set = format!("<objectSet>{}<skip>false</skip></objectSet>", refer("obj", object));
    format!("<specSet>{}{set}</specSet><options/>", properties(&object.kind, &[property]))
}

fn role(one: &Element) -> Result<Role, Unread> {
    let id = one
        .text_of("roleId")
        .parse()
        .map_err(|_| "a role in its answer has no numeric ID".to_owned())?;
    let privileges = one.all("privilege").map(|privilege| plain(privilege.text.trim()));
    Ok(Role {
        id,
        name: plain(&one.text_of("name")),
        system: one.text_of("system") == "true",
        privileges: privileges.filter(|privilege| !is_of_every_role(privilege)).collect(),
    })
}

fn permission((all, held): &mut (Vec<Permission>, Held), one: &Element) -> Result<(), Unread> {
    let Some(object) = one.child("entity").map(reference).transpose()? else {
        return Ok(());
    };
    let permission = Permission {
        principal: plain(&one.text_of("principal")),
        group: one.text_of("group") == "true",
        role: one
            .text_of("roleId")
            .parse()
            .map_err(|_| "a permission in its answer has no numeric role ID".to_owned())?,
        propagate: one.text_of("propagate") == "true",
        object,
    };
    held.grow(COST + permission.principal.len())?;
    all.push(permission);
    Ok(())
}
