// SPDX-License-Identifier: Apache-2.0
//! Checks that a cluster of the vCenter has the vSAN file service if file volumes are configured; `vcenter/file_service.rs` reads it.

use super::{Finding, Requirements, SessionError};
use vdo_api::api::Reason;

/// File volumes are asked for, and no cluster can make one. With several vCenters the service may be in another one. It informs: the cause
/// why it could not be asked is that of other checks, too.
#[must_use]
pub fn no_file_service(requirements: &Requirements, file_service: Option<&Result<Option<bool>, SessionError>>) -> Option<Finding> {
    let is_missing = matches!(file_service, Some(Ok(Some(false))));
    (is_missing && requirements.others == 0).then(|| {
        Finding::new(
            Reason::NoFileService,
            "file volumes are configured, but no cluster of this vCenter has the vSAN file service, so claims of file volumes stay Pending",
            "Enable the service in vCenter: select a vSAN cluster, then Configure, vSAN, Services, File Service. Or remove fileVolumes and the \
             file-share classes from the VDOConfig.",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only where the service is known to be nowhere.
    #[test]
    fn file_service_is_missed_where_no_cluster_has_it() {
        let one = Requirements::default();
        let several = Requirements {
            others: 1,
            ..Requirements::default()
        };
        for (requirements, found, is_missed) in [
            (&one, None, false),
            (&one, Some(Ok(Some(true))), false),
            (&one, Some(Ok(Some(false))), true),
            (&one, Some(Ok(None)), false),
            (&several, Some(Ok(Some(false))), false),
        ] {
            assert_eq!(no_file_service(requirements, found.as_ref()).is_some(), is_missed, "{found:?}");
        }
    }
}
