//! A server in this process that answers as a test wants, and a folder for what is fetched from it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Response;
use quipu_lab::policies::Registry;
use quipu_tokio::http3::{ALPN, Http3Request, Http3RequestBody, Http3Responder, Http3Server};
use quipu_tokio::identity::ServerIdentity;
use quipu_tokio::tokio::runtime::Runtime;
use quipu_tokio::{Connection, Endpoint, ServerConfig, TransportConfig, policies, tokio};
use tempfile::TempDir;

use crate::server::quipu;

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A request, and what answers it.
pub(crate) struct Exchange {
    pub(crate) head: http::Request<()>,
    pub(crate) body: Http3RequestBody,
    pub(crate) responder: Http3Responder,
    pub(crate) connection: Connection,
}

impl Exchange {
    /// Sends a head with these fields.
    pub(crate) fn respond(&mut self, status: u16, fields: &[(&str, &str)], has_body: bool) {
        let mut response = Response::builder().status(status);
        for (name, value) in fields {
            response = response.header(*name, *value);
        }
        let response = response.body(()).expect("a response");
        self.responder.respond(&response, has_body).expect("sent");
    }

    /// Sends octets of the body.
    pub(crate) async fn send(&mut self, octets: &[u8]) {
        self.responder.send_data(octets.to_vec().into()).await.expect("sent");
    }

    /// The body is complete.
    pub(crate) fn finish(&mut self) {
        self.responder.finish(None).expect("sent");
    }
}

/// The server, until it is dropped.
pub(crate) struct Scripted {
    address: SocketAddr,
    pub(crate) pin: String,
    pub(crate) out: TempDir,
    runtime: Runtime,
}

impl Scripted {
    /// `answer` is called for each request.
    pub(crate) fn start<F, R>(answer: F) -> Scripted
    where
        F: Fn(Exchange) -> R + Clone + Send + Sync + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        let runtime = Runtime::new().expect("threads");
        let identity = ServerIdentity::generate("quipu.test").expect("an identity");
        let tls = Arc::new(identity.tls(&[ALPN]).expect("TLS"));
        let policies = policies(&Registry::builtin(), "").expect("policies");
        let config = ServerConfig::new(tls, Arc::new(TransportConfig::default()), policies);
        let entered = runtime.enter();
        let endpoint = Endpoint::server(config).listen(SocketAddr::from(([127, 0, 0, 1], 0)));
        let endpoint = endpoint.bind().expect("a socket");
        let address = endpoint.local_addresses()[0];
        tokio::spawn(async move {
            while let Some(incoming) = endpoint.accept().await {
                tokio::spawn(serve(incoming, answer.clone()));
            }
        });
        drop(entered);
        let (pin, out) = (identity.pin().to_string(), TempDir::new().expect("a folder"));
        Scripted { address, pin, out, runtime }
    }

    /// Waits for what happens in the server.
    pub(crate) fn block_on<R>(&self, event: impl Future<Output = R>) -> R {
        let event = async { tokio::time::timeout(PATIENCE, event).await };
        self.runtime.block_on(event).expect("it happens in time")
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    pub(crate) fn to(&self, name: &str) -> PathBuf {
        self.out.path().join(name)
    }

    /// Fetches `path` with these options.
    pub(crate) fn command(&self, path: &str, options: &[&str]) -> Command {
        let mut command = quipu();
        command.args(["fetch", &self.url(path), "--pin", &self.pin]).args(options);
        command
    }

    pub(crate) fn fetch(&self, path: &str, options: &[&str]) -> Output {
        self.command(path, options).output().expect("it ends")
    }

    /// The same to the file `f` of the folder.
    pub(crate) fn fetch_file(&self, path: &str, options: &[&str]) -> Output {
        let mut command = self.command(path, options);
        command.arg("--output").arg(self.to("f")).output().expect("it ends")
    }

    /// What is in the folder.
    pub(crate) fn names(&self) -> Vec<String> {
        names(self.out.path())
    }

    /// What an earlier fetch kept of the file `f`.
    pub(crate) fn keep(&self, part: &[u8], validator: &str) {
        std::fs::write(self.to("f.part"), part).expect("written");
        std::fs::write(self.to("f.part.validator"), validator).expect("written");
    }

    /// Starts a fetch to the file `f` of which not all comes, and waits until some of it is written.
    pub(crate) fn begin(&self, path: &str, options: &[&str]) -> Child {
        let mut command = self.command(path, options);
        command.arg("--output").arg(self.to("f")).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        wait_until(|| {
            assert_eq!(child.try_wait().expect("a child"), None, "it runs");
            let sizes = self.names().into_iter().filter(|name| !name.ends_with(".validator"));
            let mut sizes = sizes.filter_map(|name| Some(self.to(&name).metadata().ok()?.len()));
            sizes.any(|size| size > 0)
        });
        child
    }
}

async fn serve<F, R>(incoming: quipu_tokio::Incoming, answer: F)
where
    F: Fn(Exchange) -> R + Clone + Send + Sync + 'static,
    R: Future<Output = ()> + Send + 'static,
{
    let Ok(connection) = incoming.accept().await else { return };
    let Ok(server) = Http3Server::new(connection.clone(), Default::default()) else { return };
    while let Ok(request) = server.accept().await {
        let (head, body, responder) = Http3Request::into_parts(request);
        let connection = connection.clone();
        tokio::spawn(answer(Exchange { head, body, responder, connection }));
    }
}

/// The names in a folder, in order.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let name = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.expect("an entry").file_name().to_string_lossy().into_owned()
    };
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort();
    names
}

/// Waits until it is so.
#[expect(clippy::disallowed_methods, reason = "another process does it")]
#[track_caller]
pub(crate) fn wait_until(mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "it comes to that");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Ctrl-C for a process.
pub(crate) fn interrupt(child: &Child) {
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(sent.expect("there is a kill").success());
}

pub(crate) fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// It failed with that code and one line that has all of these.
#[track_caller]
pub(crate) fn assert_failed(output: &Output, code: i32, parts: &[&str]) {
    let told = told(output);
    assert_eq!(output.status.code(), Some(code), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
    assert!(told.starts_with("error: "), "{told}");
    assert!(parts.iter().all(|part| told.contains(part)), "{told}");
}

#[track_caller]
pub(crate) fn assert_succeeded(output: &Output) {
    assert!(output.status.success(), "{}", told(output));
}
