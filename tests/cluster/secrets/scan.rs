// SPDX-License-Identifier: Apache-2.0
//! Looks for planted values in anything, in every form in which they may have got there.

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use std::fmt::Write as _;

/// The forms, by name.
pub const ENCODINGS: [&str; 7] = ["raw", "base64", "url", "xml", "json", "hex", "split at 76"];

/// The arguments and the environment of a process, as others see them.
pub fn seen_of_process(process: u32) -> std::io::Result<Vec<(&'static str, Vec<u8>)>> {
    let mut all = Vec::new();
    for part in ["cmdline", "environ"] {
        match std::fs::read(format!("/proc/{process}/{part}")) {
            // What no one but root may read shows nothing to anyone.
            Err(error) if part == "environ" && error.kind() == std::io::ErrorKind::PermissionDenied => {}
            content => all.push((part, content?)),
        }
    }
    Ok(all)
}

/// Where the forms of all planted values are looked for.
pub struct Scanner {
    needles: AhoCorasick,
    /// Value and form of each needle.
    names: Vec<(String, &'static str)>,
    /// The same in what has no line ends any more.
    joined: AhoCorasick,
    joined_names: Vec<String>,
}

impl Scanner {
    /// For these values.
    pub fn new(values: &[String]) -> Self {
        let (mut texts, mut names) = (Vec::new(), Vec::new());
        let (mut joined, mut joined_names) = (Vec::new(), Vec::new());
        for value in values {
            for (form, text) in forms(value) {
                texts.push(text);
                names.push((value.clone(), form));
            }
            let flat = |text: Vec<u8>| text.into_iter().filter(|byte| !byte.is_ascii_whitespace()).collect::<Vec<u8>>();
            for text in std::iter::once(value.clone().into_bytes())
                .chain(aligned(value))
                .chain([hex(value).into_bytes()])
            {
                joined.push(flat(text));
                joined_names.push(value.clone());
            }
        }
        let build = |needles: &[Vec<u8>]| {
            AhoCorasick::builder()
                .match_kind(MatchKind::LeftmostFirst)
                .build(needles)
                .expect("needles")
        };
        Self {
            needles: build(&texts),
            names,
            joined: build(&joined),
            joined_names,
        }
    }

    /// The first planted value that stands in there, and its form.
    pub fn find(&self, bytes: &[u8]) -> Option<(&str, &'static str)> {
        if let Some(found) = self.needles.find(bytes) {
            let (value, form) = &self.names[found.pattern().as_usize()];
            return Some((value, form));
        }
        // A log may put a quote and a backslash where a line ended.
        let flat: Vec<u8> = bytes.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
        let found = self.joined.find(&flat)?;
        Some((&self.joined_names[found.pattern().as_usize()], ENCODINGS[6]))
    }
}

/// All texts of which each would give the value away.
fn forms(value: &str) -> Vec<(&'static str, Vec<u8>)> {
    let json = serde_json::to_string(value).expect("a text");
    let json = json[1..json.len() - 1].to_owned();
    let ascii: String = json.chars().fold(String::new(), |mut out, c| {
        if c.is_ascii() {
            out.push(c);
        } else {
            c.encode_utf16(&mut [0; 2])
                .iter()
                .for_each(|unit| write!(out, "\\u{unit:04x}").expect("text"));
        }
        out
    });
    let mut all: Vec<(&'static str, Vec<u8>)> = vec![("raw", value.into())];
    all.extend(aligned(value).map(|text| ("base64", text)));
    let url = |keep: &str, space: &str| -> Vec<u8> {
        let mut out = String::new();
        for byte in value.bytes() {
            match byte as char {
                ' ' => out.push_str(space),
                c if c.is_ascii_alphanumeric() || keep.contains(c) => out.push(c),
                _ => write!(out, "%{byte:02X}").expect("text"),
            }
        }
        out.into_bytes()
    };
    all.extend([url("-_.~", "%20"), url("-_.*", "+")].map(|text| ("url", text)));
    all.extend([xml(value, true), xml(value, false)].map(|text| ("xml", text.into_bytes())));
    // A log line in JSON that quotes a JSON text escapes twice; so does a Debug form within one.
    let twice = serde_json::to_string(&json).expect("a text");
    let debug = format!("{value:?}");
    let quoted = serde_json::to_string(&debug[1..debug.len() - 1]).expect("a text");
    all.extend(
        [
            json.clone(),
            ascii,
            twice[1..twice.len() - 1].to_owned(),
            debug[1..debug.len() - 1].to_owned(),
            quoted[1..quoted.len() - 1].to_owned(),
        ]
        .map(|text| ("json", text.into_bytes())),
    );
    all.extend([hex(value), hex(value).to_uppercase()].map(|text| ("hex", text.into_bytes())));
    all
}

/// The characters of base64 that do not depend on what stands before and after, for each of the three ways to begin, in both alphabets.
fn aligned(value: &str) -> impl Iterator<Item = Vec<u8>> {
    let value = value.as_bytes().to_vec();
    (0..3).flat_map(move |before| {
        let bytes = [&vec![0; before][..], &value].concat();
        let (first, end) = ([0, 2, 3][before], bytes.len() * 8 / 6);
        [STANDARD_NO_PAD.encode(&bytes), URL_SAFE_NO_PAD.encode(&bytes)].map(|text| text.as_bytes()[first..end].to_vec())
    })
}

fn xml(value: &str, quotes: bool) -> String {
    let text = value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    if quotes {
        text.replace('"', "&quot;").replace('\'', "&apos;")
    } else {
        text
    }
}

fn hex(value: &str) -> String {
    value.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// What carelessness would make of a value: for the test of the scanner, and by other means than the scanner's own.
pub fn encode(value: &str, encoding: &str) -> String {
    match encoding {
        "raw" => value.into(),
        "base64" => base64::engine::general_purpose::STANDARD.encode(format!("user:{value}:end")),
        "url" => value
            .bytes()
            .map(|b| {
                if b.is_ascii_alphanumeric() || b"-_.~".contains(&b) {
                    (b as char).to_string()
                } else {
                    format!("%{b:02X}")
                }
            })
            .collect(),
        "xml" => value
            .chars()
            .map(|c| match c {
                '&' => "&amp;".into(),
                '<' => "&lt;".into(),
                '>' => "&gt;".into(),
                c => c.to_string(),
            })
            .collect(),
        "json" => serde_json::json!({"message": value}).to_string(),
        "hex" => value.bytes().map(|b| format!("{b:02x}")).collect(),
        _ => {
            let text = base64::engine::general_purpose::STANDARD.encode(value);
            text.as_bytes()
                .chunks(76)
                .map(|line| format!("{}\n", String::from_utf8_lossy(line)))
                .collect()
        }
    }
}
