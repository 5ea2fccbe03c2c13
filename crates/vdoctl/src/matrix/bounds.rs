// SPDX-License-Identifier: Apache-2.0
//! Formats a range of versions for a cell of a table: `1.33-1.35`, `>= 7.0`.

use vdo_api::types::VersionRange;

/// `1.33-1.35`, `>= 7.0`, `<= 8.0`, `1.34`; empty where every version is in it.
pub(super) fn bounds(range: &VersionRange) -> String {
    match (range.min(), range.max()) {
        (Some(min), Some(max)) if min == max => min.to_owned(),
        (Some(min), Some(max)) => format!("{min}-{max}"),
        (Some(min), None) => format!(">= {min}"),
        (None, Some(max)) => format!("<= {max}"),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_short_and_empty_without_any() {
        for (min, max, expected) in [
            (Some("1.33"), Some("1.35"), "1.33-1.35"),
            (Some("1.34"), Some("1.34"), "1.34"),
            (Some("7.0"), None, ">= 7.0"),
            (None, Some("8.0"), "<= 8.0"),
            (None, None, ""),
        ] {
            assert_eq!(bounds(&VersionRange::new(min, max).expect("a range")), expected);
        }
    }
}
