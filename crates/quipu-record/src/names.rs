//! What the parts of a run are called. Records hold positions; whoever planned the run knows the names.

use std::borrow::Cow;
use std::io;

use crate::traffic::Direction;

/// Which run: names as tables have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// The page; empty if there is none.
    pub page: &'a str,
    /// The network.
    pub network: &'a str,
    /// The policy.
    pub policy: &'a str,
    /// Number of the run, from 0.
    pub run: u32,
}

/// A flow, as tables tell of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowNames<'a> {
    /// Its name.
    pub name: &'a str,
    /// Which way it goes.
    pub direction: Direction,
    /// Its congestion controller, with parameters.
    pub congestion: Cow<'a, str>,
}

/// A sender of cross traffic, as tables tell of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrossNames<'a> {
    /// Its name.
    pub name: &'a str,
    /// Which way it goes.
    pub direction: Direction,
}

/// The names of one run.
pub trait RunNames: Sync {
    /// Which run it is.
    fn place(&self) -> Place<'_>;

    /// The path at position `path` of the network; empty if there is none.
    fn path(&self, path: u32) -> &str;

    /// True if there are flows or cross traffic.
    fn has_traffic(&self) -> bool {
        !self.flows().is_empty() || !self.cross().is_empty()
    }

    /// The flows of the scenario, in its order.
    fn flows(&self) -> Vec<FlowNames<'_>>;

    /// The cross traffic of the scenario, in its order.
    fn cross(&self) -> Vec<CrossNames<'_>>;

    /// The objects of the page that client `client` loads at visit `visit`.
    ///
    /// # Errors
    /// If the page cannot be read.
    fn objects(&self, client: u32, visit: u32) -> io::Result<Box<dyn ObjectNames + '_>>;
}

/// The names of the objects of a page.
pub trait ObjectNames {
    /// The address of the object at position `object`; empty if there is none.
    fn url(&self, object: u32) -> &str;
}
