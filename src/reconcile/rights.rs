// SPDX-License-Identifier: Apache-2.0
//! Computes the namespaces, roles and admission policy of `vdoctl rights`, which an administrator applies for drivers and operator.

mod grant_command;
mod operator_roles;
mod permitted;
mod versions;

pub use grant_command::add_missing;
pub use permitted::Permitted;
pub(super) use permitted::permitted;
pub use versions::Versions;

use operator_roles::{Places, of_operator, on_openshift, places};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;
use vdo_api::api::OPERATOR_NAMESPACE;
use vdo_api::types::Remedy;
use vdo_core::admission::Allowed;
use vdo_core::certificate;
use vdo_core::chart::{self, Chart, Context, RenderError};
use vdo_core::drivers;
use vdo_core::install::OPERATOR;
use vdo_core::manifest::{ManifestError, Object};
use vdo_core::matrix::{Index, IndexError};
use vdo_core::plan::Desired;
use vdo_core::rbac::{self, Mismatch, Rules, SingleRule, is_prerequisite};
use vdo_source::fetch::{ChartRepository, RepositoryError};

/// What cannot be granted, because it cannot be known.
#[derive(Debug, thiserror::Error)]
pub enum RightsError {
    /// The matrix.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// A chart that cannot be fetched or opened.
    #[error(transparent)]
    ChartRepository(#[from] RepositoryError),
    /// A chart that cannot be rendered.
    #[error(transparent)]
    Render(#[from] RenderError),
    /// A chart that renders something else than objects.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// Versions that contradict each other.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
}

impl Remedy for RightsError {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::Index(error) => error.remedy(),
            Self::ChartRepository(error) => error.remedy(),
            Self::Render(error) => error.remedy(),
            Self::Manifest(error) => error.remedy(),
            Self::Mismatch(error) => error.remedy(),
        }
    }
}

/// Objects for the administrator to apply.
pub struct Rights {
    /// Namespaces, roles and bindings of the drivers: enough for every version.
    pub drivers: Vec<Value>,
    /// The account of the operator with its roles.
    pub operator: Vec<Value>,
    /// What OpenShift asks for on top: which constraints the pods of the drivers may use, and that the operator sees what OpenShift runs.
    pub openshift: Vec<Value>,
    /// What that account may write into objects.
    pub content: Allowed,
    /// What keeps that account to this content.
    pub policy: Vec<Value>,
}

/// The account of an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Account<'a> {
    /// Its namespace, which is the operator's.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
}

impl<'a> Account<'a> {
    /// The one that deploy/ has, in this namespace.
    #[must_use]
    pub fn usual(namespace: &'a str) -> Self {
        Self { namespace, name: OPERATOR }
    }
}

/// What the drivers of an index, in these versions, and the operator that installs them with this account need, with what that operator may
/// write into objects.
///
/// # Errors
/// When a chart cannot be had, or no role serves all versions.
pub async fn rights(
    repository: &ChartRepository,
    index: &Index,
    account: Account<'_>,
    versions: Versions<'_>,
) -> Result<Rights, RightsError> {
    let Account { namespace, name } = account;
    let mut content = own_content(namespace);
    let learn = |chart: &Chart| content.learn(chart, &json!({}), |id| !is_prerequisite(id));
    let all = rendered(repository, index, versions, learn).await?;
    let user = format!("system:serviceaccount:{namespace}:{name}");
    Ok(Rights {
        policy: content.policy(&user, &written(&places(&all, namespace))).into(),
        content,
        ..granting(&all, account, versions)?
    })
}

/// The same without content and policy: what a chart can render takes longer than everything else here.
///
/// # Errors
/// As [`rights`].
pub async fn rights_without_policy(
    repository: &ChartRepository,
    index: &Index,
    account: Account<'_>,
    versions: Versions<'_>,
) -> Result<Rights, RightsError> {
    let all = rendered(repository, index, versions, |_| ()).await?;
    Ok(granting(&all, account, versions)?)
}

/// What the charts of these versions render where everything is switched on. Each chart is seen by `learn`.
async fn rendered(
    repository: &ChartRepository,
    index: &Index,
    versions: Versions<'_>,
    mut learn: impl FnMut(&Chart),
) -> Result<Vec<Desired>, RightsError> {
    let mut all = Vec::new();
    for (name, driver) in &index.drivers {
        let known: Arc<str> = name.as_str().into();
        for entry in driver.versions.iter().filter(|entry| versions.take(name, &entry.version)) {
            let chart = repository.chart(&entry.chart).await?;
            learn(&chart);
            for object in chart::render(&chart, &chart::everything(&chart), &Context::default())? {
                all.push(Desired {
                    object: Object::new(object)?,
                    driver: known.clone(),
                    wave: 0,
                });
            }
        }
    }
    Ok(all)
}

/// What the operator writes that is in no chart, from this namespace.
fn own_content(namespace: &str) -> Allowed {
    let mut allowed = Allowed::default();
    allowed.learn_own(namespace, certificate::SECRET);
    for driver in drivers::KNOWN {
        for (kind, name) in driver.written {
            allowed.learn_configuration(kind, driver.namespace, name);
        }
    }
    allowed
}

/// The resources that are written, by API group.
fn written(places: &Places) -> BTreeSet<(String, String)> {
    // A review is a question, of which nothing is stored.
    let is_review = |group: &str| matches!(group, "authentication.k8s.io" | "authorization.k8s.io");
    let rules = places.values().flat_map(Rules::single).filter(|rule| !is_review(rule.group));
    let writes = |rule: &SingleRule<'_>| rule.verbs.iter().any(|verb| matches!(*verb, "create" | "patch" | "update" | "*"));
    rules
        .filter(writes)
        .map(|rule| (rule.group.to_owned(), rule.resource.to_owned()))
        .collect()
}

/// What has to be granted for these objects, to an operator with this account.
fn granting(all: &[Desired], account: Account<'_>, versions: Versions<'_>) -> Result<Rights, Mismatch> {
    let brought = all.iter().filter(|d| versions.brings(&d.driver));
    Ok(Rights {
        drivers: rbac::union(brought.map(|d| &d.object))?,
        operator: of_operator(all, account, versions),
        openshift: on_openshift(all, account, versions),
        content: Allowed::default(),
        policy: Vec::new(),
    })
}

/// What the objects of a version need that is not granted where those of another one were installed, as sentences.
///
/// # Errors
/// When a version contradicts itself.
pub fn more_rights(old: &[Object], new: &[Object]) -> Result<Vec<String>, RightsError> {
    let grants = |objects: &[Object]| -> Result<Vec<Object>, RightsError> {
        let desired = |object: &Object| Desired {
            object: object.clone(),
            driver: "".into(),
            wave: 0,
        };
        let rights = granting(
            &objects.iter().map(desired).collect::<Vec<_>>(),
            Account::usual(OPERATOR_NAMESPACE),
            Versions::All,
        )?;
        let all = [rights.drivers, rights.operator].concat().into_iter().map(Object::new);
        Ok(all.collect::<Result<_, _>>()?)
    };
    let (old, new) = (grants(old)?, grants(new)?);
    let before = |wanted: &Object| old.iter().find(|object| object.identity() == wanted.identity());
    Ok(new.iter().filter_map(|wanted| rbac::lacking(wanted, before(wanted))).collect())
}
