//! Path validation by PATH_CHALLENGE and PATH_RESPONSE: the peer's side.
//! <https://www.rfc-editor.org/rfc/rfc9000#section-8.2.2>

use crate::route::Route;

/// Responses owed at a time on a path: what a peer can make grow. Challenges beyond it get none.
const MAX_RESPONSES: usize = 4;

/// Responses that may go although the congestion window is full: each packet of the path that is
/// acknowledged and each probe timeout allows one, and so many may be saved. Without any, a peer that
/// validates our address before it acknowledges more would wait for us, and we for it. Our choice.
const MAX_BEYOND: u8 = 4;

/// A response that is owed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) data: [u8; 8],
    /// Where the challenge came from, and where the response goes.
    pub(crate) route: Route,
    /// Bytes that may go there in return, should nothing else be known of that address.
    pub(crate) allowance: usize,
}

/// The responses that a path owes.
#[derive(Clone, Debug)]
pub(crate) struct Responses {
    owed: Vec<Response>,
    /// So many more may go beyond the window.
    beyond: u8,
}

impl Default for Responses {
    fn default() -> Self {
        Responses { owed: Vec::new(), beyond: MAX_BEYOND }
    }
}

impl Responses {
    /// A challenge came from `route` in a datagram of so many bytes: it is answered with the same
    /// data, the same way.
    pub(crate) fn on_challenge(&mut self, data: [u8; 8], route: Route, datagram: usize) {
        // https://www.rfc-editor.org/rfc/rfc9000#section-8.2.2
        //# On receiving a PATH_CHALLENGE frame, an endpoint MUST respond by echoing the data
        //# contained in the PATH_CHALLENGE frame in a PATH_RESPONSE frame.
        // https://www.rfc-editor.org/rfc/rfc9000#section-19.17
        //# The recipient of this frame MUST generate a PATH_RESPONSE frame (Section 19.18)
        //# containing the same Data value.
        if self.owed.len() < MAX_RESPONSES {
            // What one datagram allows is for one answer.
            let spent = self.owed.iter().any(|owed| owed.route == route);
            let allowance = if spent { 0 } else { datagram.saturating_mul(3) };
            self.owed.push(Response { data, route, allowance });
        }
    }

    /// A datagram of so many bytes goes to `route`. If an address of the path is there, its own limit
    /// counted the challenge's datagram too: what goes is taken off both, so that nothing is allowed
    /// twice should the address be forgotten before the response goes.
    pub(crate) fn on_sent(&mut self, route: &Route, bytes: usize) {
        for owed in self.owed.iter_mut().filter(|owed| owed.route == *route) {
            owed.allowance = owed.allowance.saturating_sub(bytes);
        }
    }

    /// True if one may go although the window is full.
    pub(crate) fn may_exceed(&self) -> bool {
        self.beyond > 0
    }

    /// One went although the window is full.
    pub(crate) fn on_exceeded(&mut self) {
        self.beyond = self.beyond.saturating_sub(1);
    }

    /// So many packets were acknowledged, or as many probe timeouts passed.
    pub(crate) fn on_passed(&mut self, count: usize) {
        self.beyond = (usize::from(self.beyond) + count).min(usize::from(MAX_BEYOND)) as u8;
    }

    /// True if none is owed.
    pub(crate) fn is_empty(&self) -> bool {
        self.owed.is_empty()
    }

    /// The next to send.
    pub(crate) fn first(&self) -> Option<&Response> {
        self.owed.first()
    }

    /// Takes it.
    pub(crate) fn pop(&mut self) {
        // https://www.rfc-editor.org/rfc/rfc9000#section-8.2.2
        //# An endpoint MUST NOT send more than one PATH_RESPONSE frame in response to one
        //# PATH_CHALLENGE frame; see Section 13.3.
        if !self.owed.is_empty() {
            self.owed.remove(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(port: u16) -> Route {
        Route::new(([10, 0, 0, 1], 443).into(), ([10, 0, 0, 2], port).into())
    }

    #[test]
    fn each_challenge_is_answered_once_where_it_came_from() {
        let mut responses = Responses::default();
        responses.on_challenge([1; 8], route(1), 1200);
        responses.on_challenge([2; 8], route(2), 40);
        let first = *responses.first().unwrap();
        assert_eq!(first, Response { data: [1; 8], route: route(1), allowance: 3600 });
        responses.pop();
        assert_eq!(responses.first().unwrap().route, route(2));
        responses.pop();
        assert!(responses.is_empty());
    }

    #[test]
    fn what_goes_to_the_address_is_taken_off_the_allowance() {
        let mut responses = Responses::default();
        responses.on_challenge([1; 8], route(1), 1200);
        responses.on_sent(&route(2), 1200);
        responses.on_sent(&route(1), 1200);
        assert_eq!(responses.first().unwrap().allowance, 2400);
        responses.on_sent(&route(1), 2500);
        assert_eq!(responses.first().unwrap().allowance, 0);
    }

    #[test]
    fn beyond_the_window_each_packet_that_is_acknowledged_allows_one() {
        let mut responses = Responses::default();
        let mut gone = 0;
        for acknowledged in [0, 0, 1, 0, 2, 100, 0] {
            responses.on_passed(acknowledged);
            while responses.may_exceed() {
                responses.on_exceeded();
                gone += 1;
            }
        }
        assert_eq!(gone, 4 + 1 + 2 + 4);
    }

    #[test]
    fn a_flood_of_challenges_makes_nothing_grow() {
        let mut responses = Responses::default();
        for nth in 0..200 {
            responses.on_challenge([nth; 8], route(1), 1200);
        }
        let mut allowed = 0;
        while let Some(response) = responses.first() {
            allowed += response.allowance;
            responses.pop();
        }
        assert_eq!(allowed, 3600, "of one datagram, though it may hold many challenges");
    }
}
