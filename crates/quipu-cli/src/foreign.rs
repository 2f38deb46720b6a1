//! Stacks of other libraries, which a program brings beside those of the command.

use std::fmt::Debug;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use quipu_live::foreign::{Doing, ForeignClient, ForeignFailure};
use quipu_scenario::{Scenario, Stack, StackName};
use quipu_serve::{Certificates, Recorded, Site};
use quipu_tokio::identity::Pin;

pub use quipu_scenario::{ForeignChoice, QuicCongestion};

use crate::failure::Failure;

/// HTTP and a transport of another library, at both ends of emulated loads. All of it is called within a runtime of
/// `tokio`, in the network of the host.
pub trait ForeignStack: Debug + Send + Sync {
    /// What scenarios call it. One that [uses all paths](ForeignChoice::is_multipath) is given all of them.
    fn name(&self) -> StackName;

    /// Connects, with a connection that remembers nothing of earlier ones.
    ///
    /// # Errors
    /// If the server does not answer, or has another certificate. How long it may take is the caller's matter.
    fn connect(&self, to: Connecting) -> Doing<'static, Arc<dyn ForeignClient>>;

    /// Listens, and then serves all connections until the returned future is dropped. What fails in a connection harms no
    /// other one, and the future does not end.
    ///
    /// # Errors
    /// If there is no socket, or TLS refuses the certificate.
    fn serve(&self, at: Listening) -> Result<Doing<'static, ()>, ForeignFailure>;
}

/// What a client of another library connects to.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Connecting {
    /// The paths to the server, at least one, in the network's order; the handshake takes the first. A single one where the
    /// stack does not use all.
    pub ways: Vec<Way>,
    /// By which the server's certificate is known.
    pub pin: Pin,
    /// Of the client.
    pub congestion: QuicCongestion,
    /// Whether all paths have to be open when the connection is there. Else they are opened meanwhile.
    pub waits_for_paths: bool,
}

impl Connecting {
    /// A connection over `ways` to the server with that pin, by the default congestion control, which is there when
    /// all paths are.
    pub fn new(ways: Vec<Way>, pin: Pin) -> Connecting {
        Connecting { ways, pin, congestion: QuicCongestion::default(), waits_for_paths: true }
    }
}

/// One path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// The client's address. What leaves from it for `server` takes this path.
    pub local: IpAddr,
    /// The server's address on this path: one of its own for each path.
    pub server: SocketAddr,
}

/// What a server of another library serves, and where.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Listening {
    /// Address and port; an unspecified address stands for all of them.
    pub address: SocketAddr,
    /// What clients know the server by; [`server_config`](quipu_tokio::identity::server_config) makes the TLS of it.
    pub certificates: Arc<Certificates>,
    /// What answers requests, whatever their bodies.
    pub service: Recorded<Site>,
    /// Of the server.
    pub congestion: QuicCongestion,
}

impl Listening {
    /// A server at `address` of what `site` has, by the default congestion control.
    pub fn new(address: SocketAddr, certificates: Arc<Certificates>, site: Site) -> Listening {
        let (service, congestion) = (Recorded::new(site), QuicCongestion::default());
        Listening { address, certificates, service, congestion }
    }
}

/// The stacks that a program brings.
#[derive(Clone, Debug, Default)]
pub(crate) struct ForeignStacks(pub(crate) Vec<Arc<dyn ForeignStack>>);

impl ForeignStacks {
    /// That of `choice`.
    ///
    /// # Errors
    /// If the program does not have it: says which one does.
    pub(crate) fn of(&self, choice: ForeignChoice) -> Result<&Arc<dyn ForeignStack>, Failure> {
        let found = self.0.iter().find(|stack| stack.name() == choice.name());
        found.ok_or_else(|| {
            Failure::Usage(format!(
                "stack {}: this program does not have it; quipu-stacks, the program of interop/stacks, does",
                Stack::Foreign(choice)
            ))
        })
    }

    /// Checks that the program has the stacks of a scenario.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub(crate) fn check(&self, scenario: &Scenario) -> Result<(), Failure> {
        let mut choices = scenario.stack.iter().filter_map(Stack::foreign);
        choices.try_for_each(|choice| self.of(choice).map(drop))
    }
}
