//! Lower bounds: how early a page, what is critical of it, and each object can be there at the earliest.
//!
//! No scheduler, congestion controller or acknowledgement policy can beat a bound: it is worked out
//! from the links, the page and what the protocol cannot do without, and whatever is not known makes it
//! lower. There are two. [`Level::Fluid`]: every link moves all that its rate or trace allows, from the
//! instant at which the page is asked for, in largest datagrams, each link at its least delay, without
//! a handshake and without slow start. [`Level::Tight`]: also with the handshake and the validation of
//! paths, where the page opens the connection, and with windows that begin at their initial size.
//!
//! `capacity` knows what one link lets through, `way` what all paths in one direction do together;
//! `chain` follows discovery, `work` adds up bytes; `handshake` and `window` make the bound tight.
//! `docs/bound.md` has the formulas and why they hold.

mod capacity;
mod chain;
mod handshake;
mod store;
#[cfg(test)]
mod tests;
mod way;
mod window;
mod work;

use std::sync::Arc;

use quipu_base::{Bytes, Duration, Instant};
use quipu_link::LinkConfig;
use quipu_policy::registry::Layer;
use quipu_web::load::DiscoveryMode;
use quipu_web::page::Page;

use self::capacity::{Supply, least_delay};
use self::chain::Load;
use self::way::{Framing, Group, Part, Place, Trunk, Way};
use self::window::{Opening, Window};
use crate::plan::{Cell, Plan};
use crate::policies::PolicyRow;
use quipu_scenario::{
    Direction, Discovery, LinkError, LinkSpec, Network, Scenario, Sender, Stack, Start, WriteOrder,
};

pub(crate) use store::Store;

/// Bytes of UDP payload around the bytes of streams in a datagram, at least: first byte, connection ID
/// of 8, packet number of 1, tag of 16, type and stream number of a STREAM frame.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-17.3.1>
const HEADERS: u64 = 1 + 8 + 1 + 16 + 2;

/// How much a bound knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Capacity, delays and discovery.
    Fluid,
    /// Also the handshake, and windows at the start.
    Tight,
}

/// Lower bounds of one load, each counted from the start of the page. [`Duration::MAX`] where something
/// can never be there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageBound {
    /// Of the page's time.
    pub page_time: Duration,
    /// Of its critical time.
    pub critical_time: Duration,
    /// Of each object's completion.
    pub objects: Vec<Duration>,
}

/// What is asked of the bounds of one load.
#[derive(Clone, Copy, Debug)]
pub struct Situation<'a> {
    /// Everything but page and network.
    pub scenario: &'a Scenario,
    /// The page.
    pub page: &'a Page,
    /// When it was asked for.
    pub start: Instant,
    /// Whether it is the first page of its connection.
    pub first: bool,
    /// Whether windows grow by no more than what is acknowledged: true of every controller that
    /// slow-starts by RFC 9002.
    pub windows: bool,
}

/// The links of a network as bounds see them.
#[derive(Clone, Debug)]
pub struct Links {
    up: Way,
    down: Way,
    varies: bool,
    /// Whether datagrams may arrive twice.
    duplicates: bool,
}

impl Links {
    /// The links of `network` between one client and one server, in a scenario with these datagrams.
    ///
    /// # Errors
    /// If a path names a bottleneck that is none.
    pub fn new(network: &Network, scenario: &Scenario) -> Result<Links, LinkError> {
        let (udp, overhead) = (scenario.transport.udp_payload.0, scenario.link_overhead.0);
        let framing =
            Framing { payload: udp.saturating_sub(HEADERS).max(1), headers: HEADERS, overhead };
        let [mut up, mut down] = [Direction::Up, Direction::Down].map(|direction| Way {
            framing,
            groups: Vec::new(),
            trunks: network.links.iter().map(|links| trunk(links.links.of(direction))).collect(),
        });
        let mut owners: Vec<usize> = Vec::new();
        for (index, path) in network.paths.iter().enumerate() {
            let owner = network.bottleneck(index)?;
            let Some(links) = network.paths[owner].own_links() else { continue };
            let group = owners.iter().position(|known| *known == owner).unwrap_or_else(|| {
                owners.push(owner);
                up.groups.push(Group { shared: supply(&links.up), lanes: Vec::new() });
                down.groups.push(Group { shared: supply(&links.down), lanes: Vec::new() });
                owners.len() - 1
            });
            let via = network.via(index)?;
            let trunks = |way: &Way, direction| -> Vec<Part> {
                let link = |place: &usize| network.links[*place].links.of(direction);
                let part = |place: &usize| {
                    let supply = Arc::clone(&way.trunks[*place].supply);
                    Part {
                        supply: Some(supply),
                        delay: least(link(place)),
                        place: Place::Trunk(*place),
                    }
                };
                via.iter().map(part).collect()
            };
            let shared = |link| Part { supply: None, delay: least(link), place: Place::Shared };
            let access = |direction| {
                path.access.as_ref().map(|access| {
                    let link = access.clone().toward(direction);
                    Part { supply: Some(supply(&link)), delay: least(&link), place: Place::Own }
                })
            };
            // What the air lets through at most, whoever else is there, without any delay.
            let radio = network.radio.as_ref().filter(|_| path.radio.is_some());
            let air = || {
                let rate = radio?.rate_bound(Bytes(udp + overhead));
                let supply = Arc::new(Supply::new(&LinkConfig::new(rate, Duration::ZERO)));
                Some(Part { supply: Some(supply), delay: 0, place: Place::Own })
            };
            let mut parts: Vec<Part> = air().into_iter().chain(access(Direction::Up)).collect();
            parts.push(shared(&links.up));
            parts.extend(trunks(&up, Direction::Up).into_iter().rev());
            parts.extend(access(Direction::Up));
            up.add(index, group, parts);
            let mut parts: Vec<Part> = access(Direction::Down).into_iter().collect();
            parts.extend(trunks(&down, Direction::Down));
            parts.push(shared(&links.down));
            parts.extend(access(Direction::Down).into_iter().chain(air()));
            down.add(index, group, parts);
        }
        let varies = network.all_links().any(changes);
        let duplicates = network.all_links().any(|link| !link.duplicate.share.is_zero());
        Ok(Links { up, down, varies, duplicates })
    }

    /// True if it makes a difference when a page is asked for.
    pub fn vary(&self) -> bool {
        self.varies
    }

    /// The bound of a load, as `level` knows it.
    pub fn bound(&self, level: Level, situation: &Situation<'_>) -> PageBound {
        let Situation { scenario, page, start, .. } = *situation;
        let load = load(scenario, page);
        let client_sends = scenario.http.is_raw() && scenario.raw.sender == Sender::Client;
        match level {
            Level::Fluid if client_sends => bound(&load, &self.down, &self.up, start),
            Level::Fluid => bound(&load, &self.up, &self.down, start),
            Level::Tight => {
                let (up, down) = self.tightened(situation, &load, client_sends);
                if client_sends {
                    bound(&load, &down, &up, start)
                } else {
                    bound(&load, &up, &down, start)
                }
            }
        }
    }

    /// Both directions with what the start of the connection keeps from them.
    fn tightened(&self, situation: &Situation<'_>, load: &Load, client_sends: bool) -> (Way, Way) {
        let Situation { scenario, start, first, windows, .. } = *situation;
        let (mut up, mut down) = (self.up.clone(), self.down.clone());
        let transport = &scenario.transport;
        // Otherwise what was there before the page is not known.
        if !first || transport.start != Start::Cold {
            return (up, down);
        }
        let handshake = handshake::Opening {
            transport,
            overhead: scenario.link_overhead.0,
            duplicates: self.duplicates,
        }
        .handshake(&up, &down, start);
        handshake::open(&mut up, &mut down, &handshake);
        if windows && !client_sends {
            let chains = load.chains(&up, &down, start);
            let released = chains.released.iter().min().copied().unwrap_or(start);
            self.limit(&mut down, released, situation);
        }
        (up, down)
    }

    /// Gives each lane of `down` the window that it has when the first response can leave.
    fn limit(&self, down: &mut Way, released: Instant, situation: &Situation<'_>) {
        let transport = &situation.scenario.transport;
        let (initial, largest) = (transport.initial_udp_payload.0, transport.udp_payload.0);
        let paths = down.lanes().count() as u64;
        // What a server sends of its own before it is asked for anything, at most: its flight and one
        // datagram more; tickets, settings and connection IDs; on other paths challenges and answers.
        // Twice that, as all of it may be sent again for each round trip that the request is late.
        let crypto = transport.certificate_chain.0 + 500;
        let flight = (crypto.div_ceil(initial - 100) + 1) * initial;
        let of_first = 2 * (flight + 1_000 + 200 * paths);
        let of_other = 2 * 4 * initial;
        for lane in down.lanes_mut() {
            let before = if lane.path == 0 { of_first } else { of_other };
            // What was acknowledged of it has grown the window, the rest is in flight. The window is
            // that of small datagrams until the path is validated for larger ones.
            let packets = u64::from(transport.initial_window.max(2));
            let window = packets.saturating_mul(initial).saturating_add(before);
            let window = window.saturating_mul(largest).div_ceil(initial).saturating_add(largest);
            let round_trip = lane.delay().saturating_add(self.up.delay());
            lane.window = Window::new(Opening {
                from: released.as_nanos().max(lane.opens_at),
                round_trip,
                probe_timeout: round_trip.min(transport.initial_rtt.as_nanos()),
                first: window,
                datagram: largest,
            });
        }
    }
}

/// Whether the windows of all rows that go over the same paths as that of `cell` are known. One bound
/// stands beside all of them, and knows less if one keeps no known window.
pub fn windows_are_known(plan: &Plan, cell: Cell) -> bool {
    let rows = &plan.networks[cell.network].policies;
    let alone = &rows[cell.policy].alone;
    // Rows of other stacks have no bounds.
    let bounded = rows.iter().filter(|row| row.alone == *alone && row.stack == Stack::Quipu);
    bounded.into_iter().all(has_known_windows)
}

/// Whether windows of this row grow by no more than what is acknowledged, so that a tight bound may
/// count them: true of the controllers that come with the program, but for those that follow a model
/// of the path.
fn has_known_windows(row: &PolicyRow) -> bool {
    const KNOWN: [&str; 6] = ["balia", "cubic", "lia", "newreno", "olia", "wvegas"];
    row.spec.part(Layer::Congestion).is_some_and(|part| KNOWN.contains(&part.name()))
}

fn supply(link: &LinkSpec) -> Arc<Supply> {
    Arc::new(Supply::new(&link.config(Bytes::ZERO)))
}

/// Links that paths lead over by name.
fn trunk(link: &LinkSpec) -> Trunk {
    Trunk { supply: supply(link), lanes: Vec::new() }
}

/// The least delay of a link in nanoseconds.
fn least(link: &LinkSpec) -> u64 {
    least_delay(&link.config(Bytes::ZERO)).as_nanos()
}

/// Whether a link lets through more at some times than at others.
fn changes(link: &LinkSpec) -> bool {
    let config = link.config(Bytes::ZERO);
    !config.steps.is_empty()
        || config.trace.is_some()
        || config.rates.is_some()
        || !config.outages.is_empty()
}

/// What a scenario loads of `page`.
fn load(scenario: &Scenario, page: &Page) -> Load {
    if !scenario.http.is_raw() {
        let mode = match scenario.discovery {
            Discovery::Recorded => DiscoveryMode::Recorded,
            Discovery::AllAtOnce => DiscoveryMode::AllAtOnce,
        };
        return Load::of_page(page, mode, &scenario.pushed(page));
    }
    let raw = &scenario.raw;
    // In a random order each may be first.
    let gap = if raw.order == WriteOrder::Given { raw.gap } else { Duration::ZERO };
    Load::of_writes(page, raw.sender == Sender::Server, gap)
}

/// The bound of `load`, whose requests go `up` and whose bodies go `down`, asked for at `start`.
fn bound(load: &Load, up: &Way, down: &Way, start: Instant) -> PageBound {
    let chains = load.chains(up, down, start);
    let since = |at: Instant| match at {
        Instant::FAR_FUTURE => Duration::MAX,
        at => at - start,
    };
    let of = |targets: &dyn Fn(usize) -> bool| {
        since(work::complete(load, &chains, down, start, targets))
    };
    PageBound {
        page_time: of(&|index| load.items[index].held),
        critical_time: of(&|index| load.items[index].critical),
        objects: chains.completed.iter().copied().map(since).collect(),
    }
}
