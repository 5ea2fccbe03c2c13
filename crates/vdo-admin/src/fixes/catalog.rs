// SPDX-License-Identifier: Apache-2.0
//! The tag categories and tags of a vCenter with their objects, as data: before a fix and after each of its steps.

use super::Step;
use std::collections::{BTreeMap, BTreeSet};
use vdo_vsphere::vsphere::{ManagedObject, Tagging};

/// Tag categories by name, as far as they were asked for and exist, and which of their tags are on the objects that were asked about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Catalog {
    /// The categories.
    pub categories: BTreeMap<String, Category>,
    /// The tags on each object as category and name, by identifier of the object.
    pub attached: BTreeMap<String, BTreeSet<(String, String)>>,
}

/// A tag category.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Category {
    /// Its identifier.
    pub id: String,
    /// What its creator wrote about it.
    pub description: String,
    /// Its tags, by name.
    pub tags: BTreeMap<String, Tag>,
}

/// A tag.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tag {
    /// Its identifier.
    pub id: String,
    /// What its creator wrote about it.
    pub description: String,
    /// The objects that it is attached to; `None` where that was not asked.
    pub objects: Option<BTreeSet<ManagedObject>>,
}

impl Catalog {
    /// A tag of a category.
    #[must_use]
    pub fn tag(&self, category: &str, tag: &str) -> Option<&Tag> {
        self.categories.get(category)?.tags.get(tag)
    }

    /// As the checks of the topology read it.
    #[must_use]
    pub fn tagging(&self) -> Tagging {
        Tagging {
            categories: self.categories.keys().cloned().collect(),
            attached: self.attached.clone(),
        }
    }

    /// What it is after a step. `id` is what the vCenter calls an object that the step creates.
    pub fn apply(&mut self, step: &Step, mark: &str, id: &str) {
        match step {
            Step::CreateCategory { category } => {
                let new = Category {
                    id: id.to_owned(),
                    description: mark.to_owned(),
                    tags: BTreeMap::new(),
                };
                self.categories.insert(category.clone(), new);
            }
            Step::CreateTag { category, tag } => {
                let new = Tag {
                    id: id.to_owned(),
                    description: mark.to_owned(),
                    objects: Some(BTreeSet::new()),
                };
                if let Some(category) = self.categories.get_mut(category) {
                    category.tags.insert(tag.clone(), new);
                }
            }
            Step::AttachTag { category, tag, object, .. } => {
                let one = (category.clone(), tag.clone());
                self.attached.entry(object.id.clone()).or_default().insert(one);
                if let Some(objects) = self.objects(category, tag) {
                    objects.insert(object.clone());
                }
            }
            Step::DetachTag { category, tag, object, .. } => {
                if let Some(tags) = self.attached.get_mut(&object.id) {
                    tags.remove(&(category.clone(), tag.clone()));
                }
                if let Some(objects) = self.objects(category, tag) {
                    objects.remove(object);
                }
            }
            Step::DeleteTag { category, tag } => {
                if let Some(category) = self.categories.get_mut(category) {
                    category.tags.remove(tag);
                }
            }
            Step::DeleteCategory { category } => {
                self.categories.remove(category);
            }
            Step::SetDiskUuid { .. } | Step::UpgradeHardware { .. } => {}
        }
    }

    fn objects(&mut self, category: &str, tag: &str) -> Option<&mut BTreeSet<ManagedObject>> {
        self.categories.get_mut(category)?.tags.get_mut(tag)?.objects.as_mut()
    }
}
