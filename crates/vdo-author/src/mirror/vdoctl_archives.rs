// SPDX-License-Identifier: Apache-2.0
//! Reads the names and digests of vdoctl archives from SHA256SUMS, so that a mirror contains these programs too.

/// The file that lists them, as `sha256sum` writes it.
pub const SUMS: &str = "SHA256SUMS";
/// The signature of that file, which goes along.
pub const SUMS_SIGNATURE: &str = "SHA256SUMS.sigstore.json";

/// An archive of vdoctl.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The file.
    pub name: String,
    /// The SHA-256 of its bytes, in hex digits.
    pub sum: String,
}

/// The archives in a file of sums. Other files, and what is in other folders, do not count.
#[must_use]
pub fn programs(sums: &str) -> Vec<Program> {
    let listed = sums.lines().filter_map(|line| {
        let (sum, name) = line.split_once(' ')?;
        // The second space is an asterisk where the file was read as binary.
        let name = name.strip_prefix([' ', '*'])?;
        let is_plain = name.starts_with("vdoctl") && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-+".contains(&b));
        is_plain.then(|| Program {
            name: name.to_owned(),
            sum: sum.to_owned(),
        })
    });
    listed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_the_archives_of_vdoctl_in_the_same_folder() {
        let sums = "00  index.yaml\n11  vdoctl-0.1.0-linux-amd64.tar.gz\n22 *vdoctl.exe\n33  other/vdoctl\n44  vdoctl/../key\n55 vdoctl\nvdoctl\n66  vdoctl?x=1\n";
        let found = programs(sums);
        let found: Vec<(&str, &str)> = found.iter().map(|program| (&*program.name, &*program.sum)).collect();
        assert_eq!(found, [("vdoctl-0.1.0-linux-amd64.tar.gz", "11"), ("vdoctl.exe", "22")]);
        assert_eq!(programs(""), []);
    }
}
