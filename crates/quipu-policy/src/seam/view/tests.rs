use super::*;

fn path(id: u32, slot: u8, srtt_ms: Option<u64>) -> PathView {
    PathView {
        key: PathKey { slot, id: PathId(id) },
        state: PathState::Usable,
        status: PathStatus::Available,
        packets_sent: 0,
        last_sent_at: None,
        pto_count: 0,
        srtt: srtt_ms.map(Duration::from_millis),
        rttvar: Duration::ZERO,
        min_rtt: None,
        latest_rtt: None,
        cwnd: Bytes(12_000),
        ssthresh: None,
        in_flight: Bytes::ZERO,
        release_at: Instant::ZERO,
        rate: None,
        limited: false,
        amplification_limited: false,
        blocked: false,
        loss: PerMille(0),
        payload: Bytes(1200),
    }
}

#[test]
fn paths_iterate_in_order_of_identifier_whatever_the_slot() {
    let mut paths = Paths::new();
    assert!(paths.insert(path(7, 0, None)));
    assert!(paths.insert(path(2, 1, None)));
    assert!(paths.insert(path(5, 2, None)));
    assert!(!paths.insert(path(9, 2, None)));
    let ids: Vec<u32> = paths.iter().map(|view| view.key.id.0).collect();
    assert_eq!(ids, [2, 5, 7]);
    paths.remove(PathKey { slot: 2, id: PathId(5) });
    assert_eq!(paths.len(), 2);
    assert!(paths.by_id(PathId(5)).is_none());
}

#[test]
fn a_probed_path_is_preferred_to_an_unprobed_one() {
    let mut paths = Paths::new();
    paths.insert(path(0, 0, None));
    paths.insert(path(1, 1, Some(50)));
    paths.insert(path(2, 2, Some(20)));
    assert_eq!(paths.least_srtt_open(Instant::ZERO).map(|key| key.id), Some(PathId(2)));
    let fastest = PathKey { slot: 2, id: PathId(2) };
    if let Some(view) = paths.get_mut(fastest) {
        view.in_flight = view.cwnd;
    }
    assert_eq!(paths.least_srtt_open(Instant::ZERO).map(|key| key.id), Some(PathId(1)));
    assert_eq!(paths.least_srtt_usable(), Some(fastest));
}
