//! Key phases of 1-RTT packets as a state machine: which keys an endpoint holds, when it may begin
//! the next phase, and when the peer breaks the rules. The keys themselves are elsewhere.
//! <https://www.rfc-editor.org/rfc/rfc9001#section-6>

use quipu_base::{PacketNumber, PathId};
use smallvec::SmallVec;

use crate::error::{ErrorCode, TransportError};

/// Where an endpoint is in its present phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// We began the phase, and nothing of the peer's came in it. The keys of the phase before open
    /// what comes.
    Begun,
    /// The peer was seen in the phase a short while ago. The keys of the phase before open what was
    /// overtaken.
    Shared,
    /// Keys of the phase before are gone, or there was none.
    Settled,
}

/// What moves an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// We begin the next phase.
    Begin,
    /// A packet of the peer's opened with the keys of the present phase.
    PeerPresent,
    /// A packet of the peer's opened with the keys of the next phase.
    PeerNext,
    /// Packets that were overtaken have had time to come.
    Expire,
}

/// What becomes of a cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    /// The endpoint stays in its phase.
    To(State),
    /// The next phase begins.
    Next(State),
    /// It cannot be now, or makes no difference.
    Refused,
    /// The peer broke the protocol.
    Fault,
}

impl State {
    /// `acked`: a packet that we sent in the present phase was acknowledged. `answered`: we
    /// acknowledged one that the peer sent in it.
    pub(super) const fn on(self, cause: Cause, acked: bool, answered: bool) -> Move {
        match (self, cause) {
            // https://www.rfc-editor.org/rfc/rfc9001#section-6.1
            //# An endpoint MUST NOT initiate a subsequent key update unless it has received an
            //# acknowledgment for a packet that was sent protected with keys from the current key
            //# phase.
            (State::Settled, Cause::Begin) if acked => Move::Next(State::Begun),
            // https://www.rfc-editor.org/rfc/rfc9001#section-6.5
            //# Endpoints SHOULD wait three times the PTO before initiating a key update after
            //# receiving an acknowledgment that confirms that the previous key update was
            //# received.
            (_, Cause::Begin) => Move::Refused,
            (State::Begun | State::Shared, Cause::PeerPresent) => Move::To(State::Shared),
            (State::Settled, Cause::PeerPresent) => Move::Refused,
            // A peer that heard nothing of us in this phase cannot have ended it.
            (State::Begun, Cause::PeerNext) => Move::Fault,
            // https://www.rfc-editor.org/rfc/rfc9001#section-6.2
            // A peer that begins a phase before the one in between was acknowledged is too fast.
            (State::Shared | State::Settled, Cause::PeerNext) if answered => {
                Move::Next(State::Shared)
            }
            (State::Shared | State::Settled, Cause::PeerNext) => Move::Fault,
            (State::Shared, Cause::Expire) => Move::To(State::Settled),
            (State::Begun | State::Settled, Cause::Expire) => Move::Refused,
        }
    }
}

/// The lowest packet number of a phase on each path, as each has a space of its own.
/// <https://www.rfc-editor.org/rfc/rfc10069#section-2.5>
#[derive(Debug, Default)]
struct Lowest(SmallVec<[(PathId, PacketNumber); 2]>);

impl Lowest {
    fn get(&self, path: PathId) -> Option<PacketNumber> {
        self.0.iter().find(|(other, _)| *other == path).map(|(_, number)| *number)
    }

    fn note(&mut self, path: PathId, number: PacketNumber) {
        match self.0.iter_mut().find(|(other, _)| *other == path) {
            Some((_, lowest)) => *lowest = number.min(*lowest),
            None => self.0.push((path, number)),
        }
    }
}

/// With which keys a packet whose phase bit is not the present one may open, in the order in which
/// they are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Candidates {
    Next,
    NextElsePrevious,
    Previous,
    PreviousElseNext,
}

/// The phases of a connection.
#[derive(Debug)]
pub(super) struct Phases {
    state: State,
    /// Phases before the present one; the phase bit is its lowest.
    count: u64,
    acked: bool,
    answered: bool,
    /// What the peer sent in the present phase, until it is settled and answered.
    received: Lowest,
    /// What we sent in it, until it is settled and acknowledged.
    sent: Lowest,
}

impl Phases {
    /// The first phase, in which the rules of later ones do not hold: what either end sends is of
    /// it.
    pub(super) fn new() -> Self {
        Phases {
            state: State::Settled,
            count: 0,
            acked: false,
            answered: true,
            received: Lowest::default(),
            sent: Lowest::default(),
        }
    }

    /// The phase bit of what we send.
    pub(super) const fn bit(&self) -> bool {
        self.count & 1 == 1
    }

    /// How often the next phase began.
    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    /// True if the next phase may begin.
    #[cfg(test)]
    pub(super) fn may_begin(&self) -> bool {
        matches!(self.state.on(Cause::Begin, self.acked, self.answered), Move::Next(_))
    }

    /// We begin the next phase; false if that cannot be now.
    pub(super) fn begin(&mut self) -> bool {
        match self.state.on(Cause::Begin, self.acked, self.answered) {
            Move::Next(state) => {
                self.next(state);
                true
            }
            _ => false,
        }
    }

    /// A packet of the present phase opened. True if keys of the phase before need be kept for a
    /// while only, from now on.
    #[inline]
    pub(super) fn on_present(&mut self, path: PathId, number: PacketNumber) -> bool {
        if self.state == State::Settled && self.answered {
            return false;
        }
        self.received.note(path, number);
        let first = self.state == State::Begun;
        if let Move::To(state) = self.state.on(Cause::PeerPresent, self.acked, self.answered) {
            self.state = state;
        }
        first
    }

    /// A packet of the next phase opened.
    pub(super) fn on_next(
        &mut self,
        path: PathId,
        number: PacketNumber,
    ) -> Result<(), TransportError> {
        match self.state.on(Cause::PeerNext, self.acked, self.answered) {
            Move::Next(state) => {
                self.next(state);
                self.received.note(path, number);
                Ok(())
            }
            _ => Err(fault("a key phase ended before it was acknowledged")),
        }
    }

    /// A packet of the phase before opened.
    pub(super) fn on_previous(
        &self,
        path: PathId,
        number: PacketNumber,
    ) -> Result<(), TransportError> {
        // https://www.rfc-editor.org/rfc/rfc9001#section-6.4
        //# An endpoint that successfully removes protection with old keys when newer keys were
        //# used for packets with lower packet numbers MUST treat this as a connection error of
        //# type KEY_UPDATE_ERROR.
        match self.received.get(path) {
            Some(newer) if newer < number => Err(fault("old keys after newer ones")),
            _ => Ok(()),
        }
    }

    /// The keys for a packet whose phase bit is not the present one.
    pub(super) fn candidates(&self, path: PathId, number: PacketNumber) -> Candidates {
        match (self.state, self.received.get(path)) {
            (State::Settled, _) => Candidates::Next,
            // https://www.rfc-editor.org/rfc/rfc9001#section-5.5
            //# Once an endpoint successfully receives a packet with a given packet number, it MUST
            //# discard all packets in the same packet number space with higher packet numbers if
            //# they cannot be successfully unprotected with either the same key, or -- if there is
            //# a key update -- a subsequent packet protection key; see Section 6.
            (_, Some(present)) if present < number => Candidates::NextElsePrevious,
            (_, Some(_)) => Candidates::Previous,
            // Nothing of the present phase came on this path yet.
            (_, None) => Candidates::PreviousElseNext,
        }
    }

    /// Packets that were overtaken have had time to come: true if the keys of the phase before go.
    pub(super) fn expire(&mut self) -> bool {
        match self.state.on(Cause::Expire, self.acked, self.answered) {
            Move::To(state) => {
                self.state = state;
                true
            }
            _ => false,
        }
    }

    /// A packet is sealed.
    #[inline]
    pub(super) fn on_sealed(&mut self, path: PathId, number: PacketNumber) {
        if self.count > 0
            && (!self.acked || self.state != State::Settled)
            && self.sent.get(path).is_none()
        {
            self.sent.note(path, number);
        }
    }

    /// Packets of ours on `path` were acknowledged, up to `largest`. `old`: the acknowledgement
    /// came in a packet of the phase before.
    pub(super) fn on_acked(
        &mut self,
        path: PathId,
        largest: PacketNumber,
        old: bool,
    ) -> Result<(), TransportError> {
        let present = match self.sent.get(path) {
            Some(first) => first <= largest,
            None => self.count == 0,
        };
        // https://www.rfc-editor.org/rfc/rfc9001#section-6.2
        // Whoever acknowledges a packet of the new phase has read it, and answers in that phase.
        if present && old {
            return Err(fault("a packet of the new key phase was acknowledged in the old one"));
        }
        self.acked |= present;
        Ok(())
    }

    /// True while no packet of the peer's in the present phase was acknowledged.
    #[inline]
    pub(super) fn owes_answer(&self) -> bool {
        !self.answered
    }

    /// We acknowledge packets of the peer's on `path`, up to `largest`.
    pub(super) fn on_ack_sent(&mut self, path: PathId, largest: PacketNumber) {
        self.answered |= self.received.get(path).is_some_and(|first| first <= largest);
    }

    fn next(&mut self, state: State) {
        *self = Phases {
            state,
            count: self.count + 1,
            acked: false,
            answered: false,
            received: Lowest::default(),
            sent: Lowest::default(),
        };
    }
}

fn fault(reason: &'static str) -> TransportError {
    TransportError::new(ErrorCode::KEY_UPDATE_ERROR, reason)
}

#[cfg(test)]
mod tests;
