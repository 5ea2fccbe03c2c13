// SPDX-License-Identifier: Apache-2.0
//! The flags of the operator `vdo-operator`, each with its environment variable; the flag has precedence.

use super::telemetry::LogFormat;
use clap::Parser;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use vdo_api::types::interval;

/// Chooses, installs and configures the vSphere drivers of one cluster, and keeps the drivers healthy.
///
/// Runs inside the cluster with its service account, or outside with a kubeconfig.
#[derive(Debug, Clone, PartialEq, Eq, Parser)]
#[command(name = "vdo-operator", version)]
pub struct Args {
    /// The namespace of the VDOConfig, the vSphere connections and their Secrets
    #[arg(long, env = "VDO_NAMESPACE", default_value = "vmware-system-vdo")]
    pub namespace: String,

    /// The address and port for /healthz, /readyz and /metrics
    #[arg(long, env = "VDO_LISTEN", default_value = "0.0.0.0:8080")]
    pub listen: SocketAddr,

    /// Whether /metrics requires a bearer token. The API server checks the token, and whether the user of the token may get /metrics; the
    /// operator gets the rights for these checks from deploy/monitoring/metrics-auth.yaml. Probes never require a token
    #[arg(long, env = "VDO_METRICS_AUTH", value_name = "BOOL", default_value_t = false, action = clap::ArgAction::Set,
        num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub metrics_auth: bool,

    /// The log level: error, warn, info, debug, trace, or a filter such as info,vdo::vcenter=debug
    #[arg(long, env = "VDO_LOG_LEVEL", default_value = "info")]
    pub log_level: String,

    /// The format of the log
    #[arg(long, env = "VDO_LOG_FORMAT", default_value = "text", value_enum)]
    pub log_format: LogFormat,

    /// The source of the compatibility matrix, instead of the built-in matrix: an index file, a folder with index.yaml, or an https://,
    /// oci:// or configmap:// address. The charts are next to the index. The operator reads a file each time that it uses the matrix,
    /// ConfigMaps after each change of the ConfigMaps, and any other address once in each --matrix-interval. An unusable index never
    /// replaces the previous index
    #[arg(long, env = "VDO_MATRIX", value_name = "SOURCE")]
    pub matrix: Option<String>,

    /// How often the operator checks the source for a newer matrix, for example 1h. After a failure, the operator checks sooner
    #[arg(long, env = "VDO_MATRIX_INTERVAL", default_value = "1h", value_parser = interval)]
    pub matrix_interval: Duration,

    /// A folder with the credentials for the source of the matrix. The names of the files are username and password, bearerToken, or
    /// tls.crt and tls.key. A file ca.crt replaces the certificate authorities of this machine. The operator reads the folder before every
    /// request
    #[arg(long, env = "VDO_MATRIX_CREDENTIALS", value_name = "FOLDER")]
    pub matrix_credentials: Option<PathBuf>,

    /// A file with public keys (PEM), or a folder of such files. A matrix that is not built in is used only if one of these keys has signed
    /// it; the signature is index.yaml.sig or index.yaml.sigstore.json next to the index
    #[arg(long, env = "VDO_MATRIX_KEYS", value_name = "PATH")]
    pub matrix_keys: Option<PathBuf>,

    /// How often the operator checks everything again without a change event, for example 10m
    #[arg(long, env = "VDO_RESYNC_INTERVAL", default_value = "10m", value_parser = interval)]
    pub resync_interval: Duration,

    /// How often the operator checks the connection to every vCenter, for example 10m
    #[arg(long, env = "VDO_CONNECTION_INTERVAL", default_value = "10m", value_parser = interval)]
    pub connection_interval: Duration,

    /// Whether the API server tries all changes in a dry run before the first change is made. Without the dry run, an installation sends
    /// only half as many requests, but the API server can refuse a change after other changes were made
    #[arg(long, env = "VDO_SERVER_DRY_RUN", value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    pub server_dry_run: bool,

    /// How long the deletion of an object may take before the status reports the cause of the delay, for example 5m
    #[arg(long, env = "VDO_DELETION_PATIENCE", default_value = "5m", value_parser = interval)]
    pub deletion_patience: Duration,

    /// The name of this operator in the leader election Lease. No other operator may use the same name at the same time. In a cluster, this
    /// flag is set to the name of the pod; default: a generated name
    #[arg(long, env = "VDO_IDENTITY")]
    pub identity: Option<String>,

    /// The OperatorCondition from which OLM reads whether this operator may be upgraded; OLM sets this value
    #[arg(long, env = "OPERATOR_CONDITION_NAME", value_name = "NAME")]
    pub operator_condition: Option<String>,

    /// The kubeconfig file for an operator that runs outside of the cluster
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
