//! Connection IDs that the peer issued: which a path sends to, which is kept for another address of
//! it, and which are in supply.

use quipu_base::PathId;
use smallvec::SmallVec;

use super::by_path::ByPath;
use super::shelf::{Kept, Shelf};
use super::{ACTIVE_LIMIT, too_many};
use crate::error::{ErrorCode, TransportError};
use crate::wire::frame::NewConnectionId;
use crate::wire::{ConnectionId, ResetToken};

/// Connection IDs that the peer issued, per path.
#[derive(Debug, Default)]
pub(in crate::connection) struct RemoteIds {
    paths: ByPath<Peers>,
    /// Those of paths that are not in `paths`: that were not used, and of which the peer retired
    /// none.
    shelf: Shelf,
    /// Which reset tokens count has changed.
    tokens_changed: bool,
}

/// Connection IDs of one path that the peer issued.
#[derive(Debug, Default)]
struct Peers {
    retire_prior_to: u64,
    /// One above the highest sequence number that came.
    next: u64,
    /// In order of sequence number; at most [`ACTIVE_LIMIT`]. Those neither in use nor reserved were
    /// never sent to.
    live: SmallVec<[Remote; 2]>,
    /// The sequence number of the one in use.
    active: u64,
    /// That of the one used with the path's other address.
    reserved: Option<u64>,
    /// Packets go on the path.
    used: bool,
    gone: Gone,
}

/// Sequence numbers of connection IDs that were retired, so that none is taken for a new one when the
/// frame that issued it comes again.
#[derive(Clone, Copy, Debug, Default)]
struct Gone {
    /// All below are gone, or still live.
    floor: u64,
    /// Bit `i`: `floor + i` is gone.
    above: u64,
}

impl Gone {
    fn insert(&mut self, sequence: u64) {
        let Some(mut at) = sequence.checked_sub(self.floor) else { return };
        // Whoever lags behind that many others comes too late.
        let last = u64::from(u64::BITS) - 1;
        if at > last {
            self.raise(at - last);
            at = last;
        }
        self.above |= 1 << at;
        self.raise(self.above.trailing_ones().into());
    }

    fn raise(&mut self, by: u64) {
        let above = u32::try_from(by).ok().and_then(|by| self.above.checked_shr(by));
        self.above = above.unwrap_or_default();
        self.floor = self.floor.saturating_add(by);
    }

    fn contains(&self, sequence: u64) -> bool {
        match sequence.checked_sub(self.floor) {
            Some(at) => at < u64::BITS.into() && self.above & 1 << at != 0,
            None => true,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Remote {
    sequence: u64,
    id: ConnectionId,
    token: Option<ResetToken>,
}

/// Sequence numbers of connection IDs to be retired.
pub(in crate::connection) type Retired = SmallVec<[u64; 2]>;

impl Peers {
    fn get(&self, sequence: u64) -> Option<&Remote> {
        self.live.iter().find(|remote| remote.sequence == sequence)
    }

    fn remove(&mut self, sequence: u64) -> Retired {
        let known = self.live.len();
        self.live.retain(|remote| remote.sequence != sequence);
        if self.live.len() == known {
            return Retired::new();
        }
        self.gone.insert(sequence);
        SmallVec::from_slice(&[sequence])
    }

    /// Adds one in its place.
    fn insert(&mut self, remote: Remote) {
        self.next = self.next.max(remote.sequence.saturating_add(1));
        let at = self.live.partition_point(|other| other.sequence < remote.sequence);
        self.live.insert(at, remote);
    }

    /// The lowest that was never sent to.
    fn spare(&self) -> Option<u64> {
        let is_spare = |sequence: u64| sequence != self.active && self.reserved != Some(sequence);
        self.live.iter().map(|remote| remote.sequence).find(|&sequence| is_spare(sequence))
    }

    /// The reset tokens that count.
    fn reset_tokens(&self) -> impl Iterator<Item = ResetToken> {
        // https://www.rfc-editor.org/rfc/rfc9000#section-10.3.1
        //# An endpoint MUST NOT check for any stateless reset tokens associated with connection IDs
        //# it has not used or for connection IDs that have been retired.
        let in_use = [Some(self.active), self.reserved].into_iter().flatten().filter(|_| self.used);
        in_use.filter_map(|sequence| self.get(sequence)?.token)
    }
}

impl RemoteIds {
    /// The connection ID of the handshake.
    pub(super) fn first(id: ConnectionId) -> Self {
        let mut ids = RemoteIds::default();
        let peers = ids.paths.entry(PathId::ZERO);
        peers.live.push(Remote { sequence: 0, id, token: None });
        peers.next = 1;
        peers.used = true;
        ids
    }

    fn first_mut(&mut self) -> Option<&mut Remote> {
        self.paths.get_mut(PathId::ZERO)?.live.iter_mut().find(|remote| remote.sequence == 0)
    }

    /// The server chose its connection ID: it takes the place of the client's random one.
    // https://www.rfc-editor.org/rfc/rfc9000#section-7.2
    //# Until a packet is received from the server, the client MUST use the same Destination
    //# Connection ID value on all packets in this connection.
    pub(in crate::connection) fn replace_first(&mut self, id: ConnectionId) {
        if let Some(first) = self.first_mut() {
            first.id = id;
        }
    }

    /// The reset token that came as a transport parameter.
    pub(in crate::connection) fn set_first_token(&mut self, token: ResetToken) {
        if let Some(first) = self.first_mut() {
            first.token = Some(token);
            self.tokens_changed = true;
        }
    }

    /// Packets go on `path` from now on: the reset token of its connection ID counts.
    pub(in crate::connection) fn use_path(&mut self, path: PathId) {
        if let Some(peers) = self.changing(path) {
            peers.used = true;
        }
    }

    /// The reset tokens that count, those of the connection IDs in use, if they are others than when
    /// this was last asked.
    pub(in crate::connection) fn take_reset_tokens(&mut self) -> Option<SmallVec<[ResetToken; 2]>> {
        let changed = std::mem::take(&mut self.tokens_changed);
        changed.then(|| self.paths.values().flat_map(Peers::reset_tokens).collect())
    }

    /// The connection IDs of a path, to change which of them are in use.
    fn changing(&mut self, path: PathId) -> Option<&mut Peers> {
        self.unshelve(path);
        let peers = self.paths.get_mut(path)?;
        self.tokens_changed = true;
        Some(peers)
    }

    /// Takes the connection IDs of a path off the shelf, if they are there.
    fn unshelve(&mut self, path: PathId) {
        while let Some(Kept { sequence, id, token, .. }) = self.shelf.take_of(path) {
            let peers = self.paths.entry(path);
            // The first that came is the one to use.
            if peers.live.is_empty() {
                peers.active = sequence;
            }
            peers.insert(Remote { sequence, id, token });
        }
    }

    /// The connection ID to use on `path`; `None` while the peer has issued none for it.
    pub(in crate::connection) fn active(&self, path: PathId) -> Option<ConnectionId> {
        // https://www.rfc-editor.org/rfc/rfc10069#section-3.2.2
        //# For the extension specified in this document, endpoints MUST only rotate to another
        //# connection ID associated with the same path ID.
        let Some(peers) = self.paths.get(path) else {
            return self.shelf.of(path).next().map(|kept| kept.id);
        };
        peers.get(peers.active).map(|remote| remote.id)
    }

    /// The connection ID to use with the other address of `path`: one of its own if it has one.
    pub(in crate::connection) fn reserved(&self, path: PathId) -> Option<ConnectionId> {
        let Some(peers) = self.paths.get(path) else { return self.active(path) };
        peers.get(peers.reserved.unwrap_or(peers.active)).map(|remote| remote.id)
    }

    /// True if the peer lets us send to it without a connection ID.
    pub(in crate::connection) fn is_empty(&self, path: PathId) -> bool {
        self.active(path).is_some_and(|id| id.length() == 0)
    }

    /// True if one is in supply that was never sent to.
    pub(in crate::connection) fn has_spare(&self, path: PathId) -> bool {
        match self.paths.get(path) {
            Some(peers) => peers.spare().is_some(),
            None => self.shelf.of(path).count() > 1,
        }
    }

    /// The sequence number of the next that the peer is expected to issue for `path`.
    pub(in crate::connection) fn next(&self, path: PathId) -> u64 {
        match self.paths.get(path) {
            Some(peers) => peers.next,
            None => self.shelf.of(path).map(|kept| kept.sequence + 1).max().unwrap_or(0),
        }
    }

    /// Keeps a spare one for the other address of `path`; `false` if there is none.
    pub(in crate::connection) fn reserve(&mut self, path: PathId) -> bool {
        let Some(peers) = self.changing(path) else { return false };
        if peers.reserved.is_none() {
            peers.reserved = peers.spare();
        }
        peers.reserved.is_some()
    }

    /// The other address is forgotten: what is to be retired.
    pub(in crate::connection) fn release(&mut self, path: PathId) -> Retired {
        let Some(peers) = self.changing(path) else { return Retired::new() };
        peers.reserved.take().map_or_else(Retired::new, |sequence| peers.remove(sequence))
    }

    /// The path uses another address, and a spare connection ID with it, if there is one; `keep`:
    /// the one in use stays with the address before. What is to be retired.
    pub(in crate::connection) fn rotate(&mut self, path: PathId, keep: bool) -> Retired {
        let Some(peers) = self.changing(path) else { return Retired::new() };
        let Some(spare) = peers.spare() else { return Retired::new() };
        let before = std::mem::replace(&mut peers.active, spare);
        if keep && peers.reserved.is_none() {
            peers.reserved = Some(before);
            return Retired::new();
        }
        peers.remove(before)
    }

    /// The other address takes the place of the one in use, with its connection ID; `keep`: both
    /// change places. What is to be retired.
    pub(in crate::connection) fn promote(&mut self, path: PathId, keep: bool) -> Retired {
        let Some(peers) = self.changing(path) else { return Retired::new() };
        let Some(sequence) = peers.reserved.take() else { return Retired::new() };
        let before = std::mem::replace(&mut peers.active, sequence);
        if keep {
            peers.reserved = Some(before);
            return Retired::new();
        }
        peers.remove(before)
    }

    /// Takes a new connection ID: sequence numbers to retire.
    pub(in crate::connection) fn on_new(
        &mut self,
        path: PathId,
        new: &NewConnectionId,
    ) -> Result<Retired, TransportError> {
        let NewConnectionId { sequence, retire_prior_to, id, reset_token: token, .. } = *new;
        let mut retired = Retired::new();
        if retire_prior_to > sequence {
            return Err(TransportError::new(
                ErrorCode::FRAME_ENCODING_ERROR,
                "retire prior to above sequence number",
            ));
        }
        // https://www.rfc-editor.org/rfc/rfc9000#section-19.15
        //# An endpoint that is sending packets with a zero-length Destination Connection ID MUST
        //# treat receipt of a NEW_CONNECTION_ID frame as a connection error of type
        //# PROTOCOL_VIOLATION.
        if self.is_empty(PathId::ZERO) {
            return Err(TransportError::protocol_violation("issued beside an empty connection ID"));
        }
        if retire_prior_to == 0 && self.paths.get(path).is_none() {
            let kept = Kept { path, sequence, id, token: Some(token) };
            return self.shelve(&kept).map(|()| retired);
        }
        self.unshelve(path);
        let peers = self.paths.entry(path);
        peers.next = peers.next.max(sequence.saturating_add(1));
        // https://www.rfc-editor.org/rfc/rfc9000#section-19.15
        //# Receipt of the same frame multiple times MUST NOT be treated as a connection error.
        if let Some(known) = peers.get(sequence) {
            return check_same(known.id, id).map(|()| retired);
        }
        // https://www.rfc-editor.org/rfc/rfc9000#section-19.15
        //# An endpoint that receives a NEW_CONNECTION_ID frame with a sequence number smaller
        //# than the Retire Prior To field of a previously received NEW_CONNECTION_ID frame MUST
        //# send a corresponding RETIRE_CONNECTION_ID frame that retires the newly received
        //# connection ID, unless it has already done so for that sequence number.
        if sequence < peers.retire_prior_to {
            retired.push(sequence);
            return Ok(retired);
        }
        // It was retired, and the peer did not know that yet when it issued it again.
        if peers.gone.contains(sequence) {
            return Ok(retired);
        }
        peers.insert(Remote { sequence, id, token: Some(token) });
        // https://www.rfc-editor.org/rfc/rfc9000#section-5.1.2
        //# Upon receipt of an increased Retire Prior To field, the peer MUST stop using the
        //# corresponding connection IDs and retire them with RETIRE_CONNECTION_ID frames before
        //# adding the newly provided connection ID to the set of active connection IDs.
        // https://www.rfc-editor.org/rfc/rfc9000#section-19.15
        //# A receiver MUST ignore any Retire Prior To fields that do not increase the largest
        //# received Retire Prior To value.
        if retire_prior_to > peers.retire_prior_to {
            self.tokens_changed |= peers.used;
            peers.retire_prior_to = retire_prior_to;
            while peers.live.first().is_some_and(|remote| remote.sequence < retire_prior_to) {
                retired.push(peers.live.remove(0).sequence);
            }
            peers.reserved = peers.reserved.filter(|&reserved| reserved >= retire_prior_to);
        }
        // The one in use is gone, or none was in use yet.
        if peers.get(peers.active).is_none() {
            let next = peers.spare().or_else(|| peers.reserved.take());
            peers.active = next.unwrap_or(sequence);
        }
        // https://www.rfc-editor.org/rfc/rfc9000#section-5.1.1
        //# After processing a NEW_CONNECTION_ID frame and adding and retiring active connection
        //# IDs, if the number of active connection IDs exceeds the value advertised in its
        //# active_connection_id_limit transport parameter, an endpoint MUST close the connection
        //# with an error of type CONNECTION_ID_LIMIT_ERROR.
        if peers.live.len() as u64 > ACTIVE_LIMIT {
            return Err(too_many());
        }
        Ok(retired)
    }

    /// Keeps a connection ID of a path that is not used.
    fn shelve(&mut self, new: &Kept) -> Result<(), TransportError> {
        if let Some(known) = self.shelf.get(new.path, new.sequence) {
            return check_same(known.id, new.id);
        }
        self.shelf.put(new);
        if self.shelf.of(new.path).count() as u64 > ACTIVE_LIMIT {
            return Err(too_many());
        }
        Ok(())
    }

    /// Gives back memory that is not needed.
    pub(super) fn release_memory(&mut self) {
        self.shelf.release();
    }

    /// Drops all of a path.
    pub(in crate::connection) fn drop_path(&mut self, path: PathId) {
        while self.shelf.take_of(path).is_some() {}
        let dropped = self.paths.remove(path);
        self.tokens_changed |= dropped.is_some_and(|peers| peers.used);
    }

    /// True if that is the reset token of a connection ID in use on `path`.
    pub(in crate::connection) fn is_reset_token(
        &self,
        path: PathId,
        token: &[u8; ResetToken::LENGTH],
    ) -> bool {
        let token = ResetToken::new(*token);
        self.paths.get(path).is_some_and(|peers| peers.reset_tokens().any(|own| own == token))
    }
}

/// A connection ID came under a sequence number that has one.
fn check_same(known: ConnectionId, new: ConnectionId) -> Result<(), TransportError> {
    // https://www.rfc-editor.org/rfc/rfc9000#section-19.15
    //# if a sequence number is used for different connection IDs, the
    //# endpoint MAY treat that receipt as a connection error of type
    //# PROTOCOL_VIOLATION.
    if known == new {
        return Ok(());
    }
    Err(TransportError::protocol_violation("a sequence number used twice"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: PathId = PathId(3);

    fn id(sequence: u64) -> ConnectionId {
        ConnectionId::new(&sequence.to_be_bytes()).unwrap()
    }

    fn new(sequence: u64, retire_prior_to: u64) -> NewConnectionId {
        NewConnectionId {
            path: Some(PATH),
            sequence,
            retire_prior_to,
            id: id(sequence),
            reset_token: ResetToken::new([sequence as u8; 16]),
        }
    }

    fn with(sequences: impl IntoIterator<Item = u64>) -> RemoteIds {
        let mut ids = RemoteIds::first(id(99));
        for sequence in sequences {
            assert!(ids.on_new(PATH, &new(sequence, 0)).unwrap().is_empty());
        }
        ids
    }

    #[test]
    fn a_path_sends_to_the_first_that_came_until_it_moves() {
        let mut ids = with([0, 1, 2]);
        assert_eq!(ids.active(PATH), Some(id(0)));
        assert_eq!(ids.reserved(PATH), Some(id(0)), "no other is in use");
        // The peer moved: the address before keeps its own.
        assert!(ids.rotate(PATH, true).is_empty());
        assert_eq!((ids.active(PATH), ids.reserved(PATH)), (Some(id(1)), Some(id(0))));
        // And on, before that was proved.
        assert_eq!(ids.rotate(PATH, true)[..], [1]);
        assert_eq!((ids.active(PATH), ids.reserved(PATH)), (Some(id(2)), Some(id(0))));
        // Without another in supply the same goes on.
        assert!(ids.rotate(PATH, true).is_empty());
        assert_eq!(ids.active(PATH), Some(id(2)));
        // Back to the first address.
        assert_eq!(ids.promote(PATH, false)[..], [2]);
        assert_eq!(ids.active(PATH), Some(id(0)));
        assert!(!ids.has_spare(PATH));
    }

    #[test]
    fn another_address_is_tried_with_one_of_its_own() {
        let mut ids = with([0, 1]);
        assert!(ids.reserve(PATH));
        assert_eq!((ids.active(PATH), ids.reserved(PATH)), (Some(id(0)), Some(id(1))));
        assert!(!ids.has_spare(PATH));
        assert_eq!(ids.release(PATH)[..], [1]);
        assert!(!ids.reserve(PATH), "what was sent to once is not used with another address");
        ids.on_new(PATH, &new(2, 0)).unwrap();
        assert!(ids.reserve(PATH));
        assert!(ids.promote(PATH, true).is_empty());
        assert_eq!((ids.active(PATH), ids.reserved(PATH)), (Some(id(2)), Some(id(0))));
    }

    #[test]
    fn those_that_the_peer_wants_back_are_replaced_also_where_they_are_in_use() {
        let mut ids = with([0, 1]);
        ids.reserve(PATH);
        assert_eq!(ids.on_new(PATH, &new(5, 1)).unwrap()[..], [0]);
        assert_eq!((ids.active(PATH), ids.reserved(PATH)), (Some(id(5)), Some(id(1))));
        assert_eq!(ids.on_new(PATH, &new(6, 6)).unwrap()[..], [1, 5]);
        assert_eq!((ids.active(PATH), ids.reserved(PATH)), (Some(id(6)), Some(id(6))));
        assert_eq!(ids.on_new(PATH, &new(4, 0)).unwrap()[..], [4], "it came too late");
        assert_eq!(ids.next(PATH), 7);
    }

    #[test]
    fn more_than_are_kept_close_the_connection() {
        let mut ids = with(0..ACTIVE_LIMIT);
        let error = ids.on_new(PATH, &new(9, 0)).unwrap_err();
        assert_eq!(error.code, ErrorCode::CONNECTION_ID_LIMIT_ERROR);
    }

    #[test]
    fn a_sequence_number_names_one_connection_id() {
        let mut ids = with([0, 1]);
        assert!(ids.on_new(PATH, &new(1, 0)).unwrap().is_empty());
        let other = NewConnectionId { id: id(77), ..new(1, 0) };
        assert_eq!(ids.on_new(PATH, &other).unwrap_err().code, ErrorCode::PROTOCOL_VIOLATION);
    }

    /// A frame that was sent again brought back a connection ID that the peer knew no more, and the path
    /// moved on to it.
    #[test]
    fn one_that_was_retired_is_not_taken_again() {
        let mut ids = with([0, 1]);
        assert_eq!(ids.rotate(PATH, false)[..], [0]);
        assert!(ids.on_new(PATH, &new(0, 0)).unwrap().is_empty());
        assert!(!ids.has_spare(PATH));
        // One that comes late is none such.
        ids.on_new(PATH, &new(3, 0)).unwrap();
        assert_eq!(ids.rotate(PATH, false)[..], [1]);
        ids.on_new(PATH, &new(2, 0)).unwrap();
        assert!(ids.has_spare(PATH));
        assert_eq!(ids.rotate(PATH, false)[..], [3]);
        for sequence in 0..4 {
            ids.on_new(PATH, &new(sequence, 0)).unwrap();
        }
        assert_eq!((ids.active(PATH), ids.has_spare(PATH)), (Some(id(2)), false));
    }

    #[test]
    fn what_is_gone_is_known_however_far_the_numbers_run() {
        let mut gone = Gone::default();
        for sequence in [0, 2, 3] {
            gone.insert(sequence);
        }
        assert_eq!(
            (0..6).map(|at| gone.contains(at)).collect::<Vec<_>>(),
            [true, false, true, true, false, false]
        );
        gone.insert(1);
        assert_eq!((gone.floor, gone.above), (4, 0));
        for sequence in [100, u64::MAX - 1, u64::MAX] {
            gone.insert(sequence);
            assert!(gone.contains(sequence) && gone.contains(4));
            assert!(gone.floor <= sequence);
        }
    }

    #[test]
    fn who_has_an_empty_connection_id_issues_none() {
        let mut ids = RemoteIds::first(ConnectionId::default());
        assert!(ids.is_empty(PathId::ZERO));
        let error = ids.on_new(PathId::ZERO, &new(1, 0)).unwrap_err();
        assert_eq!(error.code, ErrorCode::PROTOCOL_VIOLATION);
    }

    #[test]
    fn only_tokens_of_those_in_use_reset_the_connection() {
        let mut ids = with([0, 1, 2]);
        let known = |ids: &mut RemoteIds| {
            let known = (0..4_u8).filter(|&token| ids.is_reset_token(PATH, &[token; 16]));
            let known = known.collect::<Vec<_>>();
            let told = ids.take_reset_tokens().expect("they changed");
            assert_eq!(
                told[..],
                known.iter().map(|&token| ResetToken::new([token; 16])).collect::<Vec<_>>()
            );
            assert_eq!(ids.take_reset_tokens(), None);
            known
        };
        assert!(!ids.is_reset_token(PATH, &[0; 16]), "nothing was sent there");
        ids.use_path(PATH);
        assert_eq!(known(&mut ids), [0]);
        ids.reserve(PATH);
        assert_eq!(known(&mut ids), [0, 1]);
        ids.promote(PATH, false);
        assert_eq!(known(&mut ids), [1], "what was retired counts no more");
        ids.on_new(PATH, &new(3, 2)).unwrap();
        assert_eq!(known(&mut ids), [2]);
        ids.drop_path(PATH);
        assert_eq!(known(&mut ids), [] as [u8; 0]);
    }

    #[test]
    fn a_flood_of_connection_ids_makes_nothing_grow() {
        let mut ids = RemoteIds::first(id(99));
        for sequence in 0..100_000 {
            ids.on_new(PATH, &new(sequence, sequence)).unwrap();
        }
        let peers = ids.paths.get(PATH).unwrap();
        assert_eq!(peers.live.len(), 1);
    }
}
