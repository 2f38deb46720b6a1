//! What the options ask for.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, Method, Uri};
use quipu_lab::policy::Urgency;

use super::error::FetchError;
use crate::args::FetchOptions;
use crate::failure::Failure;

/// All that is fetched.
pub(super) struct Plan {
    pub(super) targets: Vec<Target>,
    pub(super) request: Arc<RequestPlan>,
    pub(super) parallel: u16,
}

/// One URL.
#[derive(Clone, Debug)]
pub(super) struct Target {
    /// As it was given.
    pub(super) url: String,
    pub(super) uri: Uri,
    /// `None` for standard output.
    pub(super) file: Option<PathBuf>,
    pub(super) priority: Option<HeaderValue>,
}

/// What all requests have.
#[derive(Debug)]
pub(super) struct RequestPlan {
    pub(super) method: Method,
    pub(super) headers: HeaderMap,
    pub(super) upload: Option<PathBuf>,
    pub(super) resume: bool,
    /// SHA-256 that the body has to have.
    pub(super) checksum: Option<[u8; 32]>,
    pub(super) fail: bool,
    /// Bytes of a file, at most.
    pub(super) max_filesize: Option<u64>,
    pub(super) head: bool,
    pub(super) max_redirects: u16,
}

impl Plan {
    /// # Errors
    /// If an option is wrong, or they do not go together.
    pub(super) fn of(options: &FetchOptions) -> Result<Plan, Failure> {
        let several = options.urls.len() > 1;
        let only_one = |option: &str, given: bool| match given && several {
            true => Err(Failure::Usage(format!(
                "{option}: for one URL, and there are {}",
                options.urls.len()
            ))),
            false => Ok(()),
        };
        only_one("--output", options.output.is_some())?;
        only_one("--checksum", options.checksum.is_some())?;
        only_one("--upload", options.upload.is_some())?;
        let to_files = options.output.is_some() || options.output_dir.is_some();
        if several && !to_files && !options.head {
            let reason = "several URLs need --output-dir, lest they run into each other";
            return Err(Failure::Usage(reason.to_owned()));
        }
        if options.json && !to_files && !options.head {
            let reason = "--json takes standard output; give --output or --output-dir";
            return Err(Failure::Usage(reason.to_owned()));
        }
        if options.resume && !to_files {
            return Err(Failure::Usage("--continue: needs --output or --output-dir".to_owned()));
        }
        let mut names = BTreeSet::new();
        let mut targets = Vec::with_capacity(options.urls.len());
        for (index, url) in options.urls.iter().enumerate() {
            let uri = parse(url).map_err(|error| {
                eprintln!("error: {url}: {error}");
                Failure::Told(error.code)
            })?;
            let file = match (&options.output, &options.output_dir) {
                (Some(file), _) => Some(file.clone()),
                (None, Some(folder)) => Some(folder.join(distinct(&file_name(&uri), &mut names))),
                (None, None) => None,
            };
            let priority = match options.priority.len() {
                0 => None,
                count => Some(priority(&options.priority[index.min(count - 1)])?),
            };
            targets.push(Target { url: url.clone(), uri, file, priority });
        }
        let given = options.request.as_deref().map(method).transpose()?;
        let method = match (given, &options.upload) {
            (Some(method), _) => method,
            (None, Some(_)) => Method::PUT,
            (None, None) if options.head => Method::HEAD,
            (None, None) => Method::GET,
        };
        let mut headers = HeaderMap::new();
        for line in &options.header {
            let (name, value) = header(line)?;
            headers.append(name, value);
        }
        let checksum = options.checksum.as_deref().map(checksum).transpose()?;
        let request = RequestPlan {
            method,
            headers,
            upload: options.upload.clone(),
            resume: options.resume,
            checksum,
            fail: options.fail,
            max_filesize: options.max_filesize,
            head: options.head,
            max_redirects: options.max_redirects,
        };
        Ok(Plan { targets, request: Arc::new(request), parallel: options.parallel })
    }
}

/// A URL that can be fetched.
pub(super) fn parse(url: &str) -> Result<Uri, FetchError> {
    let wrong = |reason: String| FetchError::new(FetchError::URL, reason);
    if !url.contains("://") {
        return Err(wrong(format!("no scheme; did you mean https://{url}?")));
    }
    // What follows it is for the reader alone.
    let without_fragment = url.split('#').next().unwrap_or(url);
    let uri: Uri = without_fragment
        .parse()
        .map_err(|error| wrong(format!("{error}; expected https://HOST[:PORT]/PATH")))?;
    match (uri.scheme_str(), uri.host()) {
        (Some("https"), Some(host)) if !host.is_empty() => Ok(uri),
        (Some("https"), _) => Err(wrong("no host; expected https://HOST[:PORT]/PATH".to_owned())),
        (Some(scheme), _) => Err(wrong(format!("scheme {scheme}; HTTP/3 needs https"))),
        (None, _) => Err(wrong("no scheme; expected https://HOST[:PORT]/PATH".to_owned())),
    }
}

/// What a file is called: the last part of the path.
fn file_name(uri: &Uri) -> String {
    let last = uri.path().rsplit('/').next().unwrap_or_default();
    // A name is no way out of the folder, and is not hidden.
    let name: String = last.chars().filter(|c| !matches!(c, '\\' | ':' | '\0')).collect();
    match name.trim_start_matches('.') {
        "" => "index.html".to_owned(),
        name => name.to_owned(),
    }
}

/// The name, with a number if it was there before.
fn distinct(name: &str, names: &mut BTreeSet<String>) -> String {
    let mut candidate = name.to_owned();
    let mut number = 1_u32;
    while !names.insert(candidate.clone()) {
        candidate = format!("{name}.{number}");
        number += 1;
    }
    candidate
}

fn priority(value: &str) -> Result<HeaderValue, Failure> {
    let expected = "expected u=0 to u=7, i, or both, such as u=1,i";
    let wrong = || Failure::Usage(format!("--priority {value:?}: {expected}"));
    let mut urgency = Urgency::default();
    for part in value.split(',').map(str::trim) {
        match part.split_once('=') {
            Some(("u", level)) => {
                let level = level.parse().ok().filter(|level| *level <= 7);
                urgency.level = level.ok_or_else(wrong)?;
            }
            Some(("i", "?0")) => urgency.incremental = false,
            Some(("i", "?1")) => urgency.incremental = true,
            None if part == "i" => urgency.incremental = true,
            _ => return Err(wrong()),
        }
    }
    let incremental = if urgency.incremental { ", i" } else { "" };
    HeaderValue::from_str(&format!("u={}{incremental}", urgency.level)).map_err(|_| wrong())
}

fn method(name: &str) -> Result<Method, Failure> {
    Method::from_bytes(name.as_bytes())
        .map_err(|_| Failure::Usage(format!("--request {name:?}: expected a method, such as POST")))
}

fn header(line: &str) -> Result<(HeaderName, HeaderValue), Failure> {
    let wrong =
        |why: &str| Failure::Usage(format!("--header {line:?}: {why}; expected NAME: VALUE"));
    let (name, value) = line.split_once(':').ok_or_else(|| wrong("no colon"))?;
    let name = name.trim().parse().map_err(|_| wrong("no name of a field"))?;
    let value = value.trim().parse().map_err(|_| wrong("no value of a field"))?;
    Ok((name, value))
}

fn checksum(text: &str) -> Result<[u8; 32], Failure> {
    let wrong = || {
        Failure::Usage(format!("--checksum {text:?}: expected sha256: and 64 hexadecimal digits"))
    };
    let hex = text.strip_prefix("sha256:").ok_or_else(wrong)?;
    let mut sum = [0; 32];
    if hex.len() != 64 || !hex.is_ascii() {
        return Err(wrong());
    }
    for (at, octet) in sum.iter_mut().enumerate() {
        *octet = u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).map_err(|_| wrong())?;
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_have_a_scheme_and_a_host() {
        for (url, told) in [
            ("example.org/a", "did you mean https://example.org/a?"),
            ("http://example.org/", "scheme http; HTTP/3 needs https"),
            ("https:///a", "expected https://HOST"),
            ("https://exa mple/", "expected https://HOST"),
        ] {
            let error = parse(url).expect_err(url);
            assert_eq!(error.code, FetchError::URL);
            assert!(error.reason.contains(told), "{url}: {error}");
        }
        let uri = parse("https://a.example:8443/b?c=d#e").expect("a URL");
        assert_eq!(uri.to_string(), "https://a.example:8443/b?c=d");
    }

    #[test]
    fn files_are_called_by_the_last_part_and_are_never_elsewhere() {
        for (url, name) in [
            ("https://a.example/b/c.txt?d=e", "c.txt"),
            ("https://a.example/b/", "index.html"),
            ("https://a.example", "index.html"),
            ("https://a.example/b/..", "index.html"),
            ("https://a.example/.bashrc", "bashrc"),
        ] {
            assert_eq!(file_name(&parse(url).expect(url)), name, "{url}");
        }
        let mut names = BTreeSet::new();
        let told: Vec<_> = ["a", "a", "a.1", "a"].map(|name| distinct(name, &mut names)).into();
        assert_eq!(told, ["a", "a.1", "a.1.1", "a.2"]);
    }

    #[test]
    fn checksums_and_priorities_are_read() {
        let hex = "00ff".repeat(16);
        assert_eq!(checksum(&format!("sha256:{hex}")).ok().map(|sum| sum[1]), Some(255));
        for wrong in ["", "md5:00", "sha256:00", &format!("sha256:{}", "g".repeat(64))] {
            assert!(checksum(wrong).is_err(), "{wrong}");
        }
        assert_eq!(
            priority("u=1,i").ok().as_ref().map(HeaderValue::as_bytes),
            Some(&b"u=1, i"[..])
        );
        assert_eq!(priority("i").ok().as_ref().map(HeaderValue::as_bytes), Some(&b"u=3, i"[..]));
        for wrong in ["", "u=8", "u", "x=1", "u=1;i"] {
            assert!(priority(wrong).is_err(), "{wrong}");
        }
    }
}
