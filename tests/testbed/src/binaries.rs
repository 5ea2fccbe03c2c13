// SPDX-License-Identifier: Apache-2.0
//! Builds the parts once and finds them again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest, Sha256};

use crate::csi::source::{self, Changed};
use crate::executable::write_program;
use crate::process::tail;
use crate::upstream_programs::{
    Files, GITOPS_DEFINITIONS, KUBERNETES_VERSION, KWOK_STAGES, Minor, OLM_DEFINITIONS, OLM_V1_DEFINITIONS, OPENSHIFT_DEFINITIONS, Part,
    REPORTED, SNAPSHOT_DEFINITIONS,
};

const NO_GO: &str = "the test bed builds its parts with Go 1.26 or newer, and no `go` program was found on PATH.
Get it from https://go.dev/dl/ (unpack the tarball to /usr/local and add /usr/local/go/bin to PATH),
or on Debian from the backports suite: apt install -t bookworm-backports golang-go, if that has 1.26.";

/// The folder with the built parts.
#[derive(Clone, Debug)]
pub struct Binaries {
    folder: PathBuf,
    assets: Option<PathBuf>,
    go_env: Vec<(String, String)>,
    quiet: bool,
    minor: Option<(Minor, PathBuf)>,
    /// The folders of programs that are built on demand, named by what they are built from.
    on_demand: BTreeMap<Part, PathBuf>,
}

impl Binaries {
    /// Builds every part that is missing.
    pub fn ensure_all() -> Result<Self> {
        Self::ensure(&Part::ALL)
    }

    /// Builds everything that the tests use.
    pub fn ensure_for_tests() -> Result<Self> {
        let all = Self::ensure(&[&Part::ALL[..], &Part::OF_TESTS].concat())?;
        for version in REPORTED {
            all.apiserver_reporting(version)?;
        }
        Ok(all)
    }

    /// Builds those of `parts` that are missing. It blocks, for minutes the first time; processes that call it at the
    /// same time wait for each other.
    pub fn ensure(parts: &[Part]) -> Result<Self> {
        Self::default_folder(false)?.with(parts)
    }

    /// The same in a folder of the caller's, with more environment for `go`.
    pub fn ensure_in(base: &Path, go_env: Vec<(String, String)>, parts: &[Part]) -> Result<Self> {
        let binaries = Self {
            folder: base.join(folder_name()?),
            assets: None,
            go_env,
            quiet: false,
            minor: None,
            on_demand: BTreeMap::new(),
        };
        binaries.with(parts)
    }

    /// The same, with the control plane of another minor, which is kept in a folder beside the others.
    pub(crate) fn ensure_of(minor: Minor, parts: &[Part]) -> Result<Self> {
        let binaries = Self::default_folder(false)?;
        let name = format!("kubernetes-{}-{}", minor.version, &hash_modules([minor.module])?[..12]);
        let folder = binaries.folder.with_file_name(name);
        let minor = Some((minor, folder));
        Self { minor, ..binaries }.with(parts)
    }

    /// The same, for a caller who tells people about it.
    pub(crate) fn ensure_quietly(parts: &[Part]) -> Result<Self> {
        Self::default_folder(true)?.with(parts)
    }

    fn default_folder(quiet: bool) -> Result<Self> {
        let base = std::env::var_os("VDO_TESTBED_DIR").map_or_else(|| repository().join(".testbed"), PathBuf::from);
        Ok(Self {
            folder: base.join(folder_name()?),
            assets: std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from),
            go_env: Vec::new(),
            quiet,
            minor: None,
            on_demand: BTreeMap::new(),
        })
    }

    fn with(mut self, parts: &[Part]) -> Result<Self> {
        for part in parts.iter().filter(|part| part.is_on_demand()) {
            let name = format!("{}-{}", part.module(), &hash_modules([part.module()])?[..12]);
            self.on_demand.insert(*part, self.folder.with_file_name(name));
        }
        let missing: Vec<Part> = parts.iter().copied().filter(|part| !self.path(*part).is_file()).collect();
        if missing.is_empty() {
            return Ok(self);
        }
        for part in &missing {
            let folder = self.folder_of(*part);
            fs::create_dir_all(folder).with_context(|| format!("folder {}", folder.display()))?;
        }
        let lock = File::create(self.folder_of(missing[0]).join("lock")).context("build lock")?;
        lock.lock().context("build lock")?;
        for part in missing {
            self.ensure_one(part)?;
        }
        Ok(self)
    }

    /// The file of one part.
    pub fn path(&self, part: Part) -> PathBuf {
        let own = || self.folder_of(part).join(part.file_name());
        match &self.assets {
            Some(assets) if part.is_envtest_asset() && self.minor_of(part).is_none() => Some(assets.join(part.file_name()))
                .filter(|file| file.is_file())
                .unwrap_or_else(own),
            _ => own(),
        }
    }

    fn minor_of(&self, part: Part) -> Option<&(Minor, PathBuf)> {
        self.minor.as_ref().filter(|_| part.is_of_the_control_plane())
    }

    fn folder_of(&self, part: Part) -> &Path {
        let own = self.on_demand.get(&part).unwrap_or(&self.folder);
        self.minor_of(part).map_or(own, |(_, folder)| folder)
    }

    fn module_of(&self, part: Part) -> &'static str {
        self.minor_of(part).map_or(part.module(), |(minor, _)| minor.module)
    }

    /// The version of the control plane.
    pub(crate) fn kubernetes(&self) -> &'static str {
        self.minor.as_ref().map_or(KUBERNETES_VERSION, |(minor, _)| minor.version)
    }

    /// The folder that holds them.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// kwok's stage files: what becomes of nodes and pods.
    pub fn kwok_stages(&self) -> Result<Vec<PathBuf>> {
        self.files(Part::Kwok, KWOK_STAGES)
    }

    /// The definitions of snapshots.
    pub fn snapshot_definitions(&self) -> Result<Vec<PathBuf>> {
        self.files(Part::SnapshotController, SNAPSHOT_DEFINITIONS)
    }

    /// The definitions of OLM v0.
    pub fn olm_definitions(&self) -> Result<Vec<PathBuf>> {
        self.files(Part::OlmOperator, OLM_DEFINITIONS)
    }

    /// The definitions of OLM v1.
    pub fn olm_v1_definitions(&self) -> Result<Vec<PathBuf>> {
        self.files(Part::OperatorController, OLM_V1_DEFINITIONS)
    }

    fn files(&self, part: Part, of: Files) -> Result<Vec<PathBuf>> {
        let folder = self.folder_of(part);
        let mut files: Vec<PathBuf> = of.paths.iter().map(|path| folder.join(of.folder).join(file_name(path))).collect();
        files.sort();
        match files.iter().find(|file| !file.is_file()) {
            None => Ok(files),
            Some(file) => bail!("{} is missing; remove {} and build again", file.display(), folder.display()),
        }
    }

    /// The definitions of OpenShift, from its own module, which is downloaded when they are missing.
    pub fn openshift_definitions(&self) -> Result<Vec<PathBuf>> {
        if self.files(Part::Apiserver, OPENSHIFT_DEFINITIONS).is_err() {
            let lock = File::create(self.folder.join("lock")).context("build lock")?;
            lock.lock().context("build lock")?;
            let from = self.download(&module_folder().join("openshift"), OPENSHIFT_DEFINITIONS.module)?;
            copy(OPENSHIFT_DEFINITIONS, &from, &self.folder, PathBuf::from)?;
        }
        self.files(Part::Apiserver, OPENSHIFT_DEFINITIONS)
    }

    /// The definitions of GitOps tools, each from its own module, which is downloaded when one is missing.
    pub fn gitops_definitions(&self) -> Result<Vec<PathBuf>> {
        let mut all = Vec::new();
        for files in GITOPS_DEFINITIONS {
            if self.files(Part::Gitopscheck, files).is_err() {
                let folder = self.folder_of(Part::Gitopscheck);
                let lock = File::create(folder.join("lock")).context("build lock")?;
                lock.lock().context("build lock")?;
                let from = self.download(&module_folder().join("gitops"), files.module)?;
                copy(files, &from, folder, PathBuf::from)?;
            }
            all.extend(self.files(Part::Gitopscheck, files)?);
        }
        Ok(all)
    }

    /// The same API server, linked again so that it says it is `version`.
    pub fn apiserver_reporting(&self, version: &str) -> Result<PathBuf> {
        if version == self.kubernetes() {
            return Ok(self.path(Part::Apiserver));
        }
        ensure!(
            REPORTED.contains(&version),
            "add {version} to REPORTED in tests/testbed/src/upstream_programs.rs"
        );
        let file = self.folder_of(Part::Apiserver).join(format!("kube-apiserver-{version}"));
        if !file.is_file() {
            let lock = File::create(self.folder.join("lock")).context("build lock")?;
            lock.lock().context("build lock")?;
            if !file.is_file() {
                self.build(Part::Apiserver, version, &file)?;
            }
        }
        Ok(file)
    }

    fn ensure_one(&self, part: Part) -> Result<()> {
        let file = self.folder_of(part).join(part.file_name());
        if file.is_file() {
            return Ok(());
        }
        if self.minor_of(part).is_some() || part.is_on_demand() {
            // The folder's name says which module it is from.
            return self.build(part, self.kubernetes(), &file);
        }
        let stamp = hash_modules([part.module()])?;
        if !self.reuse(part, &stamp)? {
            self.build(part, KUBERNETES_VERSION, &file)?;
            fs::write(self.stamp(part), &stamp)?;
        }
        Ok(())
    }

    fn stamp(&self, part: Part) -> PathBuf {
        self.folder.join(format!("{}.stamp", part.file_name()))
    }

    /// Takes the part from a neighbouring folder that was built from the same module.
    fn reuse(&self, part: Part, stamp: &str) -> Result<bool> {
        let base = self.folder.parent().context("build folder")?;
        let neighbours = fs::read_dir(base).context("build folder")?.flatten().map(|entry| entry.path());
        for folder in neighbours.filter(|folder| *folder != self.folder) {
            let other = Self {
                folder,
                assets: None,
                go_env: Vec::new(),
                quiet: true,
                minor: None,
                on_demand: BTreeMap::new(),
            };
            let same = fs::read_to_string(other.stamp(part)).is_ok_and(|text| text == stamp);
            if !same || !other.path(part).is_file() {
                continue;
            }
            if let Some(files) = part.files() {
                copy(files, &other.folder.join(files.folder), &self.folder, |path| file_name(path).into())?;
            }
            fs::copy(other.stamp(part), self.stamp(part))?;
            let file = self.folder.join(part.file_name());
            if fs::hard_link(other.path(part), &file).is_err() {
                write_program(&file, fs::read(other.path(part))?)?;
            }
            return Ok(true);
        }
        Ok(false)
    }

    fn say(&self, text: &str) {
        if !self.quiet {
            let _ = writeln!(std::io::stderr(), "test bed: {text}");
        }
    }

    /// The folder of a Go module's sources. `go list -m` would leave it empty until something has downloaded the module.
    fn download(&self, module: &Path, name: &str) -> Result<PathBuf> {
        let log = self.folder.join("download.log");
        let answer = self.go(module, &log, &[], &["mod", "download", "-json", name])?;
        let answer: serde_json::Value = serde_json::from_str(&answer).with_context(|| format!("download of {name}"))?;
        let folder = answer["Dir"].as_str().filter(|folder| !folder.is_empty());
        Ok(folder.with_context(|| format!("go names no folder for {name}: {answer}"))?.into())
    }

    /// Runs `go` with these variables and gives its output. Messages go to `log`.
    fn go(&self, module: &Path, log: &Path, env: &[(&str, &str)], args: &[&str]) -> Result<String> {
        let messages = File::create(log).with_context(|| format!("log file {}", log.display()))?;
        let mut command = Command::new("go");
        command.args(args).current_dir(module).stdin(Stdio::null()).stderr(messages);
        // The checksum database does not know these modules; their hashes are in go.sum.
        command.env(
            "GONOSUMDB",
            "k8s.io/cloud-provider-vsphere,github.com/operator-framework/operator-controller",
        );
        command.envs(env.iter().copied());
        command.envs(self.go_env.iter().map(|(name, value)| (name, value)));
        let output = match command.output() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => bail!(NO_GO),
            other => other.context("cannot run go")?,
        };
        if !output.status.success() {
            bail!(
                "`go {}` failed in {}; full log: {}; its end:\n{}",
                args.join(" "),
                module.display(),
                log.display(),
                tail(log, 15)
            );
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn build(&self, part: Part, version: &str, file: &Path) -> Result<()> {
        let module = module_folder().join(self.module_of(part));
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.say(&format!("building {}", file.display()));
        let started = Instant::now();
        if let Some(files) = part.files() {
            copy(files, &self.download(&module, files.module)?, self.folder_of(part), PathBuf::from)?;
        }
        let unfinished = file.with_file_name(format!("{name}.part"));
        let out = unfinished.to_string_lossy().into_owned();
        let log = file.with_file_name(format!("{name}.log"));
        let flags = part.ldflags(version);
        let mut args = vec![
            "build",
            "-trimpath",
            "-buildvcs=false",
            // The linker leaves these facts for debuggers out; without them the compiler needs a seventh less time.
            "-gcflags=all=-dwarf=false",
            "-tags",
            part.tags(),
            "-ldflags",
            &flags,
            "-o",
            &out,
        ];
        let changed = source::changed(part).map(|changed| self.lay_down(changed, &module)).transpose()?;
        args.extend(changed.as_deref());
        args.push(part.package());
        let env: &[_] = if part.is_contained() || part.is_on_demand() {
            &[("CGO_ENABLED", "0")]
        } else {
            &[]
        };
        self.go(&module, &log, env, &args)?;
        fs::rename(&unfinished, file).with_context(|| format!("file {}", file.display()))?;
        self.say(&format!("built {name} in {:.0} s", started.elapsed().as_secs_f32()));
        Ok(())
    }
}

impl Binaries {
    /// Lays sources down as they are to be built; gives the argument for `go build`.
    fn lay_down(&self, changed: Changed, module: &Path) -> Result<String> {
        let name = changed.module.replace('/', "-");
        let folder = self.folder.join(format!("{name}-source"));
        changed.copy(&self.download(module, changed.module)?, &folder)?;
        let file = self.folder.join(format!("{name}.mod"));
        fs::write(&file, changed.redirected(&fs::read_to_string(module.join("go.mod"))?, &folder)?)?;
        fs::copy(module.join("go.sum"), file.with_extension("sum"))?;
        Ok(format!("-modfile={}", file.display()))
    }
}

fn copy(files: Files, from: &Path, to: &Path, place: impl Fn(&'static str) -> PathBuf) -> Result<()> {
    let folder = to.join(files.folder);
    fs::create_dir_all(&folder)?;
    for path in files.paths {
        let source = from.join(place(path));
        let target = folder.join(file_name(path));
        let _ = fs::remove_file(&target);
        let text = fs::read(&source).with_context(|| format!("file {}", source.display()))?;
        fs::write(&target, text)?;
    }
    Ok(())
}

fn file_name(path: &'static str) -> &'static str {
    path.rsplit('/').next().unwrap_or(path)
}

fn repository() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_owned()
}

fn module_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("go")
}

/// Programs of other sources are in another folder.
fn folder_name() -> Result<String> {
    let modules: BTreeSet<&str> = Part::ALL.iter().map(|part| part.module()).collect();
    Ok(format!("bin-{}", &hash_modules(modules)?[..12]))
}

/// A digest over everything that decides what the programs of these modules are.
fn hash_modules(names: impl IntoIterator<Item = &'static str>) -> Result<String> {
    let folder = module_folder();
    let mut hash = Sha256::new();
    for name in names {
        for changed in Part::ALL
            .into_iter()
            .filter(|part| part.module() == name)
            .filter_map(source::changed)
        {
            hash.update(format!("{changed:?}"));
        }
        let module = folder.join(name);
        let entries = fs::read_dir(&module).with_context(|| format!("Go module {}", module.display()))?;
        let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        files.retain(|file| {
            file.extension()
                .is_some_and(|e| ["mod", "sum", "go"].iter().any(|known| e == *known))
        });
        files.sort();
        for file in files {
            let text = fs::read(&file)?;
            hash.update(format!(
                "{name}/{}\0{}\0",
                file.file_name().unwrap_or_default().to_string_lossy(),
                text.len()
            ));
            hash.update(&text);
        }
    }
    hash.update(KUBERNETES_VERSION);
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}
