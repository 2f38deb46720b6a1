//! What holds of every registered congestion controller, whatever it is told.

use proptest::prelude::*;
use quipu_base::{Bytes, Duration, Instant, PacketNumber, PathId, Rate, Seed};
use quipu_policy::congestion::{
    AckedInfo, AckedPacket, Controller, LostInfo, LostPacket, PathChange, Peers, Published,
    RateSample, SentInfo,
};
use quipu_policy::registry::{Part, Registry};
use quipu_policy::{BuildContext, Layer, PathKey};

const SIZE: Bytes = Bytes(1_250);
const OWN: PathKey = PathKey { slot: 0, id: PathId(0) };
const OTHER: PathKey = PathKey { slot: 1, id: PathId(1) };

/// Every controller, and with proportional rate reduction where it can have it.
fn choices() -> Vec<String> {
    let registry = Registry::builtin();
    let entries = registry.of(Layer::Congestion);
    entries
        .flat_map(|entry| {
            let reduces = entry.params.iter().any(|param| param.name == "prr");
            let name = entry.name.to_owned();
            std::iter::once(name.clone()).chain(reduces.then(|| format!("{name}:prr=true")))
        })
        .collect()
}

fn controller(choice: &str) -> Box<dyn Controller> {
    let part = Part::read(&Registry::builtin(), Layer::Congestion, choice).expect("it is listed");
    let built = part.build(&mut BuildContext::new(Seed::new(1))).expect("it builds");
    built.controller.expect("a controller").make(OWN, SIZE)
}

/// What happens next. Times in nanoseconds, amounts in bytes.
#[derive(Clone, Debug)]
enum Step {
    Send { after: u64, limited: bool },
    Ack { after: u64, age: u64, packets: usize, rtt: Option<u64>, rate: u64, limited: bool },
    Lose { after: u64, age: u64, packets: usize, persistent: bool },
    Change { after: u64, change: u8 },
}

/// Mostly what networks do; sometimes nothing, and sometimes hours.
fn time() -> impl Strategy<Value = u64> {
    prop_oneof![
        6 => 0..300_000_000_u64,
        1 => Just(0),
        1 => 0..4_000_000_000_000_u64,
    ]
}

fn rate() -> impl Strategy<Value = u64> {
    prop_oneof![6 => 0..200_000_000_u64, 1 => Just(0), 1 => Just(1 << 63)]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (time(), any::<bool>()).prop_map(|(after, limited)| Step::Send { after, limited }),
        6 => (time(), time(), 0..12_usize, prop::option::of(time()), rate(), any::<bool>()).prop_map(
            |(after, age, packets, rtt, rate, limited)| {
                Step::Ack { after, age, packets, rtt, rate, limited }
            }
        ),
        2 => (time(), time(), 1..12_usize, prop::bool::weighted(0.1)).prop_map(
            |(after, age, packets, persistent)| Step::Lose { after, age, packets, persistent }
        ),
        1 => (time(), 0..5_u8).prop_map(|(after, change)| Step::Change { after, change }),
    ]
}

/// A path with the counts that an engine keeps.
struct Path {
    controller: Box<dyn Controller>,
    now: Instant,
    in_flight: Bytes,
    delivered: Bytes,
    lost: Bytes,
    lost_at: Instant,
    srtt: Option<Duration>,
}

impl Path {
    /// As many of `packets` as are in flight.
    fn outstanding(&self, packets: usize) -> usize {
        packets.min((self.in_flight.0 / SIZE.0) as usize)
    }

    fn take(&mut self, step: &Step) {
        let own = Published { srtt: self.srtt, ..self.controller.published() };
        let other = Published { cwnd: Bytes(40_000), srtt: Some(Duration::ZERO), ..own };
        let all = [(OWN, own), (OTHER, other)];
        let peers = Peers { own: OWN, all: &all };
        let sent_at =
            |now: Instant, age: u64| Instant::from_nanos(now.as_nanos().saturating_sub(age));
        match *step {
            Step::Send { after, limited } => {
                self.now += Duration::from_nanos(after);
                self.in_flight += SIZE;
                let (now, in_flight) = (self.now, self.in_flight);
                self.controller.on_sent(&SentInfo { now, bytes: SIZE, in_flight, limited }, &peers);
            }
            Step::Ack { after, age, packets, rtt, rate, limited } => {
                self.now += Duration::from_nanos(after);
                let sent_at = sent_at(self.now, age);
                let packets = vec![AckedPacket { sent_at, bytes: SIZE }; self.outstanding(packets)];
                let bytes = SIZE.saturating_mul(packets.len() as u64);
                let prior_in_flight = self.in_flight;
                self.in_flight = self.in_flight.saturating_sub(bytes);
                let prior_delivered = self.delivered;
                self.delivered += bytes;
                let sample = rtt.map(Duration::from_nanos);
                self.srtt = sample.or(self.srtt);
                let rate = (rate > 0).then_some(RateSample {
                    rate: Rate::from_bits_per_sec(rate),
                    delivered: bytes,
                    interval: Duration::from_nanos(age.max(1)),
                    prior_delivered,
                    in_flight_at_send: prior_in_flight,
                    lost: self.lost,
                    limited,
                });
                let info = AckedInfo {
                    now: self.now,
                    packets: &packets,
                    prior_in_flight,
                    in_flight: self.in_flight,
                    limited,
                    srtt: self.srtt,
                    min_rtt: sample,
                    latest_rtt: sample,
                    rate,
                    delivered: self.delivered,
                    lost: self.lost,
                };
                self.controller.on_acked(&info, &peers);
            }
            Step::Lose { after, age, packets, persistent } => {
                self.now += Duration::from_nanos(after);
                let packets = self.outstanding(packets);
                if packets == 0 {
                    return;
                }
                let bytes = SIZE.saturating_mul(packets as u64);
                let packet = LostPacket {
                    pn: PacketNumber(7),
                    sent_at: sent_at(self.now, age),
                    bytes: SIZE,
                    in_flight_at_send: self.in_flight,
                    lost_at_send: self.lost,
                    limited: false,
                };
                self.in_flight = self.in_flight.saturating_sub(bytes);
                self.lost += bytes;
                self.lost_at = self.now;
                let info = LostInfo {
                    now: self.now,
                    packets: &vec![packet; packets],
                    bytes,
                    lost: self.lost,
                    newest_sent_at: packet.sent_at,
                    in_flight: self.in_flight,
                    persistent,
                };
                self.controller.on_lost(&info, &peers);
            }
            Step::Change { after, change } => {
                self.now += Duration::from_nanos(after);
                let (now, sent_at) = (self.now, self.now);
                let change = match change {
                    0 => PathChange::EcnCongestion { marks: 1, sent_at, now },
                    1 => PathChange::Pto,
                    2 => PathChange::ApplicationLimited,
                    3 => PathChange::SpuriousLoss { since: self.lost_at, now },
                    _ => PathChange::ReturnRoute,
                };
                self.controller.on_change(change, &peers);
            }
        }
    }
}

proptest! {
    #[test]
    fn windows_keep_their_bounds_whatever_happens(
        steps in prop::collection::vec(step(), 1..150),
    ) {
        for choice in choices() {
            let mut path = Path {
                controller: controller(&choice),
                now: Instant::ZERO,
                in_flight: Bytes::ZERO,
                delivered: Bytes::ZERO,
                lost: Bytes::ZERO,
                lost_at: Instant::ZERO,
                srtt: None,
            };
            // https://www.rfc-editor.org/rfc/rfc9002#section-7.2
            let packets = if choice.starts_with("bbr") { 4 } else { 2 };
            let least = SIZE.saturating_mul(packets);
            let mut greatest = path.controller.published().cwnd;
            for step in &steps {
                path.take(step);
                // Recovery may let as much be in flight as was.
                greatest = greatest.max(path.in_flight);
                let published = path.controller.published();
                prop_assert!(published.cwnd >= least, "{choice}: {step:?} leaves {:?}", published);
                prop_assert!(published.pacing_rate != Some(Rate::ZERO), "{choice}: {step:?}");
                prop_assert!(!published.state.is_empty(), "{choice}");
                // What did not limit does not grow; what it was before a recovery may come back.
                let grows = matches!(step, Step::Ack { limited: false, .. });
                prop_assert!(
                    grows || published.cwnd <= greatest,
                    "{choice}: {step:?} raises {greatest:?} to {:?}",
                    published
                );
                greatest = greatest.max(published.cwnd);
            }
        }
    }
}

#[test]
fn every_controller_is_held_to_it() {
    let all = choices();
    for name in
        ["newreno", "cubic:prr=true", "lia", "olia:prr=true", "balia", "wvegas", "bbr", "bbr3"]
    {
        assert!(all.iter().any(|choice| choice == name), "{name} is not in {all:?}");
    }
}
