// SPDX-License-Identifier: Apache-2.0
//! Carries out the steps of `vdoctl doctor --fix` for machines and tags, and reads the current machine and tags before a step.

use super::changes::Change;
use super::session::Administrator;
use super::tag_changes::{TagChange, refusal};
use crate::accounts::ChangeError;
use crate::fixes::{Catalog, Category, ENABLE_UUID, MachineState, Step, Tag};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::{Instant, sleep};
use vdo_api::retry::VCENTER_TASK;
use vdo_api::types::Later as _;
use vdo_vsphere::vcenter::Budget;
use vdo_vsphere::vcenter::raw::identifiers::{name, reference, segment};
use vdo_vsphere::vcenter::raw::{
    Call, Caller, Fault, Item, MANY, MOST, Operation, checked, denied, element, escaped, pages, properties, refer, text, texts,
};
use vdo_vsphere::vsphere::{ManagedObject, SessionError};

/// How long a task may take: the reconfiguration of a machine takes seconds, and waits for others of the same machine.
const TASK: Duration = Duration::from_secs(300);

const OPTION: &str = r#"<extraConfig xmlns:xsd="http://www.w3.org/2001/XMLSchema" xsi:type="OptionValue">"#;

impl Administrator {
    /// Which of these tag categories exist, with their tags, and which of these are on the objects. With `uses`, also everything that the tags
    /// are attached to.
    ///
    /// # Errors
    /// When the vCenter does not answer as it should.
    pub async fn catalog(&self, categories: &BTreeSet<&str>, objects: &[ManagedObject], uses: bool) -> Result<Catalog, ChangeError> {
        let budget = Budget::default();
        let mut live = self.session.live.lock().await;
        let caller = &mut self.session.caller(&mut live, &budget)?;
        Ok(read(caller, categories, objects, uses).await?)
    }

    /// A machine as it is now; `None` where there is no such machine.
    ///
    /// # Errors
    /// When the vCenter does not answer as it should.
    pub async fn machine(&self, object: &ManagedObject) -> Result<Option<MachineState>, ChangeError> {
        const PATHS: [&str; 5] = [
            "config.instanceUuid",
            "config.version",
            "config.changeVersion",
            "config.extraConfig",
            "runtime.powerState",
        ];
        match self.properties(object, &PATHS).await {
            Err(SessionError::Fault { kind, .. }) if kind == "ManagedObjectNotFound" => Ok(None),
            Err(error) => Err(error.into()),
            Ok(found) => Ok(found.map(|item| state(&item))),
        }
    }

    /// Makes a step. A machine is changed as it was `seen` right before; a new category or tag gets the `mark` as its description. The
    /// identifier that the vCenter gives to what is created; empty where nothing is.
    ///
    /// # Errors
    /// When the vCenter refuses it, or does not answer. What has the wanted outcome already is none, but for a category or tag: one that
    /// another user has created meanwhile is not ours.
    pub async fn repair(&self, step: &Step, seen: Option<&MachineState>, catalog: &Catalog, mark: &str) -> Result<String, ChangeError> {
        let missing = |what: String| ChangeError::Refused {
            address: self.session.endpoint.address(),
            what: step.to_string(),
            kind: "NotFound".into(),
            text: format!("there is no {what}"),
        };
        let category = |name: &str| catalog.categories.get(name).ok_or_else(|| missing(format!("category {name}")));
        let tag = |of: &str, name: &str| catalog.tag(of, name).ok_or_else(|| missing(format!("tag {name}")));
        match step {
            Step::SetDiskUuid { machine, value, .. } => {
                let version = seen.map(|seen| seen.version.as_str()).filter(|version| !version.is_empty());
                let version = version.map(|version| element("changeVersion", version)).unwrap_or_default();
                // An empty value removes the setting.
                let value = escaped(value.as_deref().unwrap_or_default());
                let key = element("key", ENABLE_UUID);
                let setting = format!(r#"{OPTION}{key}<value xsi:type="xsd:string">{value}</value></extraConfig>"#);
                let arguments = format!("<spec>{version}{setting}</spec>");
                self.task(step, Change::ReconfigVm, &machine.object(), &arguments).await
            }
            Step::UpgradeHardware { machine, to, .. } => {
                self.task(step, Change::UpgradeVm, &machine.object(), &element("version", to)).await
            }
            Step::CreateCategory { category: name } => {
                let change = TagChange::CreateCategory { name, description: mark };
                self.change_tags(step, &change, false).await
            }
            Step::CreateTag { category: of, tag: name } => {
                let change = TagChange::CreateTag {
                    category: &category(of)?.id,
                    name,
                    description: mark,
                };
                self.change_tags(step, &change, false).await
            }
            Step::AttachTag {
                category,
                tag: name,
                object,
                ..
            } => {
                let tag = &tag(category, name)?.id;
                self.change_tags(step, &TagChange::Attach { tag, object }, false).await
            }
            Step::DetachTag {
                category,
                tag: name,
                object,
                ..
            } => {
                let tag = &tag(category, name)?.id;
                self.change_tags(step, &TagChange::Detach { tag, object }, true).await
            }
            Step::DeleteTag { category, tag: name } => {
                let change = TagChange::DeleteTag(&tag(category, name)?.id);
                self.change_tags(step, &change, true).await
            }
            Step::DeleteCategory { category: name } => {
                let change = TagChange::DeleteCategory(&category(name)?.id);
                self.change_tags(step, &change, true).await
            }
        }
    }

    async fn change_tags(&self, step: &Step, change: &TagChange<'_>, may_be_gone: bool) -> Result<String, ChangeError> {
        let budget = Budget::default();
        let mut live = self.session.live.lock().await;
        let caller = &mut self.session.caller(&mut live, &budget)?;
        let (answer, modern) = caller.rest_answer(change).await?;
        match answer.status {
            200..=299 if answer.body.is_empty() => Ok(String::new()),
            200..=299 => {
                let reported = caller.content(change, answer, modern).await?;
                let id = reported.value.as_str().unwrap_or_default().to_owned();
                match id.is_empty() {
                    true => Ok(id),
                    false => Ok(checked(caller, segment(&id).map(str::to_owned)).map_err(SessionError::from)?),
                }
            }
            401 => Err(self.session.tags_refused().into()),
            _ => {
                let (kind, text) = refusal(&answer);
                let fault = Fault { kind, text, denied: None };
                match self.refused(fault, &step.to_string(), step.privilege()) {
                    error if may_be_gone && error.is_not_found() => Ok(String::new()),
                    error => Err(error),
                }
            }
        }
    }

    /// Starts a task and waits for its end.
    async fn task(&self, step: &Step, change: Change, this: &ManagedObject, arguments: &str) -> Result<String, ChangeError> {
        let (what, until) = (step.to_string(), Instant::now().later(TASK));
        let operation = Operation::from(change);
        let task = {
            let budget = Budget::default();
            let mut live = self.session.live.lock().await;
            let mut caller = self.session.caller(&mut live, &budget)?;
            let answer = caller.exchanged(&operation, this, arguments, (), |(), _| Ok(())).await?;
            let (answer, ()) = answer.map_err(|fault| self.refused(fault, &what, step.privilege()))?;
            let task = answer
                .child("returnval")
                .ok_or_else(|| "it started no task".to_owned())
                .and_then(reference);
            checked(&caller, task).map_err(SessionError::from)?
        };
        let mut asked: u32 = 0;
        loop {
            asked = asked.saturating_add(1);
            let info = self.properties(&task, &["info.state", "info.error"]).await?;
            let values = info.map(|item| item.values).unwrap_or_default();
            match values.get("info.state").map(|state| state.text.trim()) {
                Some("success") => return Ok(String::new()),
                Some("error") => {
                    let error = values.get("info.error");
                    let fault = error.and_then(|error| error.child("fault"));
                    let kind = fault.map(|fault| fault.xsi_type.as_str()).unwrap_or_default();
                    let fault = Fault {
                        kind: kind.strip_suffix("Fault").unwrap_or(kind).to_owned(),
                        text: error.map(|error| error.text_of("localizedMessage")).unwrap_or_default(),
                        denied: fault.and_then(denied),
                    };
                    return Err(self.refused(fault, &what, step.privilege()));
                }
                _ if Instant::now() > until => {
                    return Err(ChangeError::Unfinished {
                        address: self.session.endpoint.address(),
                        what,
                        after: TASK,
                    });
                }
                _ => sleep(VCENTER_TASK.after(asked)).await,
            }
        }
    }

    async fn properties(&self, object: &ManagedObject, paths: &[&str]) -> Result<Option<Item>, SessionError> {
        let budget = Budget::default();
        let mut live = self.session.live.lock().await;
        let mut caller = self.session.caller(&mut live, &budget)?;
        let set = format!("<objectSet>{}<skip>false</skip></objectSet>", refer("obj", object));
        let specification = format!("<specSet>{}{set}</specSet><options/>", properties(&object.kind, paths));
        pages(&mut caller, &specification, None, |found, item| {
            *found = Some(item);
            Ok(())
        })
        .await
    }
}

async fn read(
    caller: &mut Caller<'_>,
    categories: &BTreeSet<&str>,
    objects: &[ManagedObject],
    uses: bool,
) -> Result<Catalog, SessionError> {
    let mut catalog = Catalog::default();
    let mut names: BTreeMap<String, (String, String)> = BTreeMap::new();
    for id in texts(&caller.rest(&Call::Categories).await?.value) {
        if catalog.categories.len() == categories.len() {
            break;
        }
        let answer = caller.rest(&Call::Category(checked(caller, segment(&id))?)).await?;
        let own = checked(caller, name(text(&answer, "name")))?;
        if !categories.contains(own.as_str()) {
            continue;
        }
        let mut category = Category {
            description: text(&answer, "description"),
            tags: BTreeMap::new(),
            id: id.clone(),
        };
        for tag in texts(&caller.rest(&Call::TagsOf(&id)).await?.value) {
            let answer = caller.rest(&Call::Tag(checked(caller, segment(&tag))?)).await?;
            let used = match uses {
                true => Some(objects_of(&caller.rest(&Call::ObjectsOf(&tag)).await?.value)),
                false => None,
            };
            let name = checked(caller, name(text(&answer, "name")))?;
            names.insert(tag.clone(), (own.clone(), name.clone()));
            let tag = Tag {
                description: text(&answer, "description"),
                objects: used,
                id: tag,
            };
            category.tags.insert(name, tag);
        }
        catalog.categories.insert(own, category);
    }
    for some in objects.chunks(MANY).filter(|_| !names.is_empty()) {
        let attached = caller.rest(&Call::Attached(some)).await?;
        for one in attached.value.as_array().into_iter().flatten() {
            let Some(object) = one.pointer("/object_id/id").and_then(serde_json::Value::as_str) else {
                continue;
            };
            let ours = texts(&one["tag_ids"]).into_iter().filter_map(|id| names.get(&id).cloned());
            catalog.attached.entry(object.to_owned()).or_default().extend(ours);
        }
    }
    Ok(catalog)
}

fn objects_of(list: &serde_json::Value) -> BTreeSet<ManagedObject> {
    let object = |one: &serde_json::Value| ManagedObject {
        kind: text(one, "type"),
        id: text(one, "id"),
    };
    list.as_array().into_iter().flatten().take(MOST).map(object).collect()
}

fn state(item: &Item) -> MachineState {
    let text = |path: &str| item.values.get(path).map(|value| value.text.trim().to_owned()).unwrap_or_default();
    let options = item.values.get("config.extraConfig").into_iter().flat_map(|list| &list.children);
    let mut own = options.filter(|option| option.text_of("key").trim().eq_ignore_ascii_case(ENABLE_UUID));
    MachineState {
        instance_uuid: text("config.instanceUuid"),
        power: text("runtime.powerState"),
        hardware: text("config.version"),
        disk_uuid: own.next().map(|option| option.text_of("value")),
        version: text("config.changeVersion"),
    }
}
