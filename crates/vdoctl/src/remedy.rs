// SPDX-License-Identifier: Apache-2.0
//! Maps a reason to the command that fixes its cause, with the names of the objects, for every screen that shows a reason.

use super::commands::quoted;
use super::status::Config;
use vdo::reconcile::add_missing;
use vdo_api::api::Reason;
use vdo_api::types::shell_word;
use vdo_core::drivers::{self, short};

/// What a reason is about.
#[derive(Clone, Copy)]
pub(crate) enum About<'a> {
    /// The VDOConfig or its drivers.
    Config(&'a Config),
    /// The vSphere connection of this name.
    Connection(&'a str),
}

/// The command. `None` where a person first has to find something out, or to act outside of the cluster, and where only the message can name
/// the command. The message is that of the reason: it names the driver.
pub(crate) fn command(reason: &str, message: &str, about: About<'_>) -> Option<String> {
    let reason = *Reason::ALL.iter().find(|known| known.as_str() == reason)?;
    match about {
        About::Config(config) => of_config(reason, message, config),
        About::Connection(name) => of_connection(reason, &shell_word(name)),
    }
}

fn of_config(reason: Reason, message: &str, config: &Config) -> Option<String> {
    let fixed = match reason {
        Reason::Paused | Reason::WorkloadMissing => return resume(reason, message, config),
        Reason::ApprovalRequired => {
            let plan = config.status.plan.as_ref().filter(|plan| !plan.approved);
            return Some(plan.map_or_else(|| "vdoctl plan".into(), |plan| format!("vdoctl approve {}", plan.hash)));
        }
        Reason::UnknownVersion | Reason::IncompatiblePin => return unpin(message, config),
        Reason::KubernetesNotSupported | Reason::VSphereNotSupported => {
            return Some(unpin(message, config).unwrap_or_else(|| "vdoctl matrix resolve".into()));
        }
        Reason::RevisionUnusable => return Some(lift(message, config)),
        Reason::RightsMissing => return Some(add_missing("")),
        Reason::InvalidSpec
        | Reason::ConnectionNotFound
        | Reason::InvalidValues
        | Reason::ValuesNotFound
        | Reason::PatchNotApplicable
        | Reason::RenderFailed
        | Reason::ConfigurationInvalid
        | Reason::Conflict
        | Reason::OptionNotSupported
        | Reason::ImagesOutsideMirror => return Some(edit(config)),
        Reason::RolledBack => "vdoctl upgrade retry",
        Reason::NoConnections => "vdoctl configure connection --interactive",
        Reason::NodesOfOtherProvider => "vdoctl configure drivers --set cloudProvider.keepNodes=true",
        Reason::VolumesFailing => "vdoctl doctor volumes",
        Reason::VolumesInUse => "kubectl get pv,volumeattachment",
        Reason::SharedVolumesAttached => "kubectl get volumeattachments",
        Reason::WaitingForNodes => "vdoctl doctor nodes",
        Reason::NotOurs => "vdoctl adopt --move --dry-run",
        Reason::NoCompatibleVersion => return Some(of_message(message).unwrap_or("vdoctl matrix resolve").to_owned()),
        Reason::ApiNotServed => "vdoctl matrix resolve",
        Reason::MatrixInvalid
        | Reason::MatrixNotTrusted
        | Reason::MatrixRolledBack
        | Reason::MatrixUnreachable
        | Reason::MatrixIncomplete
        | Reason::MatrixExpired
        | Reason::ChartUnavailable
        | Reason::DigestMismatch => "vdoctl matrix source",
        Reason::WebhookCertificateInvalid => "vdoctl reconcile",
        Reason::PlanRejected => "vdoctl support-bundle",
        _ => return None,
    };
    Some(fixed.to_owned())
}

fn of_connection(reason: Reason, name: &str) -> Option<String> {
    let doctor = |more: &str| Some(format!("vdoctl doctor {more}"));
    match reason {
        Reason::SecretNotFound
        | Reason::SecretWrongType
        | Reason::SecretIncomplete
        | Reason::ServerNotNamed
        | Reason::InvalidCredentials
        | Reason::PasswordExpired => Some(format!("vdoctl secrets set {name}")),
        Reason::CaBundleInvalid | Reason::CertificateUntrusted | Reason::ThumbprintMismatch | Reason::CertificateNameMismatch => {
            Some(format!("vdoctl configure connection {name} --fetch-certificate"))
        }
        Reason::NameNotResolved
        | Reason::Unreachable
        | Reason::NotAVcenter
        | Reason::DatacenterNotFound
        | Reason::DatacenterAmbiguous
        | Reason::OverlappingDatacenters => Some(format!("vdoctl configure connection {name} --interactive")),
        Reason::PrivilegesMissing => doctor("privileges"),
        Reason::DiskUuidDisabled | Reason::TopologyCategoryNotFound | Reason::TopologyTagMissing => doctor("--fix --user ADMINISTRATOR"),
        Reason::HardwareVersionTooOld => doctor("--fix --allow hardware-version --user ADMINISTRATOR"),
        Reason::TopologyTagAmbiguous | Reason::TopologyLabelDiffers => doctor("topology"),
        Reason::NodeNotFound
        | Reason::NodeAmbiguous
        | Reason::MachinePoweredOff
        | Reason::ToolsNotRunning
        | Reason::GuestNameMissing
        | Reason::GuestAddressMissing
        | Reason::GuestNameDiffers
        | Reason::SnapshotsPresent
        | Reason::ParavirtualScsiMissing
        | Reason::HostVersionTooOld
        | Reason::HostDisconnected
        | Reason::ProviderIdDiffers => doctor("nodes"),
        _ => None,
    }
}

/// The command that the message itself names, in backquotes.
fn of_message(message: &str) -> Option<&str> {
    quoted(message)
        .map(|span| &message[span])
        .find(|quoted| quoted.starts_with("vdoctl "))
}

/// Whether a message speaks of a driver.
pub(crate) fn names(message: &str, driver: &str) -> bool {
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    [short(driver), driver].iter().any(|name| {
        message
            .match_indices(name)
            .any(|(at, _)| !message[..at].ends_with(is_of_name) && !message[at + name.len()..].starts_with(is_of_name))
    })
}

/// What ends a pause, where one keeps a workload from being recreated.
fn resume(reason: Reason, message: &str, config: &Config) -> Option<String> {
    let mut paused = config.paused_drivers.iter();
    match paused.find(|driver| names(message, driver)) {
        Some(driver) if !config.paused => Some(format!("vdoctl resume {}", short(driver).to_lowercase())),
        _ => (config.paused || reason == Reason::Paused).then(|| "vdoctl resume".into()),
    }
}

/// What takes away the version that the specification names.
fn unpin(message: &str, config: &Config) -> Option<String> {
    let mut pins = config.pins.iter().filter(|(driver, _)| drivers::known(driver).is_some());
    let (driver, _) = pins.find(|(driver, _)| names(message, driver))?;
    Some(drivers::set_version(driver, "null"))
}

/// What ends that a driver is kept at a revision.
fn lift(message: &str, config: &Config) -> String {
    let mut kept = config.kept.iter();
    let found = kept.find(|(driver, _)| config.kept.len() == 1 || names(message, driver));
    found.map_or_else(
        || "vdoctl history".into(),
        |(driver, _)| format!("vdoctl rollback {} --lift", short(driver).to_lowercase()),
    )
}

fn edit(config: &Config) -> String {
    let (namespace, name) = config.id.split_once('/').unwrap_or(("", &config.id));
    format!("kubectl edit vdoconfigs --namespace {} {}", shell_word(namespace), shell_word(name))
}

#[cfg(test)]
mod tests;
