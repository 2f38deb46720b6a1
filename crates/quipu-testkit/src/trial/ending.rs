//! When a trial is over, and what must hold then.

use quipu_base::{Duration, Instant, Role, StreamDirection, StreamId};
use quipu_policy::PathState;
use quipu_quic::connection::CloseReason;
use quipu_quic::error::ErrorCode;

use super::Rule;
use super::application::Side;
use super::node::{CLOSE_CODE, TrialNode};

/// Nothing is sent and no timer fires for so long when all is quiet.
pub(super) const SILENCE: Duration = Duration::from_secs(10);

/// True once an end knows that the connection ended.
pub(super) fn closed(client: &TrialNode, server: &TrialNode) -> bool {
    [client, server]
        .into_iter()
        .any(|node| node.connection().is_some_and(|c| c.close_reason().is_some()))
}

/// The streams on which `sender` can send.
fn sent_by(sender: Role, nodes: [&TrialNode; 2]) -> Vec<StreamId> {
    let mut all: Vec<StreamId> =
        nodes.iter().flat_map(|node| node.application.streams.keys().copied()).collect();
    all.sort_unstable();
    all.dedup();
    all.retain(|stream| {
        stream.direction() == StreamDirection::Bidirectional || stream.initiator() == sender
    });
    all
}

/// Every direction of every stream, as its sender and its receiver know it.
fn directions<'a>(
    client: &'a TrialNode,
    server: &'a TrialNode,
) -> impl Iterator<Item = (StreamId, Side, Side)> + 'a {
    let side = |node: &TrialNode, stream: StreamId| {
        node.application.streams.get(&stream).cloned().unwrap_or_default()
    };
    [(Role::Client, client, server), (Role::Server, server, client)].into_iter().flat_map(
        move |(role, sender, receiver)| {
            sent_by(role, [sender, receiver])
                .into_iter()
                .map(move |stream| (stream, side(sender, stream), side(receiver, stream)))
        },
    )
}

/// True once every direction is over at both ends.
pub(super) fn done(client: &TrialNode, server: &TrialNode) -> bool {
    directions(client, server).all(|(_, sender, receiver)| is_over(&sender, &receiver))
}

fn is_over(sender: &Side, receiver: &Side) -> bool {
    let sent = sender.acknowledged || sender.reset || sender.refused;
    let received = receiver.ended || receiver.given_up || receiver.stopped;
    sent && received
}

pub(super) fn missing(client: &TrialNode, server: &TrialNode) -> String {
    let open = directions(client, server).find(|(_, sender, receiver)| !is_over(sender, receiver));
    format!("{open:?}")
}

/// A stream that nobody gave up and that lacks bytes, or one that has too many.
pub(super) fn incomplete(client: &TrialNode, server: &TrialNode) -> Option<Rule> {
    directions(client, server).find_map(|(stream, sender, receiver)| {
        let given_up = sender.reset || receiver.stopped;
        let (written, received) = (sender.written, receiver.received);
        let whole = receiver.ended && received == written;
        let right = whole || given_up && received <= written;
        (!right).then_some(Rule::Incomplete { stream, written, received })
    })
}

/// What an end still does or has, if anything.
pub(super) fn restless(node: &TrialNode, now: Instant) -> Option<String> {
    let connection = node.connection()?;
    let conn = connection.view(now).conn;
    if !conn.in_flight.is_zero() || !conn.unsent.is_zero() || conn.ready > 0 {
        let paths: Vec<_> = connection.path_views().collect();
        let (deadline, reason) = (node.deadline(), connection.close_reason());
        return Some(format!("{conn:?}, {paths:?}, a timer at {deadline:?}, {reason:?}"));
    }
    for view in connection.path_views() {
        if view.state != PathState::Usable || !view.in_flight.is_zero() {
            return Some(format!("{view:?}"));
        }
    }
    let datagrams = &node.application.datagrams;
    if !datagrams.is_empty() {
        return Some(format!("nothing is known of {datagrams:?}"));
    }
    let deadline = node.deadline()?;
    (deadline < now + SILENCE).then(|| format!("a timer at {deadline}"))
}

/// What an end says about why the connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    /// Its application closed.
    Done,
    /// The peer abandoned its last path.
    LastPath,
    HeardDone,
    /// In the handshake the application's words are not for the wire.
    HeardDoneEarly,
    HeardLastPath,
    Silence,
    /// The peer forgot it.
    Reset,
    /// It never was, or goes on.
    Nothing,
    Other,
}

impl Word {
    fn of(reason: Option<&CloseReason>) -> Self {
        match reason {
            Some(CloseReason::Application { code: CLOSE_CODE }) => Word::Done,
            Some(CloseReason::PeerFault(error)) if error.code == ErrorCode::NO_VIABLE_PATH => {
                Word::LastPath
            }
            Some(CloseReason::PeerApplication { code: CLOSE_CODE, reason }) if reason == "done" => {
                Word::HeardDone
            }
            Some(CloseReason::PeerTransport { code, .. })
                if *code == ErrorCode::APPLICATION_ERROR.0 =>
            {
                Word::HeardDoneEarly
            }
            Some(CloseReason::PeerTransport { code, .. })
                if *code == ErrorCode::NO_VIABLE_PATH.0 =>
            {
                Word::HeardLastPath
            }
            Some(CloseReason::IdleTimeout) => Word::Silence,
            Some(CloseReason::StatelessReset) => Word::Reset,
            None => Word::Nothing,
            Some(_) => Word::Other,
        }
    }

    fn closes(self) -> bool {
        matches!(self, Word::Done | Word::LastPath)
    }
}

/// True if that can be said by an end whose peer forgot the connection.
pub(super) fn is_farewell_to_nobody(reason: Option<&CloseReason>) -> bool {
    !matches!(Word::of(reason), Word::Nothing | Word::Other)
}

/// True if one end closed and the other heard it, or both closed. Where datagrams are lost, the
/// close may be: then silence tells, or the server never knew.
pub(super) fn agree(
    client: Option<&CloseReason>,
    server: Option<&CloseReason>,
    loses: bool,
) -> bool {
    let (client, server) = (Word::of(client), Word::of(server));
    let answers = |closing: Word, other: Word| match other {
        Word::HeardDone | Word::HeardDoneEarly => closing == Word::Done,
        Word::HeardLastPath => closing == Word::LastPath,
        // Whoever closed answers what comes later with a reset.
        Word::Silence | Word::Reset => loses,
        other => other.closes(),
    };
    match (client, server) {
        (client, Word::Nothing) => client == Word::Done || loses && client == Word::Silence,
        (Word::Silence, Word::Silence) => loses,
        (closing, other) if closing.closes() => answers(closing, other),
        (other, closing) if closing.closes() => answers(closing, other),
        _ => false,
    }
}
