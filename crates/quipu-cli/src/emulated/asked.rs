//! What the process of a client is asked, and what it answers: a line of JSON each.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use quipu_lab::plan::Cell;
use quipu_record::RunRecord;
use serde::{Deserialize, Serialize};

/// What it is asked, on its standard input.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Asked {
    /// To prepare a load.
    Load(Box<Job>),
    /// To make the load that it is [ready](Answer::Ready) for: links begin now.
    Begin,
}

/// What it answers, on its standard output.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    /// All is there that the load needs.
    Ready,
    /// The load is over.
    Over {
        /// What was measured, or why it failed.
        loaded: Result<Box<RunRecord>, String>,
        /// Why its connections could not be logged.
        unlogged: Option<String>,
    },
}

/// A load.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Job {
    /// The scenario of the plan, as TOML.
    pub(super) scenario: String,
    /// The run.
    pub(super) cell: Place,
    /// Where the server of its page is.
    pub(super) address: SocketAddr,
    /// SHA-256 of the server's certificate.
    pub(super) pin: String,
    /// The interfaces of the client, by path.
    pub(super) interfaces: Vec<String>,
    /// The address of the client and that of the server on each path.
    pub(super) ways: Vec<(IpAddr, SocketAddr)>,
    /// Where its connections are logged.
    pub(super) logs: Option<LogsOf>,
}

/// A [`Cell`].
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Place {
    page: usize,
    network: usize,
    policy: usize,
    run: u32,
}

impl From<Cell> for Place {
    fn from(Cell { page, network, policy, run }: Cell) -> Place {
        Place { page, network, policy, run }
    }
}

impl From<Place> for Cell {
    fn from(Place { page, network, policy, run }: Place) -> Cell {
        Cell { page, network, policy, run }
    }
}

/// A folder of logs.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct LogsOf {
    pub(super) folder: PathBuf,
    /// Their form, as options name it.
    pub(super) form: String,
    /// That of every file.
    pub(super) title: String,
}
