// SPDX-License-Identifier: Apache-2.0
//! Formats counts with a singular or plural noun (`1 node`, `3 nodes`), and cuts lists of names to the first five.

/// A number with what is counted, for example `1 node` or `3 nodes`.
#[must_use]
pub fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// The verb that agrees with a count: the first for one thing, the second for any other number.
#[must_use]
pub fn verb<'a>(number: usize, one: &'a str, many: &'a str) -> &'a str {
    if number == 1 { one } else { many }
}

/// The first five names, and how many more there are: a message stays short whatever the size of the cluster.
#[must_use]
pub fn name_list<T: AsRef<str>>(names: &[T]) -> String {
    const SHOWN: usize = 5;
    let more = names.len().saturating_sub(SHOWN);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    let shown: Vec<&str> = names.iter().take(SHOWN).map(AsRef::as_ref).collect();
    shown.join(", ") + &rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn count_of_one_is_singular() {
        assert_eq!([0, 1, 2].map(|n| count(n, "node")), ["0 nodes", "1 node", "2 nodes"]);
    }

    #[test]
    fn name_list_of_more_than_five_counts_the_rest() {
        let names = ["a", "b", "c", "d", "e", "f", "g"];
        let lists = [0, 1, 5, 6, 7].map(|n| name_list(&names[..n]));
        assert_eq!(
            lists,
            ["", "a", "a, b, c, d, e", "a, b, c, d, e and 1 more", "a, b, c, d, e and 2 more"]
        );
    }
}
