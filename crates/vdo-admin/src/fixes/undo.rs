// SPDX-License-Identifier: Apache-2.0
//! Decides the step of `vdoctl doctor --undo` that reverts a recorded step, if the object is still as the recorded step left it.

use super::{Catalog, MachineState, Step, check_machine};
use std::collections::BTreeSet;
use vdo_api::types::{Remedy as _, count, with_remedy};

/// What becomes of a step that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Undo {
    /// This leads back.
    Step(Step),
    /// There is nothing to undo, for this reason; the step is forgotten.
    Nothing(String),
    /// It cannot be undone now, for this reason; the step stays recorded.
    Stays(String),
}

/// The way back from a step that was made, given what is there now. Only what is still as the step left it is changed. Tags and categories
/// go where `mark` shows that they were created by the step and no one else uses them.
#[must_use]
pub fn undo(step: &Step, mark: &str, machine: Option<&MachineState>, catalog: &Catalog) -> Undo {
    match step {
        Step::SetDiskUuid {
            machine: reference,
            value,
            before,
        } => {
            let back = Step::SetDiskUuid {
                machine: reference.clone(),
                value: before.clone(),
                before: value.clone(),
            };
            let path = &reference.path;
            match machine.filter(|state| state.instance_uuid == reference.instance_uuid) {
                None => Undo::Nothing(format!("machine {path} no longer exists")),
                Some(state) if state.disk_uuid == *before => {
                    Undo::Nothing(format!("disk.EnableUUID of machine {path} already has its previous value"))
                }
                Some(state) if state.disk_uuid != *value => Undo::Nothing(format!(
                    "disk.EnableUUID of machine {path} is now {}, because another user has changed it",
                    state.disk_uuid.as_deref().unwrap_or("not set")
                )),
                Some(state) => match check_machine(&back, Some(state)) {
                    Ok(()) => Undo::Step(back),
                    Err(unfit) => Undo::Stays(with_remedy(&unfit.to_string(), &unfit.remedy().unwrap_or_default())),
                },
            }
        }
        Step::UpgradeHardware { machine, from, to } => Undo::Nothing(format!(
            "the hardware of machine {} was upgraded from {from} to {to}, which cannot be undone",
            machine.path
        )),
        Step::AttachTag {
            category,
            tag,
            object,
            path,
        } => {
            let attached = catalog.attached.get(&object.id).into_iter().flatten();
            match attached.into_iter().any(|(own, name)| own == category && name == tag) {
                true => Undo::Step(Step::DetachTag {
                    category: category.clone(),
                    tag: tag.clone(),
                    object: object.clone(),
                    path: path.clone(),
                }),
                false => Undo::Nothing(format!("tag {tag} of category {category} is no longer attached to {path}")),
            }
        }
        Step::CreateTag { category, tag } => {
            let what = format!("tag {tag} of category {category}");
            match catalog.tag(category, tag) {
                None => Undo::Nothing(format!("{what} no longer exists")),
                Some(found) if found.description != mark => Undo::Nothing(format!("{what} was created by another user")),
                Some(found) => match found.objects.as_ref().map(BTreeSet::len) {
                    Some(0) => Undo::Step(Step::DeleteTag {
                        category: category.clone(),
                        tag: tag.clone(),
                    }),
                    Some(used) => Undo::Stays(format!("{what} is attached to {}", count(used, "object"))),
                    None => Undo::Stays(format!("the objects that have {what} are unknown")),
                },
            }
        }
        Step::CreateCategory { category } => {
            let what = format!("tag category {category}");
            match catalog.categories.get(category) {
                None => Undo::Nothing(format!("{what} no longer exists")),
                Some(found) if found.description != mark => Undo::Nothing(format!("{what} was created by another user")),
                Some(found) if found.tags.is_empty() => Undo::Step(Step::DeleteCategory {
                    category: category.clone(),
                }),
                Some(found) => Undo::Stays(format!("{what} has {}", count(found.tags.len(), "tag"))),
            }
        }
        Step::DetachTag { .. } | Step::DeleteTag { .. } | Step::DeleteCategory { .. } => {
            Undo::Nothing(format!("{step}: this step cannot be undone"))
        }
    }
}
