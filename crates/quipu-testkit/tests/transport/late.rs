//! Timers that are served late, as by a host that slept.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quipu_base::{Role, StreamDirection};
use quipu_policy::{Ask, Decision, Event, Joint, Notes, Policies, View};
use quipu_testkit::forge::{Pair, Setup};
use quipu_testkit::plain_policies;

use crate::setup::ms;

/// Decides as another, but rests when it is told to.
struct Resting {
    inner: Box<dyn Joint>,
    rests: Arc<AtomicBool>,
}

impl Joint for Resting {
    fn decide(&mut self, ask: Ask, view: &View<'_>, notes: &mut Notes) -> Decision {
        if self.rests.load(Ordering::Relaxed) {
            return Decision::Idle;
        }
        self.inner.decide(ask, view, notes)
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        self.inner.on_event(event, view);
    }
}

/// Of three packets the second alone arrives: the first is lost by time, and the probe timeout of the
/// third passes meanwhile. There is room to send the first one's bytes again, but the policy rests.
#[test]
fn a_late_loss_timer_serves_the_probe_timeout_if_nothing_goes() {
    let rests = Arc::new(AtomicBool::new(false));
    let policies = {
        let (plain, rests) = (plain_policies(), Arc::clone(&rests));
        Arc::new(move || {
            let Policies { joint: inner, .. } = plain();
            let joint = Box::new(Resting { inner, rests: Arc::clone(&rests) });
            Policies { joint, ..plain() }
        })
    };
    let setup = Setup { policies, ..Setup::default() }.on_one_path();
    let mut pair = Pair::connected(&setup, ms(10));
    let mut sent = 0;
    pair.intercept(move |_, delay, flight| {
        sent += u32::from(flight.from.is_client());
        let is_lost = flight.from.is_client() && sent != 2;
        if is_lost { Vec::new() } else { vec![(delay, flight)] }
    });
    let written_at = pair.now();
    pair.act(Role::Client, |client, now| {
        client.act(|connection| {
            let stream = connection.open_stream(now, StreamDirection::Bidirectional).unwrap();
            connection.write(now, stream, vec![1; 4_000].into()).unwrap();
        });
    });
    pair.run(ms(21));
    let due = pair.client().deadline().unwrap();
    assert!(due > pair.now() && due < written_at + ms(25), "the loss timer runs: {due}");

    rests.store(true, Ordering::Relaxed);
    let late = pair.now() + ms(200);
    let (mut client, ..) = pair.into_parts();
    client.wake(late);
    let probes = client.run(late);
    assert_eq!(probes.len(), 2, "probes of the third packet");
    let counters = client.connection().unwrap().path_counters()[0].1;
    assert_eq!((counters.packets_lost, counters.probe_timeouts), (1, 1));
    assert!(client.deadline().unwrap() > late);
}
