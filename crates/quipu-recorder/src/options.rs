//! What is recorded, and how.

use std::path::PathBuf;

use quipu_base::Duration;

use crate::Network;
use crate::values::OptionError;

/// What to record. Change the fields of [`Options::new`].
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The page, which [`Options::new`] has checked.
    pub url: String,
    /// The networks that it is loaded over, one after the other; the machine's by default.
    pub networks: Vec<Network>,
    /// Loads over each network; 1 by default.
    pub repeat: u32,
    /// The browser; what is found by the usual names by default.
    pub chromium: Option<PathBuf>,
    /// The longest that a load may take; 60 s by default. What was not complete then is marked so.
    pub timeout: Duration,
    /// How long nothing must be asked for and arrive after the load event until the load counts as ended; 2 s by
    /// default. A page that is never quiet for so long ends after five times that.
    pub settle: Duration,
    /// Width and height of the page in pixels of style sheets; 1280 by 900 by default.
    pub viewport: (u32, u32),
    /// Hosts whose name is not looked up, each with the address that takes its place; none by default. A `*` at the
    /// begin of a host stands for any text.
    pub hosts: Vec<(String, String)>,
    /// Accept certificates that no authority has signed; false by default.
    pub insecure: bool,
    /// A program that sets up the network in place of Chromium's throttle; none by default. It is called before each load
    /// with the rate of responses, that of requests and the round trip, as `2mbit 2mbit 40ms`.
    pub shaper: Option<PathBuf>,
    /// Take a trace, and who called functions, which says what a page is made of; true by default. It slows the browser
    /// down.
    pub traced: bool,
    /// More arguments of the browser, such as `--enable-quic`; none by default.
    pub arguments: Vec<String>,
    /// The program, with its arguments, that is called with the browser and its arguments, as `mptcpize run`; none by
    /// default.
    pub launcher: Vec<String>,
}

impl Options {
    /// Loads `url` once over the network of the machine.
    ///
    /// # Errors
    /// If `url` is no URL that a browser loads over HTTP or from a file.
    pub fn new(url: &str) -> Result<Options, OptionError> {
        check_url(url)?;
        Ok(Options {
            url: url.to_owned(),
            networks: vec![Network::default()],
            repeat: 1,
            chromium: None,
            timeout: Duration::from_secs(60),
            settle: Duration::from_secs(2),
            viewport: (1280, 900),
            hosts: Vec::new(),
            insecure: false,
            shaper: None,
            traced: true,
            arguments: Vec::new(),
            launcher: Vec::new(),
        })
    }

    /// The file that a recording goes to without another wish: the name of the host, or of the file, with `.har`.
    pub fn default_file(&self) -> PathBuf {
        let (_, rest) = self.url.split_once("://").unwrap_or_default();
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let host = host.rsplit('@').next().unwrap_or_default();
        let name = host.split(':').next().unwrap_or_default();
        let usual = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '.' | '-' | '_');
        let name: String = name.chars().filter(|&sign| usual(sign)).take(100).collect();
        PathBuf::from(if name.trim_matches('.').is_empty() {
            "page.har".to_owned()
        } else {
            format!("{name}.har")
        })
    }
}

fn check_url(url: &str) -> Result<(), OptionError> {
    let fault = |expected| OptionError { option: "URL", value: url.to_owned(), expected };
    if url.is_empty() || url.chars().any(|sign| sign.is_whitespace() || sign.is_control()) {
        return Err(fault("a URL without blanks, such as https://example.org/"));
    }
    let Some((scheme, rest)) = url.split_once("://") else {
        return Err(fault("a URL with its scheme, such as https://example.org/"));
    };
    match scheme.to_ascii_lowercase().as_str() {
        "http" | "https" if rest.starts_with(['/', '?', '#', ':']) || rest.is_empty() => {
            Err(fault("a host after the scheme, such as https://example.org/"))
        }
        "http" | "https" => Ok(()),
        "file" => Err(fault(
            "a URL of a server, since files come over no network; serve their folder, \
             as with `python3 -m http.server`",
        )),
        _ => Err(fault("a URL that begins with http:// or https://")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_checked_before_a_browser_is_started() {
        for url in ["https://a.test", "http://127.0.0.1:8080/x?y#z"] {
            assert!(Options::new(url).is_ok(), "{url}");
        }
        for (url, expected) in [
            ("", "a URL without blanks"),
            ("https://a b", "a URL without blanks"),
            ("example.org", "a URL with its scheme"),
            ("https:///x", "a host after the scheme"),
            ("file:///a/b.html", "a URL of a server"),
            ("ftp://a.test/", "a URL that begins with"),
        ] {
            let error = Options::new(url).unwrap_err().to_string();
            assert!(error.starts_with("URL: ") && error.contains(expected), "{error}");
        }
    }

    #[test]
    fn the_file_is_called_after_the_host() {
        let name = |url: &str| Options::new(url).unwrap().default_file().display().to_string();
        assert_eq!(name("https://www.example.org/a/b.html"), "www.example.org.har");
        assert_eq!(name("http://me@127.0.0.1:8000"), "127.0.0.1.har");
        assert_eq!(name("http://a.test?x=/y"), "a.test.har");
        assert_eq!(name("https://[::1]/"), "page.har");
        assert_eq!(name("https://../"), "page.har");
    }
}
