//! The command line that all programs have:
//!
//! ```text
//! PROGRAM server --case CASE --listen ADDRESS --cert FILE --key FILE --www FOLDER
//! PROGRAM client --case CASE --ca FILE --downloads FOLDER URL...
//! ```

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;

use crate::Failure;

/// Which end a program is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It fetches files.
    Client,
    /// It serves files.
    Server,
}

macro_rules! cases {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// What is tested, by the names of the interop runner where it has one.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Case {
            $($(#[$doc])* $variant,)*
        }

        impl Case {
            /// The name on the command line.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Case::$variant => $name,)*
                }
            }
        }

        impl FromStr for Case {
            type Err = UnknownCase;

            fn from_str(text: &str) -> Result<Self, UnknownCase> {
                match text {
                    $($name => Ok(Case::$variant),)*
                    _ => Err(UnknownCase(text.to_owned())),
                }
            }
        }
    };
}

cases! {
    /// One connection, one small file.
    Handshake = "handshake",
    /// One connection, all files at once.
    Transfer = "transfer",
    /// The same with more files than streams are allowed at once.
    Multiplexing = "multiplexing",
    /// A connection for each file.
    Multiconnect = "multiconnect",
    /// The server has the client prove its address by a Retry.
    Retry = "retry",
    /// The second connection resumes the session of the first.
    Resumption = "resumption",
    /// The same, and what it asks for goes in 0-RTT.
    ZeroRtt = "zerortt",
    /// The client begins in a version that the server does not speak.
    VersionNegotiation = "versionnegotiation",
    /// A first flight of version 1, and version 2 from there on.
    V2 = "v2",
    /// The client begins the next key phase.
    KeyUpdate = "keyupdate",
    /// ChaCha20-Poly1305 is agreed on.
    ChaCha20 = "chacha20",
    /// The server loses its state and resets the connection.
    StatelessReset = "statelessreset",
    /// The client moves to another address.
    Migration = "connectionmigration",
    /// ECN marks are sent, and reported by the other end.
    Ecn = "ecn",
    /// Two paths, both used.
    Multipath = "multipath",
    /// Two paths, one abandoned by the client while both carry data.
    MultipathAbandon = "multipathabandon",
    /// HTTP/3: all files at once, with priorities.
    Http3Many = "h3-100",
    /// HTTP/3: large fields in requests and responses.
    Http3Headers = "h3-headers",
    /// HTTP/3: a large request body.
    Http3Upload = "h3-upload",
    /// HTTP/3: trailers in both directions.
    Http3Trailers = "h3-trailers",
    /// HTTP/3: the client cancels the first request in the middle of its response.
    Http3Cancel = "h3-cancel",
    /// HTTP/3: the server sends GOAWAY while requests are in progress.
    Http3GoAway = "h3-goaway",
    /// HTTP/3: the second connection sends its requests in 0-RTT.
    Http3ZeroRtt = "h3-0rtt",
}

impl Case {
    /// True if each file has a connection of its own.
    pub const fn connects_each(self) -> bool {
        matches!(self, Case::Multiconnect)
    }

    /// True if the first file is fetched by a connection before that of the others.
    pub const fn connects_twice(self) -> bool {
        matches!(self, Case::Resumption) || self.is_early()
    }

    /// True if the second connection sends requests in 0-RTT.
    pub const fn is_early(self) -> bool {
        matches!(self, Case::ZeroRtt | Case::Http3ZeroRtt)
    }

    /// True if the protocol is HTTP/3 instead of hq-interop.
    pub const fn is_http3(self) -> bool {
        matches!(
            self,
            Case::Http3Many
                | Case::Http3Headers
                | Case::Http3Upload
                | Case::Http3Trailers
                | Case::Http3Cancel
                | Case::Http3GoAway
                | Case::Http3ZeroRtt
        )
    }

    /// The application protocol's name in TLS.
    pub const fn alpn(self) -> &'static [u8] {
        if self.is_http3() { b"h3" } else { b"hq-interop" }
    }

    /// True if two paths are asked for.
    pub const fn has_paths(self) -> bool {
        matches!(self, Case::Multipath | Case::MultipathAbandon)
    }
}

/// A case that a program does not do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownCase(pub String);

impl std::fmt::Display for UnknownCase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "test case {:?} is not supported", self.0)
    }
}

impl std::error::Error for UnknownCase {}

/// A file to fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// Name of the host, as the certificate has it.
    pub host: String,
    /// UDP port.
    pub port: u16,
    /// What is asked for, with the slash that it begins with.
    pub path: String,
}

impl Url {
    /// The first address of the host.
    ///
    /// # Errors
    /// If its name has none.
    pub fn address(&self) -> Result<SocketAddr, Failure> {
        let mut found = (self.host.as_str(), self.port).to_socket_addrs()?;
        // Peers of these tests listen on IPv4 where a name has both.
        let all: Vec<SocketAddr> = found.by_ref().collect();
        let first = all.iter().find(|address| address.is_ipv4()).or(all.first());
        first.copied().ok_or_else(|| format!("host {:?} has no address", self.host).into())
    }
}

impl std::fmt::Display for Url {
    /// Its host is written as it was read: names and IPv4 addresses.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "https://{}:{}{}", self.host, self.port, self.path)
    }
}

impl FromStr for Url {
    type Err = Failure;

    /// `https://HOST:PORT/PATH`; the port is 443 if there is none.
    fn from_str(text: &str) -> Result<Self, Failure> {
        let wrong = || format!("URL {text:?}: expected https://HOST:PORT/PATH");
        let rest = text.strip_prefix("https://").ok_or_else(wrong)?;
        let (authority, path) = rest.split_once('/').ok_or_else(wrong)?;
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, port.parse()?),
            _ => (authority, 443),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Url { host, port, path: format!("/{path}") })
    }
}

/// What a program was asked to do.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which end.
    pub role: Role,
    /// What is tested.
    pub case: Case,
    /// Where a server listens.
    pub listen: SocketAddr,
    /// The server's certificates in PEM, end entity first.
    pub cert: PathBuf,
    /// Its key in PEM.
    pub key: PathBuf,
    /// What it serves.
    pub www: PathBuf,
    /// The certificates that a client trusts, in PEM.
    pub ca: PathBuf,
    /// Where a client puts what it fetches.
    pub downloads: PathBuf,
    /// What it fetches, in this order.
    pub urls: Vec<Url>,
    /// Addresses of further paths, or the one to move to, of a client.
    pub via: Vec<std::net::IpAddr>,
    /// The server at its further addresses, for peers that open paths by the server's.
    pub also: Vec<SocketAddr>,
    /// The port at which a server would rather be reached, where it listens, too; 0: one that is free.
    pub preferred: Option<u16>,
}

impl Options {
    /// Reads the command line of this process, a program for hq-interop.
    ///
    /// # Errors
    /// [`UnknownCase`], or a text that says what is wrong.
    pub fn read() -> Result<Self, Failure> {
        Self::parse(std::env::args().skip(1))?.checked(false)
    }

    /// Reads the command line of this process, a program for HTTP/3.
    ///
    /// # Errors
    /// [`UnknownCase`], or a text that says what is wrong.
    pub fn read_http3() -> Result<Self, Failure> {
        Self::parse(std::env::args().skip(1))?.checked(true)
    }

    fn checked(self, is_http3: bool) -> Result<Self, Failure> {
        match self.case.is_http3() == is_http3 {
            true => Ok(self),
            false => Err(UnknownCase(self.case.name().to_owned()).into()),
        }
    }

    fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let role = match args.next().as_deref() {
            Some("client") => Role::Client,
            Some("server") => Role::Server,
            other => {
                return Err(format!("first argument {other:?}: expected client or server").into());
            }
        };
        let mut options = Options {
            role,
            case: Case::Transfer,
            listen: "[::]:443".parse()?,
            cert: "/certs/cert.pem".into(),
            key: "/certs/priv.key".into(),
            www: "/www".into(),
            ca: "/certs/ca.pem".into(),
            downloads: "/downloads".into(),
            urls: Vec::new(),
            via: Vec::new(),
            also: Vec::new(),
            preferred: None,
        };
        while let Some(name) = args.next() {
            if !name.starts_with("--") {
                options.urls.push(name.parse()?);
                continue;
            }
            let value = args.next().ok_or_else(|| format!("{name}: expected a value"))?;
            match name.as_str() {
                "--case" => options.case = value.parse()?,
                "--listen" => options.listen = value.parse()?,
                "--cert" => options.cert = value.into(),
                "--key" => options.key = value.into(),
                "--www" => options.www = value.into(),
                "--ca" => options.ca = value.into(),
                "--downloads" => options.downloads = value.into(),
                "--via" => options.via.push(value.parse()?),
                "--also" => options.also.push(value.parse()?),
                "--preferred" => options.preferred = Some(value.parse()?),
                _ => return Err(format!("there is no option {name}").into()),
            }
        }
        if role == Role::Client && options.urls.is_empty() {
            return Err("a client needs at least one URL".into());
        }
        Ok(options)
    }

    /// What a client fetches, by connection.
    pub fn connections(&self) -> Vec<&[Url]> {
        match self.urls.as_slice() {
            all if self.case.connects_each() => all.chunks(1).collect(),
            [first, rest @ ..] if self.case.connects_twice() && !rest.is_empty() => {
                vec![std::slice::from_ref(first), rest]
            }
            all => vec![all],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Options, Failure> {
        Options::parse(text.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn an_unknown_case_is_told_apart_from_other_mistakes() {
        assert!(parse("client --case nonsense https://a/b").unwrap_err().is::<UnknownCase>());
        assert!(!parse("client --case retry").unwrap_err().is::<UnknownCase>());
        assert!(!parse("clients").unwrap_err().is::<UnknownCase>());
    }

    #[test]
    fn a_program_takes_the_cases_of_its_protocol_alone() {
        let case = |name: &str| parse(&format!("client --case {name} https://a/b")).unwrap();
        assert!(case("h3-100").checked(true).is_ok());
        assert!(case("h3-100").checked(false).unwrap_err().is::<UnknownCase>());
        assert!(case("retry").checked(true).unwrap_err().is::<UnknownCase>());
    }

    #[test]
    fn files_are_spread_over_connections_as_the_case_wants() {
        let sizes = |case: &str| -> Vec<usize> {
            let options =
                parse(&format!("client --case {case} https://a/1 https://a/2 https://a/3"));
            options.unwrap().connections().iter().map(|urls| urls.len()).collect()
        };
        assert_eq!(sizes("transfer"), [3]);
        assert_eq!(sizes("multiconnect"), [1, 1, 1]);
        assert_eq!(sizes("zerortt"), [1, 2]);
        assert_eq!(sizes("h3-0rtt"), [1, 2]);
    }

    #[test]
    fn urls_have_a_host_a_port_and_a_path() {
        let url: Url = "https://server4:443/a/b".parse().unwrap();
        assert_eq!((url.host.as_str(), url.port, url.path.as_str()), ("server4", 443, "/a/b"));
        let url: Url = "https://[::1]/x".parse().unwrap();
        assert_eq!((url.host.as_str(), url.port), ("::1", 443));
        assert!("http://a/b".parse::<Url>().is_err());
    }
}
