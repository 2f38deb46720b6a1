//! Random moves of a hostile peer: frames, packets, datagrams, replays, time, and what the victim's
//! own application does meanwhile.

use std::net::SocketAddr;

use quipu_base::{Bytes, Duration, Offset, PathId, Role, StreamDirection, StreamId};
use quipu_http::h2::ServerConfig;
use quipu_quic::Route;
use quipu_quic::error::ErrorCode;
use quipu_quic::wire::frame::{EcnCounts, NewConnectionId, Stream};
use quipu_quic::wire::{ConnectionId, Frame, PacketKind, ResetToken};

use super::draw::Draw;
use super::end::{Meter, Setup};
use super::http;
use super::packet::{Datagram, Forgery, Number, datagram};
use super::peer::Forge;
use crate::{client_address, server_address};

/// Datagrams that are kept to be repeated.
const KEPT: usize = 16;
/// Paths that the forger speaks of.
const PATHS: u64 = 6;
/// Streams of each kind that it speaks of.
const STREAMS: u64 = 24;
/// The most bytes of stream data in a frame.
const DATA: [u8; 1_200] = [0x5a; 1_200];

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
        Hostility { forge, boldness, kept: Vec::new(), packets: 0, control: None }
    }

    /// A hostile client or server of a connection whose ends are drawn too: which of them is the
    /// victim, with or without multipath, with HTTP/2 on top or without.
    pub fn drawn(draw: &mut impl Draw, meter: Meter) -> Self {
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
        let mut forge = Forge::against(victim, &setup);
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
            return Hostility::new(forge, boldness).with_http2();
        }
        Hostility::new(forge, boldness)
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
            parts.push(self.packet(draw));
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
        let stream = any_stream(draw);
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

    /// A path that the forger may use: only clients open paths.
    fn path(&self, draw: &mut impl Draw) -> u32 {
        let path = draw.below(PATHS) as u32;
        let opens = !self.forge.victim().role().is_client();
        let usable =
            self.forge.speaks_multipath() && (opens || self.forge.largest_heard(path).is_some());
        if usable { path } else { 0 }
    }

    /// An address of the forger's, or one that is somebody else's.
    fn address(&self, draw: &mut impl Draw) -> SocketAddr {
        if !self.forge.victim().role().is_client() && draw.happens(70) {
            return client_address(draw.below(4) as u8);
        }
        spoofed(draw.below(4) as u8)
    }

    fn packet(&mut self, draw: &mut impl Draw) -> Forgery {
        let path = if draw.happens(70) { 0 } else { self.path(draw) };
        let kind = match draw.below(40) {
            0 => PacketKind::Handshake,
            1 => PacketKind::Initial,
            _ => PacketKind::OneRtt,
        };
        let mut packet = Forgery::new(kind).on(if kind == PacketKind::OneRtt { path } else { 0 });
        let length = if draw.happens(90) { 4 } else { 1 + draw.below(4) as usize };
        packet = packet.number_length(length);
        packet = packet.numbered(match draw.below(20) {
            0 => Number::Skip(draw.below(1_000)),
            1 => Number::Skip(draw.number() >> 32),
            2 => {
                let next = self.forge.next_number(path);
                Number::Exact(next.saturating_sub(1 + draw.below(200)))
            }
            _ => Number::Next,
        });
        // An update that comes too soon after another closes the connection.
        if draw.below(500) == 0 {
            self.forge.update_keys();
        }
        if draw.happens(self.boldness) {
            packet = match draw.below(3) {
                0 => packet.with_reserved_bits(),
                1 => packet.with_wrong_phase_bit(),
                _ => packet.phase(draw.below(4) as usize),
            };
        }
        let frames = match draw.below(10) {
            0..=5 => 1 + draw.below(3),
            6..=8 => 1 + draw.below(20),
            _ => 200,
        };
        for _ in 0..frames {
            if packet.payload_length() > 1_150 {
                break;
            }
            packet = if draw.happens(self.boldness) {
                forbidden_frame(packet, draw)
            } else {
                self.allowed_frame(packet, draw)
            };
        }
        if packet.payload_length() == 0 {
            packet = packet.frame(Frame::Ping);
        }
        if draw.happens(20) {
            packet = packet.padded(draw.below(1_400) as usize);
        }
        packet
    }

    /// A frame for which an honest victim need not close.
    fn allowed_frame(&self, packet: Forgery, draw: &mut impl Draw) -> Forgery {
        let stream = self.own_stream(draw);
        let direction = any_direction(draw);
        let path = PathId(draw.below(PATHS) as u32);
        let kinds = if self.forge.speaks_multipath() { 25 } else { 18 };
        let frame = match draw.below(kinds) {
            0 => Frame::Ping,
            1 => Frame::Padding { length: 1 + draw.below(40) as usize },
            2..=6 => Frame::Stream(Stream {
                stream,
                offset: Offset(draw.below(3) * draw.below(60_000)),
                fin: false,
                data: &DATA[..draw.below(1_000).min(draw.below(1_000)) as usize],
            }),
            7 => Frame::ResetStream { stream, error_code: 7, final_size: Offset(180_000) },
            8 => Frame::StopSending { stream, error_code: 7 },
            9 => Frame::MaxData { maximum: Bytes(draw.number()) },
            10 => Frame::MaxStreamData { stream, maximum: Offset(draw.number()) },
            11 => Frame::MaxStreams { direction, maximum: draw.below(1_000) },
            12 => Frame::DataBlocked { limit: Bytes(draw.number()) },
            13 => Frame::StreamDataBlocked { stream, limit: Offset(draw.number()) },
            14 => Frame::StreamsBlocked { direction, limit: draw.below(1 << 60) },
            15 => Frame::PathChallenge { data: draw.number().to_be_bytes() },
            16 => Frame::PathResponse { data: draw.number().to_be_bytes() },
            19 => Frame::PathStatusBackup { path, sequence: draw.below(1_000) },
            20 => Frame::PathStatusAvailable { path, sequence: draw.below(1_000) },
            21 => Frame::PathsBlocked { maximum: path },
            22 => Frame::PathCidsBlocked { path, next_sequence: 0 },
            23 if path != PathId::ZERO && draw.happens(20) => {
                Frame::PathAbandon { path, error_code: draw.below(9) }
            }
            17 => {
                let path = if self.forge.speaks_multipath() { path } else { PathId::ZERO };
                let Some(largest) = self.forge.largest_heard(path.0) else { return packet };
                let first = largest.saturating_sub(draw.below(30));
                let named = Some(path.0).filter(|_| path != PathId::ZERO);
                let ecn = draw.happens(30).then(|| EcnCounts {
                    ect0: draw.below(100),
                    ect1: draw.below(3),
                    ce: draw.below(100),
                });
                // A number that was skipped would end the connection.
                let heard = self.forge.heard_numbers(path.0).into_iter();
                let heard: Vec<_> = heard
                    .take_while(|&(_, end)| end >= first)
                    .map(|(start, end)| (start.max(first), end))
                    .collect();
                return packet.ack_with(named, draw.below(1 << 20), &heard, ecn);
            }
            _ => Frame::Crypto {
                // Beyond what TLS has read, so that none of it is read.
                offset: Offset(5_000 + 100 * draw.below(5)),
                data: &DATA[..draw.below(40) as usize],
            },
        };
        packet.frame(frame)
    }

    /// A stream on which the forger may send.
    fn own_stream(&self, draw: &mut impl Draw) -> StreamId {
        // Stream 0 is the control stream of HTTP/2.
        let from = u64::from(self.control.is_some());
        let own = self.forge.victim().role().peer();
        StreamId::new(own, StreamDirection::Bidirectional, from + draw.below(STREAMS))
    }
}

/// An address that answers nobody.
pub(super) fn spoofed(number: u8) -> SocketAddr {
    SocketAddr::from(([10, 9, 9, number], 9_999))
}

fn any_direction(draw: &mut impl Draw) -> StreamDirection {
    [StreamDirection::Bidirectional, StreamDirection::Unidirectional][draw.below(2) as usize]
}

fn any_stream(draw: &mut impl Draw) -> StreamId {
    let initiator = [Role::Client, Role::Server][draw.below(2) as usize];
    StreamId::new(initiator, any_direction(draw), draw.below(STREAMS))
}

/// Any frame with any numbers, or bytes that are none.
fn forbidden_frame(packet: Forgery, draw: &mut impl Draw) -> Forgery {
    let stream = any_stream(draw);
    let far = StreamId(draw.number());
    let direction = any_direction(draw);
    let path = PathId(draw.number() as u32);
    let frame = match draw.below(20) {
        0 => Frame::Stream(Stream {
            stream,
            offset: Offset(draw.number().min((1 << 62) - 1_001)),
            fin: draw.happens(50),
            data: &DATA[..draw.below(1_000) as usize],
        }),
        1 => Frame::Stream(Stream { stream: far, offset: Offset(0), fin: true, data: &[] }),
        2 => Frame::ResetStream { stream, error_code: 1, final_size: Offset(draw.number()) },
        3 => Frame::StopSending { stream: far, error_code: draw.number() },
        4 => Frame::Crypto { offset: Offset(draw.number() >> 1), data: &DATA[..3] },
        5 => Frame::NewToken { token: &DATA[..1 + draw.below(100) as usize] },
        6 => Frame::MaxStreamData { stream: far, maximum: Offset(draw.number()) },
        7 => Frame::MaxStreams { direction, maximum: draw.number() },
        8 | 9 => {
            let sequence = draw.number();
            let mut id = [0; ConnectionId::MAX_LENGTH];
            id[..8].copy_from_slice(&draw.number().to_be_bytes());
            let length = 1 + draw.below(ConnectionId::MAX_LENGTH as u64) as usize;
            Frame::NewConnectionId(NewConnectionId {
                path: draw.happens(70).then(|| PathId(draw.below(PATHS + 4) as u32)),
                sequence: if draw.happens(70) { draw.below(6) } else { sequence },
                retire_prior_to: draw.below(6),
                id: ConnectionId::new(&id[..length]).unwrap_or_default(),
                reset_token: ResetToken::new([sequence as u8; ResetToken::LENGTH]),
            })
        }
        10 => Frame::RetireConnectionId {
            path: draw.happens(70).then(|| PathId(draw.below(PATHS) as u32)),
            sequence: draw.number(),
        },
        11 => Frame::RetireConnectionId {
            path: Some(PathId(draw.below(PATHS) as u32)),
            sequence: draw.below(4),
        },
        12 => Frame::PathAbandon { path, error_code: draw.number() },
        13 => Frame::MaxPathId { maximum: path },
        14 => Frame::PathsBlocked { maximum: path },
        15 => Frame::PathStatusBackup { path, sequence: draw.number() },
        16 => Frame::HandshakeDone,
        17 if draw.happens(30) => Frame::ConnectionClose {
            error_code: draw.number(),
            frame_type: quipu_quic::wire::FrameType(draw.number()),
            reason: &DATA[..draw.below(300) as usize],
        },
        18 => {
            let largest = draw.number();
            let first = largest.saturating_sub(draw.below(1_000));
            return packet.ack_with(None, draw.number(), &[(first, largest)], None);
        }
        _ => {
            let mut bytes = [0; 24];
            for byte in &mut bytes {
                *byte = draw.below(256) as u8;
            }
            return packet.bytes(&bytes[..1 + draw.below(23) as usize]);
        }
    };
    packet.frame(frame)
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
