//! Proving addresses: challenges and responses, and what follows when one is proved or is not.
//! <https://www.rfc-editor.org/rfc/rfc9000#section-8.2>

use quipu_base::Instant;
use quipu_policy::{Event, PathKey};

use crate::connection::receive::Origin;
use crate::connection::{Connection, ConnectionEvent};
use crate::error::ErrorCode;
use crate::path::{Answered, Input, Step, Which};
use crate::recorder::{self, PathEvent};

impl Connection {
    /// A PATH_CHALLENGE came on the path of `key`.
    pub(in crate::connection) fn on_path_challenge(
        &mut self,
        key: PathKey,
        origin: &Origin,
        data: [u8; 8],
    ) {
        if let Some(path) = self.shared.paths.get_mut(key.slot).filter(|path| path.lives()) {
            // https://www.rfc-editor.org/rfc/rfc9000#section-8.2.2
            //# A PATH_RESPONSE frame MUST be sent on the network path where the PATH_CHALLENGE
            //# frame was received.
            // https://www.rfc-editor.org/rfc/rfc10069#section-3.1
            //# If an endpoint sends a PATH_RESPONSE (Section 19.18 of [QUIC-TRANSPORT]), it MUST
            //# be sent on the same path as used by the packet that contained the PATH_CHALLENGE
            //# frame (Section 19.17 of [QUIC-TRANSPORT]), using a connection ID associated with
            //# the same path ID.
            path.responses.on_challenge(data, origin.arrival.route, origin.datagram);
        }
    }

    /// A PATH_RESPONSE came, by whatever way: it proves the address that its challenge went to.
    pub(in crate::connection) fn on_path_response(&mut self, now: Instant, response: [u8; 8]) {
        for slot in 0..self.shared.paths.slots() {
            for which in [Which::Active, Which::Other] {
                let Some(data) = self.shared.paths.get_mut(slot).filter(|data| data.lives()) else {
                    continue;
                };
                let Some(leg) = data.addresses.leg_mut(which) else { continue };
                // https://www.rfc-editor.org/rfc/rfc9000#section-8.2.2
                //# This requirement MUST NOT be enforced by the endpoint that initiates path
                //# validation, as that would enable an attack on migration; see Section 9.3.3.
                if let Some(answered) = leg.validation.on_response(response) {
                    leg.amplification.validate();
                    self.on_answered(now, slot, which, answered);
                    return;
                }
            }
        }
    }

    /// The peer answered at one of a path's addresses. One that has answered a full-sized challenge
    /// is proved, and known to carry such datagrams.
    fn on_answered(&mut self, now: Instant, slot: u8, which: Which, answered: Answered) {
        let Some((data, view)) = self.shared.paths.pair_mut(slot) else { return };
        let key = data.key;
        view.amplification_limited = data.is_amplification_limited();
        if which == Which::Active && view.srtt.is_none() {
            data.recovery.on_first_rtt(now, now - answered.sent_at, view);
        }
        // https://www.rfc-editor.org/rfc/rfc10069#section-3.1
        //# Each endpoint MUST also validate that a minimum QUIC packet MTU of 1200 bytes is
        //# supported on the path.
        if !answered.is_full {
            return;
        }
        let input = match which {
            Which::Active => Input::ActiveProved,
            Which::Other => Input::OtherProved,
        };
        self.change_addresses(now, key, input, None, Some(now - answered.sent_at));
        if which == Which::Active && self.step_path(key, Step::Validate).is_some() {
            self.events.tell(ConnectionEvent::PathUp(key.id));
            self.recording.path(now, key.id, PathEvent::Validated);
            self.allow_datagrams(now, slot);
            self.scheduler.tell(now, &self.shared, Event::PathUp(key));
        }
    }

    /// A challenge of the path in `slot` is to be repeated, or an address is given up.
    pub(in crate::connection) fn on_challenge_timeout(&mut self, now: Instant, slot: u8) {
        self.record_expired(now, slot, recorder::Timer::PathValidation);
        for (which, failed) in
            [(Which::Active, Input::ActiveFailed), (Which::Other, Input::OtherFailed)]
        {
            let Some(data) = self.shared.paths.get_mut(slot).filter(|data| data.lives()) else {
                return;
            };
            let key = data.key;
            if let Some(leg) = data.addresses.leg_mut(which)
                && !leg.validation.handle_timeout(now)
            {
                self.change_addresses(now, key, failed, None, None);
            }
        }
    }

    /// No answer to any challenge, and no other address to return to.
    pub(super) fn give_up_validation(&mut self, now: Instant, key: PathKey) {
        // The peer never sent a connection ID with which it could have been asked.
        let code = if self.ids.remote().active(key.id).is_none() {
            ErrorCode::NO_CID_AVAILABLE_FOR_PATH
        } else {
            ErrorCode::PATH_UNSTABLE_OR_POOR
        };
        // https://www.rfc-editor.org/rfc/rfc10069#section-3.1
        //# If validation fails, the client MUST NOT use the path and can remove any status
        //# associated to the path initiation attempt. As the used path ID is consumed either way,
        //# the endpoint MUST explicitly close the path, as specified in Section 3.4.
        self.give_up_path(now, key, code);
    }
}
