use super::Question;
use crate::health::{Demand, NodeReport, demands, match_machines, questions, taggable};
use crate::vcenter::{Budget, Session};
use crate::vsphere::{Granted, Inventory, Policy, SessionError, Tagging};

/// What was read of a vCenter with a login. A part that nobody needs is empty; one that failed says why.
#[derive(Debug)]
pub struct Seen {
    /// What is there.
    pub inventory: Inventory,
    /// The nodes with their machines.
    pub nodes: Vec<NodeReport>,
    /// The storage policies.
    pub policies: Result<Vec<Policy>, SessionError>,
    /// The privileges that are needed.
    pub demands: Vec<Demand>,
    /// Those that are there.
    pub granted: Result<Granted, SessionError>,
    /// The tags of zones and regions.
    pub tagging: Result<Tagging, SessionError>,
}

/// Reads what is asked for, in a session that is there (effect). The service for tags wants a login of its own: `tags` says whether it may
/// be made.
///
/// # Errors
/// When the inventory cannot be read, the account is not let in any more, or the budget is spent.
pub async fn read(session: &Session, question: &Question, tags: bool, budget: &Budget) -> Result<Seen, SessionError> {
    let needs = &question.needs;
    let mut inventory = session.inventory(budget).await?;
    let found = match_machines(&question.nodes, &inventory, &question.datacenters, needs);
    let machines: Vec<usize> = found.iter().filter_map(|node| node.at).collect();
    // A machine may have gone since the list was read: details are no reason to know nothing.
    if let Err(error) = part(session.look_into(&mut inventory, &machines, budget).await)? {
        tracing::debug!(%error, "devices of machines could not be read");
    }
    let nodes = match_machines(&question.nodes, &inventory, &question.datacenters, needs);
    let policies = match needs.policies.is_empty() {
        true => Ok(vec![]),
        false => part(session.policies(budget).await)?,
    };
    let encrypted = policies
        .iter()
        .flatten()
        .any(|policy| policy.encrypts && needs.names_policy(&policy.name));
    let demands = demands(needs, encrypted, &inventory, &nodes);
    let granted = part(session.granted(&questions(&demands), question.surplus, budget).await)?;
    let categories = needs.all_categories();
    let tagging = match (categories.is_empty(), tags) {
        (true, _) => Ok(Tagging::default()),
        (false, false) => Err(session.tags_refused()),
        (false, true) => part(session.tags(&categories, &taggable(&inventory, &nodes), budget).await)?,
    };
    Ok(Seen {
        inventory,
        nodes,
        policies,
        demands,
        granted,
        tagging,
    })
}

impl Seen {
    /// Whether the service for tags has refused the login.
    #[must_use]
    pub fn tags_refused(&self) -> bool {
        matches!(self.tagging, Err(SessionError::TagsRefused { .. }))
    }
}

/// What only concerns one part stays in it; the end of the session and that of the inspection concern all.
fn part<T>(read: Result<T, SessionError>) -> Result<Result<T, SessionError>, SessionError> {
    match read {
        Err(error) if error.ends_session() => Err(error),
        other => Ok(other),
    }
}
