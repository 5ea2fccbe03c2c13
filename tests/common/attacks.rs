// SPDX-License-Identifier: Apache-2.0
//! The attacks that consist of files, by the names that the specification of TUF gives them (theupdateframework.github.io/specification, section
//! 1.5.2): what a mirror, or someone on the way, has in the place of the index that is in use.

use anyhow::Result;

/// One of them.
pub struct Attack {
    pub name: &'static str,
    pub index: Vec<u8>,
    pub signature: Option<String>,
    /// The reason for which it is refused.
    pub reason: &'static str,
    /// Words of the message, as a web server's index gives them.
    pub said: String,
}

/// Whom they are about.
pub struct Victim<'a> {
    /// The index with any version, as JSON.
    pub index: &'a dyn Fn(u64) -> String,
    /// The version that is in use.
    pub version: u64,
    /// Signs with the key that is trusted.
    pub sign: &'a dyn Fn(&[u8]) -> Result<String>,
    /// Signs with another one.
    pub stranger: &'a dyn Fn(&[u8]) -> Result<String>,
}

/// More than an index may have.
const TOO_LARGE: usize = (12 << 20) + 1;

const UNTRUSTED: &str = "MatrixNotTrusted";
const CHANGED: &str = "changed after it was signed";
const NO_KEY: &str = "trusted key";

/// All of them.
pub fn attacks(victim: &Victim<'_>) -> Result<Vec<Attack>> {
    let at = |version: u64| format!("{}\n", (victim.index)(version).trim_end());
    let (old, used, new) = (at(victim.version - 1), at(victim.version), at(victim.version + 1));
    let sign = |text: &str| (victim.sign)(text.as_bytes());
    let stranger = |text: &str| (victim.stranger)(text.as_bytes());
    let attack = |name, index: &str, signature, reason, said: &str| Attack {
        name,
        index: index.as_bytes().to_vec(),
        signature,
        reason,
        said: said.to_owned(),
    };
    let fast = at(u64::MAX);
    let more = new.replacen("\"drivers\"", "\"malware\": {}, \"drivers\"", 1);
    let lower = format!(
        "the version {} of the index is lower than the version {}",
        victim.version - 1,
        victim.version
    );
    let mut all = vec![
        attack("arbitrary software", &new, Some(sign(&used)?), UNTRUSTED, CHANGED),
        attack("arbitrary software", &new, Some(stranger(&new)?), UNTRUSTED, NO_KEY),
        attack("arbitrary software", &new, None, UNTRUSTED, "not signed"),
        attack("arbitrary software", "<html>log in</html>", Some(sign(&used)?), UNTRUSTED, CHANGED),
        attack("rollback", &old, Some(sign(&old)?), "MatrixRolledBack", &lower),
        attack("fast-forward", &fast, Some(stranger(&fast)?), UNTRUSTED, NO_KEY),
        attack("mix-and-match", &new, Some(sign(&old)?), UNTRUSTED, CHANGED),
        attack("extraneous dependencies", &more, Some(sign(&new)?), UNTRUSTED, CHANGED),
    ];
    for changed in [
        new.replace('\n', "\r\n"),
        format!("\u{feff}{new}"),
        format!("{new}\n"),
        new.trim_end().to_owned(),
        new.replacen("\"version\"", "\"version\": 1, \"version\"", 1),
        new.replacen("\"drivers\"", "\"a\": &a {}, \"b\": *a, \"drivers\"", 1),
    ] {
        all.push(attack(
            "signature over different bytes",
            &changed,
            Some(sign(&new)?),
            UNTRUSTED,
            CHANGED,
        ));
    }
    let endless = "#".repeat(TOO_LARGE);
    all.push(attack(
        "endless data",
        &endless,
        Some(sign(&used)?),
        "MatrixUnreachable",
        "larger than 12582912 bytes",
    ));
    Ok(all)
}
