//! What is remembered of paths that are gone, for those that come back.

use std::net::IpAddr;

use quipu_base::Duration;

/// So many networks are remembered: as many uplinks as a host may have. Our choice.
const MAX: usize = 4;

/// The last round-trip times of networks, by the hosts at both ends; what came last is last.
#[derive(Debug, Default)]
pub(crate) struct KnownRtts(Vec<((IpAddr, IpAddr), Duration)>);

impl KnownRtts {
    /// The smoothed round-trip time that a path had when it was given up.
    pub(crate) fn note(&mut self, hosts: (IpAddr, IpAddr), srtt: Duration) {
        self.0.retain(|(known, _)| *known != hosts);
        if self.0.len() >= MAX {
            self.0.remove(0);
        }
        self.0.push((hosts, srtt));
    }

    /// What a path between these hosts may be expected to have.
    pub(crate) fn get(&self, hosts: (IpAddr, IpAddr)) -> Option<Duration> {
        self.0.iter().find(|(known, _)| *known == hosts).map(|(_, srtt)| *srtt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(nth: u8) -> (IpAddr, IpAddr) {
        (IpAddr::from([10, 0, 0, nth]), IpAddr::from([10, 0, 1, 1]))
    }

    #[test]
    fn the_last_of_each_network_is_known_and_the_oldest_networks_are_forgotten() {
        let mut known = KnownRtts::default();
        assert_eq!(known.get(hosts(0)), None);
        for nth in 0..6 {
            known.note(hosts(nth), Duration::from_millis(u64::from(nth)));
        }
        known.note(hosts(2), Duration::from_millis(20));
        known.note(hosts(6), Duration::from_millis(6));
        let known: Vec<_> = (0..7).map(|nth| known.get(hosts(nth))).collect();
        let ms = |millis| Some(Duration::from_millis(millis));
        assert_eq!(known, [None, None, ms(20), None, ms(4), ms(5), ms(6)]);
    }
}
