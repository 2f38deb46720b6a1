//! The addresses of one path: where its packets go, and which others may take their place.
//! <https://www.rfc-editor.org/rfc/rfc9000#section-9>
//!
//! Besides the address in use, a path knows one other at most: the one to which it returns if the
//! new one does not prove to be the peer's, or one that is tried before the path moves there. Which
//! moves there are is a table ([`State::after`]); what they entail for packets, connection IDs and
//! window is the connection's to do.

use std::net::SocketAddr;

use quipu_base::{Duration, Instant};

use super::{Amplification, Validation};
use crate::route::Route;

mod table;

pub(crate) use table::{Action, Input, State};

/// Moves to addresses never seen that a path makes in a row. Our choice: with
/// [`MOVE_INTERVAL`], it bounds what a peer that keeps moving, or an attacker that copies packets,
/// can cost.
const MOVES_AT_ONCE: u32 = 8;
/// After this long, one more.
const MOVE_INTERVAL: Duration = Duration::from_secs(1);

/// One pair of addresses that a path uses, or may.
#[derive(Clone, Debug)]
pub(crate) struct Leg {
    pub(crate) route: Route,
    /// The peer answered a full-sized challenge there.
    pub(crate) is_proved: bool,
    pub(crate) amplification: Amplification,
    pub(crate) validation: Validation,
}

impl Leg {
    /// `trusted`: nothing sent there could hurt a third party, so that no amplification limit holds.
    pub(crate) fn new(route: Route, trusted: bool) -> Self {
        Leg {
            route,
            is_proved: false,
            amplification: Amplification::new(trusted),
            validation: Validation::default(),
        }
    }

    /// An address from which a datagram of so many bytes came, and nothing else is known.
    pub(crate) fn received(route: Route, datagram: usize) -> Self {
        // https://www.rfc-editor.org/rfc/rfc9000#section-9.3
        //# An endpoint MAY send data to an unvalidated peer address, but it MUST protect against
        //# potential attacks as described in Sections 9.3.1 and 9.3.2.
        let mut leg = Leg::new(route, false);
        leg.amplification.on_received(datagram);
        leg
    }

    /// The peer proved, in whatever way, that it receives there: true if it had not before.
    pub(crate) fn prove(&mut self) -> bool {
        self.is_proved = true;
        self.amplification.validate()
    }
}

/// What the other address is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The path used it before, and returns there if the new address is not proved.
    Before,
    /// The peer tried it, and may move there.
    Tried,
    /// The peer moved there, and is followed once it is proved.
    Awaited,
    /// This end moves there once it is proved.
    Chosen,
}

/// Which of a path's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// The one in use.
    Active,
    /// The other one.
    Other,
}

/// The addresses of a path.
#[derive(Clone, Debug)]
pub(crate) struct Addresses {
    active: Leg,
    /// Boxed, since most paths never move.
    other: Option<(Purpose, Box<Leg>)>,
    moves: Moves,
}

/// How many moves to addresses never seen are left.
#[derive(Clone, Copy, Debug)]
struct Moves {
    left: u32,
    since: Instant,
}

impl Moves {
    fn take(&mut self, now: Instant) -> bool {
        let interval = MOVE_INTERVAL.as_nanos();
        let more = (now - self.since).as_nanos() / interval;
        if more > 0 {
            self.left = u32::try_from(more)
                .map_or(MOVES_AT_ONCE, |more| self.left.saturating_add(more).min(MOVES_AT_ONCE));
            self.since += MOVE_INTERVAL.saturating_mul(more);
        }
        let may = self.left > 0;
        self.left -= u32::from(may);
        may
    }
}

impl Addresses {
    /// A path that begins with `active`.
    pub(crate) fn new(now: Instant, active: Leg) -> Self {
        Addresses { active, other: None, moves: Moves { left: MOVES_AT_ONCE, since: now } }
    }

    /// Where packets go.
    pub(crate) fn route(&self) -> Route {
        self.active.route
    }

    /// The address in use.
    pub(crate) fn active(&self) -> &Leg {
        &self.active
    }

    /// The same, to change it.
    pub(crate) fn active_mut(&mut self) -> &mut Leg {
        &mut self.active
    }

    /// The other address, if there is one, and what it is for.
    pub(crate) fn other(&self) -> Option<(Purpose, &Leg)> {
        self.other.as_ref().map(|(purpose, leg)| (*purpose, &**leg))
    }

    /// One of both.
    pub(crate) fn leg(&self, which: Which) -> Option<&Leg> {
        match which {
            Which::Active => Some(&self.active),
            Which::Other => self.other.as_ref().map(|(_, leg)| &**leg),
        }
    }

    /// The same, to change it.
    pub(crate) fn leg_mut(&mut self, which: Which) -> Option<&mut Leg> {
        match which {
            Which::Active => Some(&mut self.active),
            Which::Other => self.other.as_mut().map(|(_, leg)| &mut **leg),
        }
    }

    /// Where the peer proved that it receives.
    pub(crate) fn proved(&self) -> Option<Route> {
        let other = self.other.as_ref().map(|(_, leg)| &**leg);
        let mut proved = [Some(&self.active), other].into_iter().flatten();
        proved.find(|leg| leg.is_proved).map(|leg| leg.route)
    }

    /// Which of both a route is.
    pub(crate) fn find(&self, route: &Route) -> Option<Which> {
        if self.active.route == *route {
            return Some(Which::Active);
        }
        let is_other = self.other.as_ref().is_some_and(|(_, leg)| leg.route == *route);
        is_other.then_some(Which::Other)
    }

    /// True if one of them leads to `remote`.
    pub(crate) fn reach(&self, remote: SocketAddr) -> bool {
        let other = self.other.as_ref().map(|(_, leg)| &**leg);
        [Some(&self.active), other].into_iter().flatten().any(|leg| leg.route.remote == remote)
    }

    /// A datagram of `bytes` came by `route`: as many more may be sent there, three times.
    pub(crate) fn on_received(&mut self, route: &Route, bytes: usize) {
        if let Some(leg) = self.find(route).and_then(|which| self.leg_mut(which)) {
            leg.amplification.on_received(bytes);
        }
    }

    /// Where the path stands.
    pub(crate) fn state(&self) -> State {
        match &self.other {
            None if self.active.is_proved => State::Settled,
            None => State::Fresh,
            Some((Purpose::Before, _)) => State::Moved,
            Some((Purpose::Tried, leg)) if leg.is_proved => State::Ready,
            Some((Purpose::Tried, _)) => State::Tried,
            Some((Purpose::Awaited, _)) => State::Awaited,
            Some((Purpose::Chosen, _)) => State::Moving,
        }
    }

    /// Something happened that may change the addresses; `leg`: an address never seen that it is
    /// about. What was done: the caller sees to the rest.
    pub(crate) fn on(&mut self, now: Instant, input: Input, leg: Option<Leg>) -> Action {
        let (next, action) = self.state().after(input);
        if action.is_new() && (leg.is_none() || !input.is_ours() && !self.moves.take(now)) {
            return Action::None;
        }
        match input {
            Input::ActiveProved => {
                self.active.prove();
            }
            Input::OtherProved => {
                if let Some((_, leg)) = &mut self.other {
                    leg.prove();
                }
            }
            _ => {}
        }
        match (action, leg) {
            (Action::Replace, Some(leg)) => self.active = leg,
            (Action::Move, Some(leg)) => {
                let before = std::mem::replace(&mut self.active, leg);
                self.other = Some((Purpose::Before, Box::new(before)));
            }
            (Action::Try, Some(leg)) => self.other = Some((Purpose::Tried, Box::new(leg))),
            (Action::Await, Some(leg)) => self.other = Some((Purpose::Awaited, Box::new(leg))),
            (Action::Adopt, _) => {
                if let Some((purpose, _)) = &mut self.other {
                    *purpose = Purpose::Awaited;
                }
            }
            (Action::Choose, Some(leg)) => self.other = Some((Purpose::Chosen, Box::new(leg))),
            (Action::Follow, _) => {
                if let Some((purpose, leg)) = &mut self.other {
                    std::mem::swap(&mut self.active, leg);
                    *purpose = Purpose::Before;
                }
            }
            (Action::Switch | Action::Return, _) => {
                if let Some((_, leg)) = self.other.take() {
                    // It was proved: a challenge under way is of no interest any more.
                    self.active = Leg { validation: Validation::default(), ..*leg };
                }
            }
            (Action::Settle | Action::Drop, _) => self.other = None,
            _ => {}
        }
        debug_assert_eq!(self.state(), next, "{action:?} after {input:?}");
        action
    }

    /// The path is given up: nothing is validated any more.
    pub(crate) fn stop(&mut self) {
        self.active.validation = Validation::default();
        self.other = None;
    }

    /// When the next challenge is due, or a validation is given up.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        let other = self.other.as_ref().and_then(|(_, leg)| leg.validation.resend_at());
        match (self.active.validation.resend_at(), other) {
            (Some(active), Some(other)) => Some(active.min(other)),
            (active, other) => active.or(other),
        }
    }

    /// True if a challenge is to be sent to one of them.
    pub(crate) fn wants_challenge(&self) -> bool {
        self.active.validation.wants_challenge()
            || self.other.as_ref().is_some_and(|(_, leg)| leg.validation.wants_challenge())
    }
}

#[cfg(test)]
mod tests;
