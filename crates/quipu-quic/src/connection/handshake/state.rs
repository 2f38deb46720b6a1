//! The handshake as a part of its own: TLS, the keys it makes, its messages both ways, and the
//! packet number spaces in which they travel. What it knows of the peer stays for the life of the
//! connection.

use std::sync::Arc;

use quipu_base::{Duration, Instant, PacketNumber, PathId, Role};

use super::crypto::{CryptoReceive, CryptoSend};
use super::kept::{KeptPacket, KeptPackets};
use super::keys::KeyRing;
use crate::connection::Space;
use crate::error::{ErrorCode, TransportError};
use crate::recovery::{PacketSpace, SentRecord};
use crate::tls::protection::UnprotectedHeader;
use crate::tls::{DirectionKeys, InitialSecrets, KeyChange, Level, OpenError, Session};
use crate::transport_parameters::TransportParameters;
use crate::wire::ConnectionId;

/// The alert `missing_extension`. <https://www.rfc-editor.org/rfc/rfc9001#section-8.2>
const MISSING_EXTENSION: u8 = 109;

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
            max_path_id: None,
            initial_max_path_id: None,
        }
    }
}

/// Whether packets of a level can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::connection) enum Readable {
    Now,
    /// Their keys are still to come.
    Later,
    Never,
}

/// TLS messages of one level, both ways.
#[derive(Debug, Default)]
struct CryptoStream {
    send: CryptoSend,
    receive: CryptoReceive,
}

/// A Retry: what makes the keys for it, and what came of it.
#[derive(Default)]
struct Retry {
    /// Makes new Initial keys: a client's.
    secrets: Option<Arc<dyn InitialSecrets>>,
    /// The source connection ID of the Retry that came.
    source: Option<ConnectionId>,
    token: Vec<u8>,
}

/// The handshake of one connection.
pub(in crate::connection) struct Handshake {
    role: Role,
    session: Box<dyn Session>,
    keys: KeyRing,
    /// The level of what TLS writes next.
    writes_at: Level,
    /// By level.
    crypto: [CryptoStream; 3],
    initial: PacketSpace,
    handshake: PacketSpace,
    /// Probe packets that a probe timeout asks for: Initial, Handshake.
    probes_due: [u8; 2],
    kept: KeptPackets,
    retry: Retry,
    peer: PeerSettings,
}

impl Handshake {
    /// `secrets`: what makes Initial keys after a Retry, at a client; `token`: what it shows before
    /// one.
    pub(in crate::connection) fn new(
        role: Role,
        session: Box<dyn Session>,
        keys: KeyRing,
        secrets: Option<Arc<dyn InitialSecrets>>,
        token: Vec<u8>,
    ) -> Self {
        Handshake {
            role,
            session,
            keys,
            writes_at: Level::Initial,
            crypto: Default::default(),
            initial: PacketSpace::default(),
            handshake: PacketSpace::default(),
            probes_due: [0; 2],
            kept: KeptPackets::default(),
            retry: Retry { secrets, source: None, token },
            peer: PeerSettings::default(),
        }
    }

    /// The keys, to look at.
    pub(in crate::connection) fn keys(&self) -> &KeyRing {
        &self.keys
    }

    /// What is known of the peer.
    pub(in crate::connection) fn peer(&self) -> &PeerSettings {
        &self.peer
    }

    /// The application protocol agreed on, once TLS has.
    pub(in crate::connection) fn alpn(&self) -> Option<&[u8]> {
        self.session.alpn()
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

    /// The space of Initial or of Handshake packets; that of 1-RTT packets belongs to their path.
    pub(in crate::connection) fn space(&self, space: Space) -> Option<&PacketSpace> {
        match space {
            Space::Initial => Some(&self.initial),
            Space::Handshake => Some(&self.handshake),
            Space::Data(_) => None,
        }
    }

    /// The same, to change it.
    pub(in crate::connection) fn space_mut(&mut self, space: Space) -> Option<&mut PacketSpace> {
        match space {
            Space::Initial => Some(&mut self.initial),
            Space::Handshake => Some(&mut self.handshake),
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
        self.crypto[space.level() as usize] = CryptoStream::default();
        self.ask_for_probes(space, 0);
        // https://www.rfc-editor.org/rfc/rfc9001#section-4.9.1
        //# Endpoints MUST NOT send Initial packets after this point.
        self.keys.discard(space);
        Some(dropped)
    }

    /// True once a packet of the server opened: nothing but a Retry or Version Negotiation came
    /// before.
    pub(in crate::connection) fn has_heard(&self) -> bool {
        self.initial.received.largest().is_some() || self.keys.has_handshake()
    }

    /// True once the peer has acknowledged a Handshake packet.
    pub(in crate::connection) fn is_acknowledged(&self) -> bool {
        self.handshake.sent.largest_acked().is_some()
    }

    /// The space in which a client probes although nothing is in flight, so that a server which
    /// the amplification limit holds may go on; `None` while something is.
    pub(in crate::connection) fn anti_deadlock_space(&self) -> Option<Space> {
        if self.initial.sent.has_eliciting() || self.handshake.sent.has_eliciting() {
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

/// Messages of TLS.
impl Handshake {
    /// Gives TLS what came in order, takes what it has to say, and installs its keys.
    pub(in crate::connection) fn advance(&mut self, now: Instant) -> Result<(), TransportError> {
        self.take_output(now)?;
        for level in Level::ALL {
            while let Some(bytes) = self.crypto[level as usize].receive.next() {
                self.session.read(level, bytes)?;
                self.crypto[level as usize].receive.advance();
                self.take_output(now)?;
            }
        }
        Ok(())
    }

    fn take_output(&mut self, now: Instant) -> Result<(), TransportError> {
        loop {
            // The bytes belong to the level before the keys of the same call.
            // https://www.rfc-editor.org/rfc/rfc9001#section-4.9
            //# Though an endpoint might retain older keys, new data MUST be sent at the highest
            //# currently available encryption level.
            let send = &mut self.crypto[self.writes_at as usize].send;
            let (written, change) = send.write_with(|out| self.session.write(out));
            if written == 0 && change.is_none() {
                break;
            }
            match change {
                Some(KeyChange::Handshake(keys)) => {
                    self.writes_at = Level::Handshake;
                    self.keys.install_handshake(keys);
                    self.crypto[Level::Initial as usize].receive.close()?;
                }
                Some(KeyChange::OneRtt(keys)) => {
                    self.writes_at = Level::OneRtt;
                    self.keys.install_one_rtt(now, keys, &mut *self.session);
                }
                None => {}
            }
        }
        if self.is_complete() {
            self.crypto[Level::Handshake as usize].receive.close()?;
        }
        Ok(())
    }

    /// True once TLS has finished.
    pub(in crate::connection) fn is_complete(&self) -> bool {
        !self.session.is_handshaking()
    }

    /// The peer's transport parameters, once TLS has finished.
    pub(in crate::connection) fn parameters(&self) -> Result<TransportParameters, TransportError> {
        let missing =
            || TransportError::new(ErrorCode::crypto(MISSING_EXTENSION), "no transport parameters");
        // https://www.rfc-editor.org/rfc/rfc9001#section-8.2
        //# Endpoints MUST send the quic_transport_parameters extension; endpoints that receive
        //# ClientHello or EncryptedExtensions messages without the quic_transport_parameters
        //# extension MUST close the connection with an error of type 0x016d (equivalent to a
        //# fatal TLS missing_extension alert, see Section 4.8).
        let encoded = self.session.peer_transport_parameters().ok_or_else(missing)?;
        Ok(TransportParameters::read(encoded, self.role.peer())?)
    }

    /// Takes over what the peer's transport parameters say.
    pub(in crate::connection) fn set_parameters(&mut self, peer: &TransportParameters) {
        self.peer = PeerSettings {
            known: true,
            ack_delay_exponent: peer.ack_delay_exponent,
            max_ack_delay: peer.max_ack_delay,
            max_udp_payload: u16::try_from(peer.max_udp_payload_size).unwrap_or(u16::MAX),
            active_cid_limit: peer.active_connection_id_limit,
            max_path_id: peer.initial_max_path_id,
            initial_max_path_id: peer.initial_max_path_id,
        };
    }

    /// What waits to be sent at the level of `space`.
    pub(in crate::connection) fn crypto(&self, space: Space) -> &CryptoSend {
        &self.crypto[space.level() as usize].send
    }

    /// The same, to take from it.
    pub(in crate::connection) fn crypto_mut(&mut self, space: Space) -> &mut CryptoSend {
        &mut self.crypto[space.level() as usize].send
    }

    /// A CRYPTO frame came in `space`.
    pub(in crate::connection) fn on_crypto(
        &mut self,
        space: Space,
        offset: u64,
        data: &[u8],
    ) -> Result<(), TransportError> {
        self.crypto[space.level() as usize].receive.on_frame(offset, data)
    }
}

/// Packets in, packets out.
impl Handshake {
    /// Whether packets of a level can be read; `handshaking`: TLS has not finished.
    pub(in crate::connection) fn readable(&self, level: Level, handshaking: bool) -> Readable {
        // https://www.rfc-editor.org/rfc/rfc9001#section-5.7
        //# Endpoints in either role MUST NOT decrypt 1-RTT packets from their peer prior to
        //# completing the handshake. A server MUST NOT process incoming 1-RTT protected packets
        //# before the TLS handshake is complete. Even if it has 1-RTT secrets, a client MUST NOT
        //# process incoming 1-RTT protected packets before the TLS handshake is complete.
        let too_early = level == Level::OneRtt && handshaking;
        if self.keys.has_level(level) && !too_early {
            Readable::Now
        } else if handshaking && level != Level::Initial {
            Readable::Later
        } else {
            Readable::Never
        }
    }

    /// Keeps a packet until its keys come; `false` if there is no room for it.
    pub(in crate::connection) fn keep(&mut self, packet: KeptPacket) -> bool {
        self.kept.keep(packet)
    }

    /// The next kept packet that need not wait any longer.
    pub(in crate::connection) fn next_kept(&mut self, handshaking: bool) -> Option<KeptPacket> {
        if self.kept.is_empty() {
            return None;
        }
        let mut kept = std::mem::take(&mut self.kept);
        let next = kept.take(|level| self.readable(level, handshaking) != Readable::Later);
        self.kept = kept;
        next
    }

    /// Takes header protection off.
    pub(in crate::connection) fn unprotect(
        &self,
        level: Level,
        packet: &mut [u8],
        packet_number_at: usize,
    ) -> Result<UnprotectedHeader, OpenError> {
        self.keys.unprotect(level, packet, packet_number_at)
    }

    /// Opens a packet. A packet of the next key phase, once authentic, moves us there too.
    pub(in crate::connection) fn open<'p>(
        &mut self,
        now: Instant,
        level: Level,
        number: (PathId, PacketNumber),
        header: &UnprotectedHeader,
        packet: &'p mut [u8],
    ) -> Result<&'p mut [u8], OpenError> {
        self.keys.open(now, level, number, header, packet, &mut *self.session)
    }

    /// The keys to seal a packet with.
    pub(in crate::connection) fn sealing(&mut self, space: Space) -> Option<&DirectionKeys> {
        self.keys.sealing(space)
    }

    /// A 1-RTT packet sent at `sent_at` was acknowledged.
    pub(in crate::connection) fn on_acked(&mut self, sent_at: Instant) {
        self.keys.on_acked(sent_at);
    }

    /// Begins the next key phase before the keys wear out, and drops old keys. `false` if they may
    /// not be used any more.
    pub(in crate::connection) fn maintain(
        &mut self,
        now: Instant,
        probe_timeout: Duration,
    ) -> bool {
        self.keys.maintain(now, probe_timeout, &mut *self.session);
        !self.keys.is_worn_out()
    }

    /// Begins the next key phase; `false` if the present one is not acknowledged yet.
    pub(in crate::connection) fn update_keys(&mut self, now: Instant) -> bool {
        self.keys.update(now, &mut *self.session)
    }
}

/// Retry.
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
            && self.retry.source.is_none()
            // https://www.rfc-editor.org/rfc/rfc9000#section-17.2.5.2
            //# A client MUST discard a Retry packet with a zero-length Retry Token field.
            && !token.is_empty()
            // https://www.rfc-editor.org/rfc/rfc9000#section-17.2.5.2
            //# After the client has received and processed an Initial or Retry packet from the
            //# server, it MUST discard any subsequent Retry packets that it receives.
            && self.initial.received.largest().is_none();
        let secrets = self.retry.secrets.as_ref().filter(|_| fresh)?;
        self.keys.replace_initial(secrets.initial_keys(&source, self.role));
        self.retry.source = Some(source);
        self.retry.token = token;
        Some(self.initial.sent.drain())
    }

    /// The source connection ID of the Retry that came.
    pub(in crate::connection) fn retry_source(&self) -> Option<ConnectionId> {
        self.retry.source
    }

    /// The token of Initial packets: that of a Retry, or of an earlier connection; may be empty.
    pub(in crate::connection) fn token(&self) -> &[u8] {
        &self.retry.token
    }
}
