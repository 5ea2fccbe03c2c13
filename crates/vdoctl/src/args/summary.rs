// SPDX-License-Identifier: Apache-2.0
//! Shortens the description of a flag to its first clause for `-h`; `--help` shows the whole description.

/// A description that is no longer is shown whole. What stands before a colon is a summary if it is longer than a quarter of this.
const ONE_LINE: usize = 80;

/// How a description begins that first says when a flag is of use.
const CONDITIONS: [&str; 5] = ["With ", "If ", "When no ", "For the first ", "On "];

pub(super) fn with_summary(arg: clap::Arg) -> clap::Arg {
    let Some(whole) = arg.get_help().map(ToString::to_string) else {
        return arg;
    };
    match summary(&whole) {
        Some(short) => arg.help(short.to_owned()).long_help(whole),
        None => arg,
    }
}

fn summary(whole: &str) -> Option<&str> {
    let condition = CONDITIONS.iter().any(|words| whole.starts_with(words));
    let from = whole.find(": ").filter(|_| condition).map_or(0, |end| end + 1);
    let ends = ["; ", ". ", ": "].iter().filter_map(|mark| {
        let end = from + whole[from..].find(mark)?;
        (*mark != ": " || end > ONE_LINE / 4).then_some(end)
    });
    let end = ends.min()?;
    (whole.len() > ONE_LINE).then(|| &whole[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_is_the_first_clause_of_a_long_description() {
        let more = "and more words that need not be read by a person who looks for a flag and knows the verb";
        for (description, expected) in [
            (format!("Writes nothing. {more}"), Some("Writes nothing")),
            (format!("A file; {more}: {more}"), Some("A file")),
            (format!("With --pre: a file; {more}"), Some("With --pre: a file")),
            (
                format!("Does not check the certificate: {more}"),
                Some("Does not check the certificate"),
            ),
            (format!("The source: {more}"), None),
            ("A file; - means stdin".to_owned(), None),
        ] {
            assert_eq!(summary(&description), expected, "{description}");
        }
    }
}
