// SPDX-License-Identifier: Apache-2.0
//! The types `Rejection` and `NoFit`: why a version was rejected and why no version fits, with their texts.
//! `constraints.rs` decides about one version, and `suggestion.rs` finds the remedy.

use super::unsupported_kubernetes::NotYet;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use vdo_api::types::{DriverName, DriverVersion, KubernetesVersion, Remedy, VcenterVersion, VersionRange, count};

/// Why a version was not chosen: the first reason found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, strum::IntoStaticStr)]
pub enum Rejection {
    /// The matrix withdrew it.
    #[error("is withdrawn: {reason}{}", instead.as_ref().map(|v| format!(" (use {v})")).unwrap_or_default())]
    Withdrawn {
        /// Why.
        reason: String,
        /// What the matrix says to use instead.
        instead: Option<DriverVersion>,
    },
    /// It does not support the cluster's Kubernetes.
    #[error("supports Kubernetes {supported}, not {}", actual.minor())]
    Kubernetes {
        /// What it supports.
        supported: VersionRange,
        /// What the cluster has.
        actual: KubernetesVersion,
    },
    /// It does not support one of the vCenters.
    #[error("supports vCenter {supported}, not version {actual} of {connection}")]
    Vsphere {
        /// What it supports.
        supported: VersionRange,
        /// The connection.
        connection: String,
        /// What that vCenter has.
        actual: VcenterVersion,
    },
    /// It needs another driver that was not asked for.
    #[error("needs {driver}, which is not requested{}", reason.as_ref().map(|r| format!(": {r}")).unwrap_or_default())]
    Requires {
        /// The other driver.
        driver: DriverName,
        /// Why.
        reason: Option<String>,
    },
    /// It needs another version of another driver than any that fits.
    #[error("needs {needs}, but no such version fits{}", reason.as_ref().map(|r| format!(": {r}")).unwrap_or_default())]
    RequiresVersion {
        /// The other driver and its versions, in words.
        needs: String,
        /// Why.
        reason: Option<String>,
    },
    /// It fits by itself, but not together with any choice of the other drivers.
    #[error("fits the cluster, but is not compatible with any fitting version of the other drivers")]
    Apart,
    /// It cannot do something that is required.
    #[error("does not support {feature}, which {by} requires")]
    Feature {
        /// What is required.
        feature: String,
        /// Who requires it: a field of a specification, a flag.
        by: String,
    },
    /// It speaks to one vCenter only, and there are several.
    #[error("supports only one vCenter, but there are {connections} vSphere connections")]
    OneVcenter {
        /// How many it is to use.
        connections: usize,
    },
    /// It can do what is required only with another vCenter.
    #[error("supports {feature} only with vCenter {supported}, not with version {actual} of {connection}, and {by} requires {feature}")]
    FeatureVsphere {
        /// What is required.
        feature: String,
        /// Who requires it: a field of a specification, a flag.
        by: String,
        /// The vCenters it takes.
        supported: VersionRange,
        /// The connection.
        connection: String,
        /// What that vCenter has.
        actual: VcenterVersion,
    },
    /// There is no chart of it.
    #[error("has manifests but no chart, and VDO installs only versions with a chart")]
    NoChart,
    /// The mirror that the matrix is read from was pulled without it.
    #[error("is not in the mirror")]
    NotMirrored,
    /// No supported steps lead to it from what is installed.
    #[error("can replace only {from} and newer, but {installed} is installed, and no fitting version in between can be installed first")]
    NoPath {
        /// What is installed.
        installed: DriverVersion,
        /// From which version it can be reached.
        from: DriverVersion,
    },
    /// Something that must hold before the upgrade does not, or is not known to.
    #[error("cannot be installed yet because of precondition {name}: {what}")]
    Unmet {
        /// The precondition.
        name: String,
        /// What is known of it, and what to do.
        what: String,
    },
    /// It is not installed before a maintenance window opens.
    #[error("waits {waits}")]
    Held {
        /// Until when, or for what.
        waits: String,
    },
    /// It is a pre-release.
    #[error("is a pre-release, and VDO installs a pre-release only if it is pinned")]
    Prerelease,
    /// Something newer is installed, and going back is a decision for people.
    #[error("is older than the installed {installed}; a downgrade needs a pin")]
    Downgrade {
        /// What is installed.
        installed: DriverVersion,
    },
}

/// A version and why it was not chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// The version.
    pub version: DriverVersion,
    /// Why.
    pub reason: Rejection,
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.version, self.reason)
    }
}

/// What exactly could not be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// The matrix has no such driver.
    UnknownDriver {
        /// Those it has.
        known: Vec<DriverName>,
    },
    /// No version fits.
    NothingFits,
    /// The pinned version is not in the matrix.
    UnknownPin {
        /// The pin.
        pin: DriverVersion,
        /// The versions in the matrix closest to it.
        nearest: Vec<DriverVersion>,
    },
    /// The pinned version is in the matrix and does not fit.
    PinRejected {
        /// The pin.
        pin: DriverVersion,
        /// Why it does not fit.
        reason: Box<Rejection>,
        /// The newest version that fits now.
        fits: Option<DriverVersion>,
    },
    /// The matrix does not list what is installed, and nothing newer fits or may be chosen.
    InstalledUnknown {
        /// What is installed.
        installed: DriverVersion,
    },
}

/// No choice is possible for a driver. What runs now stays as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoFit {
    /// The driver.
    pub driver: DriverName,
    /// What exactly could not be chosen.
    pub cause: Cause,
    /// Every version of the driver that does not fit, newest first, with the reason.
    pub rejected: Vec<Rejected>,
    /// The platform, in words: `Kubernetes v1.36.0 and vCenter 8.0.3`.
    pub platform: String,
    /// The smallest change that would help, when there is one.
    pub advice: Option<String>,
    /// That every version ends below the Kubernetes of the platform, when that is so.
    pub not_yet: Option<Box<NotYet>>,
    /// The other drivers for which no choice is possible either.
    pub others: Vec<NoFit>,
    /// The drivers that would have a choice, and which.
    pub fitting: BTreeMap<DriverName, DriverVersion>,
}

impl std::error::Error for NoFit {}

impl Remedy for NoFit {
    /// The advice for this driver, and for each other one under its name.
    fn remedy(&self) -> Option<Cow<'static, str>> {
        let named = |error: &Self| {
            let advice = error.advice.as_ref()?;
            Some(if self.others.is_empty() {
                format!("{advice}.")
            } else {
                format!("{}: {advice}.", error.driver)
            })
        };
        let all: Vec<String> = self.all().filter_map(named).collect();
        (!all.is_empty()).then(|| all.join(" ").into())
    }
}

impl NoFit {
    /// This driver and the others without a choice.
    pub fn all(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(&self.others)
    }

    /// The rejected versions, those that came closest to fitting first; newest first among equals.
    #[must_use]
    pub fn nearest(&self) -> Vec<&Rejected> {
        let mut sorted: Vec<&Rejected> = self.rejected.iter().collect();
        sorted.sort_by_key(|rejected| (rejected.reason.distance(), std::cmp::Reverse(rejected.version.clone())));
        sorted
    }
}

impl Rejection {
    /// How far the version is from fitting: nothing but a decision, something smaller than the cluster, minors of the cluster, never.
    fn distance(&self) -> u64 {
        match self {
            Self::Downgrade { .. }
            | Self::Prerelease
            | Self::Requires { .. }
            | Self::RequiresVersion { .. }
            | Self::Apart
            | Self::Feature { .. }
            | Self::OneVcenter { .. }
            | Self::FeatureVsphere { .. }
            | Self::NoPath { .. }
            | Self::NotMirrored
            | Self::Unmet { .. }
            | Self::Held { .. }
            | Self::Vsphere { .. } => 0,
            Self::Kubernetes { supported, actual } => {
                let minor = |bound: Option<&str>| Some(*bound?.parse::<KubernetesVersion>().ok()?.numbers().get(1)?);
                let actual = actual.numbers().get(1).copied().unwrap_or(0);
                let ends = [supported.min(), supported.max()].into_iter().filter_map(minor);
                1 + ends.map(|end| end.abs_diff(actual)).min().unwrap_or(0)
            }
            Self::Withdrawn { .. } | Self::NoChart => u64::MAX,
        }
    }
}

impl fmt::Display for NoFit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 3;
        let driver = &self.driver;
        match &self.cause {
            Cause::UnknownDriver { known } => write!(f, "the matrix has no driver {driver}; it has {}", known.join(", "))?,
            Cause::NothingFits => {
                write!(f, "no version of {driver} fits {}", self.platform)?;
                let nearest: Vec<String> = self.nearest().into_iter().take(SHOWN).map(Rejected::to_string).collect();
                if !nearest.is_empty() {
                    write!(f, ": {}", nearest.join("; "))?;
                }
                if self.rejected.len() > SHOWN {
                    write!(f, "; and {}", count(self.rejected.len() - SHOWN, "more version"))?;
                }
            }
            Cause::UnknownPin { pin, nearest } => {
                write!(f, "{driver} is pinned to {pin}, which is not in the matrix")?;
                if !nearest.is_empty() {
                    let nearest: Vec<String> = nearest.iter().map(ToString::to_string).collect();
                    write!(f, "; nearest listed versions: {}", nearest.join(" and "))?;
                }
            }
            Cause::PinRejected { pin, reason, fits } => {
                write!(f, "{driver} is pinned to {pin}, which {reason}")?;
                if let Some(fits) = fits {
                    write!(f, "; {fits} fits")?;
                }
            }
            Cause::InstalledUnknown { installed } => {
                write!(f, "{driver} {installed} is installed, and the matrix does not list that version")?
            }
        }
        self.others.iter().try_for_each(|other| write!(f, ". Also, {other}"))
    }
}
