// SPDX-License-Identifier: Apache-2.0
//! Reads which privileges an account has on objects of a vCenter; `vsphere/privileges.rs` compares them with the required ones.

use super::call::Caller;
use super::identifiers::reference;
use super::inspection_limits::Held;
use super::offload::Unread;
use super::requests::{Method, element, refer};
use super::xml::Element;
use crate::vsphere::{Granted, ManagedObject, SessionError};
use std::collections::{BTreeMap, BTreeSet};

/// Objects in one question.
const MANY: usize = 1000;

/// What a privilege or an object costs in memory besides its text.
const COST: usize = 128;

/// Asks about the privileges of this very session: the name of the account does not matter. With `everything`, all privileges on
/// each object are read as well, which needs the name as the vCenter spells it.
pub async fn ask(
    caller: &mut Caller<'_>,
    questions: &[(Vec<ManagedObject>, Vec<String>)],
    everything: bool,
) -> Result<Granted, SessionError> {
    let manager = caller.service().authorization.clone();
    let (key, principal) = caller.owner();
    let granted = Granted {
        principal: principal.clone(),
        ..Granted::default()
    };
    let mut taken = (granted, caller.budget.hold());
    for (objects, privileges) in questions {
        let privileges: String = privileges.iter().map(|privilege| element("privId", privilege)).collect();
        for some in objects.chunks(MANY) {
            let entities = |name: &str| some.iter().map(|object| refer(name, object)).collect::<String>();
            let arguments = entities("entity") + &element("sessionId", &key) + &privileges;
            let method = Method::HasPrivilegeOnEntities;
            (_, taken) = caller.call_each(method, &manager, &arguments, taken, has).await?;
            if everything {
                let arguments = entities("entities") + &element("userName", &principal);
                let method = Method::FetchUserPrivilegeOnEntities;
                (_, taken) = caller.call_each(method, &manager, &arguments, taken, has_in_all).await?;
            }
        }
    }
    let (granted, held) = taken;
    held.keep();
    Ok(granted)
}

/// Everything that an account may do on these objects, by the name that the vCenter spells, inherited and through groups.
pub async fn effective(
    caller: &mut Caller<'_>,
    principal: &str,
    objects: &[ManagedObject],
) -> Result<BTreeMap<ManagedObject, BTreeSet<String>>, SessionError> {
    let manager = caller.service().authorization.clone();
    let mut taken = (Granted::default(), caller.budget.hold());
    for some in objects.chunks(MANY) {
        let entities: String = some.iter().map(|object| refer("entities", object)).collect();
        let arguments = entities + &element("userName", principal);
        (_, taken) = caller
            .call_each(Method::FetchUserPrivilegeOnEntities, &manager, &arguments, taken, has_in_all)
            .await?;
    }
    let (granted, held) = taken;
    held.keep();
    Ok(granted.all)
}

/// Which of the privileges that were asked for are there.
fn has((granted, held): &mut (Granted, Held), one: Element) -> Result<(), Unread> {
    let Some(object) = one.child("entity").map(reference).transpose()? else {
        return Ok(());
    };
    held.grow(COST + object.id.len())?;
    let own = granted.granted.entry(object.id).or_default();
    for privilege in one.all("privAvailability").filter(|p| p.text_of("isGranted") == "true") {
        let privilege = privilege.text_of("privId");
        held.grow(COST + privilege.len())?;
        own.insert(privilege);
    }
    Ok(())
}

/// All privileges that are there.
fn has_in_all((granted, held): &mut (Granted, Held), one: Element) -> Result<(), Unread> {
    let Some(object) = one.child("entity").map(reference).transpose()? else {
        return Ok(());
    };
    held.grow(COST + object.id.len())?;
    let own = granted.all.entry(object).or_default();
    for privilege in one.all("privileges") {
        let privilege = privilege.text.trim().to_owned();
        held.grow(COST + privilege.len())?;
        own.insert(privilege);
    }
    Ok(())
}
