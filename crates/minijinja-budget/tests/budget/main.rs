//! The bounds of templates, with templates made to break them, and the language that is left.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a failing test should stop where it fails; the environment says what a child process renders"
)]

mod hostile;
mod language;

use hostile::{MEMORY, hostile};
use minijinja_budget::minijinja::{Error, context};
use minijinja_budget::{Budget, Templates};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

/// Renders a template called `own`, with `helpers` beside it, or says why not: the error with its sources.
fn outcome_within(template: &str, helpers: &str, budget: &Budget) -> Result<String, String> {
    let chain = |error: Error| {
        let mut text = error.to_string();
        let mut next = std::error::Error::source(&error);
        while let Some(source) = next {
            text = format!("{text}: {source}");
            next = source.source();
        }
        text
    };
    let mut templates = Templates::default();
    for (name, source) in [("own", template), ("helpers", helpers)] {
        templates.add(name, source).map_err(|refusal| refusal.to_string())?;
    }
    let environment = templates.environment(budget).map_err(chain)?;
    let own = environment.get_template("own").map_err(chain)?;
    own.render(context! { values => context! { namespace => "vmware-system", level => 4, on => true } })
        .map_err(chain)
}

fn outcome(template: &str, helpers: &str) -> Result<String, String> {
    outcome_within(template, helpers, &Budget::default())
}

const CASE: &str = "BUDGET_TEST_HOSTILE_TEMPLATE";

/// The highest resident size this process ever had, in KiB. The kernel counts in batches on each processor, so a later reading can be a
/// few pages smaller than an earlier one.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn hostile_template_child_renders_one_case() {
    let Ok(name) = std::env::var(CASE) else { return };
    let (_, template, _) = hostile().into_iter().find(|(case, _, _)| *case == name).unwrap();
    let before = peak();
    let (done, result) = std::sync::mpsc::channel();
    std::thread::spawn(move || done.send(outcome(&template, "")));
    let result = result.recv_timeout(Duration::from_secs(10)).unwrap();
    println!("grown={} outcome={result:?}", peak().saturating_sub(before));
}

#[test]
fn hostile_template_ends_with_error_and_little_memory() {
    const MOST: u64 = 96 << 10;
    let itself = std::env::current_exe().unwrap();
    let (cases, wrong) = (Mutex::new(hostile()), Mutex::new(Vec::new()));
    assert!(hostile().len() >= 40);
    let one_after_the_other = || {
        while let Some((name, _, expected)) = { cases.lock().unwrap().pop() } {
            let child = Command::new(&itself)
                .args(["--exact", "hostile_template_child_renders_one_case", "--nocapture"])
                .env(CASE, name)
                .output()
                .unwrap();
            let text = String::from_utf8_lossy(&child.stdout);
            let grown = text
                .split("grown=")
                .nth(1)
                .and_then(|rest| rest.split(' ').next()?.parse::<u64>().ok());
            // the budget's error names the engine's fuel too, so a missing limit of steps must not hide behind it
            let own = expected == MEMORY || !text.contains(MEMORY);
            let fits = own && text.contains("outcome=Err(") && text.contains(expected) && grown.is_some_and(|grown| grown <= MOST);
            if !fits {
                let shown: String = text.chars().take(600).collect();
                wrong.lock().unwrap().push(format!(
                    "{name}: expected {expected:?}, grew by {grown:?} KiB, {}: {shown}",
                    child.status
                ));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(one_after_the_other);
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn budget_smaller_than_the_text_ends_the_render_and_says_its_size() {
    let template = "{% for i in range(100) %}\nabc\n{% endfor %}";
    assert_eq!(outcome(template, "").unwrap().len(), 400);
    let error = outcome_within(template, "", &Budget::new(4000)).unwrap_err();
    assert!(error.contains("handle more than 3 KiB"), "{error}");
}

#[test]
fn budget_is_shared_by_the_renders_of_one_environment() {
    let mut templates = Templates::default();
    templates.add("own", "{{ text }}").unwrap();
    let environment = templates.environment(&Budget::new(3000)).unwrap();
    let once = || {
        environment
            .get_template("own")
            .unwrap()
            .render(context! { text => "a".repeat(1000) })
    };
    assert!(once().is_ok());
    assert!(once().unwrap_err().to_string().contains("handle more than"));
    let another = templates.environment(&Budget::new(3000)).unwrap();
    assert!(another.get_template("own").unwrap().render(context! { text => "a" }).is_ok());
}

/// `ignore missing` forgives what is not there; it must not find what is not in the set.
#[test]
fn include_outside_the_set_is_missing() {
    let template = "{% include '/etc/passwd' ignore missing %}{% include '../Cargo.toml' ignore missing %}";
    assert_eq!(outcome(template, "").unwrap(), "");
}

#[test]
fn templates_replaced_after_a_render_run_in_their_new_form() {
    let mut templates = Templates::default();
    let render = |templates: &Templates| {
        let environment = templates.environment(&Budget::default()).unwrap();
        environment.get_template("own").unwrap().render(()).unwrap()
    };
    templates.add("own", "1").unwrap();
    assert_eq!(render(&templates), "1");
    templates.add("own", "2").unwrap();
    assert_eq!(render(&templates), "2");
}
