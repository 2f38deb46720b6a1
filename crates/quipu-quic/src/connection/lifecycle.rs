//! From handshake to close: the states of a connection and the moves between them.
//! <https://www.rfc-editor.org/rfc/rfc9000#section-10>

use quipu_base::{Duration, Instant};
use thiserror::Error;

use crate::config::{MIN_UDP_PAYLOAD, TransportConfig};
use crate::error::{ErrorCode, TlsAlert, TransportError};

mod farewell;
mod idle;
mod keep_alive;
mod phase;

pub(crate) use farewell::Farewell;
use idle::IdleTimer;
use keep_alive::KeepAlive;
pub(crate) use phase::Phase;
use phase::Step;

/// Why a connection ended.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CloseReason {
    /// We found a fault of the peer.
    #[error("closed for a fault of the peer: {0}")]
    PeerFault(TransportError),
    /// The peer's transport closed.
    #[error("the peer closed with error {code:#x}: {reason}")]
    PeerTransport {
        /// Its error code. <https://www.rfc-editor.org/rfc/rfc9000#section-20.1>
        code: u64,
        /// Its words.
        reason: String,
    },
    /// The peer's application closed.
    #[error("the peer's application closed with code {code}: {reason}")]
    PeerApplication {
        /// Its code.
        code: u64,
        /// Its words.
        reason: String,
    },
    /// Our application closed.
    #[error("closed by the application with code {code}")]
    Application {
        /// Its code.
        code: u64,
    },
    /// Nothing came for too long.
    #[error("nothing came for the idle timeout")]
    IdleTimeout,
    /// The handshake was not complete in time.
    #[error("the handshake took too long")]
    HandshakeTimeout,
    /// All packet numbers of a path are used up.
    #[error("the packet numbers of a path are used up")]
    PacketNumbers,
    /// The peer lost the connection's state.
    #[error("the peer reset the connection")]
    StatelessReset,
    /// The server rejected early data (0-RTT), and allows less than was sent of it. A connection
    /// without early data is as good as another.
    #[error("the server rejected early data and allows less than was sent")]
    EarlyDataLimits,
    /// No version is spoken by both.
    #[error("no QUIC version in common with the peer")]
    Version,
}

impl CloseReason {
    /// The alert of TLS with which the connection ended, ours or the peer's, if it ended with one:
    /// the handshake failed.
    /// <https://www.rfc-editor.org/rfc/rfc9001#section-4.8>
    pub fn tls_alert(&self) -> Option<TlsAlert> {
        match self {
            CloseReason::PeerFault(error) => error.code.alert(),
            CloseReason::PeerTransport { code, .. } => ErrorCode(*code).alert(),
            _ => None,
        }
    }
}

/// What CONNECTION_CLOSE says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CloseFrame {
    Transport(TransportError),
    Application { code: u64, reason: Vec<u8> },
}

/// What came since closing, and what was answered.
#[derive(Debug)]
struct Answers {
    /// Datagrams that came, and at how many the next answer goes.
    received: u64,
    next_at: u64,
    /// Bytes of UDP payload that came, and that were sent as answers.
    bytes_received: u64,
    bytes_sent: u64,
    /// Size of the last datagram with CONNECTION_CLOSE; all are about the same.
    size: u64,
}

impl Default for Answers {
    fn default() -> Self {
        Answers {
            received: 0,
            next_at: 1,
            bytes_received: 0,
            bytes_sent: 0,
            size: u64::from(MIN_UDP_PAYLOAD),
        }
    }
}

/// A connection's phase with what closing needs, and the timer that ends it without a word.
#[derive(Debug)]
pub(crate) struct Lifecycle {
    phase: Phase,
    /// When closing or draining ends.
    until: Option<Instant>,
    idle: IdleTimer,
    keep_alive: KeepAlive,
    /// The connection closes once the peer has everything.
    farewell: Option<Box<Farewell>>,
    /// The handshake is complete by then, or the connection ends.
    handshake_until: Option<Instant>,
    /// Both boxed, for there are none while the connection lives.
    reason: Option<Box<CloseReason>>,
    frame: Option<Box<CloseFrame>>,
    send_close: bool,
    /// Boxed as well, for the same reason.
    answers: Option<Box<Answers>>,
    connected_at: Option<Instant>,
    confirmed_at: Option<Instant>,
}

impl Lifecycle {
    /// `config`: its idle timeout is ours alone. `handshake_until`: when the handshake has taken too
    /// long.
    pub(crate) fn new(
        now: Instant,
        config: &TransportConfig,
        handshake_until: Option<Instant>,
    ) -> Self {
        Lifecycle {
            phase: Phase::Handshaking,
            until: None,
            idle: IdleTimer::new(now, config.idle_timeout),
            keep_alive: KeepAlive::new(now, config.keep_alive),
            farewell: None,
            handshake_until,
            reason: None,
            frame: None,
            send_close: false,
            answers: None,
            connected_at: None,
            confirmed_at: None,
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase
    }

    /// Takes a step; false if it changes nothing.
    fn step(&mut self, step: Step) -> bool {
        let next = self.phase.after(step);
        self.phase = next.unwrap_or(self.phase);
        next.is_some()
    }

    /// The peer told its idle timeout: the shorter of both counts; zero is none.
    pub(crate) fn agree_idle_timeout(&mut self, peers: Duration) {
        self.idle.agree(peers);
    }

    /// A packet of the peer came.
    pub(crate) fn on_received(&mut self, now: Instant) {
        self.idle.on_received(now);
    }

    /// An ack-eliciting packet left.
    pub(crate) fn on_eliciting_sent(&mut self, now: Instant) {
        self.idle.on_sent(now);
        self.keep_alive.on_sent(now);
    }

    /// A sign of life was asked for.
    pub(crate) fn on_kept_alive(&mut self, now: Instant) {
        self.keep_alive.on_sent(now);
    }

    /// When the connection needs a sign of life; not before both ends know that TLS finished.
    /// `is_blocked`: credit holds back data, so that it must not end idle.
    #[inline]
    pub(crate) fn keep_alive_deadline(&self, is_blocked: bool) -> Option<Instant> {
        let at_least = if is_blocked { self.idle.half() } else { None };
        self.keep_alive.deadline(at_least).filter(|_| self.is_confirmed())
    }

    /// The connection closes once the peer has everything.
    pub(crate) fn bid_farewell(&mut self, farewell: Farewell) {
        if self.is_open() {
            self.farewell = Some(Box::new(farewell));
        }
    }

    /// What waits until the peer has everything.
    #[inline]
    pub(crate) fn farewell(&self) -> Option<&Farewell> {
        self.farewell.as_deref().filter(|_| self.is_open())
    }

    /// When the connection ends if nothing comes.
    pub(crate) fn idle_deadline(
        &self,
        longest_probe_timeout: impl FnOnce() -> Duration,
    ) -> Option<Instant> {
        self.idle.deadline(longest_probe_timeout)
    }

    /// False if it does not end before `at` for lack of packets.
    pub(crate) fn may_end_idle_before(&self, at: Instant) -> bool {
        self.idle.may_end_before(at)
    }

    /// When the connection ends if the handshake is not complete.
    pub(crate) fn handshake_deadline(&self) -> Option<Instant> {
        self.handshake_until.filter(|_| self.is_handshaking())
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        self.phase == Phase::Handshaking
    }

    pub(crate) fn is_established(&self) -> bool {
        self.phase.is_established()
    }

    pub(crate) fn is_confirmed(&self) -> bool {
        self.phase == Phase::Confirmed
    }

    /// True while packets are read and written.
    pub(crate) fn is_open(&self) -> bool {
        self.phase.is_open()
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.phase == Phase::Closing
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.phase == Phase::Closed
    }

    /// TLS finished.
    pub(crate) fn on_handshake_complete(&mut self, now: Instant) {
        self.connected_at.get_or_insert(now);
        self.step(Step::Complete);
    }

    /// When TLS finished.
    pub(crate) fn connected_at(&self) -> Option<Instant> {
        self.connected_at
    }

    /// When both ends knew.
    pub(crate) fn confirmed_at(&self) -> Option<Instant> {
        self.confirmed_at
    }

    /// Both ends know that TLS finished: true if it was not confirmed before.
    pub(crate) fn on_confirmed(&mut self, now: Instant) -> bool {
        let news = self.step(Step::Confirm);
        if news {
            self.confirmed_at = Some(now);
        }
        news
    }

    /// We close: `frame` is sent, and for three probe timeouts repeated when something comes.
    pub(crate) fn close(
        &mut self,
        now: Instant,
        probe_timeout: Duration,
        frame: CloseFrame,
        reason: CloseReason,
    ) {
        if !self.step(Step::Close) {
            return;
        }
        // https://www.rfc-editor.org/rfc/rfc9000#section-10.2
        //# These states SHOULD persist for at least three times the current PTO
        //# interval
        self.until = Some(now + probe_timeout.saturating_mul(3));
        self.reason = Some(Box::new(reason));
        self.frame = Some(Box::new(frame));
        self.send_close = true;
    }

    /// The peer closed.
    pub(crate) fn drain(&mut self, now: Instant, probe_timeout: Duration, reason: CloseReason) {
        let open = self.is_open();
        if !self.step(Step::PeerCloses) {
            return;
        }
        if open {
            self.reason = Some(Box::new(reason));
        }
        // https://www.rfc-editor.org/rfc/rfc9000#section-10.2.2
        //# While otherwise identical to the closing state, an endpoint in the draining state MUST
        //# NOT send any packets. An endpoint MUST NOT send further packets.
        self.until = Some(now + probe_timeout.saturating_mul(3));
        self.send_close = false;
    }

    /// The connection ends without a word.
    pub(crate) fn abort(&mut self, reason: CloseReason) {
        if self.is_open() {
            self.reason = Some(Box::new(reason));
        }
        self.step(Step::Abort);
        self.until = None;
        self.send_close = false;
    }

    /// A datagram of `size` bytes came while we are closing: answered ever more rarely, and with no
    /// more than three times its bytes.
    pub(crate) fn on_datagram_while_closing(&mut self, size: usize) {
        let answers = self.answers.get_or_insert_default();
        answers.bytes_received += size as u64;
        // https://www.rfc-editor.org/rfc/rfc9000#section-10.2.1
        //# An endpoint SHOULD limit the rate at which it generates packets in
        //# the closing state.
        answers.received += 1;
        // https://www.rfc-editor.org/rfc/rfc9000#section-11.1
        //# An endpoint SHOULD be prepared to retransmit a packet containing a CONNECTION_CLOSE
        //# frame if it receives more packets on a terminated connection.
        // https://www.rfc-editor.org/rfc/rfc9000#section-10.2.1
        //# To avoid being used for an amplification attack, such endpoints MUST limit the cumulative
        //# size of packets it sends to three times the cumulative size of the packets that are
        //# received and attributed to the connection.
        let allowed = answers.bytes_received.saturating_mul(3);
        if answers.received >= answers.next_at && answers.bytes_sent + answers.size <= allowed {
            answers.next_at = answers.received.saturating_mul(2);
            answers.bytes_sent += answers.size;
            self.send_close = true;
        }
    }

    /// The datagram with CONNECTION_CLOSE has that many bytes.
    pub(crate) fn on_close_sent(&mut self, size: usize) {
        self.answers.get_or_insert_default().size = size as u64;
    }

    /// The CONNECTION_CLOSE to send now.
    pub(crate) fn take_close(&mut self) -> Option<&CloseFrame> {
        if !std::mem::take(&mut self.send_close) {
            return None;
        }
        self.frame.as_deref()
    }

    /// True if a CONNECTION_CLOSE is to be sent.
    pub(crate) fn wants_close(&self) -> bool {
        self.send_close
    }

    /// Why it ended, once it did.
    pub(crate) fn reason(&self) -> Option<&CloseReason> {
        self.reason.as_deref()
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.until
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        // https://www.rfc-editor.org/rfc/rfc9000#section-10.2
        //# Servers that retain an open socket for accepting new connections SHOULD NOT end the
        //# closing or draining state early.
        if self.deadline().is_some_and(|until| until <= now) {
            self.step(Step::Expire);
            self.until = None;
            self.send_close = false;
        }
        debug_assert!(self.deadline().is_none_or(|at| at > now), "a deadline stood still");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTO: Duration = Duration::from_millis(100);

    fn lifecycle() -> Lifecycle {
        Lifecycle::new(Instant::ZERO, &TransportConfig::default(), None)
    }

    fn close(lifecycle: &mut Lifecycle, now: Instant) {
        lifecycle.close(
            now,
            PTO,
            CloseFrame::Application { code: 7, reason: Vec::new() },
            CloseReason::Application { code: 7 },
        );
    }

    #[test]
    fn closing_answers_ever_more_rarely_and_ends_after_three_timeouts() {
        let mut lifecycle = lifecycle();
        close(&mut lifecycle, Instant::ZERO);
        assert!(lifecycle.take_close().is_some());
        lifecycle.on_close_sent(60);
        let answers = (0..16)
            .filter(|_| {
                lifecycle.on_datagram_while_closing(60);
                lifecycle.take_close().is_some()
            })
            .count();
        assert_eq!(answers, 5);
        lifecycle.handle_timeout(Instant::ZERO + Duration::from_millis(299));
        assert!(lifecycle.is_closing());
        lifecycle.handle_timeout(Instant::ZERO + Duration::from_millis(300));
        assert!(lifecycle.is_closed());
    }

    #[test]
    fn answers_while_closing_have_three_times_the_bytes_that_came_at_most() {
        let mut lifecycle = lifecycle();
        close(&mut lifecycle, Instant::ZERO);
        assert!(lifecycle.take_close().is_some());
        lifecycle.on_close_sent(1_200);
        let mut answered = 0;
        for received in 1..200 {
            lifecycle.on_datagram_while_closing(30);
            answered += u64::from(lifecycle.take_close().is_some()) * 1_200;
            assert!(answered <= 3 * 30 * received, "{answered} after {received} datagrams");
        }
        assert!(answered >= 2_400);
    }

    #[test]
    fn a_draining_connection_keeps_silent_and_keeps_the_first_reason() {
        let mut lifecycle = lifecycle();
        close(&mut lifecycle, Instant::ZERO);
        lifecycle.drain(Instant::ZERO, PTO, CloseReason::IdleTimeout);
        assert!(lifecycle.take_close().is_none());
        assert_eq!(lifecycle.reason(), Some(&CloseReason::Application { code: 7 }));
    }

    #[test]
    fn confirmation_follows_completion() {
        let mut lifecycle = lifecycle();
        assert!(!lifecycle.on_confirmed(Instant::ZERO));
        lifecycle.on_handshake_complete(Instant::ZERO);
        assert!(lifecycle.on_confirmed(Instant::ZERO));
        assert!(!lifecycle.on_confirmed(Instant::ZERO));
        assert!(lifecycle.is_confirmed());
    }
}
