//! Keys of all levels, and key updates.
//! <https://www.rfc-editor.org/rfc/rfc9001#section-5>

use quipu_base::{Instant, PacketNumber, PathId};

use crate::connection::Space;
use crate::error::{ErrorCode, TransportError};
use crate::tls::protection::{self, UnprotectedHeader};
use crate::tls::{DirectionKeys, Keys, Level, OpenError, Session};
use crate::wire::{ConnectionId, Version};

mod one_rtt;
mod phase;

use one_rtt::OneRtt;

/// The keys of a connection.
pub(crate) struct KeyRing {
    /// These and those of Handshake packets are boxed: they soon are no more.
    initial: Option<Box<InitialKeys>>,
    /// A client seals with them, a server opens.
    zero_rtt: Option<DirectionKeys>,
    handshake: Option<Box<Keys>>,
    one_rtt: Option<OneRtt>,
    /// A 1-RTT packet came to a server, which reads no 0-RTT packets for long any more.
    zero_rtt_is_over: bool,
    /// When the keys of the phase before go, and at a server those of 0-RTT.
    discard_at: Option<Instant>,
    /// Packets that failed to open, against the integrity limit.
    failures: u64,
}

/// Keys of Initial packets.
struct InitialKeys {
    /// What they are made of.
    dcid: ConnectionId,
    version: Version,
    keys: Keys,
    /// Those of another version in which packets may come: at a client one in which the server may
    /// go on, at a server that of the client's first flight.
    other: Option<(Version, Keys)>,
}

/// A packet was not opened.
pub(in crate::connection) enum Unopened {
    /// It is not the peer's, or was changed on the way. It is dropped.
    Unreadable,
    /// The connection closes.
    Fault(TransportError),
}

impl From<OpenError> for Unopened {
    fn from(_: OpenError) -> Self {
        Unopened::Unreadable
    }
}

impl From<TransportError> for Unopened {
    fn from(error: TransportError) -> Self {
        Unopened::Fault(error)
    }
}

/// A packet that opened.
pub(in crate::connection) struct OpenedPayload<'p> {
    pub(in crate::connection) payload: &'p mut [u8],
    /// The keys are those of the phase before.
    pub(in crate::connection) old_keys: bool,
}

impl KeyRing {
    /// Keys of Initial packets of `version`, made of `dcid`.
    pub(crate) fn new(version: Version, dcid: ConnectionId, keys: Keys) -> Self {
        KeyRing {
            initial: Some(Box::new(InitialKeys { dcid, version, keys, other: None })),
            zero_rtt: None,
            handshake: None,
            one_rtt: None,
            zero_rtt_is_over: false,
            discard_at: None,
            failures: 0,
        }
    }

    /// A Retry changed what Initial keys are made of.
    pub(super) fn replace_initial(&mut self, version: Version, dcid: ConnectionId, keys: Keys) {
        self.initial = Some(Box::new(InitialKeys { dcid, version, keys, other: None }));
    }

    /// What the keys of Initial packets are made of, while there are some.
    pub(super) fn initial_dcid(&self) -> Option<ConnectionId> {
        self.initial.as_ref().map(|initial| initial.dcid)
    }

    /// Initial packets of another version may come.
    pub(super) fn expect_initial(&mut self, version: Version, keys: Keys) {
        if let Some(initial) = &mut self.initial {
            initial.other = Some((version, keys));
        }
    }

    /// Initial packets are sent in `version` from now on, whose keys were
    /// [expected](KeyRing::expect_initial).
    pub(super) fn change_initial(&mut self, version: Version) {
        if let Some(initial) = &mut self.initial
            && let Some((other, keys)) = &mut initial.other
            && *other == version
        {
            std::mem::swap(&mut initial.keys, keys);
            std::mem::swap(&mut initial.version, other);
        }
    }

    /// True if Initial packets of that version can be read.
    pub(super) fn reads_initial(&self, version: Version) -> bool {
        self.initial.as_ref().is_some_and(|initial| initial.of(version).is_some())
    }

    /// The client sends early with these keys, or the server reads with them.
    pub(super) fn install_zero_rtt(&mut self, keys: DirectionKeys) {
        self.zero_rtt = Some(keys);
    }

    pub(super) fn discard_zero_rtt(&mut self) {
        self.zero_rtt = None;
    }

    /// True at a client that sends data in 0-RTT packets.
    pub(in crate::connection) fn seals_early(&self) -> bool {
        // https://www.rfc-editor.org/rfc/rfc9001#section-5.6
        //# Once a client has installed 1-RTT keys, it MUST NOT send any more 0-RTT packets.
        // https://www.rfc-editor.org/rfc/rfc9000#section-17.2.3
        //# A client MUST NOT send 0-RTT packets once it starts processing 1-RTT packets from the
        //# server.
        self.zero_rtt.is_some() && self.one_rtt.is_none()
    }

    /// True at a server that reads 0-RTT packets.
    pub(in crate::connection) fn reads_early(&self) -> bool {
        self.zero_rtt.is_some()
    }

    pub(super) fn install_handshake(&mut self, keys: Keys) {
        self.handshake = Some(Box::new(keys));
    }

    pub(super) fn install_one_rtt(&mut self, keys: Keys, session: &mut dyn Session) {
        self.one_rtt = Some(OneRtt::new(keys, session));
    }

    pub(super) fn discard(&mut self, space: Space) {
        match space {
            Space::Initial => self.initial = None,
            Space::Handshake => self.handshake = None,
            Space::Data(_) => {}
        }
    }

    /// True if packets of `space` can be sealed and opened; 0-RTT packets do not count.
    pub(in crate::connection) fn has(&self, space: Space) -> bool {
        self.has_level(space.level())
    }

    pub(super) fn has_level(&self, level: Level) -> bool {
        match level {
            Level::Initial => self.initial.is_some(),
            Level::ZeroRtt => self.zero_rtt.is_some(),
            Level::Handshake => self.handshake.is_some(),
            Level::OneRtt => self.one_rtt.is_some(),
        }
    }

    pub(in crate::connection) fn has_handshake(&self) -> bool {
        self.handshake.is_some()
    }

    /// True while packets of the handshake may be sent or come.
    pub(in crate::connection) fn has_handshake_keys(&self) -> bool {
        self.initial.is_some() || self.handshake.is_some()
    }

    /// The keys to seal packet `number` of a path with.
    pub(super) fn sealing(
        &mut self,
        space: Space,
        (path, number): (PathId, PacketNumber),
    ) -> Option<&DirectionKeys> {
        match space {
            Space::Initial => self.initial.as_ref().map(|initial| &initial.keys.local),
            Space::Handshake => self.handshake.as_ref().map(|keys| &keys.local),
            // https://www.rfc-editor.org/rfc/rfc9001#section-5.6
            //# A server MUST NOT use 0-RTT keys to protect packets; it uses 1-RTT keys to protect
            //# acknowledgments of 0-RTT packets.
            // It has 1-RTT keys as soon as those of 0-RTT.
            Space::Data(_) => match &mut self.one_rtt {
                Some(one_rtt) => Some(one_rtt.sealing(path, number)),
                None => self.zero_rtt.as_ref(),
            },
        }
    }

    /// The key phase of packets sent now.
    pub(in crate::connection) fn phase(&self) -> bool {
        self.one_rtt.as_ref().is_some_and(OneRtt::phase_bit)
    }

    /// How often the next phase began, at whichever end's wish.
    pub(in crate::connection) fn updates(&self) -> u64 {
        self.one_rtt.as_ref().map_or(0, OneRtt::updates)
    }

    /// Takes header protection off. `version`: that of a long header.
    pub(super) fn unprotect(
        &self,
        level: Level,
        version: Option<Version>,
        packet: &mut [u8],
        packet_number_at: usize,
    ) -> Result<UnprotectedHeader, OpenError> {
        let keys = match level {
            Level::Initial => self.opening_initial(version),
            Level::ZeroRtt => self.zero_rtt.as_ref(),
            Level::Handshake => self.handshake.as_ref().map(|keys| &keys.remote),
            Level::OneRtt => self.one_rtt.as_ref().map(OneRtt::remote),
        };
        let keys = keys.ok_or(OpenError)?;
        protection::unprotect(packet, packet_number_at, &*keys.header)
    }

    fn opening_initial(&self, version: Option<Version>) -> Option<&DirectionKeys> {
        Some(&self.initial.as_ref()?.of(version?)?.remote)
    }

    /// Opens a packet. A packet of the next phase, once authentic, moves us there too.
    pub(super) fn open<'p>(
        &mut self,
        level: Level,
        version: Option<Version>,
        id: (PathId, PacketNumber),
        header: &UnprotectedHeader,
        packet: &'p mut [u8],
        session: Option<&mut dyn Session>,
    ) -> Result<OpenedPayload<'p>, Unopened> {
        let opened = self.try_open(level, version, id, header, packet, session);
        if let Err(Unopened::Unreadable) = opened {
            // https://www.rfc-editor.org/rfc/rfc9001#section-6.6
            //# In addition to counting packets sent, endpoints MUST count the number of received
            //# packets that fail authentication during the lifetime of a connection.
            self.failures += 1;
            self.check_integrity(level)?;
        }
        opened
    }

    fn try_open<'p>(
        &mut self,
        level: Level,
        version: Option<Version>,
        (path, number): (PathId, PacketNumber),
        header: &UnprotectedHeader,
        packet: &'p mut [u8],
        session: Option<&mut dyn Session>,
    ) -> Result<OpenedPayload<'p>, Unopened> {
        let keys = match level {
            Level::OneRtt => {
                let (one_rtt, session) = self.one_rtt.as_mut().zip(session).ok_or(OpenError)?;
                let opened = one_rtt.open((path, number), header, packet, session)?;
                self.zero_rtt_is_over |= self.zero_rtt.is_some();
                return Ok(opened);
            }
            Level::Initial => self.opening_initial(version),
            Level::ZeroRtt => self.zero_rtt.as_ref(),
            Level::Handshake => self.handshake.as_ref().map(|keys| &keys.remote),
        };
        let key = &*keys.ok_or(OpenError)?.packet;
        let payload = protection::open(packet, header.header_length, path, number, key)?;
        Ok(OpenedPayload { payload, old_keys: false })
    }

    /// Too many packets that do not open are an attack on the keys.
    fn check_integrity(&self, level: Level) -> Result<(), TransportError> {
        let one_rtt = self.one_rtt.as_ref().map(OneRtt::remote);
        let handshake = self.handshake.as_ref().map(|keys| &keys.remote);
        let keys = one_rtt.or(handshake).filter(|_| level != Level::Initial);
        let limit = keys.map_or(u64::MAX, |keys| keys.packet.integrity_limit());
        // https://www.rfc-editor.org/rfc/rfc9001#section-6.6
        //# If the total number of received packets that fail authentication within the connection,
        //# across all keys, exceeds the integrity limit for the selected AEAD, the endpoint MUST
        //# immediately close the connection with a connection error of type AEAD_LIMIT_REACHED and
        //# not process any more packets.
        if self.failures > limit {
            return Err(worn_out("too many packets did not open"));
        }
        Ok(())
    }

    /// Packets that we sent on a path were acknowledged, up to `largest`. `old`: the
    /// acknowledgement came in a packet of the phase before.
    pub(super) fn on_acked(
        &mut self,
        path: PathId,
        largest: PacketNumber,
        old: bool,
    ) -> Result<(), TransportError> {
        match &mut self.one_rtt {
            Some(one_rtt) => one_rtt.on_acked(path, largest, old),
            None => Ok(()),
        }
    }

    /// True while the peer waits for an acknowledgement of what it sent in the present phase, to
    /// begin the next: see [`KeyRing::on_ack_sent`].
    #[inline]
    pub(in crate::connection) fn owes_answer(&self) -> bool {
        self.one_rtt.as_ref().is_some_and(OneRtt::owes_answer)
    }

    /// A 1-RTT packet acknowledges packets of a path, up to `largest`.
    pub(super) fn on_ack_sent(&mut self, path: PathId, largest: PacketNumber) {
        if let Some(one_rtt) = &mut self.one_rtt {
            one_rtt.on_ack_sent(path, largest);
        }
    }

    /// True if old keys are to go after a while that was not set yet.
    pub(in crate::connection) fn wants_discard(&self) -> bool {
        let old = self.one_rtt.as_ref().is_some_and(OneRtt::discards);
        (old || self.zero_rtt_is_over) && self.discard_at.is_none()
    }

    /// Old keys go at that time.
    pub(super) fn discard_old_at(&mut self, at: Instant) {
        self.discard_at = Some(at);
    }

    /// When old keys go.
    pub(in crate::connection) fn discard_at(&self) -> Option<Instant> {
        self.discard_at
    }

    /// Time has come to drop old keys.
    // https://www.rfc-editor.org/rfc/rfc9001#section-6.5
    //# After this period, old read keys and their corresponding secrets SHOULD be discarded.
    pub(super) fn discard_old(&mut self) {
        self.discard_at = None;
        // https://www.rfc-editor.org/rfc/rfc9001#section-4.9.3
        //# After receiving a 1-RTT packet, servers MUST discard 0-RTT keys within a short time; the
        //# RECOMMENDED time period is three times the Probe Timeout (PTO, see [QUIC-RECOVERY]).
        if std::mem::take(&mut self.zero_rtt_is_over) {
            self.zero_rtt = None;
        }
        if let Some(one_rtt) = &mut self.one_rtt {
            one_rtt.discard_previous();
        }
    }

    /// True if so many packets were sealed that an update is due.
    pub(in crate::connection) fn wants_update(&self) -> bool {
        self.one_rtt.as_ref().is_some_and(OneRtt::wants_update)
    }

    /// Begins the next phase before the keys wear out.
    pub(super) fn renew(&mut self, session: &mut dyn Session) -> Result<(), TransportError> {
        let Some(one_rtt) = &mut self.one_rtt else { return Ok(()) };
        // https://www.rfc-editor.org/rfc/rfc9001#section-6.6
        //# Endpoints MUST initiate a key update before sending more protected
        //# packets than the confidentiality limit for the selected AEAD permits.
        // https://www.rfc-editor.org/rfc/rfc9001#section-5.3
        //# An endpoint MUST initiate a key update (Section 6) prior to exceeding any limit set
        //# for the AEAD that is in use.
        if one_rtt.update(session) || !one_rtt.is_worn_out() {
            return Ok(());
        }
        // https://www.rfc-editor.org/rfc/rfc9001#section-6.6
        //# If a key update is not possible or integrity limits are reached, the endpoint MUST stop
        //# using the connection
        //# [...] It is RECOMMENDED that endpoints immediately close the connection with a
        //# connection error of type AEAD_LIMIT_REACHED before reaching a state where key updates
        //# are not possible.
        Err(worn_out("the keys are worn out"))
    }

    /// Begins the next phase now, as a test or an application may ask; false if that cannot be now.
    pub(super) fn update(&mut self, session: &mut dyn Session) -> bool {
        self.one_rtt.as_mut().is_some_and(|one_rtt| one_rtt.update(session))
    }
}

impl InitialKeys {
    fn of(&self, version: Version) -> Option<&Keys> {
        if version == self.version {
            return Some(&self.keys);
        }
        self.other.as_ref().filter(|(other, _)| *other == version).map(|(_, keys)| keys)
    }
}

fn worn_out(reason: &'static str) -> TransportError {
    TransportError::new(ErrorCode::AEAD_LIMIT_REACHED, reason)
}
