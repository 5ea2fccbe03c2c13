// SPDX-License-Identifier: Apache-2.0
//! Tests the port for probes and metrics with real sockets.

use super::connections::MAX_CONNECTIONS;
use super::*;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::JoinHandle;
use tokio::time::timeout;

struct Port {
    address: SocketAddr,
    readiness: Readiness,
    heartbeats: Heartbeats,
    server: JoinHandle<()>,
}

impl Port {
    async fn open(metrics: Metrics, deadline: Duration) -> Self {
        // 500 clients and as many ends of the server are in one process.
        vdo_system::raise_descriptor_limit();
        let readiness = Readiness::default();
        let heartbeats = Heartbeats::default();
        let bound = Admin::bind(([127, 0, 0, 1], 0).into(), readiness.clone(), heartbeats.clone(), Arc::new(metrics));
        let mut admin = bound.await.expect("a port");
        admin.deadline = deadline;
        let address = admin.address().expect("an address");
        let server = tokio::spawn(admin.run(MetricsAccess::Anyone));
        Self {
            address,
            readiness,
            heartbeats,
            server,
        }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.expect("the port")
    }

    async fn get(&self, head: &str) -> String {
        let mut stream = self.connect().await;
        let request = format!("{head} HTTP/1.1\r\nHost: x\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut text = String::new();
        let read = timeout(Duration::from_secs(30), stream.read_to_string(&mut text)).await;
        read.expect("an answer, and the end of the connection").expect("an answer");
        text
    }

    /// The kubelet waits for one second by default.
    async fn is_alive(&self) -> bool {
        let probe = timeout(Duration::from_secs(1), self.get("GET /healthz")).await;
        probe.is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
    }
}

/// Whether the server has closed a connection on which it has sent nothing.
async fn is_ended(client: &mut TcpStream) -> bool {
    let read = timeout(Duration::from_secs(5), client.read_u8()).await;
    matches!(read, Ok(Err(_)))
}

/// More than the kernel buffers for a client that does not read.
fn large() -> Metrics {
    let metrics = Metrics::new();
    for number in 0..20_000 {
        metrics.connection(&format!("{number}-{}", "x".repeat(400)), true);
    }
    metrics
}

#[tokio::test]
async fn admin_server_port_in_use_names_listen_flag() {
    let port = Port::open(Metrics::new(), DEADLINE).await;
    let taken = Admin::bind(port.address, Readiness::default(), Heartbeats::default(), Arc::new(Metrics::new()))
        .await
        .expect_err("the port is taken");
    assert!(taken.to_string().contains("--listen"));
}

#[tokio::test]
async fn admin_server_health_ready_and_metrics_paths_answer() {
    let port = Port::open(Metrics::new(), DEADLINE).await;
    assert!(port.get("GET /healthz").await.starts_with("HTTP/1.1 200"));
    assert!(port.get("GET /readyz").await.starts_with("HTTP/1.1 503"));
    port.readiness.synced();
    let refused = port.get("GET /readyz").await;
    assert!(
        refused.starts_with("HTTP/1.1 503") && refused.contains("no operator is known to hold the Lease"),
        "{refused}"
    );
    port.readiness.led();
    assert!(port.get("GET /readyz?verbose").await.starts_with("HTTP/1.1 200"));
    let metrics = port.get("GET /metrics").await;
    assert!(
        metrics.contains("vdo_build_info{version=") && metrics.ends_with("# EOF\n"),
        "{metrics}"
    );
    assert!(metrics.contains(CONTENT_TYPE));
    assert!(port.get("POST /metrics").await.starts_with("HTTP/1.1 405"));
    assert!(port.get("GET /plan").await.starts_with("HTTP/1.1 404"));
    assert!(port.get("nonsense").await.starts_with("HTTP/1.1 400"));
    port.server.abort();
    let _ = port.server.await;
    assert!(TcpStream::connect(port.address).await.is_err(), "still served after it was dropped");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn admin_server_with_silent_clients_answers_probes() {
    for clients in [MAX_CONNECTIONS, 500] {
        let port = Port::open(Metrics::new(), Duration::from_secs(600)).await;
        let mut silent = Vec::new();
        for _ in 0..clients {
            silent.push(port.connect().await);
        }
        for probe in 0..20 {
            assert!(port.is_alive().await, "probe {probe} beside {clients} silent clients");
        }
        assert!(
            is_ended(&mut silent[0]).await,
            "the oldest stays open beside {clients} silent clients"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn admin_server_with_clients_that_do_not_read_answers_probes() {
    let port = Port::open(large(), Duration::from_secs(600)).await;
    let requests = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n".repeat(400);
    let mut deaf = Vec::new();
    for _ in 0..MAX_CONNECTIONS {
        let mut client = port.connect().await;
        // It may have been refused already.
        let _ = client.write_all(requests.as_bytes()).await;
        deaf.push(client);
    }
    for probe in 0..20 {
        assert!(port.is_alive().await, "probe {probe}");
    }
    let scrape = port.get("GET /metrics").await;
    assert!(scrape.starts_with("HTTP/1.1 503"), "all slots are taken: {:.60}", scrape);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn admin_server_deadline_ends_clients_that_do_not_read_or_send() {
    let port = Port::open(large(), Duration::from_millis(200)).await;
    let mut silent = port.connect().await;
    let mut deaf = Vec::new();
    for _ in 0..MAX_SCRAPES {
        let mut client = port.connect().await;
        client.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").await.expect("sent");
        deaf.push(client);
    }
    assert!(is_ended(&mut silent).await, "a client that sends nothing stays connected");
    // Their slots come free although none of them reads.
    let scraped = timeout(Duration::from_secs(10), async {
        while !port.get("HEAD /metrics").await.starts_with("HTTP/1.1 200") {}
    });
    assert!(scraped.await.is_ok());
}

#[tokio::test]
async fn admin_server_second_request_of_a_connection_is_not_answered() {
    let port = Port::open(Metrics::new(), DEADLINE).await;
    let text = port.get("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nGET /healthz").await;
    assert_eq!(text.matches("HTTP/1.1").count(), 1, "{text}");
    assert!(text.to_lowercase().contains("connection: close"), "{text}");
}

/// A loop that holds its thread gives no sign of life any more, and does not keep the probe from being answered. As in the operator, the
/// loop and the port are on different threads.
#[tokio::test]
async fn liveness_of_blocked_task_fails_and_recovers_with_it() {
    let port = Port::open(Metrics::new(), DEADLINE).await;
    let (block, blocked) = std::sync::mpsc::channel::<()>();
    let (unblock, unblocked) = std::sync::mpsc::channel::<()>();
    let beats = port.heartbeats.clone();
    let work = async move {
        loop {
            beats.expect("the loop", Duration::from_millis(500));
            // As a lock that is not released for long, or a computation that does not end.
            let held = blocked.try_recv().map(|()| unblocked.recv());
            if matches!(held, Err(std::sync::mpsc::TryRecvError::Disconnected)) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    let looping = std::thread::spawn(move || runtime.block_on(work));
    let until = async |code: &str| {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
        loop {
            let answer = port.get("GET /healthz").await;
            if answer.starts_with(&format!("HTTP/1.1 {code}")) {
                return answer;
            }
            assert!(tokio::time::Instant::now() < deadline, "{answer}");
        }
    };
    until("200").await;
    block.send(()).expect("the loop");
    let answer = until("503").await;
    assert!(answer.contains("no heartbeat from the loop ("), "{answer}");
    unblock.send(()).expect("the loop");
    until("200").await;
    drop(block);
    looping.join().expect("the end of the loop");
}

#[test]
fn ready_operator_is_not_when_no_one_leads_for_longer_than_a_lease() {
    let now = Instant::now();
    let ago = |seconds| now.checked_sub(Duration::from_secs(seconds));
    for (synced, led, expected) in [
        (false, None, Err(NotReady::Caches)),
        (false, ago(0), Err(NotReady::Caches)),
        (true, None, Err(NotReady::Leaderless)),
        (true, ago(0), Ok(())),
        (true, ago(29), Ok(())),
        (true, ago(30), Err(NotReady::Leaderless)),
    ] {
        assert_eq!(ReadinessState { synced, led }.judge(now), expected, "{synced} {led:?}");
    }
}
