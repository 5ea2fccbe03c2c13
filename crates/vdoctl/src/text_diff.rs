// SPDX-License-Identifier: Apache-2.0
//! Formats the changes of a text as a unified diff: of chart and matrix files with `--dry-run`, and of multi-line fields of objects.

use similar::TextDiff;

/// From one text of the file to the other; empty when they are the same. Paths in it have slashes, as `git apply` and `patch` read them.
pub(super) fn unified(path: &str, before: &str, after: &str) -> String {
    let path = &path.replace(std::path::MAIN_SEPARATOR, "/");
    let diff = TextDiff::from_lines(before, after);
    diff.unified_diff().context_radius(3).header(path, path).to_string()
}

#[cfg(test)]
mod tests {
    use super::unified;

    #[test]
    fn diff_shows_changed_lines_with_three_around() {
        for (before, after, expected) in [
            (
                "a\nb\nc\nd\ne\nf\n",
                "a\nb\nc\nd\nx\ne\nf\n",
                "--- f\n+++ f\n@@ -2,5 +2,6 @@\n b\n c\n d\n+x\n e\n f\n",
            ),
            ("", "x\ny\n", "--- f\n+++ f\n@@ -0,0 +1,2 @@\n+x\n+y\n"),
            ("a\nb\n", "a\nc\n", "--- f\n+++ f\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"),
            ("a\n", "a\n", ""),
        ] {
            assert_eq!(unified("f", before, after), expected);
        }
    }
}
