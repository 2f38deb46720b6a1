//! Explicit congestion notification. <https://www.rfc-editor.org/rfc/rfc9000#section-13.4>

use quipu_base::{Instant, Role};
use quipu_quic::TransportConfig;
use quipu_sim::{Envelope, Interface, Node, Outgoing, World, WorldConfig};
use quipu_testkit::{NodeConfig, Plan, QuicNode, Scenario, Tls, client_address, server_address};

use crate::setup::{at, link};

/// The codepoint ECT(0).
const ECT_0: u8 = 2;

/// A node on whose way out something changes marks.
struct Changed {
    node: QuicNode,
    change: fn(Instant, u8) -> u8,
    /// When datagrams left with a mark.
    marked: Vec<Instant>,
}

impl Node for Changed {
    fn handle_datagram(&mut self, now: Instant, envelope: &Envelope, payload: &mut [u8]) {
        self.node.handle_datagram(now, envelope, payload);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.node.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Outgoing<'_>) {
        self.node.poll_transmit(now, out);
        let Changed { change, marked, .. } = self;
        out.filter(|envelope, _| {
            if envelope.ecn == ECT_0 {
                marked.push(now);
            }
            envelope.ecn = change(now, envelope.ecn);
            true
        });
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.node.poll_timeout()
    }
}

/// A download of five minutes, whose server's marks change so: how many datagrams left with a mark in
/// each second.
fn marked_per_second(change: fn(Instant, u8) -> u8) -> Vec<usize> {
    let link = link(1, 20);
    let scenario = Scenario::new(Plan::download(80_000_000), vec![link.clone()]);
    let mut world = World::new(WorldConfig::new(scenario.seed));
    let ends = [Role::Client, Role::Server].map(|role| {
        let transport = TransportConfig { ecn: true, ..TransportConfig::default() };
        let config = NodeConfig::new(&scenario, role, Tls::Null { chain: 3000 });
        let node = QuicNode::new(NodeConfig { transport, ..config });
        let change = if role.is_client() { |_, ecn| ecn } else { change };
        world.add_node(Changed { node, change, marked: Vec::new() })
    });
    let here = Interface { node: ends[0], address: client_address(0) };
    let there = Interface { node: ends[1], address: server_address() };
    world.add_path(here, there, &link, &link).unwrap();
    world.run_until(at(300_000)).unwrap();
    let marked = &world.node(ends[1]).marked;
    let second = |second| {
        let in_it = |left: &&Instant| left.as_nanos() / 1_000_000_000 == second;
        marked.iter().filter(in_it).count()
    };
    (0..300).map(second).collect()
}

#[test]
fn a_path_that_carries_marks_is_marked() {
    let marked = marked_per_second(|_, ecn| ecn);
    assert!(marked[1..].iter().all(|count| *count > 20), "{marked:?}");
}

#[test]
fn a_path_that_bleaches_is_tested_after_one_three_and_so_many_minutes() {
    for lost in [0, 1] {
        let marked = marked_per_second(match lost {
            0 => |_, _| 0,
            _ => |_, ecn| if ecn == ECT_0 { 1 } else { ecn },
        });
        let tests: Vec<_> =
            marked.iter().enumerate().filter(|(_, count)| **count > 0).map(|(at, _)| at).collect();
        assert_eq!(tests.len(), 3, "{marked:?}");
        assert_eq!(tests[0], 0);
        assert!((60..63).contains(&tests[1]) && (180..185).contains(&tests[2]), "{tests:?}");
        assert!(marked.iter().all(|count| *count <= 10));
    }
}

#[test]
fn a_path_that_bleaches_for_a_while_is_marked_again() {
    let marked =
        marked_per_second(|now, ecn| if (at(10_000)..at(30_000)).contains(&now) { 0 } else { ecn });
    assert!(marked[1..10].iter().all(|count| *count > 20), "{marked:?}");
    assert!(marked[12..70].iter().all(|count| *count == 0), "{marked:?}");
    assert!(marked[75..].iter().all(|count| *count > 20), "{marked:?}");
}
