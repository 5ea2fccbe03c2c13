// SPDX-License-Identifier: Apache-2.0
//! Finds programs (`PATH`, `PATHEXT`) and the folder with `.kube` on Windows, as pure functions that tests run on every system.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What is tried where `PATHEXT` is not set.
const ENDINGS: &str = ".COM;.EXE;.BAT;.CMD";

/// As client-go: the first of three folders that has `.kube\config`, else the first that is set.
pub(crate) fn kube_home(variable: impl Fn(&str) -> Option<OsString>, exists: impl Fn(&Path) -> bool) -> Option<PathBuf> {
    let (home, profile) = (variable("HOME"), variable("USERPROFILE"));
    let drive = variable("HOMEDRIVE").zip(variable("HOMEPATH")).map(|(mut drive, path)| {
        drive.push(path);
        drive
    });
    let with_file = [&home, &drive, &profile]
        .into_iter()
        .flatten()
        .find(|folder| exists(&Path::new(folder).join(".kube").join("config")));
    let found = with_file.or_else(|| {
        [&home, &profile, &drive]
            .into_iter()
            .flatten()
            .find(|folder| exists(Path::new(folder)))
    });
    found.map(PathBuf::from)
}

/// The file that a name leads to: in these folders, or where it is a path there; the name itself where no file fits. The folder in which the user
/// stands is not among them, so that no one else's program is run from there.
pub(crate) fn program(name: &str, folders: &[PathBuf], endings: &str, is_file: impl Fn(&Path) -> bool) -> String {
    let endings = if endings.is_empty() { ENDINGS } else { endings };
    let is_path = name.contains(['/', '\\', ':']);
    let here = [PathBuf::new()];
    let folders = if is_path { &here } else { folders };
    let given = name.rsplit(['/', '\\']).next().is_some_and(|last| last.contains('.'));
    let names: Vec<String> = given
        .then(|| name.to_owned())
        .into_iter()
        .chain(
            endings
                .split(';')
                .filter(|ending| !ending.is_empty())
                .map(|ending| format!("{name}{ending}")),
        )
        .collect();
    folders
        .iter()
        .filter(|folder| is_path || folder.is_absolute())
        .flat_map(|folder| names.iter().map(move |name| folder.join(name)))
        .find(|path| is_file(path))
        .and_then(|path| path.to_str().map(str::to_owned))
        .unwrap_or_else(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kube_home_is_found_as_by_kubectl() {
        const ALL: &[(&str, &str)] = &[("HOME", "/h"), ("USERPROFILE", "/u"), ("HOMEDRIVE", "/n"), ("HOMEPATH", "/p")];
        for (set, there, expected) in [
            (ALL, &["/h/.kube/config", "/u/.kube/config"][..], Some("/h")),
            (ALL, &["/n/p/.kube/config", "/u/.kube/config"], Some("/n/p")),
            (ALL, &["/h", "/u/.kube/config"], Some("/u")),
            (ALL, &["/u", "/n/p"], Some("/u")),
            (ALL, &["/n/p"], Some("/n/p")),
            (&ALL[1..2], &["/u"], Some("/u")),
            (&ALL[2..3], &["/n"], None),
            (&[], &[], None),
        ] {
            let variable = |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value));
            let found = kube_home(variable, |path| there.iter().any(|known| Path::new(known) == path));
            assert_eq!(found, expected.map(PathBuf::from), "{set:?} {there:?}");
        }
    }

    #[test]
    fn program_is_found_with_the_endings_of_the_shell() {
        let folders = ["/one".into(), "/two".into()];
        for (name, endings, there, expected) in [
            ("az", ".EXE;.CMD", &["/two/az.CMD"][..], "/two/az.CMD"),
            ("az", ".EXE;.CMD", &["/two/az.EXE", "/one/az.CMD"], "/one/az.CMD"),
            ("az", "", &["/one/az.EXE"], "/one/az.EXE"),
            ("az.exe", ".EXE", &["/one/az.exe"], "/one/az.exe"),
            (
                "docker-credential-a.b",
                ".EXE",
                &["/one/docker-credential-a.b.EXE"],
                "/one/docker-credential-a.b.EXE",
            ),
            ("az", ".EXE", &["/one/az", "az.EXE"], "az"),
            ("/my tools/az", ".EXE", &["/my tools/az.EXE"], "/my tools/az.EXE"),
            ("gone", ".EXE", &[], "gone"),
        ] {
            let found = program(name, &folders, endings, |path| there.iter().any(|known| Path::new(known) == path));
            assert_eq!(found, expected, "{name} {endings}");
        }
    }
}
