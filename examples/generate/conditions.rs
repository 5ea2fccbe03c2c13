// SPDX-License-Identifier: Apache-2.0
//! The page of the conditions, made from the sentences above each in the code.

use super::docs::{Failure, cell};
use std::fmt::Write as _;
use vdo_api::api::ConditionType;

/// Its path and content.
pub(crate) fn file() -> Result<(String, String), Failure> {
    let mut text = String::from(
        "# Conditions\n\n\
         Generated from crates/vdo-api/src/api/condition.rs by `make generate`. Do not edit.\n\n\
         The tables give the meaning of each condition when its status is True. [errors.md](../errors.md) explains the reasons of the conditions.\n\
         `vdoctl explain CONDITION` lists the possible reasons of a condition.\n",
    );
    table(&mut text, "VDOConfig", ConditionType::of_config())?;
    table(&mut text, "vSphere connection", ConditionType::of_connection())?;
    Ok(("docs/reference/conditions.md".to_owned(), text))
}

fn table(text: &mut String, object: &str, kinds: impl Iterator<Item = ConditionType>) -> Result<(), Failure> {
    write!(
        text,
        "\n## Of a {object}\n\n| condition | meaning | status if the condition is absent |\n|---|---|---|\n"
    )?;
    for kind in kinds {
        writeln!(
            text,
            "| `{kind}` | {} | {} |",
            cell(&kind.meaning()),
            kind.when_absent().unwrap_or_default()
        )?;
    }
    Ok(())
}
