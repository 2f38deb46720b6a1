use super::*;

fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

/// Both ends give the path up, and its time passes.
fn use_up(plan: &mut PathPlan, id: u32, now: Instant) {
    assert_eq!(plan.step(PathId(id), Step::PeerAbandons), Some(Stage::Draining));
    plan.expire_at(PathId(id), now);
    assert_eq!(plan.next_expired(now), Some((PathId(id), Stage::Gone)));
    assert!(plan.grant_next());
}

#[test]
fn each_identifier_that_both_allow_gets_connection_ids_once() {
    let mut plan = PathPlan::new(3);
    let mut issue = |peer_max| {
        std::iter::from_fn(|| plan.next_to_issue(PathId(peer_max)))
            .map(|id| id.0)
            .collect::<Vec<_>>()
    };
    assert_eq!(issue(1), [1]);
    assert_eq!(issue(9), [2]);
    assert_eq!(issue(9), [] as [u32; 0]);
    assert!(plan.grant_next());
    assert_eq!(plan.next_to_issue(PathId(9)), Some(PathId(3)));
}

#[test]
fn an_identifier_that_was_abandoned_gets_no_connection_ids() {
    let mut plan = PathPlan::new(4);
    plan.step(PathId(1), Step::PeerAbandons);
    plan.step(PathId(2), Step::Abandon);
    assert_eq!(plan.next_to_issue(PathId(9)), Some(PathId(3)));
    assert_eq!(plan.next_to_issue(PathId(9)), None);
}

#[test]
fn paths_are_opened_in_order_and_no_identifier_is_used_again() {
    let mut plan = PathPlan::new(4);
    for id in 0..3 {
        assert_eq!(plan.next_unused(), PathId(id));
        assert_eq!(plan.step(PathId(id), Step::Open), Some(Stage::Validating));
    }
    plan.step(PathId(1), Step::Abandon);
    use_up(&mut plan, 1, at(1));
    assert_eq!(plan.stage(PathId(1)), Stage::Gone);
    assert_eq!(plan.next_unused(), PathId(3));
    assert_eq!(plan.step(PathId(1), Step::Open), None);
    assert_eq!(plan.granted(), PathId(4));
}

#[test]
fn an_identifier_is_not_replaced_before_the_peer_gave_it_up_too() {
    let mut plan = PathPlan::new(2);
    plan.step(PathId(1), Step::Abandon);
    plan.expire_at(PathId(1), at(30));
    assert_eq!(plan.expires_at(), Some(at(30)));
    assert_eq!(plan.next_expired(at(29)), None);
    assert_eq!(plan.next_expired(at(30)), Some((PathId(1), Stage::Abandoned)));
    assert_eq!((plan.expires_at(), plan.next_expired(at(99))), (None, None));
    assert!(plan.is_over(PathId(1)));
    use_up(&mut plan, 1, at(100));
}

/// The peer may guess what is granted next, but not use it before it was told.
#[test]
fn what_the_peer_names_is_checked_against_what_it_was_told() {
    let mut plan = PathPlan::new(2);
    assert!(plan.check(PathId(1), "").is_ok());
    use_up(&mut plan, 1, at(0));
    assert!(plan.grants(PathId(2)));
    assert!(plan.check(PathId(2), "").is_err());
    plan.on_granted_told();
    assert!(plan.check(PathId(2), "").is_ok());
}

#[test]
fn the_window_keeps_its_length_over_a_hundred_thousand_paths() {
    let mut plan = PathPlan::new(8);
    let each = PathCounters { packets_sent: 1, ..PathCounters::default() };
    for cycle in 1..=100_000_u64 {
        let id = plan.next_unused();
        plan.step(id, Step::Open);
        plan.step(id, Step::Abandon);
        plan.on_dropped(id, each);
        if cycle > 1 {
            use_up(&mut plan, id.0, at(cycle));
        }
        assert_eq!(plan.window.len(), 8);
    }
    assert_eq!(plan.past().total().packets_sent, 100_000);
    assert_eq!(plan.past().recent().count(), MAX_REMEMBERED);
    assert!(plan.window.capacity() <= 16);
    assert_eq!(plan.granted(), PathId(7 + 99_999));
}

#[test]
fn the_last_identifier_has_no_successor() {
    let mut plan = PathPlan::new(2);
    (plan.granted, plan.issued) = (PathId(u32::MAX - 1), PathId(u32::MAX - 1));
    assert!(plan.grant_next());
    assert!(!plan.grant_next());
    assert_eq!(plan.granted(), PathId(u32::MAX));
    plan.window.retain(|identifier| identifier.stage != Stage::Unused);
    assert_eq!(plan.next_unused(), PathId(u32::MAX));
    assert_eq!(plan.next_to_issue(PathId(u32::MAX)), None);
}

#[test]
fn a_status_may_be_told_before_the_path_is_opened_and_the_latest_counts() {
    let mut plan = PathPlan::new(4);
    let id = PathId(2);
    assert!(plan.on_peer_status(id, 5, PathStatus::Backup));
    assert!(!plan.on_peer_status(id, 5, PathStatus::Available));
    assert!(!plan.on_peer_status(id, 4, PathStatus::Available));
    plan.step(id, Step::Open);
    assert_eq!(plan.status(id).combined(), PathStatus::Backup);
    assert!(plan.on_peer_status(id, 6, PathStatus::Available));
    assert_eq!(plan.status(id).combined(), PathStatus::Available);
    assert!(plan.set_own_status(id, PathStatus::Backup));
    assert_eq!(plan.status(id).combined(), PathStatus::Backup);
    assert_eq!(plan.status(id).own_sequence, 1);
    plan.step(id, Step::Abandon);
    assert!(!plan.set_own_status(id, PathStatus::Available));
    assert!(!plan.on_peer_status(id, 7, PathStatus::Backup));
}

#[test]
fn advice_that_was_overtaken_is_no_news() {
    let mut plan = PathPlan::new(2);
    assert!(plan.is_news(0));
    assert!(!plan.is_news(0));
    assert!(plan.is_news(5));
    assert!(!plan.is_news(4));
}

#[test]
fn the_peer_is_told_of_a_broken_path_once_and_of_its_return() {
    let mut plan = PathPlan::new(4);
    let id = PathId(1);
    let seen = |plan: &PathPlan| {
        let status = plan.status(id);
        (status.told(), status.combined(), status.own_sequence)
    };
    let (available, backup) = (PathStatus::Available, PathStatus::Backup);
    assert!(!plan.set_broken(id, false));
    assert!(plan.set_broken(id, true));
    assert!(!plan.set_broken(id, true));
    assert_eq!(seen(&plan), (backup, available, 1));
    assert!(plan.set_broken(id, false));
    assert_eq!(seen(&plan), (available, available, 2));
    // Of one that is spared anyway there is nothing to tell.
    plan.set_own_status(id, backup);
    assert!(!plan.set_broken(id, true));
    assert_eq!(seen(&plan), (backup, backup, 3));
    plan.step(id, Step::Abandon);
    assert!(!plan.set_broken(id, false));
}
