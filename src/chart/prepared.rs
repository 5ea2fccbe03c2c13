//! What is made of a chart once and used by every render: the schema of its values, compiled.

use jsonschema::Validator;
use serde_json::Value;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// Made when it is first needed, and never again: what it is made of does not change once a chart is open.
#[derive(Clone, Default)]
pub(super) struct Prepared {
    validator: OnceLock<Result<Arc<Validator>, String>>,
}

/// A schema, compiled; or why it is none.
pub(super) fn compiled(schema: &Value) -> Result<Validator, String> {
    let options = jsonschema::options().with_draft(jsonschema::Draft::Draft202012);
    options.build(schema).map_err(|error| error.to_string())
}

impl PartialEq for Prepared {
    /// It follows from the rest of the chart.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Prepared")
    }
}

impl Prepared {
    /// The schema of the values, compiled; or why it is none.
    pub(super) fn validator(&self, schema: &Value) -> Result<&Validator, String> {
        let compile = || compiled(schema).map(Arc::new);
        self.validator.get_or_init(compile).as_deref().map_err(Clone::clone)
    }
}
