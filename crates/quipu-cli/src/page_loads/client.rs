//! The client of loads that are compared: it asks the server for the policies of each load, and makes it.

use std::net::SocketAddr;
use std::time::Duration;

use quipu_lab::plan::{Cell, Plan};
use quipu_lab::policies::Registry;
use quipu_lab::policy::PolicySpec;
use quipu_lab::run::logs::QlogFolder;
use quipu_live::Loaded;
use quipu_record::RunRecord;
use quipu_tokio::http3::{ErrorCode, Http3Client};
use quipu_tokio::tokio::time::timeout;
use quipu_tokio::{Endpoint, policies};

use super::setup::Setup;
use super::ways::Way;
use super::{Server, asked, check_statuses, versions};
use crate::args::LivePolicies;
use crate::failure::Failure;
use crate::live;

/// How long the server has to answer what it is asked before a load. Our choice.
const ANSWERS_WITHIN: Duration = Duration::from_secs(30);

/// A client and what it compares.
pub(crate) struct Client<'a> {
    pub(crate) server: Server<'a>,
    pub(crate) registry: &'a Registry,
    /// What the server is asked over; each load has an endpoint of its own.
    pub(crate) control: Endpoint,
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) vias: &'a [String],
    pub(crate) ways: Vec<Way>,
    pub(crate) logs: Option<&'a QlogFolder>,
    pub(crate) plan: &'a Plan,
    /// What both ends are set to beside policies; `None`: what they have by default.
    pub(crate) setup: Option<Setup>,
}

impl Client<'_> {
    /// Asks the server for the policies of all rows, so that what it refuses is known before the first load.
    pub(crate) async fn prepare(&self) -> Result<(), Failure> {
        let mut specs: Vec<&PolicySpec> = Vec::new();
        for row in self.plan.rows() {
            if !specs.contains(&&row.spec) {
                specs.push(&row.spec);
            }
        }
        self.ask(&specs).await.map(drop)
    }

    /// The ports at which the server has the policies of `specs`.
    async fn ask(&self, specs: &[&PolicySpec]) -> Result<Vec<u16>, Failure> {
        let config = self.server.config(LivePolicies::NONE.factory(self.registry)?)?;
        let connection = self.server.connect(&self.control, &config, &self.addresses).await?;
        let client = Http3Client::new(connection.clone(), Default::default());
        let client = client.map_err(Failure::run)?;
        let authority = self.server.authority();
        let asking = async {
            let mut ports = Vec::with_capacity(specs.len());
            for spec in specs {
                let question = asked::question(spec, self.setup.as_ref());
                ports.push(asked::port(&client, authority, &question).await?);
            }
            Ok(ports)
        };
        let late = || {
            let seconds = ANSWERS_WITHIN.as_secs();
            Failure::Run(format!("{authority} says nothing of its policies within {seconds} s"))
        };
        let ports = timeout(ANSWERS_WITHIN, asking).await.unwrap_or_else(|_| Err(late()));
        connection.close(ErrorCode::NO_ERROR.0, b"");
        ports
    }

    /// The load of `cell`, over a connection of its own. What has to be done right before it is `begin`.
    pub(crate) async fn load(
        &self,
        cell: Cell,
        begin: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<RunRecord, Failure> {
        let row = &self.plan.networks[cell.network].policies[cell.policy];
        let alone = row.alone.as_ref().and_then(|alone| self.ways.get(alone.position));
        // Asked each time, as the server closes endpoints that are idle.
        let port = self.ask(&[&row.spec]).await?.first().copied().unwrap_or_default();
        let addresses: Vec<SocketAddr> =
            self.addresses.iter().map(|at| SocketAddr::new(at.ip(), port)).collect();
        let config = match &self.setup {
            Some(setup) => {
                let factory = setup.policies(&row.spec)?;
                let version = versions::of(self.plan, cell);
                self.server.config_with(factory, setup.client_transport(), version)?
            }
            None => {
                let text = row.spec.to_string();
                self.server.config(policies(self.registry, &text).map_err(Failure::run)?)?
            }
        };
        let mut builder = Endpoint::client();
        if let Some(logs) = self.logs {
            builder = builder.record(logs.recorders());
        }
        let only = alone.map(|way| vec![way.name.clone()]);
        let endpoint = live::bind(builder, only.as_deref().unwrap_or(self.vias))?;
        begin()?;
        let loaded = self.server.load(&endpoint, &config, &addresses, (self.plan, cell)).await;
        endpoint.wait_idle_for(live::FAREWELL).await;
        self.record(cell, loaded?)
    }

    /// What is kept of a load: its paths at the places that they have among all uplinks.
    fn record(&self, cell: Cell, loaded: Loaded) -> Result<RunRecord, Failure> {
        let Loaded { mut record, differences, paths, .. } = loaded;
        check_statuses((self.plan, cell), &differences)?;
        for (counted, path) in record.paths.iter_mut().zip(&paths) {
            let position = self.ways.iter().position(|way| way.has(path));
            if let Some(position) = position.and_then(|position| u32::try_from(position).ok()) {
                counted.path = position;
            }
        }
        Ok(record)
    }
}
