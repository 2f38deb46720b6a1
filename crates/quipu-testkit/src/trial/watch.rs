//! What must hold after every event.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use quipu_base::{Bytes, Instant, PathId, Role};
use quipu_quic::Connection;
use quipu_quic::connection::CloseReason;
use quipu_quic::error::ErrorCode;
use quipu_quic::wire::{Frame, Frames};
use quipu_sim::{Fate, Observer, Received, Sent};

use super::Rule;
use super::node::TrialNode;

/// Bytes that may go beyond the window at one instant: two probes, a challenge with its answer,
/// and an acknowledgement that asks for one.
const BEYOND_WINDOW: Bytes = Bytes(2 * 1350 + 1200 + 400);

/// Bytes that may go beyond that to a peer that breaks the rules: answers to challenges, in full datagrams, as
/// many as the engine lets go then. An honest peer asks once.
const BEYOND_FOR_ANYBODY: Bytes = Bytes(3 * 1200);

/// What went over the links, as the server sees it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wire {
    server: Option<SocketAddr>,
    flows: BTreeMap<SocketAddr, Flow>,
    /// Datagrams that both ends sent.
    pub(crate) sent: u64,
    /// Hash of when they were sent, over which link, and how long they were.
    pub(crate) trace: u64,
}

/// Between the server and one address of the client.
#[derive(Clone, Debug, Default)]
struct Flow {
    received: Bytes,
    sent: Bytes,
    /// What the server asked there, as long as it is not proved.
    challenges: Vec<[u8; 8]>,
    /// The client showed that it receives what the server sends there.
    proved: bool,
}

impl Wire {
    pub(crate) fn new(server: SocketAddr) -> Self {
        Wire { server: Some(server), ..Wire::default() }
    }
}

impl Observer for Wire {
    fn on_sent(&mut self, now: Instant, sent: &Sent<'_>) {
        let link = match sent.fate {
            Fate::Offered { link, .. } | Fate::Queued { link } => link.index() as u64,
            Fate::NoRoute => u64::MAX,
        };
        self.sent += 1;
        let words = [now.as_nanos(), sent.payload.len() as u64, link];
        for word in words {
            let mixed = (self.trace ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            self.trace = mixed ^ mixed >> 29;
        }
        if Some(sent.envelope.local) == self.server {
            let flow = self.flows.entry(sent.envelope.remote).or_default();
            flow.sent += Bytes(sent.payload.len() as u64);
            if !flow.proved {
                flow.challenges.extend(challenges(sent.payload));
            }
        }
    }

    fn on_received(&mut self, _now: Instant, received: &Received<'_>) {
        if Some(received.envelope.local) == self.server {
            let flow = self.flows.entry(received.envelope.remote).or_default();
            flow.received += Bytes(received.payload.len() as u64);
            self.prove(received.payload);
        }
    }
}

impl Wire {
    /// Proves the addresses at which the client must have received something to send this datagram,
    /// wherever it comes from: that of a challenge which is answered, in a datagram of full size or not,
    /// and in the handshake those that the server spoke to.
    /// <https://www.rfc-editor.org/rfc/rfc9000#section-8.1>
    /// <https://www.rfc-editor.org/rfc/rfc9000#section-8.2.3>
    fn prove(&mut self, datagram: &[u8]) {
        let mut unproved = self.flows.values_mut().filter(|flow| !flow.proved).peekable();
        if unproved.peek().is_none() {
            return;
        }
        let (handshake, responses) = (has_handshake_packet(datagram), responses(datagram));
        for flow in unproved {
            let answered = responses.iter().any(|answered| flow.challenges.contains(answered));
            flow.proved = answered || handshake && flow.sent > Bytes::ZERO;
        }
    }
}

/// The length of connection IDs in trials.
const CONNECTION_ID: usize = 8;
/// The length of the tag of [`quipu_null_tls`], which leaves the frames readable.
const TAG: usize = 16;

/// The frames of a 1-RTT packet, as far as they can be read without the length of its packet number:
/// a wrong length, which is tried too, makes no frames or the same.
fn frames(datagram: &[u8]) -> impl Iterator<Item = Frame<'_>> {
    let is_short = datagram.first().is_some_and(|first| first & 0x80 == 0);
    let payload = move |number: usize| {
        let end = datagram.len().checked_sub(TAG)?;
        datagram.get(1 + CONNECTION_ID + number..end).filter(|_| is_short)
    };
    let read = |payload| Frames::new(payload).collect::<Result<Vec<_>, _>>().ok();
    (1..=4).filter_map(payload).filter_map(read).flatten()
}

/// What a datagram asks in PATH_CHALLENGE frames.
fn challenges(datagram: &[u8]) -> Vec<[u8; 8]> {
    let data = |frame| match frame {
        Frame::PathChallenge { data } => Some(data),
        _ => None,
    };
    frames(datagram).filter_map(data).collect()
}

/// What a datagram answers in PATH_RESPONSE frames.
fn responses(datagram: &[u8]) -> Vec<[u8; 8]> {
    let data = |frame| match frame {
        Frame::PathResponse { data } => Some(data),
        _ => None,
    };
    frames(datagram).filter_map(data).collect()
}

/// True if a packet of the datagram is a Handshake packet.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-17.2>
fn has_handshake_packet(mut datagram: &[u8]) -> bool {
    while let [first, rest @ ..] = datagram
        && first & 0x80 != 0
    {
        match first >> 4 & 3 {
            0 | 1 => {}
            2 => return true,
            _ => return false,
        }
        datagram = match after(rest, first >> 4 & 3 == 0) {
            Some(after) => after,
            None => return false,
        };
    }
    false
}

/// What follows an Initial packet, which has a token, or a 0-RTT packet, given without its first byte.
fn after(rest: &[u8], has_token: bool) -> Option<&[u8]> {
    let skip_short = |bytes: &'_ [u8]| -> Option<usize> { Some(1 + usize::from(*bytes.first()?)) };
    let rest = rest.get(4..)?;
    let rest = rest.get(skip_short(rest)?..)?;
    let rest = rest.get(skip_short(rest)?..)?;
    let (token, rest) = if has_token { varint(rest)? } else { (0, rest) };
    let (length, rest) = varint(rest.get(token..)?)?;
    rest.get(length..)
}

/// <https://www.rfc-editor.org/rfc/rfc9000#section-16>
fn varint(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let first = *bytes.first()?;
    let (own, rest) = bytes.split_at_checked(1 << (first >> 6))?;
    let value = own[1..]
        .iter()
        .fold(usize::from(first & 0x3f), |value, &byte| value << 8 | usize::from(byte));
    Some((value, rest))
}

/// The rules that hold after every event.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watch {
    /// Bytes in flight after the event before, per end.
    before: [BTreeMap<PathId, Bytes>; 2],
}

impl Watch {
    /// The first rule that an end breaks now.
    pub(crate) fn check(&mut self, role: Role, node: &TrialNode) -> Option<Rule> {
        let (hostile, wrong) = (node.is_hostile, node.application.wrong);
        if let Some((stream, offset)) = wrong.filter(|_| !hostile) {
            return Some(Rule::Content { stream, offset });
        }
        if let Some(at) = node.stuck {
            return Some(Rule::Stuck { at });
        }
        if let Some(finding) = node.watch.first_finding() {
            return Some(Rule::Seam { finding });
        }
        if let Some(rule) = node.news.broken() {
            return Some(rule);
        }
        let connection = node.connection()?;
        Some(connection)
            .filter(|_| !hostile)
            .and_then(fault)
            .or_else(|| balance(connection))
            .or_else(|| counters(connection))
            .or_else(|| overridden(connection))
            .or_else(|| self.window(role, connection, hostile))
    }

    fn window(&mut self, role: Role, connection: &Connection, hostile: bool) -> Option<Rule> {
        // An end that closes repeats that as often as its own limit allows, whatever the window is: a
        // client in whole datagrams, which count as in flight.
        // https://www.rfc-editor.org/rfc/rfc9000#section-10.2.1
        if connection.close_reason().is_some() {
            return None;
        }
        let beyond = if hostile { BEYOND_WINDOW + BEYOND_FOR_ANYBODY } else { BEYOND_WINDOW };
        let before = &mut self.before[usize::from(role.is_client())];
        for view in connection.path_views() {
            let known = before.insert(view.key.id, view.in_flight).unwrap_or(Bytes::ZERO);
            // A window that shrinks leaves more in flight than it allows, but lets no more out.
            if view.in_flight > known.max(view.cwnd) + beyond {
                let (path, in_flight, cwnd) = (view.key.id, view.in_flight, view.cwnd);
                return Some(Rule::Window { path, in_flight, cwnd });
            }
        }
        None
    }
}

fn fault(connection: &Connection) -> Option<Rule> {
    let reason = connection.close_reason()?;
    let is_fault = match reason {
        // Both ends may abandon the other's last path at once.
        CloseReason::PeerFault(error) => error.code != ErrorCode::NO_VIABLE_PATH,
        CloseReason::PeerTransport { code, .. } => {
            ![ErrorCode::NO_VIABLE_PATH.0, ErrorCode::APPLICATION_ERROR.0].contains(code)
        }
        CloseReason::PeerApplication { .. }
        | CloseReason::Application { .. }
        | CloseReason::StatelessReset
        | CloseReason::IdleTimeout => false,
        _ => true,
    };
    is_fault.then(|| Rule::Fault { reason: reason.to_string() })
}

fn balance(connection: &Connection) -> Option<Rule> {
    let paths: Bytes = connection.path_views().map(|view| view.in_flight).sum();
    let counted = connection.view(Instant::ZERO).conn.in_flight;
    (paths != counted).then_some(Rule::Balance { paths, counted })
}

fn counters(connection: &Connection) -> Option<Rule> {
    connection.path_samples().find_map(|sample| {
        let counters = sample.counters;
        let settled = counters.bytes_acked + counters.bytes_lost - counters.bytes_spurious;
        let (known, sent) = (sample.in_flight + Bytes(settled), Bytes(counters.bytes_sent));
        (known > sent).then_some(Rule::Counters { path: sample.path, known, sent })
    })
}

fn overridden(connection: &Connection) -> Option<Rule> {
    let counters = connection.scheduler_counters();
    let (refused, overridden) = (counters.refused, counters.overridden);
    (refused + overridden > 0).then_some(Rule::Refused { refused, overridden })
}

/// The first address that has not proved to be the client's and to which the server sent more
/// than three times what came from there.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-8>
pub(crate) fn amplified(wire: &Wire) -> Option<Rule> {
    let mut unproved = wire.flows.iter().filter(|(_, flow)| !flow.proved);
    let (&address, flow) =
        unproved.find(|(_, flow)| flow.sent > flow.received.saturating_mul(3))?;
    Some(Rule::Amplified { address, received: flow.received, sent: flow.sent })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handshake_packet_is_found_behind_an_initial() {
        let initial = [0xc3, 0, 0, 0, 1, 2, 7, 7, 1, 5, 0, 0x40, 3, 1, 2, 3];
        assert!(!has_handshake_packet(&initial));
        let mut both = initial.to_vec();
        both.push(0xe0);
        assert!(has_handshake_packet(&both));
        both.truncate(initial.len());
        both.extend([0xd0, 0, 0, 0, 1, 1, 7, 1, 5, 1, 9, 0xe0]);
        assert!(has_handshake_packet(&both));
        assert!(has_handshake_packet(&[0xe1, 0]));
        assert!(!has_handshake_packet(&[0x41, 0xe1]));
        assert!(!has_handshake_packet(&[0xc3, 0, 0]));
    }
}
