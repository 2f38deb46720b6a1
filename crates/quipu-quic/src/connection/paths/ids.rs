//! Connection IDs of paths: issued for those that the peer may open, and kept in supply.

use quipu_base::PathId;

use crate::connection::{Connection, EndpointEvent};
use crate::wire::ConnectionId;

impl Connection {
    /// Forgets the connection IDs of ours of a path that is gone.
    pub(super) fn forget_local_ids(&mut self, id: PathId) {
        for cid in self.ids.drop_local(id) {
            self.events.tell_endpoint(EndpointEvent::Retired(cid));
        }
    }

    /// Lets the peer use one more path identifier, since one was used up.
    pub(super) fn replace_path_id(&mut self) {
        if self.multipath().is_some() && self.plan.grant_next() {
            self.control.tell_max_path_id();
            self.issue_path_ids();
        }
    }

    /// Issues connection IDs for every path that both ends allow and that has none yet.
    pub(in crate::connection) fn issue_path_ids(&mut self) {
        let Some(peer_max) = self.multipath() else { return };
        // https://www.rfc-editor.org/rfc/rfc10069#section-3.2.1
        //# In order to let the peer open new paths, it is RECOMMENDED to proactively issue at
        //# least one Connection ID for each unused path ID up to the minimum of the peer's and
        //# the local maximum path ID limits.
        while let Some(id) = self.plan.next_to_issue(peer_max) {
            self.fill_supply(id);
        }
    }

    /// Issues connection IDs for a path until the peer has as many as it may.
    pub(in crate::connection) fn fill_supply(&mut self, path: PathId) {
        // https://www.rfc-editor.org/rfc/rfc9000#section-5.1.1
        //# An endpoint MUST NOT provide more connection IDs than the peer's limit.
        let each = u64::from(self.config.connection_ids_per_path)
            .min(self.handshake.peer().active_cid_limit);
        // https://www.rfc-editor.org/rfc/rfc9000#section-5.1.1
        //# An endpoint that initiates migration and requires non-zero-length connection IDs SHOULD
        //# ensure that the pool of connection IDs available to its peer allows the peer to use a
        //# new connection ID on migration, as the peer will be unable to respond if the pool is
        //# exhausted.
        // https://www.rfc-editor.org/rfc/rfc9000#section-5.1.1
        //# An endpoint SHOULD ensure that its peer has a sufficient number of available and
        //# unused connection IDs.
        while (self.ids.live(path) as u64) < each && self.issue_cid(path) {}
    }

    /// Issues one more connection ID for a path; `false` if there are no random bytes for it. The peer
    /// has to do with what it has then.
    fn issue_cid(&mut self, path: PathId) -> bool {
        let Ok((sequence, cid)) = self.ids.issue(path, &mut *self.random) else { return false };
        self.events.tell_endpoint(EndpointEvent::Issued(cid, path));
        self.control.tell_new_cid(path, sequence);
        true
    }

    /// Another connection of the endpoint has this connection ID, of which the peer was not told yet:
    /// another takes its place.
    pub(crate) fn replace_cid(&mut self, path: PathId, cid: ConnectionId) {
        if let Ok(cid) = self.ids.replace(path, cid, &mut *self.random) {
            self.events.tell_endpoint(EndpointEvent::Issued(cid, path));
        }
    }
}
