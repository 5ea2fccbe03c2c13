// SPDX-License-Identifier: Apache-2.0
//! Reads the vCenter, account and proxy from OpenShift (Infrastructure, Proxy, vsphere-creds) for `deploy`, and asks for confirmation.

use super::super::args::{Deploy as Args, DryRun};
use super::super::context::Context;
use super::super::progress::{Mark, Progress};
use super::super::{CliError, Exit, prompt};
use super::vcenter::Login;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use vdo::cluster::{ClusterError, get};
use vdo_api::api::VDOConfig;
use vdo_api::types::{ObjectId, Secret};
use vdo_core::manifest::Object;
use vdo_core::openshift::INFRASTRUCTURE;
use vdo_core::openshift::proposal::{CLOUD_CONFIG, CREDENTIALS, Proposal, Vcenter, proposal, without_vcenter};
use vdo_core::openshift::proxy::{PROXY, Proxy, proxy};

const CONFIG: &str = "config.openshift.io";

/// What OpenShift knows; nothing in other clusters.
#[derive(Default)]
pub(super) struct Found {
    /// What it proposes for the drivers.
    proposal: Option<Proposal>,
    /// The proxy of the whole cluster.
    pub(super) proxy: Option<Proxy>,
}

/// What the flags are laid over.
#[derive(Default)]
pub(super) struct Known {
    /// The vCenters, where no flag names one.
    pub(super) vcenters: Vec<Vcenter>,
    /// What is known of the drivers.
    pub(super) specification: Value,
}

impl Found {
    /// Asks the cluster.
    pub(super) async fn look(context: &Context) -> Result<Self, CliError> {
        let id = |kind: &str, name: &str| ObjectId::new(CONFIG, kind, "", name);
        let Some(infrastructure) = read(context, "config.openshift.io/v1", &id("Infrastructure", INFRASTRUCTURE)).await? else {
            return Ok(Self::default());
        };
        let mut proposed = proposal(&infrastructure, None);
        if proposed.vcenters.is_empty() {
            let config = cloud_config(context, &infrastructure).await?;
            proposed = proposal(&infrastructure, config.as_deref());
        }
        let object = read(context, "config.openshift.io/v1", &id("Proxy", PROXY)).await?;
        Ok(Self {
            proposal: Some(proposed),
            proxy: object.as_ref().and_then(proxy),
        })
    }

    /// What is taken of it, after a person has confirmed it: all of it for a new configuration, and what one that is there has already.
    pub(super) fn known(&self, args: &Args, there: Option<&VDOConfig>, progress: &mut Progress) -> Result<Known, CliError> {
        let Some(proposal) = self.proposal.as_ref().filter(|_| args.values.is_none()) else {
            return Ok(Known::default());
        };
        if let Some(there) = there {
            return Ok(Known {
                vcenters: Vec::new(),
                specification: kept(there),
            });
        }
        let shown = Proposal {
            vcenters: if args.vcenter.vcenter.is_some() {
                Vec::new()
            } else {
                proposal.vcenters.clone()
            },
            ..proposal.clone()
        };
        progress.step(
            Mark::Note,
            &format!("OpenShift proposes these values\n{}", shown.lines().join("\n")),
        );
        lacking(&shown, args)?;
        confirmed(args)?;
        Ok(Known {
            vcenters: shown.vcenters.into_iter().map(|found| found.value).collect(),
            specification: proposal.specification(),
        })
    }
}

/// An object, if it is there and may be read.
async fn read(context: &Context, api_version: &str, id: &ObjectId) -> Result<Option<Object>, CliError> {
    match get(&context.ports.client, api_version, id).await {
        Err(ClusterError::NotServed { .. } | ClusterError::Forbidden { .. }) => Ok(None),
        found => Ok(found?),
    }
}

/// The configuration of OpenShift's cloud provider, under the key that Infrastructure names.
async fn cloud_config(context: &Context, infrastructure: &Object) -> Result<Option<String>, CliError> {
    let (namespace, usual) = CLOUD_CONFIG;
    let name = Some(infrastructure.text("/spec/cloudConfig/name")).filter(|name| !name.is_empty());
    let key = Some(infrastructure.text("/spec/cloudConfig/key")).filter(|key| !key.is_empty());
    let id = ObjectId::new("", "ConfigMap", namespace, name.unwrap_or(usual));
    let found = read(context, "v1", &id).await?;
    Ok(found.and_then(|map| Some(map.value()["data"][key.unwrap_or("config")].as_str()?.to_owned())))
}

/// What a proposal sets, as a VDOConfig has it: the flags are applied together with that, and would take it away otherwise.
fn kept(there: &VDOConfig) -> Value {
    const PROPOSED: [(&str, &[&str]); 2] = [
        ("cloudProvider", &["topology", "nodeNetworks"]),
        ("storageProvider", &["clusterDistribution", "clusterId", "topologyCategories"]),
    ];
    let live = json!(there.spec);
    let mut spec = Map::new();
    for (driver, fields) in PROPOSED {
        let Some(found) = live[driver].as_object() else { continue };
        let own = fields.iter().filter_map(|field| found.get_key_value(*field));
        spec.insert(driver.to_owned(), own.map(|(key, value)| (key.clone(), value.clone())).collect());
    }
    spec.into()
}

/// What is neither proposed nor typed, before a person is asked.
fn lacking(proposal: &Proposal, args: &Args) -> Result<(), CliError> {
    let given = &args.vcenter;
    if given.vcenter.is_none() && proposal.vcenters.is_empty() {
        return Err(CliError::new(
            Exit::Usage,
            format!("it is not known which vCenter the drivers use: {}", without_vcenter()),
            "Name the vCenter with --vcenter HOST, or give the whole configuration with --values FILE.",
        ));
    }
    if given.user.is_none() && given.credentials_secret.is_empty() && !given.credentials_from_openshift && !given.create_account {
        let (namespace, name) = CREDENTIALS;
        return Err(CliError::new(
            Exit::Usage,
            "it is not known which user the drivers log in as",
            format!(
                "Name the user with --user NAME, or a Secret with --credentials-secret NAME; --credentials-from-openshift uses the account of \
                 OpenShift, from Secret {namespace}/{name}."
            ),
        ));
    }
    let several = proposal.vcenters.len() > 1;
    if several && given.trust.thumbprint.is_some() {
        return Err(CliError::new(
            Exit::Usage,
            "--thumbprint names one certificate, and there are several vCenters",
            "Name the authorities that sign all their certificates with --ca-file FILE, or leave out --thumbprint: vdoctl then shows each certificate.",
        ));
    }
    Ok(())
}

/// Asks a person.
fn confirmed(args: &Args) -> Result<(), CliError> {
    if args.yes || args.dry_run != DryRun::None {
        return Ok(());
    }
    const INSTEAD: &str = "--yes accepts the values, flags override them, and --values FILE gives the whole configuration.";
    const NOTHING: &str = "OpenShift's values were not confirmed, so nothing was written";
    prompt::confirmed("    Are these values right?", NOTHING, INSTEAD, INSTEAD)
}

/// The account that OpenShift itself uses in this vCenter.
pub(super) async fn login(context: &Context, server: &str) -> Result<Login, CliError> {
    let (namespace, name) = CREDENTIALS;
    let id = ObjectId::new("", "Secret", namespace, name);
    let lacks = |what: String| {
        CliError::new(
            Exit::NotFound,
            what,
            "Name the user of the drivers with --user NAME, or a Secret with --credentials-secret NAME.",
        )
    };
    let secret = get(&context.ports.client, "v1", &id).await?;
    let secret = secret.ok_or_else(|| lacks(format!("{id} does not exist")))?;
    let of = |key: &str| {
        let encoded = secret.value()["data"][format!("{server}.{key}")].as_str()?;
        let text = String::from_utf8(STANDARD.decode(encoded).ok()?).ok()?;
        Some(text).filter(|text| !text.is_empty())
    };
    match (of("username"), of("password")) {
        (Some(user), Some(password)) => Ok(Login::Typed(user, Secret::new(password))),
        _ => Err(lacks(format!("{id} has no {server}.username and {server}.password"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_is_what_a_proposal_sets_and_nothing_else() {
        let config = |spec: Value| -> VDOConfig {
            serde_json::from_value(
                json!({"apiVersion": "vdo.vmware.com/v1alpha1", "kind": "VDOConfig", "metadata": {"name": "vdo"}, "spec": spec}),
            )
            .expect("a VDOConfig")
        };
        for (spec, expected) in [
            (json!({}), json!({})),
            (json!({"storageProvider": {}}), json!({"storageProvider": {}})),
            (
                json!({"storageProvider": {"clusterId": "a", "clusterDistribution": "OpenShift", "version": "3.7.3"}}),
                json!({"storageProvider": {"clusterId": "a", "clusterDistribution": "OpenShift"}}),
            ),
            (
                json!({"cloudProvider": {"topology": {"zone": "z", "region": "r"}, "version": "1.34.0"}}),
                json!({"cloudProvider": {"topology": {"zone": "z", "region": "r"}}}),
            ),
        ] {
            assert_eq!(kept(&config(spec)), expected);
        }
    }
}
