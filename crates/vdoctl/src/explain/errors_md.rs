// SPDX-License-Identifier: Apache-2.0
//! Parses `docs/errors.md`, which is built into vdoctl, into an entry for each reason, with cause, evidence and remedy.

/// The page as it was when this was built. Tests hold it to the reasons that exist.
const PAGE: &str = include_str!("../../../../docs/errors.md");

/// What the page says of one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// The reason.
    pub reason: &'static str,
    /// The heading above it.
    pub section: &'static str,
    /// Cause, Shown in, Evidence, Remedy, … as they stand there, each a text of one line for each paragraph; last, as Note, what is said
    /// of the whole section.
    pub parts: Vec<(&'static str, String)>,
}

impl Entry {
    /// A part by its name.
    pub(super) fn part(&self, name: &str) -> Option<&str> {
        self.parts.iter().find(|(own, _)| *own == name).map(|(_, text)| text.as_str())
    }
}

/// Every reason, in the order of the page.
pub(super) fn entries() -> Vec<Entry> {
    read(PAGE)
}

fn read(page: &'static str) -> Vec<Entry> {
    let mut all = Vec::new();
    for section in page.split("\n## ").skip(1) {
        let mut blocks = section.split("\n### ");
        let (name, note) = headed(blocks.next().unwrap_or_default());
        for block in blocks {
            let (reason, body) = headed(block);
            let mut parts = parts(body);
            let note = paragraphs(note).join("\n");
            if !note.is_empty() {
                parts.push(("Note", note));
            }
            all.push(Entry {
                reason,
                section: name,
                parts,
            });
        }
    }
    all
}

/// A heading and what stands below it.
fn headed(block: &'static str) -> (&'static str, &'static str) {
    let (heading, body) = block.split_once('\n').unwrap_or((block, ""));
    (heading.trim(), body)
}

/// The paragraphs `**Name.** text`; one without a name belongs to the one before it.
fn parts(body: &'static str) -> Vec<(&'static str, String)> {
    let mut all: Vec<(&'static str, String)> = Vec::new();
    for paragraph in body.split("\n\n") {
        let named = paragraph.trim().strip_prefix("**").and_then(|rest| rest.split_once(".**"));
        match (named, all.last_mut()) {
            (Some((name, text)), _) => all.push((name, paragraphs(text).join("\n"))),
            (None, Some((_, text))) => {
                for more in paragraphs(paragraph) {
                    text.push('\n');
                    text.push_str(&more);
                }
            }
            (None, None) => {}
        }
    }
    all
}

/// Paragraphs without the line ends that only fit a page. Lists and code keep their lines.
fn paragraphs(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut code = false;
    for block in text.split("\n\n") {
        let mut fresh = true;
        for line in block.lines() {
            let fence = line.trim_start().starts_with("```");
            code ^= fence;
            let own =
                code || fence || line.starts_with("    ") || line.trim_start().starts_with(['-', '|', '*']) && !line.starts_with("**");
            match all.last_mut().filter(|_| !fresh && !own) {
                _ if fence || line.trim().is_empty() => {}
                Some(last) => {
                    last.push(' ');
                    last.push_str(line.trim());
                }
                None => all.push(if own { line.trim_end().to_owned() } else { line.trim().to_owned() }),
            }
            fresh = fence;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use vdo_api::api::Reason;

    #[test]
    fn explain_page_markdown_parses_to_entries() {
        let page = "# T\n\nIntro.\n\n## One\n\nFor all\nof it.\n\n### A\n\n**Cause.** It\nbroke.\n\n**Remedy.** Run:\n\n    repair it\n\nor wait.\n\n### B\n\n**Cause.** c\n\n## Two\n\n### C\n\n**Cause.** d\n";
        let all = read(page);
        let words: Vec<(&str, &str)> = all.iter().map(|entry| (entry.reason, entry.section)).collect();
        assert_eq!(words, [("A", "One"), ("B", "One"), ("C", "Two")]);
        assert_eq!(all[0].part("Cause"), Some("It broke."));
        assert_eq!(all[0].part("Remedy"), Some("Run:\n    repair it\nor wait."));
        assert_eq!(all[0].part("Note"), Some("For all of it."));
        assert_eq!(all[2].part("Note"), None);
    }

    #[test]
    fn explain_every_reason_has_cause_and_remedy() {
        let all = entries();
        let names = Reason::ALL.iter().map(|reason| reason.as_str());
        for (place, name) in names.enumerate() {
            assert_eq!(
                all.get(place).map(|entry| entry.reason),
                Some(name),
                "section {place} of docs/errors.md"
            );
        }
        assert_eq!(all.len(), Reason::ALL.len(), "docs/errors.md has a section of no reason");
        for entry in all {
            for part in ["Cause", "Shown in", "Remedy"] {
                let text = entry.part(part).unwrap_or_default();
                assert!(!text.is_empty() && !text.contains("**"), "{} {part}: {text:?}", entry.reason);
            }
        }
    }
}
