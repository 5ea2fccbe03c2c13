// SPDX-License-Identifier: Apache-2.0
//! Any bytes, as what a registry and its service for tokens answer: reading them and computing with their numbers ends without a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = vdo_oci::registry::fuzz::answer(bytes);
});
