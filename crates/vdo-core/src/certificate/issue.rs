// SPDX-License-Identifier: Apache-2.0
//! Issues the webhook's certificate authority and the one serving certificate that it signs, valid for 90 days.
//! The only effect is that it draws random keys.

use super::Pair;
use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use std::time::Duration;
use vdo_api::types::Secret;

/// How long a certificate is valid.
pub const LIFE: Duration = Duration::from_secs(90 * 86_400);

/// Clocks of API servers may be this much behind ours.
const SKEW: Duration = Duration::from_secs(3600);

/// A new pair for a Service, valid from now on. ECDSA on P-256; the key of the authority is dropped at the end of this call.
///
/// # Errors
/// When the system provides no randomness.
pub fn issue(service: &str, namespace: &str, now: Timestamp) -> Result<Pair, rcgen::Error> {
    let seconds = Duration::from_secs(u64::try_from(now.as_second()).unwrap_or(0));
    // The time of this machine, which a certificate can name up to the year 9999.
    #[expect(clippy::arithmetic_side_effects, reason = "the clock names no number of others")]
    let [from, until] = [seconds.saturating_sub(SKEW), seconds.saturating_add(LIFE)].map(|since| date_time_ymd(1970, 1, 1) + since);

    let mut authority = CertificateParams::new(Vec::<String>::new())?;
    (authority.not_before, authority.not_after) = (from, until);
    // Two authorities are trusted at once during a rotation; each has a name of its own.
    let name = format!("vdo webhook authority {}", now.strftime("%Y-%m-%dT%H:%M:%SZ"));
    authority.distinguished_name.push(DnType::CommonName, name);
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;

    let names = [
        service.to_owned(),
        format!("{service}.{namespace}"),
        format!("{service}.{namespace}.svc"),
    ];
    let mut serving = CertificateParams::new(names.to_vec())?;
    (serving.not_before, serving.not_after) = (from, until);
    serving
        .distinguished_name
        .push(DnType::CommonName, format!("{service}.{namespace}.svc"));
    serving.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    serving.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    serving.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    let certificate = serving.signed_by(&key, &authority)?;
    Ok(Pair {
        authority: authority.pem(),
        certificate: certificate.pem(),
        key: Secret::new(key.serialize_pem()),
    })
}
