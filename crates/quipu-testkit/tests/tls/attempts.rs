//! A client that hears nothing begins again by another route, with what it wrote early.

use quipu_base::{Duration, Role};
use quipu_quic::Route;
use quipu_quic::tls::EarlyData;
use quipu_testkit::forge::{End, Setup};
use quipu_testkit::{client_address, server_address};

use crate::DELAY;
use crate::visit::{Visit, after, each, early};

/// Two ways to the server, of which the first is dead from the start.
#[test]
fn a_client_that_hears_nothing_begins_again_by_another_route() {
    each(&early(), |setup, forgetful| {
        for is_forgotten in [false, true] {
            // Each attempt shows a ticket of its own.
            Visit::first(setup);
            Visit::first(setup);
            let tls = if is_forgotten { forgetful.clone() } else { setup.tls.clone() };
            let mut visit = Visit::new(&Setup { tls, ..setup.clone() }, 3);
            let (dead, other) = (client_address(0), client_address(1));
            visit.intercept(move |_, takes, flight| {
                let ours =
                    if flight.from.is_client() { flight.route.local } else { flight.route.remote };
                if ours == dead { Vec::new() } else { vec![(takes, flight)] }
            });
            let wait = Duration::from_millis(250);
            visit.pair.run(wait);
            assert_eq!(visit.outcomes(Role::Client), [EarlyData::Offered]);
            let there = Route::new(other, server_address());
            let begin = |visit: &mut Visit| {
                let begin =
                    |end: &mut End, now| end.act(|connection| connection.begin_by(now, there));
                visit.pair.act(Role::Client, begin)
            };
            assert_eq!(begin(&mut visit), Some(true));
            visit.run();
            if is_forgotten {
                visit.assert_rejected();
            } else {
                visit.assert_accepted();
                assert_eq!(visit.server.borrow().first, Some((after(wait + DELAY), true)));
            }
            assert_eq!(begin(&mut visit), Some(false), "something came");
            let connection = visit.pair.client().connection().expect("it is open");
            assert_eq!(
                connection.path_samples().map(|path| path.route).collect::<Vec<_>>(),
                [there]
            );
        }
    });
}

/// What an attempt is answered after another began is read no more, and harms nothing.
#[test]
fn a_late_answer_to_the_attempt_before_is_ignored() {
    each(&early(), |setup, _| {
        Visit::first(setup);
        Visit::first(setup);
        let mut visit = Visit::new(setup, 3);
        let slow = client_address(0);
        visit.intercept(move |_, takes, flight| {
            let is_slow = !flight.from.is_client() && flight.route.remote == slow;
            let more = if is_slow { Duration::from_millis(255) } else { Duration::ZERO };
            vec![(takes + more, flight)]
        });
        visit.pair.run(Duration::from_millis(250));
        let there = Route::new(client_address(1), server_address());
        let begun = visit
            .pair
            .act(Role::Client, |end, now| end.act(|connection| connection.begin_by(now, there)));
        assert_eq!(begun, Some(true));
        visit.pair.run(Duration::from_secs(3));
        assert_eq!(visit.close_reason(Role::Client), None);
        // To the server these are two connections, the second of which goes on; nobody answers requests there.
        let connected = visit.client.borrow().connected.expect("it is there");
        assert_eq!(connected, after(Duration::from_millis(250) + DELAY.saturating_mul(2)));
        let connection = visit.pair.client().connection().expect("it is open");
        assert!(connection.path_samples().map(|path| path.route).eq([there]));
    });
}
