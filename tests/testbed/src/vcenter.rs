// SPDX-License-Identifier: Apache-2.0
//! A simulated vCenter.

mod administrators;
mod soap;
mod supervisor;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::binaries::Binaries;
use crate::pki::{Authority, Leaf, Validity};
use crate::ports::Port;
use crate::process::{Launch, Process};
use crate::upstream_programs::Part;
use crate::wait::{PATIENCE, Probe, until};
use crate::workdir::Workdir;
pub use administrators::Gate;

/// A virtual machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vm {
    /// Its name in the inventory and the host name inside.
    pub name: String,
    /// Its address.
    pub ip: String,
}

impl Vm {
    /// A machine with this name and address.
    pub fn new(name: &str, ip: &str) -> Self {
        Self {
            name: name.into(),
            ip: ip.into(),
        }
    }
}

/// What a vCenter shall be.
#[derive(Clone, Debug)]
pub struct VcenterOptions {
    /// Its version.
    pub version: String,
    /// Its build number.
    pub build: String,
    /// The administrator, who can log in.
    pub user: String,
    /// That user's password.
    pub password: String,
    /// More users who can log in, with their passwords.
    pub more_users: BTreeMap<String, String>,
    /// Its virtual machines.
    pub vms: Vec<Vm>,
    /// The one datacenter.
    pub datacenter: String,
    /// How many hosts its cluster has.
    pub hosts: usize,
    /// How many datastores it has.
    pub datastores: usize,
    /// Instead of the one datacenter and the machines named above: so many datacenters, each in a folder of its own, with so many
    /// machines each.
    pub large: Option<(usize, usize)>,
    /// The instance UUID, which also decides the UUIDs of the machines.
    pub instance_uuid: String,
    /// When its certificate is valid.
    pub validity: Validity,
    /// The names in its certificate.
    pub certificate_names: Vec<String>,
    /// A lasting folder; without one a temporary folder is used and removed.
    pub dir: Option<std::path::PathBuf>,
    /// The port to serve on; a free one if not given.
    pub port: Option<u16>,
}

impl Default for VcenterOptions {
    fn default() -> Self {
        Self {
            version: "8.0.3".into(),
            build: "24022515".into(),
            user: "administrator@vsphere.local".into(),
            // Everything that a configuration language may trip over.
            password: r#"p@ss"w\or d#;%$='"#.into(),
            more_users: BTreeMap::new(),
            vms: Vec::new(),
            datacenter: "DC0".into(),
            hosts: 1,
            datastores: 1,
            large: None,
            instance_uuid: "8b1f2c9e-6a55-4c8e-9d43-0f6f3a1c7e11".into(),
            validity: Validity::Good,
            certificate_names: vec!["127.0.0.1".into(), "localhost".into()],
            dir: None,
            port: None,
        }
    }
}

impl VcenterOptions {
    /// The default one with these machines.
    pub fn with_vms<'a>(names_and_ips: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        Self {
            vms: names_and_ips.into_iter().map(|(name, ip)| Vm::new(name, ip)).collect(),
            ..Self::default()
        }
    }
}

/// How often a user tried to log in.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
pub struct Logins {
    /// With the right password.
    pub succeeded: u64,
    /// With a wrong one.
    pub failed: u64,
}

/// A running vCenter. Dropping it ends it.
#[derive(Debug)]
pub struct Vcenter {
    process: Option<Process>,
    _claim: Option<Port>,
    options: VcenterOptions,
    leaf: Leaf,
    ca: String,
    port: u16,
    binaries: Binaries,
    workdir: Workdir,
}

impl Vcenter {
    /// Starts one and waits until it answers.
    pub async fn start(options: VcenterOptions) -> Result<Self> {
        let binaries = tokio::task::spawn_blocking(|| Binaries::ensure(&[Part::Vcsim])).await??;
        let mut vcenter = Self::prepare(options, binaries)?;
        match vcenter.resume().await {
            Ok(()) => Ok(vcenter),
            Err(error) => {
                vcenter.workdir.keep();
                Err(error)
            }
        }
    }

    /// Starts another one in the process of this one, which is far cheaper and ends with it.
    pub async fn beside(&self, options: VcenterOptions) -> Result<Self> {
        let vcenter = Self::prepare(options, self.binaries.clone())?;
        let request = http::Request::post("/ctl/start").body(serde_json::to_vec(&vcenter.arguments())?)?;
        self.http()?.request_text(request).await?;
        Ok(vcenter)
    }

    /// Everything but the process.
    fn prepare(options: VcenterOptions, binaries: Binaries) -> Result<Self> {
        let workdir = Workdir::new("vcenter", options.dir.as_deref())?;
        let authority = Authority::new("testbed-vcenter-ca")?;
        let names: Vec<&str> = options.certificate_names.iter().map(String::as_str).collect();
        let leaf = authority.server(&names, options.validity)?;
        let ca = authority.pem();
        workdir.write_private("ca.crt", &ca)?;
        workdir.write_private("leaf.key", &leaf.key)?;
        workdir.write_private("chain.crt", format!("{}{ca}", leaf.cert))?;
        workdir.write_private("password", &options.password)?;
        workdir.write_private("users.json", serde_json::to_string(&options.more_users)?)?;
        // A port that stays ours while the vCenter is stopped, so that it can come back.
        let claim = if options.port.is_none() { Some(Port::claim()?) } else { None };
        let port = options.port.or(claim.as_ref().map(Port::number)).unwrap_or_default();
        Ok(Self {
            process: None,
            _claim: claim,
            options,
            leaf,
            ca,
            port,
            binaries,
            workdir,
        })
    }

    /// Ends it as a power cut would; one in the process of another goes on. [`Vcenter::resume`] brings it back.
    pub fn stop(&mut self) {
        self.process = None;
    }

    /// Starts it again on the same address, with the same certificate and a fresh inventory.
    pub async fn resume(&mut self) -> Result<()> {
        self.process = None;
        let output = self.workdir.join("vcsim.out");
        let mut process = self.launch(&output).spawn()?;
        until("vcsim", PATIENCE, async || {
            process.check()?;
            let text = std::fs::read_to_string(&output).unwrap_or_default();
            Ok(Probe::when(text.ends_with('\n'), "it has not said its address"))
        })
        .await
        .with_context(|| format!("log: {}", process.log().display()))?;
        self.process = Some(process);
        Ok(())
    }

    /// Restarts it so that it says it is another version.
    pub async fn report_version(&mut self, version: &str) -> Result<()> {
        self.options.version = version.into();
        self.resume().await
    }

    fn launch(&self, output: &Path) -> Launch {
        // It keeps the contents of datastores in files, and leaves them there when it is killed.
        let folder = self.workdir.path().to_string_lossy();
        let launch = Launch::new("vcsim", self.binaries.path(Part::Vcsim), self.workdir.join("vcsim.log"))
            .stdout(output)
            .env("TMPDIR", &folder);
        self.arguments().iter().fold(launch, |launch, argument| launch.arg(argument))
    }

    fn arguments(&self) -> Vec<String> {
        let options = &self.options;
        let file = |name: &str| self.workdir.join(name).display().to_string();
        let mut flags = vec![
            ("listen", self.address()),
            ("tls-cert", file("chain.crt")),
            ("tls-key", file("leaf.key")),
            ("password-file", file("password")),
            ("users-file", file("users.json")),
            ("version", options.version.clone()),
            ("build", options.build.clone()),
            ("instance-uuid", options.instance_uuid.clone()),
            ("user", options.user.clone()),
            ("datacenter", options.datacenter.clone()),
            ("hosts", options.hosts.to_string()),
            ("datastores", options.datastores.to_string()),
        ];
        match options.large {
            Some((datacenters, machines)) => {
                flags.push(("datacenters", datacenters.to_string()));
                flags.push(("machines-each", machines.to_string()));
            }
            None => flags.extend(options.vms.iter().map(|vm| ("vm", format!("{}={}", vm.name, vm.ip)))),
        }
        flags.into_iter().map(|(flag, value)| format!("--{flag}={value}")).collect()
    }

    /// The host to connect to.
    pub fn host(&self) -> &'static str {
        "127.0.0.1"
    }

    /// The port to connect to.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `host:port`.
    pub fn address(&self) -> String {
        format!("{}:{}", self.host(), self.port)
    }

    /// The authority that signed its certificate.
    pub fn ca_pem(&self) -> &str {
        &self.ca
    }

    /// SHA-1 thumbprint of its certificate.
    pub fn thumbprint_sha1(&self) -> String {
        self.leaf.sha1()
    }

    /// SHA-256 thumbprint of its certificate.
    pub fn thumbprint_sha256(&self) -> String {
        self.leaf.sha256()
    }

    /// The user who can log in.
    pub fn user(&self) -> &str {
        &self.options.user
    }

    /// That user's password.
    pub fn password(&self) -> &str {
        &self.options.password
    }

    /// What it was started with.
    pub fn options(&self) -> &VcenterOptions {
        &self.options
    }

    /// Its folder, with `vcsim.log`.
    pub fn dir(&self) -> &Path {
        self.workdir.path()
    }

    /// Fails if it has ended by itself.
    pub fn check(&mut self) -> Result<()> {
        self.process.as_mut().map_or(Ok(()), Process::check)
    }

    /// How many requests clients have made so far.
    pub async fn requests(&self) -> Result<u64> {
        let request = http::Request::get("/ctl/requests").body(Vec::new())?;
        Ok(self.http()?.request_text(request).await?.trim().parse()?)
    }

    /// The calls of clients with this user agent, without its version, and how often each was made: methods, and of the REST service verb, path
    /// and action without identifiers.
    pub async fn calls(&self, agent: &str) -> Result<BTreeMap<String, u64>> {
        self.read_calls(agent, false).await
    }

    /// Forgets them.
    pub async fn forget_calls(&self, agent: &str) -> Result<()> {
        self.read_calls(agent, true).await.map(|_| ())
    }

    async fn read_calls(&self, agent: &str, forget: bool) -> Result<BTreeMap<String, u64>> {
        let request = http::Request::get(format!("/ctl/calls?agent={}&forget={forget}", query(agent))).body(Vec::new())?;
        let text = self.http()?.request_text(request).await?;
        Ok(serde_json::from_str::<Option<_>>(&text)?.unwrap_or_default())
    }

    /// Log-in attempts so far, by user name as it was sent.
    pub async fn logins(&self) -> Result<BTreeMap<String, Logins>> {
        let request = http::Request::get("/ctl/logins").body(Vec::new())?;
        Ok(serde_json::from_str(&self.http()?.request_text(request).await?)?)
    }

    /// Makes the next `count` calls of a method fail with `fault`: `NotAuthenticated`, `NoPermission`, `Generic`, ….
    pub async fn fail_next(&self, method: &str, fault: &str, count: u32) -> Result<()> {
        self.control(&format!("fault?method={method}&fault={fault}&count={count}")).await
    }

    /// Ends all faults.
    pub async fn fail_no_more(&self) -> Result<()> {
        self.control("fault").await
    }

    /// Takes privileges from a user, as far as questions about privileges go; with none the user has all again.
    pub async fn deny(&self, user: &str, privileges: &[&str]) -> Result<()> {
        self.deny_on(user, "", privileges).await
    }

    /// The same on one object, by its identifier such as `host-21`.
    pub async fn deny_on(&self, user: &str, object: &str, privileges: &[&str]) -> Result<()> {
        let privileges: String = privileges.iter().map(|privilege| format!("&privilege={privilege}")).collect();
        let user = query(user);
        self.control(&format!("deny?user={user}&object={object}{privileges}")).await
    }

    /// From now on calls need privileges, and an account is shown only what it may read; or no longer.
    pub async fn enforce(&self, on: bool) -> Result<()> {
        self.control(&format!("enforce?on={on}")).await
    }

    /// Makes a user a member of a group; both are there from then on.
    pub async fn join(&self, user: &str, group: &str) -> Result<()> {
        self.control(&format!("directory?join={}&group={}", query(user), query(group)))
            .await
    }

    /// The lengths that new passwords may have.
    pub async fn demand_password(&self, min: usize, max: usize) -> Result<()> {
        self.control(&format!("directory?min={min}&max={max}")).await
    }

    /// From now on users cannot be changed, or can again.
    pub async fn freeze_users(&self, on: bool) -> Result<()> {
        self.control(&format!("directory?read-only={on}")).await
    }

    /// Changes what the vCenter says of an object, for example `("VirtualMachine", "w-1", &[("hardware", "vmx-13")])`.
    ///
    /// Of a machine: `hardware`, `disk-uuid` (`true`, `false` or empty), `tools`, `host-name`, `address` (several with commas), `power`, `uuid`,
    /// `instance-uuid`, `snapshot`, `host`, `scsi` (`lsilogic`), `vapp` (its name). Of a host: `version`, `state`. Of a datastore:
    /// `url`, `type`, `accessible`, `maintenance`, `unmount` (a host). Of a datacenter: `new-name`.
    pub async fn set(&self, kind: &str, name: &str, values: &[(&str, &str)]) -> Result<()> {
        let values: String = values.iter().map(|(key, value)| format!("&{key}={}", query(value))).collect();
        self.control(&format!("set?kind={kind}&name={}{values}", query(name))).await
    }

    /// The identifier of an object.
    pub async fn id(&self, kind: &str, name: &str) -> Result<String> {
        let request = http::Request::get(format!("/ctl/id?kind={kind}&name={}", query(name))).body(Vec::new())?;
        Ok(self.http()?.request_text(request).await?)
    }

    /// Attaches a tag to an object; category and tag are made where they do not exist.
    pub async fn tag(&self, category: &str, tag: &str, kind: &str, name: &str) -> Result<()> {
        self.associate("attach", (category, tag), (kind, name)).await
    }

    /// Detaches it again.
    pub async fn untag(&self, category: &str, tag: &str, kind: &str, name: &str) -> Result<()> {
        self.associate("detach", (category, tag), (kind, name)).await
    }

    async fn associate(&self, action: &str, (category, tag): (&str, &str), (kind, name): (&str, &str)) -> Result<()> {
        let basic = base64::Engine::encode(
            &base64::engine::general_purpose::STANDARD,
            format!(
                "{}:{}",
                self.options.user.split('@').next().unwrap_or_default(),
                self.options.password
            ),
        );
        let session = self
            .rest("POST", "session", ("Authorization", &format!("Basic {basic}")), "")
            .await?;
        let session = session["value"].as_str().context("no session")?.to_owned();
        let header = ("vmware-api-session-id", session.as_str());
        let tagging = async |method, path: &str, body: &serde_json::Value| {
            self.rest(method, &format!("tagging/{path}"), header, &body.to_string()).await
        };
        let find = async |what: &str, name: &str| -> Result<Option<String>> {
            let ids = tagging("GET", what, &serde_json::Value::Null).await?;
            for id in ids["value"].as_array().into_iter().flatten().filter_map(|id| id.as_str()) {
                let found = tagging("GET", &format!("{what}/id:{id}"), &serde_json::Value::Null).await?;
                if found["value"]["name"] == name {
                    return Ok(Some(id.to_owned()));
                }
            }
            Ok(None)
        };
        let made = async |what: &str, spec: serde_json::Value| -> Result<String> {
            let made = tagging("POST", what, &serde_json::json!({"create_spec": spec})).await?;
            Ok(made["value"].as_str().context("no id")?.to_owned())
        };
        let category = match find("category", category).await? {
            Some(id) => id,
            None => {
                let spec = serde_json::json!({"name": category, "description": "", "cardinality": "MULTIPLE", "associable_types": []});
                made("category", spec).await?
            }
        };
        let id = match find("tag", tag).await? {
            Some(id) => id,
            None => made("tag", serde_json::json!({"name": tag, "description": "", "category_id": category})).await?,
        };
        let object = serde_json::json!({"object_id": {"id": self.id(kind, name).await?, "type": kind}});
        tagging("POST", &format!("tag-association/id:{id}?~action={action}"), &object).await?;
        self.rest("DELETE", "session", header, "").await?;
        Ok(())
    }

    async fn rest(&self, method: &str, path: &str, header: (&str, &str), body: &str) -> Result<serde_json::Value> {
        let request = http::Request::builder()
            .method(method)
            .uri(format!("/rest/com/vmware/cis/{path}"))
            .header(header.0, header.1)
            .header("Content-Type", "application/json")
            .body(body.as_bytes().to_vec())?;
        let text = self.http()?.request_text(request).await?;
        Ok(serde_json::from_str(&text).unwrap_or_default())
    }

    async fn control(&self, what: &str) -> Result<()> {
        let request = http::Request::get(format!("/ctl/{what}")).body(Vec::new())?;
        self.http()?.request_text(request).await?;
        Ok(())
    }

    /// A client that trusts this vCenter's authority.
    pub fn http(&self) -> Result<kube::Client> {
        let mut config = kube::Config::new(format!("https://{}", self.address()).parse()?);
        let ca = self.ca.lines().filter(|line| !line.starts_with("-----")).collect::<String>();
        config.root_cert = Some(vec![base64::Engine::decode(&base64::engine::general_purpose::STANDARD, ca)?]);
        // The test bed asks about the server's own view; whether its certificate is good is the test's question.
        config.accept_invalid_certs = self.options.validity != Validity::Good;
        Ok(kube::Client::try_from(config)?)
    }
}

/// A value as it stands in a query.
fn query(value: &str) -> String {
    value
        .bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => char::from(byte).to_string(),
            byte => format!("%{byte:02X}"),
        })
        .collect()
}
