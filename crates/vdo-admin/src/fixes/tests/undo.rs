// SPDX-License-Identifier: Apache-2.0
//! Tests the check right before a change, the undo of a step, and the record of the steps.

use super::*;

const MARK: &str = "Created by vdoctl doctor --fix, record 1.";

fn machine() -> MachineRef {
    MachineRef {
        id: "vm-n1".into(),
        instance_uuid: "uuid-n1".into(),
        path: "/DC0/vm/n1".into(),
    }
}

fn hardware() -> Step {
    Step::UpgradeHardware {
        machine: machine(),
        from: "vmx-13".into(),
        to: "vmx-15".into(),
    }
}

fn setting(before: Option<&str>) -> Step {
    Step::SetDiskUuid {
        machine: machine(),
        value: Some("TRUE".into()),
        before: before.map(str::to_owned),
    }
}

fn tag_step() -> Step {
    Step::CreateTag {
        category: "zone".into(),
        tag: "a".into(),
    }
}

fn state(uuid: &str, power: &str, setting: Option<&str>) -> MachineState {
    MachineState {
        instance_uuid: uuid.into(),
        power: power.into(),
        hardware: "vmx-13".into(),
        disk_uuid: setting.map(str::to_owned),
        version: "1".into(),
    }
}

#[test]
fn fix_machine_that_is_another_now_is_not_changed() {
    let off = state("uuid-n1", "poweredOff", None);
    let upgraded = MachineState {
        hardware: "vmx-19".into(),
        ..off.clone()
    };
    let path = || "/DC0/vm/n1".to_owned();
    for (step, seen, expected) in [
        (setting(None), Some(off.clone()), Ok(())),
        (hardware(), Some(off.clone()), Ok(())),
        (setting(None), None, Err(Unfit::Gone { path: path() })),
        (
            setting(None),
            Some(state("another", "poweredOff", None)),
            Err(Unfit::Gone { path: path() }),
        ),
        (
            setting(None),
            Some(state("uuid-n1", "poweredOn", None)),
            Err(Unfit::NotOff {
                path: path(),
                power: "poweredOn".into(),
            }),
        ),
        (setting(None), Some(upgraded.clone()), Ok(())),
        (
            hardware(),
            Some(upgraded),
            Err(Unfit::OtherHardware {
                path: path(),
                expected: "vmx-13".into(),
                found: "vmx-19".into(),
            }),
        ),
        (tag_step(), None, Ok(())),
    ] {
        assert_eq!(check_machine(&step, seen.as_ref()), expected, "{step:?} {seen:?}");
    }
}

/// What is not as a step left it is left alone, whatever it is.
#[test]
fn undo_of_a_setting_each_state() {
    let was = |before, uuid, power, now| undo(&setting(before), MARK, Some(&state(uuid, power, now)), &Catalog::default());
    let back = |value: Option<&str>| {
        Undo::Step(Step::SetDiskUuid {
            machine: machine(),
            value: value.map(str::to_owned),
            before: Some("TRUE".into()),
        })
    };
    assert_eq!(was(None, "uuid-n1", "poweredOff", Some("TRUE")), back(None));
    assert_eq!(was(Some("FALSE"), "uuid-n1", "poweredOff", Some("TRUE")), back(Some("FALSE")));
    assert!(matches!(was(None, "uuid-n1", "poweredOn", Some("TRUE")), Undo::Stays(why) if why.contains("powered off")));
    for (uuid, now, why) in [
        ("uuid-n1", None, "already has its previous value"),
        ("uuid-n1", Some("FALSE"), "now FALSE, because another user has changed it"),
        ("other", Some("TRUE"), "no longer exists"),
    ] {
        let reported = was(None, uuid, "poweredOff", now);
        assert!(matches!(&reported, Undo::Nothing(text) if text.contains(why)), "{reported:?}");
    }
    let gone = undo(&setting(None), MARK, None, &Catalog::default());
    assert!(
        matches!(&gone, Undo::Nothing(text) if text.contains("no longer exists")),
        "{gone:?}"
    );
    let hardware = undo(&hardware(), MARK, Some(&state("uuid-n1", "poweredOff", None)), &Catalog::default());
    assert!(
        matches!(&hardware, Undo::Nothing(text) if text.contains("cannot be undone")),
        "{hardware:?}"
    );
}

#[test]
fn undo_of_tags_deletes_only_what_is_ours_and_unused() {
    let attach = Step::AttachTag {
        category: "zone".into(),
        tag: "a".into(),
        object: object("ClusterComputeResource", "c1"),
        path: "/DC0/host/c1".into(),
    };
    let category = Step::CreateCategory { category: "zone".into() };
    let made = |mark: &str| {
        let mut catalog = Catalog::default();
        for step in [&category, &tag_step(), &attach] {
            catalog.apply(step, mark, "id");
        }
        catalog
    };
    let mut catalog = made(MARK);
    let reported = |step: &Step, catalog: &Catalog| match undo(step, MARK, None, catalog) {
        Undo::Step(step) => step.to_string(),
        Undo::Nothing(why) => format!("nothing: {why}"),
        Undo::Stays(why) => format!("stays: {why}"),
    };
    // In the order in which they were made they are in use; backwards each step makes the next one possible.
    assert_eq!(reported(&category, &catalog), "stays: tag category zone has 1 tag");
    assert_eq!(
        reported(&tag_step(), &catalog),
        "stays: tag a of category zone is attached to 1 object"
    );
    for (step, back) in [
        (&attach, "detach tag a of category zone from ClusterComputeResource /DC0/host/c1"),
        (&tag_step(), "delete tag a of category zone"),
        (&category, "delete tag category zone"),
    ] {
        assert_eq!(reported(step, &catalog), back);
        if let Undo::Step(back) = undo(step, MARK, None, &catalog) {
            catalog.apply(&back, MARK, "");
        }
        assert!(reported(step, &catalog).starts_with("nothing: "), "{}", reported(step, &catalog));
    }
    let others = made("made by hand");
    assert_eq!(
        reported(&tag_step(), &others),
        "nothing: tag a of category zone was created by another user"
    );
    assert_eq!(
        reported(&category, &others),
        "nothing: tag category zone was created by another user"
    );
    // Where it was not asked what uses a tag, it stays.
    let mut unknown = made(MARK);
    if let Some(tag) = unknown.categories.get_mut("zone").and_then(|zone| zone.tags.get_mut("a")) {
        tag.objects = None;
    }
    assert!(reported(&tag_step(), &unknown).starts_with("stays: "));
}

#[test]
fn record_keeps_the_newest_way_back_and_is_of_one_vcenter() {
    let now = jiff::Timestamp::UNIX_EPOCH;
    let mut record = Record::new("vc:443", "instance", now);
    record.add(&setting(None), now);
    record.add(&tag_step(), now);
    record.add(&setting(Some("FALSE")), now);
    record.add(&hardware(), now);
    let steps: Vec<&Step> = record.steps.iter().map(|entry| &entry.step).collect();
    assert_eq!(steps, [&tag_step(), &setting(Some("FALSE")), &hardware()]);
    let text = serde_json::to_vec(&record).expect("JSON");
    let again = Record::parse(&text).expect("a record");
    assert_eq!(again, record);
    assert!(again.clone().of_vcenter("vc:443", "instance").is_ok());
    let other = again.of_vcenter("other:443", "another").map_err(|error| error.to_string());
    assert_eq!(other, Err("the record belongs to the vCenter vc:443, and not to other:443".into()));
    record.remove(&tag_step());
    assert_eq!(record.steps.len(), 2);
    for text in [
        "",
        "{}",
        r#"{"apiVersion": "v1", "kind": "Secret", "address": "", "vcenter": "", "mark": "", "steps": []}"#,
    ] {
        assert!(Record::parse(text.as_bytes()).is_err(), "{text}");
    }
}
