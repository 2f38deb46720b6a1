//! Nanoseconds per acknowledgement of the congestion controllers.
//!
//! Two packets leave and are acknowledged by one frame, with a round-trip time and a delivery rate,
//! on a path of 80 Mbit/s and 50 ms beside another one; then what the controller publishes is read,
//! as the engine does. The controller has left slow start or startup.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use quipu_base::{Bytes, Duration, Instant, PathId, Rate, Seed};
use quipu_policy::congestion::{
    AckedInfo, AckedPacket, Controller, LostInfo, Peers, Published, RateSample, SentInfo,
};
use quipu_policy::registry::{Part, Registry};
use quipu_policy::{BuildContext, Layer, PathKey};

const CONTROLLERS: [&str; 8] =
    ["newreno", "cubic", "lia", "olia", "balia", "wvegas", "bbr", "bbr3"];
const SIZE: Bytes = Bytes(1_250);
const RTT: Duration = Duration::from_millis(50);
/// Two packets at 80 Mbit/s.
const GAP: Duration = Duration::from_micros(250);

/// A controller with the path that it serves.
struct Bench {
    controller: Box<dyn Controller>,
    own: PathKey,
    published: [(PathKey, Published); 2],
    now: Instant,
    delivered: Bytes,
    in_flight: Bytes,
}

impl Bench {
    fn new(text: &str) -> Self {
        let part =
            Part::read(&Registry::builtin(), Layer::Congestion, text).expect("a known controller");
        let built = part.build(&mut BuildContext::new(Seed::new(1))).expect("it builds");
        let [own, other] = [0, 1].map(|id| PathKey { slot: id, id: PathId(u32::from(id)) });
        let controller = built.controller.expect("a controller").make(own, SIZE);
        let srtt = Some(RTT);
        let published = [
            (own, Published { srtt, ..controller.published() }),
            (other, Published { cwnd: Bytes(100_000), srtt, ..controller.published() }),
        ];
        let mut bench = Bench {
            controller,
            own,
            published,
            now: Instant::ZERO + Duration::from_secs(1),
            delivered: Bytes::ZERO,
            in_flight: Rate::from_mbit_per_sec(80).bytes_in(RTT),
        };
        // A loss at the end of slow start; five seconds fill the pipe.
        for _ in 0..400 {
            bench.ack();
        }
        bench.lose();
        for _ in 0..20_000 {
            bench.ack();
        }
        bench
    }

    fn ack(&mut self) -> Published {
        self.now += GAP;
        let (now, sent_at) = (self.now, self.now - RTT);
        let bytes = SIZE.saturating_mul(2);
        self.delivered += bytes;
        let peers = Peers { own: self.own, all: &self.published };
        for _ in 0..2 {
            let sent = SentInfo { now, bytes: SIZE, in_flight: self.in_flight, limited: false };
            self.controller.on_sent(&sent, &peers);
        }
        let over_rtt = Rate::from_mbit_per_sec(80).bytes_in(RTT);
        let rate = RateSample {
            rate: Rate::from_mbit_per_sec(80),
            delivered: over_rtt,
            interval: RTT,
            prior_delivered: self.delivered - over_rtt,
            in_flight_at_send: self.in_flight,
            lost: Bytes::ZERO,
            limited: false,
        };
        let acked = AckedInfo {
            now,
            packets: &[AckedPacket { sent_at, bytes: SIZE }; 2],
            prior_in_flight: self.in_flight,
            in_flight: self.in_flight - bytes,
            limited: false,
            srtt: Some(RTT),
            min_rtt: Some(RTT),
            latest_rtt: Some(RTT),
            rate: Some(rate),
            delivered: self.delivered,
            lost: Bytes::ZERO,
        };
        self.controller.on_acked(black_box(&acked), &peers);
        let published = self.controller.published();
        self.published[0].1 = Published { srtt: Some(RTT), ..published };
        published
    }

    fn lose(&mut self) {
        let lost = LostInfo {
            now: self.now,
            packets: &[],
            bytes: SIZE,
            lost: SIZE,
            newest_sent_at: self.now,
            in_flight: self.in_flight,
            persistent: false,
        };
        let peers = Peers { own: self.own, all: &self.published };
        self.controller.on_lost(&lost, &peers);
    }
}

fn acknowledgements(criterion: &mut Criterion) {
    for text in CONTROLLERS {
        let mut bench = Bench::new(text);
        criterion.bench_function(&format!("ack/{text}"), |bencher| {
            bencher.iter(|| black_box(bench.ack()));
        });
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20)
        .warm_up_time(std::time::Duration::from_millis(200))
        .measurement_time(std::time::Duration::from_secs(1));
    targets = acknowledgements
}
criterion_main!(benches);
