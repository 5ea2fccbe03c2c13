// SPDX-License-Identifier: Apache-2.0
//! Finds the nearest known word to a mistyped word, by edit distance.

/// How many characters have to be inserted, removed, replaced or swapped with their neighbour.
pub use strsim::osa_distance as distance;

/// The word of a list that looks most like this one, if any is near enough to be meant.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let all = known.into_iter().map(|other| (distance(word, other), other));
    all.filter(|(distance, other)| *distance <= (other.len() / 3).max(1))
        .min()
        .map(|(_, other)| other)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A third of the letters of the word that may be meant may be wrong, and one of a short word.
    #[test]
    fn nearest_word_has_two_thirds_of_its_letters_right() {
        let known = ["min", "vsphere", "connections"];
        for (word, expected) in [
            ("max", None),
            ("mix", Some("min")),
            ("vsqhera", Some("vsphere")),
            ("vsqharo", None),
            ("konnektionz", Some("connections")),
            ("konnektiomz", None),
        ] {
            assert_eq!(nearest(word, known), expected, "{word}");
        }
        assert_eq!(nearest("ac", ["ab", "aa"]), Some("aa"), "of equals the first by name");
        assert_eq!(nearest("a", []), None);
    }
}
