//! What a forger sends of the extensions that a victim may speak: datagrams, requests for acknowledgements,
//! advice about return paths, and packets with the keys of 0-RTT.

use quipu_base::{Bytes, Duration, Offset, PathId, Role, StreamDirection, StreamId};
use quipu_quic::wire::frame::return_paths::write_return_paths;
use quipu_quic::wire::frame::{AckFrequency, Stream};
use quipu_quic::wire::{Frame, PacketKind, Writer};
use quipu_quic::{AckFrequencyConfig, AckRequest, DatagramConfig, TransportConfig};

use super::draw::{Draw, PATHS};
use super::packet::{Forgery, Number};

/// Data, of more than a packet of the usual size.
const DATA: [u8; 4_000] = [0x44; 4_000];
/// A delay of acknowledgements that is asked for is shorter, in microseconds: 2^14 milliseconds.
/// <https://datatracker.ietf.org/doc/html/draft-ietf-quic-ack-frequency#section-4>
const MAX_DELAY: u64 = (1 << 14) * 1_000;

/// What a victim takes of the extensions.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Extensions {
    /// The largest DATAGRAM frame that it takes, with its type and length; 0 if it takes none.
    datagram: u64,
    /// The least delay of acknowledgements that it may be asked for, if it takes such requests.
    least_delay: Option<Duration>,
    return_paths: bool,
}

impl Extensions {
    /// What a victim of `transport` takes.
    pub(super) fn of(transport: &TransportConfig) -> Self {
        Extensions {
            datagram: transport.datagrams.map_or(0, |datagrams| datagrams.max_frame.into()),
            least_delay: transport.ack_frequency.map(|config| config.least_delay),
            return_paths: transport.ack_return_paths && transport.max_paths > 1,
        }
    }

    /// Switches extensions of both ends on or off.
    pub(super) fn draw_into(transport: &mut TransportConfig, draw: &mut impl Draw) {
        transport.datagrams = draw.happens(70).then(|| DatagramConfig {
            max_frame: [65_535, 65_535, 1_000, 1][draw.below(4) as usize],
            send_queue: Bytes([1 << 20, 10_000, 0][draw.below(3) as usize]),
            receive_queue: Bytes([1 << 20, 10_000, 0][draw.below(3) as usize]),
            packets_in_row: 1 + draw.below(4) as u8,
        });
        transport.ack_frequency = draw.happens(80).then(|| AckFrequencyConfig {
            request: draw.happens(30).then(AckRequest::default),
            ..AckFrequencyConfig::default()
        });
        transport.ack_return_paths = draw.happens(80);
    }

    /// A frame for which an honest victim need not close, if it takes any.
    pub(super) fn allowed_frame(&self, packet: Forgery, draw: &mut impl Draw) -> Forgery {
        let frame = match draw.below(8) {
            0 if self.least_delay.is_some() => Frame::ImmediateAck,
            1 | 2 => {
                let Some(least) = self.least_delay else { return packet };
                let least = least.as_micros();
                let max_delay = match draw.below(3) {
                    0 => least,
                    1 => MAX_DELAY - 1,
                    _ => least + draw.below(1 << 17),
                };
                let sequence = if draw.happens(90) { draw.below(200) } else { draw.number() };
                Frame::AckFrequency(AckFrequency {
                    sequence,
                    threshold: draw.number(),
                    max_delay,
                    reordering: draw.number(),
                })
            }
            3 if self.return_paths => {
                let sequence = if draw.happens(90) { draw.below(200) } else { draw.number() };
                return return_paths(packet, sequence, draw, |draw| draw.below(PATHS) as u32);
            }
            _ => return self.datagram(packet, draw),
        };
        packet.frame(frame)
    }

    /// A datagram that the victim takes, if it takes any.
    fn datagram(&self, packet: Forgery, draw: &mut impl Draw) -> Forgery {
        // Type, and a length of two bytes.
        let Some(most) = self.datagram.checked_sub(3) else { return packet };
        let length = if draw.happens(30) { 0 } else { draw.below(room(&packet).min(most) + 1) };
        packet.frame(Frame::Datagram { data: &DATA[..length as usize], has_length: true })
    }

    /// The packet with a datagram behind all else, which has no length of its own.
    pub(super) fn ended_by_datagram(&self, packet: Forgery, draw: &mut impl Draw) -> Forgery {
        let Some(most) = self.datagram.checked_sub(1) else { return packet };
        let length = draw.below(room(&packet).min(most) + 1);
        packet.frame(Frame::Datagram { data: &DATA[..length as usize], has_length: false })
    }

    /// A frame of an extension with any numbers, whether the victim takes it or not.
    pub(super) fn forbidden_frame(&self, packet: Forgery, draw: &mut impl Draw) -> Forgery {
        let frame = match draw.below(6) {
            0 => Frame::ImmediateAck,
            1 => Frame::AckFrequency(AckFrequency {
                sequence: draw.number(),
                threshold: draw.number(),
                max_delay: draw.number(),
                reordering: draw.number(),
            }),
            2 => {
                let sequence = draw.number();
                return return_paths(packet, sequence, draw, |draw| draw.number() as u32);
            }
            3 => {
                // More pairs than there are, or path IDs that are none.
                let mut bytes = vec![0xa0, 0x71, 0x75, 0x01, draw.below(64) as u8];
                let length = draw.below(20);
                bytes.extend((0..length).map(|_| draw.below(256) as u8));
                return packet.bytes(&bytes);
            }
            kind => {
                let length = match draw.below(3) {
                    0 => draw.below(DATA.len() as u64 + 1),
                    1 => (self.datagram + draw.below(3)).min(DATA.len() as u64),
                    _ => draw.below(4),
                };
                Frame::Datagram { data: &DATA[..length as usize], has_length: kind > 4 }
            }
        };
        packet.frame(frame)
    }

    /// A packet with the keys of 0-RTT from the end of `role`, whose number is `next` or a little above.
    /// `boldness`: how often in percent a frame is one that does not belong there.
    pub(super) fn early_packet(
        &self,
        role: Role,
        next: u64,
        boldness: u64,
        draw: &mut impl Draw,
    ) -> Forgery {
        let number = Number::Exact(next + draw.below(50));
        let mut packet = Forgery::new(PacketKind::ZeroRtt).numbered(number);
        let frames = 1 + draw.below(10);
        for _ in 0..frames {
            let stream = StreamId::new(role, StreamDirection::Bidirectional, draw.below(24));
            packet = match draw.below(4) {
                _ if draw.happens(boldness) => match draw.below(5) {
                    0 => packet.frame(Frame::HandshakeDone),
                    1 => packet.frame(Frame::PathResponse { data: [1; 8] }),
                    2 => packet.ack(None, &[(0, draw.below(5))]),
                    3 => packet.frame(Frame::Crypto { offset: Offset(0), data: &DATA[..9] }),
                    _ => self.forbidden_frame(packet, draw),
                },
                0 => packet.frame(Frame::Stream(Stream {
                    stream,
                    offset: Offset(draw.below(2_000)),
                    fin: false,
                    data: &DATA[..draw.below(200) as usize],
                })),
                1 => packet.frame(Frame::StopSending { stream, error_code: 7 }),
                2 => packet.frame(Frame::Ping),
                _ => self.datagram(packet, draw),
            };
        }
        packet
    }
}

/// Bytes that the packet has room for, if it is to have the usual size.
fn room(packet: &Forgery) -> u64 {
    1_150_u64.saturating_sub(packet.payload_length() as u64)
}

fn return_paths<D: Draw>(
    packet: Forgery,
    sequence: u64,
    draw: &mut D,
    path: impl Fn(&mut D) -> u32,
) -> Forgery {
    let pairs: Vec<_> =
        (0..draw.below(12)).map(|_| (PathId(path(draw)), PathId(path(draw)))).collect();
    let mut buffer = [0; 256];
    let mut writer = Writer::new(&mut buffer);
    match write_return_paths(&mut writer, sequence, &pairs) {
        Ok(()) => packet.bytes(writer.written()),
        Err(_) => packet,
    }
}
