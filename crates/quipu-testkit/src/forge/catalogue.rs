//! Hostile datagrams, each of a kind that could cost its receiver much: for the bench that measures
//! what they cost.

use std::net::SocketAddr;

use quipu_base::{Bytes, Duration, Offset, PathId, Role, StreamDirection, StreamId};
use quipu_http::h2::ServerConfig;
use quipu_quic::DatagramConfig;
use quipu_quic::wire::frame::return_paths::write_return_paths;
use quipu_quic::wire::frame::{AckFrequency, NewConnectionId, Stream};
use quipu_quic::wire::{ConnectionId, Frame, ResetToken, Writer};

use super::end::{Meter, Setup};
use super::http;
use super::packet::{Datagram, Forgery, Number, datagram, initial, one_rtt, raw};
use super::peer::Forge;

/// Bytes of frames in a packet of the usual size.
const FULL: usize = 1_200;
/// The same in a datagram as large as loopback carries without fragments.
const JUMBO: usize = 16_000;
/// Stream data.
const DATA: [u8; 1_200] = [0x5a; 1_200];

/// A kind of datagram.
pub struct Entry {
    /// What it is.
    pub name: &'static str,
    /// So many are sent on a connection, one after the other.
    pub count: u64,
    /// A victim in the state in which it costs most.
    prepare: fn(Setup) -> Forge,
    next: fn(&mut Forge, u64) -> Datagram,
}

impl Entry {
    const fn new(
        name: &'static str,
        count: u64,
        prepare: fn(Setup) -> Forge,
        next: fn(&mut Forge, u64) -> Datagram,
    ) -> Self {
        Entry { name, count, prepare, next }
    }

    /// A new victim, whose work `meter` measures.
    pub fn victim(&self, meter: Meter) -> Forge {
        (self.prepare)(Setup { meter, ..Setup::default() })
    }

    /// The datagram of a number.
    pub fn next(&self, forge: &mut Forge, nth: u64) -> Datagram {
        (self.next)(forge, nth)
    }
}

/// All kinds.
pub fn catalogue() -> Vec<Entry> {
    let mut all = frames();
    all.extend(acknowledgements());
    all.extend(paths());
    all.extend(strangers());
    all.extend(http2());
    all
}

fn frames() -> Vec<Entry> {
    vec![
        Entry::new("PING", 50, server, |_, _| filled(FULL, |_| Frame::Ping)),
        Entry::new("STREAM, a byte on each of many streams", 20, server, |_, nth| {
            filled(FULL, |of| stream(own(nth * 300 + of), 0, &DATA[..1]))
        }),
        Entry::new("STREAM, a byte on each of many streams, 16 kB", 1, server, |_, _| {
            filled(JUMBO, |of| stream(own(of), 0, &DATA[..1]))
        }),
        Entry::new("STREAM, every other byte", 50, deaf, |_, nth| {
            filled(FULL, |of| stream(own(0), 1 + 2 * (nth * 300 + of), &DATA[..1]))
        }),
        Entry::new("STREAM, every other byte, 16 kB", 4, deaf, |_, nth| {
            filled(JUMBO, |of| stream(own(0), 1 + 2 * (nth * 4_000 + of), &DATA[..1]))
        }),
        Entry::new("STREAM, every other byte, backwards", 50, deaf, |_, nth| {
            filled(FULL, |of| stream(own(0), 100_000 - 2 * (nth * 300 + of), &DATA[..1]))
        }),
        Entry::new("STREAM, a byte in each block", 10, deaf, |_, nth| {
            filled(FULL, |of| stream(own(0), 1 + 4_096 * (nth * 100 + of) % 6_000_000, &DATA[..1]))
        }),
        Entry::new("STREAM, empty", 50, server, |_, _| filled(FULL, |_| stream(own(0), 0, &[]))),
        Entry::new("STREAM, opens 4,000", 1, server, |_, _| {
            one_rtt().frame(stream(own(3_999), 0, &DATA[..1])).into()
        }),
        Entry::new("STREAM, fills a gap before a megabyte", 1, megabyte_behind_a_gap, |_, _| {
            one_rtt().frame(stream(own(0), 0, &DATA[..1])).into()
        }),
        Entry::new("STREAM, RESET_STREAM and STOP_SENDING", 20, server, |_, nth| {
            let mut packet = one_rtt();
            let mut of = 0;
            while packet.payload_length() < FULL - 20 {
                let stream = own(nth * 100 + of);
                of += 1;
                packet = packet.frames([
                    Frame::Stream(Stream { stream, offset: Offset(0), fin: false, data: &[7] }),
                    Frame::ResetStream { stream, error_code: 0, final_size: Offset(1) },
                    Frame::StopSending { stream, error_code: 0 },
                ]);
            }
            packet.into()
        }),
        Entry::new("STOP_SENDING of streams with data", 1, many_responses, |_, _| {
            filled(FULL, |of| Frame::StopSending { stream: own(of), error_code: 0 })
        }),
        Entry::new("MAX_STREAM_DATA of many streams", 10, many_responses, |_, nth| {
            filled(FULL, |of| Frame::MaxStreamData {
                stream: own(of),
                maximum: Offset((8 << 20) + nth),
            })
        }),
        Entry::new("STREAM_DATA_BLOCKED of many streams", 20, server, |_, nth| {
            filled(FULL, |of| Frame::StreamDataBlocked {
                stream: own(nth * 100 + of),
                limit: Offset(0),
            })
        }),
        Entry::new("MAX_DATA", 50, server, |_, nth| {
            filled(FULL, |of| Frame::MaxData { maximum: Bytes((1 << 30) + nth * 1_000 + of) })
        }),
        Entry::new("MAX_STREAMS", 50, server, |_, nth| {
            let direction = StreamDirection::Bidirectional;
            filled(FULL, |of| Frame::MaxStreams { direction, maximum: 100 + nth * 1_000 + of })
        }),
        Entry::new("CRYPTO, every other byte", 10, server, |_, nth| {
            filled(FULL, |of| Frame::Crypto {
                offset: Offset(1 + 2 * (nth * 300 + of)),
                data: &DATA[..1],
            })
        }),
        Entry::new("DATAGRAM, empty", 20, unread_datagrams, |_, _| {
            filled(FULL, |_| EMPTY_DATAGRAM)
        }),
        Entry::new("DATAGRAM, empty, 16 kB", 2, unread_datagrams, |_, _| {
            filled(JUMBO, |_| EMPTY_DATAGRAM)
        }),
        Entry::new("DATAGRAM, a byte", 20, unread_datagrams, |_, _| {
            filled(FULL, |_| Frame::Datagram { data: &DATA[..1], has_length: true })
        }),
        Entry::new("key updates", 20, server, |forge, _| {
            forge.acknowledge(0);
            forge.update_keys();
            one_rtt().frame(Frame::Ping).into()
        }),
        Entry::new("a packet that came before", 50, server, |forge, _| {
            let number = forge.next_number(0).saturating_sub(1);
            one_rtt().numbered(Number::Exact(number)).frame(Frame::Ping).padded(1_250).into()
        }),
        Entry::new("a packet that does not open", 50, server, |forge, nth| {
            let Some((_, mut bytes)) =
                forge.seal(&one_rtt().frame(Frame::Ping).padded(1_250).into())
            else {
                return raw(&[]);
            };
            let at = bytes.len() - 9;
            bytes[at] ^= 1 + nth as u8;
            raw(&bytes)
        }),
        Entry::new("twenty packets of spaces that are gone", 20, server, |_, _| {
            datagram((0..20).map(|_| initial().frame(Frame::Ping).padded(60)))
        }),
    ]
}

fn acknowledgements() -> Vec<Entry> {
    vec![
        Entry::new("ACK of 300 packets in flight", 1, wide_open, |forge, _| {
            let largest = forge.largest_heard(0).unwrap_or_default();
            one_rtt().ack(Some(0), &[(0, largest)]).into()
        }),
        Entry::new("ACK of every other packet in flight", 1, wide_open, |forge, _| {
            let largest = forge.largest_heard(0).unwrap_or_default();
            let ranges: Vec<_> = (0..=largest / 2).rev().map(|nth| (2 * nth, 2 * nth)).collect();
            one_rtt().ack(Some(0), &ranges[..ranges.len().min(500)]).into()
        }),
        Entry::new("ACK of the same, a hundred times", 20, wide_open, |_, _| {
            let mut packet = one_rtt();
            for _ in 0..100 {
                packet = packet.ack(Some(0), &[(5, 5), (3, 3), (1, 1)]);
            }
            packet.into()
        }),
        Entry::new("ACK_FREQUENCY", 50, server, |_, nth| {
            filled(FULL, |of| {
                Frame::AckFrequency(AckFrequency {
                    sequence: nth * 1_000 + of,
                    threshold: of,
                    max_delay: 1_000 + of,
                    reordering: of % 7,
                })
            })
        }),
        Entry::new("IMMEDIATE_ACK", 50, server, |_, _| filled(FULL, |_| Frame::ImmediateAck)),
        Entry::new("ACK_RETURN_PATHS of 500 pairs", 20, two_paths, |_, nth| {
            return_paths(one_rtt(), nth, 500).into()
        }),
        Entry::new("ACK_RETURN_PATHS of one pair", 20, two_paths, |_, nth| {
            let mut packet = one_rtt();
            let mut of = 0;
            while packet.payload_length() + 40 < FULL {
                packet = return_paths(packet, nth * 1_000 + of, 1);
                of += 1;
            }
            packet.into()
        }),
        Entry::new("packet numbers with gaps", 500, server, |_, _| {
            one_rtt().numbered(Number::Skip(1)).frame(Frame::Ping).into()
        }),
    ]
}

fn paths() -> Vec<Entry> {
    vec![
        Entry::new("NEW_CONNECTION_ID that retires", 20, server, |_, nth| {
            filled(FULL, |of| new_id(nth * 20 + of + 1))
        }),
        Entry::new("RETIRE_CONNECTION_ID", 20, server, |forge, _| {
            let issued = forge.issued();
            // The last of each path stays: packets go there.
            let retired = issued.iter().rev().filter(|id| {
                issued.iter().any(|other| other.path == id.path && other.sequence > id.sequence)
            });
            let frames = retired
                .map(|id| Frame::RetireConnectionId { path: Some(id.path), sequence: id.sequence });
            one_rtt().frames(frames.take(FULL / 8)).into()
        }),
        Entry::new("PATH_CHALLENGE", 20, server, |_, nth| {
            filled(FULL, |of| Frame::PathChallenge { data: (nth << 16 | of).to_be_bytes() })
        }),
        Entry::new("PATH_RESPONSE", 20, server, |_, nth| {
            filled(FULL, |of| Frame::PathResponse { data: (nth << 16 | of).to_be_bytes() })
        }),
        Entry::new("PATH_STATUS", 20, server, |_, nth| {
            filled(FULL, |of| Frame::PathStatusBackup {
                path: PathId((of % 8) as u32),
                sequence: nth * 1_000 + of,
            })
        }),
        Entry::new("PATH_ABANDON", 20, server, |_, _| {
            filled(FULL, |of| Frame::PathAbandon {
                path: PathId(1 + (of % 7) as u32),
                error_code: 0,
            })
        }),
        Entry::new("MAX_PATH_ID", 20, server, |_, nth| {
            filled(FULL, |of| Frame::MaxPathId { maximum: PathId((nth * 300 + of) as u32) })
        }),
        Entry::new("PATHS_BLOCKED", 20, server, |_, _| {
            filled(FULL, |_| Frame::PathsBlocked { maximum: PathId(7) })
        }),
        Entry::new("packets from ever new addresses", 50, server, |_, nth| {
            let address = SocketAddr::from(([10, 8, (nth >> 8) as u8, nth as u8], 9_999));
            one_rtt().frame(Frame::Ping).padded(FULL).sent_from(address)
        }),
        Entry::new("a packet that opens a path", 1, server, |_, _| {
            one_rtt().on(1).frame(Frame::Ping).sent_from(crate::client_address(1))
        }),
    ]
}

fn strangers() -> Vec<Entry> {
    vec![
        Entry::new("Initial with a ClientHello", 50, Forge::stranger_of, |forge, nth| {
            let hello = Setup::default().client_hello(id(9));
            forge.first_packet(id(1 << 40 | nth), id(9), &hello).into()
        }),
        Entry::new("Initial with a PING", 50, Forge::stranger_of, |forge, nth| {
            forge.first_packet(id(1 << 41 | nth), id(9), &[]).frame(Frame::Ping).into()
        }),
        Entry::new("Initial with pieces of a ClientHello", 50, Forge::stranger_of, |forge, nth| {
            let mut packet = forge.first_packet(id(1 << 42 | nth), id(9), &[]);
            let mut of = 0;
            while packet.payload_length() < 1_100 {
                packet = packet.frame(Frame::Crypto { offset: Offset(1 + 2 * of), data: &[1] });
                of += 1;
            }
            packet.into()
        }),
        Entry::new("Initial with a token that is none", 50, asking_for_tokens, |forge, nth| {
            let hello = Setup::default().client_hello(id(9));
            let packet = forge.first_packet(id(1 << 44 | nth), id(9), &hello);
            packet.with_token(&DATA[..80]).into()
        }),
        Entry::new("Initial that does not open", 50, Forge::stranger_of, |forge, nth| {
            let packet = forge.first_packet(id(1 << 43 | nth), id(9), &DATA[..300]);
            let Some((_, mut bytes)) = forge.seal(&packet.into()) else { return raw(&[]) };
            bytes[600] ^= 1;
            raw(&bytes)
        }),
        Entry::new("a version that nobody knows", 50, Forge::stranger_of, |_, nth| {
            let mut bytes = vec![0xc3, 0x1a, 0x2a, 0x3a, 0x4a, 8];
            bytes.extend(nth.to_be_bytes());
            bytes.push(0);
            bytes.resize(1_200, 0);
            raw(&bytes)
        }),
        Entry::new("a short header for nobody", 50, Forge::stranger_of, |_, nth| {
            let mut bytes = vec![0x40];
            bytes.extend(nth.to_be_bytes());
            bytes.resize(1_200, 0x55);
            raw(&bytes)
        }),
    ]
}

fn http2() -> Vec<Entry> {
    vec![
        Entry::new("HTTP/2 requests", 10, web, |_, nth| {
            control(nth, 80, |of| frame(1, 5, 4 * (1 + of as u32), &REQUEST))
        }),
        Entry::new("HTTP/2 PRIORITY of ever new nodes", 20, web, |_, nth| {
            control(nth, 80, |of| {
                let node = 1 + 2 * of as u32;
                let mut payload = node.saturating_sub(2).to_be_bytes().to_vec();
                payload.push(of as u8);
                frame(2, 0, node, &payload)
            })
        }),
        Entry::new("HTTP/2 PRIORITY that turns the tree", 20, web, |_, nth| {
            control(nth, 80, |of| {
                let node = 1 + 2 * (of % 60) as u32;
                let parent = 1 + 2 * ((of * 7 + 1) % 60) as u32;
                let parent = if parent == node { 0 } else { parent };
                let mut payload = (parent | 1 << 31).to_be_bytes().to_vec();
                payload.push(of as u8);
                frame(2, 0, node, &payload)
            })
        }),
        Entry::new("HTTP/2 unknown frames", 20, web, |_, nth| {
            control(nth, 120, |_| frame(0xbe, 0, 0, &[]))
        }),
        Entry::new("HTTP/2 header block of literals", 20, web, |_, nth| {
            control(nth, 1, |of| {
                let mut block = REQUEST.to_vec();
                for at in 0..200u8 {
                    block.extend([0x40, 1, b'a' + at % 26, 1, at]);
                }
                frame(1, 5, 4 * (1 + of as u32), &block)
            })
        }),
        Entry::new("HTTP/2 header block of 64 kB that is a bomb", 1, bomb, |_, _| {
            let stream = Stream {
                stream: own(0),
                offset: Offset(9 + BOMB_LENGTH),
                fin: false,
                data: &[0, 0, 0, 9, 4, 0, 0, 0, 8],
            };
            one_rtt().frame(Frame::Stream(stream)).into()
        }),
    ]
}

/// `:method GET`, `:scheme https`, `:path /` and `:authority a`.
const REQUEST: [u8; 6] = [0x82, 0x87, 0x84, 0x41, 0x01, b'a'];

/// Bytes of the control stream that the bomb takes before its last frame.
const BOMB_LENGTH: u64 = 4 * (9 + 16_000) + 4_023;

fn server(setup: Setup) -> Forge {
    Forge::against(Role::Server, &setup)
}

/// A server whose application reads nothing.
fn deaf(setup: Setup) -> Forge {
    server(Setup { reads: false, ..setup })
}

const EMPTY_DATAGRAM: Frame<'_> = Frame::Datagram { data: &[], has_length: true };

/// As many datagrams wait to be read as may.
fn unread_datagrams(mut setup: Setup) -> Forge {
    setup.server.datagrams = Some(DatagramConfig::default());
    let mut forge = deaf(setup);
    for _ in 0..60 {
        forge.send(filled(FULL, |_| EMPTY_DATAGRAM));
    }
    forge
}

fn two_paths(setup: Setup) -> Forge {
    let mut forge = server(setup).answering();
    forge.send(one_rtt().on(1).frame(Frame::Ping).sent_from(crate::client_address(1)));
    forge.wait(Duration::from_millis(100));
    forge
}

/// A server that asks each client for a token.
fn asking_for_tokens(setup: Setup) -> Forge {
    Forge::stranger(&Setup { retries: true, ..setup })
}

fn web(setup: Setup) -> Forge {
    let mut forge = server(setup);
    forge.victim_mut().serve(http::server(ServerConfig::default(), 1_000));
    forge.say([stream(own(0), 0, &[0, 0, 0, 4, 0, 0, 0, 0, 0])]);
    forge
}

/// A name of four thousand bytes is in the table, and all of a block of literals that name it but its
/// end has come.
fn bomb(setup: Setup) -> Forge {
    let mut forge = web(setup);
    let left = 4_000 - 127;
    let mut block = vec![0x40, 0x7f, (left % 128) as u8 | 0x80, (left / 128) as u8];
    block.extend([b'x'; 4_000]);
    block.push(0);
    block.resize(4_005, 0x82);
    let mut bytes = frame(1, 5, 4, &block[..4_005]);
    bytes.extend(frame(0xbe, 0, 0, &[]));
    let literals = [0x0f, 62 - 15, 0].repeat(16_000 / 3 + 1);
    for nth in 0..4u32 {
        let kind = if nth == 0 { 1 } else { 9 };
        let flags = u8::from(nth == 0);
        bytes.extend(frame(kind, flags, 8, &literals[..16_000 - 16_000 % 3]));
    }
    bytes.resize(BOMB_LENGTH as usize, 0);
    let mut at = 9;
    for piece in bytes.chunks(1_150) {
        forge.say([stream(own(0), at, piece)]);
        at += piece.len() as u64;
    }
    forge
}

/// All of a megabyte came but its first byte.
fn megabyte_behind_a_gap(setup: Setup) -> Forge {
    let mut forge = server(setup);
    for nth in 0..1_000 {
        forge.say([stream(own(0), 1 + 1_000 * nth, &DATA[..1_000])]);
    }
    forge
}

/// Streams on which responses wait.
fn many_responses(setup: Setup) -> Forge {
    let mut forge = server(setup);
    for nth in 0..500 {
        forge.say([stream(own(nth), 0, &DATA[..1])]);
        forge.act(|connection, now| {
            let _ = connection.write(now, own(nth), vec![7; 10_000].into());
        });
    }
    forge
}

/// A server with hundreds of packets in flight.
fn wide_open(setup: Setup) -> Forge {
    let mut forge = server(setup);
    forge.say([stream(own(0), 0, &DATA[..1])]);
    forge.act(|connection, now| {
        let _ = connection.write(now, own(0), vec![7; 3_000_000].into());
    });
    for _ in 0..60 {
        forge.acknowledge(0);
        forge.wait(Duration::from_millis(10));
    }
    forge
}

impl Forge {
    fn stranger_of(setup: Setup) -> Self {
        Forge::stranger(&Setup { max_connections: 100_000, ..setup })
    }
}

/// A stream that clients open.
fn own(index: u64) -> StreamId {
    StreamId::new(Role::Client, StreamDirection::Bidirectional, index)
}

fn stream(stream: StreamId, offset: u64, data: &[u8]) -> Frame<'_> {
    Frame::Stream(Stream { stream, offset: Offset(offset), fin: false, data })
}

fn id(number: u64) -> ConnectionId {
    ConnectionId::new(&number.to_be_bytes()).unwrap_or_default()
}

fn new_id(sequence: u64) -> Frame<'static> {
    Frame::NewConnectionId(NewConnectionId {
        path: Some(PathId::ZERO),
        sequence,
        retire_prior_to: sequence,
        id: id(1 << 50 | sequence),
        reset_token: ResetToken::new([sequence as u8; ResetToken::LENGTH]),
    })
}

/// The packet with advice to return acknowledgements of two paths crosswise, `pairs` times.
fn return_paths(packet: Forgery, sequence: u64, pairs: usize) -> Forgery {
    let crosswise = [(PathId(0), PathId(1)), (PathId(1), PathId(0))];
    let pairs: Vec<_> = crosswise.into_iter().cycle().take(pairs).collect();
    let mut buffer = [0; FULL];
    let mut writer = Writer::new(&mut buffer);
    write_return_paths(&mut writer, sequence, &pairs).expect("a pair takes two bytes");
    packet.bytes(writer.written())
}

/// A packet with so many bytes of frames; `make` makes each from its number in the packet.
fn filled<'a>(size: usize, make: impl Fn(u64) -> Frame<'a>) -> Datagram {
    let mut packet: Forgery = one_rtt();
    let mut of = 0;
    while packet.payload_length() + 40 < size {
        packet = packet.frame(make(of));
        of += 1;
    }
    packet.into()
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    out.extend([kind, flags]);
    out.extend(stream.to_be_bytes());
    out.extend(payload);
    out
}

/// `count` frames on the control stream, in the datagram of number `nth`; each datagram has as many,
/// and they are as long.
fn control(nth: u64, count: u64, make: impl Fn(u64) -> Vec<u8>) -> Datagram {
    let bytes: Vec<u8> = (0..count).flat_map(|of| make(nth * count + of)).collect();
    let offset = 9 + nth * bytes.len() as u64;
    one_rtt().frame(stream(own(0), offset, &bytes)).into()
}
