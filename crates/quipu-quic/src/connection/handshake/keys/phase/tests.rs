use proptest::prelude::*;

use super::*;

const PATH: PathId = PathId(0);
const OTHER: PathId = PathId(3);

fn pn(number: u64) -> PacketNumber {
    PacketNumber(number)
}

/// Every state and cause, with what becomes of them by what was acknowledged: by neither end, of
/// what we sent (acked), of what the peer sent (answered), by both.
#[test]
fn every_cause_has_its_move_in_every_state() {
    let mut table = String::new();
    for state in [State::Begun, State::Shared, State::Settled] {
        for cause in [Cause::Begin, Cause::PeerPresent, Cause::PeerNext, Cause::Expire] {
            let moves: Vec<String> = [(false, false), (true, false), (false, true), (true, true)]
                .map(|(acked, answered)| format!("{:?}", state.on(cause, acked, answered)))
                .into();
            table += &format!("{state:?} {cause:?}: {}\n", moves.join(", "));
        }
    }
    let expected = "\
Begun Begin: Refused, Refused, Refused, Refused
Begun PeerPresent: To(Shared), To(Shared), To(Shared), To(Shared)
Begun PeerNext: Fault, Fault, Fault, Fault
Begun Expire: Refused, Refused, Refused, Refused
Shared Begin: Refused, Refused, Refused, Refused
Shared PeerPresent: To(Shared), To(Shared), To(Shared), To(Shared)
Shared PeerNext: Fault, Fault, Next(Shared), Next(Shared)
Shared Expire: To(Settled), To(Settled), To(Settled), To(Settled)
Settled Begin: Refused, Next(Begun), Refused, Next(Begun)
Settled PeerPresent: Refused, Refused, Refused, Refused
Settled PeerNext: Fault, Fault, Next(Shared), Next(Shared)
Settled Expire: Refused, Refused, Refused, Refused
";
    assert_eq!(table, expected);
}

/// Phases in the second phase, which the peer began with packet 10 on [`PATH`].
fn second_phase() -> Phases {
    let mut phases = Phases::new();
    phases.on_next(PATH, pn(10)).unwrap();
    phases
}

#[test]
fn a_phase_begins_once_the_one_before_is_acknowledged_and_settled() {
    let mut phases = Phases::new();
    assert!(!phases.begin(), "nothing was acknowledged");
    phases.on_sealed(PATH, pn(0));
    phases.on_acked(PATH, pn(0), false).unwrap();
    assert!(phases.begin());
    assert!(phases.bit());
    phases.on_sealed(PATH, pn(7));
    phases.on_acked(PATH, pn(6), false).unwrap();
    assert!(phases.on_present(PATH, pn(3)), "the peer followed");
    assert!(phases.expire());
    assert!(!phases.begin(), "packet 7 is the first of the phase");
    phases.on_acked(PATH, pn(7), false).unwrap();
    assert!(phases.begin());
    assert_eq!(phases.count(), 2);
}

#[test]
fn a_packet_sent_just_before_an_update_does_not_acknowledge_it() {
    let mut phases = Phases::new();
    phases.on_acked(PATH, pn(0), false).unwrap();
    assert!(phases.begin());
    phases.on_sealed(OTHER, pn(5));
    phases.on_present(PATH, pn(1));
    phases.expire();
    phases.on_acked(OTHER, pn(4), false).unwrap();
    phases.on_acked(PATH, pn(900), false).unwrap();
    assert!(!phases.may_begin(), "numbers of one path say nothing of another's");
    phases.on_acked(OTHER, pn(5), false).unwrap();
    assert!(phases.may_begin());
}

#[test]
fn old_keys_after_newer_ones_on_the_same_path_are_a_fault() {
    let phases = second_phase();
    assert_eq!(phases.candidates(PATH, pn(9)), Candidates::Previous);
    phases.on_previous(PATH, pn(9)).unwrap();
    assert_eq!(phases.candidates(PATH, pn(11)), Candidates::NextElsePrevious);
    let error = phases.on_previous(PATH, pn(11)).unwrap_err();
    assert_eq!(error.code, ErrorCode::KEY_UPDATE_ERROR);
}

#[test]
fn old_keys_on_another_path_are_none_until_newer_ones_came_there() {
    let mut phases = second_phase();
    assert_eq!(phases.candidates(OTHER, pn(500)), Candidates::PreviousElseNext);
    phases.on_previous(OTHER, pn(500)).unwrap();
    phases.on_present(OTHER, pn(501));
    phases.on_previous(OTHER, pn(500)).unwrap();
    assert!(phases.on_previous(OTHER, pn(502)).is_err());
    phases.on_present(OTHER, pn(499));
    assert!(phases.on_previous(OTHER, pn(500)).is_err(), "the lowest counts");
}

#[test]
fn a_peer_that_updates_twice_without_an_acknowledgement_is_too_fast() {
    let mut phases = second_phase();
    let error = phases.on_next(PATH, pn(11)).unwrap_err();
    assert_eq!(error.code, ErrorCode::KEY_UPDATE_ERROR);

    let mut phases = second_phase();
    phases.on_ack_sent(PATH, pn(9));
    assert!(phases.on_next(PATH, pn(11)).is_err(), "packet 9 is of the phase before");

    let mut phases = second_phase();
    phases.expire();
    phases.on_present(OTHER, pn(2));
    phases.on_ack_sent(OTHER, pn(2));
    phases.on_next(PATH, pn(11)).unwrap();
    assert_eq!(phases.count(), 2);
}

#[test]
fn a_peer_cannot_end_a_phase_in_which_it_was_not_seen() {
    let mut phases = Phases::new();
    phases.on_acked(PATH, pn(0), false).unwrap();
    phases.begin();
    assert_eq!(phases.candidates(PATH, pn(4)), Candidates::PreviousElseNext);
    phases.on_previous(PATH, pn(4)).unwrap();
    assert_eq!(phases.on_next(PATH, pn(5)).unwrap_err().code, ErrorCode::KEY_UPDATE_ERROR);
}

#[test]
fn an_acknowledgement_of_the_new_phase_in_the_old_one_is_a_fault() {
    let mut phases = Phases::new();
    phases.on_acked(PATH, pn(0), false).unwrap();
    phases.begin();
    phases.on_sealed(PATH, pn(8));
    phases.on_acked(PATH, pn(7), true).unwrap();
    let error = phases.on_acked(PATH, pn(8), true).unwrap_err();
    assert_eq!(error.code, ErrorCode::KEY_UPDATE_ERROR);
    phases.on_acked(PATH, pn(8), false).unwrap();
}

#[test]
fn settled_phases_know_the_next_keys_alone() {
    let mut phases = second_phase();
    assert!(phases.expire());
    assert!(!phases.expire());
    assert_eq!(phases.candidates(PATH, pn(1)), Candidates::Next);
    assert_eq!(phases.candidates(OTHER, pn(99)), Candidates::Next);
}

#[derive(Clone, Debug)]
enum Op {
    Update(usize),
    Send {
        from: usize,
        path: u32,
    },
    /// Delivers one of the packets in flight.
    Deliver(usize),
    Expire(usize),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        1 => (0usize..2).prop_map(Op::Update),
        4 => (0usize..2, 0u32..2).prop_map(|(from, path)| Op::Send { from, path }),
        6 => any::<usize>().prop_map(Op::Deliver),
        1 => (0usize..2).prop_map(Op::Expire),
    ]
}

struct Packet {
    to: usize,
    path: PathId,
    number: PacketNumber,
    phase: u64,
    /// What it acknowledges, by path.
    acks: Vec<(PathId, PacketNumber)>,
}

proptest! {
    /// Two ends that keep to the rules, whose packets arrive in any order or not at all. Keys
    /// expire only when nothing of the phase before is on its way any more, as three probe
    /// timeouts see to.
    #[test]
    fn ends_that_keep_to_the_rules_find_no_fault(ops in prop::collection::vec(op(), 1..200)) {
        let mut ends = [Phases::new(), Phases::new()];
        let mut next = [[0u64; 2]; 2];
        let mut largest: [[Option<PacketNumber>; 2]; 2] = [[None; 2]; 2];
        let mut in_flight: Vec<Packet> = Vec::new();
        for op in ops {
            match op {
                Op::Update(end) => {
                    ends[end].begin();
                }
                Op::Send { from, path } => {
                    let number = pn(next[from][path as usize]);
                    next[from][path as usize] += 1;
                    let acks: Vec<_> = [0u32, 1]
                        .into_iter()
                        .filter_map(|of| Some((PathId(of), largest[from][of as usize]?)))
                        .collect();
                    for (of, largest) in &acks {
                        ends[from].on_ack_sent(*of, *largest);
                    }
                    ends[from].on_sealed(PathId(path), number);
                    let phase = ends[from].count();
                    in_flight.push(Packet { to: 1 - from, path: PathId(path), number, phase, acks });
                }
                Op::Deliver(which) => {
                    if in_flight.is_empty() {
                        continue;
                    }
                    let packet = in_flight.swap_remove(which % in_flight.len());
                    let end = &mut ends[packet.to];
                    let old = packet.phase < end.count();
                    let (path, number) = (packet.path, packet.number);
                    if packet.phase == end.count() {
                        end.on_present(path, number);
                    } else {
                        let candidates = end.candidates(path, number);
                        let can = match candidates {
                            Candidates::Next => packet.phase == end.count() + 1,
                            Candidates::Previous => packet.phase + 1 == end.count(),
                            _ => packet.phase.abs_diff(end.count()) == 1,
                        };
                        prop_assert!(can, "{candidates:?}");
                        let opened = if old {
                            end.on_previous(path, number)
                        } else {
                            end.on_next(path, number)
                        };
                        prop_assert_eq!(opened, Ok(()));
                    }
                    let seen = &mut largest[packet.to][path.0 as usize];
                    *seen = (*seen).max(Some(number));
                    for (of, acked) in packet.acks {
                        prop_assert_eq!(ends[packet.to].on_acked(of, acked, old), Ok(()));
                    }
                }
                Op::Expire(end) => {
                    let present = ends[end].count();
                    if in_flight.iter().all(|packet| packet.phase >= present) {
                        ends[end].expire();
                    }
                }
            }
            prop_assert!(ends[0].count().abs_diff(ends[1].count()) <= 1);
        }
    }
}
