// SPDX-License-Identifier: Apache-2.0
//! Tests the table of error messages with one complete message for each row.

use super::*;

#[test]
fn text_of_others_is_one_short_line() {
    assert_eq!(quoted("a\n\tb  c"), "a b c");
    assert_eq!(quoted("\u{1b}[2J\u{1b}]0;title\u{7}x\u{9b}8m\r\u{7f}y"), "[2J ]0;title x 8m y");
    assert_eq!(quoted(&"ä".repeat(400)).chars().count(), 301);
}

/// What the provisioner puts before an error of the driver.
const PROVISION: &str =
    "failed to provision volume with StorageClass \"fast\": rpc error: code = Internal desc = failed to create volume. Error: ";
/// What Kubernetes and the driver put before an error of CNS.
const ATTACH: &str = "AttachVolume.Attach failed for volume \"pvc-1\" : rpc error: code = Internal desc = failed to attach disk: \"4e1c\" with node: \
    \"4237\" err failed to attach cns volume: \"4e1c\" to node vm: \"VirtualMachine:vm-21\". ";

fn provision(text: &str) -> String {
    format!("{PROVISION}{text}")
}

fn code(code: &str, text: &str) -> String {
    format!("rpc error: code = {code} desc = {text}")
}

/// A text for each row, in their order, as the code writes it.
fn texts() -> Vec<String> {
    let fault = |name: &str| {
        provision(&format!(
            "failed to create volume with fault: \"(*types.LocalizedMethodFault)(0xc0)({{ Fault: (types.{name}) {{ }} }})\""
        ))
    };
    let attach = |text: &str| format!("{ATTACH}fault: \"{text}\". opId: \"1a\"");
    let printed = |name: &str| {
        attach(&format!(
            "(*types.LocalizedMethodFault)(0xc0)({{ Fault: (*types.{name})(0xc1)({{ }} }})"
        ))
    };
    vec![
        code("FailedPrecondition", "the number of snapshots on the source volume 4e1c reaches the configured maximum (3)"),
        code("FailedPrecondition", "volume: 4e1c with existing snapshots [snapshot_id:\"a+b\"] cannot be expanded. Please delete snapshots before expanding the volume"),
        provision("no pbm profile found with name: \"gold\""),
        provision("Storage policy name \"gold\" not found in VC \"vc.example.com\""),
        provision("none of compatible datastores for given storage policy ID \"aa\", is in the list of shared datastore accessible to all nodes"),
        provision("No compatible datastores found for accessibility requirements [map[zone:a]] pertaining to vCenter \"vc.example.com\""),
        provision("No compatible datastores found for storage policy \"gold\" on VC \"vc.example.com\""),
        provision("authorization service filtered out all the compatible datastores for accessibility requirements [map[zone:a]]"),
        provision("auth service: no shared datastore found for block volume provisioning"),
        provision("failed to get datastore object in vCenter \"vc.example.com\" for datastoreURL: ds:///vmfs/volumes/x/ specified in the storage class."),
        provision("DatastoreURL: ds:///vmfs/volumes/x/ specified in the storage class is not found."),
        provision("Datastore: ds:///vmfs/volumes/x/ specified in the storage class is not accessible to all nodes."),
        provision("failed to get the compatible shared datastore for create volume from snapshot \"a+b\" in vCenter \"vc.example.com\""),
        provision("no shared datastores found among given NodeVMs"),
        provision("no datastores found to create file volume, vSAN file service may be disabled"),
        provision("fileshare volume creation is not supported on vSAN 67u3 release"),
        code("Internal", "volume-migration feature switch is disabled. Cannot use volume with vmdk path :\"[ds] a.vmdk\""),
        provision("volume topology feature for file volumes is not supported."),
        code("FailedPrecondition", "VC version does not support snapshot operations"),
        "error generating accessibility requirements: no topology key found on CSINode w-1".into(),
        "error generating accessibility requirements: no available topology found".into(),
        "error generating accessibility requirements: selected node '\"w-1\"' topology 'map[zone:b]' is not in allowed topologies: [map[zone:a]]".into(),
        "error generating accessibility requirements: topology labels from selected node map[a:b] does not match topology keys from CSINode [zone]".into(),
        "error generating accessibility requirements: topologyKeys [zone] were not found on any nodes".into(),
        "error generating accessibility requirements: topology map[zone:b] from selected node \"w-1\" is not in requisite: [map[zone:a]]".into(),
        "error getting handle for DataSource Type VolumeSnapshot by Name s: snapshot s is not Ready".into(),
        code("InvalidArgument", "snapshot size mismatch, requested volume size: 2 but source snapshot size: 1"),
        fault("NoDiskSpace"),
        fault("InsufficientStorageSpace"),
        provision("Insufficient disk space on datastore 'fast'."),
        provision("There is not enough space on the file system for the selected operation."),
        fault("InvalidHostState"),
        fault("HostNotConnected"),
        fault("InaccessibleDatastore"),
        provision("ServerFaultCode: Cannot complete login due to an incorrect user name or password."),
        fault("NoPermission"),
        provision("ServerFaultCode: Permission to perform this operation was denied."),
        code("PermissionDenied", "x"),
        fault("NotAuthenticated"),
        provision("ServerFaultCode: The session is not authenticated."),
        provision("nil session obtained from session manager"),
        code("Unauthenticated", "x"),
        provision("Post \"https://vc.example.com:443/sdk\": dial tcp: lookup vc.example.com on 10.96.0.10:53: no such host"),
        provision("Post \"https://vc.example.com:443/sdk\": dial tcp 10.0.0.1:443: connect: connection refused"),
        provision("Post \"https://vc.example.com:443/sdk\": dial tcp 10.0.0.1:443: connect: no route to host"),
        provision("Post \"https://vc.example.com:443/sdk\": dial tcp 10.0.0.1:443: i/o timeout"),
        provision("Post \"https://vc.example.com:443/sdk\": tls: failed to verify certificate: x509: certificate signed by unknown authority"),
        code("Internal", "failed to find VirtualMachine for node:\"4237\". Error: x"),
        provision("failed to get all nodes: node wasn't found"),
        provision("failed to renew VM 4237: virtual machine wasn't found"),
        code("Internal", "volumeID 4e1c not found in QueryVolume"),
        code("Internal", "cns query volume did not return the volume: 4e1c"),
        code("Internal", "failed to expand volume: \"4e1c\" to size: 2048 with error: volume \"4e1c\" not found. Cannot expand volume."),
        "MountVolume.MountDevice failed for volume \"pvc-1\" : rpc error: code = NotFound desc = disk: 6000c29 not attached to node".into(),
        printed("TooManyDevices"),
        attach("CNS: Failed to attach disk because missing SCSI controller"),
        "0/3 nodes are available: 3 node(s) exceed max volume count.".into(),
        printed("InvalidPowerState"),
        attach("The attempted operation cannot be performed in the current state (Powered off)."),
        attach("The operation is not possible while the virtual machine w-1 has a snapshot."),
        "Multi-Attach error for volume \"pvc-1\" Volume is already exclusively attached to one node and can't be attached to another".into(),
        printed("ResourceInUse"),
        "Failed to get snapshot class with error cannot find default snapshot class".into(),
        code("DeadlineExceeded", "x"),
        provision("context deadline exceeded"),
        code("ResourceExhausted", "x"),
        code("InvalidArgument", "x"),
        code("Unimplemented", "x"),
    ]
}

/// Each row is the first that matches a text of the code, so that no row is hidden by one before it and none is there for nothing.
#[test]
fn texts_each_row_is_the_first_match_of_a_text() {
    let texts = texts();
    let first = |text: &String| {
        let text = text.to_lowercase();
        let row = WORDS.iter().find(|(words, _)| words.iter().all(|word| text.contains(word)));
        row.map(|(words, _)| *words)
    };
    let found: Vec<_> = texts.iter().map(|text| (first(text), text)).collect();
    for ((words, cause), (first, text)) in WORDS.iter().zip(&found) {
        assert_eq!(*first, Some(*words), "{text}");
        assert_eq!(classify(Stage::Provision, text), *cause, "{text}");
    }
    assert_eq!(texts.len(), WORDS.len());
}

#[test]
fn text_that_no_row_knows_says_that_its_stage_failed() {
    for (stage, expected) in [
        (Stage::Provision, Cause::ProvisioningFailed),
        (Stage::Attach, Cause::AttachFailed),
        (Stage::Detach, Cause::DetachFailed),
        (Stage::Resize, Cause::ResizeFailed),
        (Stage::Snapshot, Cause::SnapshotFailed),
        (Stage::Reclaim, Cause::ReclaimFailed),
    ] {
        assert_eq!(classify(stage, "the node is not ready"), expected);
    }
}
