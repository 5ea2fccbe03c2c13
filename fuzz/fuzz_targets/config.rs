// SPDX-License-Identifier: Apache-2.0
//! Any text, as what a connection says: the drivers' files say the same, or are refused.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = vdo_fuzz::config(bytes);
});
