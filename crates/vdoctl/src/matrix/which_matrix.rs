// SPDX-License-Identifier: Apache-2.0
//! Chooses the matrix that a command uses: `--matrix`, the operator's stored matrix, the operator's source, or the matrix in vdoctl.
//!
//! Every verb takes its matrix from here, so that no verb decides differently from the operator.
//!
//! ```text
//! --matrix  ->  the operator's matrix as stored in the cluster  ->  the operator's source, if unchanged  ->  the matrix in this vdoctl
//! ```

use super::super::args::{Global, MatrixFile};
use super::super::context::{Context, Deployed};
use super::super::error::capital;
use super::super::operator_running::Build;
use super::super::views::matrix::MatrixView;
use super::super::{CliError, Exit, style};
use super::{index, repository};
use jiff::Timestamp;
use std::sync::Arc;
use std::time::Duration;
use vdo::cluster::ClusterError;
use vdo::reconcile::{self, ReconcileError, supply};
use vdo_api::api::{MatrixStatus, VDOConfig};
use vdo_api::types::{Digest, shell_word};
use vdo_core::plan::Inventory;
use vdo_source::fetch::{ChartRepository, Kept, LoadedIndex, MatrixSource, embedded};

/// How long a cluster may take that a verb does not need.
const SOON: Duration = Duration::from_secs(3);

/// A matrix, and whose it is.
pub(crate) struct Choice {
    /// The index and its charts.
    pub repository: ChartRepository,
    /// The index.
    pub loaded: LoadedIndex,
    /// Which one it is.
    pub used: Used,
}

/// Which matrix is decided with, for the header of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Used {
    source: String,
    version: u64,
    generated: Option<Timestamp>,
    expires: Option<Timestamp>,
    digest: Digest,
    by: By,
    warning: Option<String>,
}

/// Why it is this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum By {
    /// `--matrix` names it.
    Flag,
    /// The operator of this cluster decides with it.
    Operator(String),
    /// It is in this vdoctl, for this reason.
    Vdoctl(String),
}

impl Choice {
    /// In a cluster that answers: the matrix that is named, else the one that its operator decides with, else that of this vdoctl.
    pub(crate) async fn in_cluster(named: &MatrixFile, context: &Context, global: &Global) -> Result<Self, CliError> {
        if named.matrix.is_some() {
            return Self::given(named, global).await;
        }
        match context.find_config().await? {
            Deployed::Config(config) => Self::of_operator(named, context, &config).await,
            _ => Self::own(format!("there is no VDOConfig in cluster {}", context.name), None).await,
        }
    }

    /// For a verb that needs no cluster: one that is configured is asked, if it answers soon.
    pub(crate) async fn at_desk(named: &MatrixFile, global: &Global) -> Result<Self, CliError> {
        if named.matrix.is_some() {
            return Self::given(named, global).await;
        }
        let soon = Global {
            timeout: Some(global.timeout().min(SOON)),
            ..global.clone()
        };
        let look = async {
            let context = Context::open(&soon).await?;
            let deployed = context.find_config().await?;
            Ok((context, deployed))
        };
        let late = |_| {
            let what = format!("the cluster has not answered within {} s", soon.timeout().as_secs());
            Err(CliError::new(Exit::TimedOut, what, ""))
        };
        match tokio::time::timeout(soon.timeout(), look).await.unwrap_or_else(late) {
            Ok((context, Deployed::Config(config))) => Self::of_operator(named, &context, &config).await,
            Ok((context, _)) => Self::own(format!("there is no VDOConfig in cluster {}", context.name), None).await,
            Err(error) if error.no_cluster => Self::own("no cluster is configured".into(), None).await,
            Err(error) => {
                let warning = format!("it is not known which matrix the operator uses: {}", advised(&error));
                Self::own("the cluster cannot be read".into(), Some(warning)).await
            }
        }
    }

    async fn given(named: &MatrixFile, global: &Global) -> Result<Self, CliError> {
        let (repository, loaded) = repository(named, global).await?;
        Ok(Self::of(repository, loaded, By::Flag, None))
    }

    /// That of this vdoctl.
    pub(crate) async fn own(why: String, warning: Option<String>) -> Result<Self, CliError> {
        let repository = ChartRepository::new(MatrixSource::Embedded);
        let loaded = index(&repository).await.map_err(ReconcileError::from)?;
        Ok(Self::of(repository, loaded, By::Vdoctl(why), warning))
    }

    fn of(repository: ChartRepository, loaded: LoadedIndex, by: By, warning: Option<String>) -> Self {
        let used = Used {
            source: loaded.source.clone(),
            version: loaded.index.version,
            generated: loaded.index.generated,
            expires: loaded.index.expires,
            digest: loaded.digest.clone(),
            by,
            warning,
        };
        Self { repository, loaded, used }
    }

    /// The one that the operator reports.
    async fn of_operator(named: &MatrixFile, context: &Context, config: &VDOConfig) -> Result<Self, CliError> {
        let cluster = || context.name.clone();
        let Some(reported) = config.status.as_ref().and_then(|status| status.matrix.as_ref()) else {
            return Self::own(format!("the operator of cluster {} has not reported a matrix yet", cluster()), None).await;
        };
        let is_embedded = reported.source.parse() == Ok(MatrixSource::Embedded);
        if is_embedded && reported.digest == Digest::of(embedded::index()).to_string() {
            let own = Self::own(String::new(), None).await?;
            return Ok(Self::of(own.repository, own.loaded, By::Operator(cluster()), None));
        }
        let missing = match kept(context, config, reported).await {
            Ok(kept) => return Self::read(MatrixSource::Kept(kept), named, context).await,
            Err(missing) => missing,
        };
        if let Some(source) = open_source(reported)
            && let Ok(found) = Self::read(source, named, context).await
            && found.loaded.digest.to_string() == reported.digest
        {
            return Ok(found);
        }
        let which = match is_embedded {
            true => "the matrix that is built into the operator".to_owned(),
            false => reported.source.clone(),
        };
        let remedy = match is_embedded {
            true => of_another_build(&Build::find(context).await),
            false => format!(
                "Name the operator's matrix, with its keys and credentials if it needs them: --matrix {}",
                shell_word(&reported.source)
            ),
        };
        let warning = format!(
            "this answer does not use the matrix of the operator of cluster {} ({which}, version {}). vdoctl cannot read the operator's matrix: \
             {missing}. {remedy}",
            cluster(),
            reported.version
        );
        Self::own("the matrix of the operator cannot be read here".into(), Some(warning)).await
    }

    /// An index of the operator. Keys that are named have to have signed it.
    async fn read(source: MatrixSource, named: &MatrixFile, context: &Context) -> Result<Self, CliError> {
        let repository = ChartRepository::at(Some(source), named.matrix_keys.clone(), None);
        match supply(&repository, &context.ports.reader, context.namespace()).await {
            Ok(()) | Err(ClusterError::Forbidden { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        let loaded = index(&repository).await.map_err(ReconcileError::from)?;
        Ok(Self::of(repository, loaded, By::Operator(context.name.clone()), None))
    }
}

/// What the cluster keeps of the matrix that the operator reports, or why that is not to be had.
async fn kept(context: &Context, config: &VDOConfig, reported: &MatrixStatus) -> Result<Kept, String> {
    let found = match reconcile::inventory(&context.ports.reader, config).await {
        Ok(found) => found,
        Err(error) => return Err(advised(&CliError::from(error))),
    };
    let inventory = found.ok_or("the cluster does not store this matrix yet")?;
    kept_in(&inventory, reported)
}

/// The same of an inventory.
fn kept_in(inventory: &Inventory, reported: &MatrixStatus) -> Result<Kept, String> {
    let stored = inventory.kept(&reported.source).filter(|kept| {
        // The inventory is written before the status.
        kept.digest.to_string() == reported.digest || i64::try_from(kept.version).is_ok_and(|version| version > reported.version)
    });
    let stored = stored.ok_or("the cluster stores no copy of this matrix")?;
    Kept::of(Arc::clone(stored)).ok_or_else(|| "the matrix is too large for a copy in the cluster".into())
}

/// The operator's source, where any machine may be asked for it. A path is one of the operator's machine.
fn open_source(reported: &MatrixStatus) -> Option<MatrixSource> {
    let source = reported.source.parse().ok()?;
    matches!(
        source,
        MatrixSource::Web(_) | MatrixSource::Registry(_) | MatrixSource::ConfigMaps(_)
    )
    .then_some(source)
}

/// What to do where the operator's matrix is inside of an operator of another build.
fn of_another_build(operator: &Result<Build, String>) -> String {
    match operator {
        Ok(operator) => match operator.skew() {
            Some(skew) => format!("{}.", capital(&skew)),
            None => format!(
                "Operator {} and this vdoctl come from different builds: use the vdoctl of the operator's build.",
                operator.version
            ),
        },
        Err(why) => format!("The operator's version is not known: {why}. Use the vdoctl of the same version as the operator."),
    }
}

/// An error with what to do about it, on one line.
fn advised(error: &CliError) -> String {
    let remedy = error.remedy.lines().next().unwrap_or_default().trim_end_matches('.');
    match remedy {
        "" => error.what.clone(),
        remedy => format!("{} ({remedy})", error.what),
    }
}

impl Used {
    /// Whether the operator decides with it.
    pub(crate) fn is_of_operator(&self) -> bool {
        matches!(self.by, By::Operator(_))
    }

    /// Whether a flag names it.
    pub(crate) fn is_given(&self) -> bool {
        self.by == By::Flag
    }

    /// Where it came from.
    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    /// Of its index.
    pub(crate) fn digest(&self) -> &Digest {
        &self.digest
    }

    /// `version 7002, configmap://vmware-system-vdo/matrix (the operator of cluster demo decides with it)`.
    pub(crate) fn what(&self) -> String {
        let whose = match &self.by {
            By::Flag => "given with --matrix".to_owned(),
            By::Operator(cluster) => format!("the operator of cluster {cluster} uses this matrix"),
            By::Vdoctl(why) => format!("built into this vdoctl; used because {why}"),
        };
        format!("version {}, {} ({whose})", self.version, self.source)
    }

    /// The header of an answer.
    pub(crate) fn line(&self) -> String {
        format!("{} {}", style::head("MATRIX"), self.what())
    }

    /// That another matrix is used than the operator's, although it is not named.
    pub(crate) fn warning(&self) -> Option<String> {
        let warning = self.warning.as_ref()?;
        Some(format!("{} {warning}", style::warn("warning:")))
    }

    /// Why the operator's own is not known.
    pub(crate) fn unknown(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    /// For programs.
    pub(crate) fn view(&self) -> MatrixView {
        let (by, cluster) = match &self.by {
            By::Flag => ("flag", None),
            By::Operator(cluster) => ("operator", Some(cluster.clone())),
            By::Vdoctl(_) => ("vdoctl", None),
        };
        MatrixView {
            source: self.source.clone(),
            version: self.version,
            generated: self.generated,
            expires: self.expires,
            digest: self.digest.clone(),
            decided_by: by.to_owned(),
            cluster,
        }
    }
}

/// The flags that named the cluster and the matrix, to append to a command that the output suggests.
pub(crate) fn repeated(named: &MatrixFile, global: &Global) -> String {
    let path = |path: &Option<std::path::PathBuf>| path.as_ref().map(|path| path.display().to_string());
    let all = [
        ("--matrix", named.matrix.as_ref().map(ToString::to_string)),
        ("--matrix-keys", path(&named.matrix_keys)),
        ("--matrix-credentials", path(&named.matrix_credentials)),
    ];
    let of_the_matrix = all
        .into_iter()
        .filter_map(|(flag, value)| Some(format!(" {flag} {}", shell_word(&value?))));
    std::iter::once(global.of_the_cluster()).chain(of_the_matrix).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use vdo_core::matrix::StoredMatrix;

    fn used(by: By) -> Used {
        Used {
            source: "configmap://vdo/matrix".into(),
            version: 7,
            generated: None,
            expires: None,
            digest: Digest::of(b""),
            by,
            warning: None,
        }
    }

    #[test]
    fn matrix_in_use_is_named_with_its_reason() {
        for (by, expected, word) in [
            (By::Flag, "version 7, configmap://vdo/matrix (given with --matrix)", "flag"),
            (
                By::Operator("demo".into()),
                "version 7, configmap://vdo/matrix (the operator of cluster demo uses this matrix)",
                "operator",
            ),
            (
                By::Vdoctl("no cluster is configured".into()),
                "version 7, configmap://vdo/matrix (built into this vdoctl; used because no cluster is configured)",
                "vdoctl",
            ),
        ] {
            let used = used(by);
            assert_eq!(used.what(), expected);
            assert_eq!(used.view().decided_by, word);
        }
    }

    /// The operator of another build decides with another matrix inside of it, and keeps that, too.
    #[test]
    fn matrix_of_the_operator_is_found_in_the_inventory_by_source_and_digest() {
        let stored = |source: &str, version: u64, index: &[u8]| {
            StoredMatrix::of((source.into(), version, None), (index, None, None), BTreeMap::new())
        };
        let mut inventory = Inventory::default();
        inventory.keep(stored("https://a.test/index.yaml", 7, b"one").into());
        inventory.keep(stored("embedded", 3, b"two").into());
        let reported = |source: &str, version: i64, index: &[u8]| MatrixStatus {
            source: source.into(),
            version,
            digest: Digest::of(index).to_string(),
            ..MatrixStatus::default()
        };
        for (reported, expected) in [
            (reported("https://a.test/index.yaml", 7, b"one"), Some("https://a.test/index.yaml")),
            (reported("embedded", 3, b"two"), Some("embedded")),
            // The status is behind the inventory, and the inventory behind the status.
            (reported("embedded", 2, b"zero"), Some("embedded")),
            (reported("embedded", 4, b"four"), None),
            (reported("embedded", 3, b"another"), None),
            (reported("https://b.test/index.yaml", 7, b"one"), None),
        ] {
            let found = kept_in(&inventory, &reported);
            assert_eq!(
                found.ok().map(|kept| kept.source().to_string()).as_deref(),
                expected,
                "{reported:?}"
            );
        }
        let read = Inventory::parse("i", &inventory.stored()).expect("readable");
        assert_eq!(read, inventory);
    }

    #[test]
    fn source_of_the_operator_is_asked_from_here_unless_it_is_a_path() {
        for (source, expected) in [
            ("https://a.test/index.yaml", true),
            ("oci://a.test/matrix:1", true),
            ("configmap://vdo/matrix", true),
            ("/etc/passwd", false),
            ("file:///etc/passwd", false),
            ("embedded", false),
            ("nonsense://", false),
        ] {
            let reported = MatrixStatus {
                source: source.into(),
                ..MatrixStatus::default()
            };
            assert_eq!(open_source(&reported).is_some(), expected, "{source}");
        }
    }
}
