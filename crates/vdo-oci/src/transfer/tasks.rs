// SPDX-License-Identifier: Apache-2.0
//! A few tasks at a time, so that every processor takes part.

use super::{AT_ONCE, TransferError};
use tokio::task::JoinSet;

/// Runs all of these. When one fails, the others end where they are.
///
/// # Errors
/// The first one.
pub(super) async fn all(
    tasks: impl IntoIterator<Item = impl Future<Output = Result<(), TransferError>> + Send + 'static>,
) -> Result<(), TransferError> {
    let mut waiting = tasks.into_iter();
    let mut running: JoinSet<_> = waiting.by_ref().take(AT_ONCE).collect();
    while let Some(ended) = running.join_next().await {
        match ended.map_err(tokio::task::JoinError::try_into_panic) {
            Ok(result) => result?,
            Err(Ok(panic)) => std::panic::resume_unwind(panic),
            // The program ends.
            Err(Err(_)) => {}
        }
        waiting.next().map(|task| running.spawn(task));
    }
    Ok(())
}
