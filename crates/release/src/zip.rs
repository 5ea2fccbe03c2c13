// SPDX-License-Identifier: Apache-2.0
//! Writes files as a reproducible zip archive for Windows, in the format of PKWARE's APPNOTE.TXT without any extensions.

use crate::layer::File;
use anyhow::{Context, Result};
use flate2::Compression;
use flate2::write::DeflateEncoder;
use std::collections::BTreeMap;
use std::io::Write;

const LOCAL: u32 = 0x0403_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;
/// What a reader must know: deflate.
const VERSION: u16 = 20;
/// The names are UTF-8.
const UTF_8: u16 = 1 << 11;
const DEFLATED: u16 = 8;
/// Written on Unix, so that the mode is read.
const UNIX: u16 = 3 << 8;

/// The files as an archive, with this modification time in seconds since 1970.
///
/// # Errors
/// When a file or the archive has more than 4 GiB, or the time is not one.
pub fn write(files: &BTreeMap<String, File>, mtime: u64) -> Result<Vec<u8>> {
    let (time, date) = dos(mtime)?;
    let (mut archive, mut central) = (Vec::new(), Vec::new());
    for (name, file) in files {
        let offset = u32::try_from(archive.len())?;
        let mut packed = DeflateEncoder::new(Vec::new(), Compression::best());
        packed.write_all(&file.bytes)?;
        let packed = packed.finish()?;
        let mut sum = flate2::Crc::new();
        sum.update(&file.bytes);
        let mut shared = Vec::new();
        for half in [VERSION, UTF_8, DEFLATED, time, date] {
            shared.extend(half.to_le_bytes());
        }
        for word in [sum.sum(), u32::try_from(packed.len())?, u32::try_from(file.bytes.len())?] {
            shared.extend(word.to_le_bytes());
        }
        // The length of the name, and nothing more behind it.
        shared.extend(u16::try_from(name.len())?.to_le_bytes());
        shared.extend([0, 0]);
        archive.extend(LOCAL.to_le_bytes());
        archive.extend(&shared);
        archive.extend(name.as_bytes());
        archive.extend(packed);
        central.extend(CENTRAL.to_le_bytes());
        central.extend((UNIX | VERSION).to_le_bytes());
        central.extend(shared);
        // No comment, the first disk, not marked as text.
        central.extend([0; 6]);
        let mode: u32 = if file.executable { 0o100_755 } else { 0o100_644 };
        central.extend((mode << 16).to_le_bytes());
        central.extend(offset.to_le_bytes());
        central.extend(name.as_bytes());
    }
    let count = u16::try_from(files.len())?;
    let (size, offset) = (u32::try_from(central.len())?, u32::try_from(archive.len())?);
    archive.extend(central);
    archive.extend(END.to_le_bytes());
    archive.extend([0; 4]);
    archive.extend([count.to_le_bytes(), count.to_le_bytes()].concat());
    archive.extend([size.to_le_bytes(), offset.to_le_bytes()].concat());
    archive.extend([0; 2]);
    Ok(archive)
}

/// Time and date as DOS wrote them: in steps of two seconds, since 1980.
fn dos(seconds: u64) -> Result<(u16, u16)> {
    let seconds = i64::try_from(seconds).context("the time stamp is too large")?;
    // The first moment that can be written stands for what is before it, such as 0.
    let first = jiff::civil::date(1980, 1, 1).at(0, 0, 0, 0);
    let time = jiff::Timestamp::from_second(seconds)
        .context("the time stamp is too large")?
        .to_zoned(jiff::tz::TimeZone::UTC)
        .datetime()
        .max(first);
    let date = (u16::try_from(time.year() - 1980)? << 9) | (u16::try_from(time.month())? << 5) | u16::try_from(time.day())?;
    let time = (u16::try_from(time.hour())? << 11) | (u16::try_from(time.minute())? << 5) | u16::try_from(time.second() / 2)?;
    Ok((time, date))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_written_in_steps_of_two_seconds_since_1980() {
        // 2023-11-14T22:13:20Z
        let (time, date) = dos(1_700_000_000).expect("a time");
        assert_eq!((time >> 11, time >> 5 & 63, time & 31), (22, 13, 10));
        assert_eq!((date >> 9, date >> 5 & 15, date & 31), (43, 11, 14));
        assert_eq!(dos(0).expect("the first"), (0, 1 << 5 | 1));
        assert!(dos(u64::MAX).is_err());
    }
}
