// SPDX-License-Identifier: Apache-2.0
//! The simulated vCenter checks passwords and shows the certificate it was given.

use anyhow::Result;
use vdo_testbed::{Logins, Validity, Vcenter, VcenterOptions};

async fn start() -> Result<Vcenter> {
    let mut options = VcenterOptions::with_vms([("w-1", "192.168.10.11")]);
    options.more_users.insert("cpi@vsphere.local".into(), "second".into());
    Vcenter::start(options).await
}

#[tokio::test(flavor = "multi_thread")]
async fn testbed_vcenter_each_password_is_checked() -> Result<()> {
    let vcenter = start().await?;
    let right = vcenter.password().to_owned();
    assert_eq!(right, r#"p@ss"w\or d#;%$='"#);
    for (user, password, wanted) in [
        ("administrator@vsphere.local", right.as_str(), true),
        ("administrator@vsphere.local", "p@ss", false),
        ("administrator@vsphere.local", "", false),
        ("administrator@example.org", right.as_str(), false),
        ("someone@vsphere.local", right.as_str(), false),
    ] {
        assert_eq!(log_in(&vcenter, user, password).await?, wanted, "{user} with {password:?}");
    }
    let logins = vcenter.logins().await?;
    assert_eq!(logins.get("administrator@vsphere.local"), Some(&Logins { succeeded: 1, failed: 2 }));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn testbed_vcenter_about_has_version_build_and_uuid() -> Result<()> {
    let vcenter = start().await?;
    let about = soap(
        &vcenter,
        r#"<RetrieveServiceContent xmlns="urn:vim25"><_this type="ServiceInstance">ServiceInstance</_this></RetrieveServiceContent>"#,
    );
    let about = about.await?;
    for wanted in [
        "<version>8.0.3</version>",
        "<build>24022515</build>",
        vcenter.options().instance_uuid.as_str(),
    ] {
        assert!(about.contains(wanted), "{wanted} in {about}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn testbed_vcenter_faults_and_denials_are_injected() -> Result<()> {
    let vcenter = start().await?;
    faults_and_denials(&vcenter).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn testbed_vcenter_restart_keeps_address() -> Result<()> {
    let mut vcenter = start().await?;
    let right = vcenter.password().to_owned();
    let address = vcenter.address();
    vcenter.stop();
    assert!(log_in(&vcenter, "administrator@vsphere.local", &right).await.is_err());
    vcenter.resume().await?;
    assert_eq!(vcenter.address(), address);
    assert!(log_in(&vcenter, "administrator@vsphere.local", &right).await?);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn testbed_vcenter_expired_certificate_has_thumbprints() -> Result<()> {
    let vcenter = Vcenter::start(VcenterOptions {
        validity: Validity::Expired,
        ..VcenterOptions::default()
    })
    .await?;
    assert_eq!(vcenter.thumbprint_sha1().len(), 20 * 3 - 1);
    assert_eq!(vcenter.thumbprint_sha256().len(), 32 * 3 - 1);
    assert!(vcenter.logins().await?.is_empty());
    Ok(())
}

async fn faults_and_denials(vcenter: &Vcenter) -> Result<()> {
    let retrieve =
        r#"<RetrieveServiceContent xmlns="urn:vim25"><_this type="ServiceInstance">ServiceInstance</_this></RetrieveServiceContent>"#;
    vcenter.fail_next("RetrieveServiceContent", "NoPermission", 1).await?;
    assert!(soap(vcenter, retrieve).await?.contains("NoPermissionFault"));
    assert!(!soap(vcenter, retrieve).await?.contains("NoPermissionFault"));

    vcenter.deny("cpi@vsphere.local", &["System.Read"]).await?;
    let ask = r#"<HasPrivilegeOnEntities xmlns="urn:vim25"><_this type="AuthorizationManager">AuthorizationManager</_this><entity type="Folder">group-d1</entity><sessionId></sessionId><privId>System.Read</privId><privId>System.View</privId></HasPrivilegeOnEntities>"#;
    assert!(soap(vcenter, ask).await?.contains("NotAuthenticated"));
    let (answer, cookie) = send(vcenter, &login("cpi@vsphere.local", "second"), "").await?;
    assert!(answer.contains("LoginResponse"), "{answer}");
    let (answer, _) = send(vcenter, ask, &cookie).await?;
    for wanted in ["System.Read</privId><isGranted>false", "System.View</privId><isGranted>true"] {
        assert!(answer.contains(wanted), "{wanted} in {answer}");
    }
    Ok(())
}

async fn log_in(vcenter: &Vcenter, user: &str, password: &str) -> Result<bool> {
    let answer = soap(vcenter, &login(user, password)).await?;
    let refused = answer.contains("InvalidLogin");
    assert!(refused || answer.contains("LoginResponse"), "{answer}");
    Ok(!refused)
}

fn login(user: &str, password: &str) -> String {
    format!(
        r#"<Login xmlns="urn:vim25"><_this type="SessionManager">SessionManager</_this><userName>{}</userName><password>{}</password></Login>"#,
        escape(user),
        escape(password)
    )
}

async fn soap(vcenter: &Vcenter, body: &str) -> Result<String> {
    Ok(send(vcenter, body, "").await?.0)
}

/// Gives the answer and the session's cookie.
async fn send(vcenter: &Vcenter, body: &str, cookie: &str) -> Result<(String, String)> {
    let envelope = format!(r#"<Envelope xmlns="http://schemas.xmlsoap.org/soap/envelope/"><Body>{body}</Body></Envelope>"#);
    let request = http::Request::post("/sdk")
        .header("Content-Type", "text/xml")
        .header("Cookie", cookie);
    let answer = vcenter
        .http()?
        .send(request.body(kube::client::Body::from(envelope.into_bytes()))?)
        .await?;
    let cookie = answer
        .headers()
        .get("Set-Cookie")
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let cookie = cookie.split(';').next().unwrap_or_default().to_owned();
    let bytes = answer.into_body().collect_bytes().await?;
    Ok((String::from_utf8(bytes.to_vec())?, cookie))
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
