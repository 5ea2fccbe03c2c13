//! The demonstration: from nothing to healthy drivers, step by step, with everything left up to be looked at.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use kube::Client;

use super::screen::Screen;
use super::watch::{Watch, operator_runs};
use super::{Options, PARTS, State, Wanted, manifests};
use crate::audit::{AuditLog, Entry, Mark};
use crate::{Binaries, Cluster, Probe};

pub(super) const NAMESPACE: &str = "vmware-system-vdo";
const ACCOUNT: &str = "vdo-operator";
const OPERATOR: &str = "system:serviceaccount:vmware-system-vdo:vdo-operator";

/// Shows it. Where everything is as it should be, nothing is written.
pub async fn show(options: &Options) -> Result<()> {
    let mut show = Show {
        screen: Screen::new(),
        dir: options.dir.clone(),
        step: "tools",
    };
    let outcome = tokio::select! {
        outcome = show.run(options) => outcome,
        _ = tokio::signal::ctrl_c() => Err(anyhow!("interrupted")),
    };
    outcome.map_err(|error| {
        show.screen.clear();
        show.explained(&error)
    })
}

struct Show {
    screen: Screen,
    dir: PathBuf,
    step: &'static str,
}

impl Show {
    async fn run(&mut self, options: &Options) -> Result<()> {
        let programs = tools()?;
        self.step = "programs of the test bed";
        self.build().await?;

        self.step = "test bed";
        let doing = match super::running(&self.dir)? {
            true => "looking at the test bed that runs",
            false => "starting etcd, kube-apiserver, controllers, scheduler, nodes and vCenter",
        };
        let (state, found) = self.screen.during(doing, super::find_or_start(options)).await?;
        let client = crate::client(&state.kubeconfig).await?;
        let kubernetes = client.apiserver_version().await?.git_version;
        self.screen.done(format!(
            "test bed {}: Kubernetes {kubernetes}, {} nodes, vCenter {} with as many machines",
            if found { "found" } else { "started" },
            state.nodes.len(),
            state.vcenter.version,
        ));
        let audit = AuditLog::new(state.audit_log.clone(), client.clone());
        let begin = audit.mark().await?;

        self.step = "namespace, definitions and rights";
        self.apply(&client, &manifests::installation()?, "namespace, definitions and rights of deploy/")
            .await?;
        self.step = "operator";
        let state = self.operator(state, programs.join("vdo-operator")).await?;
        self.step = "samples";
        self.apply(
            &client,
            &manifests::samples(&state.vcenter)?,
            "Secret, connection and VDOConfig of deploy/samples/",
        )
        .await?;

        let dir = self.dir.clone();
        let mut watch = Watch::new(&client, &dir);
        self.step = "choice of versions";
        watch.chosen(&mut self.screen).await?;
        self.step = "initialised nodes";
        watch.initialised(&mut self.screen).await?;
        self.step = "CSI controller";
        watch.controller(&mut self.screen).await?;
        self.step = "VDOConfig Ready";
        watch.ready(&mut self.screen).await?;

        self.step = "what to see";
        self.epilogue(&state, &programs)?;
        self.writes(&audit, begin).await
    }

    /// Builds what is missing, one after the other.
    async fn build(&mut self) -> Result<()> {
        let binaries = Binaries::ensure_quietly(&[])?;
        let missing = PARTS.into_iter().filter(|part| !binaries.path(*part).is_file());
        let missing: Vec<_> = missing.collect();
        if missing.is_empty() {
            self.screen.done("programs of the test bed are built");
            return Ok(());
        }
        ensure!(
            found("go"),
            "go is missing, and {} programs have to be built with it. Install Go 1.26 or newer: https://go.dev/dl/",
            missing.len()
        );
        self.screen.text(format!(
            "{} programs of the test bed are missing in {}. All take about a quarter of an hour on two cores, a minute when Go has them cached.",
            missing.len(),
            binaries.folder().display()
        ));
        for (n, part) in missing.iter().copied().enumerate() {
            let what = format!("{} ({} of {})", part.file_name(), n + 1, missing.len());
            let built = tokio::task::spawn_blocking(move || Binaries::ensure_quietly(&[part]));
            self.screen.during(&format!("building {what}"), built).await??;
            self.screen.done(format!("built {what}"));
        }
        Ok(())
    }

    async fn apply(&mut self, client: &Client, objects: &[serde_json::Value], what: &str) -> Result<()> {
        let mut written = 0;
        for object in objects {
            self.screen.passing(format!("{}: {}", self.step, manifests::name(object)));
            written += usize::from(manifests::apply(client, object).await?);
        }
        self.screen.done(match written {
            0 => format!("{what}: all {} objects are as they should be", objects.len()),
            _ => format!("{what}: {written} of {} objects applied", objects.len()),
        });
        Ok(())
    }

    /// Has the operator run under its own service account.
    async fn operator(&mut self, state: State, program: PathBuf) -> Result<State> {
        let kubeconfig = state.kubeconfig.with_file_name(format!("{NAMESPACE}.{ACCOUNT}.kubeconfig"));
        let wanted = Wanted::new(program, kubeconfig)?;
        let fits = |state: &State| state.operator.as_ref().is_some_and(|operator| operator.wanted == wanted);
        let runs = fits(&state) && operator_runs(&self.dir).is_ok();
        if !runs {
            super::token(&self.dir, NAMESPACE, ACCOUNT).await?;
            wanted.ask(&self.dir)?;
        }
        // Until the request is taken up, the state tells of the operator before.
        let request = self.dir.join(super::operator::REQUEST);
        let dir = self.dir.clone();
        let (state, address) = self
            .screen
            .until(Duration::from_secs(60), async || {
                let state = super::state(&dir)?;
                let taken = !request.exists() && fits(&state);
                let Some(operator) = state.operator.clone().filter(|_| taken) else {
                    return Ok(Probe::not_yet("the operator starts"));
                };
                operator_runs(&dir)?;
                Ok(if operator.is_ready().await {
                    Probe::Ready((state, operator.address))
                } else {
                    Probe::not_yet(format!("http://{}/readyz is not answered with 200 yet", operator.address))
                })
            })
            .await?;
        self.screen.done(format!(
            "operator {} as {OPERATOR}, http://{address}/metrics",
            if runs { "runs" } else { "started" }
        ));
        self.screen
            .note("as a process of its own: nodes here run no containers, so its Deployment is not applied");
        Ok(state)
    }

    /// What an administrator would look at, and what to try.
    fn epilogue(&mut self, state: &State, programs: &Path) -> Result<()> {
        let bin = state.kubeconfig.with_file_name("bin");
        let vdoctl = programs.join("vdoctl");
        std::fs::create_dir_all(&bin)?;
        for (name, target) in [
            ("kubectl", state.binaries.join("kubectl")),
            ("vdoctl", vdoctl.clone()),
            ("kubectl-vdo", vdoctl),
        ] {
            let _ = std::fs::remove_file(bin.join(name));
            std::os::unix::fs::symlink(&target, bin.join(name)).with_context(|| format!("link to {}", target.display()))?;
        }
        let run = |program: &str, args: &[&str]| {
            let mut command = Command::new(bin.join(program));
            command
                .args(args)
                .env("KUBECONFIG", &state.kubeconfig)
                .env("VDO_KUBECONFIG", &state.kubeconfig);
            answer(&mut command)
        };
        self.screen.text("\n$ vdoctl status");
        self.screen.text(run("vdoctl", &["status"])?);
        let objects = ["get", "vdoconfig,vsphereconnection", "-n", NAMESPACE];
        self.screen.text(format!("\n$ kubectl {}", objects.join(" ")));
        self.screen.text(run("kubectl", &objects)?);

        let (kubeconfig, bin, dir) = (quoted(&state.kubeconfig), quoted(&bin), self.dir.display());
        self.screen.text(format!(
            "
Everything stays up. To look around:
  export KUBECONFIG={kubeconfig} PATH={bin}:$PATH
and then, for example:
  # what the cloud provider has told the cluster
  kubectl get nodes -o custom-columns=NODE:.metadata.name,PROVIDER:.spec.providerID
  # damage is repaired: the Service is back
  kubectl delete service vsphere-csi-controller -n vmware-system-csi && sleep 1 && kubectl get service -n vmware-system-csi
  # another version of the CSI driver; `vdoctl status` shows how far it is
  kubectl patch vdoconfig vdo -n {NAMESPACE} --type merge -p '{{\"spec\":{{\"cloudProvider\":{{}},\"storageProvider\":{{\"version\":\"3.6.3\"}}}}}}'
Log of the operator: {dir}/operator.log
End it all: {}
",
            self.stop(),
        ));
        Ok(())
    }

    /// Who wrote during this run: the audit log knows.
    async fn writes(&mut self, audit: &AuditLog, begin: Mark) -> Result<()> {
        // Whether somebody may do a thing is asked with a create that stores nothing.
        let writes = |entry: &Entry| entry.writes() && !entry.resource.ends_with("reviews") && entry.resource != "leases";
        let writes = audit.since(begin).await?.only(writes);
        let (demo, operator) = (writes.clone().of(Cluster::ADMIN).len(), writes.of(OPERATOR).len());
        self.screen.text(match demo + operator {
            0 => String::from("Everything was as it should be: 0 writes by the operator and this demo."),
            1 => format!("1 write, by {}.", if demo == 1 { "this demo" } else { "the operator" }),
            all => format!("{all} writes: {operator} by the operator, {demo} by this demo. Run it again: there will be none."),
        });
        Ok(())
    }

    /// The error with what helps to understand it.
    fn explained(&self, error: &anyhow::Error) -> anyhow::Error {
        let mut text = format!("step \"{}\": {error:#}\n", self.step);
        let up = super::running(&self.dir).unwrap_or(false);
        if !up && self.step != "test bed" {
            return anyhow!(text);
        }
        let logs = ["operator.log", "testbed.log", "cluster/kube-apiserver.log"].map(|log| self.dir.join(log));
        for log in logs.iter().filter(|log| log.is_file()) {
            text.push_str(&format!("\nlog: {}", log.display()));
        }
        if up && let Ok(state) = super::state(&self.dir) {
            let kubeconfig = quoted(&state.kubeconfig);
            text.push_str(&format!("\nThe cluster is left up to be looked at: export KUBECONFIG={kubeconfig}"));
        }
        if up {
            text.push_str(&format!("\nRun the demo again to go on, or end it all: {}", self.stop()));
        }
        anyhow!(text)
    }

    fn stop(&self) -> String {
        if self.dir == Path::new(".demo") {
            return "make demo-stop".into();
        }
        let own = std::env::current_exe().unwrap_or_else(|_| "vdo-testbed".into());
        format!("{} down --dir {}", quoted(&own), quoted(&self.dir))
    }
}

/// Looks for what is needed, and gives the folder of the project's own programs.
fn tools() -> Result<PathBuf> {
    for (tool, package) in [("setsid", "util-linux"), ("sh", "dash")] {
        ensure!(found(tool), "{tool} is missing. On Debian: apt install {package}");
    }
    let own = std::env::current_exe()?;
    let folder = own.parent().context("this program is in no folder")?;
    for program in ["vdo-operator", "vdoctl"] {
        ensure!(
            folder.join(program).is_file(),
            "{program} is not in {}. Build it: cargo build --workspace",
            folder.display()
        );
    }
    Ok(folder.to_owned())
}

/// Whether a program is on the path.
fn found(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

fn answer(command: &mut Command) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("cannot run {}", command.get_program().display()))?;
    let [stdout, stderr] = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).trim_end().to_owned());
    if !output.status.success() {
        bail!("{} failed ({}): {stdout}{stderr}", command.get_program().display(), output.status);
    }
    Ok(stdout)
}

/// A path as a shell reads it.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@%=:,".contains(c);
    if text.chars().all(plain) {
        return text;
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}
