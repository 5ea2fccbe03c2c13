// SPDX-License-Identifier: Apache-2.0
use super::{MASKED, is_sensitive, redacted};

/// What is planted where nothing but its place gives it away.
const PLANTED: &str = "hunter/two;correct";
/// The same where the place allows no punctuation.
const WORD: &str = "huntertwo";

/// Every way in which a secret stands in a log line, an event, or a file within a text. `%` is the secret of the place.
const PLACES: [&str; 92] = [
    // Names and values.
    "password=%",
    "PASSWORD = %",
    "dbPassword: %",
    "db_pass=%",
    "password: correct horse % battery",
    "password: \"correct % horse\"",
    "passwd='% x'",
    "client-secret: %",
    "clientSecret=%",
    "secret=%",
    "token=%",
    "auth_token: %",
    "api_key=%",
    "apiKey: %",
    "encryption-key=%",
    "signing_key: %",
    "map[password:% user:x]",
    "{Password:% User:x}",
    "level=error msg=\"no login\" password=\"% x\" user=y",
    "credentials=%",
    "connectionString=%",
    "dsn=%",
    "passphrase => %",
    // Variables of an environment, whatever they are called.
    "AWS_SECRET_ACCESS_KEY=%",
    "ENCRYPTION_KEY=%",
    "export MY_THING=%",
    "- name: AWS_SECRET_ACCESS_KEY\n  value: %",
    "- name: PLAIN_THING\n  value: \"%\"",
    "{\"name\":\"ENCRYPTION_KEY\",\"value\":\"%\"}",
    "{\\\"name\\\":\\\"ENCRYPTION_KEY\\\",\\\"value\\\":\\\"%\\\"}",
    "{\"value\": \"%\", \"name\": \"DB_PASSWORD\"}",
    "EnvVar{Name:DB_PASSWORD,Value:%,ValueFrom:nil}",
    // Flags.
    "--password %",
    "--password=%",
    "--vcenter-password \"%\"",
    "args [\"--api-token\", \"%\"]",
    "args: [--secret-key, %]",
    "mysql -p% -u root",
    "mysql -p %",
    "redis-cli -a %",
    "ldapsearch -w %",
    "curl -u admin:% https://h/x",
    "curl --user admin:% https://h/x",
    "curl -H \"X-Api-Key: %\" https://h/x",
    "curl -H 'PRIVATE-TOKEN: %'",
    // Addresses.
    "https://user:%@h.example.com/x",
    "https://%@h.example.com/x",
    "postgres://app:%@db:5432/x?sslmode=disable",
    "redis://:%@cache:6379/0",
    "https://h.example.com/x?sig=%&se=2026",
    "https://h.example.com/x?sv=1&sig=%",
    "https://h.example.com/x?token=%",
    "https://h.example.com/x?X-Amz-Signature=%",
    "https://h.example.com/cb#access_token=%&x=y",
    "GET /sdk?anything=% 403",
    "https://hooks.slack.com/services/T0/B0/%",
    "https://discord.com/api/webhooks/1/%",
    // Data sources.
    "app:%@tcp(db:3306)/shop",
    "app:%@db.example.com:5432/shop",
    "Server=db;User Id=sa;Password=%;Encrypt=true",
    "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=%;EndpointSuffix=core.windows.net",
    "Endpoint=sb://b/;SharedAccessKeyName=n;SharedAccessKey=%",
    "host=db user=app password=% dbname=x",
    "host=db password='% x' dbname=x",
    "jdbc:sqlserver://h:1433;user=sa;password=%",
    "jdbc:mysql://h/db?user=a&password=%",
    // Headers.
    "Authorization: Bearer %",
    "authorization: Basic %",
    "Authorization: %",
    "Proxy-Authorization: Digest %",
    "Cookie: a=b; vmware_soap_session=%",
    "Set-Cookie: session=%; Path=/",
    "vmware-api-session-id: %",
    "x-api-key: %",
    "X-Vault-Token: %",
    "request had Bearer %",
    // Structured text within text.
    "{\"password\":\"%\"}",
    "{\"a\":{\"client_secret\":\"x % y\"}}",
    "{\\\"password\\\":\\\"%\\\",\\\"a\\\":1}",
    "{\\\\\\\"password\\\\\\\":\\\\\\\"%\\\\\\\"}",
    "{\"passwords\": [\"x\", \"%\"]}",
    "msg=\"conf: password: |\\n  %\\n  x\"",
    "{\"conf\": \"user: x\\npassword: %\\n\"}",
    "<login><password>%</password></login>",
    "<v:secretKey type=\"x\">%</v:secretKey>",
    // Several lines.
    "password: |\n  first\n  %\nuser: x",
    "a:\n  password: >-\n    first\n\n    %\n  user: x",
    "password:\n  %\nuser: x",
    "passwords:\n- first\n- %\nuser: x",
    "password: first\n  %\nuser: x",
    "password: \"first\n  %\"\nuser: x",
    "[Global]\npassword = \"%\"\nuser = x",
];

/// What gives itself away by its form, with what must not be left of it.
const FORMS: [(&str, &str); 38] = [
    ("x eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl y", "c2lnbmF0"),
    ("auth eyJhdXRocyI6eyJyLmV4YW1wbGUuY29tIjp7fX19 y", "XRocyI6"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\n", "MIIE"),
    (
        "x -----BEGIN OPENSSH PRIVATE KEY-----\\nb3Bl\\n-----END OPENSSH PRIVATE KEY----- y",
        "b3Bl",
    ),
    ("-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nlQdG\n=aBcD\n", "lQdG"),
    ("-----BEGIN PRIVATE KEY-----\nMIIEcut off", "MIIE"),
    ("x LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0tCk1JSUU= y", "tCk1JSUU"),
    ("AKIAIOSFODNN7EXAMPLE", "IOSFODNN"),
    ("ASIAY34FZKBOKMUTVV7A", "Y34FZKBO"),
    ("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY9", "bPxRfiCY"),
    ("x AIzaSyD-9tSrke72PouQMnMX-a7eZSW0jkFMBWY y", "72PouQMn"),
    ("ya29.a0AfH6SMBx-y", "a0AfH6"),
    ("ghp_16C7e42F292c6912E7710c838347Ae178B4a", "16C7e42F"),
    ("github_pat_11ABCDEFG0abcdefghijkl_x", "11ABCDEFG0"),
    ("glpat-ABCdefGHIjklMNOpqrST", "ABCdef"),
    ("xoxb-123456789012-abcdefGHIJ", "123456789012"),
    ("sk_live_abcdefGHIJklmn", "abcdefGHIJ"),
    ("SG.abcdefgh12.ijklmnop34", "abcdefgh12"),
    ("npm_abcdefghijklmnopqrstuvwx", "abcdefghij"),
    ("dckr_pat_abcdefGHIJ-kl", "abcdefGHIJ"),
    ("hvs.CAESIabcdefghij", "CAESIabc"),
    ("AGE-SECRET-KEY-1QQQQQQQQQQ", "1QQQQ"),
    ("sha256~abcdefGHIJklmnop", "abcdefGHIJ"),
    ("join with abcdef.0123456789abcdef now", "0123456789abcdef"),
    ("hash $2y$10$abcdefghijklmnopqrstuv now", "abcdefghij"),
    ("hash $6$salt$abcdefgh now", "abcdefgh"),
    ("hash $argon2id$v=19$m=1$abcd$efgh now", "efgh"),
    (
        "key 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 now",
        "9f86d081",
    ),
    ("key 0123456789abcdef0123456789abcdef now", "0123456789abcdef"),
    ("key q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA= now", "q83vEjRW"),
    ("key q83v/jRWeJCrze8SNFZ4kKvN7xI0Vni+q83vEjRWeJA now", "q83v/jRW"),
    ("bot 123456789:AAabcdefghijklmnopqrstuvwx", "AAabcdefgh"),
    ("licence 4F40H-4ML1K-M89U0-0C2N4-1AKL4", "4ML1K"),
    ("s.abcdefghijklmnopqrstuvwx", "abcdefghij"),
    ("X7hT9kQ2mB4vN8pL1wZ6", "9kQ2mB4v"),
    ("glsa_abcdefghijklmnopqrst_12", "abcdefghij"),
    ("app/huntertwo@//db:1521/x", "huntertwo"),
    ("pypi-AgEIcHlwaS5vcmcCJDabcdef", "AgEIcHlw"),
];

/// What helps to find a fault, and stays.
const STAYS: [&str; 43] = [
    "the password of the account has expired; set a new one",
    "Secret n/vc1-credentials: no key password",
    "Secret vmware-system-csi/vsphere-config-secret: it is not there",
    "the login of \"k8s@vsphere.local\" from Secret n/s at vc.example.com was refused",
    "serviceAccountToken: {path: token}",
    "secretName: vsphere-config-secret",
    "{\"secretKeyRef\":{\"name\":\"s\",\"key\":\"password\"}}",
    "token: null",
    "https://10.0.0.1:6443/api/v1/namespaces/x/pods?limit=500&resourceVersion=0",
    "https://vc.example.com:443/sdk",
    "https://[2001:db8::1]:6443/api",
    "registry.k8s.io/csi-vsphere/driver:v3.7.0@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "containerd://9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "4237e9a5-6b1c-4a8e-9d3f-2f6c1f0a7b11",
    "vsphere://4237e9a5-6b1c-4a8e-9d3f-2f6c1f0a7b11",
    "0F:AA:22:9B:CC:DD:EE:FF:00:11:22:33:44:55:66:77:88:99:AA:BB",
    "/DC0/host/DC0_C0/Resources/Kubernetes-Production/worker-03",
    "/var/lib/kubelet/plugins/csi.vsphere.vmware.com/csi.sock",
    "VirtualMachineConfigInfoDatastoreUrlPair2",
    "I1125 09:00:00.000001       1 main.go:73] starting at 2026-11-25T09:00:00Z",
    "github.com/vmware/govmomi/vim25/soap.(*Client).RoundTrip",
    "vsphere-csi-controller-6d4cf56db6-x7k2p",
    "ds:///vmfs/volumes/vsan:52e0cb1e1e3a3d2b-2c9d3ac1f5b3d1a2/",
    "--timeout=300s --leader-election --v=4",
    "--kubelet-registration-path=/var/lib/kubelet/plugins/csi.vsphere.vmware.com/csi.sock",
    "vdoctl secrets set vc1 --password-file FILE",
    "kubectl -n vmware-system-vdo get pods",
    "kubectl label node w-1 topology.kubernetes.io/zone=VALUE",
    "LOGGER_LEVEL=PRODUCTION",
    "KUBERNETES_SERVICE_HOST=10.96.0.1",
    "node.cloudprovider.kubernetes.io/uninitialized=true:NoSchedule",
    "found 3, wanted 4: spec.replicas",
    "error: \"dial tcp 10.0.0.9:443: connect: connection refused\"",
    "user=k8s@vsphere.local",
    "topologyKeys: [topology.csi.vmware.com/k8s-zone]",
    "x509: certificate signed by unknown authority",
    "rpc error: code = Unavailable desc = connection error",
    "version=8.0.3 build=24322831",
    "name: CSI_NAMESPACE\nvalue: vmware-system-csi",
    "- key: node.kubernetes.io/not-ready\n  operator: Exists",
    "the key is missing: ca.crt",
    "Certificate of vc.example.com: valid until 2027-01-01T00:00:00Z",
];

#[test]
fn redaction_leaves_nothing_of_a_secret_at_any_place() {
    let mut left = Vec::new();
    for place in PLACES {
        for secret in [WORD, PLANTED] {
            let tight =
                place.contains("://") || place.contains("@tcp") || place.contains("@db") || place.contains(":%,") || place.contains("?");
            if secret == PLANTED && (tight || place.contains("],")) {
                continue;
            }
            let text = place.replace('%', secret);
            let shown = redacted(&text);
            if shown.contains("hunter") || shown.contains("correct") {
                left.push(format!("{text}\n      -> {shown}"));
            }
            assert!(shown.contains(MASKED), "{text}: {shown}");
        }
    }
    assert!(left.is_empty(), "{} places:\n  {}", left.len(), left.join("\n  "));
}

#[test]
fn redaction_knows_the_forms_of_keys_and_tokens() {
    let left: Vec<String> = FORMS
        .iter()
        .map(|(text, never)| (text, never, redacted(text)))
        .filter(|(_, never, shown)| shown.contains(*never))
        .map(|(text, _, shown)| format!("{text} -> {shown}"))
        .collect();
    assert!(left.is_empty(), "{} forms:\n  {}", left.len(), left.join("\n  "));
}

#[test]
fn redaction_leaves_what_helps() {
    let changed: Vec<String> = STAYS
        .iter()
        .map(|text| (text, redacted(text)))
        .filter(|(text, shown)| **text != shown.as_str())
        .map(|(text, shown)| format!("{text} -> {shown}"))
        .collect();
    assert!(changed.is_empty(), "{} texts:\n  {}", changed.len(), changed.join("\n  "));
}

/// What follows a secret is not hidden with it.
#[test]
fn redaction_ends_where_the_secret_ends() {
    for (text, expected) in [
        ("password=x1 user=x", "password=****** user=x"),
        ("password: \"a b\", user: x", "password: \"******\", user: x"),
        (r#"{\"password\":\"x1\",\"a\":1}"#, r#"{\"password\":\"******\",\"a\":1}"#),
        (
            "GET https://u:x1@vc.example.com/sdk failed",
            "GET https://u:******@vc.example.com/sdk failed",
        ),
        ("password: |\n  a\n  b\nuser: x\n", "password: |\n  ******\n  ******\nuser: x\n"),
        (
            "a\n-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\nb\n",
            "a\n****** (private key)\nb\n",
        ),
        (
            "- name: A_KEY\n  value: x1\n- name: NODE_NAME\n  value: n1",
            "- name: A_KEY\n  value: ******\n- name: NODE_NAME\n  value: n1",
        ),
    ] {
        assert_eq!(redacted(text), expected);
    }
}

/// Hostile text takes neither long nor a panic.
#[test]
fn redaction_of_hostile_text_ends() {
    for piece in [
        "-----BEGIN PRIVATE KEY-----",
        "password=\"",
        "\\n",
        "://",
        "a:b@",
        "<a",
        "ü",
        "\\\\\"",
        "- ",
        "eyJ",
        "?a=",
    ] {
        let text = piece.repeat(20_000);
        let shown = redacted(&text);
        assert!(shown.len() <= 8 * text.len(), "{piece}");
    }
}

#[test]
fn redaction_names_of_values_and_of_things_about_them() {
    for name in [
        "password",
        "dbPassword",
        "AWS_SECRET_ACCESS_KEY",
        "ENCRYPTION_KEY",
        "client-secret",
        "apiKey",
        "tokens",
        "db_pass",
        "storageKey",
        "authToken",
    ] {
        assert!(is_sensitive(name), "{name}");
    }
    for name in [
        "secretName",
        "passwordFile",
        "tokenPath",
        "secretRef",
        "imagePullSecrets",
        "key",
        "compass",
        "publicKey",
        "spin",
        "author",
        "credentialsNamespace",
    ] {
        assert!(!is_sensitive(name), "{name}");
    }
}
