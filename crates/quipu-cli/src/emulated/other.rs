//! What loads of the browser's model with other stacks than Quipu's have in common.

use std::net::SocketAddr;
use std::time::Duration;

use http::uri::Authority;
use quipu_lab::base::Instant;
use quipu_lab::plan::{Cell, Plan};
use quipu_live::Client;
use quipu_record::RunRecord;
use quipu_tokio::tokio;

use super::measured::Counted;
use crate::failure::Failure;
use crate::live;
use crate::page_loads::{CONNECT_WITHIN, check_statuses, started, warm_up};

/// How long both ends have to hear that connections are over. Our choice, more than a round trip.
const FAREWELL: Duration = Duration::from_millis(300);

/// One load, in the client's network.
pub(super) struct Load<'a> {
    pub(super) plan: &'a Plan,
    pub(super) cell: Cell,
    /// The client's, by path.
    pub(super) interfaces: &'a [String],
    pub(super) server: SocketAddr,
}

impl Load<'_> {
    /// Loads the page over what `connecting` to the server gives. What has to be done right before it is `begin`.
    ///
    /// # Errors
    /// If there is no connection, a response fails, the page is not there in time, or the user wants to stop.
    pub(super) async fn run(
        &self,
        begin: impl FnOnce() -> Result<(), Failure>,
        connecting: impl Future<Output = Result<Client, Failure>>,
    ) -> Result<RunRecord, Failure> {
        tokio::select! {
            loaded = self.load(begin, connecting) => loaded,
            () = live::asked_to_stop(&self.plan.stop) => Err(Failure::Interrupted),
        }
    }

    async fn load(
        &self,
        begin: impl FnOnce() -> Result<(), Failure>,
        connecting: impl Future<Output = Result<Client, Failure>>,
    ) -> Result<RunRecord, Failure> {
        let (plan, cell) = (self.plan, self.cell);
        let counted = Counted::before(self.interfaces);
        begin()?;
        let (loading, clock) = started(plan, cell)?;
        let client = tokio::time::timeout(CONNECT_WITHIN, connecting).await.map_err(|_| {
            let seconds = CONNECT_WITHIN.as_secs();
            Failure::Run(format!("no connection to {} after {seconds} s", self.server))
        })??;
        let connected = clock.now();
        let at: Authority = self.server.to_string().parse().map_err(Failure::run)?;
        warm_up(&client, Some(&at), plan).await?;
        let limit = plan.scenario.time_limit;
        // The connection is over with the load.
        let loaded = quipu_live::load(client, loading, &plan.browser, clock, limit).await;
        let paths = counted.after();
        tokio::time::sleep(FAREWELL).await;
        let mut loaded = loaded.map_err(Failure::run)?;
        check_statuses((plan, cell), &loaded.differences)?;
        loaded.record.connect_time = connected - Instant::ZERO;
        loaded.record.paths = paths;
        Ok(loaded.record)
    }
}
