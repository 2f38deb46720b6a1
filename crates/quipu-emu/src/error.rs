//! What can go wrong with an emulation.

use std::io;

use crate::device::DeviceKind;
use crate::links::MakeError;

/// A topology cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TopologyError {
    /// Too many of something.
    #[error("there are {found} {what}, expected at most {most}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many there would be.
        found: usize,
        /// How many there may be.
        most: usize,
    },
    /// A path goes from a client to a server.
    #[error("path {path} connects {client} with {server}, expected a client and a server")]
    WrongEnds {
        /// Index of the path.
        path: u8,
        /// Name of the host at the client's end.
        client: String,
        /// Name of the host at the server's end.
        server: String,
    },
    /// The two hosts are connected by this path already.
    #[error("path {path} from {client} to {server} exists, expected each once")]
    DuplicatePath {
        /// Index of the path.
        path: u8,
        /// Name of the client.
        client: String,
        /// Name of the server.
        server: String,
    },
    /// A direction has no link.
    #[error("path {path} has no link {direction}, expected one at least")]
    NoLink {
        /// Index of the path.
        path: u8,
        /// `up` or `down`.
        direction: &'static str,
    },
    /// A path leads over a link that is not there.
    #[error("a path leads over link {link}, expected one of the {links} links")]
    UnknownLink {
        /// Index of the link.
        link: usize,
        /// Number of links.
        links: usize,
    },
    /// The MTU of interfaces is out of its range.
    #[error("mtu is {mtu}, expected {least} to {most}: IPv6 needs that")]
    Mtu {
        /// The value found, in bytes.
        mtu: u16,
        /// Least value.
        least: u16,
        /// Greatest value.
        most: u16,
    },
}

/// An emulation cannot start, or go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmulationError {
    /// Hosts and links do not fit together.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// The links cannot be made.
    #[error("cannot make the links: {0}")]
    Links(MakeError),
    /// This user may not make network namespaces.
    #[error(
        "cannot make a network namespace: {source}; it takes root, or a system that lets ordinary users make user \
         namespaces"
    )]
    NoNamespaces {
        /// What the system says.
        source: io::Error,
    },
    /// This user may open no TUN device, which was asked for.
    #[error("cannot open a {} device: {source}", .kind.name())]
    NoDevice {
        /// Which kind of device.
        kind: DeviceKind,
        /// What the system says.
        source: io::Error,
    },
    /// A program of the system is missing.
    #[error("cannot run `{program}`: {source}; it is part of {package}")]
    NoProgram {
        /// Name of the program.
        program: &'static str,
        /// The package that it comes with.
        package: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// `ip` refuses what it was told.
    #[error("`ip -batch` in {host} failed: {message}")]
    Ip {
        /// Name of the host.
        host: String,
        /// What it wrote.
        message: String,
    },
    /// A setting of the kernel cannot be changed.
    #[error("cannot set {setting} to {value} in {host}: {source}")]
    Setting {
        /// Name of the host.
        host: String,
        /// Name of the setting, as in `/proc/sys`.
        setting: &'static str,
        /// The value that it is to have.
        value: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// Links are renewed by as many.
    #[error("{found} links are to replace {expected}, expected as many")]
    LinkCount {
        /// How many there would be.
        found: usize,
        /// How many there are.
        expected: usize,
    },
    /// Something else that the system refuses.
    #[error("cannot {doing}: {source}")]
    System {
        /// What was tried.
        doing: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// The thread that carries packets has ended.
    #[error("the thread that carries packets has ended; it ran into an error or a panic")]
    Ended,
}

impl EmulationError {
    /// For `map_err`: a call of the system that failed.
    pub(crate) fn system<E: Into<io::Error>>(doing: &'static str) -> impl FnOnce(E) -> Self {
        move |source| EmulationError::System { doing, source: source.into() }
    }
}
