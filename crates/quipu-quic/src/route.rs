//! The addresses of a path.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;

/// The addresses of a path, and the interface through which its datagrams leave.
///
/// Two routes are equal if their addresses are, since a path stays the same when the host moves its
/// traffic to another interface. Link-local addresses are the exception: each link has its own, so
/// they are equal only on the same interface.
///
/// The engine compares routes to find out whether a peer has moved, so it needs one form for each
/// address: see [`Route::canonical`]. [`Route::new`] builds this form, and the engine brings every
/// route that it is given into it.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// Our address. Unspecified (`0.0.0.0` or `::`) if the socket does not report it.
    pub local: SocketAddr,
    /// The peer's address.
    pub remote: SocketAddr,
    /// Index of the local interface, as in RFC 3493 section 4; `None` leaves the choice to the host.
    pub interface: Option<NonZeroU32>,
}

impl Route {
    /// The route between two addresses, in canonical form, through the interface that the host
    /// chooses.
    pub fn new(local: SocketAddr, remote: SocketAddr) -> Self {
        Route { local, remote, interface: None }.canonical()
    }

    /// The same route through the interface with that index.
    #[must_use]
    pub fn through(self, interface: NonZeroU32) -> Self {
        Route { interface: Some(interface), ..self }
    }

    /// The canonical form: IPv4-mapped IPv6 addresses become IPv4 addresses, and flow labels are
    /// dropped, since neither tells peers apart. The scope of a link-local address becomes the
    /// interface; other addresses have none.
    #[must_use]
    pub fn canonical(self) -> Self {
        if self.local.is_ipv4() && self.remote.is_ipv4() {
            return self;
        }
        let mut interface = self.interface;
        let (local, remote) = (canonical(self.local), canonical(self.remote));
        for address in [self.local, self.remote] {
            if let SocketAddr::V6(address) = address
                && address.ip().is_unicast_link_local()
            {
                interface = interface.or_else(|| NonZeroU32::new(address.scope_id()));
            }
        }
        Route { local, remote, interface }
    }

    /// The peer's address as a socket needs it: a link-local address has the interface as its scope.
    pub fn destination(&self) -> SocketAddr {
        match (self.remote, self.interface) {
            (SocketAddr::V6(mut remote), Some(interface))
                if remote.ip().is_unicast_link_local() =>
            {
                remote.set_scope_id(interface.get());
                SocketAddr::V6(remote)
            }
            (remote, _) => remote,
        }
    }

    /// What decides equality.
    fn identity(&self) -> (SocketAddr, SocketAddr, Option<NonZeroU32>) {
        (self.local, self.remote, self.interface.filter(|_| self.is_on_one_link()))
    }

    /// True if the peer's address says nothing without the interface.
    fn is_on_one_link(&self) -> bool {
        match self.remote {
            SocketAddr::V4(_) => false,
            SocketAddr::V6(remote) => remote.ip().is_unicast_link_local(),
        }
    }
}

fn canonical(address: SocketAddr) -> SocketAddr {
    let SocketAddr::V6(v6) = address else { return address };
    // Flow label and scope are left out.
    SocketAddr::new(IpAddr::V6(*v6.ip()).to_canonical(), v6.port())
}

impl PartialEq for Route {
    // Every datagram's route is compared: what `identity` decides, without building it.
    fn eq(&self, other: &Self) -> bool {
        self.remote == other.remote
            && self.local == other.local
            && (self.interface == other.interface || !self.is_on_one_link())
    }
}

impl Eq for Route {}

impl Hash for Route {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

impl PartialOrd for Route {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Route {
    fn cmp(&self, other: &Self) -> Ordering {
        self.identity().cmp(&other.identity())
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddrV6;

    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    fn v6(ip: &str, flow: u32, scope: u32) -> SocketAddr {
        SocketAddr::V6(SocketAddrV6::new(ip.parse().unwrap(), 443, flow, scope))
    }

    fn index(interface: u32) -> NonZeroU32 {
        NonZeroU32::new(interface).unwrap()
    }

    #[test]
    fn an_ipv4_address_seen_by_an_ipv6_socket_is_the_ipv4_address() {
        let plain = Route::new(address("192.0.2.1:443"), address("192.0.2.9:5000"));
        let mapped =
            Route::new(address("[::ffff:192.0.2.1]:443"), address("[::ffff:192.0.2.9]:5000"));
        assert_eq!(plain, mapped);
        assert_eq!(mapped.remote, address("192.0.2.9:5000"));
    }

    #[test]
    fn flow_label_and_scope_of_a_global_address_make_no_difference() {
        let plain = Route::new(v6("2001:db8::1", 0, 0), v6("2001:db8::2", 0, 0));
        let labelled = Route::new(v6("2001:db8::1", 7, 3), v6("2001:db8::2", 8, 3));
        assert_eq!(plain, labelled);
        assert_eq!(labelled.interface, None);
    }

    #[test]
    fn another_interface_is_another_route_for_link_local_addresses_only() {
        let global = Route::new(address("192.0.2.1:443"), address("192.0.2.9:5000"));
        assert_eq!(global.through(index(1)), global.through(index(2)));
        let local = |scope| Route::new(v6("fe80::1", 0, scope), v6("fe80::2", 0, scope));
        assert_eq!(local(2), local(2));
        assert_ne!(local(2), local(3));
        assert_eq!(local(2).interface, Some(index(2)));
    }

    #[test]
    fn a_link_local_destination_has_its_scope_again() {
        let route = Route::new(v6("fe80::1", 0, 0), v6("fe80::2", 5, 4));
        assert_eq!(route.remote, v6("fe80::2", 0, 0));
        assert_eq!(route.destination(), v6("fe80::2", 0, 4));
        let route = Route::new(v6("2001:db8::1", 0, 0), v6("2001:db8::2", 0, 4));
        assert_eq!(route.destination(), v6("2001:db8::2", 0, 0));
    }

    #[test]
    fn the_canonical_form_is_its_own() {
        let route = Route::new(v6("fe80::1", 3, 2), address("[::ffff:192.0.2.9]:5000"));
        let again = route.canonical();
        assert_eq!(
            (again.local, again.remote, again.interface),
            (route.local, route.remote, route.interface)
        );
    }
}
