//! How long a host sleeps on when a datagram has come.

use quipu_base::{Duration, Random};

use super::HostCosts;
use super::lateness::Lateness;

/// What a host that sleeps takes to begin with a datagram: its process is woken, gets a processor, and hands over
/// from task to task.
///
/// Evenly spread from half of `wake` to `wake` for one half of all, from there to `wake_p99` up to the 99th percentile,
/// and on at that slope. Our choice, after what is measured: no process wakes at once.
#[derive(Debug)]
pub struct HostWake {
    /// `None` if it takes no time.
    lateness: Option<Lateness>,
}

impl HostWake {
    /// That of a host with these `costs`. `random` is used for nothing else.
    pub fn new(costs: &HostCosts, random: Random) -> Self {
        let HostCosts { wake, wake_p99, .. } = *costs;
        let least = Duration::from_nanos(wake.as_nanos() / 2);
        let lateness = (!wake_p99.is_zero()).then(|| Lateness::new(least, wake, wake_p99, random));
        HostWake { lateness }
    }

    /// How long it takes this time. Takes one number of the random stream, unless it never takes any time.
    pub fn delay(&mut self) -> Duration {
        self.lateness.as_mut().map_or(Duration::ZERO, Lateness::draw)
    }
}

#[cfg(test)]
mod tests {
    use quipu_base::Seed;

    use super::*;

    #[test]
    fn a_host_takes_half_of_its_median_at_least_and_an_ideal_one_nothing() {
        let random = || Seed::new(1).stream("host.wake", 0);
        let [wake, wake_p99] = [80, 300].map(Duration::from_micros);
        let mut host = HostWake::new(&HostCosts { wake, wake_p99, ..HostCosts::IDEAL }, random());
        let delays: Vec<Duration> = (0..1_000).map(|_| host.delay()).collect();
        assert!(delays.iter().all(|delay| *delay >= Duration::from_micros(40)));
        assert!(delays.iter().any(|delay| *delay > wake));
        assert_eq!(HostWake::new(&HostCosts::IDEAL, random()).delay(), Duration::ZERO);
    }
}
