// SPDX-License-Identifier: Apache-2.0
//! Extracts the certificates of a CA bundle from a ConfigMap or Secret, without the rest of its text.
//!
//! More users can read the drivers' ConfigMaps than the Secret that the bundle may come from.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{PemObject as _, SectionKind};
use std::fmt::Write as _;
use vdo_api::types::count;

/// The certificates of a PEM text, each as its own block with lines of 64 characters, and nothing else of it.
///
/// # Errors
/// When it has no certificate, a damaged one or a private key; in words that follow "key ca.crt of ConfigMap a/b,". They repeat nothing
/// of the text, which may be a secret that is in the wrong place.
pub(super) fn certificates(text: &str) -> Result<String, String> {
    let mut bundle = String::new();
    let (mut certificates, mut others) = (0, 0);
    for section in <(SectionKind, Vec<u8>)>::pem_slice_iter(text.as_bytes()) {
        match section {
            Ok((SectionKind::Certificate, der)) => {
                certificates += 1;
                write_certificate(&mut bundle, der).ok_or_else(|| format!("whose certificate number {certificates} cannot be read"))?;
            }
            Ok(_) => others += 1,
            Err(_) => return Err(format!("which is damaged after PEM block number {}", certificates + others)),
        }
    }
    let holds = |what: &str| Err(format!("which contains {}{what}", counted(certificates, "certificate")));
    if text.contains("PRIVATE KEY-----") {
        // The user who stored it should know.
        holds(" and a private key")
    } else if certificates == 0 && others == 0 {
        holds("")
    } else if certificates == 0 {
        holds(&format!(" and {}", counted(others, "other PEM block")))
    } else {
        Ok(bundle)
    }
}

/// `None` when it is not a certificate that a connection could be checked with.
fn write_certificate(bundle: &mut String, der: Vec<u8>) -> Option<()> {
    let text = STANDARD.encode(&der);
    RootCertStore::empty().add(CertificateDer::from(der)).ok()?;
    bundle.push_str("-----BEGIN CERTIFICATE-----\n");
    for line in text.as_bytes().chunks(64) {
        let _ = writeln!(bundle, "{}", String::from_utf8_lossy(line));
    }
    bundle.push_str("-----END CERTIFICATE-----\n");
    Some(())
}

fn counted(number: usize, what: &str) -> String {
    match number {
        0 => format!("no {what}"),
        _ => count(number, what),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn certificate(name: &str) -> String {
        let pair = rcgen::generate_simple_self_signed([name.to_owned()]).expect("a certificate");
        pair.cert.pem()
    }

    fn block(label: &str, content: &[u8]) -> String {
        format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", STANDARD.encode(content))
    }

    #[test]
    fn ca_bundle_well_formed_pem_is_unchanged() {
        let bundle = certificate("one") + &certificate("two");
        assert_eq!(certificates(&bundle), Ok(bundle));
    }

    #[test]
    fn ca_bundle_everything_but_certificates_is_dropped() {
        let (one, two) = (certificate("one"), certificate("two"));
        for (what, text) in [
            ("comments", format!("# ours, password hunter2\n{one}\nsubject=/CN=two\n{two}# end")),
            ("Windows line ends", format!("{one}{two}").replace('\n', "\r\n")),
            ("no last line end", format!("{one}{}", two.trim_end())),
            (
                "blocks that are known",
                format!("{}{one}{}{two}", block("CERTIFICATE REQUEST", b"x"), block("PUBLIC KEY", b"x")),
            ),
            ("blocks that are not", format!("{one}{}{two}", block("PASSWORD", b"hunter2"))),
        ] {
            assert_eq!(certificates(&text), Ok(format!("{one}{two}")), "{what}");
        }
    }

    #[test]
    fn ca_bundle_without_usable_certificate_is_refused() {
        let one = certificate("one");
        let cut = &one[..one.len() / 2];
        for (text, expected) in [
            (String::new(), "which contains no certificate"),
            ("hunter2".into(), "which contains no certificate"),
            (
                "hunter2 -----BEGIN CERTIFICATE----- hunter2".into(),
                "which contains no certificate",
            ),
            (block("PUBLIC KEY", b"x"), "which contains no certificate and 1 other PEM block"),
            (block("CERTIFICATE", b"hunter2"), "whose certificate number 1 cannot be read"),
            (
                one.clone() + &block("CERTIFICATE", b"hunter2"),
                "whose certificate number 2 cannot be read",
            ),
            (format!("{one}{cut}"), "which is damaged after PEM block number 1"),
            (format!("{one}-----BEGIN hunter2\n"), "which is damaged after PEM block number 1"),
            (
                one.clone() + &block("PRIVATE KEY", b"x"),
                "which contains 1 certificate and a private key",
            ),
            (
                block("EC PRIVATE KEY", b"x") + &one + &one,
                "which contains 2 certificates and a private key",
            ),
            (
                one.clone() + &block("ENCRYPTED PRIVATE KEY", b"x"),
                "which contains 1 certificate and a private key",
            ),
        ] {
            assert_eq!(certificates(&text), Err(expected.to_owned()), "{text}");
        }
    }
}
