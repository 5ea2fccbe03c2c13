// SPDX-License-Identifier: Apache-2.0
//! Checks that a program of an archive fits its platform: PE for Windows, signed Mach-O for macOS, static ELF (`elf.rs`) for Linux.

use crate::elf;
use anyhow::{Result, bail};
use vdo_oci::oci::Platform;

/// `Machine` of a PE file by the names of platforms.
const WINDOWS: [(&str, u16); 2] = [("amd64", 0x8664), ("arm64", 0xaa64)];
/// `cputype` of a Mach-O file by the names of platforms.
const DARWIN: [(&str, u32); 2] = [("amd64", 0x0100_0007), ("arm64", 0x0100_000c)];
/// `LC_CODE_SIGNATURE`
const SIGNATURE: u32 = 0x1d;

/// # Errors
/// When the bytes are not a program for this platform that starts without anything beside it.
pub fn check(program: &[u8], platform: &Platform) -> Result<()> {
    match platform.os.as_str() {
        "windows" => windows(program, &platform.architecture),
        "darwin" => darwin(program, &platform.architecture),
        _ => elf::check(program, platform, |_| false),
    }
}

fn windows(program: &[u8], architecture: &str) -> Result<()> {
    // The place of the header is at 0x3c.
    let header = program.starts_with(b"MZ").then(|| word(program, 0x3c)).flatten();
    let header = header.and_then(|at| program.get(usize::try_from(at).ok()?..));
    let Some(header) = header.filter(|header| header.starts_with(b"PE\0\0")) else {
        bail!("it is not a program for Windows");
    };
    let machine = word(header, 4).map(|word| word & 0xffff);
    let wanted = WINDOWS.iter().find(|(name, _)| *name == architecture);
    if machine.is_none() || machine != wanted.map(|(_, number)| u32::from(*number)) {
        bail!("it is built for a processor other than {architecture}");
    }
    Ok(())
}

fn darwin(program: &[u8], architecture: &str) -> Result<()> {
    if !program.starts_with(&[0xcf, 0xfa, 0xed, 0xfe]) {
        bail!("it is not a 64-bit program for macOS");
    }
    let machine = word(program, 4);
    let wanted = DARWIN.iter().find(|(name, _)| *name == architecture);
    if machine.is_none() || machine != wanted.map(|(_, number)| *number) {
        bail!("it is built for a processor other than {architecture}");
    }
    // Load commands stand behind a header of 32 bytes: their kind and their size first.
    let mut at = 32;
    for _ in 0..word(program, 16).unwrap_or_default() {
        let (Some(kind), Some(size)) = (word(program, at), word(program, at + 4)) else {
            bail!("it is incomplete");
        };
        if kind == SIGNATURE {
            return Ok(());
        }
        at += usize::try_from(size)?;
    }
    // A Mac with Apple's processor ends a program at once that has no signature, not even one without a name.
    match architecture {
        "arm64" => {
            bail!("it has no signature, and macOS starts only signed programs on arm64; use a linker that signs, such as the linker of zig")
        }
        _ => Ok(()),
    }
}

/// Four bytes, the lowest first.
fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    bytes.try_into().ok().map(u32::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words at their places.
    fn bytes(words: &[(usize, u32)]) -> Vec<u8> {
        let mut bytes = vec![0; 256];
        for (at, word) in words {
            bytes[*at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn program_is_accepted_for_its_platform_alone() {
        let pe = |machine: u32| bytes(&[(0, 0x5a4d), (0x3c, 128), (128, 0x4550), (132, machine)]);
        let macho = |machine: u32, commands: &[u32]| {
            let mut words = vec![(0, 0xfeed_facf), (4, machine), (16, commands.len() as u32)];
            words.extend(
                commands
                    .iter()
                    .enumerate()
                    .flat_map(|(place, kind)| [(32 + 16 * place, *kind), (36 + 16 * place, 16)]),
            );
            bytes(&words)
        };
        for (program, platform, refused) in [
            (pe(0x8664), "windows/amd64", None),
            (pe(0xaa64), "windows/arm64", None),
            (pe(0xaa64), "windows/amd64", Some("a processor other than amd64")),
            (pe(0x8664), "darwin/amd64", Some("not a 64-bit program for macOS")),
            (pe(0x8664), "linux/amd64", Some("not a program for 64-bit Linux")),
            (b"MZ".to_vec(), "windows/amd64", Some("not a program for Windows")),
            (macho(0x0100_0007, &[]), "darwin/amd64", None),
            (macho(0x0100_000c, &[2, 0x1d]), "darwin/arm64", None),
            (macho(0x0100_000c, &[2, 3]), "darwin/arm64", Some("no signature")),
            (macho(0x0100_000c, &[2, 3])[..40].to_vec(), "darwin/arm64", Some("incomplete")),
            (macho(0x0100_0007, &[0x1d]), "darwin/arm64", Some("a processor other than arm64")),
            (macho(0x0100_0007, &[]), "windows/amd64", Some("not a program for Windows")),
        ] {
            let error = check(&program, &platform.parse().expect("a platform"))
                .err()
                .map(|error| error.to_string());
            match refused {
                None => assert_eq!(error, None, "{platform}"),
                Some(why) => assert!(error.as_ref().is_some_and(|error| error.contains(why)), "{platform}: {error:?}"),
            }
        }
    }
}
