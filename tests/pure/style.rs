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
