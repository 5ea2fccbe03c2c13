// SPDX-License-Identifier: Apache-2.0
//! The certificate of the CSI webhook on a real API server: made, trusted, renewed without a gap, with the time moved in the
//! Secret that holds its state.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests"
)]

use crate::common::{Bed, NS, PATIENCE, condition};
use crate::fixture::INSTALLED;
use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use serde_json::{Value, json};
use std::sync::Arc;
use vdo_core::certificate::{SECRET, State, issue, verify};
use vdo_testbed::{Probe, Requests, until};

const VDO: &str = "vdo.vmware.com/v1alpha1";
const ADMISSION: (&str, &str) = ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration");
const CSI: &str = "vmware-system-csi";
const SERVICE: &str = "vsphere-webhook-svc";
const CONFIGURATION: &str = "validation.csi.vsphere.vmware.com";

/// Asks for the webhook, and waits until it is in place with a good certificate.
async fn enable(bed: &Bed) -> Result<Used> {
    // The state of a test before stays as long as the VDOConfig, and while the webhook is off nothing uses it.
    bed.delete("v1", "Secret", NS, SECRET).await?;
    let change = json!({"spec": {"cloudProvider": {}, "storageProvider": {"webhook": true}}});
    bed.merge(VDO, "VDOConfig", NS, "vdo", change).await?;
    let first = until_used(bed, "the webhook to be in place", 1, |_| true).await?;
    until_ready(bed).await?;
    Ok(first)
}

#[test]
fn webhook_off_has_no_certificate_and_enabled_has_a_valid_one() -> Result<()> {
    INSTALLED.run(async |bed| {
        until("the condition of a webhook that is off", PATIENCE, async || {
            let off = condition(&config(bed).await?, "WebhookCertificateValid");
            let found = off["status"] == "Unknown" && off["reason"] == "NotRequested";
            Ok(Probe::when(found, off))
        })
        .await?;
        let first = enable(bed).await?;
        let valid = condition(&config(bed).await?, "WebhookCertificateValid");
        ensure!(
            valid["status"] == "True" && valid["message"].as_str().is_some_and(|m| m.contains("valid until")),
            "{valid}"
        );
        handshake(&first, &first.bundle).await?;
        no_key_is_shown(bed).await
    })
}

#[test]
fn webhook_certificate_at_rest_resync_sends_no_request() -> Result<()> {
    INSTALLED.run(async |bed| {
        enable(bed).await?;
        until("a resync that asks nothing", PATIENCE, async || {
            let requests = resync(bed, "calm").await?;
            Ok(Probe::when(requests.is_empty(), requests))
        })
        .await?;
        for round in 0..5 {
            let requests = resync(bed, &round.to_string()).await?;
            ensure!(requests.is_empty(), "with a certificate at rest the operator asked:\n{requests}");
        }
        Ok(())
    })
}

#[test]
#[ignore = "long"]
fn webhook_certificate_rotation_has_no_trust_gap() -> Result<()> {
    INSTALLED.run(async |bed| {
        let first = enable(bed).await?;
        // Seventy days later: another authority is trusted beside the one in use, which goes on to serve.
        age(bed, SignedDuration::from_hours(24 * 70)).await?;
        let staged = until_used(bed, "two authorities to be trusted", 2, |used| {
            used.certificate != first.certificate
        })
        .await?;
        handshake(&staged, &staged.bundle).await?;
        // Ten minutes later it serves with the new one; who still serves with the old one is trusted too.
        back_date(bed).await?;
        let promoted = until_used(bed, "the next certificate to be served", 2, |used| {
            used.certificate != staged.certificate
        })
        .await?;
        for served in [&staged, &promoted] {
            for trusting in [&staged, &promoted] {
                handshake(served, &trusting.bundle).await?;
            }
        }
        until_ready(bed).await?;
        // Once nothing serves with the old one, it is not trusted.
        back_date(bed).await?;
        let retired = until_used(bed, "the old authority to go", 1, |used| used.certificate == promoted.certificate).await?;
        handshake(&retired, &retired.bundle).await?;
        ensure!(
            handshake(&staged, &retired.bundle).await.is_err(),
            "the old certificate is still trusted"
        );
        no_key_is_shown(bed).await
    })
}

/// The state of the operator is a hundred days old, what is served works: it stays trusted until nothing serves with it.
#[test]
#[ignore = "long"]
fn webhook_certificate_expired_in_state_only_is_replaced_without_gap() -> Result<()> {
    INSTALLED.run(async |bed| {
        let served_before = enable(bed).await?;
        age(bed, SignedDuration::from_hours(24 * 100)).await?;
        let replaced = until_used(bed, "a certificate that is not expired", 2, |used| is_new(used, &served_before)).await?;
        for served in [&served_before, &replaced] {
            handshake(served, &replaced.bundle).await?;
        }
        until_ready(bed).await?;
        back_date(bed).await?;
        until_used(bed, "the new authority alone", 1, |used| used.certificate == replaced.certificate).await?;
        no_key_is_shown(bed).await
    })
}

/// Paused, the operator replaces nothing, and says what is wrong; then it does.
#[test]
fn webhook_certificate_expired_or_wrong_is_reported_and_replaced() -> Result<()> {
    INSTALLED.run(async |bed| {
        let good = enable(bed).await?;
        let managed = async |state: &str| {
            let change = json!({"spec": {"managementState": state}});
            bed.merge(VDO, "VDOConfig", NS, "vdo", change).await
        };
        managed("Paused").await?;
        until("the operator to pause", PATIENCE, async || {
            let config = config(bed).await?;
            let seen = config["status"]["observedGeneration"] == config["metadata"]["generation"];
            Ok(Probe::when(seen, condition(&config, "Ready")))
        })
        .await?;
        let expired = issue(SERVICE, CSI, Timestamp::now().checked_sub(SignedDuration::from_hours(24 * 100))?)?;
        let other = issue("another-service", CSI, Timestamp::now())?;
        for (pair, trusted, words) in [
            (&expired, &expired.authority, "expired at"),
            (&other, &other.authority, "is not for vsphere-webhook-svc"),
            (&other, &good.bundle, "is not signed by an authority in caBundle"),
        ] {
            let data = json!({"tls.crt": STANDARD.encode(&pair.certificate), "tls.key": STANDARD.encode(pair.key.expose())});
            bed.merge("v1", "Secret", CSI, "vsphere-webhook-certs", json!({"data": data}))
                .await?;
            trust(bed, trusted).await?;
            until(&format!("the condition to say that it {words}"), PATIENCE, async || {
                let found = condition(&config(bed).await?, "WebhookCertificateValid");
                let reported = found["status"] == "False"
                    && found["reason"] == "WebhookCertificateInvalid"
                    && found["message"].as_str().is_some_and(|message| message.contains(words));
                Ok(Probe::when(reported, found))
            })
            .await?;
        }
        // The operator was away for a hundred days: nothing is left to overlap with.
        age(bed, SignedDuration::from_hours(24 * 100)).await?;
        managed("Managed").await?;
        let renewed = until_used(bed, "a certificate that is good", 1, |used| is_new(used, &good)).await?;
        handshake(&renewed, &renewed.bundle).await?;
        until_ready(bed).await?;
        no_key_is_shown(bed).await
    })
}

/// A caBundle of another writer is drift like any other.
#[test]
fn webhook_ca_bundle_edited_is_repaired() -> Result<()> {
    INSTALLED.run(async |bed| {
        let good = enable(bed).await?;
        let other = issue(SERVICE, CSI, Timestamp::now())?;
        trust(bed, &other.authority).await?;
        until_used(bed, "the right caBundle", 1, |used| used.bundle == good.bundle).await?;
        no_key_is_shown(bed).await
    })
}

#[test]
#[ignore = "long"]
fn uninstall_with_webhook_deletes_its_state() -> Result<()> {
    INSTALLED.run(async |bed| {
        enable(bed).await?;
        ensure!(bed.get("v1", "Secret", NS, SECRET).await? != Value::Null, "there is no state");
        bed.uninstall().await?;
        until("the state to go with the VDOConfig", PATIENCE, async || {
            let found = bed.get("v1", "Secret", NS, SECRET).await?;
            Ok(Probe::when(found == Value::Null, SECRET))
        })
        .await
    })
}

/// Makes the API server trust these authorities for the webhook.
async fn trust(bed: &Bed, authorities: &str) -> Result<()> {
    let mut webhooks = configuration(bed).await?["webhooks"].clone();
    webhooks[0]["clientConfig"]["caBundle"] = STANDARD.encode(authorities).into();
    bed.merge(ADMISSION.0, ADMISSION.1, "", CONFIGURATION, json!({"webhooks": webhooks}))
        .await
}

/// Neither the log nor the VDOConfig shows a key.
async fn no_key_is_shown(bed: &Bed) -> Result<()> {
    let log = std::fs::read_to_string(bed.operator_log())?;
    let status = config(bed).await?.to_string();
    for text in [&log, &status] {
        ensure!(
            !text.contains("PRIVATE KEY") && !text.contains("LS0tLS1CRUdJTiBQUklWQVRF"),
            "a key is shown"
        );
    }
    Ok(())
}

/// Whether it is another certificate than that one, and a good one.
fn is_new(used: &Used, old: &Used) -> bool {
    let name = format!("{SERVICE}.{CSI}.svc");
    used.certificate != old.certificate && verify(&used.certificate, &used.bundle, &name, Timestamp::now()).is_ok()
}

/// What the operator asks for when an annotation makes it look again.
async fn resync(bed: &Bed, token: &str) -> Result<Requests> {
    let mark = bed.cluster.audit().mark().await?;
    let before = bed.reconciles().await?;
    let change = json!({"metadata": {"annotations": {"example.com/round": format!("{token} after {before}")}}});
    bed.merge(VDO, "VDOConfig", NS, "vdo", change).await?;
    until("the resync to be made", PATIENCE, async || {
        Ok(Probe::when(bed.reconciles().await? > before, "none yet"))
    })
    .await?;
    // That a vCenter is asked again has nothing to do with it.
    let requests = bed.operator_requests(mark).await?;
    Ok(requests.only(|e| e.resource != "vspherecloudconfigs"))
}

async fn config(bed: &Bed) -> Result<Value> {
    bed.get(VDO, "VDOConfig", NS, "vdo").await
}

async fn configuration(bed: &Bed) -> Result<Value> {
    bed.get(ADMISSION.0, ADMISSION.1, "", CONFIGURATION).await
}

async fn until_ready(bed: &Bed) -> Result<()> {
    until("Ready and a good certificate", PATIENCE, async || {
        let config = config(bed).await?;
        let is = |kind: &str| condition(&config, kind)["status"] == "True";
        Ok(Probe::when(
            is("Ready") && is("WebhookCertificateValid"),
            condition(&config, "Ready"),
        ))
    })
    .await
}

/// What the API server trusts and what the webhook serves with.
struct Used {
    bundle: String,
    certificate: String,
    key: String,
}

/// Waits until there are that many authorities and `test` is content.
async fn until_used(bed: &Bed, what: &str, authorities: usize, test: impl Fn(&Used) -> bool) -> Result<Used> {
    until(what, PATIENCE, async || {
        let (configuration, secret) = (
            configuration(bed).await?,
            bed.get("v1", "Secret", CSI, "vsphere-webhook-certs").await?,
        );
        let text = |value: &Value| -> Option<String> { String::from_utf8(STANDARD.decode(value.as_str()?).ok()?).ok() };
        let used = (|| {
            Some(Used {
                bundle: text(&configuration["webhooks"][0]["clientConfig"]["caBundle"])?,
                certificate: text(&secret["data"]["tls.crt"])?,
                key: text(&secret["data"]["tls.key"])?,
            })
        })();
        let count = used.as_ref().map_or(0, |used| used.bundle.matches("BEGIN CERTIFICATE").count());
        let ready = condition(&config(bed).await?, "Ready");
        Ok(match used {
            Some(used) if count == authorities && test(&used) => Probe::Ready(used),
            _ => Probe::not_yet(json!({"authorities": count, "ready": ready})),
        })
    })
    .await
}

/// As the API server does it: a handshake with a server that has the key, for the name of the Service, trusting only these.
async fn handshake(used: &Used, bundle: &str) -> Result<()> {
    let mut roots = RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
        roots.add(authority?)?;
    }
    let client = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let chain = vec![CertificateDer::from_pem_slice(used.certificate.as_bytes())?];
    let server = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, PrivateKeyDer::from_pem_slice(used.key.as_bytes())?)?;
    let (near, far) = tokio::io::duplex(16 * 1024);
    let name = ServerName::try_from(format!("{SERVICE}.{CSI}.svc"))?;
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(server));
    let connector = tokio_rustls::TlsConnector::from(Arc::new(client));
    let (connected, accepted) = tokio::join!(connector.connect(name, near), acceptor.accept(far));
    connected.context("the client")?;
    accepted.context("the server")?;
    Ok(())
}

async fn put(bed: &Bed, state: &State) -> Result<()> {
    let written = state.write(NS, &json!({}));
    let mut data = written["data"].clone();
    // What this state does not have goes.
    for key in ["next-ca.crt", "next-tls.crt", "next-tls.key", "previous-ca.crt"] {
        if data.get(key).is_none() {
            data[key] = Value::Null;
        }
    }
    bed.merge("v1", "Secret", NS, SECRET, json!({"data": data})).await
}

async fn state(bed: &Bed) -> Result<State> {
    let secret = bed.get("v1", "Secret", NS, SECRET).await?;
    State::read(&vdo_core::manifest::Object::new(secret)?).context("the state")
}

/// As if the certificate in use had been made this long ago.
async fn age(bed: &Bed, by: SignedDuration) -> Result<()> {
    let made = Timestamp::now().checked_sub(by)?;
    let current = issue(SERVICE, CSI, made)?;
    put(
        bed,
        &State {
            current,
            next: None,
            previous: None,
            since: made,
        },
    )
    .await
}

/// As if the last step had been taken an hour ago, once it has been.
async fn back_date(bed: &Bed) -> Result<()> {
    let state = state(bed).await?;
    put(
        bed,
        &State {
            since: state.since.checked_sub(SignedDuration::from_hours(1))?,
            ..state
        },
    )
    .await
}
