// SPDX-License-Identifier: Apache-2.0
//! Splits and escapes the steps of JSON pointers (RFC 6901).

/// The steps of a pointer.
pub fn steps(pointer: &str) -> impl Iterator<Item = String> {
    pointer.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~"))
}

/// A step as it is written in a pointer.
#[must_use]
pub fn escaped(step: &str) -> String {
    step.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointer_of_escaped_steps_has_these_steps() {
        for all in [&[][..], &["a"], &["a/b", "c~d", "~1", ""]] {
            let pointer: String = all.iter().map(|step| format!("/{}", escaped(step))).collect();
            assert_eq!(steps(&pointer).collect::<Vec<_>>(), all, "{pointer}");
        }
    }
}
