//! BBR told of events by hand.

use proptest::prelude::*;
use quipu_base::{Duration, Instant, PacketNumber, Rate};

use super::super::*;
use super::{bbr, key, ms, secs};
use crate::congestion::testing::SIZE;
use crate::congestion::{AckedPacket, LostPacket, RateSample};

/// A controller told of events by hand.
struct Told {
    bbr: Box<dyn Controller>,
    now: Instant,
    delivered: Bytes,
    lost: Bytes,
}

impl Told {
    fn new() -> Self {
        Told { bbr: bbr(), now: Instant::ZERO + secs(1), delivered: Bytes(0), lost: Bytes(0) }
    }

    fn cwnd(&self) -> u64 {
        self.bbr.published().cwnd.0 / SIZE.0
    }

    /// Packets sent that long ago are acknowledged, with the rest in flight.
    fn ack(&mut self, packets: u64, ago: Duration, in_flight: u64) {
        let bytes = SIZE.saturating_mul(packets);
        self.delivered += bytes;
        let acked = vec![AckedPacket { sent_at: self.now - ago, bytes: SIZE }; packets as usize];
        let info = AckedInfo {
            now: self.now,
            packets: &acked,
            prior_in_flight: SIZE.saturating_mul(in_flight) + bytes,
            in_flight: SIZE.saturating_mul(in_flight),
            limited: false,
            srtt: Some(ago),
            min_rtt: Some(ago),
            latest_rtt: Some(ago),
            rate: None,
            delivered: self.delivered,
            lost: self.lost,
        };
        self.bbr.on_acked(&info, &Peers { own: key(0), all: &[] });
    }

    fn lose(&mut self, packets: u64, ago: Duration, in_flight: u64, persistent: bool) {
        let bytes = SIZE.saturating_mul(packets);
        self.lost += bytes;
        let packet = LostPacket {
            pn: PacketNumber(0),
            sent_at: self.now - ago,
            bytes: SIZE,
            in_flight_at_send: SIZE,
            lost_at_send: Bytes(0),
            limited: false,
        };
        let info = LostInfo {
            now: self.now,
            packets: &vec![packet; packets as usize],
            bytes,
            lost: self.lost,
            newest_sent_at: packet.sent_at,
            in_flight: SIZE.saturating_mul(in_flight),
            persistent,
        };
        self.bbr.on_lost(&info, &Peers { own: key(0), all: &[] });
    }

    fn change(&mut self, change: PathChange) {
        self.bbr.on_change(change, &Peers { own: key(0), all: &[] });
    }
}

#[test]
fn recovery_conserves_packets_for_a_round_trip_then_restores_the_window() {
    let mut told = Told::new();
    told.ack(2, ms(100), 8);
    assert_eq!(told.cwnd(), 12, "two more before an initial window is delivered");
    // Of eight in flight three are lost, and one is acknowledged.
    told.now += ms(1);
    told.ack(1, ms(100), 4);
    told.lose(3, ms(100), 4, false);
    assert_eq!(told.cwnd(), 5);
    // Each acknowledgement lets one out.
    told.now += ms(10);
    told.ack(1, ms(100), 4);
    assert_eq!(told.cwnd(), 5);
    // Another loss, 50 ms into recovery.
    told.now += ms(40);
    told.lose(1, ms(100), 4, false);
    assert_eq!(told.cwnd(), 4);
    // A packet sent after the first loss: the round trip is over, not all is repaired.
    told.now += ms(51);
    told.ack(1, ms(100), 3);
    assert_eq!(told.cwnd(), 5);
    // One sent after the other.
    told.now += ms(50);
    told.ack(1, ms(100), 3);
    assert_eq!(told.cwnd(), 14, "the 13 before, and one acknowledged");
}

#[test]
fn persistent_congestion_leaves_four_packets_until_recovery_ends() {
    let mut told = Told::new();
    told.ack(2, ms(100), 8);
    told.now += secs(1);
    told.lose(8, ms(900), 0, true);
    assert_eq!(told.cwnd(), 4);
    told.now += ms(100);
    told.ack(1, ms(1_100), 0);
    assert_eq!(told.cwnd(), 5, "slow start up to the target");
    told.now += ms(1);
    told.ack(1, ms(100), 0);
    assert_eq!(told.cwnd(), 13);
}

#[test]
fn marks_timeouts_and_rest_change_nothing() {
    let mut told = Told::new();
    told.ack(2, ms(100), 8);
    let before = told.bbr.published();
    let (now, sent_at) = (told.now, told.now - ms(100));
    told.change(PathChange::EcnCongestion { marks: 3, sent_at, now });
    told.change(PathChange::Pto);
    told.change(PathChange::ApplicationLimited);
    assert_eq!(told.bbr.published(), before);
}

#[test]
fn the_window_goes_by_the_datagram_size() {
    let mut told = Told::new();
    told.change(PathChange::DatagramSize(Bytes(1_400)));
    assert_eq!(told.bbr.published().cwnd, Bytes(14_000));
    told.ack(1, ms(100), 0);
    told.now += secs(1);
    told.lose(1, ms(500), 0, true);
    assert_eq!(told.bbr.published().cwnd, Bytes(5_600));
    told.change(PathChange::DatagramSize(Bytes(9_000)));
    assert_eq!(told.bbr.published().cwnd, Bytes(36_000));
}

proptest! {
    /// Whatever it is told, it answers with a window of four packets and a pace.
    #[test]
    fn absurd_events_end_in_no_overflow(events in prop::collection::vec(absurd(), 1..80)) {
        let mut bbr = bbr();
        let (mut now, mut size) = (Instant::ZERO, SIZE);
        let mut delivered = Bytes::ZERO;
        let peers = Peers { own: key(0), all: &[] };
        for event in events {
            now += event.after;
            let bytes = Bytes(event.number);
            delivered += bytes;
            let sent_at = now - event.rtt;
            match event.kind {
                0 => bbr.on_sent(
                    &SentInfo { now, bytes, in_flight: bytes, limited: event.flag },
                    &peers,
                ),
                1 => {
                    let info = LostInfo {
                        now,
                        packets: &[],
                        bytes,
                        lost: bytes,
                        newest_sent_at: sent_at,
                        in_flight: bytes,
                        persistent: event.flag,
                    };
                    bbr.on_lost(&info, &peers);
                }
                2 => bbr.on_change(PathChange::ReturnRoute, &peers),
                3 => {
                    size = Bytes(event.number.max(1));
                    let change = if event.flag { PathChange::PathMtu } else { PathChange::DatagramSize };
                    bbr.on_change(change(size), &peers);
                }
                _ => {
                    let rate = RateSample {
                        rate: event.rate,
                        delivered: bytes,
                        interval: event.rtt,
                        prior_delivered: delivered.saturating_sub(bytes),
                        in_flight_at_send: bytes,
                        lost: bytes,
                        limited: event.flag,
                    };
                    let info = AckedInfo {
                        now,
                        packets: &[AckedPacket { sent_at, bytes }],
                        prior_in_flight: bytes,
                        in_flight: Bytes(event.number / 2),
                        limited: event.flag,
                        srtt: Some(event.rtt),
                        min_rtt: Some(event.rtt),
                        latest_rtt: Some(event.rtt),
                        rate: Some(rate),
                        delivered,
                        lost: bytes,
                    };
                    bbr.on_acked(&info, &peers);
                }
            }
            let published = bbr.published();
            prop_assert!(published.cwnd >= size.saturating_mul(4));
            prop_assert!(published.pacing_rate > Some(Rate::ZERO));
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Absurd {
    kind: u8,
    after: Duration,
    number: u64,
    rtt: Duration,
    rate: Rate,
    flag: bool,
}

fn absurd() -> impl Strategy<Value = Absurd> {
    let number = || prop_oneof![Just(0u64), 1u64..100_000, Just(1 << 63), Just(u64::MAX)];
    let rtt =
        prop_oneof![Just(Duration::ZERO), Just(secs(3_600)), Just(Duration::MAX), Just(ms(50))];
    let after =
        prop_oneof![Just(Duration::ZERO), Just(ms(300)), Just(secs(11)), Just(Duration::MAX)];
    (0u8..12, after, number(), rtt, number(), any::<bool>()).prop_map(
        |(kind, after, number, rtt, rate, flag)| {
            let rate = Rate::from_bits_per_sec(rate);
            Absurd { kind, after, number, rtt, rate, flag }
        },
    )
}
