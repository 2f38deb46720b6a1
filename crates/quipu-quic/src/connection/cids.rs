//! Connection IDs: those we issue and those the peer issued, per path identifier.
//! <https://www.rfc-editor.org/rfc/rfc9000#section-5.1>, per path by RFC 10069.

use std::sync::Arc;

use quipu_base::PathId;
use smallvec::SmallVec;

use crate::connection_ids::ConnectionIdGenerator;
use crate::error::{ErrorCode, TransportError};
use crate::random::{NoRandomness, Randomness};
use crate::tls::ResetKey;
use crate::wire::{ConnectionId, ResetToken};

mod by_path;
mod remote;

use by_path::ByPath;
pub(super) use remote::RemoteIds;

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
    first: FirstIds,
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
    /// The token of a connection ID.
    fn reset_token(
        &self,
        cid: &ConnectionId,
        random: &mut dyn Randomness,
    ) -> Result<ResetToken, NoRandomness> {
        // https://www.rfc-editor.org/rfc/rfc9000#section-10.3.2
        //# The stateless reset token MUST be difficult to guess.
        // https://www.rfc-editor.org/rfc/rfc9000#section-10.3.2
        //# The same stateless reset token MUST NOT be used for multiple connection IDs.
        match &self.reset_key {
            Some(key) => Ok(key.reset_token(cid)),
            None => Ok(ResetToken::new(random.draw()?)),
        }
    }
}

impl ConnectionIds {
    pub(super) fn new(source: IdSource, first: FirstIds, remote: ConnectionId) -> Self {
        ConnectionIds {
            local_length: source.generator.length(),
            local: LocalIds::first(source, &first),
            remote: RemoteIds::first(remote),
            first,
            first_remote: remote,
        }
    }

    /// The length in bytes of those that we issue.
    pub(super) fn local_length(&self) -> usize {
        self.local_length
    }

    /// Those of the handshake.
    pub(super) fn first(&self) -> &FirstIds {
        &self.first
    }

    /// The one that we chose for the handshake.
    pub(super) fn first_local(&self) -> ConnectionId {
        self.first.local
    }

    /// The one that the peer chose for the handshake.
    pub(super) fn first_remote(&self) -> ConnectionId {
        self.first_remote
    }

    /// Destination of the client's first datagram.
    pub(super) fn original(&self) -> ConnectionId {
        self.first.original
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
        self.first.original = dcid;
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

    /// One of ours that is still live, to tell the peer (again).
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

    /// The sequence number of the next that the peer will be told for `path`.
    pub(super) fn next_told(&self, path: PathId) -> u64 {
        self.local.next_told(path)
    }

    /// The path is gone: those of ours that were live are so no more.
    pub(super) fn drop_local(&mut self, path: PathId) -> Vec<ConnectionId> {
        self.local.drop_path(path)
    }
}

/// Connection IDs of one path that we issued.
#[derive(Debug, Default)]
struct Issued {
    next_sequence: u64,
    /// The peer was told of those below this.
    told: u64,
    live: SmallVec<[(u64, ConnectionId, ResetToken); 2]>,
}

/// Connection IDs that we issue.
struct LocalIds {
    source: IdSource,
    paths: ByPath<Issued>,
    /// Connection IDs that were replaced because another connection had them.
    replaced: u32,
}

impl LocalIds {
    /// Keeps the connection IDs of the handshake: sequence number 0 of path 0, and 1 if one is told
    /// with an address.
    fn first(source: IdSource, first: &FirstIds) -> Self {
        let mut ids = LocalIds { source, paths: ByPath::default(), replaced: 0 };
        let issued = ids.paths.entry(PathId::ZERO);
        issued.live.push((0, first.local, ResetToken::new([0; 16])));
        if let Some(PreferredId { id, token }) = first.preferred {
            issued.live.push((1, id, token));
        }
        issued.next_sequence = issued.live.len() as u64;
        issued.told = issued.next_sequence;
        ids
    }

    fn on_told(&mut self, path: PathId, sequence: u64) {
        if let Some(issued) = self.paths.get_mut(path) {
            issued.told = issued.told.max(sequence + 1);
        }
    }

    fn next_told(&self, path: PathId) -> u64 {
        self.paths.get(path).map_or(0, |issued| issued.told)
    }

    /// Makes another connection ID for `path`: its sequence number, and it.
    fn issue(
        &mut self,
        path: PathId,
        random: &mut dyn Randomness,
    ) -> Result<(u64, ConnectionId), NoRandomness> {
        let cid = self.source.generator.generate(random)?;
        let token = self.source.reset_token(&cid, random)?;
        let issued = self.paths.entry(path);
        let sequence = issued.next_sequence;
        // https://www.rfc-editor.org/rfc/rfc9000#section-5.1.1
        //# The sequence number on each newly issued connection ID MUST increase by 1.
        issued.next_sequence += 1;
        issued.live.push((sequence, cid, token));
        Ok((sequence, cid))
    }

    /// Makes another connection ID in place of `cid`, under its sequence number; without one, none
    /// has that number.
    fn replace(
        &mut self,
        path: PathId,
        cid: ConnectionId,
        random: &mut dyn Randomness,
    ) -> Result<ConnectionId, NoRandomness> {
        let issued = self.paths.entry(path);
        let at = issued.live.iter().position(|(_, own, _)| *own == cid).ok_or(NoRandomness)?;
        let (sequence, ..) = issued.live.remove(at);
        // A generator that gives too few different ones must not keep us here.
        self.replaced += 1;
        if self.replaced > MAX_REPLACED {
            return Err(NoRandomness);
        }
        let cid = self.source.generator.generate(random)?;
        let token = self.source.reset_token(&cid, random)?;
        issued.live.insert(at, (sequence, cid, token));
        Ok(cid)
    }

    /// Number of live connection IDs of `path`.
    fn live(&self, path: PathId) -> usize {
        self.paths.get(path).map_or(0, |issued| issued.live.len())
    }

    /// A connection ID that is still live, to tell the peer (again).
    fn get(&self, path: PathId, sequence: u64) -> Option<(ConnectionId, ResetToken)> {
        let issued = self.paths.get(path)?;
        let &(_, cid, token) = issued.live.iter().find(|(own, ..)| *own == sequence)?;
        Some((cid, token))
    }

    /// The peer retires one: it, if it was live.
    fn retire(
        &mut self,
        path: PathId,
        sequence: u64,
    ) -> Result<Option<ConnectionId>, TransportError> {
        let never = || TransportError::protocol_violation("retired a connection ID never issued");
        let issued = self.paths.get_mut(path).ok_or_else(never)?;
        // https://www.rfc-editor.org/rfc/rfc9000#section-19.16
        //# Receipt of a RETIRE_CONNECTION_ID frame containing a sequence number
        //# greater than any previously sent to the peer MUST be treated as a
        //# connection error of type PROTOCOL_VIOLATION.
        if sequence >= issued.told {
            return Err(never());
        }
        let at = issued.live.iter().position(|(own, ..)| *own == sequence);
        Ok(at.map(|at| issued.live.remove(at).1))
    }

    /// Drops all of a path; the connection IDs that were live.
    fn drop_path(&mut self, path: PathId) -> Vec<ConnectionId> {
        let issued = self.paths.remove(path);
        issued.into_iter().flat_map(|issued| issued.live).map(|(_, cid, _)| cid).collect()
    }
}

/// More connection IDs than we said we would keep.
pub(super) fn too_many() -> TransportError {
    TransportError::new(ErrorCode::CONNECTION_ID_LIMIT_ERROR, "too many connection IDs")
}
