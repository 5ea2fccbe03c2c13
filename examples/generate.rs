//! Writes the generated files of the repository.
use kube::CustomResourceExt;
fn main() {
    println!("{}", serde_saphyr::to_string(&vdo::api::VDOConfig::crd()).unwrap());
}
