//! The agent by name, for the scenarios of environments alone.

use std::sync::{Arc, LazyLock};

use quipu_base::{Bytes, Role};
use quipu_policy::path::MinRtt;
use quipu_policy::registry::{AddError, Build, BuildError, Confidence, SpecError, Values};
use quipu_policy::stream::RoundRobin;
use quipu_policy::{BuildContext, Built, ControllerFactory, Entry, Layer, PolicySpec, Registry};

use super::exchange::{Act, Exchange};
use super::expert::{Expert, Watched};
use super::order::Ordered;
use super::paths::{ByPacket, ByShare, Scaled, Windows};

/// What scenarios call it.
pub(crate) const NAME: &str = "agent";

static OF_SERVER: LazyLock<[Entry; 3]> = LazyLock::new(|| entries(Role::Server));
static OF_CLIENT: LazyLock<[Entry; 3]> = LazyLock::new(|| entries(Role::Client));

/// Adds an agent to the layers of paths, streams and congestion, which decides for the end that `sender` is.
///
/// # Errors
/// If the name is taken.
pub(crate) fn add_to(registry: &mut Registry, sender: Role) -> Result<(), AddError> {
    let entries = if sender.is_client() { &OF_CLIENT } else { &OF_SERVER };
    entries.iter().try_for_each(|entry| registry.put(entry.clone()))
}

/// The agent of each layer. The other end, and a policy that is made to see whether it can be, has what asks nobody.
fn entries(sender: Role) -> [Entry; 3] {
    let asked = move |context: &BuildContext, acts: &[Act]| {
        let exchange = Exchange::current().filter(|_| context.role == Some(sender));
        exchange.filter(|exchange| acts.contains(&exchange.act))
    };
    let path = move |_: &Values, context: &mut BuildContext| {
        if let Some(expert) = Expert::current().filter(|_| context.role == Some(sender)) {
            let mut built = expert.part.build(context).map_err(failed)?;
            if let Some(inner) = built.path.take() {
                built.path = Some(Box::new(Watched::new(inner, Arc::clone(&expert))));
            }
            return Ok(built);
        }
        let exchange = asked(context, &[Act::Path, Act::Weights, Act::Window]);
        Ok(match exchange.map(|exchange| (exchange.act, exchange)) {
            Some((Act::Weights, exchange)) => Built::path(ByShare::new(exchange)),
            Some((Act::Window, exchange)) => Built::path(Windows::new(exchange)),
            Some((_, exchange)) => Built::path(ByPacket::new(exchange)),
            None => Built::path(MinRtt::default()),
        })
    };
    let stream = move |_: &Values, context: &mut BuildContext| {
        Ok(match asked(context, &[Act::Order]) {
            Some(exchange) => Built::stream(Ordered::new(exchange)),
            None => Built::stream(RoundRobin::new()),
        })
    };
    let congestion = move |_: &Values, context: &mut BuildContext| {
        let inner = controllers(context)?;
        Ok(Built::controller(match asked(context, &[Act::Window]) {
            Some(exchange) => scaled(inner, exchange),
            None => inner,
        }))
    };
    let entry = |layer, build: Build| Entry {
        name: NAME,
        layer,
        about: "What an agent decides, in an environment",
        formula: "as the agent decides",
        params: Vec::new(),
        source: "our choice",
        confidence: Confidence::High,
        build,
    };
    [
        entry(Layer::Path, Box::leak(Box::new(path))),
        entry(Layer::Stream, Box::leak(Box::new(stream))),
        entry(Layer::Congestion, Box::leak(Box::new(congestion))),
    ]
}

/// The controllers that the agent scales: those of `cubic`.
fn controllers(context: &BuildContext) -> Result<ControllerFactory, BuildError> {
    let spec = PolicySpec::parse(&Registry::builtin(), "congestion=cubic").map_err(failed)?;
    Ok(spec.build(context).map_err(failed)?.controllers)
}

fn failed(error: SpecError) -> BuildError {
    BuildError::Failed { reason: error.to_string() }
}

fn scaled(inner: ControllerFactory, exchange: Arc<Exchange>) -> ControllerFactory {
    ControllerFactory::new(move |path, datagram| {
        Box::new(Scaled {
            inner: inner.make(path, datagram),
            exchange: Arc::clone(&exchange),
            place: path.id.0 as usize,
            least: Bytes(2 * datagram.0),
        })
    })
}
