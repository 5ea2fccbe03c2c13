// SPDX-License-Identifier: Apache-2.0
//! The words that docs/style.md has in bold are refused in every text of the repository.

use crate::sources::texts_of;

/// Where texts of ours are.
const FOLDERS: [&str; 11] = [
    "src",
    "crates",
    "tests",
    "benches",
    "examples",
    "fuzz",
    "charts",
    "deploy",
    "overlays",
    "matrix-index",
    "docs",
];
const EXTENSIONS: [&str; 6] = ["rs", "md", "yaml", "snap", "sh", "html"];

/// The text in lower case, with a space for each run of what is not a letter, so that names of functions are words, too.
fn words(line: &str) -> String {
    let letters = line.chars().map(|c| if c.is_alphabetic() { c.to_ascii_lowercase() } else { ' ' });
    let spaced: String = letters.collect();
    format!(" {} ", spaced.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[test]
fn style_words_in_bold_are_used_nowhere() {
    let docs = texts_of("docs", &["md"]);
    let page = &docs.iter().find(|(path, _)| path.ends_with("style.md")).expect("docs/style.md").1;
    let rows = page.lines().filter(|line| line.starts_with("| ") && line.contains("**"));
    let refused: Vec<String> = rows.flat_map(|row| row.split("**").skip(1).step_by(2)).map(words).collect();
    assert!(refused.len() > 10, "{refused:?}");
    let mut found = Vec::new();
    for folder in FOLDERS {
        for (path, text) in texts_of(folder, &EXTENSIONS) {
            if path.ends_with("style.md") || path.starts_with("target") {
                continue;
            }
            for (number, line) in text.lines().enumerate() {
                let line = words(line);
                let here = refused.iter().filter(|word| line.contains(word.as_str()));
                found.extend(here.map(|word| format!("{folder}/{}:{}:{word}", path.display(), number + 1)));
            }
        }
    }
    assert!(
        found.is_empty(),
        "docs/style.md says what to write instead of\n{}",
        found.join("\n")
    );
}

/// Sentences that stopped a reader, each with what is written today. None of them comes back.
const STOPPED_A_READER: [(&str, &str); 26] = [
    ("talk to stderr", "messages to stderr"),
    ("do what they look like", "the name of each flag in a table"),
    ("reading those is all the rights", "needs only the right to read …"),
    (
        "of which something is refused",
        "a driver of which an object is refused does not change",
    ),
    ("comes from the look", "from the operator's inspection"),
    ("has something to say", "a warning"),
    (", and the drivers are.", "the drivers have been removed"),
    ("no pod more was ready", "no other pod became ready"),
    ("is against an object", "refuses an object"),
    ("A node is no virtual machine", "there is no virtual machine for the node"),
    ("is taken by its word", "is not checked"),
    ("Asks nothing that a flag", "answers every question with yes"),
    ("it is not said what to mirror", "no driver version is selected"),
    ("does not come to {", "cannot be upgraded to {version}"),
    ("the operator to look at", "the operator has not checked …"),
    ("to have the new account", "waits for Secret …"),
    ("the drivers to be ready", "not ready"),
    ("} asks for it", "was changed"),
    ("nothing new of it", "nothing was written"),
    ("cannot be had", "cannot read the matrix index"),
    ("SUPPOSED", "PREVIEW"),
    ("is not moved twice", "only the missing data is transferred"),
    (", as spec.datacenters says", "spec.datacenters names {name}, which does not exist"),
    ("someone is in between", "the connection may be intercepted"),
    ("goes on believing", "still accepts only …"),
    ("not the truth any more", "no longer authoritative"),
];

/// Whether people read this line. Of comments these are the ones of arguments, which are the help.
fn is_read(path: &std::path::Path, line: &str) -> bool {
    let line = line.trim_start();
    let is_help = line.starts_with("/// ") && path.components().any(|part| part.as_os_str().to_string_lossy().starts_with("args"));
    is_help || !line.starts_with("//")
}

#[test]
fn style_sentences_that_stopped_a_reader_are_in_no_text() {
    let mut found = Vec::new();
    let mut read = 0;
    for folder in ["src", "crates", "docs", "deploy", "tests/cli/snapshots"] {
        for (path, text) in texts_of(folder, &EXTENSIONS) {
            if path.ends_with("style.md") || path.starts_with("target") || path.starts_with("decisions") {
                continue;
            }
            for (number, line) in text.lines().enumerate().filter(|(_, line)| is_read(&path, line)) {
                read += 1;
                let here = STOPPED_A_READER.iter().filter(|(sentence, _)| line.contains(sentence));
                found.extend(
                    here.map(|(sentence, today)| format!("{folder}/{}:{}: {sentence:?}; write: {today}", path.display(), number + 1)),
                );
            }
        }
    }
    assert!(read > 50_000, "only {read} lines were read");
    assert!(found.is_empty(), "{}", found.join("\n"));
}
