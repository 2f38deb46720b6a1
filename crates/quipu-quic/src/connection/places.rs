//! Where the ends are: the addresses of the handshake, and those at which a server would rather be
//! reached. <https://www.rfc-editor.org/rfc/rfc9000#section-9.6>

use std::net::SocketAddr;

use crate::config::PreferredAddresses;
use crate::route::Route;

/// The addresses that both ends were told of.
#[derive(Debug)]
pub(super) struct Places {
    first: Route,
    /// Of the server: a client is told them in the handshake.
    preferred: PreferredAddresses,
    /// This end is a client that has yet to move to one of them.
    is_wanted: bool,
}

impl Places {
    /// `first`: the addresses of the handshake; `own`: those that we prefer as a server.
    pub(super) fn new(first: Route, own: PreferredAddresses) -> Self {
        Places { first, preferred: own, is_wanted: false }
    }

    /// The addresses of the handshake.
    pub(super) fn first(&self) -> &Route {
        &self.first
    }

    /// A client begins again, by that route.
    pub(super) fn begin_at(&mut self, route: Route) {
        self.first = route;
    }

    /// The server told a client where it wants to be reached; `follows`: the client wants that too.
    pub(super) fn learn(&mut self, preferred: PreferredAddresses, follows: bool) {
        self.preferred = preferred;
        self.is_wanted = follows;
    }

    /// Where the server wants to be reached.
    pub(super) fn preferred(&self) -> &PreferredAddresses {
        &self.preferred
    }

    /// True if the server wants to be reached at that address.
    pub(super) fn is_preferred(&self, server: SocketAddr) -> bool {
        self.preferred.contains(server)
    }

    /// Where a client that sends by `present` has yet to try to move.
    pub(super) fn wanted(&self, present: &Route) -> Option<Route> {
        // https://www.rfc-editor.org/rfc/rfc9000#section-9.6.3
        //# A client that migrates to a new address SHOULD use a preferred address from the same
        //# address family for the server.
        let remote = self.preferred.like(present.remote).filter(|_| self.is_wanted)?;
        (remote != present.remote).then_some(Route { remote, ..*present })
    }

    /// The client tries to move there.
    pub(super) fn on_tried(&mut self) {
        self.is_wanted = false;
    }

    /// Its own address changed in the middle of that: it is to try again.
    pub(super) fn on_interrupted(&mut self) {
        self.is_wanted = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_address_of_the_same_family_is_tried_once() {
        let preferred =
            PreferredAddresses { ipv4: Some("192.0.2.9:443".parse().unwrap()), ipv6: None };
        let first = Route::new(address("10.0.0.1:5000"), address("192.0.2.1:443"));
        let mut places = Places::new(first, PreferredAddresses::default());
        assert_eq!(places.wanted(&first), None);
        places.learn(preferred, true);
        let there = Route::new(first.local, address("192.0.2.9:443"));
        assert_eq!(places.wanted(&first), Some(there));
        assert_eq!(places.wanted(&there), None);
        let v6 = Route::new(address("[2001:db8::1]:5000"), address("[2001:db8::2]:443"));
        assert_eq!(places.wanted(&v6), None);
        places.on_tried();
        assert_eq!(places.wanted(&first), None);
        places.on_interrupted();
        assert_eq!(places.wanted(&first), Some(there));
        assert!(places.is_preferred(there.remote) && !places.is_preferred(first.remote));
    }
}
