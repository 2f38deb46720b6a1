//! What holds whatever happens.

use proptest::prelude::*;
use quipu_base::PacketNumber;

use super::events::peers;
use super::*;
use crate::congestion::{AckedPacket, LostPacket};

#[derive(Clone, Debug)]
enum Step {
    Sent { in_flight: u64, limited: bool },
    Acked(Acked),
    Lost { packets: u64, in_flight: u64, limited: bool, persistent: bool },
    Marked(u64),
    Resized(u64),
    Change(PathChange),
    Wait(u64),
}

#[derive(Clone, Debug)]
struct Acked {
    bytes: u64,
    in_flight: u64,
    rtt: Option<u64>,
    rate: Option<u64>,
    lost: u64,
    limited: bool,
    /// True if its newest packet left in this round trip.
    new_round: bool,
}

/// Mostly sensible, sometimes absurd.
fn amount(usual: u64) -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0..usual, 1 => Just(0), 1 => Just(u64::MAX), 1 => any::<u64>()]
}

fn acked() -> impl Strategy<Value = Acked> {
    let flags = (any::<bool>(), any::<bool>());
    let rtt = proptest::option::of(amount(200_000_000));
    let rate = proptest::option::of(amount(1_000_000_000));
    (amount(100_000), amount(1_000_000), rtt, rate, amount(50_000), flags).prop_map(
        |(bytes, in_flight, rtt, rate, lost, (limited, new_round))| Acked {
            bytes,
            in_flight,
            rtt,
            rate,
            lost,
            limited,
            new_round,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let lost = (0u64..20, amount(1_000_000), any::<bool>(), proptest::bool::weighted(0.1));
    prop_oneof![
        4 => (amount(1_000_000), any::<bool>())
            .prop_map(|(in_flight, limited)| Step::Sent { in_flight, limited }),
        12 => acked().prop_map(Step::Acked),
        3 => lost.prop_map(|(packets, in_flight, limited, persistent)| Step::Lost {
            packets, in_flight, limited, persistent,
        }),
        1 => amount(100).prop_map(Step::Marked),
        1 => (500u64..9_000).prop_map(Step::Resized),
        1 => Just(Step::Change(PathChange::ReturnRoute)),
        1 => Just(Step::Change(PathChange::Pto)),
        4 => amount(3_000_000_000).prop_map(Step::Wait),
    ]
}

/// A controller, and counts as the engine keeps them.
struct World {
    bbr: Bbr3,
    now: Instant,
    packet: Bytes,
    delivered: Bytes,
    prior_delivered: Bytes,
    lost: Bytes,
    next_pn: u64,
}

impl World {
    fn apply(&mut self, step: &Step) {
        let now = self.now;
        match *step {
            Step::Sent { in_flight, limited } => {
                let (bytes, in_flight) = (self.packet, Bytes(in_flight) + self.packet);
                self.bbr.on_sent(&SentInfo { now, bytes, in_flight, limited }, &peers());
            }
            Step::Acked(ref acked) => self.ack(acked),
            Step::Lost { packets, in_flight, limited, persistent } => {
                let lost_at_send = self.lost;
                let packets: Vec<_> = (0..packets)
                    .map(|index| LostPacket {
                        pn: PacketNumber(self.next_pn + 2 * index),
                        sent_at: now - ms(1),
                        bytes: self.packet,
                        in_flight_at_send: Bytes(in_flight),
                        lost_at_send,
                        limited,
                    })
                    .collect();
                self.next_pn += 50;
                let bytes = packets.iter().map(|packet| packet.bytes).sum();
                self.lost += bytes;
                let info = LostInfo {
                    now,
                    packets: &packets,
                    bytes,
                    lost: self.lost,
                    newest_sent_at: now - ms(1),
                    in_flight: Bytes(in_flight),
                    persistent,
                };
                self.bbr.on_lost(&info, &peers());
            }
            Step::Marked(marks) => {
                let change = PathChange::EcnCongestion { marks, sent_at: now, now };
                self.bbr.on_change(change, &peers());
            }
            Step::Resized(size) => {
                self.packet = Bytes(size);
                self.bbr.on_change(PathChange::DatagramSize(self.packet), &peers());
            }
            Step::Change(change) => self.bbr.on_change(change, &peers()),
            Step::Wait(nanos) => self.now += Duration::from_nanos(nanos),
        }
    }

    fn ack(&mut self, acked: &Acked) {
        if acked.new_round {
            self.prior_delivered = self.delivered;
        }
        self.delivered += Bytes(acked.bytes);
        let rtt = acked.rtt.map(Duration::from_nanos);
        let rate = acked.rate.map(|bits| RateSample {
            rate: Rate::from_bits_per_sec(bits),
            delivered: self.delivered - self.prior_delivered,
            interval: rtt.unwrap_or(ms(50)),
            prior_delivered: self.prior_delivered,
            in_flight_at_send: Bytes(acked.in_flight),
            lost: Bytes(acked.lost),
            limited: acked.limited,
        });
        let info = AckedInfo {
            now: self.now,
            packets: &[AckedPacket {
                sent_at: self.now - rtt.unwrap_or(ms(50)),
                bytes: Bytes(acked.bytes),
            }],
            prior_in_flight: Bytes(acked.in_flight),
            in_flight: Bytes(acked.in_flight),
            limited: acked.limited,
            srtt: rtt,
            min_rtt: rtt,
            latest_rtt: rtt,
            rate,
            delivered: self.delivered,
            lost: self.lost,
        };
        self.bbr.on_acked(&info, &peers());
    }
}

proptest! {
    #[test]
    fn window_and_pace_stay_sensible_under_any_events(
        steps in prop::collection::vec(step(), 1..200),
        seed in any::<u64>(),
    ) {
        let mut world = World {
            bbr: bbr3(seed),
            now: Instant::ZERO,
            packet: SIZE,
            delivered: Bytes::ZERO,
            prior_delivered: Bytes::ZERO,
            lost: Bytes::ZERO,
            next_pn: 0,
        };
        // The largest window that sending or another datagram size gave it.
        let mut largest = world.bbr.cwnd;
        for step in &steps {
            world.apply(step);
            let published = world.bbr.published();
            prop_assert!(published.cwnd >= world.packet.saturating_mul(4), "{step:?}");
            let pace = published.pacing_rate.unwrap();
            prop_assert!(pace >= Rate::from_bytes_per_sec(500), "{step:?}: {pace}");
            match step {
                Step::Acked(acked) if !acked.limited => largest = largest.max(published.cwnd),
                Step::Resized(_) => largest = largest.max(published.cwnd),
                _ => prop_assert!(published.cwnd <= largest, "{step:?}"),
            }
        }
    }
}
