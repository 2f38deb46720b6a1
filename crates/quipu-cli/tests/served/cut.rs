//! What is left of a fetch that ends before its time.

use std::process::{Child, Command, Output};
use std::sync::Arc;

use quipu_tokio::http3::ErrorCode;
use quipu_tokio::tokio::sync::Notify;

use crate::fetch::{noise, send_half, stay_silent};
use crate::scripted::{
    Exchange, Scripted, assert_failed, assert_succeeded, interrupt, told, wait_until,
};

/// Paths say what happens after half of the body: the stream or the connection ends.
fn cutting() -> (Scripted, Arc<Notify>) {
    let cut = Arc::new(Notify::new());
    let told = Arc::clone(&cut);
    let server = Scripted::start(move |exchange: Exchange| {
        let cut = Arc::clone(&told);
        async move {
            let path = exchange.head.uri().path().to_owned();
            if exchange.head.headers().contains_key("range") {
                return send_rest(exchange).await;
            }
            match path.as_str() {
                "/none" => exchange.connection.close(ErrorCode::INTERNAL_ERROR.0, b"broken"),
                "/connection" => {
                    let exchange = send_half(exchange, cut).await;
                    exchange.connection.close(ErrorCode::INTERNAL_ERROR.0, b"broken");
                }
                _ => {
                    let exchange = send_half(exchange, cut).await;
                    exchange.responder.abandon(ErrorCode::INTERNAL_ERROR);
                }
            }
        }
    });
    (server, cut)
}

/// Sends what the range asks for.
async fn send_rest(mut exchange: Exchange) {
    let range = exchange.head.headers()["range"].to_str().expect("ASCII").to_owned();
    let first = range.strip_prefix("bytes=").and_then(|range| range.strip_suffix('-'));
    let first: usize = first.and_then(|first| first.parse().ok()).expect("a number");
    let told = format!("bytes {first}-199999/200000");
    exchange.respond(206, &[("etag", "\"1\""), ("content-range", &told)], true);
    exchange.send(&noise(200_000)[first..]).await;
    exchange.finish();
}

fn ended(child: Child) -> Output {
    child.wait_with_output().expect("it ends")
}

#[test]
fn a_transfer_that_the_server_cuts_leaves_nothing_or_what_can_be_gone_on_with() {
    let (server, cut) = cutting();
    for path in ["/stream", "/connection"] {
        let fetching = server.begin(path, &["--quiet"]);
        cut.notify_one();
        let output = ended(fetching);
        assert_failed(&output, 18, &["after ", " bytes"]);
        assert_eq!(server.names(), [""; 0]);
        let fetching = server.begin(path, &["--quiet", "--continue"]);
        cut.notify_one();
        assert_failed(&ended(fetching), 18, &["after ", " bytes"]);
        assert_eq!(server.names(), ["f.part", "f.part.validator"]);
        let part = std::fs::read(server.to("f.part")).expect("a part");
        assert!(!part.is_empty() && noise(100_000).starts_with(&part), "{}", part.len());
        let output = server.fetch_file(path, &["--continue"]);
        assert_succeeded(&output);
        assert!(std::fs::read(server.to("f")).expect("a file") == noise(200_000));
        assert_eq!(server.names(), ["f"]);
        std::fs::remove_file(server.to("f")).expect("removed");
    }
}

#[test]
fn a_connection_that_is_lost_before_the_answer_has_a_code_of_its_own() {
    let (server, _) = cutting();
    assert_failed(&server.fetch_file("/none", &[]), 56, &["broken"]);
    assert_eq!(server.names(), [""; 0]);
}

#[test]
fn an_interrupted_transfer_leaves_nothing_under_the_name_of_the_file() {
    let (server, _) = cutting();
    std::fs::write(server.to("f"), "old").expect("written");
    for (options, kept) in
        [(&[][..], &["f"][..]), (&["--continue"], &["f", "f.part", "f.part.validator"])]
    {
        let fetching = {
            let mut command = server.command("/stream", options);
            command.arg("--output").arg(server.to("f")).stderr(std::process::Stdio::piped());
            command.spawn().expect("the program starts")
        };
        // Another file than the old one has grown.
        wait_until(|| {
            let names = server.names().into_iter();
            let mut new = names.filter(|name| name != "f" && !name.ends_with(".validator"));
            new.any(|name| server.to(&name).metadata().is_ok_and(|there| there.len() > 0))
        });
        interrupt(&fetching);
        let output = ended(fetching);
        assert_eq!(output.status.code(), Some(130), "{}", told(&output));
        assert!(told(&output).ends_with("error: interrupted\n"), "{}", told(&output));
        assert_eq!(server.names(), kept);
        assert_eq!(std::fs::read(server.to("f")).expect("a file"), b"old");
    }
}

#[test]
fn an_interrupted_wait_for_an_answer_ends_at_once() {
    let asked = Arc::new(Notify::new());
    let tell = Arc::clone(&asked);
    let server = Scripted::start(move |exchange: Exchange| {
        tell.notify_one();
        stay_silent(exchange)
    });
    let mut command = server.command("/", &["--quiet"]);
    command.arg("--output").arg(server.to("f")).stderr(std::process::Stdio::piped());
    let fetching = command.spawn().expect("the program starts");
    server.block_on(asked.notified());
    interrupt(&fetching);
    assert_failed(&ended(fetching), 130, &["interrupted"]);
    assert_eq!(server.names(), [""; 0]);
}

/// Runs a fetch to the file `f` of a small disk that is mounted at the server's folder for this program alone, and
/// tells what it leaves there. An error if no such namespace can be made.
fn fetch_to_small_disk(server: &Scripted, options: &[&str]) -> Result<(Output, String), String> {
    let small = |script: &str, command: &[&std::ffi::OsStr]| {
        let script = format!("mount -t tmpfs -o size=64k none \"$0\" && {script}");
        let mut started = Command::new("unshare");
        started.args(["-Urm", "sh", "-c", &script]).arg(server.out.path()).args(command);
        started.output().map_err(|error| error.to_string())
    };
    let may = small("true", &[])?;
    if !may.status.success() {
        return Err(told(&may));
    }
    let command = server.command("/whole", options);
    let file = server.to("f");
    let mut words = vec![command.get_program()];
    words.extend(command.get_args());
    words.extend([std::ffi::OsStr::new("--output"), file.as_os_str()]);
    let output = small(r#""$@"; code=$?; ls -A "$0"; exit $code"#, &words)?;
    let left = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok((output, left))
}

#[test]
fn a_full_disk_is_told_and_keeps_no_half_of_a_file() {
    let server = Scripted::start(|mut exchange: Exchange| async move {
        exchange.respond(200, &[("etag", "\"1\"")], true);
        // The client gives up.
        let _ = exchange.responder.send_data(noise(500_000).into()).await;
        let _ = exchange.responder.finish(None);
    });
    for (options, expected) in [(&[][..], ""), (&["--continue"], "f.part\nf.part.validator\n")] {
        match fetch_to_small_disk(&server, options) {
            Ok((output, left)) => {
                assert_failed(&output, 23, &["cannot write ", "/f: No space left on device"]);
                assert_eq!(left, expected);
            }
            Err(reason) => eprintln!("not tested: no small disk can be mounted: {reason}"),
        }
    }
    assert_eq!(server.names(), [""; 0], "all was on the small disk");
}
