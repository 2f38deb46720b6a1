//! Random moves of a hostile peer: frames, packets, datagrams, replays, time, and what the victim's
//! own application does meanwhile.

use std::net::SocketAddr;

use quipu_base::{Bytes, Duration, Offset, PathId, Random, Role, Seed, StreamDirection, StreamId};
use quipu_http::h2::ServerConfig;
use quipu_null_tls::{NullClient, NullServer};
use quipu_quic::Route;
use quipu_quic::error::ErrorCode;
use quipu_quic::wire::frame::Stream;
use quipu_quic::wire::{Frame, PacketKind};

use super::author::{self, Author, DATA};
use super::draw::{Draw, PATHS};
use super::end::{Meter, Setup, arrival};
use super::extensions::Extensions;
use super::http;
use super::packet::{Datagram, Forgery, datagram};
use super::pair::{Flight, Pair};
use super::peer::Forge;
use crate::{ALPN, Tls, client_address, server_address};

/// Datagrams that are kept to be repeated.
const KEPT: usize = 16;
/// One way, in a handshake that the forger enters before it is over.
const DELAY: Duration = Duration::from_millis(5);

/// A hostile peer that makes one random move after the other.
pub struct Hostility {
    forge: Forge,
    /// How often it does in percent what a victim must close for.
    boldness: u64,
    kept: Vec<(quipu_quic::Arrival, Vec<u8>)>,
    /// Packets that it sealed with the keys of the connection.
    packets: u64,
    /// How far it came on the control stream, if the victim speaks HTTP/2.
    control: Option<Control>,
    extended: Option<Extended>,
}

/// What is drawn of extensions.
struct Extended {
    /// What the victim takes of them.
    extensions: Extensions,
    /// The victim's application reads datagrams.
    reads: bool,
    /// The forger has the keys of 0-RTT.
    is_early: bool,
    /// With these the handshake is over at the victim.
    handshake: Vec<Flight>,
}

/// The control stream of HTTP/2.
#[derive(Clone, Copy, Debug, Default)]
struct Control {
    /// Bytes so far.
    offset: u64,
    /// Requests so far.
    requests: u32,
}

impl Hostility {
    /// Makes moves with `forge`. `boldness`: how often, in percent, a frame is one for which the
    /// victim must close; with zero a connection lives long.
    pub fn new(forge: Forge, boldness: u64) -> Self {
        Hostility { forge, boldness, kept: Vec::new(), packets: 0, control: None, extended: None }
    }

    /// A hostile client or server of a connection whose ends are drawn too: which of them is the
    /// victim, with or without multipath, with HTTP/2 on top or without.
    pub fn drawn(draw: &mut impl Draw, meter: Meter) -> Self {
        Hostility::drawn_with(draw, meter, false)
    }

    /// The same where both ends speak some extensions, and maybe 0-RTT, whose frames and packets are sent
    /// too.
    pub fn drawn_extended(draw: &mut impl Draw, meter: Meter) -> Self {
        Hostility::drawn_with(draw, meter, true)
    }

    /// The one of a seed, with extensions for half of the seeds, and the source of its moves.
    pub fn of_seed(seed: Seed, meter: Meter) -> (Self, Random) {
        let mut draw = seed.stream("moves", 0);
        // From a stream of its own: the moves without extensions do not depend on what these draw.
        let is_extended = seed.stream("extensions", 0).happens(50);
        (Hostility::drawn_with(&mut draw, meter, is_extended), draw)
    }

    fn drawn_with(draw: &mut impl Draw, meter: Meter, is_extended: bool) -> Self {
        let victim = [Role::Server, Role::Client][draw.below(2) as usize];
        let (multipath, speaks_http) = (draw.below(3) > 0, draw.below(3) == 0);
        let mut setup = Setup { meter, ..Setup::default() };
        for transport in [&mut setup.client, &mut setup.server] {
            transport.max_streams = 64;
            transport.stream_window = Bytes(256 << 10);
            transport.connection_window = Bytes(8 << 20);
        }
        if !multipath {
            setup = setup.on_one_path();
        }
        let (mut forge, extended) = if is_extended {
            let (forge, extended) = extended(victim, setup, draw);
            (forge, Some(extended))
        } else {
            (Forge::against(victim, &setup), None)
        };
        if draw.happens(50) {
            forge = forge.answering();
        }
        if draw.happens(50) {
            forge = forge.acknowledging();
        }
        let boldness = [0, 0, 1, 5, 30][draw.below(5) as usize];
        if speaks_http && victim == Role::Server {
            let application = http::server(ServerConfig::default(), 10_000);
            forge.victim_mut().serve(application);
            return Hostility { extended, ..Hostility::new(forge, boldness).with_http2() };
        }
        Hostility { extended, ..Hostility::new(forge, boldness) }
    }

    /// The same against a victim that speaks HTTP/2 on stream 0.
    #[must_use]
    pub fn with_http2(self) -> Self {
        Hostility { control: Some(Control::default()), ..self }
    }

    /// The forger.
    pub fn forge(&self) -> &Forge {
        &self.forge
    }

    /// The same, to call it.
    pub fn forge_mut(&mut self) -> &mut Forge {
        &mut self.forge
    }

    /// Authentic packets that were sent so far.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// True once the victim's connection is over.
    pub fn is_over(&self) -> bool {
        self.forge.victim().connection().is_none_or(quipu_quic::Connection::is_closed)
    }

    /// One move.
    pub fn step(&mut self, draw: &mut impl Draw) {
        if let Some(extended) = &self.extended {
            // Frames of 1-RTT packets end a handshake that is not over.
            let percent = if extended.handshake.is_empty() { 10 } else { 70 };
            if draw.happens(percent) {
                return self.use_extensions(draw);
            }
        }
        match draw.below(20) {
            0..=13 => self.send(draw),
            14 => self.replay(draw),
            15 => self.wait(draw),
            16 | 17 => self.acknowledge(draw),
            18 => self.let_victim_act(draw),
            _ => self.send_http2(draw),
        }
    }

    fn send(&mut self, draw: &mut impl Draw) {
        let packets = if draw.happens(10) { 1 + draw.below(3) } else { 1 };
        let mut parts = Vec::new();
        for _ in 0..packets {
            parts.push(self.author().packet(draw));
        }
        let mut whole = datagram(parts);
        if draw.happens(5) {
            let length = draw.below(60) as usize;
            whole = whole.followed_by(&DATA[..length]);
        }
        whole = whole.marked(draw.below(4) as u8);
        if draw.happens(25) {
            whole = whole.sent_from(self.address(draw));
        }
        self.deliver(&whole, packets);
    }

    /// A packet of 0-RTT, the end of the handshake, or what an application does with datagrams.
    fn use_extensions(&mut self, draw: &mut impl Draw) {
        let Some(extended) = &mut self.extended else { return };
        let reads = extended.reads;
        if extended.is_early && draw.happens(50) {
            if draw.happens(10) {
                for flight in std::mem::take(&mut extended.handshake) {
                    let arrival = arrival(flight.route, flight.ecn);
                    self.forge.deliver(arrival, &mut flight.bytes.clone());
                }
                return;
            }
            let packet = self.author().early_packet(draw);
            return self.deliver(&packet.into(), 1);
        }
        if self.forge.victim().connection().is_none() {
            return;
        }
        let (count, length) = (1 + draw.below(20), draw.below(1_500) as usize);
        let what = draw.below(3);
        self.forge.act(|connection, now| match what {
            0 if reads => while connection.read_datagram().is_some() {},
            1 => {
                for _ in 0..count {
                    let _ = connection.send_datagram(now, vec![7; length].into());
                }
            }
            _ => {
                let _ = connection.offer_datagram(now, vec![7; length].into());
            }
        });
    }

    /// Who writes its packets.
    fn author(&mut self) -> Author<'_> {
        let extensions = self.extended.as_ref().map(|extended| extended.extensions);
        let author = Author::new(self.forge.book_mut(), self.boldness);
        let author = author.with_extensions(extensions);
        // Stream 0 is the control stream of HTTP/2.
        if self.control.is_some() { author.sparing_first_stream() } else { author }
    }

    fn deliver(&mut self, whole: &Datagram, packets: u64) {
        let Some((arrival, mut bytes)) = self.forge.seal(whole) else { return };
        if self.kept.len() >= KEPT {
            self.kept.remove(0);
        }
        self.kept.push((arrival, bytes.clone()));
        self.packets += packets;
        self.forge.deliver(arrival, &mut bytes);
    }

    /// Something that was sent before, or a part of it, from there or from elsewhere.
    fn replay(&mut self, draw: &mut impl Draw) {
        if self.kept.is_empty() {
            return;
        }
        let at = draw.below(self.kept.len() as u64) as usize;
        let (mut arrival, mut bytes) = self.kept[at].clone();
        if draw.happens(50) {
            let remote = self.address(draw);
            arrival.route = Route { remote, ..arrival.route };
        }
        if draw.happens(30) {
            let length = draw.below(bytes.len() as u64 + 1) as usize;
            bytes.truncate(length);
        } else if draw.happens(30) {
            let at = draw.below(bytes.len().max(1) as u64) as usize;
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << draw.below(8);
            }
        }
        self.forge.deliver(arrival, &mut bytes);
    }

    fn wait(&mut self, draw: &mut impl Draw) {
        let micros = match draw.below(8) {
            0..=4 => draw.below(2_000),
            5 | 6 => draw.below(300_000),
            _ => draw.below(5_000_000),
        };
        self.forge.wait(Duration::from_micros(micros));
    }

    /// Acknowledges as an honest peer would, so that connections live.
    fn acknowledge(&mut self, draw: &mut impl Draw) {
        let path = draw.below(PATHS) as u32;
        self.packets += u64::from(self.forge.largest_heard(path).is_some());
        self.forge.acknowledge(path);
    }

    /// The victim's application uses its connection.
    fn let_victim_act(&mut self, draw: &mut impl Draw) {
        if self.forge.victim().connection().is_none() {
            return;
        }
        let role = self.forge.victim().role();
        let stream = author::any_stream(draw);
        let (what, amount) = (draw.below(9), draw.below(40_000) as usize);
        let path = PathId(draw.below(PATHS) as u32);
        self.forge.act(|connection, now| match what {
            0 => {
                let _ = connection.open_stream(now, StreamDirection::Bidirectional);
            }
            1 => {
                let _ = connection.open_stream(now, StreamDirection::Unidirectional);
            }
            2 | 3 => {
                let _ = connection.write(now, stream, vec![7; amount].into());
            }
            4 => {
                let _ = connection.finish(now, stream);
            }
            5 => {
                let _ = connection.reset(now, stream, 7);
            }
            6 => {
                let _ = connection.stop_sending(now, stream, 7);
            }
            7 if role.is_client() => {
                let local = client_address(1 + path.0 as u8);
                let _ = connection.open_path(now, Route::new(local, server_address()));
            }
            7 => {
                connection.abandon_path(now, path, ErrorCode::NO_ERROR);
            }
            _ => {
                connection.update_keys();
            }
        });
    }

    /// HTTP/2 frames in order on the control stream.
    fn send_http2(&mut self, draw: &mut impl Draw) {
        let Some(mut control) = self.control else { return self.send(draw) };
        let mut bytes = Vec::new();
        if control.offset == 0 {
            bytes.extend([0, 0, 0, 4, 0, 0, 0, 0, 0]);
        }
        let frames = 1 + draw.below(8);
        for _ in 0..frames {
            http2_frame(draw, self.boldness, &mut control.requests, &mut bytes);
        }
        let offset = Offset(control.offset);
        control.offset += bytes.len() as u64;
        self.control = Some(control);
        let stream = Stream { stream: StreamId(0), offset, fin: false, data: &bytes };
        let packet = Forgery::new(PacketKind::OneRtt).frame(Frame::Stream(stream));
        self.deliver(&packet.into(), 1);
    }

    /// An address of the forger's, or one that is somebody else's.
    fn address(&self, draw: &mut impl Draw) -> SocketAddr {
        if !self.forge.victim().role().is_client() && draw.happens(70) {
            return client_address(draw.below(4) as u8);
        }
        spoofed(draw.below(4) as u8)
    }
}

/// A forger in place of the peer of `victim`, both of which speak drawn extensions of `setup`.
fn extended(victim: Role, mut setup: Setup, draw: &mut impl Draw) -> (Forge, Extended) {
    for transport in [&mut setup.client, &mut setup.server] {
        Extensions::draw_into(transport, draw);
    }
    let reads = draw.happens(50);
    let is_early = !victim.is_client() && draw.happens(40);
    let transport = if victim.is_client() { &setup.client } else { &setup.server };
    let extensions = Extensions::of(transport);
    let (forge, handshake) =
        if is_early { early(setup) } else { (Forge::against(victim, &setup), Vec::new()) };
    (forge, Extended { extensions, reads, is_early, handshake })
}

/// A forger in place of a client that has keys of 0-RTT, before the handshake is over at the server, and
/// what the client sent last.
fn early(mut setup: Setup) -> (Forge, Vec<Flight>) {
    let client = NullClient::new(&[ALPN]).expect("a valid name").with_resumption();
    setup.tls = Tls::SharedNull(client, NullServer::new(&[ALPN]).expect("a valid name"));
    setup.client.early_data = true;
    setup.server.early_data = true;
    // The client gets to know the server.
    Pair::connected(&setup, DELAY);
    let mut pair = Pair::new(&setup, DELAY);
    pair.run(DELAY.saturating_mul(2) + Duration::from_millis(1));
    let arrived = pair.now() - DELAY;
    let on_the_way =
        pair.log().iter().filter(|(at, flight)| *at > arrived && flight.from.is_client());
    let handshake = on_the_way.map(|(_, flight)| flight.clone()).collect();
    (Forge::instead_of(Role::Client, pair, &setup), handshake)
}

/// An address that answers nobody. [`Bounds`](super::Bounds) count what goes to numbers 0 to 3.
pub fn spoofed(number: u8) -> SocketAddr {
    SocketAddr::from(([10, 9, 9, number], 9_999))
}

/// An HTTP/2 frame of any kind.
fn http2_frame(draw: &mut impl Draw, boldness: u64, requests: &mut u32, out: &mut Vec<u8>) {
    let stream = 4 * (*requests + draw.below(20) as u32);
    let (kind, flags, stream, payload): (u8, u8, u32, Vec<u8>) = match draw.below(8) {
        0 if draw.happens(10) => {
            // How large the table is, how many streams there may be, how large a list.
            let setting = [1, 3, 6][draw.below(3) as usize];
            (4, 0, 0, vec![0, setting, 0, 0, draw.below(256) as u8, 0])
        }
        2 => {
            let mut payload = (draw.below(64) as u32).to_be_bytes().to_vec();
            payload.push(draw.below(256) as u8);
            (2, 0, 1 + 2 * draw.below(40) as u32, payload)
        }
        3 => (0xbe, 0, 0, DATA[..draw.below(100) as usize].to_vec()),
        4 => {
            let mut payload = stream.to_be_bytes().to_vec();
            payload.extend(b"u=1, i");
            (0x10, 0, 0, payload)
        }
        _ => {
            *requests += 1;
            (1, 5, 4 * *requests, vec![0x82, 0x87, 0x84, 0x41, 0x01, b'a'])
        }
    };
    let (mut kind, mut flags, mut payload) = (kind, flags, payload);
    if draw.happens(boldness) {
        kind = draw.below(20) as u8;
        flags = draw.below(256) as u8;
        for byte in &mut payload {
            *byte = draw.below(256) as u8;
        }
    }
    out.extend(&(payload.len() as u32).to_be_bytes()[1..]);
    out.extend([kind, flags]);
    out.extend(stream.to_be_bytes());
    out.extend(payload);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn early_packets_are_read_and_the_handshake_ends() {
        let (mut forge, handshake) = early(Setup::default());
        let stream =
            Stream { stream: StreamId(0), offset: Offset(0), fin: false, data: &DATA[..9] };
        let packet = Forgery::new(PacketKind::ZeroRtt).frame(Frame::Stream(stream));
        assert!(forge.send(packet));
        assert_eq!(forge.connection().dropped_packets(), 0);
        assert!(forge.connection().is_early() && !forge.victim().is_confirmed());
        for flight in handshake {
            let arrival = arrival(flight.route, flight.ecn);
            forge.deliver(arrival, &mut flight.bytes.clone());
        }
        assert!(forge.victim().is_confirmed());
        assert_eq!(forge.closed(), None);
    }
}
