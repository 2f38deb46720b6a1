//! Connection IDs: floods of new ones and of retirements, and paths that are never used.

use quipu_base::{Duration, PathId, Role};
use quipu_quic::wire::frame::NewConnectionId;
use quipu_quic::wire::{ConnectionId, Frame, ResetToken};
use quipu_testkit::forge::{Forge, Setup};

use crate::{assert_bounded, setup};

fn id(number: u64) -> ConnectionId {
    ConnectionId::new(&number.to_be_bytes()).expect("eight bytes")
}

fn new(path: Option<u32>, sequence: u64, retire_prior_to: u64) -> Frame<'static> {
    let mut token = [0x55; ResetToken::LENGTH];
    token[..8].copy_from_slice(&sequence.to_be_bytes());
    Frame::NewConnectionId(NewConnectionId {
        path: path.map(PathId),
        sequence,
        retire_prior_to,
        id: id(1 << 40 | sequence),
        reset_token: ResetToken::new(token),
    })
}

fn floods() -> [(Setup, Option<u32>); 2] {
    [(setup(), Some(0)), (setup().on_one_path(), None)]
}

/// "Connection ID retirement" of 2024 (CVE-2024-22189): each new ID retires the one before, and
/// nothing is acknowledged, so that the victim owes a RETIRE_CONNECTION_ID for each.
#[test]
fn new_ids_that_retire_all_before_them_are_bounded() {
    for (setup, path) in floods() {
        let mut forge = Forge::against(Role::Server, &setup);
        let work = forge.cost(|forge| {
            for sequence in 1..20_000 {
                forge.say([new(path, sequence, sequence)]);
                if forge.closed().is_some() {
                    break;
                }
            }
        });
        assert!(forge.closed().is_some(), "{work:?}");
        assert!(work.datagrams_in < 1_000, "{work:?}");
        // 256 retirements that wait, with the packets that carry them.
        assert_bounded(work, 200_000, 200_000, 2.0);
    }
}

/// The same, while everything is acknowledged: the connection may live, but holds no more.
#[test]
fn new_ids_that_are_retired_and_acknowledged_leave_nothing() {
    for (setup, path) in floods() {
        let mut forge = Forge::against(Role::Server, &setup).acknowledging();
        let work = forge.cost(|forge| {
            for sequence in 1..5_000 {
                forge.say([new(path, sequence, sequence)]);
                forge.wait(Duration::from_millis(30));
                if forge.closed().is_some() {
                    break;
                }
            }
        });
        println!("{:?}", forge.closed());
        assert_bounded(work, 16_000, 64_000, 3.0);
    }
}

/// <https://www.rfc-editor.org/rfc/rfc9000#section-5.1.1>
#[test]
fn more_ids_than_were_allowed_close() {
    for (setup, path) in floods() {
        let mut forge = Forge::against(Role::Server, &setup);
        for sequence in 1..40 {
            forge.say([new(path, sequence, 0)]);
        }
        assert!(forge.closed().is_some());
    }
}

/// One sequence number, two connection IDs.
#[test]
fn contradictory_ids_close() {
    for (setup, path) in floods() {
        let mut forge = Forge::against(Role::Server, &setup);
        for number in [7, 8] {
            let Frame::NewConnectionId(frame) = new(path, 1, 0) else { continue };
            forge.say([Frame::NewConnectionId(NewConnectionId { id: id(number), ..frame })]);
        }
        assert!(forge.closed().is_some());
    }
}

/// The forger retires what the victim issues, again and again, so that the victim issues more.
#[test]
fn ids_retired_as_soon_as_they_are_issued_leave_nothing() {
    let mut forge = Forge::against(Role::Server, &setup()).acknowledging();
    let mut retired = 0;
    let work = forge.cost(|forge| {
        for _ in 0..5_000 {
            let issued = forge.issued();
            let of_path = issued.iter().filter(|issued| issued.path == PathId(1));
            let Some(last) = of_path.map(|issued| issued.sequence).max() else { break };
            if last < retired {
                break;
            }
            let retire = Frame::RetireConnectionId { path: Some(PathId(1)), sequence: retired };
            retired += 1;
            forge.say([retire]);
            forge.wait(Duration::from_millis(30));
        }
    });
    println!("{retired} retired, {:?}", forge.closed());
    assert_bounded(work, 32_000, 64_000, 4.0);
}

/// <https://www.rfc-editor.org/rfc/rfc9000#section-19.16>
#[test]
fn retiring_what_was_never_issued_closes() {
    let mut forge = Forge::against(Role::Server, &setup());
    forge.say([Frame::RetireConnectionId { path: Some(PathId(1)), sequence: 500 }]);
    assert!(forge.closed().is_some());
}

/// The forger allows four billion paths: the victim issues IDs for as many as it uses itself.
#[test]
fn a_huge_path_limit_makes_no_more_ids() {
    for role in [Role::Server, Role::Client] {
        let mut forge = Forge::against(role, &setup()).acknowledging();
        let before = forge.issued().len();
        let work = forge.cost(|forge| {
            for maximum in (0..32).map(|bit| (1u64 << bit) as u32).chain([u32::MAX]) {
                forge.say([Frame::MaxPathId { maximum: PathId(maximum) }]);
                forge.wait(Duration::from_millis(100));
            }
        });
        println!("{:?}: {before} ids, then {}", forge.closed(), forge.issued().len());
        assert!(forge.issued().len() <= before + 64);
        assert_bounded(work, 32_000, 64_000, 4.0);
    }
}
