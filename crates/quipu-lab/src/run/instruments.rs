//! What looks on while runs go, and what every part of a run is given.

use quipu_base::Role;
use quipu_quic::recorder::RecorderFactory;

use super::arrivals::{Arrivals, LineArrivals};
use super::logs::Logs;
use super::meter::Meter;
use super::pairs::PageLine;
use super::topology::addresses;
use crate::plan::{Cell, Plan, RunNetwork};
use crate::policies::PolicyRow;
use quipu_record::End;
use quipu_scenario::{HttpVersion, Scenario};

/// What looks on while runs go: no part of their plan, as no result depends on it. By default nothing does.
#[derive(Clone, Debug, Default)]
pub struct Instruments {
    /// Where the connections of runs are logged.
    pub logs: Option<Logs>,
    /// What takes the time of the policies that send pages.
    pub meter: Option<Meter>,
    /// Takes note of what comes on which path, in one run.
    pub(crate) arrivals: Option<Arrivals>,
}

impl Instruments {
    /// The same with logs, if there are to be any.
    #[must_use]
    pub fn with_logs(self, logs: Option<Logs>) -> Instruments {
        Instruments { logs, ..self }
    }

    /// The same with the policies that send pages timed.
    #[must_use]
    pub fn with_meter(self, meter: Meter) -> Instruments {
        Instruments { meter: Some(meter), ..self }
    }

    /// Nothing but these notes of what comes.
    pub(crate) fn of_arrivals(arrivals: Arrivals) -> Instruments {
        Instruments { arrivals: Some(arrivals), ..Instruments::default() }
    }
}

/// The run that is made: of which plan, which of its cells, and what looks on.
#[derive(Clone, Copy)]
pub(super) struct Setting<'a> {
    pub(super) plan: &'a Plan,
    pub(super) cell: Cell,
    pub(super) instruments: &'a Instruments,
}

impl<'a> Setting<'a> {
    pub(super) fn scenario(self) -> &'a Scenario {
        &self.plan.scenario
    }

    /// What the run goes over.
    pub(super) fn network(self) -> &'a RunNetwork {
        self.plan.run_network(self.cell)
    }

    /// The policies of the run.
    pub(super) fn row(self) -> &'a PolicyRow {
        &self.plan.networks[self.cell.network].policies[self.cell.policy]
    }

    /// How HTTP is carried.
    pub(super) fn http(self) -> HttpVersion {
        self.row().http
    }

    /// What writes the log of the run, if it is logged.
    pub(super) fn recorders(self) -> Option<RecorderFactory> {
        self.instruments.logs.as_ref()?.recorders(self.plan, self.cell)
    }

    /// What takes note of what comes over `line`, if anything does.
    pub(super) fn arrivals(self, line: PageLine) -> Option<LineArrivals> {
        let arrivals = self.instruments.arrivals.as_ref()?;
        let PageLine { client, line, pair } = line;
        // The first path carries the handshake.
        let [of_client, of_server] = addresses(pair, 0);
        let (reader, address) = match self.scenario().sender() {
            End::Server => (Role::Client, of_client),
            End::Client => (Role::Server, of_server),
        };
        let framed = self.http() == HttpVersion::H2Tcp;
        arrivals.line((client, line), reader, address, framed)
    }
}
