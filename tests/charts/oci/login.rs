// SPDX-License-Identifier: Apache-2.0
//! Logins: what a registry asks for, and to whom what is sent.

use super::{chain, client, login, reference};
use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use serde_json::{Value, json};
use vdo_api::types::Secret;
use vdo_oci::registry::{Login, Options, Registry, TOKEN_REALMS, ask_helper};
use vdo_oci::web::Access;
use vdo_testbed::{Authority, Leaf, RegistryAuth, RegistryKind, RegistryServer, Validity, WebAnswer, WebServer};

#[tokio::test]
async fn login_that_is_missing_or_wrong_is_refused_by_name() -> Result<()> {
    let server = RegistryServer::start(RegistryKind::Distribution, RegistryAuth::Basic).await?;
    let at = reference(&server, "team/thing:v1")?;
    let wrong = Login::Basic {
        user: "publisher".into(),
        password: Secret::new("s3cret"),
    };
    for login in [Login::Anonymous, wrong, Login::Token(Secret::new("s3cret"))] {
        let error = client(&server, login)?.manifest(&at).await.err().context("the login succeeded")?;
        let text = chain(&error);
        assert!(
            text.contains("401 Unauthorized") && text.contains("UNAUTHORIZED") && !text.contains("s3cret"),
            "{text}"
        );
    }
    assert_eq!(client(&server, login())?.head(&at).await?, None);
    Ok(())
}

/// A token as a service for tokens signs it.
fn token(leaf: &Leaf, scope: &Value) -> Result<String> {
    let der = |pem_text: &str| anyhow::Ok(pem::parse(pem_text)?.into_contents());
    #[expect(clippy::disallowed_methods, reason = "the registry reads the clock as well")]
    let seconds = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_secs();
    let header = json!({"typ": "JWT", "alg": "ES256", "x5c": [STANDARD.encode(der(&leaf.cert)?)]});
    let claims = json!({"iss": "test", "sub": "publisher", "aud": "registry", "jti": "1", "iat": seconds, "nbf": seconds - 60,
        "exp": seconds + 600, "access": [scope]});
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", part(&header), part(&claims));
    let random = SystemRandom::new();
    let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &der(&leaf.key)?, &random);
    let signature = pair
        .ok()
        .context("a key")?
        .sign(&random, signed.as_bytes())
        .ok()
        .context("a signature")?;
    Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

/// The registry judges the tokens; the service that signs them is ours, as such services have no common program.
#[tokio::test]
async fn login_by_token_is_asked_for_at_the_service_that_the_registry_names() -> Result<()> {
    let service = WebServer::start().await?;
    let leaf = Authority::self_signed(&["tokens"], Validity::Good)?;
    let auth = RegistryAuth::Token {
        realm: service.url("/token"),
        certificate: leaf.cert.clone(),
    };
    let server = RegistryServer::start(RegistryKind::Distribution, auth).await?;
    let at = reference(&server, "team/thing:v1")?;
    let given = token(
        &leaf,
        &json!({"type": "repository", "name": "team/thing", "actions": ["pull", "push", "delete"]}),
    )?;
    service.answer(move |asked| match asked.authorization.as_deref() {
        Some(basic) if basic == format!("Basic {}", STANDARD.encode("publisher:r3ad-it")) => {
            WebAnswer::Status(200, vec![], json!({"token": given, "expires_in": 600}).to_string())
        }
        _ => WebAnswer::Status(401, vec![], "who are you?".into()),
    });
    let options = |login| Options {
        access: Access::new([("ca.crt".to_owned(), server.ca() + &service.authority().pem())]),
        own: true,
        login,
        plain_http: false,
    };
    let registry = Registry::new(&server.host(), options(login()))?;
    assert_eq!(registry.head(&at).await?, None);
    let digest = registry.put_blob("team/thing", b"content".as_slice().into()).await?;
    assert!(registry.has_blob("team/thing", &digest).await?);
    let asked = service.asked();
    assert_eq!(asked.len(), 2, "one token to read and one to write: {asked:?}");

    let stranger = Registry::new(&server.host(), options(Login::Anonymous))?;
    let error = stranger.head(&at).await.err().context("the login succeeded")?;
    assert!(
        chain(&error).contains("issued no token") && chain(&error).contains("401"),
        "{}",
        chain(&error)
    );
    // A token for another repository does not open this one.
    let error = registry
        .put_blob("team/other", b"content".as_slice().into())
        .await
        .err()
        .context("the login succeeded")?;
    assert!(chain(&error).contains("401") || chain(&error).contains("403"), "{}", chain(&error));
    Ok(())
}

#[tokio::test]
async fn login_goes_to_no_other_server() -> Result<()> {
    let (registry, other) = (WebServer::start().await?, WebServer::start().await?);
    let host = registry.url("").trim_start_matches("https://").to_owned();
    let at: vdo_oci::registry::Reference = format!("{host}/team/thing:v1").parse()?;
    let ca = registry.authority().pem() + &other.authority().pem();
    let connect = |login| {
        let access = Access::new([("ca.crt".to_owned(), ca.clone())]);
        Registry::new(
            &host,
            Options {
                access,
                own: true,
                login,
                plain_http: false,
            },
        )
    };
    // Once the registry has asked for a password, it leads elsewhere.
    let elsewhere = other.url("/stolen");
    registry.answer(move |asked| match asked.authorization {
        None => WebAnswer::Status(401, vec![("www-authenticate", "Basic realm=\"r\"".into())], String::new()),
        Some(_) => WebAnswer::Status(307, vec![("location", elsewhere.clone())], String::new()),
    });
    let found = connect(login())?.manifest(&at).await;
    assert!(found.is_err());
    assert_eq!(registry.asked().iter().filter(|asked| asked.authorization.is_some()).count(), 1);
    let asked = other.asked();
    assert!(
        !asked.is_empty() && asked.iter().all(|asked| asked.authorization.is_none()),
        "{asked:?}"
    );

    // Nor does another server get it by asking for it.
    other.forget();
    other.answer(|_| WebAnswer::Status(401, vec![("www-authenticate", "Basic realm=\"r\"".into())], String::new()));
    assert!(connect(login())?.manifest(&at).await.is_err());
    assert!(
        other.asked().iter().all(|asked| asked.authorization.is_none()),
        "{:?}",
        other.asked()
    );

    // A service for tokens by plain http is not asked at all, and one that leads elsewhere gives none.
    let plain = other.url("/token").replace("https", "http");
    for (realm, said) in [(plain, "does not use https"), (registry.url("/token"), "issued no token")] {
        other.forget();
        let (challenge, elsewhere) = (format!("Bearer realm=\"{realm}\",service=\"r\""), other.url("/stolen"));
        registry.answer(move |asked| match asked.path.as_str() {
            "/token" => WebAnswer::Status(307, vec![("location", elsewhere.clone())], String::new()),
            _ => WebAnswer::Status(401, vec![("www-authenticate", challenge.clone())], String::new()),
        });
        for login in [login(), Login::Identity(Secret::new("s3cret"))] {
            let error = connect(login)?.manifest(&at).await.err().context("the login succeeded")?;
            assert!(
                chain(&error).contains(said) && !chain(&error).contains("s3cret"),
                "{}",
                chain(&error)
            );
        }
        assert!(other.asked().is_empty(), "{:?}", other.asked());
    }
    Ok(())
}

#[tokio::test]
async fn login_of_a_helper_is_asked_for_by_name_alone() -> Result<()> {
    for name in ["", "../sh", "a b", "x;y"] {
        let error = ask_helper(name, "r.example").await.err().context("it was run")?;
        assert!(error.to_string().contains("not a valid name of a credential helper"), "{error}");
    }
    let error = ask_helper("that-does-not-exist", "r.example").await.err().context("it was run")?;
    assert!(error.to_string().contains("docker-credential-that-does-not-exist"), "{error}");
    Ok(())
}

/// One header must not decide who else gets the password.
#[tokio::test]
async fn login_is_not_sent_to_a_service_for_tokens_in_another_domain() -> Result<()> {
    let registry = WebServer::start().await?;
    let host = registry.url("").trim_start_matches("https://").to_owned();
    let at: vdo_oci::registry::Reference = format!("{host}/team/thing:v1").parse()?;
    registry.answer(|_| {
        let challenge = "Bearer realm=\"https://tokens.other.invalid/token\",service=\"r\"";
        WebAnswer::Status(401, vec![("www-authenticate", challenge.into())], String::new())
    });
    let ask = async |login: Login, realms: Option<&str>| {
        let realms = realms.map(|realms| (TOKEN_REALMS.to_owned(), realms.to_owned()));
        let access = Access::new(std::iter::once(("ca.crt".to_owned(), registry.authority().pem())).chain(realms));
        let options = Options {
            access,
            own: true,
            login,
            plain_http: false,
        };
        let error = Registry::new(&host, options)?
            .manifest(&at)
            .await
            .err()
            .context("the login succeeded")?;
        anyhow::Ok(format!(
            "{} {}",
            chain(&error),
            vdo_api::types::Remedy::remedy(&error).unwrap_or_default()
        ))
    };
    for login in [login(), Login::Identity(Secret::new("s3cret"))] {
        let said = ask(login.clone(), None).await?;
        assert!(
            said.contains("token service tokens.other.invalid of the registry is in another domain")
                && said.contains("--registry-token-realm tokens.other.invalid")
                && !said.contains("s3cret"),
            "{said}"
        );
        // Where it is allowed it is asked, which no host of this name answers.
        let said = ask(login, Some("tokens.other.invalid\n")).await?;
        assert!(said.contains("https://tokens.other.invalid/token issued no token"), "{said}");
    }
    // There is nothing to protect.
    let said = ask(Login::Anonymous, None).await?;
    assert!(said.contains("issued no token"), "{said}");
    Ok(())
}

/// The numbers of a service for tokens are its own affair: whatever they are, the token is used once at least.
#[tokio::test]
async fn login_by_token_that_is_good_for_any_number_of_seconds_succeeds() -> Result<()> {
    let registry = WebServer::start().await?;
    let host = registry.url("").trim_start_matches("https://").to_owned();
    let at: vdo_oci::registry::Reference = format!("{host}/team/thing:v1").parse()?;
    let challenge = format!("Bearer realm=\"{}\",service=\"r\"", registry.url("/token"));
    for seconds in ["18446744073709551615", "9223372036854775807", "1e300", "-1", "0", "0.5"] {
        let challenge = challenge.clone();
        registry.answer(move |asked| match (asked.path.as_str(), asked.authorization.as_deref()) {
            ("/token", _) => WebAnswer::Status(200, vec![], format!(r#"{{"token": "t", "expires_in": {seconds}}}"#)),
            (_, Some("Bearer t")) => WebAnswer::Status(404, vec![], String::new()),
            _ => WebAnswer::Status(401, vec![("www-authenticate", challenge.clone())], String::new()),
        });
        let options = Options {
            access: Access::new([("ca.crt".to_owned(), registry.authority().pem())]),
            own: true,
            login: login(),
            plain_http: false,
        };
        let found = Registry::new(&host, options)?.head(&at).await;
        // A token that is not good for a moment is asked for again, and in the end the registry's own answer counts.
        match seconds {
            "-1" | "0" | "0.5" => assert!(found.is_err(), "{seconds}: {found:?}"),
            _ => assert_eq!(found?, None, "{seconds}"),
        }
    }
    Ok(())
}

/// The seeds of the fuzzer. Those whose names begin with `good` hold a time.
#[test]
fn seed_as_answer_of_a_registry_ends_as_its_name_says() -> Result<()> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds/registry");
    let mut seeds = 0;
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let times = vdo_oci::registry::fuzz::answer(&std::fs::read(&path)?);
        let is_good = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("good"));
        assert_eq!(times.iter().any(Option::is_some), is_good, "{}: {times:?}", path.display());
        seeds += 1;
    }
    assert!(seeds > 15, "the seeds were not found");
    Ok(())
}
