use super::Question;
use crate::facts::Inventory;
use crate::health::{NodeReport, match_machines};
use crate::vcenter::{Session, SessionError};

/// What was read of a vCenter with a login.
#[derive(Debug)]
pub struct Seen {
    /// What is there.
    pub inventory: Inventory,
    /// The nodes with their machines.
    pub nodes: Vec<NodeReport>,
}

/// Reads what is asked for, in a session that is there (effect).
///
/// # Errors
/// When the vCenter does not answer as it should.
pub async fn read(session: &Session, question: &Question) -> Result<Seen, SessionError> {
    let mut inventory = session.inventory().await?;
    let found = match_machines(&question.nodes, &inventory, &question.datacenters);
    let machines: Vec<usize> = found.iter().filter_map(|node| node.at).collect();
    match session.look_into(&mut inventory, &machines).await {
        Ok(()) => {}
        // Details are no reason to know nothing: a machine may have gone since the list was read.
        Err(SessionError::Fault { kind, .. }) => tracing::debug!(kind, "devices of machines could not be read"),
        Err(error) => return Err(error),
    }
    let nodes = match_machines(&question.nodes, &inventory, &question.datacenters);
    Ok(Seen { inventory, nodes })
}
