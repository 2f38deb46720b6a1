//! The size of full datagrams on one path, found by probes and taken back when the path stops
//! carrying it: Datagram Packetization Layer Path MTU Discovery.
//! <https://www.rfc-editor.org/rfc/rfc9000#section-14.3>,
//! <https://www.rfc-editor.org/rfc/rfc8899#section-5.2>
//!
//! A probe is a packet with a PING and padding, of a size that was not confirmed yet. It carries
//! nothing that would have to be sent again, its loss is no sign of congestion, and no probe timeout
//! waits for it. `search` picks the sizes; `black_hole` watches over the size that was found.

use quipu_base::{Duration, Instant, PacketNumber};

use crate::config::{MIN_UDP_PAYLOAD, Mtu};
use crate::recovery::{SentRecord, Settled};

mod black_hole;
mod search;

use black_hole::Watch;
use search::Search;

/// Where discovery is. <https://www.rfc-editor.org/rfc/rfc8899#section-5.2>
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No probe is sent: the path is not validated, or sizes are fixed.
    Disabled,
    /// A black hole was found: full datagrams have the least size until one of them arrived.
    Base,
    /// Larger sizes are probed.
    Searching,
    /// A size was found; larger ones are tried again later.
    SearchComplete,
    /// The path contradicts itself: black holes follow one another, or not even the least size
    /// arrives. Nothing is probed for a while.
    Error,
}

/// What moves discovery on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The path carries the least size: its validation, or the handshake, showed it.
    Connected,
    /// A full datagram of the least size arrived after a black hole.
    BaseConfirmed,
    /// Several of them in a row did not.
    BaseFailed,
    /// No larger size is left to probe.
    SearchEnded,
    /// Full datagrams are lost, smaller ones arrive.
    BlackHole,
    /// The same, soon after the last time.
    BlackHoleAgain,
    /// A message from the network told a smaller size.
    TooBig,
    /// It is time to try larger sizes again.
    Raise,
}

/// The moves that there are. Every other step leaves the state as it is.
const TRANSITIONS: [(State, Step, State); 12] = {
    use State::{Base, Disabled, Error, SearchComplete, Searching};
    [
        (Disabled, Step::Connected, Searching),
        (Searching, Step::SearchEnded, SearchComplete),
        (Searching, Step::BlackHole, Base),
        (Searching, Step::BlackHoleAgain, Error),
        (Searching, Step::TooBig, Searching),
        (SearchComplete, Step::Raise, Searching),
        (SearchComplete, Step::BlackHole, Base),
        (SearchComplete, Step::BlackHoleAgain, Error),
        (SearchComplete, Step::TooBig, Searching),
        (Base, Step::BaseConfirmed, Searching),
        (Base, Step::BaseFailed, Error),
        (Error, Step::Raise, Searching),
    ]
};

impl State {
    /// Where `step` leads from here; `None` if it leads nowhere.
    fn after(self, step: Step) -> Option<State> {
        let moves = TRANSITIONS.iter();
        moves.filter(|(from, by, _)| (*from, *by) == (self, step)).map(|(.., to)| *to).next()
    }
}

/// A second black hole within this time of the one before is an error. Our choice, as in quinn and
/// s2n-quic.
const COOL_DOWN: Duration = Duration::from_secs(60);

// https://www.rfc-editor.org/rfc/rfc8899#section-5.1.1
//# This value MUST NOT be smaller than 1 second and SHOULD be larger than 15 seconds.
// It is the last resort: most probes are settled by acknowledgements of other packets.
const LEAST_PROBE_TIMER: Duration = Duration::from_secs(1);

/// So many full datagrams of the least size lost in a row after a black hole are an error: MAX_PROBES
/// of <https://www.rfc-editor.org/rfc/rfc8899#section-5.1.2>.
const MAX_BASE_LOSSES: u32 = 3;

/// Messages of the network that are believed between two searches; our choice. A path that sends more
/// contradicts itself.
const MAX_MESSAGES: u8 = 4;

/// A probe in flight.
#[derive(Clone, Copy, Debug)]
struct Probe {
    number: PacketNumber,
    /// When it counts as lost if nothing tells so before.
    expires_at: Instant,
}

/// The size of full datagrams on one path, and the search for a larger one.
#[derive(Clone, Debug)]
pub(crate) struct PathMtu {
    rule: Mtu,
    state: State,
    /// Size of full datagrams now.
    size: u16,
    search: Search,
    watch: Watch,
    probe: Option<Probe>,
    /// No probe goes before a full datagram left at this instant or later.
    probe_at: Instant,
    /// When the last full datagram with data left: only then larger ones would have been of use.
    full_sent_at: Option<Instant>,
    /// Losses of full datagrams in a row since the last black hole.
    base_losses: u32,
    /// When the size was last taken back: what left before says nothing of it.
    lowered_at: Option<Instant>,
    /// Before this, another black hole is an error.
    cools_until: Instant,
    /// Messages of the network that were believed since the search began.
    messages: u8,
}

impl PathMtu {
    /// A path that is not validated, with full datagrams of `size` bytes.
    pub(crate) fn new(rule: Mtu, size: u16) -> Self {
        PathMtu {
            rule,
            state: State::Disabled,
            size,
            search: Search::default(),
            watch: Watch::default(),
            probe: None,
            probe_at: Instant::FAR_FUTURE,
            full_sent_at: None,
            base_losses: 0,
            lowered_at: None,
            cools_until: Instant::ZERO,
            messages: 0,
        }
    }

    /// Size of full datagrams now.
    // https://www.rfc-editor.org/rfc/rfc9000#section-14.2
    //# QUIC implementations that implement any kind of PMTU discovery therefore SHOULD maintain a
    //# maximum datagram size for each combination of local and remote IP addresses.
    #[inline]
    pub(crate) fn size(&self) -> u16 {
        self.size
    }

    /// Size of datagrams that are to arrive even if the path stopped carrying full ones.
    pub(crate) fn safe_size(&self) -> u16 {
        match self.rule {
            Mtu::Discover { .. } => self.size.min(MIN_UDP_PAYLOAD),
            Mtu::Fixed => self.size,
        }
    }

    /// The path was validated, or the handshake is complete: datagrams of up to `most` bytes may be
    /// sent, as far as the path carries them. With fixed sizes they are sent from now on.
    pub(crate) fn on_connected(&mut self, most: u16) {
        match self.rule {
            Mtu::Fixed => self.size = most,
            Mtu::Discover { .. } => {
                self.size = self.size.min(most);
                self.search = Search::up_to(most);
                self.step(Instant::ZERO, Step::Connected);
            }
        }
    }

    /// Nothing of the handshake arrives: its datagrams have the least size from now on, unless sizes
    /// are fixed.
    pub(crate) fn on_handshake_stalled(&mut self) {
        if self.state == State::Disabled {
            self.size = self.safe_size();
        }
    }

    /// A datagram of full size with data leaves.
    #[inline]
    pub(crate) fn on_full_sent(&mut self, now: Instant) {
        self.full_sent_at = Some(now);
    }

    /// Something is too large for full datagrams: a larger size would be of use.
    pub(crate) fn on_wanted(&mut self, now: Instant) {
        // At once: nothing leaves at this instant that would come first.
        self.full_sent_at = Some(Instant::from_nanos(now.as_nanos().saturating_sub(1)));
    }

    /// The size of the probe that is to go now, if one is.
    // https://www.rfc-editor.org/rfc/rfc8899#section-4.3
    //# A PL MAY inhibit sending probe packets when no application data has been sent since the
    //# previous probe packet.
    #[inline]
    pub(crate) fn wants_probe(&mut self, now: Instant) -> Option<u16> {
        if self.may_want_probe(now) { self.next_probe(now) } else { None }
    }

    /// False if no probe is to go now.
    #[inline]
    pub(crate) fn may_want_probe(&self, now: Instant) -> bool {
        // What leaves at this instant comes first, in however many calls that is.
        let was_full = self.full_sent_at.is_some_and(|at| self.probe_at <= at && at < now);
        // https://www.rfc-editor.org/rfc/rfc8899#section-8
        //# To avoid excessive load, the interval between individual probe packets MUST be at least
        //# one RTT, and the interval between rounds of probing is determined by the
        //# PMTU_RAISE_TIMER.
        was_full && self.probe.is_none()
    }

    fn next_probe(&mut self, now: Instant) -> Option<u16> {
        self.step(now, Step::Raise);
        if self.state != State::Searching {
            return None;
        }
        let next = self.search.next_size(self.size);
        if next.is_none() {
            self.step(now, Step::SearchEnded);
        }
        next
    }

    /// A probe of `size` bytes left; `asked` were asked for. It counts as lost after three of
    /// `probe_timeout`.
    pub(crate) fn on_probe_sent(
        &mut self,
        now: Instant,
        number: PacketNumber,
        (size, asked): (u16, u16),
        probe_timeout: Duration,
    ) {
        if size < asked {
            // The way out carries no more.
            self.search.limit(size);
        }
        let timer = probe_timeout.saturating_mul(3).max(LEAST_PROBE_TIMER);
        self.probe = Some(Probe { number, expires_at: now + timer });
    }

    /// When the probe in flight counts as lost.
    #[inline]
    pub(crate) fn probe_expires_at(&self) -> Option<Instant> {
        self.probe.map(|probe| probe.expires_at)
    }

    /// The probe in flight, if its time is over: it is waited for no more.
    pub(crate) fn take_expired_probe(&mut self, now: Instant) -> Option<PacketNumber> {
        let probe = self.probe.take_if(|probe| probe.expires_at <= now)?;
        Some(probe.number)
    }

    /// Packets of the path were acknowledged or declared lost. `rtt`: the round-trip time. True if
    /// the size of full datagrams changed.
    pub(crate) fn on_settled(&mut self, now: Instant, rtt: Duration, settled: &Settled) -> bool {
        if self.state == State::Disabled {
            return false;
        }
        let before = self.size;
        for record in settled.acked().iter().chain(settled.late()) {
            self.on_acked(now, record);
        }
        for record in settled.lost() {
            self.on_lost(now, record);
        }
        if self.watch.is_black_hole(rtt) {
            self.on_black_hole(now);
        }
        self.size != before
    }

    fn on_acked(&mut self, now: Instant, record: &SentRecord) {
        if record.mtu_probe {
            self.forget_probe(record);
            // One that was given up may come late.
            if matches!(self.state, State::Searching | State::SearchComplete)
                && self.is_of_now(record)
            {
                self.search.on_confirmed(record.bytes);
                self.size = self.size.max(record.bytes.min(self.search.most()));
            }
            return;
        }
        self.watch.on_acked(record, self.size);
        if record.bytes >= MIN_UDP_PAYLOAD && self.is_of_now(record) {
            self.base_losses = 0;
            self.step(now, Step::BaseConfirmed);
        }
    }

    fn on_lost(&mut self, now: Instant, record: &SentRecord) {
        // https://www.rfc-editor.org/rfc/rfc8899#section-5.1.3
        //# Some probe loss is expected while searching, therefore loss of a single probe is not an
        //# indication of a PMTU problem.
        if record.mtu_probe {
            self.forget_probe(record);
            if self.is_of_now(record) {
                self.search.on_lost(record.bytes);
            }
            return;
        }
        self.watch.on_lost(record);
        let of_base = record.bytes >= MIN_UDP_PAYLOAD && self.is_of_now(record);
        if self.state == State::Base && of_base {
            self.base_losses += 1;
            if self.base_losses >= MAX_BASE_LOSSES {
                self.step(now, Step::BaseFailed);
            }
        }
    }

    /// Whether a packet left after the size was last taken back.
    fn is_of_now(&self, record: &SentRecord) -> bool {
        self.lowered_at.is_none_or(|at| record.sent_at > at)
    }

    fn forget_probe(&mut self, record: &SentRecord) {
        if self.probe.is_some_and(|probe| probe.number == record.pn) {
            self.probe = None;
        }
    }

    /// The path carries full datagrams no more.
    fn on_black_hole(&mut self, now: Instant) {
        let again = now < self.cools_until;
        let step = if again { Step::BlackHoleAgain } else { Step::BlackHole };
        if self.state.after(step).is_some() {
            self.search = Search::up_to(self.search.most());
            self.search.on_lost(self.size);
            self.fall_to_base(now);
            self.cools_until = now + COOL_DOWN;
            self.step(now, step);
        }
    }

    /// A message from the network says that the path carries datagrams of `size` bytes at most, as
    /// an answer to one that was larger. True if the size of full datagrams changed.
    ///
    /// It is used as a limit of the search that follows, and never to raise anything.
    // https://www.rfc-editor.org/rfc/rfc9000#section-14.2.1
    //# An endpoint MUST NOT increase the PMTU based on ICMP messages; see Item 6 in Section 3 of
    //# [DPLPMTUD].
    pub(crate) fn on_too_big(&mut self, now: Instant, size: u16) -> bool {
        // https://www.rfc-editor.org/rfc/rfc9000#section-14.2.1
        //# An endpoint MUST ignore an ICMP message that claims the PMTU has decreased below QUIC's
        //# smallest allowed maximum datagram size.
        let plausible = size >= MIN_UDP_PAYLOAD && size < self.search.most();
        if !plausible || self.messages >= MAX_MESSAGES {
            return false;
        }
        let Some(to) = self.state.after(Step::TooBig) else { return false };
        self.messages += 1;
        self.search.limit(size);
        let lowered = size < self.size;
        if lowered {
            // https://www.rfc-editor.org/rfc/rfc8899#section-4.6.2
            //# The PLPMTU SHOULD be set to BASE_PLPMTU (the PLPMTU is reduced to the BASE_PLPMTU to
            //# avoid unnecessary packet loss when a black hole is encountered).
            self.fall_to_base(now);
        }
        self.state = to;
        self.probe_at = Instant::ZERO;
        lowered
    }

    /// The path leads to another address of the same host: what is on its way may be lost for that.
    pub(crate) fn on_moved(&mut self, now: Instant) {
        self.watch = Watch::from(now);
        self.lowered_at = Some(now);
        self.base_losses = 0;
        self.probe = None;
    }

    fn fall_to_base(&mut self, now: Instant) {
        self.size = self.size.min(MIN_UDP_PAYLOAD);
        self.on_moved(now);
    }

    fn step(&mut self, now: Instant, step: Step) {
        let Mtu::Discover { raise_after } = self.rule else { return };
        let Some(to) = self.state.after(step) else { return };
        if step == Step::Raise {
            self.search.restart();
            self.messages = 0;
        }
        self.state = to;
        self.probe_at = match to {
            State::Disabled | State::Base => Instant::FAR_FUTURE,
            State::Searching => Instant::ZERO,
            State::SearchComplete => now + raise_after,
            State::Error => now + COOL_DOWN,
        };
    }
}

#[cfg(test)]
mod tests;
