// SPDX-License-Identifier: Apache-2.0
use super::*;
use serde_json::json;

fn read<const FIELDS: usize>(value: &Value) -> Arrived<FIELDS> {
    serde_json::from_str(&value.to_string()).expect("an object")
}

fn pod() -> Value {
    json!({
        "metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "5", "generation": 2, "labels": {"app": "x"},
            "annotations": {"long": "text", "volume.beta.kubernetes.io/storage-class": "gold"},
            "managedFields": [{"manager": "vdo", "operation": "Apply", "fieldsV1": {"f:spec": {}}}]},
        "spec": {"nodeName": "w-1", "storageClassName": "silver", "containers": [{"name": "c", "env": [{"name": "e"}]}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}], "podIP": "10.0.0.1"},
    })
}

#[test]
fn arrived_object_has_the_fields_of_its_kind_and_no_others() {
    let identity = json!({"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "5", "generation": 2});
    let with = |more: Value| {
        let mut metadata = identity.clone();
        metadata
            .as_object_mut()
            .expect("a map")
            .extend(more.as_object().expect("a map").clone());
        metadata
    };
    const POD: usize = 6;
    assert_eq!((place("Pod"), place("ConfigMap")), (POD, WHOLE));
    let kept = json!({"metadata": with(json!({"labels": {"app": "x"}})), "spec": {"nodeName": "w-1"},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    assert_eq!(read::<POD>(&pod()).into_value(), kept);
    let class = json!({"metadata": with(json!({"annotations": {"volume.beta.kubernetes.io/storage-class": "gold"}})),
        "spec": {"storageClassName": "silver"}});
    assert_eq!(read::<CLASS>(&pod()).into_value(), class);
    let applied = read::<APPLIED>(&pod()).into_value();
    assert_eq!(
        applied["metadata"]["managedFields"],
        json!([{"manager": "vdo", "operation": "Apply"}])
    );
    assert!(applied.get("spec").is_none());
    assert_eq!(read::<MANAGED>(&pod()).into_value(), pod());
    let mut whole = pod();
    whole["metadata"].as_object_mut().expect("a map").shift_remove("managedFields");
    assert_eq!(read::<WHOLE>(&pod()).into_value(), whole);
}

#[test]
fn arrived_object_says_its_kind_or_gets_that_of_its_list() {
    let watch = Watch::new("v1", "Pod", "n", crate::cluster::Select::All);
    let object = read::<WHOLE>(&pod()).object(&watch).expect("an object");
    assert_eq!((object.api_version(), object.kind(), object.resource_version()), ("v1", "Pod", "5"));
    let mut other = pod();
    other["kind"] = "Else".into();
    assert_eq!(read::<WHOLE>(&other).object(&watch).expect("an object").kind(), "Else");
    let mut found = read::<METADATA>(&other);
    found.untyped();
    assert_eq!(found.clone().object(&watch).expect("an object").kind(), "Pod");
    assert_eq!(
        (found.meta().name.as_deref(), found.meta().resource_version.as_deref()),
        (Some("a"), Some("5"))
    );
    assert!(
        serde_json::from_str::<Arrived<WHOLE>>("{\"metadata\": {\"name\": \"a\"}").is_err(),
        "half of one is none"
    );
}

/// Whatever makes an object large: long text, many values, deep ones, or long names.
#[test]
fn arrived_object_that_is_too_large_is_its_identity_however_it_is_large() {
    let deep = |depth: usize| (0..depth).fold(json!([]), |inner, _| json!([inner]));
    let names: Map<String, Value> = (0..20_000).map(|at| (format!("name-{at}"), Value::Null)).collect();
    for (what, large) in [
        ("text", json!("x".repeat(9 << 20))),
        ("values", json!(vec![json!([]); 40_000])),
        ("maps", json!(vec![json!({"a": 1}); 40_000])),
        ("names", json!(vec![Value::Object(names); 8])),
        ("depth", json!(vec![deep(60); 1_000])),
    ] {
        let mut object = pod();
        object["spec"]["x"] = large;
        object["status"]["y"] = json!("behind it");
        let found = read::<WHOLE>(&object);
        assert!(found.is_cut, "{what}");
        let left = found.into_value();
        assert_eq!(left["metadata"]["name"], "a", "{what}");
        assert_eq!(left["metadata"].as_object().map(Map::len), Some(5), "{what}");
        assert_eq!(left.as_object().map(Map::len), Some(1), "{what}");
        // Of a kind of which that field is not read it makes no difference.
        assert!(!read::<6>(&object).is_cut, "{what}");
    }
    assert!(!read::<WHOLE>(&pod()).is_cut);
}

#[test]
fn weight_grows_with_everything_that_takes_memory() {
    let least = weight(&json!({"a": [1, "x"]}));
    for more in [
        json!({"a": [1, "xx"]}),
        json!({"aa": [1, "x"]}),
        json!({"a": [1, "x", null]}),
        json!({"a": [1, ["x"]]}),
    ] {
        assert!(weight(&more) > least, "{more}");
    }
}
