// SPDX-License-Identifier: Apache-2.0
//! `vdoctl rights`: the objects that an administrator applies.

use crate::vdoctl;
use serde_json::Value;

/// With the policy, for one version of each driver: to learn what every version may contain takes long.
fn rights(arguments: &[&str]) -> Vec<Value> {
    let usual = ["rights", "--admission-policy", "--driver", "csi=3.7.3", "--driver", "cpi=1.34.0"];
    let output = vdoctl(&[&usual, arguments].concat()).output().expect("it runs");
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
        let mut accounts = all.iter().filter(is).peekable();
        accounts.peek().is_some() && accounts.all(|object| object["metadata"]["namespace"] == namespace)
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

/// What a user would apply for these drivers, as kind and name.
fn names(arguments: &[&str]) -> Vec<String> {
    let output = vdoctl(&[&["rights"], arguments].concat()).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let all = vdo_api::yaml::load_all(&String::from_utf8(output.stdout).expect("text")).expect("YAML");
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    all.iter()
        .map(|object| format!("{} {}", word(&object["kind"]), word(&object["metadata"]["name"])))
        .collect()
}

/// The roles of deploy/ are not among them: those of one driver alone would replace their rules.
#[test]
fn rights_of_antrea_are_its_roles_and_roles_of_the_operator_beside_the_usual_ones() {
    let usual = names(&[]);
    assert!(!usual.iter().any(|name| name.contains("antrea")), "{usual:?}");
    let alone = names(&["--driver", "antrea"]);
    for name in ["ClusterRole antrea-controller", "ClusterRole aggregate-antrea-policies-view"] {
        assert!(alone.iter().any(|found| found == name), "{name} in {alone:?}");
    }
    let of_operator = |all: &[String]| -> Vec<String> { all.iter().filter(|name| name.contains(" vdo-")).cloned().collect() };
    let apart = [
        "ClusterRole vdo-operator-antrea",
        "ClusterRoleBinding vdo-operator-antrea",
        "Role vdo-operator-antrea",
        "RoleBinding vdo-operator-antrea",
    ];
    assert_eq!(of_operator(&alone), apart);
    let both = of_operator(&names(&["--driver", "antrea,csi"]));
    assert!(apart.iter().all(|name| both.iter().any(|found| found == name)), "{both:?}");
    assert!(both.iter().any(|name| name == "ClusterRole vdo-operator"), "{both:?}");
}
