// SPDX-License-Identifier: Apache-2.0
//! Every error that a person can do something about says what, apart from what happened.

use std::borrow::Cow;
use std::path::PathBuf;
use std::time::Duration;
use vdo::cluster::{ApiMessage, ClientError, ClusterError};
use vdo::reconcile::ReconcileError;
use vdo_api::types::{Digest, DriverVersion, ObjectId, Remedy};
use vdo_api::yaml::YamlError;
use vdo_core::chart::add_release::AddError;
use vdo_core::chart::import::ImportError;
use vdo_core::chart::values::ValuesError;
use vdo_core::chart::{ArchiveError, ChartError, DocumentError, PackageError, RenderError};
use vdo_core::driverconfig::ConfigError;
use vdo_core::matrix::{Cause, IndexError, NoFit, PartsError};
use vdo_core::patches::PatchRefused;
use vdo_source::fetch::{ConfigMaps, ConfigMapsError, FetchError, Led, RepositoryError, RolledBack, WebError};

fn text() -> String {
    "x".into()
}

fn version() -> DriverVersion {
    "3.7.3".parse().expect("a version")
}

fn said() -> ApiMessage {
    ApiMessage {
        code: 403,
        message: text(),
    }
}

fn no_yaml() -> YamlError {
    YamlError::Write(text())
}

fn unreadable() -> std::io::Error {
    std::io::Error::other("x")
}

fn digest() -> Digest {
    Digest::of(b"x")
}

/// An error and what it advises.
fn reported(error: &dyn Remedy) -> (String, Option<Cow<'static, str>>) {
    (error.to_string(), error.remedy())
}

/// A sentence of its own: a capital letter, a full stop, and not part of what happened.
fn assert_has_remedy(error: &dyn Remedy) {
    let (what, remedy) = reported(error);
    assert!(remedy.is_some(), "{error:?} has no remedy");
    let remedy = remedy.unwrap_or_default();
    assert!(remedy.starts_with(char::is_uppercase) && remedy.ends_with('.'), "{remedy:?}");
    let bare = remedy.trim_end_matches('.').to_lowercase();
    assert!(!what.to_lowercase().contains(&bare), "{what:?} says {remedy:?} too");
    assert!(!what.ends_with('.'), "{what:?}");
}

fn charts() -> Vec<Box<dyn Remedy>> {
    let at = || (text(), 1, text(), text());
    let (file, line, message, source) = at();
    vec![
        Box::new(ArchiveError::TooLarge { what: "x", limit: 1 }),
        Box::new(ArchiveError::Unreadable(unreadable())),
        Box::new(ArchiveError::Damaged("x")),
        Box::new(ArchiveError::Refused { path: text(), reason: "x" }),
        Box::new(ArchiveError::Empty),
        Box::new(ArchiveError::Chart(ChartError::NotText { file: text() })),
        Box::new(ChartError::Missing { file: text() }),
        Box::new(ChartError::NotText { file: text() }),
        Box::new(ChartError::Yaml {
            file: text(),
            source: no_yaml(),
        }),
        Box::new(ChartError::Metadata(text())),
        Box::new(ChartError::VersionMismatch {
            chart: version(),
            release: version(),
        }),
        Box::new(ChartError::Release {
            version: version(),
            problems: text(),
        }),
        Box::new(ChartError::Language {
            file,
            line,
            message,
            text: source,
        }),
        Box::new(ChartError::Lint {
            file: text(),
            line: 1,
            message: "x",
            text: text(),
        }),
        Box::new(PackageError::NoRelease {
            version: version(),
            known: text(),
        }),
        Box::new(PackageError::Yaml {
            file: text(),
            source: no_yaml(),
        }),
        Box::new(PackageError::Invalid {
            file: text(),
            problem: text(),
        }),
        Box::new(PackageError::Refused {
            version: version(),
            problems: vec![text()],
        }),
        Box::new(AddError::Listed {
            file: text(),
            version: version(),
        }),
        Box::new(AddError::Nothing),
        Box::new(AddError::Text {
            file: text(),
            problem: text(),
        }),
        Box::new(AddError::Document(DocumentError::NotAMap)),
        Box::new(ImportError::Name(text())),
        Box::new(ImportError::Empty),
        Box::new(ImportError::Twice {
            object: Box::new(ObjectId::new("", "Secret", "n", "s")),
            first: text(),
            second: text(),
        }),
        Box::new(ImportError::NoImage {
            name: text(),
            known: text(),
        }),
        Box::new(ImportError::Different(text())),
        Box::new(ImportError::Package(PackageError::NoRelease {
            version: version(),
            known: text(),
        })),
        Box::new(ValuesError::NotAMap),
        Box::new(ValuesError::Schema(text())),
        Box::new(DocumentError::Missing("kind")),
        Box::new(RenderError::Values {
            chart: text(),
            source: ValuesError::NotAMap,
        }),
        Box::new(RenderError::TooLarge {
            chart: text(),
            file: text(),
        }),
        Box::new(RenderError::Yaml {
            chart: text(),
            file: text(),
            source: no_yaml(),
        }),
    ]
}

fn web(error: WebError) -> Box<dyn Remedy> {
    Box::new(FetchError::Web {
        url: text(),
        source: Box::new(error),
    })
}

fn place() -> ConfigMaps {
    "configmap://n/m".parse().expect("an address")
}

fn config_maps(source: ConfigMapsError) -> Box<dyn Remedy> {
    Box::new(FetchError::ConfigMaps { place: text(), source })
}

fn status(code: u16) -> WebError {
    WebError::Status {
        code: http::StatusCode::from_u16(code).expect("a status"),
        reported: String::new(),
        wait: None,
    }
}

fn sources() -> Vec<Box<dyn Remedy>> {
    vec![
        Box::new(FetchError::NotFound {
            store: text(),
            locations: text(),
        }),
        Box::new(FetchError::DigestMismatch {
            what: text(),
            expected: digest(),
            found: digest(),
        }),
        Box::new(FetchError::Index(Box::new(FetchError::TooLarge {
            path: PathBuf::new(),
            limit: 1,
        }))),
        Box::new(FetchError::Read {
            path: PathBuf::new(),
            source: unreadable(),
        }),
        config_maps(ConfigMapsError::Missing(place())),
        config_maps(ConfigMapsError::NotRead),
        config_maps(ConfigMapsError::Elsewhere {
            place: place(),
            namespace: text(),
        }),
        config_maps(ConfigMapsError::Parts(PartsError::Contents(text()))),
        Box::new(RepositoryError::Index(IndexError::NotText)),
        Box::new(RepositoryError::RolledBack(RolledBack { found: 1, seen: 2 })),
        web(WebError::Asked(text())),
        web(WebError::Redirect(Led::TooOften)),
        web(WebError::TooLarge { limit: 1 }),
        web(WebError::TooSlow { bytes: 1, seconds: 1 }),
        web(WebError::Damaged),
        web(status(401)),
        web(status(404)),
        web(status(407)),
        web(status(500)),
        Box::new(IndexError::Other("a web page")),
        Box::new(IndexError::Yaml(no_yaml())),
        Box::new(IndexError::Foreign {
            field: "kind",
            found: text(),
            expected: "x",
        }),
        Box::new(IndexError::Invalid {
            at: text(),
            problem: text(),
        }),
    ]
}

fn cluster() -> Vec<Box<dyn Remedy>> {
    let id = |kind: &str| ObjectId::new("", kind, "n", "s");
    let immutable = |kind| -> Box<dyn Remedy> {
        Box::new(ClusterError::Immutable {
            id: id(kind),
            source: said(),
        })
    };
    vec![
        Box::new(ClusterError::Forbidden {
            verb: "get".into(),
            id: ObjectId::new("", "Node", "", "n"),
            rule: "{verbs: [get]}".into(),
            source: said(),
        }),
        Box::new(ClusterError::Conflict {
            id: id("Secret"),
            fields: vec![],
        }),
        Box::new(ClusterError::NotOurs {
            id: id("Secret"),
            who: text(),
        }),
        Box::new(ClusterError::NotServed {
            what: text(),
            kind: text(),
            api_version: text(),
            source: said(),
        }),
        Box::new(ClusterError::PodDenied {
            workload: ObjectId::new("apps", "DaemonSet", "n", "d"),
            source: said(),
        }),
        Box::new(ClusterError::Denied {
            id: id("Secret"),
            source: said(),
        }),
        immutable("StorageClass"),
        immutable("PersistentVolume"),
        immutable("Namespace"),
        immutable("DaemonSet"),
        Box::new(ClientError::NotText { path: PathBuf::new() }),
        Box::new(ClientError::TimedOut {
            what: text(),
            after: Duration::from_secs(1),
            remedy: "Check it.",
        }),
    ]
}

fn specification() -> Vec<Box<dyn Remedy>> {
    let connection = text;
    vec![
        Box::new(ConfigError::NoConnection),
        Box::new(ConfigError::TooManyConnections { count: 6 }),
        Box::new(ConfigError::SameName { name: text() }),
        Box::new(ConfigError::Topology {
            categories: vec![],
            because: "x",
        }),
        Box::new(ConfigError::ClusterId { id: text(), because: "x" }),
        Box::new(ReconcileError::NoConnections { namespace: text() }),
        Box::new(ReconcileError::ConnectionNotFound {
            field: "x".into(),
            name: text(),
            known: text(),
        }),
        Box::new(ReconcileError::SecretNotFound {
            connection: connection(),
            name: text(),
            places: text(),
            source: None,
        }),
        Box::new(ReconcileError::SecretElsewhere {
            connection: connection(),
            secret: text(),
            namespace: text(),
        }),
        Box::new(ReconcileError::ServerNotNamed {
            connection: connection(),
            server: text(),
            secret: text(),
            servers: text(),
        }),
        Box::new(ReconcileError::SecretWrongType {
            connection: connection(),
            secret: text(),
            found: text(),
        }),
        Box::new(ReconcileError::SecretIncomplete {
            connection: connection(),
            secret: text(),
            key: "username",
        }),
        Box::new(ReconcileError::SecretLineBreak {
            connection: connection(),
            secret: text(),
            key: "password",
        }),
        Box::new(ReconcileError::CaBundle {
            connection: connection(),
            place: text(),
            key: text(),
        }),
        Box::new(ReconcileError::CaBundleContent {
            connection: connection(),
            place: text(),
            key: text(),
            found: text(),
        }),
        Box::new(ReconcileError::NoClusterId),
        Box::new(ReconcileError::Patch {
            namespace: text(),
            refused: Box::new(PatchRefused {
                patch: text(),
                subject: text(),
                problem: text(),
            }),
        }),
        Box::new(ReconcileError::NewerDefinition {
            definition: text(),
            versions: text(),
        }),
        Box::new(ReconcileError::RightsMissing {
            driver: text(),
            version: text(),
            lacking: text(),
            matrix: Some(text()),
        }),
        Box::new(ReconcileError::from(RepositoryError::from(IndexError::NotText))),
        Box::new(ReconcileError::from(vdo_core::drivers::SetupError::from(ConfigError::NoConnection))),
    ]
}

#[test]
fn remedy_every_error_that_can_be_fixed_has_one() {
    let all = [charts(), sources(), cluster(), specification()];
    all.iter().flatten().for_each(|error| assert_has_remedy(error.as_ref()));
}

#[test]
fn remedy_errors_that_time_or_others_fix_have_none() {
    let id = ObjectId::new("", "Secret", "n", "s");
    let none: [Box<dyn Remedy>; 7] = [
        Box::new(ClusterError::Refused { id, source: said() }),
        Box::new(ClusterError::NotLeading { what: text() }),
        Box::new(ClusterError::Unfinished { what: text(), why: text() }),
        Box::new(ClusterError::TimedOut {
            verb: text(),
            what: text(),
            after: Duration::from_secs(1),
        }),
        Box::new(ReconcileError::InvalidSpec {
            object: text(),
            field: text(),
            problem: text(),
        }),
        Box::new(ReconcileError::ForeignDriver { message: text() }),
        Box::new(RenderError::Refused {
            chart: text(),
            message: text(),
        }),
    ];
    none.iter()
        .for_each(|error| assert_eq!(reported(error.as_ref()).1, None, "{error:?}"));
}

/// The missing right is named although the missing Secret is what happened.
#[test]
fn remedy_secret_that_may_not_be_read_names_rule_too() {
    let error = ReconcileError::SecretNotFound {
        connection: text(),
        name: text(),
        places: text(),
        source: Some(ClusterError::Forbidden {
            verb: "get".into(),
            id: ObjectId::new("", "Node", "", "n"),
            rule: "{verbs: [get]}".into(),
            source: said(),
        }),
    };
    let (_, remedy) = reported(&error);
    let remedy = remedy.expect("a remedy");
    assert!(
        remedy.starts_with("Create the Secret") && remedy.ends_with("Add this rule to the role of the operator: {verbs: [get]}."),
        "{remedy}"
    );
}

#[test]
fn remedy_several_drivers_without_choice_are_named() {
    let no_fit = |driver: &str, others| NoFit {
        driver: driver.into(),
        cause: Cause::NothingFits,
        rejected: vec![],
        platform: text(),
        advice: Some(format!("Pin {driver}")),
        not_yet: None,
        others,
        fitting: [].into(),
    };
    let remedy = |error: &NoFit| error.remedy().map(Cow::into_owned);
    assert_eq!(remedy(&no_fit("a", vec![])).as_deref(), Some("Pin a."));
    let both = no_fit("a", vec![no_fit("b", vec![])]);
    assert_eq!(remedy(&both).as_deref(), Some("a: Pin a. b: Pin b."));
}
