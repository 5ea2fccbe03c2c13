// SPDX-License-Identifier: Apache-2.0
//! OLM v1 beside a cluster: the real catalogd and operator-controller, and a registry from which both pull.

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::json;

use crate::agent::launcher;
use crate::binaries::Binaries;
use crate::cluster::Cluster;
use crate::pki::{Authority, Validity};
use crate::ports::Port;
use crate::process::{Launch, Process};
use crate::registry::{RegistryAuth, RegistryKind, RegistryServer};
use crate::upstream_programs::Part;
use crate::workdir::Workdir;

/// The namespace of OLM v1.
pub const OLM_V1_NAMESPACE: &str = "olmv1-system";
/// The API of catalogs and extensions.
pub const OLM_V1: &str = "olm.operatorframework.io/v1";
const ACCOUNT: &str = "operator-controller";

/// Both programs. Dropping it ends them.
#[derive(Debug)]
pub struct OlmV1 {
    // Dropped in this order: the programs before the registry, the folder last.
    programs: Vec<Process>,
    registry: RegistryServer,
    folder: Workdir,
}

impl OlmV1 {
    /// What OLM v1 needs of the test bed.
    pub const PARTS: [Part; 2] = [Part::Catalogd, Part::OperatorController];

    /// Installs the definitions and the account, and starts both programs with it. There is no catalog yet.
    ///
    /// # Errors
    /// When this machine permits no user namespaces, among others.
    pub async fn start(cluster: &Cluster) -> Result<Self> {
        let binaries = tokio::task::spawn_blocking(|| Binaries::ensure(&Self::PARTS)).await??;
        for file in binaries.olm_v1_definitions()? {
            cluster.apply_file(file).await?;
        }
        let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "olm-v1"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": OLM_V1_NAMESPACE}]});
        for object in [
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": OLM_V1_NAMESPACE}}),
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": OLM_V1_NAMESPACE}}),
            binding,
        ] {
            cluster.apply_yaml(&object.to_string()).await?;
        }
        let mut olm = Self {
            programs: Vec::new(),
            registry: RegistryServer::start(RegistryKind::Olareg, RegistryAuth::None).await?,
            folder: Workdir::lasting(&cluster.dir().join("olm-v1"))?,
        };
        olm.launch(cluster, &binaries).await?;
        Ok(olm)
    }

    async fn launch(&mut self, cluster: &Cluster, binaries: &Binaries) -> Result<()> {
        let kubeconfig = cluster.service_account_kubeconfig(OLM_V1_NAMESPACE, ACCOUNT).await?;
        let token = cluster.service_account_token(OLM_V1_NAMESPACE, ACCOUNT).await?;
        let token = self.folder.write_private("token", token)?;
        let authority = Authority::new("authority of catalogd")?;
        let leaf = authority.server(&["127.0.0.1", "localhost"], Validity::Good)?;
        let (cert, key) = (
            self.folder.write_private("tls.crt", leaf.cert)?,
            self.folder.write_private("tls.key", leaf.key)?,
        );
        let folder = |name: &str| -> Result<PathBuf> {
            let folder = self.folder.join(name);
            std::fs::create_dir_all(&folder)?;
            Ok(folder)
        };
        let (catalogs, pulls) = (folder("catalogd-ca")?, folder("registry-ca")?);
        std::fs::write(catalogs.join("ca.crt"), authority.pem())?;
        std::fs::write(pulls.join("ca.crt"), self.registry.ca())?;
        let ports = (0..5).map(|_| Port::claim()).collect::<Result<Vec<_>>>()?;
        let at = |place: usize| format!("127.0.0.1:{}", ports[place].number());
        let launcher = launcher()?;
        let launch = |part: Part| {
            let log = self.folder.join(format!("{}.log", part.file_name()));
            // Both read the name of their account from the token of their pod, at a path that no option changes.
            let launch = Launch::new(part.file_name(), &launcher, log).arg("with-token");
            let launch = launch.arg(&token).arg(binaries.path(part));
            let launch = launch.flag("kubeconfig", &kubeconfig).flag("system-namespace", OLM_V1_NAMESPACE);
            launch
                .flag("pull-cas-dir", &pulls)
                .env("HOME", &self.folder.path().to_string_lossy())
        };
        let catalogd = launch(Part::Catalogd)
            .flag("catalogs-server-addr", at(0))
            .flag("external-address", format!("localhost:{}", ports[0].number()))
            .flag("cache-dir", folder("catalogd-cache")?)
            .flag("tls-cert", &cert)
            .flag("tls-key", &key)
            .flag("metrics-bind-address", at(1))
            .flag("health-probe-bind-address", at(2))
            .flag("webhook-server-port", ports[3].number().to_string())
            .spawn()?;
        let controller = launch(Part::OperatorController)
            .flag("catalogd-cas-dir", &catalogs)
            .flag("cache-path", folder("controller-cache")?)
            .flag("health-probe-bind-address", at(4))
            .flag("feature-gates", "SingleOwnNamespaceInstallSupport=true")
            .spawn()?;
        self.programs = vec![catalogd, controller];
        Ok(())
    }

    /// The registry, in which bundles and catalogs are stored.
    pub fn registry(&mut self) -> &mut RegistryServer {
        &mut self.registry
    }

    /// Has catalogd serve the catalog with this reference.
    pub async fn serve(&self, cluster: &Cluster, reference: &str) -> Result<()> {
        let labels = json!({"olm.operatorframework.io/metadata.name": "test-catalog"});
        let catalog = json!({"apiVersion": OLM_V1, "kind": "ClusterCatalog", "metadata": {"name": "test-catalog", "labels": labels},
            "spec": {"source": {"type": "Image", "image": {"ref": reference}}}});
        cluster.apply_yaml(&catalog.to_string()).await?;
        Ok(())
    }

    /// Fails if one of the programs has ended by itself.
    pub fn check(&mut self) -> Result<()> {
        self.programs.iter_mut().try_for_each(Process::check)
    }

    /// The folder with the logs.
    pub fn dir(&self) -> &Path {
        self.folder.path()
    }
}
