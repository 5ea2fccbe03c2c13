//! Templates by authors who are not trusted: [minijinja] within a budget of memory, steps, depth and text.
//!
//! minijinja counts instructions ("fuel"), not memory. Thirty times `{% set s = s ~ s %}` is a gigabyte in sixty instructions, a list of
//! itself is small until it is written or compared, and `'a' * 99000000` happens before the first instruction runs. A limit for the
//! whole process ends the process; this crate ends the template, with an error that names the author's line.
//!
//! ```
//! use minijinja_budget::{Budget, Templates};
//!
//! let mut templates = Templates::default();
//! templates.add("greeting", "hello: {{ name }}\n").unwrap();
//! templates.add("bomb", &format!("{{% set s = 'aaaaaaaa' %}}{}", "{% set s = s ~ s %}".repeat(40))).unwrap();
//!
//! let environment = templates.environment(&Budget::new(1 << 20)).unwrap();
//! let context = minijinja_budget::minijinja::context! { name => "world" };
//! assert_eq!(environment.get_template("greeting").unwrap().render(&context).unwrap(), "hello: \"world\"\n");
//! let error = environment.get_template("bomb").unwrap().render(&context).unwrap_err();
//! assert!(error.to_string().contains("handle more than 1024 KiB"));
//! ```
//!
//! # What is bounded
//!
//! | what | by | default |
//! |---|---|---|
//! | bytes that all operations of one render hold, copy and write, together | [`Budget`] | [`BUDGET`] |
//! | instructions of one template | fuel, `Environment::set_fuel` | [`FUEL`] |
//! | nesting of a value, of macros and of includes | [`DEPTH`] | |
//! | bytes of one template | [`TEMPLATE_LIMIT`] | |
//! | operators in one tag, `elif` in one template: how deep its tree gets | 400 | |
//! | numbers of one `range` | 10,000 | |
//!
//! The time of a render is bounded by the fuel and by the budget, because no operation works on more than was paid for. What a
//! render writes to its caller is taken from the budget too; a caller that wants less gives a writer that refuses.
//!
//! # How
//!
//! No template runs as it is written. [`Templates::add`] parses it with minijinja's own parser, refuses with its line what the language
//! does not offer, and prints it again with every operand of an operator, argument, subject of a filter or test, and every value that gets a
//! name, passed through a function that takes the value's size from the budget before the operation runs. Multiplication takes
//! numbers only; `join`, `replace`, `split`, `list` and `range` are written here and pay for their result. Every other filter makes at
//! most what it was given. Lines keep their numbers.
//!
//! # The language
//!
//! Expressions, `if`, `for`, `with`, `set`, `macro`, `include` and `import`, the [`FILTERS`], the [`TESTS`] and `range`. There is no
//! `namespace`, `block`, `extends`, `call`, `do`, `filter`, `autoescape`, recursive loop or `*` in calls, and no clock, chance,
//! environment, file or network. Undefined values are errors. `{{ … }}` writes JSON that every reader of YAML reads alike; text
//! outside of tags is written as it is. A caller adds functions to the environment; one whose result is larger than its
//! arguments takes the difference from [`Budget::charge`].
//!
//! # What is not bounded
//!
//! Functions that the caller adds, and the variables that it gives.

mod budget;
mod builtins;
mod json;
mod metered;
mod templates;

pub use budget::{BUDGET, Budget, DEPTH};
pub use metered::{FILTERS, Refusal, TEMPLATE_LIMIT, TESTS};
pub use minijinja;
pub use templates::{FUEL, Templates};
