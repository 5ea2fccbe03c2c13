//! `vdoctl rights`: the objects that an administrator applies.

use crate::vdoctl;
use serde_json::Value;

fn rights(arguments: &[&str]) -> Vec<Value> {
    let output = vdoctl(&[&["rights", "--admission-policy"], arguments].concat())
        .output()
        .expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    vdo_api::yaml::load_all(&String::from_utf8(output.stdout).expect("text")).expect("YAML")
}

/// The account of the operator, its roles of that place and everything that names the account follow `-n`; the drivers' do not. The other
/// namespace has the same place in the alphabet, because the policy lists names in order.
#[test]
fn rights_in_another_namespace_are_those_of_the_operator_there() {
    const USUAL: &str = "vmware-system-vdo";
    let text = |all: &[Value]| serde_json::to_string(all).expect("JSON");
    let (usual, elsewhere) = (rights(&[]), rights(&["-n", "work"]));
    let account = |all: &[Value], namespace: &str| {
        let is = |object: &&Value| object["kind"] == "ServiceAccount" && object["metadata"]["name"] == "vdo-operator";
        all.iter().filter(is).all(|object| object["metadata"]["namespace"] == namespace)
    };
    assert!(account(&usual, USUAL) && account(&elsewhere, "work"));
    assert!(!text(&elsewhere).contains(USUAL), "{}", text(&elsewhere));
    let renamed = text(&elsewhere)
        .replace("\"work\"", &format!("\"{USUAL}\""))
        .replace(":work:", &format!(":{USUAL}:"))
        .replace("/work/", &format!("/{USUAL}/"));
    let sorted = |text: &str| {
        let mut all: Vec<String> = serde_json::from_str::<Vec<Value>>(text)
            .expect("JSON")
            .iter()
            .map(Value::to_string)
            .collect();
        all.sort();
        all
    };
    assert_eq!(sorted(&renamed), sorted(&text(&usual)), "nothing else differs");
}
