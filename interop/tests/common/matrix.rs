//! Every foreign engine in both roles: a test of the matrix is a function of a [`Cell`], which makes
//! a [`Case`], changes what it is about, and runs it.

use std::cell::Cell as Shared;

use quipu_base::{Bytes, Duration, Instant, Role, Seed};
use quipu_interop::{NoqNode, PeerConfig, QuinnNode};
use quipu_link::LinkConfig;
use quipu_testkit::{
    Action, ExchangeNode, Failure, Identity, NodeConfig, Outcome, Plan, QuicNode, Rebinding,
    Scenario, SharedTls, SizeLimit, Tls, client_address,
};

use super::MEGABYTES;

/// A foreign engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    Quinn,
    Noq,
}

/// One of ours with a foreign engine.
pub(crate) struct Cell {
    pub(crate) engine: Engine,
    /// The role of ours.
    pub(crate) ours: Role,
    pub(crate) identity: Identity,
    /// TLS of all cases of the cell.
    tls: std::cell::RefCell<SharedTls>,
    /// 0-RTT is sent and accepted.
    early_data: Shared<bool>,
    runs: Shared<u64>,
}

/// A run that is not begun.
pub(crate) struct Case {
    name: String,
    engine: Engine,
    pub(crate) scenario: Scenario,
    pub(crate) ours: NodeConfig,
    pub(crate) theirs: PeerConfig,
}

/// Both engines.
pub(crate) const BOTH: &[Engine] = &[Engine::Quinn, Engine::Noq];
/// The one that speaks multipath.
pub(crate) const NOQ: &[Engine] = &[Engine::Noq];

/// Runs `test` with each of the engines, ours as client and as server.
pub(crate) fn each(engines: &[Engine], test: impl Fn(&Cell)) {
    for &engine in engines {
        for ours in [Role::Client, Role::Server] {
            let identity = Identity::generate().expect("a certificate");
            let tls = SharedTls::new(&identity, false).expect("an identity");
            println!("{engine:?}, ours is the {ours:?}");
            let (tls, early_data, runs) = (tls.into(), Shared::new(false), Shared::new(0));
            test(&Cell { engine, ours, identity, tls, early_data, runs });
        }
    }
}

impl Cell {
    /// From now on the client sends early data where it can, and the server takes it.
    pub(crate) fn offer_early_data(&self) {
        *self.tls.borrow_mut() = SharedTls::new(&self.identity, true).expect("an identity");
        self.early_data.set(true);
    }

    /// The server forgets all sessions.
    pub(crate) fn forget_sessions(&self) {
        let forgetful = self.tls.borrow().with_forgetful_server(&self.identity);
        *self.tls.borrow_mut() = forgetful.expect("an identity");
    }

    /// An exchange of `plan` over these paths, with TLS that all cases of the cell share.
    pub(crate) fn case(&self, plan: Plan, paths: Vec<LinkConfig>) -> Case {
        self.runs.set(self.runs.get() + 1);
        let seed = Seed::new(self.runs.get());
        let scenario = Scenario { seed, ..Scenario::new(plan, paths) };
        let tls = self.tls.borrow().clone();
        let mut ours = NodeConfig::new(&scenario, self.ours, Tls::Shared(tls.clone()));
        ours.transport.early_data = self.early_data.get();
        let peer = PeerConfig::new(&scenario, self.ours.peer(), &self.identity);
        let name = format!("{:?}, ours is the {:?}", self.engine, self.ours);
        let theirs = PeerConfig { tls, ..peer };
        Case { name, engine: self.engine, scenario, ours, theirs }
    }

    /// Ten megabytes each way over 20 Mbit/s and a round trip of 40 ms.
    pub(crate) fn transfer(&self) -> Case {
        self.case(Plan::both_ways(10 * MEGABYTES), vec![super::path(20, 20)])
    }
}

impl Case {
    /// The end of `role` does this, so many milliseconds after the start.
    pub(crate) fn act(mut self, role: Role, millis: u64, action: Action) -> Self {
        let at = Instant::ZERO + Duration::from_millis(millis);
        let ours = self.ours.role == role;
        let actions = if ours { &mut self.ours.actions } else { &mut self.theirs.actions };
        actions.push((at, action));
        self
    }

    /// A translator of addresses gives the client's path another port, or another address, so many
    /// milliseconds after the start.
    pub(crate) fn rebind(mut self, path: u8, millis: u64, other_address: bool) -> Self {
        let inside = client_address(path);
        let nth = self.scenario.middlebox.rebindings.len() as u16;
        let mut outside = inside;
        outside.set_port(inside.port() + 1 + nth);
        if other_address {
            outside.set_ip([10, 0, 9, nth as u8].into());
        }
        let at = Instant::ZERO + Duration::from_millis(millis);
        self.scenario.middlebox.rebindings.push(Rebinding { at, inside, outside });
        self
    }

    /// From so many milliseconds after the start on, UDP payloads of more than `most` bytes do not pass.
    /// Both engines look for the largest datagram that does.
    pub(crate) fn limit_size(mut self, millis: u64, most: u16) -> Self {
        self.theirs.mtu_discovery = true;
        let (at, most) = (Instant::ZERO + Duration::from_millis(millis), Bytes(most.into()));
        self.scenario.middlebox.limits.push(SizeLimit { at, inside: None, most });
        self
    }

    /// Runs it.
    pub(crate) fn try_run(self) -> Result<Outcome, Failure> {
        let ours: Box<dyn ExchangeNode> = Box::new(QuicNode::new(NodeConfig {
            local: self.scenario.addresses(self.ours.role),
            ..self.ours.clone()
        }));
        let theirs =
            PeerConfig { local: self.scenario.addresses(self.theirs.role), ..self.theirs.clone() };
        let theirs: Box<dyn ExchangeNode> = match self.engine {
            Engine::Quinn => Box::new(QuinnNode::new(theirs).expect("the engine starts")),
            Engine::Noq => Box::new(NoqNode::new(theirs).expect("the engine starts")),
        };
        let (client, server) =
            if self.ours.role.is_client() { (ours, theirs) } else { (theirs, ours) };
        self.scenario.run(client, server)
    }

    /// Runs it; everything arrives.
    pub(crate) fn run(self) -> Outcome {
        let name = self.name.clone();
        let outcome = self.try_run().unwrap_or_else(|failure| panic!("{name}: {failure}"));
        let [client, server] = outcome.longest_stalls;
        println!(
            "  {} in {}, longest stalls {client} and {server}",
            outcome.goodput, outcome.finished_at
        );
        outcome
    }
}
