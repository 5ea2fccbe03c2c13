// SPDX-License-Identifier: Apache-2.0
//! The operator's arguments. Every flag has a twin in the environment; the flag wins.

use super::telemetry::LogFormat;
use clap::Parser;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use vdo_api::types::interval;

/// Keeps the vSphere drivers of one cluster chosen, installed, configured and healthy.
///
/// Runs inside the cluster with its service account, or outside with a kubeconfig.
#[derive(Debug, Clone, PartialEq, Eq, Parser)]
#[command(name = "vdo-operator", version)]
pub struct Args {
    /// The namespace in which VDOConfig, vSphere connections and their Secrets are read
    #[arg(long, env = "VDO_NAMESPACE", default_value = "vmware-system-vdo")]
    pub namespace: String,

    /// Where /healthz, /readyz and /metrics are served
    #[arg(long, env = "VDO_LISTEN", default_value = "0.0.0.0:8080")]
    pub listen: SocketAddr,

    /// Whether /metrics needs a bearer token. The API server says whose it is and whether that user may get /metrics;
    /// apply deploy/monitoring/metrics-auth.yaml for the rights. Probes never need one
    #[arg(long, env = "VDO_METRICS_AUTH", value_name = "BOOL", default_value_t = false, action = clap::ArgAction::Set,
        num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub metrics_auth: bool,

    /// What is logged: error, warn, info, debug, trace, or a filter such as info,vdo::vcenter=debug
    #[arg(long, env = "VDO_LOG_LEVEL", default_value = "info")]
    pub log_level: String,

    /// How it is logged
    #[arg(long, env = "VDO_LOG_FORMAT", default_value = "text", value_enum)]
    pub log_format: LogFormat,

    /// Where the matrix comes from instead of from this program: an index file, a folder with index.yaml, or an address with https://, oci://
    /// or configmap://. Charts are beside it. A file is read again at every look, a ConfigMap when it changes, another address every
    /// --matrix-interval; an index that cannot be used never takes the place of the one before
    #[arg(long, env = "VDO_MATRIX", value_name = "SOURCE")]
    pub matrix: Option<String>,

    /// How often the source of the matrix is asked whether there is a newer one, for example 1h. After a failure it is asked sooner
    #[arg(long, env = "VDO_MATRIX_INTERVAL", default_value = "1h", value_parser = interval)]
    pub matrix_interval: Duration,

    /// A folder with the files of a Secret for the source of the matrix: username and password, or bearerToken; tls.crt and tls.key; ca.crt,
    /// which takes the place of this machine's certificate authorities. It is read again before every request
    #[arg(long, env = "VDO_MATRIX_CREDENTIALS", value_name = "FOLDER")]
    pub matrix_credentials: Option<PathBuf>,

    /// A file with public keys (PEM), or a folder of such files. A matrix from elsewhere is used only if one of these keys signed it:
    /// index.yaml.sig or index.yaml.sigstore.json beside it
    #[arg(long, env = "VDO_MATRIX_KEYS", value_name = "PATH")]
    pub matrix_keys: Option<PathBuf>,

    /// How often everything is looked at again although nothing seems to have changed, for example 10m
    #[arg(long, env = "VDO_RESYNC_INTERVAL", default_value = "10m", value_parser = interval)]
    pub resync_interval: Duration,

    /// How often every vCenter is asked who it is, for example 10m
    #[arg(long, env = "VDO_CONNECTION_INTERVAL", default_value = "10m", value_parser = interval)]
    pub connection_interval: Duration,

    /// Whether the API server tries every change in a dry run before the first one is made. Without it, a refusal is met half-way,
    /// and an installation asks half as much
    #[arg(long, env = "VDO_SERVER_DRY_RUN", value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    pub server_dry_run: bool,

    /// How long the deletion of an object may take before the status says what blocks it, for example 5m
    #[arg(long, env = "VDO_DELETION_PATIENCE", default_value = "5m", value_parser = interval)]
    pub deletion_patience: Duration,

    /// The name under which this operator holds the Lease, which no other one has at the same time; in a cluster the name of
    /// its pod. One is made up when none is given
    #[arg(long, env = "VDO_IDENTITY")]
    pub identity: Option<String>,

    /// The OperatorCondition in which OLM reads whether this operator may be upgraded; OLM sets it
    #[arg(long, env = "OPERATOR_CONDITION_NAME", value_name = "NAME")]
    pub operator_condition: Option<String>,

    /// A kubeconfig, to run outside of the cluster
    #[arg(long, env = "VDO_KUBECONFIG", value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn operator_args_without_flags_have_defaults() {
        Args::command().debug_assert();
        let args = Args::try_parse_from(["vdo-operator"]).expect("defaults");
        assert_eq!(args.namespace, "vmware-system-vdo");
        assert_eq!(args.listen.to_string(), "0.0.0.0:8080");
        assert_eq!(
            (args.resync_interval, args.connection_interval),
            (Duration::from_secs(600), Duration::from_secs(600))
        );
    }

    #[test]
    fn metrics_auth_flag_is_off_unless_set() {
        for (line, wanted) in [
            (&["vdo-operator"][..], false),
            (&["vdo-operator", "--metrics-auth"], true),
            (&["vdo-operator", "--metrics-auth=false"], false),
        ] {
            let args = Args::try_parse_from(line).expect("a command line");
            assert_eq!(args.metrics_auth, wanted, "{line:?}");
        }
    }

    #[test]
    fn operator_args_every_flag_has_env_variable() {
        for flag in Args::command()
            .get_arguments()
            .filter(|flag| !matches!(flag.get_id().as_str(), "help" | "version"))
        {
            let twin = match flag.get_id().as_str() {
                // OLM names it.
                "operator_condition" => "OPERATOR_CONDITION_NAME".to_owned(),
                other => format!("VDO_{}", other.to_uppercase()),
            };
            assert_eq!(flag.get_env().and_then(|name| name.to_str()), Some(twin.as_str()));
        }
    }
}
