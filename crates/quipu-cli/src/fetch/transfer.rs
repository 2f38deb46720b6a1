//! Fetches one URL.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use http::header::{CONTENT_LENGTH, HeaderValue, IF_RANGE, LOCATION, RANGE};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri, Version};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use quipu_lab::policy::Urgency;
use quipu_tokio::http3::{Http3Error, Http3Exchange, PriorityField};

use super::connections::{Connections, Opened};
use super::error::FetchError;
use super::output::{Output, Part};
use super::plan::{RequestPlan, Target, parse};
use super::resume::{number, resumed, validator};

/// Octets that are read or sent at a time, at most; our choice.
const CHUNK: usize = 1 << 16;

/// What it takes to fetch one URL.
pub(super) struct Transfer {
    pub(super) target: Target,
    pub(super) request: Arc<RequestPlan>,
    pub(super) connections: Arc<Connections>,
    pub(super) bars: MultiProgress,
    /// When everything began.
    pub(super) begun: Instant,
}

/// What was fetched. Times count from the beginning.
#[derive(Clone, Debug)]
pub(super) struct Fetched {
    pub(super) status: StatusCode,
    /// After redirects.
    pub(super) uri: Uri,
    pub(super) redirects: u16,
    pub(super) stream: u64,
    /// As the request states it, where the response says nothing else.
    pub(super) urgency: Urgency,
    /// Bytes of the body that came now, and before.
    pub(super) bytes: u64,
    pub(super) resumed_at: u64,
    pub(super) sha256: Option<String>,
    pub(super) times: Times,
    /// The head, if that is all that was asked for.
    pub(super) head: Option<String>,
}

/// When something happened, in seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) resolved: f64,
    pub(super) connected: f64,
    pub(super) sent: f64,
    pub(super) first_byte: f64,
    pub(super) complete: f64,
}

impl Transfer {
    /// Fetches it, and follows redirects.
    pub(super) async fn run(self) -> Result<Fetched, FetchError> {
        let mut uri = self.target.uri.clone();
        let mut method = self.request.method.clone();
        let mut upload = self.request.upload.clone();
        let bar = self.bars.add(bar(&self.target.url));
        for redirects in 0..=self.request.max_redirects {
            let opened = self.connections.to(&uri).await?;
            let part = self.part(&method);
            let request = self.head_of(&uri, &method, upload.as_deref(), part.as_ref())?;
            let stated = stated_priority(request.headers());
            let sent = self.begun.elapsed().as_secs_f64();
            let exchange = opened.client.request(request, upload.is_some()).await;
            let mut exchange = exchange.map_err(|error| FetchError::exchange(&error, 0))?;
            if let Some(file) = &upload {
                send(&mut exchange, file).await?;
            }
            let response = exchange.response().await;
            let response = response.map_err(|error| FetchError::exchange(&error, 0))?;
            if let Some(next) = redirect(&uri, &response)? {
                let status = response.status();
                let becomes_get = status == StatusCode::SEE_OTHER
                    || matches!(status.as_u16(), 301 | 302) && method == Method::POST;
                if becomes_get && method != Method::HEAD {
                    (method, upload) = (Method::GET, None);
                }
                uri = next;
                continue;
            }
            let asked = Asked { uri, part, stated, opened, sent, redirects };
            return self.receive(asked, exchange, response, &bar).await;
        }
        let most = self.request.max_redirects;
        let reason = format!("more than {most} redirects; --max-redirects allows more");
        Err(FetchError::new(FetchError::REDIRECTS, reason))
    }

    /// What an earlier fetch kept, if it is to be gone on with.
    fn part(&self, method: &Method) -> Option<Part> {
        let may = self.request.resume && *method == Method::GET;
        self.target.file.as_deref().filter(|_| may).and_then(Part::of)
    }

    /// No file is larger than the user allows.
    fn check_size(&self, bytes: u64) -> Result<(), FetchError> {
        match self.request.max_filesize {
            Some(most) if bytes > most => {
                let reason =
                    format!("the file has {bytes} bytes or more; --max-filesize allows {most}");
                Err(FetchError::new(FetchError::SIZE, reason))
            }
            _ => Ok(()),
        }
    }

    fn head_of(
        &self,
        uri: &Uri,
        method: &Method,
        upload: Option<&Path>,
        part: Option<&Part>,
    ) -> Result<Request<()>, FetchError> {
        let mut request = Request::new(());
        *request.uri_mut() = uri.clone();
        *request.method_mut() = method.clone();
        let headers = request.headers_mut();
        headers.insert(
            "user-agent",
            HeaderValue::from_static(concat!("quipu/", env!("CARGO_PKG_VERSION"))),
        );
        headers.insert("accept", HeaderValue::from_static("*/*"));
        if let Some(priority) = &self.target.priority {
            headers.insert("priority", priority.clone());
        }
        if let Some(part) = part
            && let Ok(validator) = HeaderValue::from_str(&part.validator)
        {
            let range = format!("bytes={}-", part.bytes);
            headers.insert(RANGE, HeaderValue::from_str(&range).unwrap_or(validator.clone()));
            headers.insert(IF_RANGE, validator);
        }
        if let Some(file) = upload {
            // Others, such as pipes, end when they do.
            if file.as_os_str() != "-" {
                let there = std::fs::metadata(file).map_err(|error| cannot_read(file, &error))?;
                if there.is_file() {
                    headers.insert(CONTENT_LENGTH, HeaderValue::from(there.len()));
                }
            }
        }
        // They may say who the user is, which is no matter of another server.
        if uri.authority() == self.target.uri.authority() {
            add_given(headers, &self.request.headers);
        }
        Ok(request)
    }

    async fn receive(
        &self,
        asked: Asked,
        mut exchange: Http3Exchange,
        response: Response<()>,
        bar: &ProgressBar,
    ) -> Result<Fetched, FetchError> {
        let Asked { uri, part, stated, opened, sent, redirects } = asked;
        let first_byte = self.begun.elapsed().as_secs_f64();
        let status = response.status();
        let rest = resumed(&response, part.as_ref());
        let is_whole = rest == Ok(Some(0));
        if self.request.fail && status.as_u16() >= 400 && !is_whole {
            return Err(FetchError::new(
                FetchError::STATUS,
                format!("the server answers {status}"),
            ));
        }
        let stream = exchange.stream().0;
        let file = self.target.file.as_deref();
        let rest = rest?;
        let mut output = None;
        if !self.request.head {
            // An error page is no part of the file.
            let keeps = self.request.resume && status.is_success();
            let validator = validator(&response).filter(|_| keeps);
            let part = part.as_ref().filter(|_| rest.is_some());
            let kept = part.map(|part| part.validator.as_str()).or(validator);
            let length = rest.or(response.headers().get(CONTENT_LENGTH).and_then(number));
            let whole = length.map(|length| length.saturating_add(part.map_or(0, |it| it.bytes)));
            if let Some(whole) = whole {
                self.check_size(whole)?;
                bar.set_length(whole);
            }
            let opened = Output::open(file, kept, part.is_some())?;
            bar.set_position(opened.bytes);
            output = Some(opened);
        }
        let resumed_at = output.as_ref().map_or(0, |output| output.bytes);
        let mut bytes = 0;
        loop {
            // What follows a whole file says that in words.
            let next = if is_whole { Ok(None) } else { exchange.data(CHUNK).await };
            let Some(octets) = next.map_err(|error| FetchError::exchange(&error, bytes))? else {
                break;
            };
            bytes += octets.len() as u64;
            bar.inc(octets.len() as u64);
            if let Some(mut open) = output.take() {
                let fits = check_rest(bytes, rest)
                    .and_then(|()| self.check_size(open.bytes + octets.len() as u64));
                if let Err(error) = fits {
                    open.discard();
                    return Err(error);
                }
                open.write(&octets)?;
                output = Some(open);
            }
        }
        if let Some(rest) = rest.filter(|rest| bytes < *rest) {
            let reason = format!("the server ends after {bytes} bytes of a range of {rest}");
            return Err(FetchError::new(FetchError::PARTIAL, reason));
        }
        let sha256 =
            output.map(|output| output.finish(self.request.checksum.as_ref())).transpose()?;
        bar.finish_and_clear();
        let since = |at: Instant| at.saturating_duration_since(self.begun).as_secs_f64();
        Ok(Fetched {
            status,
            uri,
            redirects,
            stream,
            urgency: stated.merged(stated_priority(response.headers())).resolved(),
            bytes,
            resumed_at,
            sha256,
            times: Times {
                resolved: since(opened.resolved),
                connected: since(opened.connected),
                sent,
                first_byte,
                complete: self.begun.elapsed().as_secs_f64(),
            },
            head: self.request.head.then(|| text_of(&response)),
        })
    }
}

/// A request that was sent.
struct Asked {
    uri: Uri,
    /// What an earlier fetch kept, and the request goes on with.
    part: Option<Part>,
    stated: PriorityField,
    opened: Opened,
    /// Seconds from the beginning.
    sent: f64,
    redirects: u16,
}

/// No more comes than the range has.
fn check_rest(bytes: u64, rest: Option<u64>) -> Result<(), FetchError> {
    match rest {
        Some(rest) if bytes > rest => {
            let reason = format!("the server sends {bytes} bytes and more of a range of {rest}");
            Err(FetchError::new(FetchError::RANGE, reason))
        }
        _ => Ok(()),
    }
}

/// What a message states of its urgency.
fn stated_priority(headers: &HeaderMap) -> PriorityField {
    // Several fields are one, joined by commas.
    let lines: Vec<&[u8]> = headers.get_all("priority").iter().map(HeaderValue::as_bytes).collect();
    // One that is malformed states nothing.
    PriorityField::parse(&lines.join(&b", "[..])).unwrap_or_default()
}

/// Where the response says to go instead.
fn redirect(uri: &Uri, response: &Response<()>) -> Result<Option<Uri>, FetchError> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(location) = response.headers().get(LOCATION) else { return Ok(None) };
    let wrong = || {
        let reason = format!("redirected to {location:?}, which is no URL of https");
        FetchError::new(FetchError::URL, reason)
    };
    let text = location.to_str().map_err(|_| wrong())?;
    parse(&resolve(uri, text)).map(Some).map_err(|_| wrong())
}

/// Adds what the user gave, which takes the place of what is there.
fn add_given(headers: &mut HeaderMap, given: &HeaderMap) {
    for name in given.keys() {
        headers.remove(name);
    }
    for (name, value) in given {
        headers.append(name.clone(), value.clone());
    }
}

/// The URL that a reference names, seen from `uri`.
/// <https://www.rfc-editor.org/rfc/rfc3986#section-5.2>
fn resolve(uri: &Uri, reference: &str) -> String {
    let authority = uri.authority().map(ToString::to_string).unwrap_or_default();
    let before_path = reference.split(['/', '?', '#']).next().unwrap_or_default();
    if before_path.contains(':') {
        return reference.to_owned();
    }
    if reference.starts_with("//") {
        return format!("https:{reference}");
    }
    let end = reference.find(['?', '#']).unwrap_or(reference.len());
    let (path, rest) = reference.split_at(end);
    let path = match (path.is_empty(), path.starts_with('/')) {
        (true, _) => uri.path().to_owned(),
        (false, true) => without_dots(path),
        (false, false) => {
            let folder = uri.path().rsplit_once('/').map_or("", |(folder, _)| folder);
            without_dots(&format!("{folder}/{path}"))
        }
    };
    format!("https://{authority}{path}{rest}")
}

/// A path without `.` and `..`: <https://www.rfc-editor.org/rfc/rfc3986#section-5.2.4>.
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for segment in path.split('/').skip(1) {
        match segment {
            "." => {}
            ".." => drop(kept.pop()),
            segment => kept.push(segment),
        }
    }
    let ends_in_folder = matches!(path.rsplit('/').next(), Some("." | ".."));
    let end = if ends_in_folder && !kept.is_empty() { "/" } else { "" };
    format!("/{}{end}", kept.join("/"))
}

/// Sends a file as the body of a request.
async fn send(exchange: &mut Http3Exchange, file: &Path) -> Result<(), FetchError> {
    let mut opened: Box<dyn Read + Send> = if file.as_os_str() == "-" {
        Box::new(std::io::stdin())
    } else {
        Box::new(File::open(file).map_err(|error| cannot_read(file, &error))?)
    };
    let mut buffer = vec![0; CHUNK];
    loop {
        let read = opened.read(&mut buffer).map_err(|error| cannot_read(file, &error))?;
        if read == 0 {
            break;
        }
        let octets = buffer[..read].to_vec().into();
        match exchange.send_data(octets).await {
            Ok(()) => {}
            // It has its answer ready.
            Err(Http3Error::Stopped(_)) => return Ok(()),
            Err(error) => return Err(FetchError::exchange(&error, 0)),
        }
    }
    match exchange.finish(None) {
        Ok(()) | Err(Http3Error::Stopped(_)) => Ok(()),
        Err(error) => Err(FetchError::exchange(&error, 0)),
    }
}

fn cannot_read(file: &Path, error: &std::io::Error) -> FetchError {
    FetchError::new(FetchError::READ, format!("cannot read {}: {error}", file.display()))
}

/// A head as text.
fn text_of(response: &Response<()>) -> String {
    let version = if response.version() == Version::HTTP_2 { 2 } else { 3 };
    let mut text = format!("HTTP/{version} {}\n", response.status());
    for (name, value) in response.headers() {
        text.push_str(&format!("{name}: {}\n", String::from_utf8_lossy(value.as_bytes())));
    }
    text
}

/// A bar of one object.
fn bar(url: &str) -> ProgressBar {
    let bar = ProgressBar::new(0).with_message(url.to_owned());
    let template = "{bar:20} {bytes:>10} of {total_bytes:10} {bytes_per_sec:>12} {wide_msg}";
    // The template is constant and a test reads it; the default bar would do as well.
    bar.set_style(
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
    );
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_are_resolved_against_the_url() {
        let at = parse("https://a.example:8443/b/c?d").expect("a URL");
        for (location, expected) in [
            ("https://e.example/f", "https://e.example/f"),
            ("//e.example/f", "https://e.example/f"),
            ("/f", "https://a.example:8443/f"),
            ("f?g", "https://a.example:8443/b/f?g"),
            ("../f/./g/../h", "https://a.example:8443/f/h"),
            ("..", "https://a.example:8443/"),
            ("/a/b/..", "https://a.example:8443/a/"),
            ("?e", "https://a.example:8443/b/c?e"),
            ("/in?to=https://e.example/", "https://a.example:8443/in?to=https://e.example/"),
        ] {
            let mut response = Response::new(());
            *response.status_mut() = StatusCode::FOUND;
            response.headers_mut().insert(LOCATION, HeaderValue::from_static(location));
            let next = redirect(&at, &response).expect(location).map(|uri| uri.to_string());
            assert_eq!(next.as_deref(), Some(expected));
        }
        let mut response = Response::new(());
        *response.status_mut() = StatusCode::FOUND;
        assert_eq!(redirect(&at, &response), Ok(None));
        response.headers_mut().insert(LOCATION, HeaderValue::from_static("http://a.example/"));
        assert_eq!(redirect(&at, &response).expect_err("no https").code, FetchError::URL);
    }

    #[test]
    fn given_fields_take_the_place_of_ours_and_may_be_repeated() {
        let mut headers = HeaderMap::new();
        headers.insert("accept", HeaderValue::from_static("*/*"));
        let mut given = HeaderMap::new();
        for value in ["a", "b"] {
            given.append("accept", HeaderValue::from_static(value));
        }
        add_given(&mut headers, &given);
        let values: Vec<_> = headers.get_all("accept").iter().collect();
        assert_eq!(values, ["a", "b"]);
    }
}
