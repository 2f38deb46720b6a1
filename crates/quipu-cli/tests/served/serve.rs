//! `quipu serve` over the loopback interface.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Output, Stdio};

use tempfile::TempDir;

use crate::fetch::noise;
use crate::scripted::{interrupt, wait_until};
use crate::server::{Server, quipu};

fn site() -> TempDir {
    let folder = TempDir::new().expect("a folder");
    std::fs::write(folder.path().join("index.html"), "<p>hello").expect("written");
    folder
}

fn error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_folder_is_served_until_the_server_is_asked_to_end() {
    let site = site();
    let mut server = Server::start(site.path(), &["--name", "quipu.test"]);
    let [first, url, pin] = &server.lines[..] else { panic!("{:?}", server.lines) };
    assert!(first.contains("over HTTP/3, HTTP/2 and HTTP/1.1 on 127.0.0.1:"), "{first}");
    assert_eq!(url, &format!("https://quipu.test:{}/", server.port));
    assert_eq!(pin.len(), "pin ".len() + 64);
    // TCP has the port, too; what is no TLS is not answered.
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).expect("TCP");
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("sent");
    let mut answer = Vec::new();
    // The server may close before all was read.
    let _ = stream.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP/"));
    assert_eq!(server.stop(), (Some(0), String::new()));
}

#[test]
fn an_interrupted_server_answers_the_requests_that_came() {
    let site = site();
    let huge = noise(1 << 20).repeat(60);
    std::fs::write(site.path().join("huge.bin"), &huge).expect("written");
    let mut server = Server::start(site.path(), &["--grace", "300"]);
    let url = format!("https://127.0.0.1:{}/huge.bin", server.port);
    let pin = server.lines.last().and_then(|line| line.strip_prefix("pin ")).expect("a pin");
    let mut command = quipu();
    command.args(["fetch", &url, "--pin", pin, "--quiet"]).stdout(Stdio::piped());
    let mut fetching = command.spawn().expect("the program starts");
    let mut output = fetching.stdout.take().expect("it is piped");
    // What is not read holds up the rest.
    let mut content = vec![0; 1_000];
    output.read_exact(&mut content).expect("the body has begun");
    interrupt(&server.child);
    // It takes no connections from then on.
    wait_until(|| TcpStream::connect(("127.0.0.1", server.port)).is_err());
    assert_eq!(server.child.try_wait().expect("a child"), None, "the request is open");
    output.read_to_end(&mut content).expect("read");
    assert!(content == huge, "{} bytes", content.len());
    assert!(fetching.wait().expect("it ends").success());
    assert_eq!(server.wait(), (Some(0), String::new()));
}

#[test]
fn a_port_in_use_is_told_with_its_address() {
    let site = site();
    let server = Server::start(site.path(), &[]);
    let taken = format!("127.0.0.1:{}", server.port);
    let output = quipu().arg("serve").arg(site.path()).args(["--listen", &taken]).output();
    let output = output.expect("it ends");
    assert_eq!(output.status.code(), Some(1));
    let told = error(&output);
    assert!(told.contains(&taken) && told.contains("in use"), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
}

#[test]
fn a_client_beyond_the_limit_is_refused_and_requests_beyond_theirs_wait() {
    let site = site();
    let large = std::fs::File::create(site.path().join("large")).expect("created");
    large.set_len(1 << 30).expect("as large");
    let server = Server::start(site.path(), &["--max-connections", "1", "--max-requests", "3"]);
    let pin = server.lines.last().and_then(|line| line.strip_prefix("pin ")).expect("a pin");
    let url = |path: &str| format!("https://127.0.0.1:{}/{path}", server.port);
    let fetch = |urls: &[String]| {
        let mut command = quipu();
        command.args(["fetch", "--quiet", "--pin", pin]).args(urls);
        command
    };
    let pages = TempDir::new().expect("a folder");
    let seven: Vec<String> = (0..7).map(|nth| url(&format!("{nth}"))).collect();
    for nth in 0..7 {
        std::fs::write(site.path().join(nth.to_string()), "seven").expect("written");
    }
    let output = fetch(&seven).arg("--output-dir").arg(pages.path()).output().expect("it ends");
    assert!(output.status.success(), "{}", error(&output));
    assert_eq!(std::fs::read_dir(pages.path()).expect("there").count(), 7);
    // One that reads nothing holds its connection. The one before may still be closing.
    let held = (0..100).find_map(|_| {
        let mut child = fetch(&[url("large")]).stdout(Stdio::piped()).spawn().expect("it starts");
        let answered = child.stdout.as_mut().map(|it| it.read_exact(&mut [0]));
        if matches!(answered, Some(Ok(()))) { Some(child) } else { child.wait().ok().and(None) }
    });
    let mut held = held.expect("it is let in");
    let output = fetch(&[url("index.html")]).output().expect("it ends");
    assert!(!output.status.success());
    assert!(error(&output).contains("refuses the connection"), "{}", error(&output));
    held.kill().and_then(|()| held.wait()).expect("it ends");
}

#[test]
fn an_identity_outlives_the_server_and_metrics_have_a_port_of_their_own() {
    let (site, kept) = (site(), TempDir::new().expect("a folder"));
    let identity = kept.path().join("identity");
    let identity = identity.to_str().expect("UTF-8");
    let pin = |server: &Server| server.lines.last().cloned();
    let mut first = Server::start(site.path(), &["--identity", identity]);
    let before = pin(&first);
    first.stop();
    let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr());
    let metrics = free.expect("a free port").to_string();
    let mut second =
        Server::start(site.path(), &["--identity", identity, "--metrics", &metrics, "--no-tcp"]);
    assert_eq!(pin(&second), before);
    assert!(TcpStream::connect(("127.0.0.1", second.port)).is_err(), "HTTP/3 alone");
    let mut stream = TcpStream::connect(&metrics).expect("TCP");
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
        .expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("UTF-8");
    assert!(answer.contains("quipu_connections{transport=\"quic\"} 0"), "{answer}");
    assert_eq!(second.stop().0, Some(0));
}

#[test]
fn a_page_is_replayed_with_the_command_for_chromium() {
    let mut command = quipu();
    command.args(["serve", "--har", "sb-admin", "--listen", "127.0.0.1:0"]);
    let mut server = Server::run(command, |line| line.starts_with("  'https://"));
    let port = server.port;
    let [first, url, pin, chromium, resolver, key, force, last] = &server.lines[..] else {
        panic!("{:?}", server.lines)
    };
    assert!(first.starts_with("replaying sb-admin (13 objects, 1 host) over HTTP/3, "), "{first}");
    assert!(url.starts_with("https://sbadmin.docs.test/"), "{url}");
    assert!(pin.starts_with("pin "), "{pin}");
    assert_eq!(chromium, "chromium --enable-quic \\");
    assert_eq!(resolver, &format!("  --host-resolver-rules=\"MAP * 127.0.0.1:{port}\" \\"));
    // 32 bytes in base64.
    let option = "  --ignore-certificate-errors-spki-list=";
    let hash = key.strip_prefix(option).and_then(|rest| rest.strip_suffix("= \\"));
    assert_eq!(hash.map(str::len), Some(43), "{key}");
    assert_eq!(force, "  --origin-to-force-quic-on=sbadmin.docs.test:443 \\");
    assert_eq!(last, &format!("  '{url}'"));
    assert_eq!(server.stop(), (Some(0), String::new()));
}

#[test]
fn objects_that_grow_are_told() {
    let mut command = quipu();
    command.args(["serve", "--har", "dojo-demo", "--listen", "127.0.0.1:0"]);
    let mut server = Server::run(command, |line| line.starts_with("pin "));
    let (code, told) = server.stop();
    assert_eq!(code, Some(0));
    assert!(told.contains(": what it requests needs them"), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
}

#[test]
fn a_page_stands_in_place_of_a_folder() {
    for (arguments, expected) in [
        (&["--har", "wikipeda"][..], "error: --har: "),
        (&[][..], "required arguments were not provided"),
        (&["--har", "google", "."][..], "cannot be used with"),
        (&["--har", "google", "--cache-control", "no-store"][..], "cannot be used with"),
    ] {
        let output = quipu().arg("serve").args(arguments).output().expect("the program runs");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(error(&output).contains(expected), "{}", error(&output));
    }
}
