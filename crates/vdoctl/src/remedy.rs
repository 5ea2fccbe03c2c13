//! The command that removes the cause of a reason, with the names of the objects, to be pasted. Every screen that shows a reason asks here.

use vdo_api::api::Reason;
use vdo_api::types::shell_word;

/// What a reason is about.
#[derive(Debug, Clone, Copy)]
pub(crate) enum About<'a> {
    /// The VDOConfig or its drivers.
    Config,
    /// The vSphere connection of this name.
    Connection(&'a str),
}

/// The command. `None` where a person first has to find something out, or to act outside of the cluster, and where the message itself names
/// the command.
pub(crate) fn command(reason: &str, about: About<'_>) -> Option<String> {
    let reason = *Reason::ALL.iter().find(|known| known.as_str() == reason)?;
    match about {
        About::Config => of_config(reason).map(str::to_owned),
        About::Connection(name) => Some(format!("{} {}", of_connection(reason)?, shell_word(name))),
    }
}

fn of_config(reason: Reason) -> Option<&'static str> {
    Some(match reason {
        Reason::Paused => "vdoctl resume",
        Reason::RolledBack => "vdoctl upgrade retry",
        Reason::VolumesFailing => "vdoctl doctor volumes",
        Reason::WaitingForNodes => "vdoctl doctor nodes",
        _ => return None,
    })
}

fn of_connection(reason: Reason) -> Option<&'static str> {
    Some(match reason {
        Reason::SecretNotFound
        | Reason::SecretIncomplete
        | Reason::ServerNotNamed
        | Reason::InvalidCredentials
        | Reason::PasswordExpired => "vdoctl secrets set",
        Reason::CertificateUntrusted | Reason::ThumbprintMismatch | Reason::CertificateNameMismatch => {
            "vdoctl configure connection --fetch-certificate"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remedy_command_names_the_verb_and_the_object() {
        for (reason, about, expected) in [
            (Reason::Paused, About::Config, Some("vdoctl resume")),
            (Reason::InvalidCredentials, About::Connection("vc1"), Some("vdoctl secrets set vc1")),
            (
                Reason::ThumbprintMismatch,
                About::Connection("vc1"),
                Some("vdoctl configure connection --fetch-certificate vc1"),
            ),
            (Reason::AccountLocked, About::Connection("vc1"), None),
            (Reason::InvalidCredentials, About::Config, None),
        ] {
            assert_eq!(command(reason.as_str(), about).as_deref(), expected, "{reason}");
        }
        assert_eq!(command("Unheard", About::Config), None);
    }
}
