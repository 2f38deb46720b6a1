//! Hosts that take time.

use super::*;

/// Two hosts with these costs, joined by a link of 5 ms for each interface of the client.
fn hosts<O: Observer>(observer: O, costs: HostCosts, interfaces: u8) -> Pair<O> {
    let mut world = World::with_observer(quiet(), observer);
    let [client, server] = [(); 2].map(|()| world.add_host(Recorder::default(), &costs).unwrap());
    let links = (0..interfaces).map(|interface| {
        let here = Interface { node: client, address: envelope(interface, 0).local };
        let there = Interface { node: server, address: envelope(interface, 0).remote };
        world.add_path(here, there, &delay(5), &delay(5)).unwrap()
    });
    let links = links.collect();
    Pair { world, client, server, links }
}

fn micros(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

/// When datagrams came to a node, in µs after the 5 ms of the link.
fn came(world: &World<Recorder, impl Observer>, node: NodeId) -> Vec<u64> {
    let inbox = world.node(node).inbox.iter();
    inbox.map(|(at, ..)| at.saturating_since(millis(5)).as_micros()).collect()
}

#[test]
fn a_deadline_fires_at_the_next_tick() {
    let costs = HostCosts { timer_tick: Duration::from_millis(1), ..HostCosts::IDEAL };
    let mut pair = hosts((), costs, 1);
    pair.world.update(pair.client, |client, _| {
        client.deadline = Some(Instant::ZERO + micros(1_300));
        client.waits = [micros(400), micros(1_000), micros(1)].into();
    });
    pair.world.run_until(millis(100)).unwrap();
    // At 2 ms it wants 2.4 ms, at 3 ms it wants 4 ms, and at 4 ms it wants 4.001 ms.
    assert_eq!(pair.world.node(pair.client).fired_at, [millis(2), millis(3), millis(4), millis(5)]);
}

#[test]
fn a_deadline_is_late_by_what_chance_says_and_never_early() {
    let late = micros(50);
    let costs = HostCosts { timer_late: late, timer_late_p99: late, ..HostCosts::IDEAL };
    let mut pair = hosts((), costs, 1);
    pair.world.update(pair.client, |client, _| {
        client.deadline = Some(millis(1));
        client.waits = vec![Duration::from_millis(1); 20].into();
    });
    pair.world.run_until(millis(100)).unwrap();
    let fired = &pair.world.node(pair.client).fired_at;
    assert_eq!(fired.len(), 21);
    let gaps =
        fired.windows(2).map(|pair| (pair[1] - pair[0]).saturating_sub(Duration::from_millis(1)));
    assert!(gaps.clone().all(|gap| gap <= late));
    assert!(gaps.clone().any(|gap| gap < micros(40)) && gaps.clone().any(|gap| gap > micros(45)));
}

#[test]
fn batches_leave_one_after_the_other_at_their_costs() {
    let costs = HostCosts {
        send_batch: 2,
        send_batch_cost: micros(10),
        send_cost: micros(5),
        ..HostCosts::IDEAL
    };
    let mut pair = hosts((), costs, 1);
    pair.world.update(pair.client, |client, _| {
        client.outbox = (0..5).map(|index| (envelope(0, 0), vec![index; 100])).collect();
    });
    pair.world.run_until(millis(100)).unwrap();
    // Two batches of two for 10 + 2 × 5 µs, and one of one for 15.
    assert_eq!(came(&pair.world, pair.server), [20, 20, 40, 40, 55]);
    let order: Vec<u8> = pair.received(pair.server).iter().map(|(_, payload)| payload[0]).collect();
    assert_eq!(order, [0, 1, 2, 3, 4]);
}

#[test]
fn what_comes_while_a_host_is_busy_is_one_batch_and_is_answered_once() {
    let costs = HostCosts {
        receive_batch: 2,
        receive_batch_cost: micros(100),
        receive_cost: micros(50),
        ..HostCosts::IDEAL
    };
    let mut pair = hosts((), costs, 1);
    // They come 0, 50, 100 and 149 µs after 5 ms.
    for after in [0, 50, 100, 149] {
        pair.world.run_until(Instant::ZERO + micros(after)).unwrap();
        pair.client_sends(envelope(0, 0), b"x");
    }
    pair.world.update(pair.server, |server, _| server.echoes = true);
    pair.world.run_until(millis(100)).unwrap();
    // The first alone takes 150 µs, the next two 200, and the fourth, which a batch of two does not hold, 150.
    assert_eq!(came(&pair.world, pair.server), [150, 350, 350, 500]);
    // Answers of a batch leave at once; the client is busy with the first until 10,300 µs, then with two.
    let answers = came(&pair.world, pair.client).iter().map(|at| at - 5_000).collect::<Vec<_>>();
    assert_eq!(answers, [300, 550, 550, 700]);
}

/// Hosts that take so long to wake, or down to half of that.
fn waking(micros_of_wake: u64, others: HostCosts) -> HostCosts {
    let wake = micros(micros_of_wake);
    HostCosts { wake, wake_p99: wake, ..others }
}

#[test]
fn a_host_that_sleeps_takes_what_comes_only_once_it_is_awake() {
    let mut pair = hosts((), waking(100, HostCosts::IDEAL), 1);
    for at in 0..20 {
        pair.world.run_until(millis(at)).unwrap();
        pair.client_sends(envelope(0, 0), b"x");
    }
    pair.world.run_until(millis(100)).unwrap();
    let came = came(&pair.world, pair.server);
    let late: Vec<u64> = came.iter().zip(0..).map(|(at, sent)| at - 1_000 * sent).collect();
    assert!(late.iter().all(|late| (50..=100).contains(late)), "{late:?}");
    assert!(late.iter().any(|late| *late < 100) && late.contains(&100), "{late:?}");
}

#[test]
fn a_host_wakes_once_for_all_that_comes_meanwhile_and_not_while_it_is_busy() {
    let costs = HostCosts { receive_batch: 2, receive_cost: micros(200), ..HostCosts::IDEAL };
    let mut pair = hosts((), waking(100, costs), 1);
    // They come 0, 10, 440 and 900 µs after 5 ms.
    for after in [0, 10, 440, 900] {
        pair.world.run_until(Instant::ZERO + micros(after)).unwrap();
        pair.client_sends(envelope(0, 0), b"x");
    }
    pair.world.run_until(millis(100)).unwrap();
    let came = came(&pair.world, pair.server);
    // It wakes for the first after 50 to 100 µs and takes both; the third comes while it takes those.
    assert!((450..=500).contains(&came[0]) && came[1] == came[0], "{came:?}");
    assert_eq!(came[2], came[0] + 200, "it is awake");
    assert!((1_150..=1_200).contains(&came[3]), "it sleeps again: {came:?}");
}

#[test]
fn a_deadline_has_a_host_awake_for_what_came() {
    let mut pair = hosts((), waking(1_000, HostCosts::IDEAL), 1);
    pair.world.update(pair.server, |server, _| server.deadline = Some(millis(5) + micros(200)));
    pair.client_sends(envelope(0, 0), b"x");
    pair.world.run_until(millis(100)).unwrap();
    assert_eq!(came(&pair.world, pair.server), [200]);
    assert_eq!(pair.world.node(pair.server).fired_at, [millis(5) + micros(200)]);
}

#[test]
fn a_host_that_is_busy_sending_receives_later() {
    let costs = HostCosts { send_cost: micros(1_000), ..HostCosts::IDEAL };
    let mut pair = hosts((), costs, 1);
    pair.world.update(pair.client, |client, _| {
        client.outbox = (0..9).map(|_| (envelope(0, 0), vec![0; 100])).collect();
    });
    let answer = (back(envelope(0, 0)), b"now".to_vec());
    pair.world.update(pair.server, |server, _| server.outbox.push_back(answer));
    pair.world.run_until(millis(100)).unwrap();
    // The answer comes at 6 ms, while the client has 9 ms to send.
    assert_eq!(came(&pair.world, pair.client), [4_000]);
}

/// Sends over each of its addresses whatever its sockets take, of 1,222 B each.
struct Filler {
    left: [u32; 2],
    unblocked_at: Vec<Instant>,
    received: Vec<Envelope>,
}

impl Node for Filler {
    fn handle_datagram(&mut self, _now: Instant, envelope: &Envelope, _payload: &mut [u8]) {
        self.received.push(*envelope);
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn handle_unblocked(&mut self, now: Instant) {
        self.unblocked_at.push(now);
    }

    fn poll_transmit(&mut self, _now: Instant, out: &mut Outgoing<'_>) {
        for (interface, left) in (0..).zip(&mut self.left) {
            while *left > 0 && !out.is_blocked(envelope(interface, 0).local) {
                *left -= 1;
                out.send(&envelope(interface, 0), 1_222);
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}

#[test]
fn a_full_queue_blocks_its_own_path_alone_and_is_counted() {
    let filler = |left| Filler { left, unblocked_at: Vec::new(), received: Vec::new() };
    // A datagram takes 1 ms; five fill the socket, and two of those are half of it or less.
    let costs = HostCosts {
        socket_buffer: Some(Bytes(6_250)),
        interface_rate: Some(Rate::from_mbit_per_sec(10)),
        ..HostCosts::IDEAL
    };
    let mut world = World::new(quiet());
    let client = world.add_host(filler([12, 4]), &costs).unwrap();
    let server = world.add_node(filler([0, 0]));
    for interface in 0..2 {
        let here = Interface { node: client, address: envelope(interface, 0).local };
        let there = Interface { node: server, address: envelope(interface, 0).remote };
        world.add_path(here, there, &delay(5), &delay(5)).unwrap();
    }
    world.run_until(Instant::ZERO).unwrap();
    assert_eq!(world.node(client).left, [7, 0], "the second path is not blocked");
    assert_eq!(world.stats().full_sockets, 1);
    world.run_until(millis(100)).unwrap();
    // Three have left at 3 ms; three more fill it again, of five, until three of those have left.
    assert_eq!(world.node(client).unblocked_at, [millis(3), millis(6), millis(9)]);
    assert_eq!(world.stats().full_sockets, 3);
    let received = &world.node(server).received;
    let of = |interface| {
        let remote = envelope(interface, 0).local;
        received.iter().filter(|envelope| envelope.remote == remote).count()
    };
    assert_eq!([of(0), of(1)], [12, 4]);
}

#[test]
fn a_host_that_costs_nothing_is_none() {
    let run = |world: fn(WorldConfig, EventHash) -> Pair<EventHash>| {
        let mut pair = world(WorldConfig::new(Seed::new(1)), EventHash::with_payload());
        pair.world.update(pair.server, |server, _| server.echoes = true);
        for index in 0..50 {
            pair.client_sends(envelope(0, 0), &[index; 300]);
        }
        pair.world.run_until(millis(100)).unwrap();
        (pair.world.observer().value(), pair.world.stats())
    };
    let plain = run(|config, hash| pair(config, hash, &[delay(5)]));
    let hosted = run(|config, hash| {
        let mut world = World::with_observer(config, hash);
        let [client, server] =
            [(); 2].map(|()| world.add_host(Recorder::default(), &HostCosts::IDEAL).unwrap());
        let here = Interface { node: client, address: envelope(0, 0).local };
        let there = Interface { node: server, address: envelope(0, 0).remote };
        let links = vec![world.add_path(here, there, &delay(5), &delay(5)).unwrap()];
        Pair { world, client, server, links }
    });
    assert_eq!(plain, hosted);
}

#[test]
fn costs_that_no_host_has_make_none() {
    let mut world: World<Recorder> = World::new(quiet());
    let costs = HostCosts { receive_batch: 0, ..HostCosts::IDEAL };
    let refused = world.add_host(Recorder::default(), &costs).unwrap_err();
    assert_eq!(refused.to_string(), "receive_batch is 0; expected 1 or more");
}

#[test]
fn a_datagram_that_no_route_takes_is_dropped_at_once() {
    let mut pair = hosts((), HostCosts { send_cost: micros(10), ..HostCosts::IDEAL }, 1);
    pair.client_sends(envelope(7, 0), b"nowhere");
    pair.client_sends(envelope(0, 0), b"somewhere");
    pair.world.run_until(millis(100)).unwrap();
    let stats = pair.world.stats();
    assert_eq!((stats.sent, stats.no_route, stats.received), (2, 1, 1));
}

fn any_costs() -> impl Strategy<Value = HostCosts> {
    let time = || 0u64..2_000;
    let times = [time().boxed(), time().boxed(), time().boxed(), time().boxed(), time().boxed()];
    let sizes = (proptest::option::of(1u64..20_000), proptest::option::of(1u64..100));
    (times, 1u32..10, 1u32..10, 0u64..50, sizes).prop_map(
        |([tick, late, per_batch, per_datagram, received], sends, receives, more, sizes)| {
            HostCosts {
                timer_tick: micros(tick),
                timer_late: micros(late),
                timer_late_p99: micros(late + more),
                wake: micros(late / 2),
                wake_p99: micros(late / 2 + more),
                send_batch: sends,
                send_batch_cost: micros(per_batch),
                send_cost: micros(per_datagram),
                receive_batch: receives,
                receive_batch_cost: micros(more),
                receive_cost: micros(received),
                socket_buffer: sizes.0.map(Bytes),
                interface_rate: sizes.1.map(Rate::from_mbit_per_sec),
                ..HostCosts::IDEAL
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Nor does anything come twice, or before it can.
    #[test]
    fn a_host_loses_nothing_and_keeps_the_order_of_each_path(
        costs in any_costs(),
        sends in proptest::collection::vec((0u64..3_000, 0u8..3, 0u8..3, 1usize..1_400), 1..60),
    ) {
        let run = || {
            let mut pair = hosts(EventHash::with_payload(), costs, 3);
            pair.world.update(pair.server, |server, _| server.echoes = true);
            let mut now = Instant::ZERO;
            for (number, &(wait, interface, ecn, len)) in (0..).zip(&sends) {
                // Many of one instant, so that there are batches.
                now += micros(if wait < 2_000 { 0 } else { wait });
                pair.world.run_until(now).unwrap();
                let mut payload = vec![interface; len];
                payload[0] = number;
                pair.client_sends(envelope(interface, ecn), &payload);
            }
            pair.world.run_until(millis(10_000)).unwrap();
            pair
        };
        let pair = run();
        prop_assert_eq!(pair.world.observer().value(), run().world.observer().value());
        for interface in 0..3 {
            let sent = (0u8..).zip(&sends).filter(|(_, send)| send.1 == interface);
            let sent: Vec<(u8, u8, usize)> =
                sent.map(|(number, send)| (number, send.2, send.3)).collect();
            let ours = envelope(interface, 0).local;
            for node in [pair.client, pair.server] {
                let inbox = pair.world.node(node).inbox.iter();
                let came = inbox.filter(|(_, from, _)| from.local == ours || from.remote == ours);
                let came: Vec<(u8, u8, usize)> =
                    came.map(|(_, from, payload)| (payload[0], from.ecn, payload.len())).collect();
                prop_assert_eq!(&came, &sent);
            }
        }
        let stats = pair.world.stats();
        prop_assert_eq!((stats.sent, stats.received), (2 * sends.len() as u64, stats.sent));
        prop_assert!(pair.world.node(pair.server).inbox.iter().all(|(at, ..)| *at >= millis(5)));
    }
}
