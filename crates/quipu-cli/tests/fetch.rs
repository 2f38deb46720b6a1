//! `quipu fetch` from `quipu serve` over the loopback interface.
#![cfg(unix)]
#![expect(clippy::panic, reason = "a helper of tests is allowed to stop them")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

const BIG: usize = 3_000_000;

/// A server of a few files, until it is dropped, and a folder for what is fetched.
struct Site {
    child: Child,
    folder: TempDir,
    out: TempDir,
    port: u16,
    pin: String,
}

impl Site {
    fn start() -> Site {
        Site::start_with(&["serve"])
    }

    /// `command` with options comes before those of the address.
    fn start_with(command: &[&str]) -> Site {
        let (folder, out) = (TempDir::new().expect("a folder"), TempDir::new().expect("a folder"));
        let write = |name: &str, content: &[u8]| {
            std::fs::write(folder.path().join(name), content).expect("written");
        };
        write("index.html", b"<p>hello");
        write("a.txt", b"alpha");
        write("b.txt", b"beta");
        write("big.bin", &big());
        std::fs::create_dir(folder.path().join("dir")).expect("made");
        write("dir/index.html", b"in dir");
        let mut started = quipu();
        started.args(command);
        if command == ["serve"] {
            started.arg(folder.path());
        }
        started.args(["--listen", "127.0.0.1:0"]).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = started.spawn().expect("the program starts");
        let (mut port, mut pin) = (0, String::new());
        for line in BufReader::new(child.stdout.take().expect("it is piped")).lines() {
            let line = line.expect("UTF-8");
            if let Some(given) = line.strip_prefix("pin ") {
                given.clone_into(&mut pin);
                break;
            }
            let digits =
                line.trim_end_matches('/').rsplit(':').next().and_then(|it| it.parse().ok());
            port = digits.unwrap_or(port);
        }
        Site { child, folder, out, port, pin }
    }

    fn url(&self, path: &str) -> String {
        format!("https://127.0.0.1:{}{path}", self.port)
    }

    fn to(&self, name: &str) -> PathBuf {
        self.out.path().join(name)
    }

    /// Fetches these paths with these options.
    fn fetch(&self, paths: &[&str], options: &[&str]) -> Output {
        let mut command = quipu();
        command.arg("fetch").args(paths.iter().map(|path| self.url(path)));
        command.args(["--pin", &self.pin]).args(options).output().expect("it ends")
    }

    /// What is in the folder for what is fetched.
    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.out.path()).expect("a folder");
        let name = |entry: std::io::Result<std::fs::DirEntry>| {
            entry.expect("an entry").file_name().to_string_lossy().into_owned()
        };
        let mut names: Vec<String> = entries.map(name).collect();
        names.sort();
        names
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn quipu() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quipu"));
    command.env_remove("QLOGDIR").env_remove("QUIPU_LOG").env_remove("SSLKEYLOGFILE");
    command
}

fn big() -> Vec<u8> {
    (0..BIG as u32).flat_map(|at| at.wrapping_mul(2_654_435_761).to_le_bytes()).take(BIG).collect()
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// It failed with that code and one line that has all of these.
#[track_caller]
fn assert_failed(output: &Output, code: i32, parts: &[&str]) {
    let told = told(output);
    assert_eq!(output.status.code(), Some(code), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
    assert!(told.starts_with("error: "), "{told}");
    assert!(parts.iter().all(|part| told.contains(part)), "{told}");
}

fn text(path: &Path) -> String {
    path.to_str().unwrap_or_else(|| panic!("{path:?}")).to_owned()
}

#[test]
fn one_url_comes_to_standard_output_and_a_head_alone() {
    let site = Site::start();
    let output = site.fetch(&["/"], &["--quiet"]);
    assert_eq!((output.stdout.as_slice(), told(&output)), (&b"<p>hello"[..], String::new()));
    let output = site.fetch(&["/a.txt"], &["--head"]);
    let head = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(head.starts_with("HTTP/3 200 OK\n"), "{head}");
    assert!(head.contains("content-length: 5\n") && head.contains("etag: \""), "{head}");
    // A folder is redirected to.
    let output = site.fetch(&["/dir"], &["--quiet"]);
    assert_eq!(output.stdout, b"in dir");
    assert_failed(&site.fetch(&["/dir"], &["--max-redirects", "0"]), 47, &["redirects"]);
}

#[test]
fn several_urls_come_over_several_paths_of_one_connection() {
    let site = Site::start();
    // Large enough that it is still coming when the second path opens.
    let huge = big().repeat(20);
    std::fs::write(site.folder.path().join("huge.bin"), &huge).expect("written");
    let folder = text(site.out.path());
    let options = ["--output-dir", &folder, "--via", "127.0.0.1", "--via", "127.0.0.2", "--json"];
    let more = ["--path", "path-rr", "--priority", "u=5", "--priority", "u=1,i"];
    let output = site.fetch(&["/a.txt", "/huge.bin", "/a.txt"], &[&options[..], &more].concat());
    assert!(output.status.success(), "{}", told(&output));
    assert_eq!(site.names(), ["a.txt", "a.txt.1", "huge.bin"]);
    assert!(std::fs::read(site.to("huge.bin")).expect("read") == huge);
    let value: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(value["world"], "live");
    let objects = value["objects"].as_array().expect("a list");
    assert_eq!(objects.len(), 3);
    assert_eq!((&objects[1]["status"], &objects[1]["bytes"]), (&200.into(), &huge.len().into()));
    let seconds = &objects[1]["seconds"];
    let time = |name: &str| seconds[name].as_f64().expect("a number");
    assert!(time("connected") <= time("first_byte") && time("first_byte") <= time("complete"));
    let connections = value["connections"].as_array().expect("a list");
    assert_eq!(connections.len(), 1, "{value}");
    assert_eq!(connections[0]["paths"].as_array().map(Vec::len), Some(2), "{value}");
}

#[test]
fn http2_over_quic_streams_brings_the_same() {
    let site = Site::start();
    let http2 = |paths: &[&str], options: &[&str]| {
        site.fetch(paths, &[&["--http", "h2"], options].concat())
    };
    let output = http2(&["/"], &["--quiet"]);
    assert_eq!((output.stdout.as_slice(), told(&output)), (&b"<p>hello"[..], String::new()));
    let output = http2(&["/big.bin"], &["--head"]);
    let head = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(head.starts_with("HTTP/2 200 OK\n"), "{head}");
    let etag = head.lines().find_map(|line| line.strip_prefix("etag: ")).expect("an ETag");
    // A range of it over two paths, beside another.
    std::fs::write(site.to("big.bin.part"), &big()[..1_000_000]).expect("written");
    std::fs::write(site.to("big.bin.part.validator"), etag).expect("written");
    let folder = text(site.out.path());
    let options = ["--output-dir", &folder, "--via", "127.0.0.1", "--via", "127.0.0.2", "--json"];
    let more = ["--continue", "--priority", "u=5", "--priority", "u=1,i"];
    let output = http2(&["/a.txt", "/big.bin"], &[&options[..], &more].concat());
    assert!(output.status.success(), "{}", told(&output));
    assert_eq!(site.names(), ["a.txt", "big.bin"]);
    assert!(std::fs::read(site.to("big.bin")).expect("read") == big());
    let value: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(value["objects"][1]["resumed_at"], 1_000_000);
    assert_failed(&http2(&["/none"], &["--fail"]), 22, &["/none: ", "404 Not Found"]);
    // The server takes no files, and says so before all has come.
    let upload = text(&site.folder.path().join("big.bin"));
    let output = http2(&["/up"], &["--upload", &upload, "--fail"]);
    assert_failed(&output, 22, &["405 Method Not Allowed"]);
}

#[test]
fn a_fetch_that_was_cut_off_is_gone_on_with() {
    let site = Site::start();
    let output = site.fetch(&["/big.bin"], &["--head"]);
    let head = String::from_utf8_lossy(&output.stdout).into_owned();
    let etag = head.lines().find_map(|line| line.strip_prefix("etag: ")).expect("an ETag");
    let keep = |bytes: &[u8], validator: &str| {
        std::fs::write(site.to("r.part"), bytes).expect("written");
        std::fs::write(site.to("r.part.validator"), validator).expect("written");
    };
    let file = text(&site.to("r"));
    let options = ["--output", file.as_str(), "--continue", "--json"];
    for (validator, resumed_at) in [(etag, 1_000_000), ("\"another\"", 0)] {
        keep(&big()[..1_000_000], validator);
        let output = site.fetch(&["/big.bin"], &options);
        assert!(output.status.success(), "{}", told(&output));
        let value: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(value["objects"][0]["resumed_at"], resumed_at);
        assert_eq!(value["objects"][0]["bytes"], BIG - resumed_at);
        assert!(std::fs::read(&file).expect("read") == big());
        assert_eq!(site.names(), ["r"], "no part is left");
    }
    // The part is longer than the file: the server has no such range.
    keep(&[big(), vec![0]].concat(), etag);
    assert_failed(&site.fetch(&["/big.bin"], &options[..3]), 33, &["no more than"]);
}

#[test]
fn what_fails_has_a_code_and_leaves_nothing() {
    let site = Site::start();
    let file = text(&site.to("f"));
    let to_file = ["--output", file.as_str()];
    let wrong = format!("sha256:{}", "0".repeat(64));
    let output = site.fetch(&["/a.txt"], &[&to_file[..], &["--checksum", &wrong]].concat());
    assert_failed(
        &output,
        110,
        &["8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8"],
    );
    let output = site.fetch(&["/none"], &[&to_file[..], &["--fail"]].concat());
    assert_failed(&output, 22, &["/none: ", "404 Not Found"]);
    assert_failed(
        &site.fetch(&["/a.txt"], &["--output", "/none/f"]),
        23,
        &["cannot write /none/f"],
    );
    let output = site.fetch(&["/a.txt"], &["--upload", "/none"]);
    assert_failed(&output, 26, &["cannot read /none"]);
    assert_eq!(site.names(), [""; 0]);
    // The right one, and a status that is an answer.
    let right = "sha256:8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8";
    let output = site.fetch(&["/a.txt"], &[&to_file[..], &["--checksum", right]].concat());
    assert!(output.status.success(), "{}", told(&output));
    assert_eq!(site.names(), ["f"]);
    assert!(site.fetch(&["/none"], &[]).status.success());
    // Of several, the others are fetched.
    let folder = text(site.out.path());
    let output = site.fetch(&["/none", "/b.txt"], &["--output-dir", &folder, "--fail", "--quiet"]);
    assert_failed(&output, 22, &["/none"]);
    assert_eq!(site.names(), ["b.txt", "f"]);
}

#[test]
fn devices_are_written_and_never_replaced() {
    let site = Site::start();
    let full = Path::new("/dev/full");
    if full.exists() {
        assert_failed(&site.fetch(&["/a.txt"], &["--output", "/dev/full"]), 23, &["/dev/full"]);
        assert!(!full.metadata().expect("it is there").is_file());
    }
    let link = site.to("link");
    std::os::unix::fs::symlink(site.folder.path().join("target"), &link).expect("linked");
    std::fs::write(site.folder.path().join("target"), "old").expect("written");
    let output = site.fetch(&["/a.txt"], &["--output", &text(&link)]);
    assert!(output.status.success(), "{}", told(&output));
    assert!(link.is_symlink());
    assert_eq!(std::fs::read(&link).expect("read"), b"alpha");
    // The user's umask holds.
    let file = text(&site.to("private"));
    let script = r#"umask 077 && exec "$0" "$@""#;
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_quipu"), "fetch", &site.url("/a.txt")]);
    let output = command.args(["--pin", &site.pin, "--output", &file]).output().expect("it ends");
    assert!(output.status.success(), "{}", told(&output));
    let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&file).expect("a file"));
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn servers_that_cannot_be_used_are_told_apart() {
    let site = Site::start();
    let fetch =
        |arguments: &[&str]| quipu().arg("fetch").args(arguments).output().expect("it ends");
    assert_failed(&fetch(&["https://127.0.0.1:9/"]), 7, &["127.0.0.1:9", "nothing listens"]);
    let other = "0".repeat(64);
    assert_failed(&fetch(&[&site.url("/"), "--pin", &other]), 60, &["not trusted", "--pin"]);
    assert_failed(&fetch(&["https://none.invalid/"]), 6, &["none.invalid has no address"]);
    assert_failed(&fetch(&["http://127.0.0.1/"]), 3, &["needs https"]);
    assert_failed(&fetch(&["example.org"]), 3, &["did you mean https://example.org?"]);
    let perf = Site::start_with(&["perf", "server"]);
    assert_failed(&fetch(&[&perf.url("/"), "--pin", &perf.pin]), 35, &["ALPN"]);
    let refused = fetch(&[&perf.url("/"), "--pin", &perf.pin, "--http", "h2"]);
    assert_failed(&refused, 35, &["ALPN", "--http h3"]);
    let unknown = fetch(&[&perf.url("/"), "--http", "h1"]);
    assert_eq!(unknown.status.code(), Some(2), "{}", told(&unknown));
    assert!(told(&unknown).contains("[possible values: h3, h2]"), "{}", told(&unknown));
    // One that never answers.
    let mute = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let url = format!("https://{}/", mute.local_addr().expect("an address"));
    assert_failed(&fetch(&[&url, "--connect-timeout", "1"]), 28, &["after 1 s"]);
    assert_failed(&fetch(&[&url, "--max-time", "1"]), 28, &["--max-time"]);
    // It is tried once for all who wait for it.
    let urls = ["1", "2", "3"].map(|path| format!("{url}{path}"));
    let folder = text(site.out.path());
    let options = ["--connect-timeout", "1", "--max-time", "3", "--output-dir", &folder];
    let output = fetch(&[&urls.each_ref().map(String::as_str)[..], &options[..]].concat());
    assert_eq!(told(&output).matches("after 1 s").count(), 3, "{}", told(&output));
}

#[test]
fn an_interrupted_fetch_ends_at_once_and_leaves_nothing() {
    let site = Site::start();
    let mute = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let url = format!("https://{}/", mute.local_addr().expect("an address"));
    let mut command = quipu();
    command.args(["fetch", &url, "--pin", &site.pin, "--output", &text(&site.to("f"))]);
    let mut child = command.stderr(Stdio::piped()).spawn().expect("the program starts");
    // Its first datagram is here, so that it listens to signals.
    mute.recv(&mut [0; 2_000]).expect("a datagram");
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(sent.expect("there is a kill").success());
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    assert_eq!(site.names(), [""; 0]);
}
