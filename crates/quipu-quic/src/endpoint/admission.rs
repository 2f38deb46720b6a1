//! Which clients a server lets in: limits, and the counts that are held against them.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use quipu_base::{Bytes, Duration};

use super::tokens::TokenState;

/// Which clients a server lets in. What is refused is told at once, with CONNECTION_REFUSED.
///
/// A client proves its address when it completes the handshake or repeats a token. Before that it
/// may be anybody, and its address that of a victim, so a server keeps few such connections, and asks
/// further clients for a token with a Retry packet, which costs it nothing.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-8.1>
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admission {
    /// Connections at a time. Further clients are refused. Default 10,000; our choice.
    pub max_connections: usize,
    /// Connections at a time whose clients proved that they are at one source: an IPv4 address, or
    /// the first 64 bits of an IPv6 address. Further clients there are refused. Default 1,000; our
    /// choice.
    pub max_per_source: usize,
    /// Connections at a time whose clients have not proved their addresses. Further clients get a
    /// Retry, or are refused if the server has no key for tokens. Zero: every client gets a Retry.
    /// Default 256; our choice.
    pub max_unvalidated: usize,
    /// The handshake takes at most so long, counted from the client's first packet; a connection that
    /// is not complete by then ends without a word. Zero: no limit. Default 10 s; our choice.
    pub handshake_timeout: Duration,
    /// The application decides about each client that the limits let in:
    /// [`Endpoint::poll_incoming`](crate::Endpoint::poll_incoming). Default false: all are accepted.
    pub ask: bool,
    /// Clients that wait for the application's decision at a time. Further clients get a Retry; those that
    /// have followed one, or all if the server has no key for tokens, get no answer and come again with
    /// their next probe timeout. Default 256; our choice.
    pub max_incoming: usize,
    /// Bytes of datagrams that waiting clients hold together; what comes beyond is dropped. Default
    /// 1 MiB; our choice.
    pub max_incoming_bytes: Bytes,
}

impl Default for Admission {
    fn default() -> Self {
        Admission {
            max_connections: 10_000,
            max_per_source: 1_000,
            max_unvalidated: 256,
            handshake_timeout: Duration::from_secs(10),
            ask: false,
            max_incoming: 256,
            max_incoming_bytes: Bytes(1 << 20),
        }
    }
}

/// Where clients are counted together: whoever has one address of an IPv6 network has all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    V4(u32),
    /// The first 64 bits.
    V6(u64),
}

impl Source {
    pub(super) fn of(address: SocketAddr) -> Self {
        match address.ip() {
            IpAddr::V4(ip) => Source::V4(ip.to_bits()),
            IpAddr::V6(ip) => Source::V6((ip.to_bits() >> 64) as u64),
        }
    }
}

/// What is done about a client's first packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Accept,
    /// The application is asked.
    Ask,
    Retry,
    /// Nothing: it will come again.
    Later,
    Refuse,
}

/// Connections that clients opened, as the limits count them.
#[derive(Debug, Default)]
pub(super) struct Gate {
    accepted: usize,
    unvalidated: usize,
    /// Connections by source whose clients proved to be there; no source without any.
    validated: BTreeMap<Source, usize>,
}

impl Gate {
    /// A connection was accepted.
    pub(super) fn on_accepted(&mut self, source: Source, validated: bool) {
        self.accepted += 1;
        if validated {
            *self.validated.entry(source).or_default() += 1;
        } else {
            self.unvalidated += 1;
        }
    }

    /// A client that had not proved its address did so.
    pub(super) fn on_validated(&mut self, source: Source) {
        self.unvalidated = self.unvalidated.saturating_sub(1);
        *self.validated.entry(source).or_default() += 1;
    }

    /// A connection is gone. `validated`: its client had proved its address.
    pub(super) fn on_gone(&mut self, source: Source, validated: bool) {
        self.accepted = self.accepted.saturating_sub(1);
        if !validated {
            self.unvalidated = self.unvalidated.saturating_sub(1);
        } else if let Some(count) = self.validated.get_mut(&source) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.validated.remove(&source);
            }
        }
    }

    /// What is done about a client. `waiting`: clients that the application has yet to decide about;
    /// `can_retry`: there is a key for tokens.
    pub(super) fn verdict(
        &self,
        admission: &Admission,
        source: Source,
        token: TokenState,
        waiting: usize,
        can_retry: bool,
    ) -> Verdict {
        // https://www.rfc-editor.org/rfc/rfc9000#section-21.6
        //# QUIC deployments SHOULD provide mitigations for the Slowloris attacks, such as
        //# increasing the maximum number of clients the server will allow, limiting the number of
        //# connections a single IP address is allowed to make, imposing restrictions on the
        //# minimum transfer speed a connection is allowed to have, and restricting the length of
        //# time an endpoint is allowed to stay connected.
        if self.accepted >= admission.max_connections {
            return Verdict::Refuse;
        }
        // https://www.rfc-editor.org/rfc/rfc9000#section-8.1.3
        //# If the token is invalid, then the server SHOULD proceed as if the client did not have a
        //# validated address, including potentially sending a Retry packet.
        // https://www.rfc-editor.org/rfc/rfc9000#section-8.1.4
        //# If the client IP address has changed, the server MUST adhere to the anti-amplification
        //# limit; see Section 8.
        let crowded = admission.ask && waiting >= admission.max_incoming;
        let of_source = self.validated.get(&source).copied().unwrap_or_default();
        if token.is_valid() {
            // Only whoever is there counts, or others could use up a victim's share.
            if of_source >= admission.max_per_source {
                return Verdict::Refuse;
            }
            if crowded {
                return Verdict::Later;
            }
        } else if crowded && !can_retry {
            return Verdict::Later;
        } else if self.unvalidated >= admission.max_unvalidated
            || of_source >= admission.max_per_source
            || crowded
        {
            return if can_retry { Verdict::Retry } else { Verdict::Refuse };
        }
        if admission.ask { Verdict::Ask } else { Verdict::Accept }
    }

    /// Connections of clients without proof of their addresses.
    pub(super) fn unvalidated(&self) -> usize {
        self.unvalidated
    }

    /// Sources that are counted.
    pub(super) fn sources(&self) -> usize {
        self.validated.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Source = Source::V4(1);
    const THERE: Source = Source::V4(2);
    const LIMITS: Admission = Admission {
        max_connections: 4,
        max_per_source: 2,
        max_unvalidated: 1,
        handshake_timeout: Duration::ZERO,
        ask: false,
        max_incoming: 1,
        max_incoming_bytes: Bytes(0),
    };

    /// A gate with `here` clients that proved to be at `HERE`, and so many without proof.
    fn gate(here: usize, unvalidated: usize) -> Gate {
        let mut gate = Gate::default();
        (0..here).for_each(|_| gate.on_accepted(HERE, true));
        (0..unvalidated).for_each(|_| gate.on_accepted(THERE, false));
        gate
    }

    #[test]
    fn every_combination_of_limits_has_its_verdict() {
        use TokenState::{Absent, FromConnection, FromRetry, Invalid};
        use Verdict::{Accept, Ask, Later, Refuse, Retry};
        let verdicts = |gate: &Gate, ask: bool, waiting: usize, can_retry: bool| {
            [Absent, Invalid, FromConnection, FromRetry].map(|token| {
                gate.verdict(&Admission { ask, ..LIMITS }, HERE, token, waiting, can_retry)
            })
        };
        for (here, unvalidated, ask, waiting, can_retry, expected) in [
            (0, 0, false, 0, true, [Accept; 4]),
            (0, 0, true, 0, true, [Ask; 4]),
            // The application has enough to decide about; without it nobody waits.
            (0, 0, true, 1, true, [Retry, Retry, Later, Later]),
            (0, 0, true, 1, false, [Later; 4]),
            (2, 0, true, 1, true, [Retry, Retry, Refuse, Refuse]),
            (0, 0, false, 1, true, [Accept; 4]),
            // Too many clients without proof: others need one.
            (0, 1, false, 0, true, [Retry, Retry, Accept, Accept]),
            (0, 1, false, 0, false, [Refuse, Refuse, Accept, Accept]),
            // The source has its share: whoever proves to be there is refused.
            (2, 0, false, 0, true, [Retry, Retry, Refuse, Refuse]),
            (2, 0, false, 0, false, [Refuse; 4]),
            // The server is full.
            (2, 2, false, 0, true, [Refuse; 4]),
        ] {
            let gate = gate(here, unvalidated);
            let found = verdicts(&gate, ask, waiting, can_retry);
            assert_eq!(found, expected, "{gate:?}, {waiting} waiting");
        }
    }

    #[test]
    fn others_cannot_use_up_the_share_of_a_source() {
        let mut gate = Gate::default();
        let limits = Admission { max_unvalidated: 100, max_connections: 100, ..LIMITS };
        // Whoever sends these only claims to be here.
        (0..50).for_each(|_| gate.on_accepted(HERE, false));
        let verdict = gate.verdict(&limits, HERE, TokenState::Absent, 0, true);
        assert_eq!(verdict, Verdict::Accept);
    }

    #[test]
    fn a_gate_forgets_what_is_gone() {
        let counts = |gate: &Gate| (gate.accepted, gate.unvalidated(), gate.sources());
        let mut gate = gate(2, 2);
        gate.on_validated(THERE);
        assert_eq!(counts(&gate), (4, 1, 2));
        gate.on_gone(THERE, true);
        gate.on_gone(THERE, false);
        gate.on_gone(HERE, true);
        assert_eq!(counts(&gate), (1, 0, 1));
        gate.on_gone(HERE, true);
        assert_eq!(counts(&gate), (0, 0, 0));
    }

    #[test]
    fn addresses_of_one_ipv6_network_are_one_source() {
        let source = |text: &str| Source::of(text.parse().unwrap());
        assert_eq!(source("[2001:db8:1:2::1]:1"), source("[2001:db8:1:2:ffff::9]:2"));
        assert_ne!(source("[2001:db8:1:2::1]:1"), source("[2001:db8:1:3::1]:1"));
        assert_eq!(source("192.0.2.1:1"), source("192.0.2.1:2"));
        assert_ne!(source("192.0.2.1:1"), source("192.0.2.2:1"));
    }
}
