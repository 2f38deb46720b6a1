//! Path identifiers: what each end allows, what was used, what is left to tell of paths that are
//! gone (RFC 10069).

use quipu_base::{Instant, PathId};

use crate::counters::PathCounters;
use crate::error::TransportError;

/// Most paths abandoned over the life of a connection that may be replaced by new ones.
const MAX_PATH_IDS: u32 = 1 << 16;

/// The path identifiers of a connection.
#[derive(Debug)]
pub(super) struct PathPlan {
    /// Largest identifier that we let the peer use.
    local_max: PathId,
    /// Identifiers below this were used.
    next: PathId,
    /// Counters of paths that are gone.
    past: Vec<(PathId, PathCounters)>,
    /// Errors with which paths were abandoned, to be told (again).
    abandoned: Vec<(PathId, u64)>,
    /// Highest identifier for which connection IDs were issued.
    issued: PathId,
    /// The peer abandoned the last path: until then another may come.
    pathless_until: Option<Instant>,
    /// Number of the peer's last advice on return paths.
    advice_seen: Option<u64>,
}

impl PathPlan {
    /// `max_paths`: as many paths at a time as we allow, the first included.
    pub(super) fn new(max_paths: u32) -> Self {
        PathPlan {
            local_max: PathId(max_paths.saturating_sub(1)),
            next: PathId(1),
            past: Vec::new(),
            abandoned: Vec::new(),
            issued: PathId::ZERO,
            pathless_until: None,
            advice_seen: None,
        }
    }

    /// Largest identifier that we let the peer use.
    pub(super) fn local_max(&self) -> PathId {
        self.local_max
    }

    /// True if we let the peer use that identifier.
    pub(super) fn allows(&self, id: PathId) -> bool {
        id <= self.local_max
    }

    /// The same as a check of what the peer names.
    pub(super) fn check(&self, id: PathId, violation: &'static str) -> Result<(), TransportError> {
        if self.allows(id) { Ok(()) } else { Err(TransportError::protocol_violation(violation)) }
    }

    /// The lowest identifier that was not used.
    pub(super) fn next(&self) -> PathId {
        self.next
    }

    /// A path of that identifier was opened, by either end, or will never be.
    pub(super) fn on_used(&mut self, id: PathId) {
        // https://www.rfc-editor.org/rfc/rfc10069#section-3.4
        //# After a path is abandoned, the path ID MUST NOT be reused for new paths, as the path
        //# ID is part of the nonce calculation Section 2.4.
        self.next = self.next.max(PathId(id.0.saturating_add(1)));
    }

    /// Lets the peer use one more identifier; false if too many were.
    pub(super) fn allow_one_more(&mut self) -> bool {
        let may = self.local_max.0 < MAX_PATH_IDS;
        // https://www.rfc-editor.org/rfc/rfc10069#section-4.6
        //# The Maximum Path Identifier value MUST NOT be lower than the value advertised in the
        //# initial_max_path_id transport parameter.
        self.local_max.0 += u32::from(may);
        may
    }

    /// The next identifier that both ends allow and that has no connection IDs of ours; it has from
    /// now on. `peer_max`: the largest that the peer lets us use.
    pub(super) fn next_to_issue(&mut self, peer_max: PathId) -> Option<PathId> {
        let next = PathId(self.issued.0.checked_add(1)?);
        // https://www.rfc-editor.org/rfc/rfc10069#section-3.2.1
        //# Endpoints MUST NOT issue new connection IDs with path IDs greater than the Maximum
        //# Path Identifier field in MAX_PATH_ID frames (see Section 4.6) or the value of
        //# initial_max_path_id transport parameter if no MAX_PATH_ID frame was received yet.
        if next > peer_max || !self.allows(next) {
            return None;
        }
        // https://www.rfc-editor.org/rfc/rfc10069#section-3.2.1
        //# If for any reason an endpoint does not want to issue connection IDs for all unused
        //# path ID, it SHOULD NOT introduce discontinuity in the issuing of path IDs as path
        //# initiation requires available connection IDs for the same path ID on both sides.
        self.issued = next;
        Some(next)
    }

    /// We abandon a path, and say so with that error code.
    pub(super) fn on_abandoned(&mut self, id: PathId, code: u64) {
        self.abandoned.push((id, code));
    }

    /// The error code with which a path was abandoned.
    pub(super) fn abandoned_with(&self, id: PathId) -> u64 {
        let known = self.abandoned.iter().find(|(abandoned, _)| *abandoned == id);
        known.map_or(0, |(_, code)| *code)
    }

    /// The state of a path was dropped.
    pub(super) fn on_gone(&mut self, id: PathId, counters: PathCounters) {
        self.past.push((id, counters));
    }

    /// Paths that are gone, in the order in which they went.
    pub(super) fn past(&self) -> &[(PathId, PathCounters)] {
        &self.past
    }

    /// True if a path of that identifier was used before and is gone.
    pub(super) fn is_past(&self, id: PathId) -> bool {
        self.past.iter().any(|(past, _)| *past == id)
    }

    /// The last path is gone: until then another may come.
    pub(super) fn on_pathless(&mut self, until: Instant) {
        self.pathless_until.get_or_insert(until);
    }

    /// A path came, or none need come any more.
    pub(super) fn on_path(&mut self) {
        self.pathless_until = None;
    }

    /// When the connection closes for want of a path.
    pub(super) fn pathless_until(&self) -> Option<Instant> {
        self.pathless_until
    }

    /// True if the peer's advice on return paths is newer than what it said before.
    pub(super) fn is_news(&mut self, sequence: u64) -> bool {
        let news = self.advice_seen.is_none_or(|seen| seen < sequence);
        if news {
            self.advice_seen = Some(sequence);
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_identifier_that_both_allow_gets_connection_ids_once() {
        let mut plan = PathPlan::new(3);
        let mut issue = |peer_max| {
            std::iter::from_fn(|| plan.next_to_issue(PathId(peer_max)))
                .map(|id| id.0)
                .collect::<Vec<_>>()
        };
        assert_eq!(issue(1), [1]);
        assert_eq!(issue(9), [2]);
        assert_eq!(issue(9), [] as [u32; 0]);
        assert!(plan.allow_one_more());
        assert_eq!(plan.next_to_issue(PathId(9)), Some(PathId(3)));
    }

    #[test]
    fn an_identifier_below_one_that_was_used_is_used_up() {
        let mut plan = PathPlan::new(8);
        plan.on_used(PathId(4));
        plan.on_used(PathId(2));
        assert_eq!(plan.next(), PathId(5));
    }

    #[test]
    fn advice_that_was_overtaken_is_no_news() {
        let mut plan = PathPlan::new(2);
        assert!(plan.is_news(0));
        assert!(!plan.is_news(0));
        assert!(plan.is_news(5));
        assert!(!plan.is_news(4));
    }
}
