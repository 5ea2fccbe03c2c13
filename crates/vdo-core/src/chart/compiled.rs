// SPDX-License-Identifier: Apache-2.0
//! Caches the compiled `values.schema.json` of a chart, so that all renders share one validator.

use jsonschema::Validator;
use serde_json::Value;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// Compiled at the first use, and only then: the schema does not change once a chart is open.
#[derive(Clone, Default)]
pub(super) struct CompiledSchema {
    validator: OnceLock<Result<Arc<Validator>, String>>,
}

/// A schema, compiled; or why it is none.
pub(super) fn compiled(schema: &Value) -> Result<Validator, String> {
    let options = jsonschema::options().with_draft(jsonschema::Draft::Draft202012);
    options.build(schema).map_err(|error| error.to_string())
}

impl PartialEq for CompiledSchema {
    /// It follows from the rest of the chart.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for CompiledSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CompiledSchema")
    }
}

impl CompiledSchema {
    /// The schema of the values, compiled; or why it is none.
    pub(super) fn validator(&self, schema: &Value) -> Result<&Validator, String> {
        let compile = || compiled(schema).map(Arc::new);
        self.validator.get_or_init(compile).as_deref().map_err(Clone::clone)
    }
}
