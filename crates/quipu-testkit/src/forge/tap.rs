//! Copies of a connection's keys: the TLS seam of one end, wrapped so that a forger can seal and
//! open packets as that end does.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quipu_base::{PacketNumber, PathId, Role};
use quipu_quic::tls::{
    ClientHello, ClientStart, ClientTls, DirectionKeys, EarlyData, HeaderKey, InitialSecrets,
    KeyChange, Keys, Negotiated, OpenError, PacketKey, PacketKeyPair, SealError, ServerStart,
    ServerTls, Session, StartError, TlsError,
};
use quipu_quic::wire::{ConnectionId, PacketKind, Version};

/// Key phases whose keys are there as soon as those of the first are.
const PHASES: usize = 8;

/// The keys of one end, shared with whoever holds the vault.
#[derive(Clone, Default)]
pub struct Vault(Arc<Mutex<Held>>);

#[derive(Default)]
struct Held {
    /// What a client seals with, and a server opens.
    zero_rtt: Option<SharedDirection>,
    handshake: Option<SharedKeys>,
    one_rtt: Option<SharedKeys>,
    /// The payload keys of the second phase and of those after it.
    phases: Vec<SharedPair>,
    /// What the end declared: its encoded transport parameters.
    parameters: Vec<u8>,
}

/// The keys of one level.
#[derive(Clone)]
pub struct SharedKeys {
    /// For what the end sends.
    pub local: SharedDirection,
    /// For what its peer sends.
    pub remote: SharedDirection,
}

/// The keys of one direction.
#[derive(Clone)]
pub struct SharedDirection {
    /// Protects headers.
    pub header: Arc<dyn HeaderKey>,
    /// Protects payloads.
    pub packet: Arc<dyn PacketKey>,
}

#[derive(Clone)]
struct SharedPair {
    local: Arc<dyn PacketKey>,
    remote: Arc<dyn PacketKey>,
}

impl From<Keys> for SharedKeys {
    fn from(keys: Keys) -> Self {
        SharedKeys { local: keys.local.into(), remote: keys.remote.into() }
    }
}

impl From<DirectionKeys> for SharedDirection {
    fn from(keys: DirectionKeys) -> Self {
        SharedDirection { header: keys.header.into(), packet: keys.packet.into() }
    }
}

impl From<PacketKeyPair> for SharedPair {
    fn from(pair: PacketKeyPair) -> Self {
        SharedPair { local: pair.local.into(), remote: pair.remote.into() }
    }
}

impl SharedKeys {
    fn limited(&self, limit: Option<u64>) -> Keys {
        Keys { local: self.local.limited(limit), remote: self.remote.limited(limit) }
    }
}

impl SharedDirection {
    /// The same keys in the form that the engine takes.
    pub fn to_keys(&self) -> DirectionKeys {
        self.limited(None)
    }

    fn limited(&self, limit: Option<u64>) -> DirectionKeys {
        DirectionKeys {
            header: Box::new(CopiedHeaderKey(Arc::clone(&self.header))),
            packet: Box::new(CopiedPacketKey { key: Arc::clone(&self.packet), limit }),
        }
    }
}

impl SharedPair {
    fn limited(&self, limit: Option<u64>) -> PacketKeyPair {
        let copied = |key: &Arc<dyn PacketKey>| CopiedPacketKey { key: Arc::clone(key), limit };
        PacketKeyPair {
            local: Box::new(copied(&self.local)),
            remote: Box::new(copied(&self.remote)),
        }
    }
}

impl Vault {
    /// The keys for packets of `kind` in that key phase, counted from zero; `None` before they
    /// were made. Initial keys are no secret: see [`InitialSecrets`].
    pub fn keys(&self, kind: PacketKind, phase: usize) -> Option<SharedKeys> {
        let held = self.held();
        match kind {
            PacketKind::Handshake => held.handshake.clone(),
            PacketKind::OneRtt => {
                let mut keys = held.one_rtt.clone()?;
                if let Some(before) = phase.checked_sub(1) {
                    let pair = held.phases.get(before)?;
                    keys.local.packet = Arc::clone(&pair.local);
                    keys.remote.packet = Arc::clone(&pair.remote);
                }
                Some(keys)
            }
            PacketKind::ZeroRtt => {
                let keys = held.zero_rtt.clone()?;
                Some(SharedKeys { local: keys.clone(), remote: keys })
            }
            PacketKind::Initial => None,
        }
    }

    /// The transport parameters that the end declared, encoded.
    pub fn parameters(&self) -> Vec<u8> {
        self.held().parameters.clone()
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Edits the encoded transport parameters that an end is about to declare.
pub type EditParameters = Arc<dyn Fn(&[u8]) -> Vec<u8> + Send + Sync>;

/// TLS of either role whose keys go into a [`Vault`] too.
#[derive(Clone)]
pub struct Tap<T: ?Sized> {
    inner: Arc<T>,
    vault: Vault,
    edit: Option<EditParameters>,
    integrity_limit: Option<u64>,
}

impl<T: ?Sized> Tap<T> {
    /// `inner` with a vault for one connection: that of the session started last.
    pub fn new(inner: Arc<T>, vault: Vault) -> Self {
        Tap { inner, vault, edit: None, integrity_limit: None }
    }

    /// The same, which declares what `edit` makes of the transport parameters.
    #[must_use]
    pub fn declaring(self, edit: Option<EditParameters>) -> Self {
        Tap { edit, ..self }
    }

    /// The same, whose keys say that so many packets may fail to open.
    #[must_use]
    pub fn with_integrity_limit(self, integrity_limit: Option<u64>) -> Self {
        Tap { integrity_limit, ..self }
    }

    fn declared(&self, parameters: &[u8]) -> Vec<u8> {
        let declared =
            self.edit.as_ref().map_or_else(|| parameters.to_vec(), |edit| edit(parameters));
        *self.vault.held() = Held { parameters: declared.clone(), ..Held::default() };
        declared
    }

    fn tapped(&self, inner: Box<dyn Session>) -> Box<dyn Session> {
        let limit = self.integrity_limit;
        Box::new(TappedSession { inner, vault: self.vault.clone(), phase: 0, limit })
    }
}

impl<T: InitialSecrets + ?Sized> InitialSecrets for Tap<T> {
    fn initial_keys(&self, version: Version, dcid: &ConnectionId, role: Role) -> Keys {
        self.inner.initial_keys(version, dcid, role)
    }
}

impl ClientTls for Tap<dyn ClientTls> {
    fn start(&self, start: &ClientStart<'_>) -> Result<Box<dyn Session>, StartError> {
        let declared = self.declared(start.parameters);
        let start = ClientStart { parameters: &declared, ..*start };
        Ok(self.tapped(self.inner.start(&start)?))
    }
}

impl ServerTls for Tap<dyn ServerTls> {
    fn client_hello<'h>(&self, bytes: &'h [u8]) -> Result<Option<ClientHello<'h>>, TlsError> {
        self.inner.client_hello(bytes)
    }

    fn start(&self, start: &ServerStart<'_>) -> Result<Box<dyn Session>, StartError> {
        let declared = self.declared(start.parameters);
        let start = ServerStart { parameters: &declared, ..*start };
        Ok(self.tapped(self.inner.start(&start)?))
    }
}

/// A session whose keys are copied.
struct TappedSession {
    inner: Box<dyn Session>,
    vault: Vault,
    /// Key phases that the engine was given after the first.
    phase: usize,
    /// Packets that may fail to open, if not as many as the AEAD says.
    limit: Option<u64>,
}

impl Session for TappedSession {
    fn read(&mut self, level: quipu_quic::tls::Level, data: &[u8]) -> Result<(), TlsError> {
        self.inner.read(level, data)
    }

    fn write(&mut self, out: &mut Vec<u8>) -> Option<KeyChange> {
        Some(match self.inner.write(out)? {
            KeyChange::Handshake(keys) => {
                let keys = SharedKeys::from(keys);
                self.vault.held().handshake = Some(keys.clone());
                KeyChange::Handshake(keys.limited(self.limit))
            }
            KeyChange::OneRtt(keys) => {
                let keys = SharedKeys::from(keys);
                let mut held = self.vault.held();
                held.one_rtt = Some(keys.clone());
                while held.phases.len() < PHASES
                    && let Some(pair) = self.inner.next_packet_keys()
                {
                    held.phases.push(pair.into());
                }
                KeyChange::OneRtt(keys.limited(self.limit))
            }
        })
    }

    fn is_handshaking(&self) -> bool {
        self.inner.is_handshaking()
    }

    fn peer_transport_parameters(&self) -> Option<&[u8]> {
        self.inner.peer_transport_parameters()
    }

    fn alpn(&self) -> Option<&[u8]> {
        self.inner.alpn()
    }

    fn next_packet_keys(&mut self) -> Option<PacketKeyPair> {
        let mut held = self.vault.held();
        held.one_rtt.as_ref()?;
        if held.phases.len() <= self.phase {
            let pair = self.inner.next_packet_keys()?;
            held.phases.push(pair.into());
        }
        let pair = held.phases.get(self.phase)?.limited(self.limit);
        self.phase += 1;
        Some(pair)
    }

    fn server_name(&self) -> Option<&str> {
        self.inner.server_name()
    }

    fn early_data(&self) -> EarlyData {
        self.inner.early_data()
    }

    fn zero_rtt_keys(&mut self) -> Option<DirectionKeys> {
        let keys = SharedDirection::from(self.inner.zero_rtt_keys()?);
        self.vault.held().zero_rtt = Some(keys.clone());
        Some(keys.limited(self.limit))
    }

    fn remembered_parameters(&self) -> Option<&[u8]> {
        self.inner.remembered_parameters()
    }

    fn change_version(&mut self, version: Version) -> Result<(), TlsError> {
        self.inner.change_version(version)
    }

    fn negotiated(&self) -> Option<Negotiated> {
        self.inner.negotiated()
    }

    fn peer_certificates(&self) -> Option<&[quipu_quic::tls::CertificateDer<'static>]> {
        self.inner.peer_certificates()
    }
}

struct CopiedPacketKey {
    key: Arc<dyn PacketKey>,
    /// Packets that may fail to open, if not as many as the AEAD says.
    limit: Option<u64>,
}

impl PacketKey for CopiedPacketKey {
    fn seal(
        &self,
        path: PathId,
        number: PacketNumber,
        header: &[u8],
        payload_and_tag: &mut [u8],
    ) -> Result<(), SealError> {
        self.key.seal(path, number, header, payload_and_tag)
    }

    fn open(
        &self,
        path: PathId,
        number: PacketNumber,
        header: &[u8],
        payload: &mut [u8],
    ) -> Result<usize, OpenError> {
        self.key.open(path, number, header, payload)
    }

    fn tag_length(&self) -> usize {
        self.key.tag_length()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.key.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.limit.unwrap_or_else(|| self.key.integrity_limit())
    }
}

struct CopiedHeaderKey(Arc<dyn HeaderKey>);

impl HeaderKey for CopiedHeaderKey {
    fn protect(&self, sample: &[u8], first: &mut u8, number: &mut [u8]) -> Result<(), SealError> {
        self.0.protect(sample, first, number)
    }

    fn unprotect(&self, sample: &[u8], first: &mut u8, number: &mut [u8]) -> Result<(), OpenError> {
        self.0.unprotect(sample, first, number)
    }

    fn sample_length(&self) -> usize {
        self.0.sample_length()
    }
}
