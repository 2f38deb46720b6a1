//! `quipu paths`.

use std::net::SocketAddr;
use std::time::Instant;

use quipu_lab::table::{Align, Grid};
use quipu_tokio::uplink::{Usable, resolve, uplinks};
use quipu_tokio::{BindError, Endpoint, Uplink, Via};

use crate::args::{LivePolicies, PathsOptions};
use crate::events;
use crate::failure::Failure;
use crate::live::{self, Target};
use crate::own::Own;

pub(crate) fn run(options: &PathsOptions, own: &Own<'_>) -> Result<(), Failure> {
    events::follow(&options.events)?;
    let target = options.server.as_ref().map(|server| {
        let target = Target::of(server, &options.trust, &LivePolicies::NONE, own.registry);
        target.map(|target| target.within(quipu_lab::base::Duration::from_secs(3)))
    });
    let target = target.transpose()?;
    let runtime = live::runtime()?;
    let known = uplinks().map_err(Failure::run)?;
    let found = match options.via.is_empty() {
        true => known,
        false => {
            // A socket needs a runtime.
            let _runtime = runtime.enter();
            named(&options.via, &known).map_err(|error| live::bind_failure("--via", &error))?
        }
    };
    let mut columns = vec![
        ("interface", Align::Left),
        ("address", Align::Left),
        ("with --via auto", Align::Left),
    ];
    if target.is_some() {
        columns.push(("server", Align::Left));
    }
    let mut grid = Grid::new(columns);
    let (mut tried, mut answers) = (0, 0);
    for uplink in &found {
        let interface = uplink.interface.clone().unwrap_or_default();
        let mut cells = vec![interface, uplink.address.to_string(), with_auto(uplink)];
        if let Some(target) = &target {
            let address = target.addresses().iter().find(|to| may_reach(uplink, **to));
            let answer = address.map(|to| runtime.block_on(answer(uplink, target, *to)));
            tried += usize::from(answer.is_some());
            answers += usize::from(matches!(answer, Some(Ok(_))));
            cells.push(match answer {
                Some(Ok(millis)) => format!("answers in {millis:.1} ms"),
                Some(Err(reason)) => reason,
                None => "not tried".to_owned(),
            });
        }
        grid.row(cells);
    }
    own.terminal.print_grid(&grid, options.format.format)?;
    if tried > 0 && answers == 0 {
        return Err(Failure::Run("no uplink gets an answer from the server".to_owned()));
    }
    Ok(())
}

/// The uplinks that `vias` name, as `known` lists them.
///
/// # Errors
/// If there is no such interface, or this host does not have an address.
fn named(vias: &[String], known: &[Uplink]) -> Result<Vec<Uplink>, BindError> {
    // Every text names something.
    let parsed = vias.iter().map(|via| {
        let Ok(via) = via.parse::<Via>();
        via
    });
    let vias: Vec<Via> = parsed.collect();
    let as_listed = |uplink: Uplink| {
        if let Some(listed) = known.iter().find(|listed| listed.address == uplink.address) {
            return Ok(listed.clone());
        }
        // The host may have addresses that no interface lists, such as 127.0.0.2.
        Endpoint::client().via(Via::Address(uplink.address)).bind()?;
        Ok(uplink)
    };
    resolve(&vias)?.into_iter().map(as_listed).collect()
}

/// Whether `--via auto` takes the uplink.
fn with_auto(uplink: &Uplink) -> String {
    match &uplink.interface {
        Some(_) => uplink.usable.to_string(),
        None => "not used: no interface lists it".to_owned(),
    }
}

/// True if a datagram to the server makes sense there.
fn may_reach(uplink: &Uplink, server: SocketAddr) -> bool {
    let same_family = uplink.address.is_ipv4() == server.is_ipv4();
    let is_loopback = uplink.usable == Usable::Loopback || uplink.address.is_loopback();
    same_family
        && is_loopback == server.ip().is_loopback()
        && !matches!(uplink.usable, Usable::Down | Usable::LinkLocal)
}

/// Milliseconds of a handshake that leaves by that uplink alone, or why there was none.
#[expect(clippy::disallowed_methods, reason = "it measures how long a real server takes")]
async fn answer(uplink: &Uplink, target: &Target, server: SocketAddr) -> Result<f64, String> {
    let endpoint = Endpoint::client().via(Via::Address(uplink.address)).bind();
    let endpoint = endpoint.map_err(|error| error.to_string())?;
    let begin = Instant::now();
    let connection = target.connect_to(&endpoint, server).await;
    let connection = connection.map_err(|error| error.to_string())?;
    let millis = begin.elapsed().as_secs_f64() * 1e3;
    connection.close(0, b"probed");
    endpoint.wait_idle_for(quipu_lab::base::Duration::from_millis(200)).await;
    Ok(millis)
}
