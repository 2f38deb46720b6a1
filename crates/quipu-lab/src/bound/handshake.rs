//! When a connection that opens with the page can ask for something, and use its other paths.

use quipu_base::Instant;

use super::way::{Framing, Way};
use quipu_scenario::Transport;

/// Bytes of TLS that a server sends before its client can be done, beside the certificate chain, at
/// least: ServerHello, EncryptedExtensions, CertificateVerify and Finished.
const LEAST_FLIGHT: u64 = 220;
/// UDP payload around the TLS bytes of a datagram, at least: a long header with connection IDs of 8
/// bytes, lengths and a packet number, the tag, and the header of a CRYPTO frame.
const AROUND_CRYPTO: u64 = 1 + 4 + 1 + 8 + 1 + 8 + 1 + 1 + 16 + 3;

/// Earliest instants of a handshake over path 0.
#[derive(Debug)]
pub(super) struct Handshake {
    /// The client has the server's last message: it may send streams on path 0.
    pub(super) client_done: Instant,
    /// The client knows that the server is done: it may open paths.
    pub(super) confirmed: Instant,
}

/// What a handshake depends on beside its path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Opening<'a> {
    pub(super) transport: &'a Transport,
    /// Bytes on a link for each datagram above its UDP payload.
    pub(super) overhead: u64,
    /// Whether a datagram may arrive twice, and so count twice.
    pub(super) duplicates: bool,
}

impl Opening<'_> {
    /// The handshake over the first path of `up` and `down` that begins at `start`.
    ///
    /// The client's first datagram is of the least size that QUIC allows. The server may send three
    /// times as much before it hears from the client again, which is when the client has got something,
    /// or has waited in vain. <https://www.rfc-editor.org/rfc/rfc9000#section-8.1>
    pub(super) fn handshake(self, up: &Way, down: &Way, start: Instant) -> Handshake {
        const FIRST: usize = 0;
        let (up, down) = (up.only(FIRST, Framing::BARE), down.only(FIRST, Framing::BARE));
        let datagram = self.transport.initial_udp_payload.0;
        let asked = up.earliest(start, datagram + self.overhead);

        let crypto = self.transport.certificate_chain.0 + LEAST_FLIGHT;
        let datagrams = crypto.div_ceil(datagram.saturating_sub(AROUND_CRYPTO).max(1));
        let flight = crypto + datagrams * AROUND_CRYPTO;
        let mut client_done = down.earliest(asked, flight + datagrams * self.overhead);
        let rest = flight.saturating_sub(3 * datagram);
        if rest > 0 && !self.duplicates {
            let heard = down.earliest(asked, 1);
            // A sender without a sample of the round trip waits no less than this for an answer, and
            // in truth three times as long.
            // https://www.rfc-editor.org/rfc/rfc9002#section-6.2.2
            let probed = start + self.transport.initial_rtt;
            let again = up.earliest(heard.min(probed), 1);
            client_done = client_done.max(down.earliest(again, rest));
        }
        let finished = up.earliest(client_done, 1);
        Handshake { client_done, confirmed: down.earliest(finished, 1) }
    }
}

/// Sets from when on each lane of `up` and `down` can carry streams.
///
/// Path 0 can with the handshake. A further one is opened by the client once the handshake is
/// confirmed, and usable at each end one round trip after that end's challenge left:
/// <https://www.rfc-editor.org/rfc/rfc9000#section-8.2>.
pub(super) fn open(up: &mut Way, down: &mut Way, handshake: &Handshake) {
    let delays = |way: &Way| -> Vec<(usize, u64)> {
        way.lanes().map(|lane| (lane.path, lane.delay())).collect()
    };
    let back = delays(down);
    let there = delays(up);
    let of = |delays: &[(usize, u64)], path: usize| {
        delays.iter().find(|(of, _)| *of == path).map_or(0, |(_, delay)| *delay)
    };
    let confirmed = handshake.confirmed.as_nanos();
    for lane in up.lanes_mut() {
        let round_trip = lane.delay().saturating_add(of(&back, lane.path));
        lane.opens_at = match lane.path {
            0 => handshake.client_done.as_nanos(),
            _ => confirmed.saturating_add(round_trip),
        };
    }
    for lane in down.lanes_mut().filter(|lane| lane.path != 0) {
        let up = of(&there, lane.path);
        let round_trip = lane.delay().saturating_add(up);
        lane.opens_at = confirmed.saturating_add(up).saturating_add(round_trip);
    }
}
