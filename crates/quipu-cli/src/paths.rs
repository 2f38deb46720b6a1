//! `quipu paths`.

use std::net::SocketAddr;
use std::time::Instant;

use quipu_lab::table::{Align, Grid};
use quipu_tokio::uplink::{Usable, uplinks};
use quipu_tokio::{Endpoint, Uplink, Via};

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
    let found = uplinks().map_err(Failure::run)?;
    let runtime = live::runtime()?;
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
        let mut cells = vec![interface, uplink.address.to_string(), uplink.usable.to_string()];
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

/// True if a datagram to the server makes sense there.
fn may_reach(uplink: &Uplink, server: SocketAddr) -> bool {
    let same_family = uplink.address.is_ipv4() == server.is_ipv4();
    let is_loopback = uplink.usable == Usable::Loopback;
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
