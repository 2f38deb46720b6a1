//! Connection IDs: those we issue and those the peer issued, per path identifier.
//! <https://www.rfc-editor.org/rfc/rfc9000#section-5.1>, per path by RFC 10069.

use std::sync::Arc;

use quipu_base::PathId;

use crate::connection_ids::ConnectionIdGenerator;
use crate::error::{ErrorCode, TransportError};
use crate::random::{NoRandomness, Randomness};
use crate::tls::ResetKey;
use crate::wire::{ConnectionId, ResetToken};

mod by_path;
mod remote;
mod shelf;

use by_path::ByPath;
pub(super) use remote::RemoteIds;
use shelf::{Kept, Shelf};

/// Connection IDs of the peer that we are willing to keep for a path; told in
/// `active_connection_id_limit`.
// https://www.rfc-editor.org/rfc/rfc9000#section-18.2
//# The value of the active_connection_id_limit parameter MUST be at least 2.
pub(crate) const ACTIVE_LIMIT: u64 = 4;

/// Connection IDs of ours that may be replaced over the life of a connection because another one has
/// them: by chance, hardly any is.
const MAX_REPLACED: u32 = 64;

/// All connection IDs of a connection.
pub(super) struct ConnectionIds {
    local: LocalIds,
    remote: RemoteIds,
    /// Ours of the handshake.
    first_local: ConnectionId,
    /// Destination of the client's first datagram.
    original: ConnectionId,
    /// Source of the Retry packet that we sent as a server, if we did: the client's next datagrams
    /// went there.
    retry_source: Option<ConnectionId>,
    /// Source of the peer's packets of the handshake; of a client's, the destination of its own until
    /// the server has chosen one.
    first_remote: ConnectionId,
    /// Bytes of those that we issue.
    local_length: usize,
}

/// Connection IDs of the handshake, as transport parameters tell them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FirstIds {
    /// Ours.
    pub(crate) local: ConnectionId,
    /// The stateless reset token of ours, if the peer is told one.
    pub(crate) reset_token: Option<ResetToken>,
    /// Destination of the client's first packet.
    pub(crate) original: ConnectionId,
    /// Source of the Retry packet that the server sent, if it did.
    pub(crate) retry_source: Option<ConnectionId>,
    /// What a server tells with the address at which it would rather be reached.
    pub(crate) preferred: Option<PreferredId>,
}

/// A connection ID of ours that is told in the handshake, of sequence number 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PreferredId {
    pub(crate) id: ConnectionId,
    pub(crate) token: ResetToken,
}

/// What makes connection IDs of ours and their stateless reset tokens.
#[derive(Clone)]
pub(crate) struct IdSource {
    pub(crate) generator: Arc<dyn ConnectionIdGenerator>,
    /// Makes the tokens, so that they outlive the connection; without it they are random.
    pub(crate) reset_key: Option<Arc<dyn ResetKey>>,
}

impl IdSource {
    /// Makes a connection ID and its token, unless a key makes that whenever it is needed.
    fn make(
        &self,
        random: &mut dyn Randomness,
    ) -> Result<(ConnectionId, Option<ResetToken>), NoRandomness> {
        let id = self.generator.generate(random)?;
        // https://www.rfc-editor.org/rfc/rfc9000#section-10.3.2
        //# The stateless reset token MUST be difficult to guess.
        // https://www.rfc-editor.org/rfc/rfc9000#section-10.3.2
        //# The same stateless reset token MUST NOT be used for multiple connection IDs.
        let token = match self.reset_key {
            Some(_) => None,
            None => Some(ResetToken::new(random.draw()?)),
        };
        Ok((id, token))
    }

    /// The token of a connection ID if a key makes it.
    fn keyed_token(&self, id: &ConnectionId) -> Option<ResetToken> {
        self.reset_key.as_ref().map(|key| key.reset_token(id))
    }
}

impl ConnectionIds {
    pub(super) fn new(source: IdSource, first: FirstIds, remote: ConnectionId) -> Self {
        ConnectionIds {
            local_length: source.generator.length(),
            local: LocalIds::first(source, &first),
            remote: RemoteIds::first(remote),
            first_local: first.local,
            original: first.original,
            retry_source: first.retry_source,
            first_remote: remote,
        }
    }

    /// The length in bytes of those that we issue.
    pub(super) fn local_length(&self) -> usize {
        self.local_length
    }

    /// The one that we chose for the handshake.
    pub(super) fn first_local(&self) -> ConnectionId {
        self.first_local
    }

    /// The one that the peer chose for the handshake.
    pub(super) fn first_remote(&self) -> ConnectionId {
        self.first_remote
    }

    /// Destination of the client's first datagram.
    pub(super) fn original(&self) -> ConnectionId {
        self.original
    }

    /// Those that the peer issued.
    pub(super) fn remote(&self) -> &RemoteIds {
        &self.remote
    }

    /// The same, to change them.
    pub(super) fn remote_mut(&mut self) -> &mut RemoteIds {
        &mut self.remote
    }

    /// The server chose its connection ID: it takes the place of the client's random one.
    pub(super) fn replace_first_remote(&mut self, cid: ConnectionId) {
        self.first_remote = cid;
        self.remote.replace_first(cid);
    }

    /// A client begins again, with another connection ID to send its first datagram to.
    pub(super) fn begin_again(&mut self, dcid: ConnectionId) {
        self.original = dcid;
        self.first_remote = dcid;
        self.remote = RemoteIds::first(dcid);
    }

    /// Makes another of ours for `path`: its sequence number, and it.
    pub(super) fn issue(
        &mut self,
        path: PathId,
        random: &mut dyn Randomness,
    ) -> Result<(u64, ConnectionId), NoRandomness> {
        self.local.issue(path, random)
    }

    /// Another connection has one of ours: another takes its place, under the same sequence number.
    /// The peer must not know it yet.
    pub(super) fn replace(
        &mut self,
        path: PathId,
        cid: ConnectionId,
        random: &mut dyn Randomness,
    ) -> Result<ConnectionId, NoRandomness> {
        self.local.replace(path, cid, random)
    }

    /// Number of ours that are live on `path`.
    pub(super) fn live(&self, path: PathId) -> usize {
        self.local.live(path)
    }

    /// One of ours that is still live, to tell the peer (again); `None` if it has it.
    pub(super) fn issued(&self, path: PathId, sequence: u64) -> Option<(ConnectionId, ResetToken)> {
        self.local.get(path, sequence)
    }

    /// The peer retires one of ours: it, if it was live.
    pub(super) fn retire(
        &mut self,
        path: PathId,
        sequence: u64,
    ) -> Result<Option<ConnectionId>, TransportError> {
        self.local.retire(path, sequence)
    }

    /// The peer was told of one of ours.
    pub(super) fn on_told(&mut self, path: PathId, sequence: u64) {
        self.local.on_told(path, sequence);
    }

    /// The peer has one of ours: it need not be told again.
    pub(super) fn on_acked(&mut self, path: PathId, sequence: u64) {
        self.local.on_acked(path, sequence);
    }

    /// The sequence number of the next that the peer will be told for `path`.
    pub(super) fn next_told(&self, path: PathId) -> u64 {
        self.local.next_told(path)
    }

    /// The path is gone: those of ours that were live are so no more.
    pub(super) fn drop_local(&mut self, path: PathId) -> impl Iterator<Item = ConnectionId> {
        self.local.drop_path(path)
    }

    /// All those to which datagrams for this connection may come: ours that are live, and those to
    /// which a client sends its first datagrams.
    pub(super) fn destinations(&self) -> impl Iterator<Item = ConnectionId> {
        let live = self.local.shelf.iter().map(|kept| kept.id);
        live.chain([self.original]).chain(self.retry_source)
    }

    /// Gives back memory that is not needed.
    pub(super) fn release_memory(&mut self) {
        self.local.shelf.release();
        self.remote.release_memory();
    }
}

/// Sequence numbers of the connection IDs of one path that we issue.
#[derive(Debug, Default)]
struct Issued {
    next_sequence: u64,
    /// The last ones, so many, of which the peer was not told.
    untold: u32,
}

impl Issued {
    /// The peer was told of those below this.
    fn told(&self) -> u64 {
        self.next_sequence.saturating_sub(self.untold.into())
    }
}

/// Connection IDs that we issue.
struct LocalIds {
    source: IdSource,
    paths: ByPath<Issued>,
    /// Those that are live, with the tokens of which the peer may have to be told again. Those that a
    /// key makes are made again for that.
    shelf: Shelf,
    /// Connection IDs that were replaced because another connection had them.
    replaced: u32,
}

impl LocalIds {
    /// Keeps the connection IDs of the handshake: sequence number 0 of path 0, and 1 if one is told
    /// with an address.
    fn first(source: IdSource, first: &FirstIds) -> Self {
        let mut ids =
            LocalIds { source, paths: ByPath::default(), shelf: Shelf::default(), replaced: 0 };
        let path = PathId::ZERO;
        ids.shelf.put(&Kept { path, sequence: 0, id: first.local, token: first.reset_token });
        let mut next_sequence = 1;
        if let Some(PreferredId { id, token }) = first.preferred {
            ids.shelf.put(&Kept { path, sequence: 1, id, token: Some(token) });
            next_sequence = 2;
        }
        *ids.paths.entry(path) = Issued { next_sequence, untold: 0 };
        ids
    }

    fn on_told(&mut self, path: PathId, sequence: u64) {
        if let Some(issued) = self.paths.get_mut(path) {
            let later = issued.next_sequence.saturating_sub(sequence.saturating_add(1));
            issued.untold = issued.untold.min(u32::try_from(later).unwrap_or(u32::MAX));
        }
    }

    /// The peer has one, with its token, which is of no use here any more.
    fn on_acked(&mut self, path: PathId, sequence: u64) {
        if let Some(kept) = self.shelf.take(path, sequence) {
            self.shelf.put(&Kept { token: None, ..kept });
        }
    }

    fn next_told(&self, path: PathId) -> u64 {
        self.paths.get(path).map_or(0, Issued::told)
    }

    /// Makes another connection ID for `path`: its sequence number, and it.
    fn issue(
        &mut self,
        path: PathId,
        random: &mut dyn Randomness,
    ) -> Result<(u64, ConnectionId), NoRandomness> {
        let (id, token) = self.source.make(random)?;
        let issued = self.paths.entry(path);
        let sequence = issued.next_sequence;
        // https://www.rfc-editor.org/rfc/rfc9000#section-5.1.1
        //# The sequence number on each newly issued connection ID MUST increase by 1.
        issued.next_sequence += 1;
        issued.untold += 1;
        self.shelf.put(&Kept { path, sequence, id, token });
        Ok((sequence, id))
    }

    /// Makes another connection ID in place of `cid`, under its sequence number; without one, none
    /// has that number.
    fn replace(
        &mut self,
        path: PathId,
        cid: ConnectionId,
        random: &mut dyn Randomness,
    ) -> Result<ConnectionId, NoRandomness> {
        let own = self.shelf.of(path).find(|own| own.id == cid).ok_or(NoRandomness)?;
        self.shelf.take(path, own.sequence);
        // A generator that gives too few different ones must not keep us here.
        self.replaced += 1;
        if self.replaced > MAX_REPLACED {
            return Err(NoRandomness);
        }
        let (id, token) = self.source.make(random)?;
        self.shelf.put(&Kept { id, token, ..own });
        Ok(id)
    }

    /// Number of live connection IDs of `path`.
    fn live(&self, path: PathId) -> usize {
        self.shelf.of(path).count()
    }

    /// A connection ID that is still live, to tell the peer (again); `None` if it has it.
    fn get(&self, path: PathId, sequence: u64) -> Option<(ConnectionId, ResetToken)> {
        let kept = self.shelf.get(path, sequence)?;
        let token = kept.token.or_else(|| self.source.keyed_token(&kept.id))?;
        Some((kept.id, token))
    }

    /// The peer retires one: it, if it was live.
    fn retire(
        &mut self,
        path: PathId,
        sequence: u64,
    ) -> Result<Option<ConnectionId>, TransportError> {
        let never = || TransportError::protocol_violation("retired a connection ID never issued");
        let issued = self.paths.get(path).ok_or_else(never)?;
        // https://www.rfc-editor.org/rfc/rfc9000#section-19.16
        //# Receipt of a RETIRE_CONNECTION_ID frame containing a sequence number
        //# greater than any previously sent to the peer MUST be treated as a
        //# connection error of type PROTOCOL_VIOLATION.
        if sequence >= issued.told() {
            return Err(never());
        }
        Ok(self.shelf.take(path, sequence).map(|kept| kept.id))
    }

    /// Drops all of a path; the connection IDs that were live.
    fn drop_path(&mut self, path: PathId) -> impl Iterator<Item = ConnectionId> {
        self.paths.remove(path);
        std::iter::from_fn(move || Some(self.shelf.take_of(path)?.id))
    }
}

/// More connection IDs than we said we would keep.
pub(super) fn too_many() -> TransportError {
    TransportError::new(ErrorCode::CONNECTION_ID_LIMIT_ERROR, "too many connection IDs")
}
