//! The ways by which a client leaves its host: interfaces with their addresses.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::str::FromStr;

use thiserror::Error;

/// What a client leaves by, as the caller names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Via {
    /// Every interface that has a default route, as [`uplinks`] tells.
    Auto,
    /// The interface of that name, such as `wlan0`, by its first address of each family.
    Interface(String),
    /// The interface that has that address; an address that no interface lists, such as
    /// `127.0.0.2`, leaves as the host's routes say.
    Address(IpAddr),
}

impl FromStr for Via {
    type Err = std::convert::Infallible;

    /// `auto`, an address, or the name of an interface.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match (text, text.parse()) {
            ("auto", _) => Via::Auto,
            (_, Ok(address)) => Via::Address(address),
            (name, Err(_)) => Via::Interface(name.to_owned()),
        })
    }
}

impl fmt::Display for Via {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Via::Auto => f.write_str("auto"),
            Via::Interface(name) => f.write_str(name),
            Via::Address(address) => address.fmt(f),
        }
    }
}

/// An address of an interface, which a client can leave by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uplink {
    /// Name of the interface; `None` leaves the choice to the host's routes.
    pub interface: Option<String>,
    /// Its index, as in RFC 3493 section 4.
    pub index: Option<NonZeroU32>,
    /// The address.
    pub address: IpAddr,
    /// Whether [`Via::Auto`] takes it.
    pub usable: Usable,
}

/// Whether an uplink is of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Usable {
    /// It has a default route.
    Yes,
    /// It leads to this host only.
    Loopback,
    /// The interface is down, or has no carrier.
    Down,
    /// The address means something on its link only.
    LinkLocal,
    /// No default route leaves by it.
    NoDefaultRoute,
    /// An earlier address of the same family stands for the interface.
    Spare,
}

impl fmt::Display for Usable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Usable::Yes => "used",
            Usable::Loopback => "not used: leads to this host only",
            Usable::Down => "not used: down, or without carrier",
            Usable::LinkLocal => "not used: a link-local address",
            Usable::NoDefaultRoute => "not used: no default route",
            Usable::Spare => "not used: another address of the interface is",
        })
    }
}

/// Why there is no uplink of that kind.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum UplinkError {
    /// The host does not tell its interfaces.
    #[error("cannot list the interfaces of this host: {0}")]
    List(#[source] io::Error),
    /// No interface has that name.
    #[error("there is no interface {name:?}; this host has {known}")]
    Unknown {
        /// The name.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// The interface has no address that a client can leave by.
    #[error("interface {0:?} has no address; bring it up, or name another")]
    NoAddress(String),
    /// No interface has a default route.
    #[error("no interface has a default route; name one, or an address")]
    NoneUsable,
}

/// All addresses of this host's interfaces, in the host's order, each with whether
/// [`Via::Auto`] takes it and why not.
///
/// # Errors
/// [`UplinkError::List`] if the host does not tell.
pub fn uplinks() -> Result<Vec<Uplink>, UplinkError> {
    let mut uplinks = system::addresses().map_err(UplinkError::List)?;
    mark_spares(&mut uplinks);
    Ok(uplinks)
}

/// The first address of each family stands for its interface.
fn mark_spares(uplinks: &mut [Uplink]) {
    for at in 0..uplinks.len() {
        let (before, rest) = uplinks.split_at_mut(at);
        let Some(this) = rest.first_mut().filter(|this| this.usable == Usable::Yes) else {
            continue;
        };
        let same = |other: &&Uplink| {
            other.usable == Usable::Yes
                && other.interface == this.interface
                && other.address.is_ipv4() == this.address.is_ipv4()
        };
        if before.iter().any(|other| same(&other)) {
            this.usable = Usable::Spare;
        }
    }
}

/// The uplinks that `vias` name, each once, in this order.
///
/// # Errors
/// See [`UplinkError`].
pub fn resolve(vias: &[Via]) -> Result<Vec<Uplink>, UplinkError> {
    let known = uplinks()?;
    let mut found: Vec<Uplink> = Vec::new();
    for via in vias {
        for uplink in choose(&known, via)? {
            if !found.iter().any(|other| other.address == uplink.address) {
                found.push(uplink);
            }
        }
    }
    Ok(found)
}

fn choose(known: &[Uplink], via: &Via) -> Result<Vec<Uplink>, UplinkError> {
    match via {
        Via::Auto => {
            let used: Vec<_> = known.iter().filter(|u| u.usable == Usable::Yes).cloned().collect();
            if used.is_empty() { Err(UplinkError::NoneUsable) } else { Ok(used) }
        }
        Via::Interface(name) => {
            let own = |uplink: &&Uplink| uplink.interface.as_ref() == Some(name);
            if !known.iter().any(|uplink| own(&uplink)) {
                let mut names: Vec<_> = known.iter().filter_map(|u| u.interface.clone()).collect();
                names.dedup();
                let known = names.join(", ");
                return Err(UplinkError::Unknown { name: name.clone(), known });
            }
            let plain = |uplink: &&Uplink| uplink.usable != Usable::LinkLocal;
            let first = |v4: bool| {
                let family = |uplink: &&Uplink| uplink.address.is_ipv4() == v4;
                known.iter().filter(own).filter(plain).find(family)
            };
            let chosen: Vec<_> =
                [first(true), first(false)].into_iter().flatten().cloned().collect();
            if chosen.is_empty() { Err(UplinkError::NoAddress(name.clone())) } else { Ok(chosen) }
        }
        Via::Address(address) => {
            let listed = known.iter().find(|uplink| uplink.address == *address);
            let listed = listed.filter(|uplink| uplink.usable != Usable::Loopback).cloned();
            Ok(vec![listed.unwrap_or_else(|| Uplink::of_address(*address))])
        }
    }
}

impl Uplink {
    /// The address on whatever interface the host's routes say.
    pub(crate) fn of_address(address: IpAddr) -> Self {
        Uplink { interface: None, index: None, address, usable: Usable::Yes }
    }

    /// The uplink that the host's routes choose for `remote`.
    ///
    /// # Errors
    /// If no route leads there.
    pub(crate) fn by_route(remote: SocketAddr) -> io::Result<Self> {
        let any: SocketAddr = match remote {
            SocketAddr::V4(_) => (std::net::Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (std::net::Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        // Nothing is sent: the socket learns which address it would send from.
        let socket = std::net::UdpSocket::bind(any)?;
        socket.connect(remote)?;
        Ok(Self::of_address(socket.local_addr()?.ip()))
    }
}

impl fmt::Display for Uplink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.interface {
            Some(name) => write!(f, "{} by {name}", self.address),
            None => self.address.fmt(f),
        }
    }
}

#[cfg(unix)]
mod system {
    use std::net::IpAddr;

    use nix::ifaddrs::{InterfaceAddress, getifaddrs};
    use nix::net::if_::{InterfaceFlags, if_nametoindex};

    use super::{NonZeroU32, Uplink, Usable, io};

    pub(super) fn addresses() -> io::Result<Vec<Uplink>> {
        let with_default = default_routes();
        let usable = |entry: &InterfaceAddress, address: IpAddr| {
            let flags = entry.flags;
            if flags.contains(InterfaceFlags::IFF_LOOPBACK) {
                return Usable::Loopback;
            }
            if !flags.contains(InterfaceFlags::IFF_UP | InterfaceFlags::IFF_RUNNING) {
                return Usable::Down;
            }
            if is_link_local(address) {
                return Usable::LinkLocal;
            }
            let leads_on = |list: &Vec<(String, bool)>| {
                list.iter()
                    .any(|(name, v4)| *name == entry.interface_name && *v4 == address.is_ipv4())
            };
            if with_default.as_ref().is_none_or(leads_on) {
                Usable::Yes
            } else {
                Usable::NoDefaultRoute
            }
        };
        let entries = getifaddrs()?.filter_map(|entry| {
            let address = ip(&entry)?;
            let index = if_nametoindex(entry.interface_name.as_str()).ok();
            Some(Uplink {
                usable: usable(&entry, address),
                index: index.and_then(NonZeroU32::new),
                interface: Some(entry.interface_name),
                address,
            })
        });
        Ok(entries.collect())
    }

    fn ip(entry: &InterfaceAddress) -> Option<IpAddr> {
        let address = entry.address.as_ref()?;
        let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
        v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
    }

    fn is_link_local(address: IpAddr) -> bool {
        match address {
            IpAddr::V4(v4) => v4.is_link_local(),
            IpAddr::V6(v6) => v6.is_unicast_link_local(),
        }
    }

    /// Interfaces with a default route, and whether it is of IPv4; `None` where the host does not
    /// tell.
    fn default_routes() -> Option<Vec<(String, bool)>> {
        if !cfg!(target_os = "linux") {
            return None;
        }
        let v4 = std::fs::read_to_string("/proc/net/route").ok()?;
        // There is no such file on a host without IPv6.
        let v6 = std::fs::read_to_string("/proc/net/ipv6_route").unwrap_or_default();
        Some(super::defaults_v4(&v4).chain(super::defaults_v6(&v6)).collect())
    }
}

#[cfg(not(unix))]
mod system {
    use super::{Uplink, io};

    pub(super) fn addresses() -> io::Result<Vec<Uplink>> {
        // Addresses can be named, and interfaces cannot.
        Ok(Vec::new())
    }
}

/// Lines of `/proc/net/route` whose destination and mask are zero.
#[cfg(unix)]
fn defaults_v4(text: &str) -> impl Iterator<Item = (String, bool)> {
    text.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_default = fields.get(1) == Some(&"00000000") && fields.get(7) == Some(&"00000000");
        is_default.then(|| fields.first().map(|name| ((*name).to_owned(), true)))?
    })
}

/// Lines of `/proc/net/ipv6_route` for `::/0`, those that reject excepted.
#[cfg(unix)]
fn defaults_v6(text: &str) -> impl Iterator<Item = (String, bool)> {
    text.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let to_all = fields.first()?.bytes().all(|digit| digit == b'0') && *fields.get(1)? == "00";
        let name = fields.get(9).filter(|name| to_all && **name != "lo")?;
        Some(((*name).to_owned(), false))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uplink(name: &str, address: &str, usable: Usable) -> Uplink {
        let interface = Some(name.to_owned());
        Uplink { interface, index: None, address: address.parse().unwrap(), usable }
    }

    fn host() -> Vec<Uplink> {
        let mut host = vec![
            uplink("lo", "127.0.0.1", Usable::Loopback),
            uplink("eth0", "192.0.2.7", Usable::Yes),
            uplink("eth0", "192.0.2.8", Usable::Yes),
            uplink("eth0", "fe80::1", Usable::LinkLocal),
            uplink("eth0", "2001:db8::7", Usable::Yes),
            uplink("wlan0", "198.51.100.2", Usable::Yes),
            uplink("tun0", "10.0.0.2", Usable::NoDefaultRoute),
        ];
        mark_spares(&mut host);
        host
    }

    fn chosen(via: &str) -> Vec<String> {
        let via: Via = via.parse().unwrap();
        choose(&host(), &via).unwrap().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn auto_takes_one_address_of_each_family_of_interfaces_with_a_default_route() {
        let expected = ["192.0.2.7 by eth0", "2001:db8::7 by eth0", "198.51.100.2 by wlan0"];
        assert_eq!(chosen("auto"), expected);
        let none = [uplink("lo", "127.0.0.1", Usable::Loopback)];
        assert!(matches!(choose(&none, &Via::Auto), Err(UplinkError::NoneUsable)));
    }

    #[test]
    fn a_name_stands_for_an_interface_and_an_address_for_the_interface_that_has_it() {
        assert_eq!(chosen("tun0"), ["10.0.0.2 by tun0"]);
        assert_eq!(chosen("lo"), ["127.0.0.1 by lo"]);
        assert_eq!(chosen("198.51.100.2"), ["198.51.100.2 by wlan0"]);
        assert_eq!(chosen("127.0.0.1"), ["127.0.0.1"]);
        assert_eq!(chosen("127.0.0.2"), ["127.0.0.2"]);
        let error = choose(&host(), &Via::Interface("wlan1".to_owned())).unwrap_err().to_string();
        assert!(error.contains("\"wlan1\"") && error.contains("lo, eth0, wlan0, tun0"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn default_routes_are_read_from_the_hosts_tables() {
        let v4 = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\n\
                  eth0\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
                  eth1\t0000000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n";
        assert_eq!(defaults_v4(v4).collect::<Vec<_>>(), [("eth0".to_owned(), true)]);
        let zeros = "0".repeat(32);
        let line = |dev: &str, length: &str| {
            format!(
                "{zeros} {length} {zeros} 00 {zeros} 00000400 00000001 00000000 00000001 {dev}\n"
            )
        };
        let v6 = line("wlan0", "00") + &line("lo", "00") + &line("eth1", "40");
        assert_eq!(defaults_v6(&v6).collect::<Vec<_>>(), [("wlan0".to_owned(), false)]);
    }

    #[test]
    fn this_host_lists_its_loopback_address() {
        if cfg!(unix) {
            let found = uplinks().unwrap();
            let loopback = found.iter().find(|uplink| uplink.usable == Usable::Loopback);
            assert!(loopback.is_some_and(|uplink| uplink.address.is_loopback()), "{found:?}");
        }
    }

    #[test]
    fn the_route_to_a_loopback_address_has_one_as_its_source() {
        let uplink = Uplink::by_route("127.0.0.1:9".parse().unwrap()).unwrap();
        assert!(uplink.address.is_loopback());
    }
}
