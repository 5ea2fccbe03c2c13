// SPDX-License-Identifier: Apache-2.0
//! The files of a cluster and the command lines of its processes.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::binaries::Binaries;
use crate::cluster::{Cluster, ClusterOptions};
use crate::kubeconfig::{self, Proof};
use crate::logs;
use crate::pki::{Authority, Validity, signing_key};
use crate::ports::Port;
use crate::process::Launch;
use crate::stages;
use crate::upstream_programs::Part;
use crate::workdir::Workdir;

/// One line for each request when it is done, and one when a watch begins.
pub(crate) const POLICY: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
";

#[derive(Debug)]
pub(crate) struct Layout {
    ca: String,
    etcd_client: Port,
    etcd_peer: Port,
    secure: Port,
    kwok: Port,
    workdir: Workdir,
}

impl Layout {
    /// Chooses ports and writes keys, certificates and kubeconfigs.
    pub(crate) fn prepare(workdir: Workdir) -> Result<Self> {
        let authority = Authority::new("testbed-cluster-ca")?;
        let ports = (Port::claim()?, Port::claim()?, Port::claim()?, Port::claim()?);
        let layout = Self {
            ca: authority.pem(),
            etcd_client: ports.0,
            etcd_peer: ports.1,
            secure: ports.2,
            kwok: ports.3,
            workdir,
        };
        for stale in ["audit.log", "etcd"] {
            let path = layout.path(stale);
            let _ = if path.is_dir() {
                std::fs::remove_dir_all(path)
            } else {
                std::fs::remove_file(path)
            };
        }
        let server = authority.server(&["127.0.0.1", "localhost"], Validity::Good)?;
        let (private, public) = signing_key()?;
        for (name, content) in [
            ("ca.crt", &layout.ca),
            ("server.crt", &server.cert),
            ("server.key", &server.key),
            ("service-accounts.key", &private),
            ("service-accounts.pub", &public),
        ] {
            layout.workdir.write_private(name, content)?;
        }
        let masters = Some("system:masters");
        for (file, user, group) in [
            ("admin", Cluster::ADMIN, masters),
            ("agent", "testbed-node-agent", masters),
            ("kwok", "testbed-kwok", masters),
            ("controller-manager", "system:kube-controller-manager", None),
            ("scheduler", "system:kube-scheduler", None),
        ] {
            let leaf = authority.client(user, group)?;
            let path = layout.path(&format!("{file}.kubeconfig"));
            kubeconfig::write(&path, &layout.server_url(), &layout.ca, user, &Proof::Certificate(&leaf))?;
        }
        Ok(layout)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.workdir.join(name)
    }

    pub(crate) fn dir(&self) -> &Path {
        self.workdir.path()
    }

    pub(crate) fn keep(&mut self) {
        self.workdir.keep();
    }

    pub(crate) fn ca(&self) -> &str {
        &self.ca
    }

    pub(crate) fn server_url(&self) -> String {
        format!("https://127.0.0.1:{}", self.secure.number())
    }

    fn launch(&self, name: &str, program: impl Into<PathBuf>) -> Launch {
        // Collecting garbage less often saves a tenth of all processor time; the limit is where it becomes usual again.
        Launch::new(name, program, self.path(&format!("{name}.log")))
            .env("GOGC", "400")
            .env("GOMEMLIMIT", "900MiB")
    }

    /// Where etcd answers.
    pub(crate) fn etcd_port(&self) -> u16 {
        self.etcd_client.number()
    }

    pub(crate) fn etcd(&self, binaries: &Binaries) -> Launch {
        let client = format!("http://127.0.0.1:{}", self.etcd_client.number());
        let peer = format!("http://127.0.0.1:{}", self.etcd_peer.number());
        self.launch("etcd", binaries.path(Part::Etcd))
            .flag("data-dir", self.path("etcd"))
            .flag("listen-client-urls", &client)
            .flag("advertise-client-urls", &client)
            .flag("listen-peer-urls", &peer)
            .flag("initial-advertise-peer-urls", &peer)
            .flag("initial-cluster", format!("default={peer}"))
            .flag("log-level", "warn")
            .arg("--unsafe-no-fsync")
    }

    pub(crate) fn apiserver(&self, program: &Path, more: &[String]) -> Launch {
        let launch = self
            .launch("kube-apiserver", program)
            .flag("etcd-servers", format!("http://127.0.0.1:{}", self.etcd_client.number()))
            .flag("secure-port", self.secure.number().to_string())
            .flag("bind-address", "127.0.0.1")
            // Nothing uses it, and a machine without a network has none to be found.
            .flag("advertise-address", "192.0.2.1")
            .flag("tls-cert-file", self.path("server.crt"))
            .flag("tls-private-key-file", self.path("server.key"))
            .flag("client-ca-file", self.path("ca.crt"))
            .flag("service-account-issuer", "https://kubernetes.default.svc")
            .flag("service-account-key-file", self.path("service-accounts.pub"))
            .flag("service-account-signing-key-file", self.path("service-accounts.key"))
            .flag("authorization-mode", "RBAC")
            .flag("service-cluster-ip-range", "10.0.0.0/24")
            .flag("allow-privileged", "true")
            .flag("endpoint-reconciler-type", "none")
            // Nothing carries the addresses of Services, so aggregated APIs and webhooks are reached at their pods.
            .flag("enable-aggregator-routing", "true")
            .flag("audit-policy-file", self.path("audit-policy.yaml"))
            .flag("audit-log-path", self.path("audit.log"))
            .flag("audit-log-maxsize", "10000");
        more.iter().fold(launch, Launch::arg)
    }

    pub(crate) fn controller_manager(&self, binaries: &Binaries) -> Launch {
        self.launch("kube-controller-manager", binaries.path(Part::ControllerManager))
            .flag("kubeconfig", self.path("controller-manager.kubeconfig"))
            .flag("service-account-private-key-file", self.path("service-accounts.key"))
            .flag("root-ca-file", self.path("ca.crt"))
            .flag("use-service-account-credentials", "true")
            .flag("leader-elect", "false")
            .flag("secure-port", "0")
            // Its own thrift would cost seconds at each start.
            .flag("kube-api-qps", "1000")
            .flag("kube-api-burst", "2000")
            // kwok renews a lease every few minutes, to keep the audit log quiet.
            .flag("node-monitor-grace-period", "3600s")
    }

    pub(crate) fn scheduler(&self, binaries: &Binaries) -> Launch {
        self.launch("kube-scheduler", binaries.path(Part::Scheduler))
            .flag("kubeconfig", self.path("scheduler.kubeconfig"))
            .flag("leader-elect", "false")
            .flag("secure-port", "0")
    }

    pub(crate) fn kwok(&self, binaries: &Binaries, options: &ClusterOptions) -> Result<Launch> {
        let launch = self
            .launch("kwok", binaries.path(Part::Kwok))
            .flag("kubeconfig", self.path("kwok.kubeconfig"))
            .flag("manage-all-nodes", "false")
            .flag("manage-nodes-with-annotation-selector", "kwok.x-k8s.io/node=fake")
            .flag("node-lease-duration-seconds", "600")
            .flag("cidr", "10.1.0.0/16")
            .flag("node-ip", "127.0.0.1")
            .flag("server-address", format!("127.0.0.1:{}", self.kwok.number()))
            // As every node's kubelet, which the API server asks for logs.
            .flag("node-port", self.kwok.number().to_string())
            .flag("config", logs::write(self.dir())?);
        let stages = stages::write(&binaries.kwok_stages()?, &options.images, options.pull, &self.path("stages"))?;
        Ok(stages.iter().fold(launch, |launch, stage| launch.flag("config", stage)))
    }
}
