// SPDX-License-Identifier: Apache-2.0
//! Any bytes, as the package of a chart: opening and rendering it ends, without a panic and within its memory (run it with -rss_limit_mb=512).
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = vdo_fuzz::archive(bytes);
});
