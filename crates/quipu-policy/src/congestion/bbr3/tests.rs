//! BBRv3 over a bottleneck, event by event, and under any events.

use quipu_base::Seed;

use super::*;
use crate::congestion::testing::{App, Bottleneck, Link, SIZE, Seen, Sender};

mod capacity;
mod events;
mod properties;
mod states;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn mbit(rate: u64) -> Rate {
    Rate::from_mbit_per_sec(rate)
}

fn bbr3(seed: u64) -> Bbr3 {
    Bbr3::new(10, SIZE, Tuning::DEFAULT, Seed::new(seed).stream("bbr3", 0))
}

/// 10 Mbit/s and 40 ms: 40 packets fill it.
fn short() -> Link {
    Link::new(mbit(10), ms(40))
}

/// 100 Mbit/s and 100 ms: 1,000 packets fill it.
fn long() -> Link {
    Link::new(mbit(100), ms(100))
}

/// One endless flow over a link.
fn alone(link: Link) -> Bottleneck {
    let mut net = Bottleneck::new(link);
    net.add(Box::new(bbr3(1)), App::Endless);
    net
}

fn state(net: &Bottleneck) -> &'static str {
    net.senders[0].controller.published().state
}

/// Runs until the state is reached; true if it was within that time.
fn run_to(net: &mut Bottleneck, name: &str, within: Duration) -> bool {
    let end = net.now + within;
    while state(net) != name && net.now < end {
        net.run(ms(1));
    }
    state(net) == name
}

/// The stays in a state: when each began and ended.
fn stays(sender: &Sender, name: &str) -> Vec<(Instant, Instant)> {
    let begun = sender.states.windows(2).filter(|pair| pair[0].1 == name);
    begun.map(|pair| (pair[0].0, pair[1].0)).collect()
}

fn share(rate: Rate, of: Rate) -> f64 {
    rate.bits_per_sec() as f64 / of.bits_per_sec() as f64
}
