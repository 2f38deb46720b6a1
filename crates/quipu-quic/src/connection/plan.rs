//! Path identifiers (RFC 10069): a window of those that are not used up, which moves for as long as
//! the connection lives, and what is remembered of those behind it.

use std::collections::VecDeque;

use quipu_base::{Instant, PathId};
use quipu_policy::PathStatus;

use crate::counters::PathCounters;
use crate::error::TransportError;
use crate::path::{Stage, Step};

/// Paths that are gone whose own counters are kept; those of all others are in the sum. Our choice.
const MAX_REMEMBERED: usize = 64;

/// The path identifiers of a connection.
///
/// As many identifiers are open to use as paths are allowed at a time. When one is used up, the
/// next is granted, so that the window has the same length all the time and everything kept of
/// identifiers is bounded by it.
#[derive(Debug)]
pub(super) struct PathPlan {
    /// Identifiers up to `granted` that are not used up, in ascending order.
    window: Vec<Identifier>,
    /// Largest identifier that we let the peer use.
    granted: PathId,
    /// The same as far as the peer was told: what it names must not be larger.
    told: PathId,
    /// Highest identifier for which connection IDs were issued.
    issued: PathId,
    /// When the next identifier expires.
    expires_at: Option<Instant>,
    past: PastPaths,
    /// The peer abandoned the last path: until then another may come.
    pathless_until: Option<Instant>,
    /// Number of the peer's last advice on return paths.
    advice_seen: Option<u64>,
}

/// A path identifier that is not used up.
#[derive(Debug)]
struct Identifier {
    id: PathId,
    stage: Stage,
    /// Boxed, since most identifiers are never used, and of most paths nothing is said.
    details: Option<Box<Details>>,
}

/// What there is to know of few path identifiers.
#[derive(Debug, Default)]
struct Details {
    /// When the state of an abandoned path is dropped.
    expires_at: Option<Instant>,
    status: StatusExchange,
}

/// PATH_STATUS_AVAILABLE and PATH_STATUS_BACKUP of one path, both ways. Either end may tell before
/// the path is opened.
/// <https://www.rfc-editor.org/rfc/rfc10069#section-4.3>
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StatusExchange {
    /// What the application wants, and the sequence number of what was told; zero before the first.
    pub(super) own: PathStatus,
    pub(super) own_sequence: u64,
    /// What the peer told last, and its sequence number.
    pub(super) peer: Option<PathStatus>,
    peer_sequence: Option<u64>,
    /// A backup path took its place, since it keeps silent.
    broken: bool,
}

impl StatusExchange {
    /// What policies go by: the path is spared if either end asks for it.
    pub(super) fn combined(&self) -> PathStatus {
        match (self.own, self.peer) {
            (PathStatus::Backup, _) | (_, Some(PathStatus::Backup)) => PathStatus::Backup,
            _ => PathStatus::Available,
        }
    }

    /// What the peer is told: to spare the path also while it keeps silent and a backup path carries
    /// its data.
    pub(super) fn told(&self) -> PathStatus {
        if self.broken { PathStatus::Backup } else { self.own }
    }
}

/// Counters of paths that are gone. Boxed, since most connections have one path.
#[derive(Debug, Default)]
pub(super) struct PastPaths(Option<Box<Past>>);

#[derive(Debug, Default)]
struct Past {
    /// Those that went last, in the order in which they went.
    recent: VecDeque<(PathId, PathCounters)>,
    total: PathCounters,
}

impl PastPaths {
    fn add(&mut self, id: PathId, counters: PathCounters) {
        let past = self.0.get_or_insert_default();
        if past.recent.len() == MAX_REMEMBERED {
            past.recent.pop_front();
        }
        past.recent.push_back((id, counters));
        past.total += counters;
    }

    /// The paths that went last, at most 64, in the order in which they went.
    pub(super) fn recent(&self) -> impl Iterator<Item = &(PathId, PathCounters)> {
        self.0.iter().flat_map(|past| past.recent.iter())
    }

    /// The counters of all of them added up.
    pub(super) fn total(&self) -> PathCounters {
        self.0.as_ref().map(|past| past.total).unwrap_or_default()
    }
}

impl PathPlan {
    /// `max_paths`: as many paths at a time as we allow, the first included.
    pub(super) fn new(max_paths: u32) -> Self {
        let granted = PathId(max_paths.saturating_sub(1));
        let window = (0..=granted.0).map(|id| Identifier::unused(PathId(id))).collect();
        PathPlan {
            window,
            granted,
            told: granted,
            issued: PathId::ZERO,
            expires_at: None,
            past: PastPaths::default(),
            pathless_until: None,
            advice_seen: None,
        }
    }

    /// Largest identifier that we let the peer use.
    pub(super) fn granted(&self) -> PathId {
        self.granted
    }

    /// A frame with the largest identifier was written.
    pub(super) fn on_granted_told(&mut self) {
        self.told = self.granted;
    }

    /// Checks an identifier that the peer names against what it was told.
    pub(super) fn check(&self, id: PathId, violation: &'static str) -> Result<(), TransportError> {
        if id <= self.told { Ok(()) } else { Err(TransportError::protocol_violation(violation)) }
    }

    fn at(&self, id: PathId) -> Option<&Identifier> {
        let at = self.window.binary_search_by_key(&id, |identifier| identifier.id).ok()?;
        self.window.get(at)
    }

    fn at_mut(&mut self, id: PathId) -> Option<&mut Identifier> {
        let at = self.window.binary_search_by_key(&id, |identifier| identifier.id).ok()?;
        self.window.get_mut(at)
    }

    /// Where the life of an identifier is; [`Stage::Unused`] of one that is not granted yet.
    pub(super) fn stage(&self, id: PathId) -> Stage {
        let missing = if id <= self.granted { Stage::Gone } else { Stage::Unused };
        self.at(id).map_or(missing, |identifier| identifier.stage)
    }

    /// True once either end gave the path up.
    pub(super) fn is_over(&self, id: PathId) -> bool {
        !self.stage(id).is_current()
    }

    /// The identifier moves on: its new stage, or `None` if it is not in a stage that allows the
    /// step, which then changes nothing.
    pub(super) fn step(&mut self, id: PathId, step: Step) -> Option<Stage> {
        let identifier = self.at_mut(id)?;
        let stage = identifier.stage.after(step).ok()?;
        identifier.stage = stage;
        if stage == Stage::Gone {
            self.window.retain(|identifier| identifier.id != id);
        }
        Some(stage)
    }

    /// The lowest identifier that was not used; the next to be granted if none is left.
    pub(super) fn next_unused(&self) -> PathId {
        let unused = self.window.iter().find(|identifier| identifier.stage == Stage::Unused);
        unused.map_or(PathId(self.granted.0.saturating_add(1)), |identifier| identifier.id)
    }

    /// True if we let the peer use that identifier, or will when it is told.
    pub(super) fn grants(&self, id: PathId) -> bool {
        id <= self.granted
    }

    /// The state of an abandoned path is to be dropped at `at`.
    pub(super) fn expire_at(&mut self, id: PathId, at: Instant) {
        if let Some(identifier) = self.at_mut(id) {
            identifier.details_mut().expires_at = Some(at);
            self.find_expiry();
        }
    }

    /// When the next abandoned path is to be dropped.
    pub(super) fn expires_at(&self) -> Option<Instant> {
        self.expires_at
    }

    /// The next identifier whose time has come, with its stage from now on: [`Stage::Gone`] after
    /// both ends gave it up. One that the peer has not given up stays [`Stage::Abandoned`], since
    /// the peer may still send there.
    pub(super) fn next_expired(&mut self, now: Instant) -> Option<(PathId, Stage)> {
        self.expires_at.filter(|at| *at <= now)?;
        let is_due =
            |identifier: &&mut Identifier| identifier.expires_at().is_some_and(|at| at <= now);
        let due = self.window.iter_mut().find(is_due)?;
        due.details_mut().expires_at = None;
        let (id, stage) = (due.id, due.stage);
        let stage = self.step(id, Step::Expire).unwrap_or(stage);
        self.find_expiry();
        Some((id, stage))
    }

    fn find_expiry(&mut self) {
        self.expires_at = self.window.iter().filter_map(Identifier::expires_at).min();
    }

    /// Grants one more identifier in place of one that is used up; `false` if there is none.
    pub(super) fn grant_next(&mut self) -> bool {
        // https://www.rfc-editor.org/rfc/rfc10069#section-4.6
        //# The Maximum Path Identifier value MUST NOT be lower than the value advertised in the
        //# initial_max_path_id transport parameter.
        let Some(next) = self.granted.0.checked_add(1) else { return false };
        self.granted = PathId(next);
        self.window.push(Identifier::unused(self.granted));
        true
    }

    /// The next identifier that both ends allow and that has no connection IDs of ours; it has from
    /// now on. `peer_max`: the largest that the peer lets us use.
    pub(super) fn next_to_issue(&mut self, peer_max: PathId) -> Option<PathId> {
        let mut next = self.issued;
        loop {
            next = PathId(next.0.checked_add(1)?);
            // https://www.rfc-editor.org/rfc/rfc10069#section-3.2.1
            //# Endpoints MUST NOT issue new connection IDs with path IDs greater than the Maximum
            //# Path Identifier field in MAX_PATH_ID frames (see Section 4.6) or the value of
            //# initial_max_path_id transport parameter if no MAX_PATH_ID frame was received yet.
            if next > peer_max || next > self.granted {
                return None;
            }
            // https://www.rfc-editor.org/rfc/rfc10069#section-3.2.1
            //# If for any reason an endpoint does not want to issue connection IDs for all unused
            //# path ID, it SHOULD NOT introduce discontinuity in the issuing of path IDs as path
            //# initiation requires available connection IDs for the same path ID on both sides.
            self.issued = next;
            if !self.is_over(next) {
                return Some(next);
            }
        }
    }

    /// What was said of a path's status; nothing of one that is used up.
    pub(super) fn status(&self, id: PathId) -> StatusExchange {
        let details = self.at(id).and_then(|identifier| identifier.details.as_ref());
        details.map_or_else(StatusExchange::default, |details| details.status)
    }

    /// We tell the status of a path, open or not. `false` of one that is over.
    pub(super) fn set_own_status(&mut self, id: PathId, status: PathStatus) -> bool {
        let is_current = |identifier: &&mut Identifier| identifier.stage.is_current();
        let Some(identifier) = self.at_mut(id).filter(is_current) else { return false };
        let own = &mut identifier.details_mut().status;
        own.own = status;
        // https://www.rfc-editor.org/rfc/rfc10069#section-4.3
        //# The sequence number space is common to the two frame types, and monotonically
        //# increasing values MUST be used when sending PATH_STATUS_AVAILABLE or
        //# PATH_STATUS_BACKUP frames for a given path ID.
        own.own_sequence += 1;
        true
    }

    /// A backup path took the place of a path that keeps silent, or need not any more. True if the
    /// peer is to be told.
    pub(super) fn set_broken(&mut self, id: PathId, broken: bool) -> bool {
        let is_current = |identifier: &&mut Identifier| identifier.stage.is_current();
        let Some(identifier) = self.at_mut(id).filter(is_current) else { return false };
        let status = &mut identifier.details_mut().status;
        let before = status.told();
        status.broken = broken;
        let is_news = status.told() != before;
        status.own_sequence += u64::from(is_news);
        is_news
    }

    /// The peer told the status of a path, open or not. True if that is news.
    pub(super) fn on_peer_status(&mut self, id: PathId, sequence: u64, status: PathStatus) -> bool {
        let Some(identifier) = self.at_mut(id) else { return false };
        // https://www.rfc-editor.org/rfc/rfc10069#section-4.3
        //# A peer MUST ignore an incoming PATH_STATUS_AVAILABLE or PATH_STATUS_BACKUP frame if it
        //# previously received another PATH_STATUS_BACKUP frame or PATH_STATUS_AVAILABLE frame
        //# for the same path ID with a Path Status sequence number equal to or higher than the
        //# Path Status sequence number of the incoming frame.
        let known = &mut identifier.details_mut().status;
        if known.peer_sequence.is_some_and(|known| known >= sequence) {
            return false;
        }
        known.peer_sequence = Some(sequence);
        known.peer = Some(status);
        identifier.stage.is_current()
    }

    /// The state of a path was dropped.
    pub(super) fn on_dropped(&mut self, id: PathId, counters: PathCounters) {
        self.past.add(id, counters);
    }

    /// Paths that are gone.
    pub(super) fn past(&self) -> &PastPaths {
        &self.past
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

impl Identifier {
    fn unused(id: PathId) -> Self {
        Identifier { id, stage: Stage::Unused, details: None }
    }

    fn expires_at(&self) -> Option<Instant> {
        self.details.as_ref()?.expires_at
    }

    fn details_mut(&mut self) -> &mut Details {
        self.details.get_or_insert_default()
    }
}

#[cfg(test)]
mod tests;
