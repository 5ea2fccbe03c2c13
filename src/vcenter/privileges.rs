//! What the account of a session may do.

use super::SessionError;
use super::caller::Caller;
use super::method::{Method, element, refer, reference};
use crate::facts::{Granted, ManagedObject};

/// Objects in one question.
const MANY: usize = 1000;

/// Asks about the privileges of this very session: the name of the account does not matter. With `everything`, all privileges on
/// each object are read as well, which needs the name as the vCenter spells it.
pub(super) async fn ask(
    caller: &mut Caller<'_>,
    questions: &[(Vec<ManagedObject>, Vec<String>)],
    everything: bool,
) -> Result<Granted, SessionError> {
    let manager = caller.service().authorization.clone();
    let (key, principal) = caller.owner();
    let mut granted = Granted {
        principal: principal.clone(),
        ..Granted::default()
    };
    for (objects, privileges) in questions {
        let privileges: String = privileges.iter().map(|privilege| element("privId", privilege)).collect();
        for some in objects.chunks(MANY) {
            let entities = |name: &str| some.iter().map(|object| refer(name, object)).collect::<String>();
            let arguments = entities("entity") + &element("sessionId", &key) + &privileges;
            let answer = caller.call(Method::HasPrivilegeOnEntities, &manager, &arguments).await?;
            for one in answer.all("returnval") {
                let Some(object) = one.child("entity").map(reference) else {
                    continue;
                };
                let held = one.all("privAvailability").filter(|p| p.text_of("isGranted") == "true");
                granted
                    .granted
                    .entry(object.id)
                    .or_default()
                    .extend(held.map(|p| p.text_of("privId")));
            }
            if everything {
                let arguments = entities("entities") + &element("userName", &principal);
                let answer = caller.call(Method::FetchUserPrivilegeOnEntities, &manager, &arguments).await?;
                for one in answer.all("returnval") {
                    let Some(object) = one.child("entity").map(reference) else {
                        continue;
                    };
                    let held = one.all("privileges").map(|privilege| privilege.text.trim().to_owned());
                    granted.all.entry(object).or_default().extend(held);
                }
            }
        }
    }
    Ok(granted)
}
