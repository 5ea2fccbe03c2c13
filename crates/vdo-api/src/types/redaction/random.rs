// SPDX-License-Identifier: Apache-2.0
//! Replaces runs of characters that look random, such as keys and tokens without a name or a known format.

use super::MASKED;

/// From this length on a run is looked at.
const SHORTEST: usize = 20;

/// From this length on digits of hexadecimal numbers are a key.
const HEX: usize = 32;

/// What a digest or an identifier of a container begins with: these are not secrets.
const PUBLIC: [&str; 8] = [
    "applyset-",
    "SHA256:",
    "sha256:",
    "sha512:",
    "sha256-",
    "containerd://",
    "cri-o://",
    "docker://",
];

/// The text without runs that look random.
pub(super) fn masked(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut begin = 0;
    let bytes = text.as_bytes();
    while begin < bytes.len() {
        let is_run = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'_' | b'-');
        let length = bytes[begin..].iter().take_while(|byte| is_run(byte)).count();
        if length == 0 {
            let next = text[begin..].chars().next().map_or(1, char::len_utf8);
            out.push_str(&text[begin..begin + next]);
            begin += next;
            continue;
        }
        let slashes = bytes[begin..].iter().take_while(|byte| **byte == b'/').count();
        if slashes > 0 {
            out.push_str(&text[begin..begin + slashes]);
            begin += slashes;
            continue;
        }
        let run = &text[begin..begin + length];
        let public = PUBLIC
            .iter()
            .any(|prefix| text[..begin].ends_with(prefix) || run.starts_with(prefix));
        let end = begin + length;
        if public || length < SHORTEST {
            out.push_str(run);
            begin = end;
        } else if is_base64(run) {
            out.push_str(MASKED);
            begin = end + bytes[end..].iter().take_while(|byte| **byte == b'=').count();
        } else {
            out.push_str(&parts(run));
            begin = end;
        }
    }
    out
}

/// The parts of a path or of a name with dashes, each by itself.
fn parts(run: &str) -> String {
    run.split_inclusive(['/', '-', '_', '+'])
        .map(|part| {
            let word = part.trim_end_matches(['/', '-', '_', '+']);
            if is_random(word) {
                format!("{MASKED}{}", &part[word.len()..])
            } else {
                part.to_owned()
            }
        })
        .collect()
}

/// Whether a run with the marks of base64 is random as a whole, and no path.
fn is_base64(run: &str) -> bool {
    let marks = run.bytes().filter(|byte| !byte.is_ascii_alphanumeric()).count();
    let bare: String = run.chars().filter(char::is_ascii_alphanumeric).collect();
    // In base64 one character of 32 is a mark; in paths and names it is one of ten.
    let hex = bare.bytes().all(|byte| byte.is_ascii_hexdigit());
    marks * 12 <= run.len() && marks > 0 && !hex && is_random(&bare)
}

fn is_random(word: &str) -> bool {
    if word.len() < SHORTEST {
        return false;
    }
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let letters = word.len() - digits;
    if word.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return word.len() >= HEX && digits > 2 && letters > 2;
    }
    let class = |byte: u8| match byte {
        b'0'..=b'9' => 0,
        b'a'..=b'z' => 1,
        _ => 2,
    };
    let changes = word.as_bytes().windows(2).filter(|pair| class(pair[0]) != class(pair[1])).count();
    digits >= 2 && letters >= 4 && changes * 10 >= word.len() * 3
}
