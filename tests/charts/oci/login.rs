//! Logins: what a registry asks for, and to whom what is sent.

use super::{chain, client, login, reference};
use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use serde_json::{Value, json};
use vdo::registry::{Login, Options, Registry, ask_helper};
use vdo::types::Secret;
use vdo::web::Access;
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
    assert!(!registry.delete(&at).await?, "there is nothing");
    assert_eq!(service.asked().len(), 3, "one to delete");

    let stranger = Registry::new(&server.host(), options(Login::Anonymous))?;
    let error = stranger.head(&at).await.err().context("the login succeeded")?;
    assert!(
        chain(&error).contains("gives no token") && chain(&error).contains("401"),
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
    let at: vdo::registry::Reference = format!("{host}/team/thing:v1").parse()?;
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
    for (realm, said) in [(plain, "which is not https"), (registry.url("/token"), "gives no token")] {
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
        assert!(error.to_string().contains("no name of a program"), "{error}");
    }
    let error = ask_helper("that-does-not-exist", "r.example").await.err().context("it was run")?;
    assert!(error.to_string().contains("docker-credential-that-does-not-exist"), "{error}");
    Ok(())
}
