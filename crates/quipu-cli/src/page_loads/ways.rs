//! The uplinks that are compared, each a path.

use std::net::{IpAddr, SocketAddr};

use quipu_tokio::{PathInfo, Uplink};

/// What the only path is called where the host's routes decide.
const DEFAULT: &str = "default";

/// An uplink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    /// Its interface, unless another uplink has the same or its address was given, else its address: as `--via` takes
    /// it, too.
    pub(crate) name: String,
    interface: Option<String>,
    /// `None`: as the host's routes say.
    address: Option<IpAddr>,
}

/// The uplinks that lead to a server, and those of its addresses that they lead to: all of one family. `vias` is how
/// the uplinks were given.
pub(crate) fn ways(
    uplinks: &[Uplink],
    vias: &[String],
    addresses: Vec<SocketAddr>,
) -> (Vec<Way>, Vec<SocketAddr>) {
    if uplinks.is_empty() {
        let only = Way { name: DEFAULT.to_owned(), interface: None, address: None };
        return (vec![only], addresses);
    }
    let same = |uplink: &Uplink, at: &SocketAddr| uplink.address.is_ipv4() == at.is_ipv4();
    let reached = addresses.iter().find(|at| uplinks.iter().any(|uplink| same(uplink, at)));
    // Where nothing leads, connecting tells why.
    let Some(family) = reached.or(addresses.first()).copied() else {
        return (Vec::new(), addresses);
    };
    let of_family: Vec<&Uplink> =
        uplinks.iter().filter(|uplink| same(uplink, &family) || reached.is_none()).collect();
    let way = |uplink: &&Uplink| {
        let alone = |name: &&String| {
            let others = of_family.iter().filter(|other| other.interface.as_ref() == Some(*name));
            others.count() == 1
        };
        let is_given = vias.iter().any(|via| via.parse() == Ok(uplink.address));
        let interface = uplink.interface.as_ref().filter(alone).filter(|_| !is_given).cloned();
        let name = interface.clone().unwrap_or_else(|| uplink.address.to_string());
        Way { name, interface, address: Some(uplink.address) }
    };
    let ways = of_family.iter().map(way).collect();
    (ways, addresses.into_iter().filter(|at| at.is_ipv4() == family.is_ipv4()).collect())
}

impl Way {
    /// Whether a path leaves by it. An interface stays the same when its address changes.
    pub(super) fn has(&self, path: &PathInfo) -> bool {
        self.leads(path.interface.as_deref(), path.route.local.ip())
    }

    fn leads(&self, interface: Option<&str>, local: IpAddr) -> bool {
        match (&self.interface, self.address) {
            (Some(name), _) => interface == Some(name),
            (None, Some(address)) => address == local,
            (None, None) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use quipu_tokio::uplink::Usable;

    use super::*;

    fn uplink(interface: Option<&str>, address: &str) -> Uplink {
        let interface = interface.map(str::to_owned);
        Uplink { interface, index: None, address: address.parse().unwrap(), usable: Usable::Yes }
    }

    fn names(uplinks: &[Uplink], addresses: &[&str]) -> (Vec<String>, Vec<String>) {
        let addresses = addresses.iter().map(|it| it.parse().unwrap()).collect();
        let vias = ["auto", "192.0.2.8"].map(str::to_owned);
        let (ways, addresses) = ways(uplinks, &vias, addresses);
        let names = ways.into_iter().map(|way| way.name).collect();
        (names, addresses.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn uplinks_of_the_servers_family_are_called_by_interface_or_address() {
        let wlan = [uplink(Some("wlan0"), "192.0.2.7"), uplink(Some("wlan0"), "2001:db8::7")];
        let wwan = uplink(Some("wwan0"), "198.51.100.7");
        let server = ["[2001:db8::1]:4433", "203.0.113.1:4433"];
        let all = [wlan[0].clone(), wlan[1].clone(), wwan.clone()];
        let expected = (vec!["wlan0".to_owned()], vec![server[0].to_owned()]);
        assert_eq!(names(&all, &server), expected, "the first address that an uplink leads to");
        let of_v4 = names(&[wlan[0].clone(), wwan], &server);
        assert_eq!(
            of_v4,
            (vec!["wlan0".to_owned(), "wwan0".to_owned()], vec![server[1].to_owned()])
        );
        let twice = [
            uplink(Some("lo"), "127.0.0.1"),
            uplink(None, "127.0.0.2"),
            uplink(Some("lo"), "127.0.0.3"),
        ];
        assert_eq!(names(&twice, &["127.0.0.1:1"]).0, ["127.0.0.1", "127.0.0.2", "127.0.0.3"]);
        assert_eq!(names(&[], &server).0, [DEFAULT]);
        let given = uplink(Some("eth0"), "192.0.2.8");
        assert_eq!(names(&[given], &["127.0.0.1:1"]).0, ["192.0.2.8"], "it was given by address");
    }

    #[test]
    fn a_path_is_known_by_interface_where_that_is_the_name_and_else_by_address() {
        let server = vec!["192.0.2.1:1".parse().unwrap()];
        let given = [uplink(Some("wlan0"), "192.0.2.7"), uplink(None, "192.0.2.8")];
        let (found, _) = ways(&given, &[], server);
        let at = |text: &str| text.parse().unwrap();
        assert!(found[0].leads(Some("wlan0"), at("192.0.2.99")), "it has another address by now");
        assert!(!found[0].leads(None, at("192.0.2.7")) && !found[1].leads(None, at("192.0.2.7")));
        assert!(found[1].leads(None, at("192.0.2.8")));
    }
}
