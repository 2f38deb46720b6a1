//! Packets: which can be read, and with which keys they are opened and sealed.

use quipu_base::{Instant, PacketNumber, PathId};

use super::{Handshake, Tls};
use crate::connection::Space;
use crate::connection::handshake::kept::KeptPacket;
use crate::connection::handshake::keys::{OpenedPayload, Unopened};
use crate::error::TransportError;
use crate::tls::protection::UnprotectedHeader;
use crate::tls::{DirectionKeys, Level, OpenError, Session};
use crate::wire::Version;

/// Whether packets of a level can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::connection) enum Readable {
    Now,
    /// Their keys are still to come.
    Later,
    Never,
}

impl Handshake {
    /// Whether packets of a level can be read. `version`: that of a long header; `handshaking`: TLS
    /// has not finished.
    pub(in crate::connection) fn readable(
        &self,
        level: Level,
        version: Option<Version>,
        handshaking: bool,
    ) -> Readable {
        if level == Level::Initial {
            let reads = version.is_some_and(|version| self.keys.reads_initial(version));
            return if reads { Readable::Now } else { Readable::Never };
        }
        // https://www.rfc-editor.org/rfc/rfc9001#section-5.7
        //# Endpoints in either role MUST NOT decrypt 1-RTT packets from their peer prior to
        //# completing the handshake. A server MUST NOT process incoming 1-RTT protected packets
        //# before the TLS handshake is complete. Even if it has 1-RTT secrets, a client MUST NOT
        //# process incoming 1-RTT protected packets before the TLS handshake is complete.
        let too_early = level == Level::OneRtt && handshaking;
        if level == Level::ZeroRtt {
            return self.readable_early(version);
        }
        if !self.keys.has_level(level) || too_early {
            return if handshaking { Readable::Later } else { Readable::Never };
        }
        // https://www.rfc-editor.org/rfc/rfc9369#section-4.1
        //# An endpoint MUST drop packets using any other version.
        match version {
            Some(version) if version != self.version.present() => Readable::Never,
            _ => Readable::Now,
        }
    }

    /// Whether 0-RTT packets can be read.
    fn readable_early(&self, version: Option<Version>) -> Readable {
        // https://www.rfc-editor.org/rfc/rfc9001#section-5.6
        //# A client MUST NOT attempt to decrypt 0-RTT packets it receives and instead MUST discard
        //# them.
        // https://www.rfc-editor.org/rfc/rfc9369#section-4.1
        // They are of the version of the client's first flight.
        let other = version.is_some_and(|version| version != self.version.original());
        if self.role.is_client() || other {
            return Readable::Never;
        }
        match self.tls {
            Tls::Waiting(_) => Readable::Later,
            // https://www.rfc-editor.org/rfc/rfc9001#section-4.6.2
            //# When rejecting 0-RTT, a server MUST NOT process any 0-RTT packets, even if it could.
            Tls::Session(_) if self.keys.reads_early() => Readable::Now,
            Tls::Session(_) => Readable::Never,
        }
    }

    /// An Initial packet of `version` came to a client: the server may go on in it, if it is one of
    /// ours.
    /// <https://www.rfc-editor.org/rfc/rfc9369#section-4.1>
    pub(in crate::connection) fn consider_version(&mut self, version: Option<Version>) {
        let Some(version) = version else { return };
        if self.keys.reads_initial(version) || version == self.version.present() {
            return;
        }
        // Gone once the version is certain.
        let origin = self.origin.as_ref().filter(|origin| origin.allows(version));
        if let (Some(origin), Some(dcid)) = (origin, self.keys.initial_dcid()) {
            self.keys.expect_initial(version, origin.initial_keys(version, &dcid));
        }
    }

    /// An Initial packet of `version` opened at a client: the server goes on in it.
    pub(in crate::connection) fn on_version(
        &mut self,
        version: Option<Version>,
    ) -> Result<(), TransportError> {
        let changed = version.filter(|version| *version != self.version.original());
        if let (Some(version), Tls::Session(session)) = (changed, &mut self.tls)
            && version != self.version.present()
            && self.origin.is_some()
        {
            session.change_version(version)?;
            // https://www.rfc-editor.org/rfc/rfc9369#section-4.1
            //# Once the client has learned the negotiated version, it SHOULD send subsequent
            //# Initial packets using that version.
            self.keys.change_initial(version);
            self.version.change(version);
        }
        Ok(())
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
        let next = kept.take(|level| self.readable(level, None, handshaking) != Readable::Later);
        self.kept = kept;
        next
    }

    /// Takes header protection off.
    pub(in crate::connection) fn unprotect(
        &self,
        level: Level,
        version: Option<Version>,
        packet: &mut [u8],
        packet_number_at: usize,
    ) -> Result<UnprotectedHeader, OpenError> {
        self.keys.unprotect(level, version, packet, packet_number_at)
    }

    /// Opens a packet. A packet of the next key phase, once authentic, moves us there too.
    pub(in crate::connection) fn open<'p>(
        &mut self,
        level: Level,
        version: Option<Version>,
        number: (PathId, PacketNumber),
        header: &UnprotectedHeader,
        packet: &'p mut [u8],
    ) -> Result<OpenedPayload<'p>, Unopened> {
        let session = self.tls.session_mut().map(|session| &mut **session as &mut dyn Session);
        self.keys.open(level, version, number, header, packet, session)
    }

    /// The keys to seal packet `number` of a path with.
    pub(in crate::connection) fn sealing(
        &mut self,
        space: Space,
        number: (PathId, PacketNumber),
    ) -> Option<&DirectionKeys> {
        self.keys.sealing(space, number)
    }

    /// 1-RTT packets that we sent on a path were acknowledged, up to `largest`. `old_keys`: in a
    /// packet of the key phase before.
    pub(in crate::connection) fn on_acked(
        &mut self,
        path: PathId,
        largest: PacketNumber,
        old_keys: bool,
    ) -> Result<(), TransportError> {
        self.keys.on_acked(path, largest, old_keys)
    }

    /// A 1-RTT packet acknowledges packets of a path, up to `largest`.
    pub(in crate::connection) fn on_ack_sent(&mut self, path: PathId, largest: PacketNumber) {
        self.keys.on_ack_sent(path, largest);
    }

    /// Begins the next key phase before the keys wear out.
    pub(in crate::connection) fn renew_keys(&mut self) -> Result<(), TransportError> {
        match self.tls.session_mut() {
            Some(session) => self.keys.renew(&mut **session),
            None => Ok(()),
        }
    }

    /// Old keys go at that time.
    pub(in crate::connection) fn discard_old_keys_at(&mut self, at: Instant) {
        self.keys.discard_old_at(at);
    }

    /// Time has come to drop old keys.
    pub(in crate::connection) fn discard_old_keys(&mut self) {
        self.keys.discard_old();
    }

    /// Begins the next key phase; `false` if that cannot be now.
    pub(in crate::connection) fn update_keys(&mut self) -> bool {
        self.tls.session_mut().is_some_and(|session| self.keys.update(&mut **session))
    }
}
