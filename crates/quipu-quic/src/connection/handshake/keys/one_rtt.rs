//! Keys of 1-RTT packets through all phases.
//! <https://www.rfc-editor.org/rfc/rfc9001#section-6>

use quipu_base::{PacketNumber, PathId};

use super::phase::{Candidates, Phases};
use super::{OpenedPayload, Unopened};
use crate::error::TransportError;
use crate::tls::protection::{self, UnprotectedHeader};
use crate::tls::{DirectionKeys, Keys, PacketKey, PacketKeyPair, Session};

/// Keys of 1-RTT packets through all phases.
pub(super) struct OneRtt {
    /// Of the present phase.
    keys: Keys,
    phases: Phases,
    /// Opens packets of the phase before.
    previous: Option<Box<dyn PacketKey>>,
    /// True once the keys of the phase before need be kept for a while only.
    discards: bool,
    // https://www.rfc-editor.org/rfc/rfc9001#section-6.3
    //# For this reason, endpoints MUST be able to retain two sets of packet protection keys for
    //# receiving packets: the current and the next.
    next: Option<PacketKeyPair>,
    /// Packets sealed in this phase.
    sealed: u64,
}

/// Which keys open a packet.
#[derive(Clone, Copy)]
enum Which {
    Previous,
    Next,
}

impl OneRtt {
    /// The first phase.
    pub(super) fn new(keys: Keys, session: &mut dyn Session) -> Self {
        OneRtt {
            keys,
            phases: Phases::new(),
            previous: None,
            discards: false,
            next: session.next_packet_keys(),
            sealed: 0,
        }
    }

    /// The keys for what the peer sends in the present phase.
    pub(super) fn remote(&self) -> &DirectionKeys {
        &self.keys.remote
    }

    pub(super) fn phase_bit(&self) -> bool {
        self.phases.bit()
    }

    /// How often the next phase began.
    pub(super) fn updates(&self) -> u64 {
        self.phases.count()
    }

    /// The keys to seal packet `number` of a path with.
    #[inline]
    pub(super) fn sealing(&mut self, path: PathId, number: PacketNumber) -> &DirectionKeys {
        // https://www.rfc-editor.org/rfc/rfc9001#section-6.4
        //# Packets with higher packet numbers MUST be protected with either the same or newer
        //# packet protection keys than packets with lower packet numbers.
        // https://www.rfc-editor.org/rfc/rfc9001#section-6.6
        //# Endpoints MUST count the number of encrypted packets for each set of keys.
        self.sealed += 1;
        self.phases.on_sealed(path, number);
        &self.keys.local
    }

    /// Opens a packet. A packet of the next phase, once authentic, moves us there too.
    pub(super) fn open<'p>(
        &mut self,
        (path, number): (PathId, PacketNumber),
        header: &UnprotectedHeader,
        packet: &'p mut [u8],
        session: &mut dyn Session,
    ) -> Result<OpenedPayload<'p>, Unopened> {
        if header.key_phase == self.phases.bit() {
            let key = &*self.keys.remote.packet;
            let payload = protection::open(packet, header.header_length, path, number, key)?;
            // https://www.rfc-editor.org/rfc/rfc9001#section-6.1
            //# An endpoint MUST retain old keys until it has successfully unprotected a packet
            //# sent using the new keys. An endpoint SHOULD retain old keys for some time after
            //# unprotecting a packet sent using the new keys.
            self.discards |= self.phases.on_present(path, number);
            return Ok(OpenedPayload { payload, old_keys: false });
        }
        // https://www.rfc-editor.org/rfc/rfc9001#section-6.3
        //# Endpoints responding to an apparent key update MUST NOT generate a timing side-channel
        //# signal that might indicate that the Key Phase bit was invalid (see Section 9.5). Once
        //# generated, the next set of packet protection keys SHOULD be retained, even if the
        //# packet that was received was subsequently discarded.
        let (first, second) = match self.phases.candidates(path, number) {
            Candidates::Next => (Which::Next, None),
            Candidates::Previous => (Which::Previous, None),
            Candidates::NextElsePrevious => (Which::Next, Some(Which::Previous)),
            Candidates::PreviousElseNext => (Which::Previous, Some(Which::Next)),
        };
        // What does not open is spoilt.
        let copy = second.map(|_| packet.to_vec());
        let id = (path, number);
        let length = match (self.open_with(first, id, header, packet, session), second, copy) {
            (Err(Unopened::Unreadable), Some(second), Some(copy)) => {
                packet.copy_from_slice(&copy);
                self.open_with(second, id, header, packet, session)?
            }
            (opened, ..) => opened?,
        };
        let OpenedLength { length, old_keys } = length;
        let end = header.header_length + length;
        let payload = packet.get_mut(header.header_length..end).ok_or(Unopened::Unreadable)?;
        Ok(OpenedPayload { payload, old_keys })
    }

    fn open_with(
        &mut self,
        which: Which,
        (path, number): (PathId, PacketNumber),
        header: &UnprotectedHeader,
        packet: &mut [u8],
        session: &mut dyn Session,
    ) -> Result<OpenedLength, Unopened> {
        let next = self.next.as_ref().map(|next| &next.remote);
        let key = match which {
            Which::Previous => self.previous.as_ref(),
            Which::Next => next,
        };
        let key = &**key.ok_or(Unopened::Unreadable)?;
        // https://www.rfc-editor.org/rfc/rfc9001#section-5.5
        //# Similarly, a packet that appears to trigger a key update but cannot be unprotected
        //# successfully MUST be discarded.
        let length = protection::open(packet, header.header_length, path, number, key)?.len();
        match which {
            Which::Previous => self.phases.on_previous(path, number)?,
            Which::Next => {
                self.phases.on_next(path, number)?;
                self.replace_keys(session);
                self.discards = true;
            }
        }
        Ok(OpenedLength { length, old_keys: matches!(which, Which::Previous) })
    }

    pub(super) fn on_acked(
        &mut self,
        path: PathId,
        largest: PacketNumber,
        old: bool,
    ) -> Result<(), TransportError> {
        self.phases.on_acked(path, largest, old)
    }

    #[inline]
    pub(super) fn owes_answer(&self) -> bool {
        self.phases.owes_answer()
    }

    pub(super) fn on_ack_sent(&mut self, path: PathId, largest: PacketNumber) {
        self.phases.on_ack_sent(path, largest);
    }

    /// True if the keys of the phase before go after a while.
    pub(super) fn discards(&self) -> bool {
        self.discards
    }

    /// The keys of the phase before go.
    pub(super) fn discard_previous(&mut self) {
        self.discards = false;
        if self.phases.expire() {
            self.previous = None;
        }
    }

    /// True if so many packets were sealed that an update is due.
    pub(super) fn wants_update(&self) -> bool {
        self.sealed > self.keys.local.packet.confidentiality_limit() / 2
    }

    /// True if the keys may hardly be used any more: less than one flight of packets is left.
    pub(super) fn is_worn_out(&self) -> bool {
        let limit = self.keys.local.packet.confidentiality_limit();
        // https://www.rfc-editor.org/rfc/rfc9001#section-6.6
        //# If the total number of encrypted packets with the same key exceeds the confidentiality
        //# limit for the selected AEAD, the endpoint MUST stop using those keys.
        self.sealed >= limit - limit / 64
    }

    /// Begins the next phase; false if that cannot be now.
    pub(super) fn update(&mut self, session: &mut dyn Session) -> bool {
        let begins = self.phases.begin();
        if begins {
            self.replace_keys(session);
        }
        begins
    }

    /// The keys of the next phase take the place of the present ones.
    fn replace_keys(&mut self, session: &mut dyn Session) {
        let Some(next) = self.next.take() else { return };
        // https://www.rfc-editor.org/rfc/rfc9001#section-6.2
        //# The endpoint MUST update its send keys to the corresponding key phase in response, as
        //# described in Section 6.1. Sending keys MUST be updated before sending an
        //# acknowledgment for the packet that was received with updated keys.
        self.keys.local.packet = next.local;
        self.previous = Some(std::mem::replace(&mut self.keys.remote.packet, next.remote));
        // https://www.rfc-editor.org/rfc/rfc9001#section-9.5
        //# After receiving a key update, an endpoint SHOULD generate and save the next set of
        //# receive packet protection keys, as described in Section 6.3.
        self.next = session.next_packet_keys();
        self.sealed = 0;
    }
}

/// A packet that was opened in place.
struct OpenedLength {
    /// Bytes of the payload.
    length: usize,
    old_keys: bool,
}

#[cfg(test)]
mod tests;
