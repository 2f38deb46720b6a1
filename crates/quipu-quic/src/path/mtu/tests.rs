use super::*;

const RTT: Duration = Duration::from_millis(40);
const MOST: u16 = 1_472;
const DISCOVER: Mtu = Mtu::Discover { raise_after: Duration::from_secs(600) };

const STATES: [State; 5] =
    [State::Disabled, State::Base, State::Searching, State::SearchComplete, State::Error];
const STEPS: [Step; 8] = [
    Step::Connected,
    Step::BaseConfirmed,
    Step::BaseFailed,
    Step::SearchEnded,
    Step::BlackHole,
    Step::BlackHoleAgain,
    Step::TooBig,
    Step::Raise,
];

/// A path on which time passes a millisecond at a time.
struct Path {
    mtu: PathMtu,
    now: Instant,
    number: u64,
}

impl Path {
    fn new(rule: Mtu) -> Self {
        Path { mtu: PathMtu::new(rule, 1_200), now: Instant::ZERO, number: 0 }
    }

    /// A path whose search found `size`.
    fn found(size: u16) -> Self {
        let mut path = Path::new(DISCOVER);
        path.mtu.on_connected(size);
        path.send(1_200);
        path.search(size);
        assert_eq!((path.mtu.size(), path.mtu.state), (size, State::SearchComplete));
        path
    }

    fn send(&mut self, bytes: u16) -> SentRecord {
        self.now += Duration::from_millis(1);
        self.number += 1;
        let mut record = SentRecord::new(PacketNumber(self.number), self.now);
        record.bytes = bytes;
        record.ack_eliciting = true;
        if bytes >= self.mtu.size() {
            self.mtu.on_full_sent(self.now);
        }
        record
    }

    fn probe(&mut self) -> Option<SentRecord> {
        self.now += Duration::from_millis(1);
        let size = self.mtu.wants_probe(self.now)?;
        let mut record = self.send(size);
        record.mtu_probe = true;
        self.mtu.on_probe_sent(self.now, record.pn, (size, size), RTT);
        Some(record)
    }

    fn settle(&mut self, acked: Vec<SentRecord>, lost: Vec<SentRecord>) -> bool {
        self.now += RTT;
        self.mtu.on_settled(self.now, RTT, &Settled::of(acked, lost))
    }

    /// Probes as long as it wants to, on a path that carries `mtu`; how many probes went.
    fn search(&mut self, mtu: u16) -> usize {
        let mut probes = 0;
        while let Some(probe) = self.probe() {
            probes += 1;
            assert!(self.mtu.wants_probe(self.now).is_none(), "one at a time");
            if probe.bytes <= mtu {
                self.settle(vec![probe], Vec::new());
            } else {
                self.settle(Vec::new(), vec![probe]);
            }
        }
        probes
    }

    /// Full datagrams are lost for longer than a round trip, while a small one arrives.
    fn fall_into_a_black_hole(&mut self) -> bool {
        let size = self.mtu.size();
        let lost: Vec<_> = (0..3).map(|_| self.send(size)).collect();
        let small = self.send(100);
        let resized = self.settle(vec![small], lost);
        assert!(!resized, "one burst is no black hole");
        let (again, small) = (self.send(size), self.send(1_200));
        self.settle(vec![small], vec![again])
    }
}

#[test]
fn every_move_is_in_the_table_once_and_leads_along_the_arrows_of_the_rfc() {
    // https://www.rfc-editor.org/rfc/rfc8899#section-5.2, figure 5, with the messages of the network.
    let arrows = [
        (State::Disabled, State::Searching),
        (State::Base, State::Searching),
        (State::Base, State::Error),
        (State::Searching, State::SearchComplete),
        (State::Searching, State::Base),
        (State::Searching, State::Searching),
        (State::SearchComplete, State::Searching),
        (State::SearchComplete, State::Base),
        (State::Error, State::Searching),
        // A second black hole at once: the error phase "mitigates oscillation".
        (State::Searching, State::Error),
        (State::SearchComplete, State::Error),
    ];
    let mut taken = Vec::new();
    for state in STATES {
        for step in STEPS {
            let listed = TRANSITIONS.iter().filter(|(from, by, _)| (*from, *by) == (state, step));
            assert!(listed.count() <= 1, "{state:?} {step:?}");
            if let Some(to) = state.after(step) {
                assert!(arrows.contains(&(state, to)), "{state:?} {step:?} {to:?}");
                taken.push((state, to));
            }
        }
    }
    assert!(arrows.iter().all(|arrow| taken.contains(arrow)));
}

#[test]
fn the_first_probe_follows_a_full_datagram_and_asks_for_the_most() {
    let mut path = Path::new(DISCOVER);
    path.send(1_200);
    assert!(path.probe().is_none(), "the path is not validated");
    let mut path = Path::new(DISCOVER);
    path.mtu.on_connected(MOST);
    path.send(800);
    assert!(path.probe().is_none(), "nothing was full");
    path.send(1_200);
    let probe = path.probe().unwrap();
    assert_eq!(probe.bytes, MOST);
    assert!(path.settle(vec![probe], Vec::new()));
    assert_eq!(path.mtu.size(), MOST);
    assert!(path.probe().is_none());
    assert_eq!(path.mtu.state, State::SearchComplete);
}

#[test]
fn what_the_path_carries_is_found() {
    for (mtu, most_probes) in [(1_472, 1), (1_452, 7), (1_372, 8), (1_232, 8), (1_200, 9)] {
        let mut path = Path::new(DISCOVER);
        path.mtu.on_connected(MOST);
        path.send(1_200);
        let probes = path.search(mtu);
        assert_eq!(path.mtu.size(), mtu);
        assert!(probes <= most_probes, "{probes} probes for {mtu}");
        assert_eq!(path.mtu.state, State::SearchComplete);
    }
}

#[test]
fn larger_sizes_are_tried_again_later_but_only_if_datagrams_are_full_then() {
    let mut path = Path::new(DISCOVER);
    path.mtu.on_connected(MOST);
    path.send(1_200);
    path.search(1_372);
    assert_eq!(path.search(MOST), 0);
    path.now += Duration::from_secs(599);
    path.send(1_372);
    assert_eq!(path.search(MOST), 0);
    path.now += Duration::from_secs(2);
    path.send(500);
    assert_eq!(path.search(MOST), 0);
    path.send(1_372);
    assert_eq!(path.search(MOST), 1);
    assert_eq!(path.mtu.size(), MOST);
}

#[test]
fn a_fixed_size_is_the_most_at_once_and_for_good() {
    let mut path = Path::new(Mtu::Fixed);
    path.mtu.on_connected(1_350);
    assert_eq!((path.mtu.size(), path.mtu.safe_size()), (1_350, 1_350));
    path.send(1_350);
    assert!(path.probe().is_none());
    assert!(!path.fall_into_a_black_hole());
    assert!(!path.mtu.on_too_big(path.now, 1_300));
    // Also where the peer takes less than the handshake had.
    path.mtu.on_connected(1_200);
    assert_eq!(path.mtu.size(), 1_200);
}

#[test]
fn what_the_peer_takes_limits_the_size_from_the_start() {
    let mut path = Path { mtu: PathMtu::new(DISCOVER, 1_400), ..Path::new(DISCOVER) };
    path.mtu.on_connected(1_300);
    assert_eq!(path.mtu.size(), 1_300);
    path.send(1_300);
    assert_eq!(path.search(9_000), 0);
}

#[test]
fn a_stalled_handshake_falls_back_to_the_least_size() {
    let mut path = Path { mtu: PathMtu::new(DISCOVER, 1_400), ..Path::new(DISCOVER) };
    path.mtu.on_handshake_stalled();
    assert_eq!(path.mtu.size(), 1_200);
    let mut fixed = PathMtu::new(Mtu::Fixed, 1_400);
    fixed.on_handshake_stalled();
    assert_eq!(fixed.size(), 1_400);
}

#[test]
fn after_a_black_hole_the_size_is_the_least_at_once_and_then_what_is_left() {
    let mut path = Path::found(MOST);
    assert!(path.fall_into_a_black_hole());
    assert_eq!((path.mtu.size(), path.mtu.state), (1_200, State::Base));
    // Late news of full datagrams that left before change nothing.
    let mut stale = SentRecord::new(PacketNumber(1), Instant::ZERO);
    stale.bytes = MOST;
    assert!(!path.settle(vec![stale.clone()], vec![stale]));
    assert!(path.probe().is_none(), "the least size is not confirmed");
    let base = path.send(1_200);
    path.settle(vec![base], Vec::new());
    let probes = path.search(1_252);
    assert_eq!(path.mtu.size(), 1_252);
    assert!(probes <= 9, "{probes}");
}

#[test]
fn a_second_black_hole_within_a_minute_silences_the_search_for_another() {
    let mut path = Path::found(MOST);
    assert!(path.fall_into_a_black_hole());
    let base = path.send(1_200);
    path.settle(vec![base], Vec::new());
    path.search(MOST);
    assert_eq!(path.mtu.size(), MOST);
    assert!(path.fall_into_a_black_hole());
    assert_eq!((path.mtu.size(), path.mtu.state), (1_200, State::Error));
    let base = path.send(1_200);
    path.settle(vec![base], Vec::new());
    assert_eq!(path.search(MOST), 0);
    path.now += COOL_DOWN;
    path.send(1_200);
    assert!(path.search(MOST) > 0);
    assert_eq!(path.mtu.size(), MOST);
}

#[test]
fn the_least_size_that_does_not_arrive_either_is_an_error() {
    let mut path = Path::found(MOST);
    assert!(path.fall_into_a_black_hole());
    let lost = (0..3).map(|_| path.send(1_200)).collect();
    path.settle(Vec::new(), lost);
    assert_eq!(path.mtu.state, State::Error);
}

#[test]
fn a_probe_that_nothing_settles_is_given_up_after_a_second() {
    let mut path = Path::new(DISCOVER);
    path.mtu.on_connected(MOST);
    path.send(1_200);
    let probe = path.probe().unwrap();
    let expires_at = path.mtu.probe_expires_at().unwrap();
    assert_eq!(expires_at, path.now + Duration::from_secs(1));
    assert_eq!(path.mtu.take_expired_probe(path.now), None);
    assert_eq!(path.mtu.take_expired_probe(expires_at), Some(probe.pn));
    assert_eq!(path.mtu.probe_expires_at(), None);
    path.settle(Vec::new(), vec![probe.clone()]);
    // Its acknowledgement comes all the same.
    assert!(path.settle(vec![probe], Vec::new()));
    assert_eq!(path.mtu.size(), MOST);
}

#[test]
fn a_probe_of_before_a_black_hole_raises_nothing() {
    let mut path = Path::found(1_372);
    path.mtu.search = Search::up_to(MOST);
    path.now += Duration::from_secs(601);
    path.send(1_372);
    let probe = path.probe().unwrap();
    assert!(path.fall_into_a_black_hole());
    let base = path.send(1_200);
    path.settle(vec![base], Vec::new());
    assert!(!path.settle(vec![probe], Vec::new()));
    assert_eq!((path.mtu.size(), path.mtu.state), (1_200, State::Searching));
}

#[test]
fn a_message_of_the_network_limits_the_search_and_raises_nothing() {
    let mut path = Path::new(DISCOVER);
    path.mtu.on_connected(MOST);
    path.send(1_200);
    let probe = path.probe().unwrap();
    assert!(!path.mtu.on_too_big(path.now, 1_199), "too small to be believed");
    assert!(!path.mtu.on_too_big(path.now, MOST), "no limit at all");
    assert!(!path.mtu.on_too_big(path.now, 1_400), "nothing is lowered");
    path.settle(Vec::new(), vec![probe]);
    let probe = path.probe().unwrap();
    assert_eq!(probe.bytes, 1_400);
    path.settle(vec![probe], Vec::new());
    assert_eq!(path.search(MOST), 0);
    assert_eq!(path.mtu.size(), 1_400);
    // Now a smaller one: the least size at once, and what it says next.
    assert!(path.mtu.on_too_big(path.now, 1_300));
    assert_eq!(path.mtu.size(), 1_200);
    path.send(1_200);
    assert_eq!(path.search(1_300), 1);
    assert_eq!(path.mtu.size(), 1_300);
}

#[test]
fn messages_without_end_are_believed_a_few_times() {
    let mut path = Path::found(MOST);
    for _ in 0..20 {
        path.mtu.on_too_big(path.now, 1_250);
        path.send(1_200);
        path.search(MOST);
    }
    assert_eq!(path.mtu.messages, MAX_MESSAGES);
    path.now += Duration::from_secs(601);
    path.send(1_250);
    path.search(MOST);
    assert_eq!(path.mtu.size(), MOST, "the next search begins anew");
}

#[test]
fn a_way_out_that_is_shorter_ends_the_search_there() {
    let mut path = Path::new(DISCOVER);
    path.mtu.on_connected(MOST);
    path.send(1_200);
    assert_eq!(path.mtu.wants_probe(path.now), None, "not at the same instant");
    path.now += Duration::from_millis(1);
    let asked = path.mtu.wants_probe(path.now).unwrap();
    let mut record = path.send(1_300);
    record.mtu_probe = true;
    path.mtu.on_probe_sent(path.now, record.pn, (1_300, asked), RTT);
    assert!(path.settle(vec![record], Vec::new()));
    assert_eq!((path.mtu.size(), path.search(MOST)), (1_300, 0));
}
