// SPDX-License-Identifier: Apache-2.0
//! The list of SOAP calls that a session may make, and the XML envelope of each request for the services VIM, PBM and CNS/vSAN.

use super::{service_content, xml};
use crate::vsphere::ManagedObject;
use std::borrow::Cow;

/// Everything that a [`Session`](super::Session) ever asks of a vCenter: opening and closing what it reads with, and reading. It has no
/// way to send anything else; what an administrator may change is in another room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
pub enum Method {
    Login,
    Logout,
    CreateContainerView,
    DestroyView,
    RetrievePropertiesEx,
    ContinueRetrievePropertiesEx,
    HasPrivilegeOnEntities,
    FetchUserPrivilegeOnEntities,
    PbmRetrieveServiceContent,
    PbmQueryProfile,
    PbmRetrieveContent,
    PbmCheckRequirements,
    CnsQueryVolume,
    CnsQueryAllVolume,
    VsanClusterGetConfig,
}

/// A SOAP service of a vCenter.
#[derive(Debug, Clone)]
pub struct Place {
    /// Its path below the address of the vCenter.
    pub path: Cow<'static, str>,
    /// The namespace of its requests.
    pub namespace: &'static str,
    /// The header `SOAPAction`.
    pub action: &'static str,
}

/// The service of everything in the inventory.
pub const VIM: Place = Place {
    path: Cow::Borrowed("/sdk"),
    namespace: service_content::VIM,
    action: service_content::ACTION,
};

/// The service of storage policies. It takes the session of the other in a header of its own.
const PBM: Place = Place {
    path: Cow::Borrowed("/pbm"),
    namespace: xml::PBM,
    action: "urn:pbm/2.0",
};

/// The service of container volumes (CNS) and of vSAN, in the dialect of the oldest vCenter whose volumes can be of several clusters. It takes the
/// session as the first service does.
const CNS: Place = Place {
    path: Cow::Borrowed("/vsanHealth"),
    namespace: xml::VSAN,
    action: "urn:vsan/7.0",
};

impl Method {
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The element of which the answer has many.
    pub const fn list(self) -> &'static str {
        match self {
            Self::RetrievePropertiesEx | Self::ContinueRetrievePropertiesEx => "objects",
            Self::HasPrivilegeOnEntities | Self::FetchUserPrivilegeOnEntities | Self::PbmRetrieveContent | Self::PbmCheckRequirements => {
                "returnval"
            }
            Self::CnsQueryVolume | Self::CnsQueryAllVolume => "volumes",
            _ => "",
        }
    }

    /// The service that answers it.
    pub fn place(self) -> Place {
        match self {
            Self::PbmRetrieveServiceContent | Self::PbmQueryProfile | Self::PbmRetrieveContent | Self::PbmCheckRequirements => PBM,
            Self::CnsQueryVolume | Self::CnsQueryAllVolume | Self::VsanClusterGetConfig => CNS,
            _ => VIM,
        }
    }

    /// The request; `arguments` are elements already.
    pub fn envelope(self, this: &ManagedObject, arguments: &str) -> String {
        Operation::from(self).envelope(this, arguments, "")
    }
}

/// One call as it is made: what it is called, where, and which element of the answer there are many of.
#[derive(Debug, Clone)]
pub struct Operation {
    /// The name of the call.
    pub name: &'static str,
    /// The element of the answer that is handed over one by one; empty where none is.
    pub list: &'static str,
    /// The service that answers.
    pub place: Place,
}

impl From<Method> for Operation {
    fn from(method: Method) -> Self {
        Self {
            name: method.name(),
            list: method.list(),
            place: method.place(),
        }
    }
}

impl Operation {
    /// The request; `header` and `arguments` are elements already.
    pub fn envelope(&self, this: &ManagedObject, arguments: &str, header: &str) -> String {
        let header = match header {
            "" => String::new(),
            header => format!("<Header>{header}</Header>"),
        };
        format!(
            concat!(
                r#"<?xml version="1.0" encoding="UTF-8"?><Envelope xmlns="http://schemas.xmlsoap.org/soap/envelope/" "#,
                r#"xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">{header}<Body><{name} xmlns="{namespace}">{this}{arguments}</{name}></Body></Envelope>"#
            ),
            header = header,
            name = self.name,
            namespace = self.place.namespace,
            this = refer("_this", this),
            arguments = arguments,
        )
    }

    /// What the service wants in the header of a request: that of policies takes the value of the cookie of the session there.
    pub fn header(&self, session: &str) -> String {
        match self.place.namespace {
            xml::PBM => element("vcSessionCookie", session),
            _ => String::new(),
        }
    }
}

/// An element that refers to a managed object.
pub fn refer(name: &str, object: &ManagedObject) -> String {
    // The kind is a server's own word, as the identifier is.
    format!("<{name} type=\"{}\">{}</{name}>", escaped(&object.kind), escaped(&object.id))
}

/// An element with a text.
pub fn element(name: &str, text: &str) -> String {
    format!("<{name}>{}</{name}>", escaped(text))
}

/// A text as it stands in an element or in an attribute. A carriage return would be read as a line feed if it stood for itself.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\r' => out.push_str("&#13;"),
            c => out.push(c),
        }
    }
    out
}

/// Whether a text can be written in XML at all: most control characters cannot, not even by a reference.
pub fn is_sendable(text: &str) -> bool {
    text.chars().all(xml::is_character)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        /// Read back by the parser alone, without our tree: character data and references as XML defines them.
        #[test]
        fn xml_element_any_password_round_trips(password in prop_oneof!["[ -~]{1,40}", "[<>&;'\"\\]\\[!#x0-9 \t\n\r-]{1,24}", "\\PC{1,40}", any::<String>()]) {
            prop_assume!(is_sendable(&password));
            let written = element("password", &password);
            let inside = &written["<password>".len()..written.len() - "</password>".len()];
            prop_assert!(!inside.contains(['<', '\r']));
            let read = quick_xml::escape::unescape(inside).map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert_eq!(read.as_ref(), password.as_str());
            prop_assert_eq!(xml::whole(&written).text, password);
        }
    }

    #[test]
    fn reference_kind_with_markup_is_escaped() {
        let object = ManagedObject {
            kind: "Folder\"><evil x=\"".into(),
            id: "a</_this>".into(),
        };
        let written = refer("_this", &object);
        let read = xml::whole(&written);
        assert_eq!(
            (read.children.len(), read.kind, read.text),
            (0, object.kind, object.id),
            "{written}"
        );
    }

    #[test]
    fn password_with_control_character_is_not_sendable() {
        for (text, sendable) in [
            ("a\tb\r\nc", true),
            ("\u{1}", false),
            ("\0", false),
            ("\u{1b}[0m", false),
            ("\u{fffe}", false),
            ("🔑", true),
        ] {
            assert_eq!(is_sendable(text), sendable, "{text:?}");
        }
    }

    #[test]
    fn xml_element_special_text_round_trips() {
        let printable: String = (' '..='~').collect();
        for text in [printable.as_str(), " a\tb\n c\r\nd\r ", "]]>&amp;<!--", "пароль 密码 🔑"] {
            assert_eq!(xml::whole(&element("password", text)).text, text);
        }
    }
}
