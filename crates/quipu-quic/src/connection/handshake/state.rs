//! The handshake as a part of its own: TLS, the keys it makes, its messages both ways, and the
//! packet number spaces in which they travel. What it knows of the peer stays for the life of the
//! connection.

use quipu_base::{Duration, PathId, Role};

use super::crypto::{CryptoReceive, CryptoSend};
use super::kept::KeptPackets;
use super::keys::KeyRing;
use super::start::{ClientOrigin, ServerOrigin, Start};
use super::version::VersionState;
use crate::connection::Space;
use crate::error::TransportError;
use crate::recovery::{PacketSpace, SentRecord};
use crate::tls::{Level, Session};
use crate::wire::{ConnectionId, Version};

mod messages;
mod packets;

pub(in crate::connection) use packets::Readable;

impl Space {
    pub(in crate::connection) const fn level(self) -> Level {
        match self {
            Space::Initial => Level::Initial,
            Space::Handshake => Level::Handshake,
            Space::Data(_) => Level::OneRtt,
        }
    }
}

/// What the peer's transport parameters came to.
#[derive(Clone, Debug)]
pub(in crate::connection) struct PeerSettings {
    pub(in crate::connection) known: bool,
    pub(in crate::connection) ack_delay_exponent: u8,
    pub(in crate::connection) max_ack_delay: Duration,
    pub(in crate::connection) max_udp_payload: u16,
    pub(in crate::connection) active_cid_limit: u64,
    /// It takes requests for acknowledgements, with delays down to this.
    pub(in crate::connection) min_ack_delay: Option<Duration>,
    /// It takes packets whose QUIC bit is zero.
    pub(in crate::connection) grease_quic_bit: bool,
    /// Largest DATAGRAM frame that it takes; 0: none.
    pub(in crate::connection) max_datagram_frame: u64,
    /// The address that the peer used during the handshake is for the one that we used then.
    pub(in crate::connection) disables_migration: bool,
    /// Largest path identifier the peer lets us use; `None`: no multipath.
    pub(in crate::connection) max_path_id: Option<PathId>,
    /// What its transport parameter said of that.
    initial_max_path_id: Option<PathId>,
}

impl Default for PeerSettings {
    fn default() -> Self {
        PeerSettings {
            known: false,
            ack_delay_exponent: 3,
            max_ack_delay: Duration::from_millis(25),
            max_udp_payload: 65_527,
            active_cid_limit: 2,
            min_ack_delay: None,
            grease_quic_bit: false,
            max_datagram_frame: 0,
            disables_migration: false,
            max_path_id: None,
            initial_max_path_id: None,
        }
    }
}

/// TLS messages of one level, both ways.
#[derive(Debug, Default)]
struct CryptoStream {
    send: CryptoSend,
    receive: CryptoReceive,
}

/// TLS messages of all levels at which some travel; boxed, since two of the three soon are no more, and
/// at the third little travels.
#[derive(Debug, Default)]
struct CryptoStreams {
    at: [Option<Box<CryptoStream>>; 3],
    /// How far 1-RTT messages have come, sent and received, while none travels.
    one_rtt: [u64; 2],
}

impl CryptoStreams {
    fn index(level: Level) -> usize {
        match level {
            Level::Initial => 0,
            Level::Handshake => 1,
            Level::ZeroRtt | Level::OneRtt => 2,
        }
    }

    fn at(&self, level: Level) -> Option<&CryptoStream> {
        self.at[Self::index(level)].as_deref()
    }

    fn at_mut(&mut self, level: Level) -> &mut CryptoStream {
        let [sent, received] = match level {
            Level::OneRtt => self.one_rtt,
            _ => [0; 2],
        };
        self.at[Self::index(level)].get_or_insert_with(|| {
            let (send, receive) = (CryptoSend::from(sent), CryptoReceive::from(received));
            Box::new(CryptoStream { send, receive })
        })
    }

    /// No packet of the level is read or sent any more.
    fn discard(&mut self, level: Level) {
        self.at[Self::index(level)] = None;
    }

    /// Gives back what is kept of 1-RTT messages if none travels.
    fn release(&mut self) {
        let [.., at] = &mut self.at;
        let done =
            at.as_ref().and_then(|stream| Some([stream.send.done()?, stream.receive.done()?]));
        if let Some(done) = done {
            self.one_rtt = done;
            *at = None;
        }
    }
}

/// The packet number spaces of the handshake.
#[derive(Debug, Default)]
struct EarlySpaces {
    initial: PacketSpace,
    handshake: PacketSpace,
}

/// The token that a client shows, and the Retry that it came in, if it did.
#[derive(Debug)]
struct Retry {
    /// The source connection ID of the Retry.
    source: Option<ConnectionId>,
    token: Vec<u8>,
}

/// TLS, or what it will start from.
enum Tls {
    /// A server waits for the whole ClientHello.
    Waiting(Box<ServerOrigin>),
    Session(Box<dyn Session>),
}

impl Tls {
    fn session(&self) -> Option<&dyn Session> {
        match self {
            Tls::Waiting(_) => None,
            Tls::Session(session) => Some(&**session),
        }
    }

    fn session_mut(&mut self) -> Option<&mut Box<dyn Session>> {
        match self {
            Tls::Waiting(_) => None,
            Tls::Session(session) => Some(session),
        }
    }
}

/// The handshake of a connection.
pub(in crate::connection) struct Handshake {
    role: Role,
    tls: Tls,
    /// What a client began from; gone once its version is certain.
    origin: Option<Box<ClientOrigin>>,
    version: VersionState,
    keys: KeyRing,
    /// The level of what TLS writes next.
    writes_at: Level,
    crypto: CryptoStreams,
    /// Until the keys of both are gone.
    spaces: Option<Box<EarlySpaces>>,
    /// Probe packets that a probe timeout asks for: Initial, Handshake.
    probes_due: [u8; 2],
    kept: KeptPackets,
    /// Until the keys of both are gone, if there is anything to keep.
    retry: Option<Box<Retry>>,
    peer: PeerSettings,
}

impl Handshake {
    /// `version`: that of the client's first flight; `token`: what a client shows before a Retry.
    pub(in crate::connection) fn new(
        role: Role,
        start: Start,
        version: Version,
        keys: KeyRing,
        token: Vec<u8>,
    ) -> Self {
        let (tls, origin) = match start {
            Start::Client { from, session } => (Tls::Session(session), Some(Box::new(from))),
            Start::Server(origin) => (Tls::Waiting(Box::new(origin)), None),
        };
        Handshake {
            role,
            tls,
            origin,
            version: VersionState::new(version),
            keys,
            writes_at: Level::Initial,
            crypto: CryptoStreams::default(),
            spaces: Some(Box::default()),
            probes_due: [0; 2],
            kept: KeptPackets::default(),
            retry: (!token.is_empty()).then(|| Box::new(Retry { source: None, token })),
            peer: PeerSettings::default(),
        }
    }

    /// The version, and how it was come to.
    pub(in crate::connection) fn version(&self) -> &VersionState {
        &self.version
    }

    /// What TLS has to tell of; `None` while a server waits for the ClientHello.
    pub(in crate::connection) fn session(&self) -> Option<&dyn Session> {
        self.tls.session()
    }

    /// The keys, to look at.
    pub(in crate::connection) fn keys(&self) -> &KeyRing {
        &self.keys
    }

    /// What is known of the peer.
    pub(in crate::connection) fn peer(&self) -> &PeerSettings {
        &self.peer
    }

    /// The peer allows path identifiers up to `maximum`.
    ///
    /// # Errors
    /// If that is less than its transport parameter said.
    pub(in crate::connection) fn raise_max_path_id(
        &mut self,
        maximum: PathId,
    ) -> Result<(), TransportError> {
        // https://www.rfc-editor.org/rfc/rfc10069#section-4.6
        //# The Maximum Path Identifier value MUST NOT be lower than the value advertised in the
        //# initial_max_path_id transport parameter. Receipt of an invalid Maximum Path Identifier
        //# value MUST be treated as a connection error of type PROTOCOL_VIOLATION.
        if self.peer.initial_max_path_id.is_some_and(|initial| maximum < initial) {
            return Err(TransportError::protocol_violation("MAX_PATH_ID below its initial value"));
        }
        let known = self.peer.max_path_id.unwrap_or_default();
        // https://www.rfc-editor.org/rfc/rfc10069#section-4.6
        //# MAX_PATH_ID frames that do not increase the path limit MUST be ignored.
        self.peer.max_path_id = Some(known.max(maximum));
        Ok(())
    }

    /// The space of Initial or of Handshake packets; `None` once the keys of both are gone. That of
    /// 1-RTT packets belongs to their path.
    pub(in crate::connection) fn space(&self, space: Space) -> Option<&PacketSpace> {
        match space {
            Space::Initial => self.spaces.as_deref().map(|spaces| &spaces.initial),
            Space::Handshake => self.spaces.as_deref().map(|spaces| &spaces.handshake),
            Space::Data(_) => None,
        }
    }

    /// The same, to change it.
    pub(in crate::connection) fn space_mut(&mut self, space: Space) -> Option<&mut PacketSpace> {
        match space {
            Space::Initial => self.spaces.as_deref_mut().map(|spaces| &mut spaces.initial),
            Space::Handshake => self.spaces.as_deref_mut().map(|spaces| &mut spaces.handshake),
            Space::Data(_) => None,
        }
    }

    /// So many probe packets are to go in a space of the handshake.
    pub(in crate::connection) fn ask_for_probes(&mut self, space: Space, count: u8) {
        if let Some(due) = self.probes_due_mut(space) {
            *due = count;
        }
    }

    /// Probe packets that are to go in a space of the handshake.
    pub(in crate::connection) fn probes_due(&self, space: Space) -> u8 {
        let [initial, handshake] = self.probes_due;
        match space {
            Space::Initial => initial,
            Space::Handshake => handshake,
            Space::Data(_) => 0,
        }
    }

    /// A packet of the space is filled: true if it is a probe.
    pub(in crate::connection) fn take_probe(&mut self, space: Space) -> bool {
        let is_due = self.probes_due(space) > 0;
        if let Some(due) = self.probes_due_mut(space).filter(|_| is_due) {
            *due -= 1;
        }
        is_due
    }

    fn probes_due_mut(&mut self, space: Space) -> Option<&mut u8> {
        let [initial, handshake] = &mut self.probes_due;
        match space {
            Space::Initial => Some(initial),
            Space::Handshake => Some(handshake),
            Space::Data(_) => None,
        }
    }

    /// Drops keys and state of a space: what was in flight in it, if it was there.
    /// <https://www.rfc-editor.org/rfc/rfc9001#section-4.9>
    pub(in crate::connection) fn discard(&mut self, space: Space) -> Option<PacketSpace> {
        if !self.keys.has(space) {
            return None;
        }
        // https://www.rfc-editor.org/rfc/rfc9002#section-6.4
        //# The sender MUST discard all recovery state associated with those packets and MUST
        //# remove them from the count of bytes in flight.
        let dropped = std::mem::take(self.space_mut(space)?);
        self.crypto.discard(space.level());
        self.ask_for_probes(space, 0);
        // https://www.rfc-editor.org/rfc/rfc9001#section-4.9.1
        //# Endpoints MUST NOT send Initial packets after this point.
        self.keys.discard(space);
        if !self.keys.has_handshake_keys() {
            self.spaces = None;
            self.retry = None;
        }
        Some(dropped)
    }

    /// Nothing is in flight: gives back what is kept of TLS messages.
    pub(in crate::connection) fn release_memory(&mut self) {
        self.crypto.release();
    }

    /// True once a packet of the server opened: nothing but a Retry or Version Negotiation came
    /// before.
    pub(in crate::connection) fn has_heard(&self) -> bool {
        let initial = self.space(Space::Initial).and_then(|space| space.received.largest());
        initial.is_some() || self.keys.has_handshake()
    }

    /// True once the peer has acknowledged a Handshake packet.
    pub(in crate::connection) fn is_acknowledged(&self) -> bool {
        let space = self.space(Space::Handshake);
        space.is_some_and(|space| space.sent.largest_acked().is_some())
    }

    /// The space in which a client probes although nothing is in flight, so that a server which
    /// the amplification limit holds may go on; `None` while something is.
    pub(in crate::connection) fn anti_deadlock_space(&self) -> Option<Space> {
        let waits = |space| self.space(space).is_some_and(|space| space.sent.has_eliciting());
        if waits(Space::Initial) || waits(Space::Handshake) {
            return None;
        }
        // https://www.rfc-editor.org/rfc/rfc9000#section-8.1
        //# Specifically, the client MUST send an Initial packet in a UDP datagram that contains
        //# at least 1200 bytes if it does not have Handshake keys, and otherwise send a Handshake
        //# packet.
        // https://www.rfc-editor.org/rfc/rfc9002#section-6.2.2.1
        //# When the PTO fires, the client MUST send a Handshake packet if it has Handshake keys,
        //# otherwise it MUST send an Initial packet in a UDP datagram with a payload of at least
        //# 1200 bytes.
        Some(if self.keys.has_handshake() { Space::Handshake } else { Space::Initial })
    }
}

/// Retry and Version Negotiation.
impl Handshake {
    /// A valid Retry came: packets that are to be sent again, with its token and new keys. `None`
    /// if it comes too late, or a second time.
    /// <https://www.rfc-editor.org/rfc/rfc9000#section-17.2.5>
    pub(in crate::connection) fn on_retry(
        &mut self,
        source: ConnectionId,
        token: Vec<u8>,
    ) -> Option<Vec<SentRecord>> {
        let fresh = self.role.is_client()
            // https://www.rfc-editor.org/rfc/rfc9000#section-17.2.5.2
            //# A client MUST accept and process at most one Retry packet for each connection
            //# attempt.
            && self.retry_source().is_none()
            // https://www.rfc-editor.org/rfc/rfc9000#section-17.2.5.2
            //# A client MUST discard a Retry packet with a zero-length Retry Token field.
            && !token.is_empty()
            // https://www.rfc-editor.org/rfc/rfc9000#section-17.2.5.2
            //# After the client has received and processed an Initial or Retry packet from the
            //# server, it MUST discard any subsequent Retry packets that it receives.
            && !self.has_heard();
        // https://www.rfc-editor.org/rfc/rfc9369#section-4.1
        //# The client MUST NOT use a different version in the subsequent Initial packet that
        //# contains the Retry token.
        let version = self.version.original();
        let keys = self.origin.as_ref().filter(|_| fresh)?.initial_keys(version, &source);
        self.keys.replace_initial(version, source, keys);
        self.retry = Some(Box::new(Retry { source: Some(source), token }));
        Some(self.space_mut(Space::Initial)?.sent.drain())
    }

    /// The source connection ID of the Retry that came.
    pub(in crate::connection) fn retry_source(&self) -> Option<ConnectionId> {
        self.retry.as_ref()?.source
    }

    /// The token of Initial packets: that of a Retry, or of an earlier connection; may be empty.
    pub(in crate::connection) fn token(&self) -> &[u8] {
        self.retry.as_ref().map_or(&[], |retry| &retry.token)
    }

    /// True if nothing of the server came, neither a packet nor a Retry, and it was not said
    /// before that it speaks other versions.
    pub(in crate::connection) fn may_begin_again(&self) -> bool {
        self.role.is_client()
            && !self.has_heard()
            && self.retry_source().is_none()
            && !self.version.has_reacted()
    }

    /// A client begins again, in the version of `version`, and sends to `dcid`: the space of the Initial
    /// packets so far. `None` if TLS does not start again; then nothing is changed.
    pub(in crate::connection) fn begin_again(
        &mut self,
        version: VersionState,
        dcid: ConnectionId,
    ) -> Option<PacketSpace> {
        let original = version.original();
        let session = self.origin.as_ref()?.start(original).ok()?;
        let from = *self.origin.take()?;
        let keys = KeyRing::new(original, dcid, from.initial_keys(original, &dcid));
        // https://www.rfc-editor.org/rfc/rfc9369#section-5
        // A token of an earlier connection is one of its version, and of its address.
        let (start, token) = (Start::Client { from, session }, Vec::new());
        let again = Handshake::new(self.role, start, original, keys, token);
        let before = std::mem::replace(self, again);
        self.version = version;
        before.spaces.map(|spaces| spaces.initial)
    }
}

#[cfg(test)]
mod tests {
    use quipu_base::Offset;
    use quipu_policy::Span;

    use super::*;

    /// A level at which `sent` bytes wait and `received` bytes came.
    fn fill(streams: &mut CryptoStreams, level: Level, sent: usize, received: usize) {
        let stream = streams.at_mut(level);
        stream.send.write_with(|out| out.resize(sent, 7));
        stream.receive.on_frame(0, &vec![7; received]).unwrap();
    }

    #[test]
    fn messages_go_with_the_keys_of_their_level() {
        let mut streams = CryptoStreams::default();
        fill(&mut streams, Level::Initial, 10, 20);
        fill(&mut streams, Level::Handshake, 10, 20);
        streams.discard(Level::Initial);
        assert!(streams.at(Level::Initial).is_none());
        assert!(streams.at(Level::Handshake).is_some());
    }

    #[test]
    fn a_level_without_messages_under_way_is_kept_as_two_numbers() {
        let mut streams = CryptoStreams::default();
        fill(&mut streams, Level::OneRtt, 10, 20);
        streams.release();
        let stream = streams.at_mut(Level::OneRtt);
        assert_eq!(stream.send.next(100).map(|(offset, _)| offset), Some(Offset(0)), "it waits");
        let span = Span::new(Offset(0), Offset(10));
        stream.send.on_sent(span);
        stream.receive.advance();
        streams.release();
        assert!(streams.at(Level::OneRtt).is_some(), "the peer may not have it");
        streams.at_mut(Level::OneRtt).send.on_acked(span);
        streams.release();
        assert!(streams.at(Level::OneRtt).is_none());
        // And on, where it stopped; what comes again counts for nothing.
        let stream = streams.at_mut(Level::OneRtt);
        stream.send.on_lost(span);
        assert!(!stream.send.is_pending());
        stream.send.write_with(|out| out.push(8));
        assert_eq!(stream.send.next(100), Some((Offset(10), &[8][..])));
        stream.receive.on_frame(15, &[7; 10]).unwrap();
        assert_eq!(stream.receive.next(), Some(&[7; 5][..]));
    }
}
