// SPDX-License-Identifier: Apache-2.0
//! SOAP as text: a proxy needs to know a name here and there, and no more.

/// The method that an envelope calls.
pub(super) fn method(envelope: &str) -> Option<&str> {
    let body = envelope.find("Body>").map(|at| &envelope[at + "Body>".len()..])?;
    let name = body.trim_start().strip_prefix('<')?;
    let name = &name[..name.find(|c: char| c.is_whitespace() || c == '>' || c == '/')?];
    Some(name.rsplit(':').next().unwrap_or(name))
}

/// The text of the first element of this name.
pub(super) fn element(envelope: &str, name: &str) -> Option<String> {
    let start = envelope.find(&format!("<{name}>"))? + name.len() + 2;
    let text = &envelope[start..start + envelope[start..].find("</")?];
    let quotes = text
        .replace("&quot;", "\"")
        .replace("&#34;", "\"")
        .replace("&apos;", "'")
        .replace("&#39;", "'");
    Some(quotes.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
}

/// The same envelope with the text of every element of this name in small letters, as a server that does not care for case reads it.
pub(super) fn lower(envelope: &str, name: &str) -> String {
    let (open, mut text, mut rest) = (format!("<{name}>"), String::new(), envelope);
    while let Some(at) = rest.find(&open) {
        let (before, after) = rest.split_at(at + open.len());
        let end = after.find("</").unwrap_or(after.len());
        text.push_str(before);
        text.push_str(&after[..end].to_lowercase());
        rest = &after[end..];
    }
    text + rest
}

/// A SOAP fault of vSphere, as it comes with status 500.
pub fn fault(kind: &str, words: &str, inside: &str) -> String {
    format!(
        concat!(
            r#"<?xml version="1.0" encoding="UTF-8"?><soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" "#,
            r#"xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><soapenv:Body><soapenv:Fault><faultcode>ServerFaultCode</faultcode>"#,
            r#"<faultstring>{words}</faultstring><detail><{kind}Fault xmlns="urn:vim25" xsi:type="{kind}">{inside}</{kind}Fault></detail>"#,
            "</soapenv:Fault></soapenv:Body></soapenv:Envelope>"
        ),
        kind = kind,
        words = words,
        inside = inside
    )
}

/// What a real vCenter answers where the simulator lists the parts of an answer that it could not give.
pub(super) fn strict(answer: &str) -> Option<String> {
    let kinds = ["NotAuthenticated", "InvalidProperty"];
    let missing: String = answer.split("<missingSet>").skip(1).collect();
    let kind = kinds.into_iter().find(|kind| missing.contains(&format!("type=\"{kind}\"")))?;
    let name = element(&missing, "path").unwrap_or_default();
    Some(match kind {
        "InvalidProperty" => fault(kind, "", &format!("<name>{name}</name>")),
        _ => fault(kind, "The session is not authenticated.", ""),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn soap_method_and_element_text_are_found() {
        let text = r#"<Envelope xmlns="e"><Body><Login xmlns="urn:vim25"><userName>a&amp;b</userName></Login></Body></Envelope>"#;
        assert_eq!((method(text), element(text, "userName").as_deref()), (Some("Login"), Some("a&b")));
        assert_eq!(method("<e:Body><v:X/></e:Body>"), Some("X"));
        assert_eq!(method("hello"), None);
    }

    #[test]
    fn soap_element_text_is_lowered() {
        assert_eq!(
            lower("<a><dnsName>VM-1</dnsName><b>B</b></a>", "dnsName"),
            "<a><dnsName>vm-1</dnsName><b>B</b></a>"
        );
    }

    #[test]
    fn soap_missing_property_is_fault() {
        let part = |kind: &str| {
            format!(r#"<objects><missingSet><path>no.such</path><fault><fault _x:type="{kind}"/></fault></missingSet></objects>"#)
        };
        assert!(strict(&part("InvalidProperty")).is_some_and(|fault| fault.contains("<name>no.such</name>")));
        assert!(strict(&part("NotAuthenticated")).is_some_and(|fault| fault.contains("NotAuthenticatedFault")));
        assert_eq!(strict(&part("NoPermission")), None, "a real vCenter lists these too");
        assert_eq!(strict("<objects/>"), None);
    }
}
