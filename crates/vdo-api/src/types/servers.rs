// SPDX-License-Identifier: Apache-2.0
//! Decides whether the annotation `vdo.vmware.com/servers` of a Secret names a server, by host, port or certificate thumbprint.

use super::Thumbprint;

/// Whether a list of servers (host names, addresses with or without a port, thumbprints of certificates; separated by commas or spaces)
/// names this one. A thumbprint names any server that proves it, so it counts only where the connection asks for that proof.
#[must_use]
pub fn names_server(list: &str, host: &str, port: u16, proven: Option<&Thumbprint>) -> bool {
    let bare = |text: &str| text.trim_matches(['[', ']']).trim_end_matches('.').to_ascii_lowercase();
    list.split([',', ' ', '\n', '\t']).filter(|entry| !entry.is_empty()).any(|entry| {
        if let Ok(thumbprint) = entry.parse::<Thumbprint>() {
            return proven == Some(&thumbprint);
        }
        let with_port = format!(":{port}");
        // An IPv6 address ends in something like a port unless it stands in brackets.
        let name = match entry.strip_suffix(&with_port) {
            Some(name) if name.starts_with('[') || !name.contains(':') => name,
            _ => entry,
        };
        bare(name) == bare(host)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_of_a_secret_are_matched_by_host_port_or_thumbprint() {
        let print = Thumbprint::sha256(b"certificate");
        let other = Thumbprint::sha256(b"another");
        for (list, host, port, proven, expected) in [
            ("vc.example.com", "vc.example.com", 443, None, true),
            ("VC.example.com.", "vc.EXAMPLE.com", 443, None, true),
            ("other.example.com, vc.example.com", "vc.example.com", 8443, None, true),
            ("other.example.com\nvc.example.com", "vc.example.com", 443, None, true),
            ("vc.example.com:8443", "vc.example.com", 8443, None, true),
            ("vc.example.com:8443", "vc.example.com", 443, None, false),
            ("10.0.0.1", "10.0.0.1", 443, None, true),
            ("10.0.0.1", "10.0.0.10", 443, None, false),
            ("2001:db8::443", "2001:db8::443", 443, None, true),
            ("2001:db8::443", "2001:db8:", 443, None, false),
            ("[2001:db8::1]:8443", "2001:db8::1", 8443, None, true),
            ("[2001:db8::1]:8443", "2001:db8::1", 443, None, false),
            ("vc.example.com", "evil.example.com", 443, None, false),
            ("vc.example.com", "vc.example.com.evil.org", 443, None, false),
            ("*", "vc.example.com", 443, None, false),
            ("", "vc.example.com", 443, None, false),
            ("", "", 443, None, false),
            (print.to_string().as_str(), "any.example.com", 443, Some(&print), true),
            (print.to_string().as_str(), "any.example.com", 443, Some(&other), false),
            (print.to_string().as_str(), "any.example.com", 443, None, false),
        ] {
            assert_eq!(
                names_server(list, host, port, proven),
                expected,
                "{list:?} names {host}:{port} with {proven:?}"
            );
        }
    }
}
