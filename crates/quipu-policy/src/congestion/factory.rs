//! Making a controller for each path.

use std::fmt;
use std::sync::Arc;

use quipu_base::Bytes;

use super::{Controller, NewReno, prr};
use crate::registry::{BuildContext, Built, Confidence, Entry, Layer};
use crate::seam::key::PathKey;

type Make = dyn Fn(PathKey, Bytes) -> Box<dyn Controller> + Send + Sync;

/// Makes the controllers of a connection, one per path.
#[derive(Clone)]
pub struct ControllerFactory(Arc<Make>);

impl ControllerFactory {
    /// A factory of what `make` gives for a path and the largest datagram on it.
    pub fn new(
        make: impl Fn(PathKey, Bytes) -> Box<dyn Controller> + Send + Sync + 'static,
    ) -> Self {
        ControllerFactory(Arc::new(make))
    }

    /// A controller for `path`, whose datagrams have at most `datagram_size` bytes.
    pub fn make(&self, path: PathKey, datagram_size: Bytes) -> Box<dyn Controller> {
        (self.0)(path, datagram_size)
    }
}

impl fmt::Debug for ControllerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ControllerFactory")
    }
}

pub(crate) fn entries() -> Vec<Entry> {
    vec![
        newreno(),
        super::balia::entry(),
        super::bbr::entry(),
        super::bbr3::entry(),
        super::cubic::entry(),
        super::lia::entry(),
        super::olia::entry(),
        super::wvegas::entry(),
    ]
}

fn newreno() -> Entry {
    Entry {
        name: "newreno",
        layer: Layer::Congestion,
        about: "slow start, one halving per round trip with loss; uncoupled",
        params: vec![prr::param()],
        source: "RFC 9002, section 7; RFC 9937 (proportional rate reduction)",
        confidence: Confidence::High,
        build: |values, context: &mut BuildContext| {
            let (window, reduction) = (context.initial_window, values.flag("prr")?);
            Ok(Built::controller(ControllerFactory::new(move |_, size| {
                prr::wrap(reduction, size, NewReno::new(window, size))
            })))
        },
    }
}
