//! Two honest ends, and somebody on the wire between them.

use std::collections::BTreeMap;

use quipu_base::{Duration, Instant, Role};
use quipu_quic::Route;

use super::end::{End, Setup, arrival};

/// A datagram on its way.
#[derive(Clone, Debug)]
pub struct Flight {
    /// Which end sent it, or is said to have.
    pub from: Role,
    /// From where to where, as its sender sees it.
    pub route: Route,
    /// Its ECN bits.
    pub ecn: u8,
    /// Its UDP payload.
    pub bytes: Vec<u8>,
}

/// What becomes of a datagram: copies, changed or not, each with the time that it takes.
pub type Fate = Vec<(Duration, Flight)>;

/// Decides what becomes of each datagram; the duration is what the wire would take.
pub type OnWire = Box<dyn FnMut(Instant, Duration, Flight) -> Fate>;

/// A client and a server in virtual time.
pub struct Pair {
    now: Instant,
    delay: Duration,
    client: End,
    server: End,
    in_flight: BTreeMap<(Instant, u64), Flight>,
    /// Datagrams so far: orders those of one instant.
    count: u64,
    /// All that was sent, in order, while it is wanted.
    log: Option<Vec<(Instant, Flight)>>,
    on_wire: Option<OnWire>,
}

impl Pair {
    /// Two ends that begin to connect; a datagram takes `delay`.
    pub fn new(setup: &Setup, delay: Duration) -> Self {
        Pair {
            now: Instant::ZERO,
            delay,
            server: End::server(setup),
            client: End::client(Instant::ZERO, setup),
            in_flight: BTreeMap::new(),
            count: 0,
            log: Some(Vec::new()),
            on_wire: None,
        }
    }

    /// Two ends whose handshake is confirmed on both sides.
    ///
    /// # Panics
    /// If they cannot connect within ten seconds of virtual time.
    pub fn connected(setup: &Setup, delay: Duration) -> Self {
        let mut pair = Pair::new(setup, delay);
        pair.connect();
        pair
    }

    /// Runs until the handshake is confirmed on both sides, and what follows it was said.
    ///
    /// # Panics
    /// If the ends cannot connect within ten seconds of virtual time.
    pub fn connect(&mut self) {
        let limit = self.now + Duration::from_secs(10);
        while !(self.client.is_confirmed() && self.server.is_confirmed()) {
            let goes_on = self.step(limit);
            let reasons = [self.client.close_reason(), self.server.close_reason()];
            assert!(goes_on, "no connection at {}: {reasons:?}", self.now);
        }
        self.run(self.delay.saturating_mul(4) + Duration::from_millis(100));
    }

    /// The present.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The client.
    pub fn client(&mut self) -> &mut End {
        &mut self.client
    }

    /// The server.
    pub fn server(&mut self) -> &mut End {
        &mut self.server
    }

    /// The end of `role`.
    pub fn end(&mut self, role: Role) -> &mut End {
        if role.is_client() { &mut self.client } else { &mut self.server }
    }

    /// From now on `on_wire` decides what becomes of each datagram.
    pub fn intercept(&mut self, on_wire: impl FnMut(Instant, Duration, Flight) -> Fate + 'static) {
        self.on_wire = Some(Box::new(on_wire));
    }

    /// A datagram arrives now that is said to come from the end of `flight.from`.
    pub fn inject(&mut self, flight: &Flight) {
        let now = self.now;
        let mut bytes = flight.bytes.clone();
        let end = self.end(flight.from.peer());
        end.receive(now, arrival(flight.route, flight.ecn), &mut bytes);
        self.flush();
    }

    /// Everything that was sent so far.
    pub fn log(&self) -> &[(Instant, Flight)] {
        self.log.as_deref().unwrap_or_default()
    }

    /// Forgets what was sent so far, and all that will be.
    pub fn forget(&mut self) {
        self.log = None;
    }

    /// Lets the applications do something now, and both ends send.
    pub fn act<R>(&mut self, role: Role, act: impl FnOnce(&mut End, Instant) -> R) -> R {
        let now = self.now;
        let result = act(self.end(role), now);
        self.flush();
        result
    }

    /// Runs for so long.
    pub fn run(&mut self, time: Duration) {
        let until = self.now + time;
        while self.step(until) {}
        self.now = until;
    }

    /// Runs until `done`, at most for so long; true if it came to that.
    pub fn run_until(&mut self, time: Duration, mut done: impl FnMut(&mut Self) -> bool) -> bool {
        let until = self.now + time;
        loop {
            if done(self) {
                return true;
            }
            if !self.step(until) {
                self.now = until;
                return done(self);
            }
        }
    }

    /// The next event up to `until`; false if there is none.
    fn step(&mut self, until: Instant) -> bool {
        self.flush();
        let arrival_at = self.in_flight.first_key_value().map(|((at, _), _)| *at);
        let deadlines = [self.client.deadline(), self.server.deadline()];
        let next = deadlines.into_iter().chain([arrival_at]).flatten().min();
        let Some(at) = next.filter(|at| *at <= until) else { return false };
        self.now = self.now.max(at);
        let now = self.now;
        if arrival_at.is_some_and(|at| at <= now) {
            let Some((_, flight)) = self.in_flight.pop_first() else { return false };
            let mut bytes = flight.bytes;
            let end = self.end(flight.from.peer());
            end.receive(now, arrival(flight.route, flight.ecn), &mut bytes);
            self.flush();
            return true;
        }
        for role in [Role::Client, Role::Server] {
            if self.end(role).deadline().is_some_and(|at| at <= now) {
                let served = self.end(role).wait(now, now);
                for (_, sent) in served {
                    self.send(role, sent);
                }
                assert_eq!(self.end(role).stuck(), None, "a deadline of the {role:?} stands");
            }
        }
        self.flush();
        true
    }

    fn flush(&mut self) {
        for role in [Role::Client, Role::Server] {
            let now = self.now;
            for sent in self.end(role).run(now) {
                self.send(role, sent);
            }
        }
    }

    fn send(&mut self, from: Role, sent: super::end::Sent) {
        let flight = Flight { from, route: sent.route, ecn: sent.ecn, bytes: sent.bytes };
        if let Some(log) = &mut self.log {
            log.push((self.now, flight.clone()));
        }
        let (now, delay) = (self.now, self.delay);
        let fate = match &mut self.on_wire {
            Some(decide) => decide(now, delay, flight),
            None => vec![(delay, flight)],
        };
        for (takes, flight) in fate {
            self.count += 1;
            self.in_flight.insert((now + takes, self.count), flight);
        }
    }

    /// Ends the conversation: both ends with what they sent so far.
    pub fn into_parts(self) -> (End, End, Vec<(Instant, Flight)>, Instant) {
        (self.client, self.server, self.log.unwrap_or_default(), self.now)
    }
}
