// SPDX-License-Identifier: Apache-2.0
//! Any bytes, as what a vCenter answers: reading them ends, without a panic and within its memory (run it with -rss_limit_mb=256).
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = vdo_vsphere::vcenter::fuzz::answer(bytes);
});
