//! A small site on the loopback: a document, a style sheet, scripts, a font and images.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

/// Starts the site and gives its address. It runs until the test ends.
pub(crate) fn start() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || serve(&stream));
        }
    });
    format!("http://{address}")
}

fn serve(stream: &TcpStream) {
    let mut lines = BufReader::new(stream).lines();
    while let Some(Ok(line)) = lines.next() {
        let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
        while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
        if answer(stream, &path).is_err() {
            return;
        }
    }
}

fn answer(mut stream: &TcpStream, path: &str) -> std::io::Result<()> {
    if path == "/never" {
        thread::sleep(Duration::from_secs(600));
    }
    let (status, kind, body) = match content(path) {
        Some((kind, body)) => ("200 OK", kind, body),
        None if path == "/moved" => ("302 Found\r\nLocation: /", "text/html", String::new()),
        None => ("404 Not Found", "text/plain", "no such file".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

/// Media type and content of a file of the site.
fn content(path: &str) -> Option<(&'static str, String)> {
    let picture = |kilobytes: usize| {
        let comment = "picture ".repeat(kilobytes * 125);
        format!(
            "<svg xmlns='http://www.w3.org/2000/svg' width='60' height='60'><!-- {comment} -->\
             <rect width='60' height='60' fill='teal'/></svg>"
        )
    };
    Some(match path {
        "/" => ("text/html", DOCUMENT.to_owned() + &"<p>Some text.</p>\n".repeat(500)),
        "/style.css" => ("text/css", STYLE.to_owned()),
        "/work.js" => ("text/javascript", WORK.to_owned() + &"// a line\n".repeat(2_000)),
        "/late.js" => ("text/javascript", "document.title = 'late';".to_owned()),
        "/data.json" => ("application/json", "{\"picture\": \"/third.svg\"}".to_owned()),
        "/font.woff2" => ("font/woff2", "no font, but asked for ".repeat(300)),
        "/first.svg" => ("image/svg+xml", picture(60)),
        "/second.svg" => ("image/svg+xml", picture(30)),
        "/third.svg" => ("image/svg+xml", picture(10)),
        "/favicon.ico" => ("image/svg+xml", picture(1)),
        "/endless" => ("text/html", "<!doctype html><img src=/never>".to_owned()),
        _ => return None,
    })
}

const DOCUMENT: &str = "<!doctype html><title>A site</title>
<script>alert('nobody reads this')</script>
<link rel=stylesheet href=/style.css>
<script src=/work.js></script>
<script src=/late.js defer></script>
<img src=/first.svg><img src=/second.svg loading=eager>
";

const STYLE: &str = "@font-face { font-family: f; src: url(/font.woff2) }
p { font-family: f, sans-serif }
";

/// Works for 40 ms at once and after a timer, then asks for data and for what the data names.
const WORK: &str = "
function work() { const end = performance.now() + 40; while (performance.now() < end); }
work();
setTimeout(() => {
    work();
    fetch('/data.json').then(answer => answer.json()).then(data => {
        const image = new Image();
        image.src = data.picture;
        document.body.append(image);
    });
}, 150);
";
