//! `quipu serve --experiments`: endpoints with policies that clients choose.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use quipu_lab::policies::Registry;
use quipu_lab::policy::{Layer, PolicySpec};
use quipu_serve::experiments::{Chosen, Experiments, Limits, Policies};
use quipu_serve::{Recorded, Site};
use quipu_tokio::{BindError, Endpoint, policies};

use super::Sockets;
use crate::failure::Failure;
use crate::page_loads::Setup;

/// Where endpoints of clients may be: ports from the first to the last, or any port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ports(Option<RangeInclusive<u16>>);

impl Ports {
    /// # Errors
    /// If the text is no range of ports.
    pub(super) fn parse(text: Option<&str>) -> Result<Ports, Failure> {
        let Some(text) = text else { return Ok(Ports(None)) };
        let range = text.split_once('-').and_then(|(first, last)| {
            let (first, last) = (first.parse().ok()?, last.parse().ok()?);
            (1..=last).contains(&first).then_some(first..=last)
        });
        let wrong = || {
            Failure::Usage(format!("--experiments={text}: expected FIRST-LAST, such as 5000-5063"))
        };
        range.map(|range| Ports(Some(range))).ok_or_else(wrong)
    }

    /// The server that `builder` makes at the address with the first of the ports that is free.
    fn bind(
        &self,
        address: SocketAddr,
        bind: impl Fn(SocketAddr) -> Result<Endpoint, BindError>,
    ) -> Result<Endpoint, BindError> {
        let at = |port| bind(SocketAddr::new(address.ip(), port));
        let Ports(Some(range)) = self else { return at(0) };
        let mut tried = range.clone().map(at);
        // There is a first.
        let mut last = tried.next().unwrap_or(Err(BindError::NoRuntime));
        while let Err(BindError::InUse(_)) = last
            && let Some(next) = tried.next()
        {
            last = next;
        }
        last
    }
}

/// The endpoints that clients may have at the address of the server, with policies of `registry`. They serve
/// `service`, and end within `grace`.
pub(super) fn of(
    service: Recorded<Site>,
    registry: Registry,
    (ports, address): (Ports, SocketAddr),
    sockets: Sockets,
    grace: Duration,
) -> Experiments<Recorded<Site>> {
    let limits = Limits { stop: grace, ..Limits::default() };
    Experiments::new(service, limits, move |asked| {
        choose(&registry, asked, address, (&ports, &sockets))
    })
}

/// What policies a client asked for, by the names of `registry`.
///
/// # Errors
/// A layer or policy that there is not, in words.
fn choose(
    registry: &Registry,
    asked: &Policies,
    address: SocketAddr,
    (ports, sockets): (&Ports, &Sockets),
) -> Result<Chosen, String> {
    let layer = |name: &str| {
        let known = Layer::ALL.map(Layer::name);
        let found = Layer::ALL.into_iter().find(|layer| layer.name() == name);
        found.ok_or_else(|| format!("there is no layer {name:?}; there are: {}", known.join(", ")))
    };
    let setup = Setup::asked_for(asked)?;
    let named = Setup::without(asked.clone());
    let texts = named.iter().map(|(name, text)| Ok((layer(name)?, text.as_str())));
    let texts = texts.collect::<Result<Vec<_>, String>>()?;
    let spec = PolicySpec::choose(registry, texts).map_err(|error| error.to_string())?;
    let factory = match &setup {
        Some(setup) => setup.policies(&spec).map_err(|error| error.reason())?,
        None => policies(registry, &spec.to_string()).map_err(|error| error.to_string())?,
    };
    let parts = spec.parts().map(|part| (part.entry().layer.name().to_owned(), part.full_text()));
    let parts = parts.chain(setup.iter().flat_map(Setup::question));
    let (ports, mut sockets) = (ports.clone(), sockets.clone());
    if let Some(setup) = &setup {
        sockets.config.transport = setup.server_transport();
    }
    let bind = move || ports.bind(address, |at| sockets.server(&factory).listen(at).bind());
    Ok(Chosen { policies: parts.collect(), bind: Box::new(bind) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_a_range_or_any() {
        assert_eq!(Ports::parse(None).unwrap(), Ports(None));
        assert_eq!(Ports::parse(Some("5000-5063")).unwrap(), Ports(Some(5000..=5063)));
        for wrong in ["5000", "0-9", "9-1", "1-70000", "a-b"] {
            assert!(matches!(Ports::parse(Some(wrong)), Err(Failure::Usage(_))), "{wrong}");
        }
    }
}
