// SPDX-License-Identifier: Apache-2.0
//! The environment variables whose values may be shown, for example in a support bundle; the values of all others are hidden.

/// Variables of an environment whose values are shown. Of every other one only the name is: what is in it is not known here.
const VARIABLES: [&str; 29] = [
    "ADDRESS",
    "CSI_ENDPOINT",
    "CSI_NAMESPACE",
    "DRIVER_REG_SOCK_PATH",
    "GODEBUG",
    "GOGC",
    "GOMAXPROCS",
    "GOMEMLIMIT",
    "HOST_IP",
    "INCLUSTER_CLIENT_BURST",
    "INCLUSTER_CLIENT_QPS",
    "KUBERNETES_SERVICE_HOST",
    "KUBERNETES_SERVICE_PORT",
    "LOGGER_LEVEL",
    "MAX_VOLUMES_PER_NODE",
    "NODEGETINFO_WATCH_TIMEOUT_MINUTES",
    "NODE_NAME",
    "NO_PROXY",
    "PLUGIN_REG_DIR",
    "POD_IP",
    "POD_NAME",
    "POD_NAMESPACE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "VDO_IDENTITY",
    "VDO_NAMESPACE",
    "VSPHERE_CSI_CONFIG",
    "WEBHOOK_CONFIG_PATH",
    "X_CSI_MODE",
];

/// Further variables of the driver, shown as well.
const MORE_VARIABLES: [&str; 10] = [
    "FULL_SYNC_INTERVAL_MINUTES",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "X_CSI_LOG_LEVEL",
    "X_CSI_DEBUG",
    "X_CSI_SERIAL_VOL_ACCESS_TIMEOUT",
    "X_CSI_SPEC_DISABLE_LEN_CHECK",
    "X_CSI_SPEC_REQ_VALIDATION",
    "ENABLE_IPV4",
    "NODE_ID",
];

/// Whether the value of this variable of an environment may be shown.
#[must_use]
pub fn is_shown_variable(name: &str) -> bool {
    VARIABLES.contains(&name) || MORE_VARIABLES.contains(&name)
}

/// Whether this looks like a variable of an environment whose value is not to be shown.
pub(super) fn is_hidden_variable(name: &str) -> bool {
    let shape = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    name.len() > 2 && name.chars().all(shape) && name.chars().any(|c| c.is_ascii_uppercase()) && !is_shown_variable(name)
}
