// SPDX-License-Identifier: Apache-2.0
//! Checks that a Linux program is a 64-bit ELF file of its platform, and that the image contains the loader that the program names.

use anyhow::{Result, bail};
use vdo_oci::oci::Platform;

/// Numbers of `e_machine` by the names of platforms.
const MACHINES: [(&str, u16); 2] = [("amd64", 62), ("arm64", 183)];
const PT_INTERP: u32 = 3;

/// # Errors
/// When the bytes are not a 64-bit little-endian ELF program of this platform, or the image does not hold the loader that the program names.
pub fn check(program: &[u8], platform: &Platform, holds: impl Fn(&str) -> bool) -> Result<()> {
    let Some((_, machine)) = MACHINES
        .iter()
        .find(|(name, _)| *name == platform.architecture && platform.os == "linux")
    else {
        bail!("images are built for linux/amd64 and linux/arm64");
    };
    if !program.starts_with(b"\x7fELF\x02\x01") {
        bail!("it is not a program for 64-bit Linux");
    }
    if number(program, 18, 2) != Some(u64::from(*machine)) {
        bail!("it is built for a processor other than {}", platform.architecture);
    }
    let header = || Some((number(program, 32, 8)?, number(program, 54, 2)?, number(program, 56, 2)?));
    let Some((offset, entry, count)) = header() else {
        bail!("it is incomplete")
    };
    for index in 0..count {
        let at = usize::try_from(offset + index * entry).ok();
        let Some((at, kind)) = at.and_then(|at| Some((at, number(program, at, 4)?))) else {
            bail!("it is incomplete")
        };
        if kind == u64::from(PT_INTERP) {
            let Some(loader) = segment(program, at) else {
                bail!("it is incomplete")
            };
            if !holds(&loader) {
                bail!(
                    "it is linked dynamically and the image does not contain its loader {loader}; build it for a musl target, or add \
                     loader and libraries with --file"
                );
            }
        }
    }
    Ok(())
}

/// The text of the segment whose header is at this place.
fn segment(program: &[u8], header: usize) -> Option<String> {
    let field = |at| usize::try_from(number(program, header + at, 8)?).ok();
    let (start, length) = (field(8)?, field(32)?);
    let text = program.get(start..start.checked_add(length)?)?;
    Some(String::from_utf8_lossy(text).trim_end_matches('\0').to_owned())
}

/// A little-endian number of this many bytes.
fn number(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(length)?)?;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program header table with these types, for a machine.
    fn program(machine: u8, types: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 64 + 56 * types.len()];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        (bytes[18], bytes[32], bytes[54], bytes[56]) = (machine, 64, 56, types.len() as u8);
        for (index, kind) in types.iter().enumerate() {
            let header = 64 + 56 * index;
            bytes[header] = *kind;
            // The text of the segment is behind the headers.
            (bytes[header + 8], bytes[header + 32]) = (64 + 56 * types.len() as u8, LOADER.len() as u8);
        }
        bytes.extend(LOADER);
        bytes
    }

    const LOADER: &[u8] = b"/lib64/ld.so\0";

    #[test]
    fn program_is_accepted_when_static_and_for_the_platform() {
        let (amd64, arm64) = ("linux/amd64".parse().expect("one"), "linux/arm64".parse().expect("one"));
        let holds_nothing = |_: &str| false;
        let refused = |program: &[u8], platform| {
            let error = check(program, platform, holds_nothing).expect_err("a program that cannot start");
            error.to_string()
        };
        check(&program(62, &[6, 1, 2]), &amd64, holds_nothing).expect("static-pie");
        check(&program(183, &[]), &arm64, holds_nothing).expect("static");
        check(&program(62, &[6, 3, 1]), &amd64, |path| path == "/lib64/ld.so").expect("dynamic, with its loader");
        assert!(refused(&program(62, &[6, 3, 1]), &amd64).contains("its loader /lib64/ld.so;"));
        assert!(refused(&program(183, &[1]), &amd64).contains("a processor other than amd64"));
        assert!(refused(&program(62, &[1, 1])[..100], &amd64).contains("incomplete"));
        assert!(refused(b"#!/bin/sh", &amd64).contains("not a program"));
        let windows = "windows/amd64".parse().expect("one");
        assert!(refused(&program(62, &[]), &windows).contains("linux/amd64 and"));
    }
}
