//! Paths as an agent's decisions: packet by packet, or by shares that hold for a while; and windows as factors.

use std::sync::Arc;

use quipu_base::{Bytes, Instant};
use quipu_learned::observation::{Observation, PLACES};
use quipu_learned::{Choosing, Decider};
use quipu_policy::congestion::{AckedInfo, LostInfo, PathChange, Peers, Published, SentInfo};
use quipu_policy::path::{
    IdleProbe, MinRtt, can_wait, eligible, opens_by, rest_unless_stuck, wait_for,
};
use quipu_policy::{
    Choice, Class, Controller, Event, Notes, Parcel, PathKey, PathPolicy, PathView, View,
};

use super::exchange::{Exchange, Shared};

/// The agent as what decides for [`Choosing`].
struct Asking(Arc<Exchange>);

fn show(observation: &Observation, shared: &mut Shared) {
    shared.numbers.copy_from_slice(&observation.numbers);
    shared.allowed.copy_from_slice(&observation.allowed);
}

impl Decider for Asking {
    fn decide(&mut self, observation: &Observation, view: &View<'_>) -> usize {
        let place = self.0.ask(
            view.now,
            |shared| show(observation, shared),
            |answer| answer.first().map_or(PLACES, |place| *place as usize),
        );
        place.unwrap_or(PLACES)
    }
}

/// The path of each packet.
pub(crate) struct ByPacket {
    choosing: Choosing<Asking>,
    exchange: Arc<Exchange>,
}

impl ByPacket {
    pub(crate) fn new(exchange: Arc<Exchange>) -> ByPacket {
        ByPacket { choosing: Choosing::new(Asking(Arc::clone(&exchange))), exchange }
    }
}

impl PathPolicy for ByPacket {
    fn select(&mut self, parcel: &Parcel<'_>, view: &View<'_>, notes: &mut Notes) -> Choice {
        self.choosing.select(parcel, view, notes)
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        self.exchange.count(event);
        self.choosing.on_event(event, view);
    }

    fn probe(&mut self, view: &View<'_>) -> Option<PathKey> {
        self.choosing.probe(view)
    }
}

/// A question every so long, when something happens.
struct Every {
    exchange: Arc<Exchange>,
    observation: Observation,
    next: Option<Instant>,
}

impl Every {
    fn new(exchange: Arc<Exchange>) -> Every {
        Every { exchange, observation: Observation::default(), next: None }
    }

    /// Asks if it is time, for one number for each place of a path.
    fn ask(&mut self, view: &View<'_>) -> Option<[f32; PLACES]> {
        if self.next.is_some_and(|next| view.now < next) || view.conn.unsent == Bytes::ZERO {
            return None;
        }
        self.next = Some(view.now + self.exchange.interval);
        self.observation.take(None, view);
        let observation = &self.observation;
        self.exchange.ask(
            view.now,
            |shared| show(observation, shared),
            |answer| {
                let mut numbers = [0.0; PLACES];
                numbers.iter_mut().zip(answer).for_each(|(number, given)| *number = *given);
                numbers
            },
        )
    }
}

/// Paths by shares: the open one that has sent the fewest bytes for its share since the shares came. Those without a share
/// serve for lost bytes, and where no other can be waited for.
pub(crate) struct ByShare {
    every: Every,
    shares: [f32; PLACES],
    sent: [u64; PLACES],
    probe: IdleProbe,
}

impl ByShare {
    pub(crate) fn new(exchange: Arc<Exchange>) -> ByShare {
        ByShare {
            every: Every::new(exchange),
            shares: [1.0; PLACES],
            sent: [0; PLACES],
            probe: IdleProbe::default(),
        }
    }
}

fn place_of(view: &View<'_>, key: PathKey) -> Option<usize> {
    view.paths.iter().take(PLACES).position(|path| path.key == key)
}

impl PathPolicy for ByShare {
    fn select(&mut self, parcel: &Parcel<'_>, view: &View<'_>, _notes: &mut Notes) -> Choice {
        let share = |path: &PathView| {
            place_of(view, path.key).map_or(0.0, |place| f64::from(self.shares[place]))
        };
        let with_share = || eligible(view.paths).filter(|path| share(path) > 0.0);
        let rank = |path: &PathView| {
            let sent = place_of(view, path.key).map_or(0, |place| self.sent[place]);
            (sent + parcel.len.0) as f64 / share(path)
        };
        let open = with_share().filter(|path| path.is_open(view.now));
        if let Some(path) = open.min_by(|a, b| rank(a).total_cmp(&rank(b)).then(a.key.cmp(&b.key)))
        {
            return Choice::Now(path.key);
        }
        let is_lost = matches!(parcel.class, Class::Lost { .. });
        let awaited = with_share().filter(|path| !is_lost && can_wait(path));
        if let Some(path) = awaited.min_by_key(|path| (opens_by(path, view.now), path.key)) {
            return wait_for(path, view);
        }
        // What has no share serves where nothing else can.
        match view.paths.least_srtt_of(|path| path.is_open(view.now)) {
            Some(path) => Choice::Now(path),
            None => rest_unless_stuck(parcel, view),
        }
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        self.every.exchange.count(event);
        self.probe.on_event(event);
        if let Event::Sent(packet) = event
            && let Some(place) = place_of(view, packet.path)
        {
            self.sent[place] += packet.bytes.0;
        }
        if let Some(shares) = self.every.ask(view) {
            (self.shares, self.sent) = (shares, [0; PLACES]);
        }
    }

    fn probe(&mut self, view: &View<'_>) -> Option<PathKey> {
        self.probe.due(view)
    }
}

/// `minrtt`, beside which factors of the windows are asked for.
pub(crate) struct Windows {
    every: Every,
    minrtt: MinRtt,
}

impl Windows {
    pub(crate) fn new(exchange: Arc<Exchange>) -> Windows {
        Windows { every: Every::new(exchange), minrtt: MinRtt::default() }
    }
}

impl PathPolicy for Windows {
    fn select(&mut self, parcel: &Parcel<'_>, view: &View<'_>, notes: &mut Notes) -> Choice {
        self.minrtt.select(parcel, view, notes)
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        self.every.exchange.count(event);
        // Controllers read the answer itself.
        self.every.ask(view);
        self.minrtt.on_event(event, view);
    }

    fn probe(&mut self, view: &View<'_>) -> Option<PathKey> {
        self.minrtt.probe(view)
    }

    fn stays_on(&self, path: &PathView) -> bool {
        self.minrtt.stays_on(path)
    }
}

/// A controller whose window is multiplied by the factor that the agent has for its path. Identifiers of paths are their
/// places, as a connection numbers them from 0 on.
pub(crate) struct Scaled {
    pub(crate) inner: Box<dyn Controller>,
    pub(crate) exchange: Arc<Exchange>,
    pub(crate) place: usize,
    /// Two packets: no window is less.
    pub(crate) least: Bytes,
}

impl Controller for Scaled {
    fn on_sent(&mut self, sent: &SentInfo, peers: &Peers<'_>) {
        self.inner.on_sent(sent, peers);
    }

    fn on_acked(&mut self, acked: &AckedInfo<'_>, peers: &Peers<'_>) {
        self.inner.on_acked(acked, peers);
    }

    fn on_lost(&mut self, lost: &LostInfo<'_>, peers: &Peers<'_>) {
        self.inner.on_lost(lost, peers);
    }

    fn on_change(&mut self, change: PathChange, peers: &Peers<'_>) {
        self.inner.on_change(change, peers);
    }

    fn published(&self) -> Published {
        let mut published = self.inner.published();
        let factor = self.exchange.lock().answer.get(self.place).copied().unwrap_or(1.0);
        let factor = if factor.is_finite() { f64::from(factor).clamp(0.01, 100.0) } else { 1.0 };
        let cwnd = (published.cwnd.0 as f64 * factor).round() as u64;
        published.cwnd = Bytes(cwnd).max(self.least);
        published
    }
}
