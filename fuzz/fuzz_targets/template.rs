//! Any text, as a template: it ends within its budget, without a panic (run it with -rss_limit_mb=512).
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = vdo_fuzz::template(bytes);
});
