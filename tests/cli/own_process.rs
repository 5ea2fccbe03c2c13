// SPDX-License-Identifier: Apache-2.0
//! What both programs ask of the kernel for themselves: no core dumps. And an operator that has used up its file descriptors.

use crate::process::CLOSED_PORT;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;
use vdo::runtime::heartbeat::Heartbeats;
use vdo::runtime::http::{Admin, Readiness};
use vdo::runtime::metrics::Metrics;
use vdo::runtime::metrics_access::MetricsAccess;

const OPERATOR: &str = env!("CARGO_BIN_EXE_vdo-operator");

/// An API server that takes connections and says nothing, with a kubeconfig that leads there.
struct Silent {
    listener: TcpListener,
    folder: tempfile::TempDir,
}

impl Silent {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let folder = tempfile::tempdir().expect("a folder");
        let address = listener.local_addr().expect("an address").to_string();
        let text = CLOSED_PORT.replace("127.0.0.1:1", &address);
        std::fs::write(folder.path().join("config"), text).expect("written");
        Self { listener, folder }
    }

    /// A program with these limits, as `ulimit` has them.
    fn start(&self, limits: &str, program: &str, arguments: &[&str]) -> Started {
        let line = format!("{limits} && exec \"$0\" \"$@\" 2>&1");
        let mut command = Command::new("sh");
        command.args(["-c", &line, program]).args(arguments);
        command.env_clear().env("VDO_KUBECONFIG", self.folder.path().join("config"));
        command.current_dir(self.folder.path()).stdout(Stdio::piped());
        Started(command.spawn().expect("it starts"))
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// A process that ends with its test.
struct Started(Child);

impl Started {
    fn abort(mut self) -> ExitStatus {
        let pid = Pid::from_raw(i32::try_from(self.0.id()).expect("a process"));
        kill(pid, Signal::SIGABRT).expect("sent");
        self.0.wait().expect("it ends")
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn programs_that_abort_leave_no_core_dump() {
    let silent = Silent::new();
    let mut other = silent.start("ulimit -c unlimited && echo", "sleep", &["600"]);
    let output = other.0.stdout.as_mut().expect("its output");
    output.read_exact(&mut [0]).expect("it has started");
    assert!(
        other.abort().core_dumped(),
        "no program leaves a core dump on this machine, so nothing is shown; allow it with ulimit -c"
    );
    for (program, arguments) in [
        (OPERATOR, &["--listen=127.0.0.1:0"][..]),
        (vdo_testbed::vdoctl(), &["status", "--timeout=600s"]),
    ] {
        let silent = Silent::new();
        let started = silent.start("ulimit -c unlimited", program, arguments);
        // The client that has connected has long begun.
        let connection = silent.listener.accept().expect("a connection");
        let status = started.abort();
        assert_eq!(status.signal(), Some(Signal::SIGABRT as i32), "{program}");
        assert!(!status.core_dumped(), "{program} left a core dump");
        let left = std::fs::read_dir(silent.path()).expect("the folder").count();
        assert_eq!(left, 1, "{program} left more than its kubeconfig");
        drop(connection);
    }
}

/// The API server hangs, and more clients are connected than there are descriptors.
#[test]
fn operator_without_free_descriptors_answers_probes() {
    let silent = Silent::new();
    let mut operator = silent.start("ulimit -n 32", OPERATOR, &["--listen=127.0.0.1:0", "--log-format=json"]);
    let lines = BufReader::new(operator.0.stdout.take().expect("its log")).lines();
    let mut lines = lines.map(|line| serde_json::from_str::<serde_json::Value>(&line.expect("a line")).expect("JSON"));
    let address: SocketAddr = lines
        .find_map(|line| line["address"].as_str()?.parse().ok())
        .expect("the log names an address");
    let connect = || TcpStream::connect(address).expect("a connection");
    let idle: Vec<TcpStream> = (0..100).map(|_| connect()).collect();
    for number in 0..20 {
        assert_eq!(probe(address), "HTTP/1.1 200 OK", "probe {number} beside {}", idle.len());
    }
    let _ = operator.0.kill();
    let warned = lines.filter(|line| {
        line["message"]
            .as_str()
            .is_some_and(|text| text.contains("no file descriptor is free"))
    });
    assert_eq!(warned.count(), 1, "a shortage is logged once");
}

/// All descriptors but the reserve are in use, and not by clients of the port.
#[test]
fn port_without_free_descriptors_answers_from_its_reserve() {
    const NAME: &str = "own_process::port_without_free_descriptors_answers_from_its_reserve";
    const INSIDE: &str = "VDO_TEST_FEW_DESCRIPTORS";
    // In a process of its own, because the limit holds for a whole process.
    if std::env::vars_os().all(|(name, _)| name != INSIDE) {
        let program = std::env::current_exe().expect("this program");
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -n 64 && exec \"$0\" --exact \"$1\""]).arg(program);
        let output = command.arg(NAME).env(INSIDE, "1").output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains(" 1 passed"), "{text}");
        return;
    }
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let bound = Admin::bind(
        ([127, 0, 0, 1], 0).into(),
        Readiness::default(),
        Heartbeats::default(),
        Arc::new(Metrics::new()),
    );
    let admin = runtime.block_on(bound).expect("a port");
    let address = admin.address().expect("an address");
    runtime.spawn(admin.run(MetricsAccess::Anyone));
    // Once it has answered, it has its reserve.
    assert_eq!(probe(address), "HTTP/1.1 200 OK");
    let mut used: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    for number in 0..5 {
        // The client needs one, too.
        used.pop();
        assert_eq!(probe(address), "HTTP/1.1 200 OK", "probe {number}");
        used.extend(File::open("/dev/null").ok());
    }
}

/// The first line of the answer to a probe that waits for a second.
fn probe(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(1))).expect("a limit");
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").expect("sent");
    let mut text = String::new();
    match stream.read_to_string(&mut text) {
        Ok(_) => text.lines().next().unwrap_or_default().to_owned(),
        Err(error) => error.to_string(),
    }
}
