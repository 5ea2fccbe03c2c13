// SPDX-License-Identifier: Apache-2.0
//! A hostile API server, as far as `vdoctl status` asks it: a real one does not say such things.

use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};

pub struct ApiServer {
    address: SocketAddr,
}

impl ApiServer {
    /// Answers each path as this says, and with 404 where it says nothing, as long as the process lives.
    pub fn start(answer: impl Fn(&str) -> Option<Value> + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        std::thread::spawn(move || listener.incoming().flatten().for_each(|stream| drop(serve(&stream, &answer))));
        Self { address }
    }

    /// A kubeconfig with a context of this name.
    pub fn kubeconfig(&self, context: &str) -> String {
        kubeconfig(context, &format!("http://{}", self.address))
    }
}

/// A kubeconfig with a context of this name, for this server.
pub fn kubeconfig(context: &str, server: &str) -> String {
    json!({"apiVersion": "v1", "kind": "Config", "current-context": context,
        "contexts": [{"name": context, "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {}}], "clusters": [{"name": "c", "cluster": {"server": server}}]})
    .to_string()
}

/// One request on each connection.
fn serve(mut stream: &TcpStream, answer: &impl Fn(&str) -> Option<Value>) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
    let path = first.split(' ').nth(1).and_then(|path| path.split('?').next()).unwrap_or_default();
    let missing = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404,
        "message": "there is no such object", "details": {"name": "x"}});
    let (code, body) = answer(path).map_or((404, missing), |body| (200, body));
    let body = body.to_string();
    let head = format!(
        "HTTP/1.1 {code} -\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes())
}
