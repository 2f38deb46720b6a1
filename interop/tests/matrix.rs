//! What a protocol of RFC 9000 and RFC 10069 has to do, with each foreign engine as its peer and in
//! both roles. One short function a case: [`common::matrix`] does the rest.
//!
//! A test that is ignored waits for what its reason names.

mod common;

use std::net::SocketAddr;
use std::sync::Arc;

use common::matrix::{BOTH, Cell, Engine, NOQ, each};
use common::{MEGABYTES, path};
use quipu_base::{Bytes, Duration, PathId, Role, Seed};
use quipu_interop::SharedTokens;
use quipu_quic::token_store::TokenCache;
use quipu_testkit::{Action, Failure, Outcome, Plan, preferred_address};

/// A second and a half into a transfer that takes more than four: in the midst of it.
const MIDST: u64 = 1_500;

/// Of a round trip of 40 ms with a full queue of as much, and what the acknowledgements may wait.
const PROBE_TIMEOUT: Duration = Duration::from_millis(80 + 4 * 20 + 25);

/// Before there is a sample: <https://www.rfc-editor.org/rfc/rfc9002#section-6.2.2>.
const FIRST_PROBE_TIMEOUT: Duration = Duration::from_millis(999);

/// Of `path(20, 20)` while nothing waits.
const ROUND_TRIP: Duration = Duration::from_millis(40);

/// Where an [`Outcome`] has what the end of `role` tells.
fn end_of(role: Role) -> usize {
    usize::from(!role.is_client())
}

#[test]
fn ten_megabytes_each_way_arrive() {
    each(BOTH, |cell| {
        cell.transfer().run();
    });
}

#[test]
fn keys_are_updated_by_either_end() {
    each(BOTH, |cell| {
        // Foreign engines do not tell of updates. Each makes one of itself, within its first thousand
        // packets and so before the midst.
        let end = end_of(cell.ours);
        let unasked = cell.transfer().run().key_updates[end];
        assert_eq!(unasked, 1);
        for role in [Role::Client, Role::Server] {
            let outcome = cell.transfer().act(role, MIDST, Action::UpdateKeys).run();
            assert_eq!(outcome.key_updates[end], unasked + 1, "asked of the {role:?}");
        }
    });
}

#[test]
fn a_server_asks_for_another_try_which_costs_a_round_trip() {
    each(BOTH, |cell| {
        let finished_at = |retry| {
            let mut case = cell.case(Plan::both_ways(1_000), vec![path(20, 20)]);
            (case.ours.retry, case.theirs.retry) = (retry, retry);
            case.run().finished_at
        };
        let cost = finished_at(true).saturating_since(finished_at(false));
        assert!(cost.abs_diff(ROUND_TRIP) < Duration::from_millis(5), "{cost} more");
        let mut case = cell.transfer();
        (case.ours.retry, case.theirs.retry) = (true, true);
        case.run();
    });
}

/// Of a server that asks for another try, a client that has a token of it is let in at once.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-8.1.3>
#[test]
fn a_token_of_an_earlier_connection_saves_a_round_trip() {
    each(BOTH, |cell| {
        let (ours, theirs) = (Arc::new(TokenCache::default()), SharedTokens::default());
        let plan = Plan::both_ways(1_000);
        let [first, second] = [(); 2].map(|()| {
            let mut case = cell.case(plan, vec![path(20, 20)]);
            (case.ours.retry, case.theirs.retry) = (true, true);
            case.ours.tokens = Some(ours.clone());
            case.theirs.tokens = Some(theirs.clone());
            case.run().finished_at
        });
        let saved = first.saturating_since(second);
        assert!(saved.abs_diff(ROUND_TRIP) < Duration::from_millis(5), "{saved} saved");
    });
}

#[test]
fn a_session_is_resumed_while_the_server_knows_it() {
    each(BOTH, |cell| {
        let resumed = || cell.transfer().run().resumed[end_of(cell.ours)];
        let first_three = [(); 3].map(|()| resumed());
        assert_eq!(first_three, [Some(false), Some(true), Some(true)]);
        cell.forget_sessions();
        assert_eq!(resumed(), Some(false));
    });
}

/// A download whose request goes in 0-RTT if the client remembers the server.
fn early(cell: &Cell, download: u64) -> Outcome {
    let plan = Plan { upload: Bytes(1_000), ..Plan::download(download) };
    cell.case(plan, vec![path(20, 20)]).run()
}

#[test]
fn early_data_save_a_round_trip() {
    each(BOTH, |cell| {
        cell.offer_early_data();
        // Few enough to be sent at once, to an address that is not validated.
        let (first, second) = (early(cell, 1_000), early(cell, 1_000));
        assert_eq!([first.early_data, second.early_data], [None, Some(true)]);
        let saved = first.finished_at.saturating_since(second.finished_at);
        // Of 40 ms; a server of noq paces its answer by a round trip that it has not measured yet.
        let paced = cell.engine == Engine::Noq && cell.ours == Role::Client;
        let least = Duration::from_millis(if paced { 15 } else { 35 });
        assert!(saved >= least, "{saved} saved");
        // The first connection left two tickets.
        assert_eq!(early(cell, MEGABYTES).early_data, Some(true));
    });
}

#[test]
fn early_data_that_are_refused_are_not_lost() {
    each(BOTH, |cell| {
        cell.offer_early_data();
        early(cell, MEGABYTES);
        cell.forget_sessions();
        assert_eq!(early(cell, MEGABYTES).early_data, Some(false));
    });
}

/// <https://www.rfc-editor.org/rfc/rfc9000#section-9>
#[test]
fn a_client_is_rebound_at_any_instant() {
    each(BOTH, |cell| {
        for round in 0..10 {
            let at = 50 + Seed::new(7).number("rebound at", round) % 4_000;
            let elsewhere = round % 2 == 1;
            let outcome = cell.transfer().rebind(0, at, elsewhere).run();
            let stall = outcome.longest_stalls.into_iter().max();
            // A server of noq whose client has another address may answer none of our probes before
            // one of its own, which it sends without having measured the new path.
            let silent = cell.engine == Engine::Noq && cell.ours == Role::Client && elsewhere;
            let first = if silent { FIRST_PROBE_TIMEOUT } else { Duration::ZERO };
            let most = PROBE_TIMEOUT.saturating_mul(3) + first;
            assert!(stall < Some(most), "rebound at {at} ms: {stall:?}");
        }
    });
}

#[test]
fn a_client_moves_to_another_of_its_addresses() {
    each(BOTH, |cell| {
        let plan = Plan::both_ways(10 * MEGABYTES);
        let mut case = cell.case(plan, vec![path(20, 20), path(20, 20)]);
        // One path only: the second address is for the move.
        case.ours.transport.max_paths = 1;
        let outcome = case.act(Role::Client, MIDST, Action::Migrate(1)).run();
        let (up, down) = outcome.links[1];
        assert!(up.delivered.bytes > Bytes(4 * MEGABYTES), "{up:?}");
        assert!(down.delivered.bytes > Bytes(4 * MEGABYTES), "{down:?}");
    });
}

/// Foreign clients do not move, but go on. <https://www.rfc-editor.org/rfc/rfc9000#section-9.6>
#[test]
fn a_client_moves_to_the_address_that_its_server_prefers() {
    each(BOTH, |cell| {
        let mut case = cell.transfer();
        case.scenario.preferred = Some(path(20, 20));
        if let (Role::Server, SocketAddr::V4(address)) = (cell.ours, preferred_address()) {
            case.ours.transport.preferred_address.ipv4 = Some(address);
        }
        let outcome = case.run();
        let [(up, down), (up_there, _)] = outcome.links[..] else {
            panic!("a path, and the way to the other address")
        };
        let moves = cell.ours.is_client() && cell.engine == Engine::Quinn;
        let up = if moves { up_there } else { up };
        // The server of quinn goes on sending from the address of the handshake.
        for link in [up, down] {
            assert!(link.delivered.bytes > Bytes(9 * MEGABYTES), "{link:?}");
        }
        // That of noq drops what is sent to another of its addresses, also to the one that it prefers: the
        // client stays.
        assert_eq!(up_there.delivered.datagrams > 0, cell.ours.is_client(), "{up_there:?}");
    });
}

/// A server that was restarted knows nothing of its connections but can still reset them.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-10.3>
#[test]
fn a_client_of_a_restarted_server_is_told() {
    each(BOTH, |cell| {
        let mut case = cell.transfer();
        case.ours.resets = true;
        case.scenario.limit = Duration::from_secs(4);
        let failure = case.act(Role::Server, MIDST, Action::Restart).try_run().unwrap_err();
        let lost = matches!(failure, Failure::ConnectionLost { role: Role::Client, .. });
        assert!(lost, "{failure}");
    });
}

/// What is left of 1,280 bytes, the least MTU of IPv6, behind its headers and those of IPv4; of a tunnel
/// that leaves 1,400 bytes; and of Ethernet's 1,500 bytes behind headers of IPv6 and IPv4.
const PAYLOADS: [u16; 5] = [1_232, 1_252, 1_372, 1_452, 1_472];

/// <https://www.rfc-editor.org/rfc/rfc8899#section-5.3>
#[test]
fn the_largest_datagram_that_a_path_carries_is_found() {
    each(BOTH, |cell| {
        for most in PAYLOADS {
            let sizes = cell.transfer().limit_size(0, most).run().datagram_sizes;
            assert_eq!(sizes[end_of(cell.ours)], Some(most));
            // Foreign engines stop some bytes below, and at 1,452.
            let theirs = sizes[end_of(cell.ours.peer())];
            assert!(Some(1_200) < theirs && theirs <= Some(most), "{theirs:?} of {most}");
        }
    });
}

/// All that is in flight is lost. Of the two datagrams of a probe timeout one is small enough to pass, and
/// its acknowledgement shows the rest: the receiver does not have to wait for a second timeout.
/// <https://www.rfc-editor.org/rfc/rfc8899#section-4.4>
#[test]
fn a_path_that_narrows_in_the_midst_stalls_ours_for_one_probe_timeout() {
    each(BOTH, |cell| {
        for step in 0..5 {
            let size = 10 * MEGABYTES;
            let plan =
                if cell.ours.is_client() { Plan::upload(size) } else { Plan::download(size) };
            let case = cell.case(plan, vec![path(20, 20)]);
            let outcome = case.limit_size(MIDST + 7 * step, NARROW).run();
            let stall = outcome.longest_stalls[end_of(cell.ours.peer())];
            assert!(stall < PROBE_TIMEOUT.saturating_mul(2), "step {step}: {stall}");
            assert!(fits_narrow(outcome.datagram_sizes[end_of(cell.ours)]), "{outcome:?}");
        }
    });
}

/// The datagrams that are lost carry acknowledgements, too.
#[test]
fn a_path_that_narrows_in_the_midst_of_both_directions_goes_on() {
    each(BOTH, |cell| {
        for step in 0..5 {
            let outcome = cell.transfer().limit_size(MIDST + 7 * step, NARROW).run();
            assert!(fits_narrow(outcome.datagram_sizes[end_of(cell.ours)]), "{outcome:?}");
        }
    });
}

/// What a path carries that narrows in the midst.
const NARROW: u16 = 1_280;

/// No size that is worth another probe is left between this one and what the path carries.
fn fits_narrow(size: Option<u16>) -> bool {
    size.is_some_and(|size| (NARROW - 20..=NARROW).contains(&size))
}

/// RFC 10069: two paths, of which one is rebound and then the other abandoned, by either end.
#[test]
fn two_paths_of_which_one_is_rebound_and_one_abandoned() {
    each(NOQ, |cell| {
        for abandoning in [Role::Client, Role::Server] {
            let plan = Plan::both_ways(20 * MEGABYTES);
            let case = cell.case(plan, vec![path(20, 20), path(20, 10)]);
            let case = case.rebind(1, MIDST, true);
            let outcome = case.act(abandoning, 2_500, Action::Abandon(PathId(0))).run();
            assert_eq!(outcome.client_paths, 1);
            let (up, down) = outcome.links[1];
            for link in [up, down] {
                assert!(link.delivered.bytes > Bytes(5 * MEGABYTES), "{link:?}");
            }
        }
    });
}
