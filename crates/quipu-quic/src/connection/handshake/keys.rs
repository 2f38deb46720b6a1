//! Keys of the three levels, and key updates.
//! <https://www.rfc-editor.org/rfc/rfc9001#section-6>

use quipu_base::{Duration, Instant, PacketNumber, PathId};

use crate::connection::Space;
use crate::tls::protection::{self, UnprotectedHeader};
use crate::tls::{DirectionKeys, Keys, Level, OpenError, PacketKey, PacketKeyPair, Session};

/// The keys of a connection.
pub(crate) struct KeyRing {
    initial: Option<Keys>,
    handshake: Option<Keys>,
    one_rtt: Option<OneRtt>,
    /// Packets that failed to open, against the integrity limit.
    failures: u64,
}

/// Keys of 1-RTT packets through all phases.
struct OneRtt {
    keys: Keys,
    /// Phases before the present one; the phase bit is its lowest.
    updates: u64,
    /// Opens packets of the phase before; kept for three probe timeouts after the peer was seen in
    /// the present one.
    previous: Option<Box<dyn PacketKey>>,
    // https://www.rfc-editor.org/rfc/rfc9001#section-6.3
    //# For this reason, endpoints MUST be able to retain two sets of packet protection keys for
    //# receiving packets: the current and the next.
    next: Option<PacketKeyPair>,
    /// When the present phase began.
    since: Instant,
    /// When the first packet of the present phase came.
    peer_since: Option<Instant>,
    /// Packets sealed in this phase.
    sealed: u64,
    /// A packet of this phase was acknowledged, so that the next may begin.
    acked: bool,
}

impl KeyRing {
    pub(crate) fn new(initial: Keys) -> Self {
        KeyRing { initial: Some(initial), handshake: None, one_rtt: None, failures: 0 }
    }

    pub(super) fn replace_initial(&mut self, keys: Keys) {
        self.initial = Some(keys);
    }

    pub(super) fn install_handshake(&mut self, keys: Keys) {
        self.handshake = Some(keys);
    }

    pub(super) fn install_one_rtt(&mut self, now: Instant, keys: Keys, session: &mut dyn Session) {
        self.one_rtt = Some(OneRtt {
            keys,
            updates: 0,
            previous: None,
            next: session.next_packet_keys(),
            since: now,
            peer_since: None,
            sealed: 0,
            acked: false,
        });
    }

    pub(super) fn discard(&mut self, space: Space) {
        match space {
            Space::Initial => self.initial = None,
            Space::Handshake => self.handshake = None,
            Space::Data(_) => {}
        }
    }

    /// True if packets of `space` can be sealed and opened.
    pub(in crate::connection) fn has(&self, space: Space) -> bool {
        self.has_level(space.level())
    }

    pub(super) fn has_level(&self, level: Level) -> bool {
        match level {
            Level::Initial => self.initial.is_some(),
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

    /// The keys to seal a packet with.
    pub(super) fn sealing(&mut self, space: Space) -> Option<&DirectionKeys> {
        match space {
            Space::Initial => self.initial.as_ref().map(|keys| &keys.local),
            Space::Handshake => self.handshake.as_ref().map(|keys| &keys.local),
            Space::Data(_) => self.one_rtt.as_mut().map(|one_rtt| {
                // https://www.rfc-editor.org/rfc/rfc9001#section-6.4
                //# Packets with higher packet numbers MUST be protected with either the same or
                //# newer packet protection keys than packets with lower packet numbers.
                // https://www.rfc-editor.org/rfc/rfc9001#section-6.6
                //# Endpoints MUST count the number of encrypted packets for each set of keys.
                one_rtt.sealed += 1;
                &one_rtt.keys.local
            }),
        }
    }

    /// The key phase of packets sent now.
    pub(in crate::connection) fn phase(&self) -> bool {
        self.one_rtt.as_ref().is_some_and(OneRtt::phase)
    }

    /// How often the next phase began, at whichever end's wish.
    pub(in crate::connection) fn updates(&self) -> u64 {
        self.one_rtt.as_ref().map_or(0, |one_rtt| one_rtt.updates)
    }

    /// Takes header protection off.
    pub(super) fn unprotect(
        &self,
        level: Level,
        packet: &mut [u8],
        packet_number_at: usize,
    ) -> Result<UnprotectedHeader, OpenError> {
        let keys = match level {
            Level::Initial => self.initial.as_ref(),
            Level::Handshake => self.handshake.as_ref(),
            Level::OneRtt => self.one_rtt.as_ref().map(|one_rtt| &one_rtt.keys),
        };
        let keys = keys.ok_or(OpenError)?;
        protection::unprotect(packet, packet_number_at, &*keys.remote.header)
    }

    /// Opens a packet. A packet of the next phase, once authentic, moves us there too.
    pub(super) fn open<'p>(
        &mut self,
        now: Instant,
        level: Level,
        (path, number): (PathId, PacketNumber),
        header: &UnprotectedHeader,
        packet: &'p mut [u8],
        session: &mut dyn Session,
    ) -> Result<&'p mut [u8], OpenError> {
        let opened = self.try_open(now, level, (path, number), header, packet, session);
        if opened.is_err() {
            // https://www.rfc-editor.org/rfc/rfc9001#section-6.6
            //# In addition to counting packets sent, endpoints MUST count the number of received
            //# packets that fail authentication during the lifetime of a connection.
            self.failures += 1;
        }
        opened
    }

    fn try_open<'p>(
        &mut self,
        now: Instant,
        level: Level,
        (path, number): (PathId, PacketNumber),
        header: &UnprotectedHeader,
        packet: &'p mut [u8],
        session: &mut dyn Session,
    ) -> Result<&'p mut [u8], OpenError> {
        let length = header.header_length;
        let one_rtt = match level {
            Level::Initial => {
                let keys = self.initial.as_ref().ok_or(OpenError)?;
                return protection::open(packet, length, path, number, &*keys.remote.packet);
            }
            Level::Handshake => {
                let keys = self.handshake.as_ref().ok_or(OpenError)?;
                return protection::open(packet, length, path, number, &*keys.remote.packet);
            }
            Level::OneRtt => self.one_rtt.as_mut().ok_or(OpenError)?,
        };
        if header.key_phase == one_rtt.phase() {
            let key = &*one_rtt.keys.remote.packet;
            let opened = protection::open(packet, length, path, number, key)?;
            one_rtt.peer_since.get_or_insert(now);
            return Ok(opened);
        }
        if let Some(previous) = &one_rtt.previous {
            return protection::open(packet, length, path, number, &**previous);
        }
        // https://www.rfc-editor.org/rfc/rfc9001#section-6.3
        //# Endpoints responding to an apparent key update MUST NOT generate a timing side-channel
        //# signal that might indicate that the Key Phase bit was invalid (see Section 9.5). Once
        //# generated, the next set of packet protection keys SHOULD be retained, even if the
        //# packet that was received was subsequently discarded.
        let next = one_rtt.next.as_ref().ok_or(OpenError)?;
        // https://www.rfc-editor.org/rfc/rfc9001#section-5.5
        //# Similarly, a packet that appears to trigger a key update but cannot be unprotected
        //# successfully MUST be discarded.
        let opened = protection::open(packet, length, path, number, &*next.remote)?;
        one_rtt.advance(now, session);
        one_rtt.peer_since = Some(now);
        Ok(opened)
    }

    /// A packet sent at `sent_at` was acknowledged.
    pub(super) fn on_acked(&mut self, sent_at: Instant) {
        if let Some(one_rtt) = &mut self.one_rtt {
            one_rtt.acked |= sent_at >= one_rtt.since;
        }
    }

    /// Begins the next phase before the keys wear out, and drops old keys.
    pub(super) fn maintain(
        &mut self,
        now: Instant,
        probe_timeout: Duration,
        session: &mut dyn Session,
    ) {
        let Some(one_rtt) = &mut self.one_rtt else { return };
        // https://www.rfc-editor.org/rfc/rfc9001#section-6.5
        //# An endpoint SHOULD retain old read keys for no more than three times
        //# the PTO after having received a packet protected using the new keys.
        let settled =
            one_rtt.peer_since.is_some_and(|since| now - since > probe_timeout.saturating_mul(3));
        if settled {
            // https://www.rfc-editor.org/rfc/rfc9001#section-6.5
            //# After this period, old read keys and their corresponding secrets SHOULD be
            //# discarded.
            one_rtt.previous = None;
        }
        let limit = one_rtt.keys.local.packet.confidentiality_limit();
        // https://www.rfc-editor.org/rfc/rfc9001#section-6.6
        //# Endpoints MUST initiate a key update before sending more protected
        //# packets than the confidentiality limit for the selected AEAD permits.
        // https://www.rfc-editor.org/rfc/rfc9001#section-5.3
        //# An endpoint MUST initiate a key update (Section 6) prior to exceeding any limit set
        //# for the AEAD that is in use.
        if one_rtt.sealed > limit / 2 && one_rtt.acked && settled {
            one_rtt.advance(now, session);
        }
    }

    /// True if so many packets were sealed that an update may be due.
    pub(in crate::connection) fn wants_maintenance(&self) -> bool {
        self.one_rtt.as_ref().is_some_and(|one_rtt| {
            let limit = one_rtt.keys.local.packet.confidentiality_limit();
            one_rtt.previous.is_some() || one_rtt.sealed > limit / 2
        })
    }

    /// True if the keys may not be used any more.
    pub(super) fn is_worn_out(&self) -> bool {
        self.one_rtt.as_ref().is_some_and(|one_rtt| {
            let key = &one_rtt.keys.local.packet;
            // https://www.rfc-editor.org/rfc/rfc9001#section-6.6
            //# If the total number of encrypted packets with the same key exceeds the
            //# confidentiality limit for the selected AEAD, the endpoint MUST stop using those
            //# keys.
            one_rtt.sealed >= key.confidentiality_limit() || self.failures >= key.integrity_limit()
        })
    }

    /// Begins the next phase now, as a test or an application may ask; false if the present one
    /// is not acknowledged yet.
    pub(super) fn update(&mut self, now: Instant, session: &mut dyn Session) -> bool {
        match &mut self.one_rtt {
            // https://www.rfc-editor.org/rfc/rfc9001#section-6.1
            //# An endpoint MUST NOT initiate a subsequent key update unless it has received an
            //# acknowledgment for a packet that was sent protected with keys from the current key
            //# phase.
            // https://www.rfc-editor.org/rfc/rfc9001#section-6.5
            //# Endpoints SHOULD wait three times the PTO before initiating a key update after
            //# receiving an acknowledgment that confirms that the previous key update was
            //# received.
            Some(one_rtt) if one_rtt.acked && one_rtt.previous.is_none() => {
                one_rtt.advance(now, session);
                true
            }
            _ => false,
        }
    }
}

impl OneRtt {
    fn phase(&self) -> bool {
        self.updates & 1 == 1
    }

    fn advance(&mut self, now: Instant, session: &mut dyn Session) {
        let Some(next) = self.next.take() else { return };
        // https://www.rfc-editor.org/rfc/rfc9001#section-6.2
        //# The endpoint MUST update its send keys to the corresponding key phase in response, as
        //# described in Section 6.1. Sending keys MUST be updated before sending an
        //# acknowledgment for the packet that was received with updated keys.
        self.keys.local.packet = next.local;
        // https://www.rfc-editor.org/rfc/rfc9001#section-6.1
        //# An endpoint MUST retain old keys until it has successfully unprotected a packet sent
        //# using the new keys. An endpoint SHOULD retain old keys for some time after
        //# unprotecting a packet sent using the new keys.
        self.previous = Some(std::mem::replace(&mut self.keys.remote.packet, next.remote));
        // https://www.rfc-editor.org/rfc/rfc9001#section-9.5
        //# After receiving a key update, an endpoint SHOULD generate and save the next set of
        //# receive packet protection keys, as described in Section 6.3.
        self.next = session.next_packet_keys();
        self.updates += 1;
        self.since = now;
        self.peer_since = None;
        self.sealed = 0;
        self.acked = false;
    }
}
