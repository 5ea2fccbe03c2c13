//! What the status says of the next Kubernetes minor (pure).

use crate::api::Reason;
use crate::matrix::{self, Cause};
use crate::status::{Upgradeable, short};

/// The answer of the matrix in the words of a condition.
pub(super) fn upgradeable(next: &matrix::Upgradeable) -> Upgradeable {
    let kubernetes = &next.kubernetes;
    if let Some((name, (version, reason))) = next.forced.first_key_value() {
        return Upgradeable {
            fits: false,
            reason: Reason::IncompatiblePin,
            message: format!(
                "Kubernetes {kubernetes} does not fit: {} {version} stays, and it {reason}",
                short(name)
            ),
        };
    }
    match &next.result {
        Ok(versions) => {
            let versions: Vec<String> = versions
                .iter()
                .map(|(name, version)| format!("{} {version}", short(name)))
                .collect();
            Upgradeable {
                fits: true,
                reason: Reason::Healthy,
                message: format!("Kubernetes {kubernetes} fits with {}", versions.join(" and ")),
            }
        }
        Err(error) => {
            let why: Vec<String> = error
                .all()
                .map(|error| match &error.cause {
                    Cause::PinRejected { pin, reason, .. } => format!("{} is pinned to {pin}, which {reason}", short(&error.driver)),
                    Cause::NothingFits => format!("no {} version fits it", short(&error.driver)),
                    _ => error.to_string(),
                })
                .collect();
            let pinned = matches!(error.cause, Cause::PinRejected { .. } | Cause::UnknownPin { .. });
            Upgradeable {
                fits: false,
                reason: if pinned {
                    Reason::IncompatiblePin
                } else {
                    Reason::NoCompatibleVersion
                },
                message: format!("Kubernetes {kubernetes} does not fit: {}", why.join("; ")),
            }
        }
    }
}
