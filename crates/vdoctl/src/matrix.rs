// SPDX-License-Identifier: Apache-2.0
//! `vdoctl matrix`: calls its verbs, implements `list`, and loads the index of `--matrix` with the header that answers begin with.

mod bars;
mod bounds;
pub(super) mod config_maps;
mod diff;
mod explain;
mod init;
mod lint;
pub(super) mod load;
mod notes;
mod publish;
mod publish_target;
mod query;
mod resolve;
pub(super) mod show;
mod sign;
mod source;
mod what_if;
mod which_matrix;
mod why_not;
mod withdraw_and_deprecate;

use super::args::{Format, Global, List, Matrix as Args, MatrixFile, MatrixVerb, Platform};
use super::context::{Context, now};
use super::error::unknown;
use super::views::matrix::{KnownMatrixView, MatrixListView, NewestView, VersionView};
use super::{Answer, CliError, Exit, style};
pub(super) use bars::minors;
use bounds::bounds;
use k8s_openapi::jiff::Timestamp;
use query::{Question, question};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use vdo::reconcile::{ReconcileError, supply};
use vdo_api::api::chain;
use vdo_api::types::{KubernetesVersion, VersionRange, count, shell_word};
use vdo_core::matrix::{Confidence, Driver, Entry, Index, State, is_old, knowledge, known_up_to};
use vdo_source::fetch::{ChartRepository, FetchError, LoadedIndex, Records, RepositoryError, embedded, index_file};
pub(super) use which_matrix::{Choice, Used, repeated};

pub(super) async fn run(args: &Args, global: &Global) -> Result<Answer, CliError> {
    match &args.verb {
        MatrixVerb::Resolve(args) => resolve::run(args, global).await,
        MatrixVerb::Explain(args) => explain::explain(args, global).await,
        MatrixVerb::WhyNot(args) => why_not::why_not(args, global).await,
        MatrixVerb::List(args) => list(args, global).await,
        MatrixVerb::Show(args) => show::run(args, global).await,
        MatrixVerb::Lint(args) => lint::run(args).await,
        MatrixVerb::Load(args) => load::run(args, global).await,
        MatrixVerb::Sign(args) => sign::sign(args),
        MatrixVerb::Source(args) => source::run(args, global).await,
        MatrixVerb::Verify(args) => sign::verify(args).await,
        MatrixVerb::Init(args) => init::run(args, global).await,
        MatrixVerb::Publish(args) => publish::run(args, global).await,
        MatrixVerb::Withdraw(args) => withdraw_and_deprecate::run(args, "withdrawn").await,
        MatrixVerb::Deprecate(args) => withdraw_and_deprecate::run(args, "deprecated").await,
        MatrixVerb::Diff(args) => diff::run(args, global).await,
    }
}

/// Whether the registries of images are asked, each in its time.
pub(super) fn asks_registries(args: &Args) -> bool {
    matches!(&args.verb, MatrixVerb::Publish(args) if args.resolving.resolve_digests)
}

/// `vdoctl matrix resolve`.
pub(super) async fn resolve(args: &super::args::Resolve, global: &Global) -> Result<Answer, CliError> {
    resolve::run(args, global).await
}

/// The index of this binary.
pub(super) fn embedded_index() -> Result<Index, CliError> {
    Index::parse(embedded::index()).map_err(|error| CliError::of(Exit::Refused, &error))
}

/// The matrix that is named, or that of this binary, with what is in it: a matrix that is named has to be good. Which one a verb decides with
/// without a name is [`Choice`]'s to say.
pub(super) async fn repository(named: &MatrixFile, global: &Global) -> Result<(ChartRepository, LoadedIndex), CliError> {
    let repository = named.repository();
    if repository.config_maps().is_some() {
        let context = Context::open(global).await?;
        supply(&repository, &context.ports.reader, context.namespace()).await?;
    }
    let place = repository.to_string();
    let loaded = index(&repository).await.map_err(|error| match &error {
        RepositoryError::Index(wrong) => {
            let reported = CliError::of(Exit::Refused, wrong);
            CliError {
                what: format!("{place}: {}", reported.what),
                remedy: format!("To list all mistakes: vdoctl matrix lint {}", shell_word(&place)),
                ..reported
            }
        }
        RepositoryError::Fetch(wrong) => match &**wrong {
            FetchError::Index(cause) if !repository.is_polled() && repository.config_maps().is_none() => CliError::new(
                Exit::NotFound,
                chain(cause.as_ref()),
                "Name a matrix index, or a folder with index.yaml",
            ),
            _ => CliError::from(ReconcileError::from(error)),
        },
        _ => CliError::from(ReconcileError::from(error)),
    })?;
    Ok((repository, loaded))
}

/// What a cluster asks of a matrix.
pub(super) async fn question_of(loaded: &LoadedIndex, global: &Global) -> Result<Question, CliError> {
    question(&Platform::default(), global, &loaded.index).await
}

/// Asks the source once, as often as a command does.
async fn index(repository: &ChartRepository) -> Result<LoadedIndex, RepositoryError> {
    if repository.is_polled() {
        repository.poll().await;
    }
    repository.index(&Records::default()).await
}

/// The index of a repository.
///
/// # Errors
/// When the source does not give it.
pub(super) async fn index_of(repository: &ChartRepository) -> Result<Arc<Index>, RepositoryError> {
    Ok(index(repository).await?.index)
}

/// An index, and which one it is.
struct Loaded {
    index: Arc<Index>,
    used: Used,
    now: Timestamp,
    /// The flags with which the same is asked again.
    flags: String,
}

impl Loaded {
    /// The index that this command decides with.
    async fn read(named: &MatrixFile, global: &Global) -> Result<Self, CliError> {
        let choice = Choice::at_desk(named, global).await?;
        Ok(Self {
            index: choice.loaded.index,
            used: choice.used,
            now: now(),
            flags: repeated(named, global),
        })
    }

    /// The header of an answer for people.
    fn header(&self) -> String {
        format!("{}\n", self.used.line())
    }

    /// An answer from this index, with what its reader should know of it.
    fn answer(&self, mut answer: Answer) -> Answer {
        let source = self.used.source();
        answer = self.used.warning().into_iter().fold(answer, Answer::note);
        for field in &self.index.unknown_fields {
            let line = format!(
                "{} {source}: this vdoctl does not know field {field}, and ignores it",
                style::warn("warning:")
            );
            answer = answer.note(line);
        }
        if let Some(expires) = self.index.expires.filter(|_| self.index.is_stale(self.now)) {
            let what = format!("the matrix ({source}, version {}) expired at {expires}", self.index.version);
            let line = format!(
                "{} {what}: the operator upgrades nothing with an expired matrix. Use a newer matrix, or a newer vdoctl.",
                style::warn("warning:")
            );
            answer = answer.note(line);
        }
        if let Some(old) = is_old(self.index.generated, self.now) {
            let what = format!("the matrix ({source}, version {})", self.index.version);
            answer = answer.note(format!("{} {what}: {old}. Use a newer matrix.", style::warn("warning:")));
        }
        answer
    }

    /// How old it is beside the newest Kubernetes that it knows, in a line.
    fn age(&self) -> String {
        let generated = self.index.generated.map(|at| at.to_zoned(jiff::tz::TimeZone::UTC).date());
        let days = generated.zip(known_up_to(&self.index).and_then(|(_, released)| released));
        let days = days.and_then(|(generated, released)| Some(released.until(generated).ok()?.get_days()));
        let beside = match days {
            Some(days) if days >= 0 => format!(" ({} before)", count(usize::try_from(days).unwrap_or_default(), "day")),
            _ => String::new(),
        };
        let knows = knowledge(&self.index).map(|knows| format!("covers {knows}{beside}"));
        let generated = generated.map(|day| format!("generated on {day}"));
        let facts: Vec<String> = [generated, knows].into_iter().flatten().collect();
        match facts.is_empty() {
            true => String::new(),
            false => format!("Matrix version {}: {}\n", self.index.version, facts.join(", ")),
        }
    }

    /// Which index it is, for programs.
    fn view(&self) -> KnownMatrixView {
        let (kubernetes, released) = known_up_to(&self.index).unzip();
        KnownMatrixView {
            matrix: self.used.view(),
            kubernetes: NewestView {
                newest: kubernetes.map(|version| version.minor()),
                released: released.flatten(),
            },
            old: is_old(self.index.generated, self.now).is_some(),
        }
    }
}

fn not_text(name: &str) -> CliError {
    CliError::new(
        Exit::Refused,
        format!("{name} is not UTF-8 text"),
        "Name a matrix index; it is YAML or JSON.",
    )
}

fn bytes(path: &Path) -> Result<Vec<u8>, CliError> {
    let file = index_file(path);
    std::fs::read(&file).map_err(|error| {
        let what = format!("cannot read {}: {error}", file.display());
        CliError::new(Exit::NotFound, what, "Name a matrix index, or a folder with index.yaml")
    })
}

/// A driver by its name, or by the name without `vsphere-`.
pub(crate) fn driver<'a>(index: &'a Index, typed: &str) -> Result<(&'a str, &'a Driver), CliError> {
    let word = typed.to_lowercase();
    let names: Vec<&str> = index.drivers.keys().map(String::as_str).collect();
    let found = index
        .drivers
        .iter()
        .find(|(name, _)| **name == word || name.strip_prefix("vsphere-") == Some(word.as_str()));
    found
        .map(|(name, driver)| (name.as_str(), driver))
        .ok_or_else(|| unknown("driver", typed, &names))
}

pub(super) async fn list(args: &List, global: &Global) -> Result<Answer, CliError> {
    let loaded = Loaded::read(&args.index, global).await?;
    let index = &loaded.index;
    let only = args
        .driver
        .as_ref()
        .map(|typed| driver(index, typed))
        .transpose()?
        .map(|(name, _)| name);
    let entries: Vec<(&str, &Entry)> = index
        .drivers
        .iter()
        .filter(|(name, _)| only.is_none_or(|only| *name == only))
        .flat_map(|(name, driver)| driver.versions.iter().map(move |entry| (name.as_str(), entry)))
        .filter(|(_, entry)| {
            args.kubernetes
                .as_ref()
                .is_none_or(|version| entry.kubernetes.range.contains(version.numbers()))
        })
        .filter(|(_, entry)| {
            args.vcenter
                .as_ref()
                .is_none_or(|version| entry.vsphere.range.contains(version.numbers()))
        })
        .collect();
    let format = args.output.or_table();
    let here = match (&args.kubernetes, format) {
        (Some(version), _) => Some(version.clone()),
        (None, Format::Table) => cluster_version(global).await,
        _ => None,
    };
    let view = MatrixListView {
        matrix: loaded.view(),
        versions: entries.iter().map(|(name, entry)| VersionView::of(name, entry)).collect(),
    };
    let text = || {
        if entries.is_empty() {
            return loaded.header();
        }
        if format != Format::Wide {
            return loaded.header() + &bars::draw(index, &entries, here.as_ref()) + &loaded.age();
        }
        let heading = ["DRIVER", "VERSION", "KUBERNETES", "VSPHERE", "STATE AND EVIDENCE"];
        loaded.header() + &style::table(&heading, &entries.iter().map(|(name, e)| row(name, e)).collect::<Vec<_>>()) + &loaded.age()
    };
    let answer = Answer::view(format, &view, text)?;
    let answer = if entries.is_empty() {
        answer.note("no version in the matrix meets these conditions").exit(Exit::NotFound)
    } else {
        answer
    };
    Ok(loaded.answer(answer))
}

/// The version of the cluster, if there is one that answers at once: it is only marked.
async fn cluster_version(global: &Global) -> Option<KubernetesVersion> {
    const SOON: Duration = Duration::from_secs(1);
    let soon = Global {
        timeout: Some(SOON),
        ..global.clone()
    };
    let context = tokio::time::timeout(SOON, Context::open(&soon)).await.ok()?.ok()?;
    Some(context.kubernetes)
}

fn row(name: &str, entry: &Entry) -> Vec<String> {
    let needs = entry.requires.iter().map(|required| format!("; needs {required}"));
    let evidence = confidence(entry.kubernetes.confidence);
    vec![
        vdo_core::drivers::short(name).to_owned(),
        entry.version.to_string(),
        bounds(&entry.kubernetes.range),
        bounds(&entry.vsphere.range),
        // It may be several sentences, so it comes last.
        format!("{} ({evidence} evidence){}", state(entry), needs.collect::<String>()),
    ]
}

fn state(entry: &Entry) -> String {
    match &entry.state {
        State::Good => style::good("good"),
        State::Deprecated(verdict) => format!("{}: {}", style::warn("deprecated"), verdict.reason),
        State::Withdrawn(verdict) => format!("{}: {}", style::bad("withdrawn"), verdict.reason),
    }
}

fn confidence(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::Primary => "primary",
        Confidence::Secondary => "secondary",
        Confidence::Unverified => "unverified",
    }
}

/// From the lowest to the highest bound of several ranges; an open end stays open.
pub(super) fn span<'a>(ranges: impl Iterator<Item = &'a VersionRange> + Clone) -> String {
    let numbers = |text: &str| text.split('.').map(|part| part.parse::<u64>().unwrap_or(0)).collect::<Vec<_>>();
    let open = |bound: fn(&VersionRange) -> Option<&str>| ranges.clone().any(|range| bound(range).is_none());
    let min = ranges
        .clone()
        .filter_map(VersionRange::min)
        .min_by_key(|text| numbers(text))
        .filter(|_| !open(VersionRange::min));
    let max = ranges
        .clone()
        .filter_map(VersionRange::max)
        .max_by_key(|text| numbers(text))
        .filter(|_| !open(VersionRange::max));
    VersionRange::new(min, max).map(|range| range.to_string()).unwrap_or_default()
}
