// SPDX-License-Identifier: Apache-2.0
//! Sources that the test bed changes before it builds them: upstream's, but for the few lines that are listed here.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::upstream_programs::Part;

/// What the programs are made of.
const FOLDERS: [&str; 2] = ["cmd", "pkg"];

/// A module of upstream's and what is changed in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Changed {
    pub(crate) module: &'static str,
    changes: &'static [Change],
}

#[derive(Clone, Copy, Debug)]
struct Change {
    file: &'static str,
    /// A text that occurs once in the file, and what takes its place.
    from: &'static str,
    to: &'static str,
}

/// All pods share the network of this machine: a program that has its port in itself asks for the place of its pod's port.
const CONTROLLER_PORT: Change = Change {
    file: "pkg/csi/service/vanilla/controller.go",
    from: "http.ListenAndServe(\":2112\", nil)",
    to: "http.ListenAndServe(os.Getenv(\"TESTBED_PORT_2112\"), nil)",
};
const SYNCER_PORT: Change = Change {
    file: "cmd/syncer/main.go",
    from: "http.ListenAndServe(\":2113\", nil)",
    to: "http.ListenAndServe(os.Getenv(\"TESTBED_PORT_2113\"), nil)",
};
/// A port for figures that the pod's specification does not name: any free one.
const OPERATOR_PORT: Change = Change {
    file: "pkg/syncer/cnsoperator/manager/init.go",
    from: "metricsPort int32 = 8383",
    to: "metricsPort int32 = 0",
};
/// In a package that the syncer has for a supervisor cluster. It needs a C compiler and another crypto library for everything.
const ONLY_FIPS: Change = Change {
    file: "pkg/syncer/admissionhandler/cnscsi_admissionhandler.go",
    from: "\t_ \"crypto/tls/fipsonly\"\n",
    to: "",
};
/// For volumes that were made without CSI. With it the resizer is built from the libraries that the other sidecars have.
const LOGGER: Change = Change {
    file: "pkg/resizer/csi_resizer.go",
    from: "TranslateInTreePVToCSI(pv)",
    to: "TranslateInTreePVToCSI(klog.TODO(), pv)",
};

const DRIVER: &str = "sigs.k8s.io/vsphere-csi-driver/v3";

/// What is changed for a part; nothing for most.
pub(crate) fn changed(part: Part) -> Option<Changed> {
    let (module, changes): (_, &'static [Change]) = match part {
        Part::CsiDriver | Part::CsiSyncer => (DRIVER, &[CONTROLLER_PORT, SYNCER_PORT, OPERATOR_PORT, ONLY_FIPS]),
        Part::OldCsiDriver | Part::OldCsiSyncer => (DRIVER, &[CONTROLLER_PORT, SYNCER_PORT, OPERATOR_PORT]),
        Part::CsiResizer => ("github.com/kubernetes-csi/external-resizer", &[LOGGER]),
        _ => return None,
    };
    Some(Changed { module, changes })
}

impl Changed {
    /// Copies the module from `from`, a folder of Go's, to `folder`, and changes it. A release with other lines is refused.
    pub(crate) fn copy(&self, from: &Path, folder: &Path) -> Result<()> {
        copy(from, folder)?;
        self.changes
            .iter()
            .try_for_each(|one| change(&folder.join(one.file), one.from, one.to))
    }

    /// The text of a `go.mod` that takes the module from `folder`.
    pub(crate) fn redirected(&self, text: &str, folder: &Path) -> Result<String> {
        let folder = folder.to_str().context("a folder whose name is not UTF-8")?;
        ensure!(
            !folder.contains(['"', '\\', '\n']),
            "go.mod cannot name the folder {folder:?}: use another one in VDO_TESTBED_DIR"
        );
        Ok(format!("{text}\nreplace {} => \"{folder}\"\n", self.module))
    }
}

fn copy(module: &Path, folder: &Path) -> Result<()> {
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).with_context(|| format!("folder {}", folder.display()))?;
    fs::write(folder.join("go.mod"), fs::read(module.join("go.mod"))?)?;
    for name in FOLDERS {
        copy_folder(&module.join(name), &folder.join(name))?;
    }
    Ok(())
}

/// Without the tests, which need other modules.
fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("folder {}", from.display()))? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else if !entry.file_name().to_string_lossy().ends_with("_test.go") {
            // Not fs::copy: files of Go's module cache cannot be written to.
            fs::write(&target, fs::read(entry.path())?)?;
        }
    }
    Ok(())
}

fn change(file: &Path, from: &str, to: &str) -> Result<()> {
    let text = fs::read_to_string(file).with_context(|| format!("source {}", file.display()))?;
    ensure!(
        text.matches(from).count() == 1,
        "source {} does not have {from:?} once: look how this release does it",
        file.display()
    );
    fs::write(file, text.replacen(from, to, 1))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Changed = Changed {
        module: "m.test/m",
        changes: &[SYNCER_PORT],
    };

    /// A module with this line in the file that is changed.
    fn module(line: &str) -> Result<tempfile::TempDir> {
        let folder = tempfile::tempdir()?;
        for (file, text) in [
            ("go.mod", "module m\n"),
            (SYNCER_PORT.file, line),
            ("cmd/syncer/main_test.go", ""),
            ("pkg/p.go", "package p"),
        ] {
            let file = folder.path().join(file);
            fs::create_dir_all(file.parent().context("a folder")?)?;
            fs::write(file, text)?;
        }
        Ok(folder)
    }

    #[test]
    fn copy_known_release_is_changed_in_these_places_only() -> Result<()> {
        let module = module("err = http.ListenAndServe(\":2113\", nil)")?;
        let folder = tempfile::tempdir()?;
        let copied = folder.path().join("a folder");
        ONE.copy(module.path(), &copied)?;
        ONE.copy(module.path(), &copied)?;
        let text = |file: &str| fs::read_to_string(copied.join(file));
        assert_eq!(
            text(SYNCER_PORT.file)?,
            "err = http.ListenAndServe(os.Getenv(\"TESTBED_PORT_2113\"), nil)"
        );
        assert_eq!(text("pkg/p.go")?, "package p");
        assert!(text("cmd/syncer/main_test.go").is_err());
        Ok(())
    }

    #[test]
    fn copy_release_with_another_line_is_refused() -> Result<()> {
        let module = module("err = http.ListenAndServe(\":9999\", nil)")?;
        let folder = tempfile::tempdir()?;
        let error = ONE.copy(module.path(), folder.path()).expect_err("it was accepted");
        assert!(error.to_string().contains("look how this release does it"), "{error}");
        Ok(())
    }

    #[test]
    fn redirected_folder_with_a_space_is_quoted() -> Result<()> {
        let text = ONE.redirected("module m\n", Path::new("/a b"))?;
        assert_eq!(text, "module m\n\nreplace m.test/m => \"/a b\"\n");
        assert!(ONE.redirected("", Path::new("/a\"b")).is_err());
        Ok(())
    }
}
