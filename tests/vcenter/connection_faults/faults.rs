// SPDX-License-Identifier: Apache-2.0
//! The faults on the way into a vCenter; those inside are in `inside`.

use super::inside;
use super::world::{Case, Change, Elsewhere, Other, Setting, locks, no_ca};
use std::time::Duration;
use vdo::reconcile::ReconcileError;
use vdo_api::api::ConditionType::{self, Authenticated, Connected, CredentialsFound, IsVCenter, Resolved, Trusted};
use vdo_api::api::Reason::{self, *};
use vdo_api::types::{Secret, Thumbprint, Trust};
use vdo_testbed::Validity;
use vdo_testbed::soap::{Act, Greeting, Rule};

const ABOUT: &str = "RetrieveServiceContent";
const READ: &str = "RetrievePropertiesEx";
/// Ten levels of ten: a few hundred bytes that would be ten thousand million.
const LAUGHS: &str = concat!(
    r#"<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">"#,
    r#"<!ENTITY d "&c;&c;&c;&c;&c;&c;&c;&c;&c;&c;"><!ENTITY e "&d;&d;&d;&d;&d;&d;&d;&d;&d;&d;"><!ENTITY f "&e;&e;&e;&e;&e;&e;&e;&e;&e;&e;">]><l>&f;</l>"#
);
const FILE: &str = r#"<?xml version="1.0"?><!DOCTYPE l [<!ENTITY x SYSTEM "file:///etc/passwd">]><l>&x;</l>"#;
pub const OVERLOADED: &str = "<html><body><h1>503 Service Unavailable</h1></body></html>";

pub fn case(
    name: &'static str,
    stage: ConditionType,
    reason: Reason,
    says: &'static str,
    set: impl Fn(&mut Setting) + Send + Sync + 'static,
) -> Case {
    Case {
        name,
        stage,
        reason,
        says,
        set: Box::new(set),
    }
}

/// A fault that is one rule of the proxy.
pub fn rule(name: &'static str, stage: ConditionType, reason: Reason, says: &'static str, method: &'static str, act: Act) -> Case {
    case(name, stage, reason, says, move |s| s.rules.push(Rule::on(method, act.clone())))
}

pub fn status(code: u16, body: &str) -> Act {
    Act::Status(code, vec![("content-type", "text/html".into())], body.into())
}

fn replace(from: &'static str, to: &str) -> Act {
    Act::Replace(vec![(from, to.into())])
}

/// Nothing that would be wrong, in several ways.
pub fn none() -> Vec<Case> {
    let well = |name, set: fn(&mut Setting)| case(name, Resolved, Healthy, "", set);
    vec![
        well("nothing", |_| {}),
        well("TLS 1.2 only", |s| s.proxy.greeting = Greeting::Tls12),
        well("TLS 1.3 only", |s| s.proxy.greeting = Greeting::Tls13),
        well("any certificate, as the user wants", |s| {
            s.proxy.validity = Validity::NotYet;
            s.proxy.names = vec!["other.example.com".into()];
            s.trust = Some(Ok(Trust::Insecure));
        }),
        well("four failures of another user", |s| (s.proxy.lockout, s.failures) = (locks(), 4)),
        well("a session that ends in the middle", |s| {
            s.rules.push(Rule::on(READ, Act::Fault("NotAuthenticated", "", "")).times(1));
        }),
        well("a slow answer", |s| {
            s.rules.push(Rule::always(Act::Stall(Duration::from_millis(200))))
        }),
        well("a zone that is the same everywhere", |s| {
            s.changes = vec![Change::Tag("k8s-zone", "a", "HostSystem", "DC0_C0_H0")];
            s.requirements.categories = vec!["k8s-zone".into()];
            inside::first(s).place.labels = [("topology.csi.vmware.com/k8s-zone".to_owned(), "a".to_owned())].into();
        }),
        well("a machine in a vApp", |s| {
            s.spec.datacenters = vec!["DC0".into()];
            s.changes = vec![Change::Set("VirtualMachine", "vm-1", "vapp", "app")];
        }),
        well("an IPv6 address beside the IPv4 one", |s| {
            s.changes = vec![Change::Set("VirtualMachine", "vm-1", "address", "10.0.0.1,2001:db8::1")];
        }),
        well("a datastore that only the other vCenter has", |s| {
            s.requirements.others = 1;
            s.other = Some(Other {
                elsewhere: true,
                ..Other::default()
            });
            // Other nodes live there.
            s.nodes.clear();
            inside::wants(s, "ds:///vmfs/volumes/there/", false);
        }),
        well("a connection that was idle for too long", |s| {
            s.rules.push(Rule::on("CreateContainerView", Act::Close).times(1));
        }),
    ]
}

/// One fault each.
pub fn all() -> Vec<Case> {
    let parts = [network(), certificates(), others(), credentials(), logins()];
    parts.into_iter().flatten().chain(inside::all()).collect()
}

fn network() -> Vec<Case> {
    vec![
        case("the name does not exist", Resolved, NameNotResolved, "\"vcenter.invalid\"", |s| {
            s.spec.vc_ip = "vcenter.invalid".into()
        }),
        case("the address is an URL", Resolved, InvalidSpec, "without scheme", |s| {
            s.spec.vc_ip = "https://localhost".into()
        }),
        case("nothing listens", Connected, Unreachable, "Check the port", |s| {
            s.elsewhere = Some(Elsewhere::Closed)
        }),
        case("packets are swallowed", Connected, TimedOut, "did not answer", |s| {
            s.elsewhere = Some(Elsewhere::Blackhole)
        }),
        case("the handshake is never answered", Trusted, TimedOut, "did not answer", |s| {
            s.proxy.greeting = Greeting::Mute
        }),
        case("the connection ends in the handshake", Trusted, TlsFailed, "handshake", |s| {
            s.proxy.greeting = Greeting::Hangup
        }),
        case("TLS 1.1 at most", Trusted, TlsFailed, "handshake", |s| {
            s.proxy.greeting = Greeting::Tls11
        }),
        case("HTTP without TLS", Trusted, NotAVcenter, "does not speak TLS", |s| {
            s.proxy.greeting = Greeting::Plain
        }),
        case("an SSH server", Trusted, NotAVcenter, "does not speak TLS", |s| {
            s.proxy.greeting = Greeting::Ssh
        }),
    ]
}

fn certificates() -> Vec<Case> {
    vec![
        case("another authority", Trusted, CertificateUntrusted, "unknown authority", |s| {
            s.trust = Some(Ok(Trust::CaBundle(vdo_testbed::Authority::new("another").unwrap().pem())));
        }),
        case(
            "a self-signed certificate",
            Trusted,
            CertificateUntrusted,
            "unknown authority",
            |s| s.proxy.self_signed = true,
        ),
        case("an expired certificate", Trusted, CertificateExpired, "2020-12-31", |s| {
            s.proxy.validity = Validity::Expired
        }),
        case("a certificate of the future", Trusted, CertificateExpired, "2070-01-01", |s| {
            s.proxy.validity = Validity::NotYet
        }),
        case(
            "a certificate for another name",
            Trusted,
            CertificateNameMismatch,
            "other.example.com",
            |s| {
                s.proxy.names = vec!["other.example.com".into()];
            },
        ),
        case("a wrong SHA-256 thumbprint", Trusted, ThumbprintMismatch, "compare", |s| {
            s.trust = Some(Ok(Trust::Thumbprint(Thumbprint::sha256(b"another"))));
        }),
        case("a wrong SHA-1 thumbprint", Trusted, ThumbprintMismatch, "compare", |s| {
            s.trust = Some(Ok(Trust::Thumbprint(
                "00:11:22:33:44:55:66:77:88:99:AA:BB:CC:DD:EE:FF:00:11:22:33".parse().unwrap(),
            )));
        }),
        case("a CA bundle without certificates", Trusted, CaBundleInvalid, "CA", |s| {
            s.trust = Some(Ok(Trust::CaBundle("hello".into())))
        }),
        case(
            "a certificate that ends in ten days",
            Trusted,
            CertificateExpiresSoon,
            "Renew the certificate",
            |s| s.proxy.validity = Validity::EndsSoon,
        ),
    ]
}

fn others() -> Vec<Case> {
    let about = |name, reason, says, act| rule(name, IsVCenter, reason, says, ABOUT, act);
    vec![
        about("503 with a web page", BadAnswer, "503", status(503, OVERLOADED)),
        about("500 without SOAP", BadAnswer, "500", status(500, "oops")),
        about(
            "a web page",
            NotAVcenter,
            "web page",
            Act::Body("<!DOCTYPE html><html><body>It works!</body></html>".into()),
        ),
        about("nothing at /sdk", NotAVcenter, "/sdk", status(404, "")),
        about("someone who wants a login first", NotAVcenter, "401", status(401, "")),
        about(
            "a redirect to another server",
            NotAVcenter,
            "redirects",
            Act::Status(302, vec![("location", "https://elsewhere.invalid/sdk".into())], String::new()),
        ),
        about(
            "a redirect to no TLS",
            NotAVcenter,
            "redirects",
            Act::Status(301, vec![("location", "http://localhost/sdk".into())], String::new()),
        ),
        about("an ESXi host", NotAVcenter, "ESXi host", replace(">VirtualCenter<", ">HostAgent<")),
        about(
            "some other product",
            NotAVcenter,
            "calls itself",
            replace(">VirtualCenter<", ">Embedded<"),
        ),
        about("another namespace", NotAVcenter, "vSphere", replace("urn:vim25", "urn:vim99")),
        about("JSON", BadAnswer, "cannot be read", Act::Body("{}".into())),
        about(
            "a version that is none",
            BadAnswer,
            "not a vCenter version",
            replace("<version>8.0.3<", "<version>eight<"),
        ),
        about(
            "a version that no driver knows",
            VersionNotInMatrix,
            "5.5.0",
            replace("<version>8.0.3<", "<version>5.5.0<"),
        ),
        about("an answer that is cut off", BadAnswer, "closed the connection", Act::Truncate(300)),
        about("100 MB", BadAnswer, "larger than", Act::Flood(100 << 20)),
        about("a thousand laughs", BadAnswer, "DOCTYPE", Act::Body(LAUGHS.into())),
        about("an entity that is a file", BadAnswer, "DOCTYPE", Act::Body(FILE.into())),
        about("a hundred thousand levels", BadAnswer, "deeper", Act::Body("<a>".repeat(100_000))),
        about("no answer", BadAnswer, "closed the connection", Act::Close),
        about(
            "a vCenter that is starting",
            BadAnswer,
            "starting",
            Act::Fault("SystemError", "vpxd is starting", ""),
        ),
        about("60 s of silence", TimedOut, "did not answer", Act::Stall(Duration::from_secs(60))),
        about(
            "one byte each second",
            TimedOut,
            "did not answer",
            Act::Trickle(Duration::from_secs(1)),
        ),
    ]
}

fn credentials() -> Vec<Case> {
    let secret = "vmware-system-vdo/vc1-credentials";
    vec![
        case(
            "no CA bundle where the connection says",
            Trusted,
            CaBundleInvalid,
            "vcenter-ca",
            |s| s.trust = Some(Err(no_ca())),
        ),
        case("no Secret", CredentialsFound, SecretNotFound, "Create the Secret", |s| {
            s.credentials = Err(ReconcileError::SecretNotFound {
                connection: "vc1".into(),
                name: "vc1-credentials".into(),
                places: "vmware-system-vdo".into(),
                source: None,
            });
        }),
        case(
            "a Secret of another type",
            CredentialsFound,
            SecretWrongType,
            "basic-auth",
            move |s| {
                s.credentials = Err(ReconcileError::SecretWrongType {
                    connection: "vc1".into(),
                    secret: secret.into(),
                    found: "Opaque".into(),
                });
            },
        ),
        case(
            "a Secret without a password",
            CredentialsFound,
            SecretIncomplete,
            "password",
            move |s| {
                s.credentials = Err(ReconcileError::SecretIncomplete {
                    connection: "vc1".into(),
                    secret: secret.into(),
                    key: "password",
                });
            },
        ),
    ]
}

fn logins() -> Vec<Case> {
    let login = |name, reason, says, act| rule(name, Authenticated, reason, says, "Login", act);
    vec![
        case(
            "a wrong password",
            Authenticated,
            InvalidCredentials,
            "right user name and password",
            |s| {
                s.credentials.as_mut().unwrap().password = Secret::new("wrong");
            },
        ),
        case("an unknown user", Authenticated, InvalidCredentials, "unknown", |s| {
            s.credentials.as_mut().unwrap().user = "unknown@vsphere.local".into()
        }),
        case("a user without a domain", Authenticated, InvalidCredentials, "domain", |s| {
            s.credentials.as_mut().unwrap().user = "unknown".into()
        }),
        case("an account that others have locked", Authenticated, AccountLocked, "Unlock", |s| {
            (s.proxy.lockout, s.failures) = (locks(), 5)
        }),
        login(
            "a password that is too old",
            PasswordExpired,
            "new password",
            Act::Fault("PasswordExpired", "The password has expired.", ""),
        ),
        login(
            "a password that is too old, as older vCenters say it",
            PasswordExpired,
            "new password",
            Act::Fault("InvalidLogin", "User password expired.", ""),
        ),
        login(
            "a user without any permission",
            LoginRefused,
            "Read-only",
            Act::Fault(
                "NoPermission",
                "Permission to perform this operation was denied.",
                r#"<object type="Folder">group-d1</object><privilegeId>System.View</privilegeId>"#,
            ),
        ),
        login(
            "a login that is never answered",
            TimedOut,
            "did not answer",
            Act::Stall(Duration::from_secs(60)),
        ),
        login("503 for the login", BadAnswer, "503", status(503, OVERLOADED)),
        login(
            "a login answered with a web page",
            BadAnswer,
            "cannot be read",
            Act::Body(OVERLOADED.into()),
        ),
        login(
            "no room for one more session",
            BadAnswer,
            "sessions",
            Act::Fault("SystemError", "The maximum number of sessions was reached.", ""),
        ),
        rule(
            "sessions that end at once",
            Authenticated,
            SessionLost,
            "sessions",
            "CreateContainerView",
            Act::Fault("NotAuthenticated", "The session is not authenticated.", ""),
        ),
    ]
}
