//! A set of templates that include each other, ready to be rendered within a budget.

use crate::budget::{Budget, DEPTH};
use crate::metered::{self, Refusal};
use crate::{builtins, json};
use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, Error, UndefinedBehavior};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;

/// Instructions that one template may use. A manifest of 25 KiB needs about two thousand.
pub const FUEL: u64 = 200_000;

/// Templates by name, in the form in which they run. They are compiled when the first of them is rendered.
#[derive(Clone, Default)]
pub struct Templates {
    forms: BTreeMap<String, String>,
    compiled: OnceLock<Environment<'static>>,
}

impl PartialEq for Templates {
    /// What is compiled follows from the forms.
    fn eq(&self, other: &Self) -> bool {
        self.forms == other.forms
    }
}

impl fmt::Debug for Templates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.forms.keys()).finish()
    }
}

impl Templates {
    /// Adds a template, or replaces the one of this name.
    ///
    /// # Errors
    /// When it is not a template, too large, or uses what the language does not offer.
    pub fn add(&mut self, name: &str, source: &str) -> Result<(), Refusal> {
        let form = metered::metered(name, source)?;
        self.forms.insert(name.to_owned(), form);
        self.compiled = OnceLock::new();
        Ok(())
    }

    /// An environment with these templates and no others, whose renders take what they handle from `budget`.
    ///
    /// The caller may add functions and set the fuel. Its syntax, formatter, filters and tests belong to the budget.
    ///
    /// # Errors
    /// When the metered form of a template cannot be compiled, for instance because its statements are nested too deeply.
    pub fn environment(&self, budget: &Budget) -> Result<Environment<'static>, Error> {
        let mut environment = match self.compiled.get() {
            Some(compiled) => compiled.clone(),
            None => {
                let compiled = self.compile()?;
                self.compiled.get_or_init(|| compiled).clone()
            }
        };
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_fuel(Some(FUEL));
        environment.set_recursion_limit(DEPTH);
        environment.set_debug(false); // its reports print the variables
        let shared = budget.clone();
        environment.set_formatter(move |out, _, value| json::write(&shared, out, value));
        builtins::add(&mut environment, budget);
        Ok(environment)
    }

    /// It starts empty: what a template can call is what `environment` adds, and none of it reads a clock, a file or the environment.
    fn compile(&self) -> Result<Environment<'static>, Error> {
        let mut environment = Environment::empty();
        // Without trimming: the metered form has the blanks that are left.
        environment.set_syntax(SyntaxConfig::builder().keep_trailing_newline(true).build()?);
        environment.set_auto_escape_callback(|_| AutoEscape::Json);
        for (name, form) in &self.forms {
            environment.add_template_owned(name.clone(), form.clone())?;
        }
        Ok(environment)
    }
}
