//! Random packets of an end whose keys somebody has.

use quipu_base::{Bytes, Offset, PathId, Role, StreamDirection, StreamId};
use quipu_quic::wire::frame::{EcnCounts, NewConnectionId, Stream};
use quipu_quic::wire::{ConnectionId, Frame, PacketKind, ResetToken};

use super::book::Book;
use super::draw::{Draw, PATHS};
use super::extensions::Extensions;
use super::packet::{Forgery, Number};

/// Streams of each kind that it speaks of.
const STREAMS: u64 = 24;
/// The most bytes of stream data in a frame.
pub(super) const DATA: [u8; 1_200] = [0x5a; 1_200];

/// Writes packets as one end of a connection could, from what is known of the connection.
pub(crate) struct Author<'a> {
    book: &'a mut Book,
    /// How often it does in percent what the other end must close for.
    boldness: u64,
    /// It sends on no stream before that.
    first_stream: u64,
    /// The extensions whose frames it sends too.
    extensions: Option<Extensions>,
}

impl<'a> Author<'a> {
    /// Writes as the end of `book`. `boldness`: how often, in percent, a frame is one for which the
    /// other end must close.
    pub(crate) fn new(book: &'a mut Book, boldness: u64) -> Self {
        Author { book, boldness, first_stream: 0, extensions: None }
    }

    /// The same, which sends nothing on the first stream.
    pub(super) fn sparing_first_stream(self) -> Self {
        Author { first_stream: 1, ..self }
    }

    /// The same, which sends frames of these extensions too.
    pub(super) fn with_extensions(self, extensions: Option<Extensions>) -> Self {
        Author { extensions, ..self }
    }

    /// A path that the forger may use: only clients open paths.
    fn path(&self, draw: &mut impl Draw) -> u32 {
        let path = draw.below(PATHS) as u32;
        let opens = self.book.role().is_client();
        let usable = self.book.speaks_multipath() && (opens || self.largest_heard(path).is_some());
        if usable { path } else { 0 }
    }

    /// A packet of any kind of frames.
    pub(crate) fn packet(&mut self, draw: &mut impl Draw) -> Forgery {
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
                let next = self.book.next_number(PacketKind::OneRtt, PathId(path));
                Number::Exact(next.saturating_sub(1 + draw.below(200)))
            }
            _ => Number::Next,
        });
        // An update that comes too soon after another closes the connection.
        if draw.below(500) == 0 {
            self.book.update_keys();
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
            packet = if let Some(extensions) = self.extensions
                && draw.happens(20)
            {
                if draw.happens(self.boldness) {
                    extensions.forbidden_frame(packet, draw)
                } else {
                    extensions.allowed_frame(packet, draw)
                }
            } else if draw.happens(self.boldness) {
                forbidden_frame(packet, draw)
            } else {
                self.allowed_frame(packet, draw)
            };
        }
        if packet.payload_length() == 0 {
            packet = packet.frame(Frame::Ping);
        }
        if let Some(extensions) = self.extensions
            && draw.happens(5)
        {
            return extensions.ended_by_datagram(packet, draw);
        }
        if draw.happens(20) {
            packet = packet.padded(draw.below(1_400) as usize);
        }
        packet
    }

    /// A packet with the keys of 0-RTT.
    pub(super) fn early_packet(&self, draw: &mut impl Draw) -> Forgery {
        let next = self.book.next_number(PacketKind::OneRtt, PathId::ZERO);
        let next = next.max(self.book.next_number(PacketKind::ZeroRtt, PathId::ZERO));
        let extensions = self.extensions.unwrap_or_default();
        extensions.early_packet(self.book.role(), next, self.boldness, draw)
    }

    /// A frame for which an honest victim need not close.
    fn allowed_frame(&self, packet: Forgery, draw: &mut impl Draw) -> Forgery {
        let stream = self.own_stream(draw);
        let direction = any_direction(draw);
        let path = PathId(draw.below(PATHS) as u32);
        let kinds = if self.book.speaks_multipath() { 25 } else { 18 };
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
                let path = if self.book.speaks_multipath() { path } else { PathId::ZERO };
                let Some(largest) = self.largest_heard(path.0) else { return packet };
                let first = largest.saturating_sub(draw.below(30));
                let named = Some(path.0).filter(|_| path != PathId::ZERO);
                let ecn = draw.happens(30).then(|| EcnCounts {
                    ect0: draw.below(100),
                    ect1: draw.below(3),
                    ce: draw.below(100),
                });
                // A number that was skipped would end the connection.
                let heard = self.book.heard_numbers(PacketKind::OneRtt, path).into_iter();
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
        let number = self.first_stream + draw.below(STREAMS);
        StreamId::new(self.book.role(), StreamDirection::Bidirectional, number)
    }

    fn largest_heard(&self, path: u32) -> Option<u64> {
        self.book.largest_heard(PacketKind::OneRtt, PathId(path))
    }
}

fn any_direction(draw: &mut impl Draw) -> StreamDirection {
    [StreamDirection::Bidirectional, StreamDirection::Unidirectional][draw.below(2) as usize]
}

pub(super) fn any_stream(draw: &mut impl Draw) -> StreamId {
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
