// SPDX-License-Identifier: Apache-2.0
//! Matches the datacenters that a connection names (`spec.datacenters`) with those of the vCenter, by name or inventory path.

use super::match_vms::is_in;
use std::collections::BTreeSet;
use vdo_api::api::Reason;
use vdo_api::types::distance;
use vdo_api::types::name_list;

/// Finds the datacenters that a connection names among the paths that exist. A name alone fits a datacenter in any folder.
///
/// # Errors
/// With the first name that fits none or several, what is there instead, and what to do.
pub fn find_datacenters(wanted: &[String], paths: &[String]) -> Result<(), (Reason, String)> {
    // The drivers know a datacenter by its identifier too, which tells nothing about its path.
    for name in wanted.iter().filter(|name| !name.starts_with("Datacenter:")) {
        let bare = name.trim_matches('/');
        let fits: Vec<&String> = paths
            .iter()
            .filter(|path| path.trim_matches('/') == bare || (!name.contains('/') && last(path) == bare))
            .collect();
        match fits.as_slice() {
            [_] => {}
            [] => return Err((Reason::DatacenterNotFound, missing(name, paths))),
            many => {
                return Err((
                    Reason::DatacenterAmbiguous,
                    format!(
                        "spec.datacenters names {name:?}, which matches several datacenters: {}; write the inventory path",
                        name_list(many)
                    ),
                ));
            }
        }
    }
    Ok(())
}

/// The paths of the datacenters that a connection covers.
#[must_use]
pub fn datacenters_of(wanted: &[String], paths: &[String]) -> BTreeSet<String> {
    let covered = |path: &&String| wanted.is_empty() || wanted.iter().any(|name| is_in(path, name));
    paths.iter().filter(covered).cloned().collect()
}

fn missing(name: &str, paths: &[String]) -> String {
    let bare = last(name).to_lowercase();
    let near: Vec<&String> = paths
        .iter()
        .filter(|path| distance(&last(path).to_lowercase(), &bare) <= 1 + bare.len() / 6)
        .collect();
    let hint = match (near.is_empty(), paths.is_empty()) {
        (false, _) => format!("did you mean {}?", name_list(&near)),
        (true, false) => format!("the user can see: {}", name_list(paths)),
        (true, true) => "the user can see no datacenters; give the user the role Read-only, with propagation".into(),
    };
    format!("spec.datacenters names {name:?}, which does not exist; {hint}")
}

fn last(path: &str) -> &str {
    path.trim_matches('/').rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datacenters_field_unknown_or_ambiguous_name_is_reported() {
        let paths = ["/DC0", "/Europe/DC1", "/Europe/Berlin", "/Asia/DC1"].map(String::from);
        for (wanted, expected) in [
            (&[][..], ""),
            (
                &[
                    "DC0",
                    "/DC0",
                    "DC0/",
                    "Berlin",
                    "/Europe/DC1",
                    "Europe/DC1",
                    "Datacenter:datacenter-9",
                ],
                "",
            ),
            (
                &["DC1"],
                "DatacenterAmbiguous spec.datacenters names \"DC1\", which matches several datacenters: /Europe/DC1, /Asia/DC1; write the inventory path",
            ),
            (
                &["dc0"],
                "DatacenterNotFound spec.datacenters names \"dc0\", which does not exist; did you mean /DC0, /Europe/DC1, /Asia/DC1?",
            ),
            (
                &["DC0", "Berlln"],
                "DatacenterNotFound spec.datacenters names \"Berlln\", which does not exist; did you mean /Europe/Berlin?",
            ),
            (
                &["/Berlin"],
                "DatacenterNotFound spec.datacenters names \"/Berlin\", which does not exist; did you mean /Europe/Berlin?",
            ),
            (
                &["Washington"],
                "DatacenterNotFound spec.datacenters names \"Washington\", which does not exist; the user can see: /DC0, /Europe/DC1, /Europe/Berlin, /Asia/DC1",
            ),
        ] {
            let wanted: Vec<String> = wanted.iter().map(|name| (*name).to_owned()).collect();
            let reported = find_datacenters(&wanted, &paths).map_or_else(|(reason, text)| format!("{reason} {text}"), |()| String::new());
            assert_eq!(reported, expected);
        }
    }

    #[test]
    fn datacenters_field_vcenter_without_any_is_reported() {
        let (_, text) = find_datacenters(&["DC0".into()], &[]).expect_err("none");
        assert!(text.contains("can see no datacenters"), "{text}");
    }
}
