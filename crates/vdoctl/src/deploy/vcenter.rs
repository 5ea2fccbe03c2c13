// SPDX-License-Identifier: Apache-2.0
//! Determines the vCenter, user and password of `vdoctl deploy` from flags, prompts, Secrets or OpenShift; `--create-account`.

use super::super::args::{CredentialsSecret, Deploy, DeployVcenter, DryRun, Global, UsersAccount, UsersChange, UsersCreate, UsersVcenter};
use super::super::certificate_question::trusted;
use super::super::context::Context;
use super::super::password_file::{password, private};
use super::super::progress::{Mark, Progress};
use super::super::users::{self, DOMAIN};
use super::super::vcenter_address::{endpoint, trust};
use super::super::{Answer, CliError, Exit};
use super::configuration::CONNECTION;
use super::openshift;
use vdo::cluster::get;
use vdo_api::types::{ObjectId, Secret, Trust};
use vdo_core::openshift::proposal::Vcenter;
use vdo_vsphere::vcenter::Endpoint;

/// A vCenter whose certificate is trusted, and the account there.
pub(crate) struct Account {
    /// The connection that leads to it.
    pub(crate) connection: String,
    pub(crate) endpoint: Endpoint,
    pub(crate) login: Login,
    /// Where is looked in; empty: everywhere.
    pub(crate) datacenters: Vec<String>,
}

/// Who logs in.
#[derive(Clone)]
pub(crate) enum Login {
    /// This user, whose password is going to be in a Secret.
    Typed(String, Secret),
    /// Whom Secrets of the cluster name, all drivers or each its own.
    Stored(Vec<CredentialsSecret>),
}

/// What was typed or is proposed, and on a terminal what is still asked for. `context` is the cluster, if there is one.
pub(super) async fn accounts(
    given: &DeployVcenter,
    proposed: &[Vcenter],
    context: Option<&Context>,
    progress: &mut Progress,
) -> Result<Vec<Account>, CliError> {
    let addresses: Vec<(String, &[String])> = match &given.vcenter {
        Some(address) => vec![(address.clone(), &given.datacenter[..])],
        None => proposed.iter().map(|one| (one.address(), &one.datacenters[..])).collect(),
    };
    if addresses.is_empty() {
        return Err(unknown());
    }
    let login = if given.credentials_from_openshift {
        None
    } else {
        Some(login(given)?)
    };
    let mut all = Vec::new();
    for (place, (address, datacenters)) in addresses.into_iter().enumerate() {
        let mut endpoint = reached(&address, given)?;
        let login = match (&login, context) {
            (Some(login), _) => login.clone(),
            (None, Some(context)) => openshift::login(context, &endpoint.server).await?,
            (None, None) => return Err(unknown()),
        };
        if context.is_some() {
            trusted(&mut endpoint, false, progress).await?;
        }
        all.push(Account {
            connection: connection_name(place),
            endpoint,
            login,
            datacenters: datacenters.to_vec(),
        });
    }
    Ok(all)
}

/// The connections are called vc1, vc2 and so on.
fn connection_name(place: usize) -> String {
    match place {
        0 => CONNECTION.to_owned(),
        more => format!("vc{}", more + 1),
    }
}

fn unknown() -> CliError {
    CliError::new(
        Exit::Usage,
        "it is not known which vCenter the drivers use, and which user they log in as",
        "Name the vCenter with --vcenter HOST, and the account in one of three ways: --user NAME and --password-file FILE; --credentials-secret \
         NAME; or --create-account --admin NAME, which creates the account. Or give the whole configuration with --values FILE.",
    )
}

/// Who was typed.
fn login(given: &DeployVcenter) -> Result<Login, CliError> {
    Ok(match &given.user {
        Some(user) => {
            if let Some(file) = &given.password_file {
                private(file)?;
            }
            let (password, _) = password(given.password_file.as_deref(), user)?;
            Login::Typed(user.clone(), password)
        }
        None => {
            let named = &given.credentials_secret;
            let mixed = named.len() > 1 && named.iter().any(|one| one.field.is_none());
            if mixed {
                return Err(CliError::new(
                    Exit::Usage,
                    "several Secrets are named, but the driver of at least one Secret is not given",
                    "Write --credentials-secret cpi=NAME and --credentials-secret csi=NAME, or one Secret for both drivers.",
                ));
            }
            if named.is_empty() {
                return Err(unknown());
            }
            Login::Stored(named.clone())
        }
    })
}

/// Where a vCenter is, and how it is trusted.
fn reached(address: &str, given: &DeployVcenter) -> Result<Endpoint, CliError> {
    let typed = &given.trust;
    let trust = trust(typed.thumbprint.as_ref(), typed.ca_file.as_deref(), typed.insecure)?;
    endpoint(address, trust)
}

/// Makes the account of the drivers as `vdoctl users create --shared` does. The flags with its Secret in place of the account; an answer where
/// nothing was to be written.
pub(super) async fn create_account(args: &Deploy, global: &Global, progress: &mut Progress) -> Result<Result<Deploy, Answer>, CliError> {
    let (Some(address), Some(admin)) = (&args.vcenter.vcenter, args.vcenter.admin.clone()) else {
        return Err(unknown());
    };
    let mut endpoint = reached(address, &args.vcenter)?;
    trusted(&mut endpoint, false, progress).await?;
    let mut args = args.clone();
    if let Trust::Thumbprint(print) = endpoint.trust {
        args.vcenter.trust.thumbprint = Some(print);
    }
    let domain = args.vcenter.domain.clone().unwrap_or_else(|| DOMAIN.to_owned());
    let create = UsersCreate {
        change: UsersChange {
            account: UsersAccount {
                vcenter: UsersVcenter {
                    connection: None,
                    vcenter: args.vcenter.vcenter.clone(),
                    trust: args.vcenter.trust.clone(),
                    user: admin,
                    password_file: args.vcenter.password_file.clone(),
                    domain,
                    output: None,
                },
                drivers: None,
                shared: true,
                features: Vec::new(),
                datastore: Vec::new(),
                storage_policy: args.storage_policy.iter().cloned().collect(),
                existing: None,
                group: false,
                name: None,
            },
            dry_run: args.dry_run != DryRun::None,
            emit: None,
            yes: args.yes,
        },
        account_password_file: None,
        show_once: false,
    };
    let (answer, secret) = users::create_shared(&create, global, progress).await?;
    let Some(name) = secret else { return Ok(Err(answer)) };
    answer.talk.iter().for_each(|line| progress.step(Mark::Note, line));
    args.vcenter.credentials_secret = vec![CredentialsSecret { field: None, name }];
    args.vcenter.password_file = None;
    args.vcenter.create_account = false;
    Ok(Ok(args))
}

/// That the Secrets that were named are there. What is in them is checked with everything else.
pub(crate) async fn stored(context: &Context, named: &[CredentialsSecret]) -> Result<(), CliError> {
    for one in named {
        let id = ObjectId::new("", "Secret", context.namespace(), &one.name);
        if get(&context.ports.client, "v1", &id).await?.is_none() {
            return Err(CliError::new(
                Exit::NotFound,
                format!("{id} does not exist"),
                "vdoctl users create creates the Secret together with an account. To use an existing user without a Secret, name the user with --user.",
            ));
        }
    }
    Ok(())
}
