// SPDX-License-Identifier: Apache-2.0
//! The pages of the documentation: those that are made from code are up to date, links lead somewhere, none is left out, and each names the
//! test that follows it.

#![allow(clippy::panic, reason = "a failing test should stop where it fails")]

mod statements;

use crate::security;
use crate::sources::{root, texts_of};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Every Markdown file below a folder, by its path from the root.
fn markdown(folder: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root().join(folder)).expect("a folder").flatten() {
        let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            found.extend(markdown(&path));
        } else if path.ends_with(".md") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The pages that people read: docs without the decisions, and the files at the root.
fn pages() -> Vec<String> {
    let mut all: Vec<String> = markdown("docs").into_iter().filter(|page| !page.contains("/decisions/")).collect();
    all.extend(["README.md", "CONTRIBUTING.md"].map(str::to_owned));
    all.extend(OF_PEOPLE.map(str::to_owned));
    all
}

/// The pages about the people of the project, which the owner of the repository fills in.
const OF_PEOPLE: [&str; 5] = ["MAINTAINERS.md", "CODE_OF_CONDUCT.md", "GOVERNANCE.md", "ROADMAP.md", "SUPPORT.md"];

/// The lines of a page with whether they are code: fenced, or indented as a block.
fn lines(page: &str) -> impl Iterator<Item = (bool, &str)> {
    let (mut fenced, mut blank, mut indented) = (false, true, false);
    page.lines().map(move |line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        indented = line.starts_with("    ") && (indented || blank);
        blank = line.trim().is_empty();
        (fenced || fence || indented, line)
    })
}

/// What a heading is called in an address, as GitHub and mdbook have it.
fn anchor(heading: &str) -> String {
    let lower = heading.to_lowercase();
    let kept = lower.chars().filter_map(|letter| match letter {
        ' ' => Some('-'),
        letter if letter.is_alphanumeric() || letter == '-' || letter == '_' => Some(letter),
        _ => None,
    });
    kept.collect::<String>()
}

fn anchors(page: &str) -> BTreeSet<String> {
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    let mut all = BTreeSet::new();
    for heading in lines(page)
        .filter(|(code, line)| !code && line.starts_with('#'))
        .map(|(_, line)| line.trim_start_matches('#').trim())
    {
        let name = anchor(heading);
        let seen = found.entry(name.clone()).or_default();
        all.insert(if *seen == 0 { name } else { format!("{name}-{seen}") });
        *seen += 1;
    }
    all
}

/// The targets of all links and pictures of a page.
fn links(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (_, line) in lines(page).filter(|(code, _)| !code) {
        let mut quoted = false;
        let plain: String = line
            .chars()
            .map(|letter| {
                quoted ^= letter == '`';
                if quoted { '`' } else { letter }
            })
            .collect();
        for part in plain.split("](").skip(1) {
            found.extend(part.split(')').next().map(str::to_owned));
        }
    }
    found
}

/// `docs/values/x.md` and `../a.md` make `docs/a.md`.
fn beside(page: &str, target: &str) -> PathBuf {
    let mut path = Path::new(page).parent().map(Path::to_owned).unwrap_or_default();
    for part in Path::new(target).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            part => path.push(part),
        }
    }
    path
}
#[test]
fn generated_pages_and_pictures_are_up_to_date() {
    let files = crate::generate::docs::files(root()).expect("pages");
    assert!(files.len() > 7, "only {} files are generated", files.len());
    for (file, text) in &files {
        let written = fs::read_to_string(root().join(file)).unwrap_or_default();
        assert!(written == *text, "{file} is not what the code says; run make generate");
    }
    let made: BTreeSet<&str> = files.iter().map(|(file, _)| file.as_str()).collect();
    for folder in ["docs/reference", "docs/values", "docs/pictures", crate::generate::docs::SCHEMAS] {
        for entry in fs::read_dir(root().join(folder)).expect("a folder").flatten() {
            let file = format!("{folder}/{}", entry.file_name().to_string_lossy());
            assert!(made.contains(file.as_str()), "{file} is generated from nothing");
        }
    }
}

#[test]
fn page_links_lead_to_files_and_headings_that_exist() {
    let mut broken = Vec::new();
    let all: Vec<String> = pages()
        .into_iter()
        .chain(markdown("docs/decisions"))
        .chain(["deploy/chart/README.md", "overlays/README.md"].map(str::to_owned))
        .collect();
    let mut seen = 0;
    for page in &all {
        let text = read(page);
        for link in links(&text) {
            if link.contains("://") || (page == "docs/SUMMARY.md" && link == "index.md") {
                continue;
            }
            seen += 1;
            let (file, heading) = link.split_once('#').unwrap_or((&link, ""));
            let target = if file.is_empty() { PathBuf::from(page) } else { beside(page, file) };
            let there = root().join(&target);
            if !there.exists() {
                broken.push(format!("{page}: {link}: there is no {}", target.display()));
            } else if !heading.is_empty() && !anchors(&fs::read_to_string(&there).unwrap_or_default()).contains(heading) {
                broken.push(format!("{page}: {link}: {} has no such heading", target.display()));
            }
        }
    }
    assert!(seen > 100, "only {seen} links were read");
    assert!(broken.is_empty(), "broken links:\n{}", broken.join("\n"));
}

/// Every decision is in the list by topic, with its number and its title.
#[test]
fn page_list_of_decisions_has_each_once_with_its_title() {
    let list = read("docs/decisions/README.md");
    let mut rows: Vec<&str> = list
        .lines()
        .filter(|line| line.starts_with("| ") && line.contains(".md)"))
        .collect();
    for page in markdown("docs/decisions").iter().filter(|page| !page.ends_with("README.md")) {
        let file = page.rsplit('/').next().unwrap_or_default();
        let text = read(page);
        let title = text.lines().next().and_then(|line| line.strip_prefix("# ")?.split_once(": "));
        let Some((number, title)) = title.filter(|(number, _)| file.starts_with(&format!("{number}-"))) else {
            panic!("{page} does not begin with \"# NNN: title\"");
        };
        let row = format!("| {number} | [{title}]({file}) |");
        let found = rows.iter().position(|line| line.starts_with(&row));
        rows.remove(found.unwrap_or_else(|| panic!("docs/decisions/README.md has no row {row}")));
    }
    assert!(rows.is_empty(), "twice, or of no decision: {rows:?}");
}

/// The first claim that a reader sees is the one of docs/install.md, which a test binds, and it has no class.
#[test]
fn page_readme_has_the_first_claim_of_the_install_page() {
    let claim = |page: &str| {
        let text = read(page);
        let block = text
            .split("```yaml\n")
            .find(|block| block.contains("kind: PersistentVolumeClaim"))
            .expect("a claim");
        block
            .split("```")
            .next()
            .unwrap_or_default()
            .split("---\n")
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    let (first, readme) = (claim("docs/install.md"), claim("README.md"));
    assert!(first.contains("accessModes") && !first.contains("storageClassName"), "{first}");
    assert_eq!(readme, first);
}

/// What a hosted forge asks of who brings something is there, and its automation is the same as everywhere else.
#[test]
fn page_templates_exist_and_the_workflow_runs_what_every_machine_runs() {
    for path in [
        "PULL_REQUEST_TEMPLATE.md",
        "ISSUE_TEMPLATE/defect.yml",
        "ISSUE_TEMPLATE/proposal.yml",
        "ISSUE_TEMPLATE/config.yml",
    ] {
        assert!(read(&format!(".github/{path}")).lines().count() > 3, "{path}");
    }
    let workflow = vdo_api::yaml::load_all(&read(".github/workflows/ci.yaml")).expect("YAML");
    let steps = workflow[0]["jobs"]["run"]["steps"].as_array().expect("steps");
    assert!(steps.iter().any(|step| step["run"] == ".ci/run"), "{steps:?}");
}

/// A placeholder is code in angle brackets.
#[test]
fn page_of_maintainers_is_the_only_one_with_placeholders() {
    let [one, others @ ..] = OF_PEOPLE;
    assert!(read("README.md").contains("(GOVERNANCE.md)") && read(one).contains("`<"));
    for page in others {
        let text = read(page);
        assert!(!text.contains("`<"), "{page} has a placeholder");
        assert!(links(&text).iter().any(|link| link == one), "{page} does not lead to {one}");
    }
}

/// Every page is reached from the table of contents, and from the README.
#[test]
fn page_list_of_the_site_and_of_the_readme_leave_out_no_page() {
    let listed: BTreeSet<String> = links(&read("docs/SUMMARY.md"))
        .into_iter()
        .map(|link| format!("docs/{link}"))
        .collect();
    for page in pages()
        .iter()
        .filter(|page| page.starts_with("docs/") && *page != "docs/SUMMARY.md")
    {
        assert!(listed.contains(page), "{page} is not in docs/SUMMARY.md");
    }
    let readme: BTreeSet<String> = links(&read("README.md")).into_iter().collect();
    for page in markdown("docs")
        .iter()
        .filter(|page| page.matches('/').count() == 1 && !page.ends_with("SUMMARY.md"))
    {
        assert!(
            readme.iter().any(|link| link.split('#').next() == Some(page)),
            "{page} is not in the README"
        );
    }
}

/// The command lines of a page outside of `sh` blocks, unless a test asks for what stands below their heading.
fn not_followed(page: &str, is_asked_for: impl Fn(&str) -> bool) -> Vec<String> {
    let programs = ["vdoctl", "kubectl", "helm", "oras", "skopeo", "cosign", "openssl", "make", "cargo"];
    let (mut heading, mut shell, mut left) = ("", false, Vec::new());
    for (code, line) in lines(page) {
        if let Some(text) = line.strip_prefix("## ").filter(|_| !code) {
            heading = text;
        }
        if let Some(kind) = line.trim_start().strip_prefix("```") {
            shell = kind == "sh";
        }
        let program = line.trim_start().split(' ').next().unwrap_or_default();
        if code && !shell && programs.contains(&program) && !line.contains('…') && !is_asked_for(heading) {
            left.push(line.trim().to_owned());
        }
    }
    left
}

/// docs/testing.md says of each page which tests follow it.
#[test]
fn testing_page_names_for_every_page_tests_that_exist() {
    let table = read("docs/testing.md");
    let (_, table) = table.split_once("## Pages that people follow").expect("the section");
    let table = table.split("\n## ").next().unwrap_or_default();
    let mut rows = BTreeMap::new();
    for line in table.lines().filter(|line| line.starts_with("| [")) {
        let cells: Vec<&str> = line.split(" | ").collect();
        let page = links(cells[0]).remove(0);
        let named: Vec<&str> = cells[1].split('`').skip(1).step_by(2).collect();
        let before = rows.insert(
            format!("docs/{page}"),
            (named, cells[2..].concat().trim_matches(['|', ' ']).is_empty()),
        );
        assert!(before.is_none(), "docs/testing.md has two rows for {page}");
    }
    let tests = security::tests();
    let sources: String = ["tests", "crates"]
        .into_iter()
        .flat_map(|folder| texts_of(folder, &["rs"]))
        .map(|(_, text)| text)
        .collect();
    for page in markdown("docs")
        .iter()
        .filter(|page| page.matches('/').count() == 1 && !page.ends_with("SUMMARY.md"))
    {
        let (named, is_whole) = rows
            .get(page)
            .unwrap_or_else(|| panic!("docs/testing.md does not say what follows {page}"));
        let absent: Vec<_> = named.iter().filter(|name| !tests.contains(**name)).collect();
        assert!(
            absent.is_empty(),
            "docs/testing.md names for {page} tests that do not exist: {absent:?}"
        );
        let name = page.trim_start_matches("docs/");
        if *is_whole {
            let left = not_followed(&read(page), |heading| sources.contains(&format!("\"{heading}\"")));
            assert!(
                left.is_empty(),
                "{page}: docs/testing.md leaves out what no test runs:\n{}",
                left.join("\n")
            );
        }
        if read(page).contains("```sh\n") {
            assert!(
                !named.is_empty(),
                "{page} has commands, and docs/testing.md names no test that runs them"
            );
            assert!(
                sources.contains(&format!("\"{name}\"")),
                "{page} has commands, and no test reads it"
            );
        }
    }
}
