// SPDX-License-Identifier: Apache-2.0
//! Runs the copies of blobs and images in parallel, at most `AT_ONCE` at a time, and stops at the first error.

use super::TransferError;
use tokio::task::JoinSet;

/// How many blobs move at the same time: more do not fill a line better, and each needs memory.
pub const AT_ONCE: usize = 4;

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
