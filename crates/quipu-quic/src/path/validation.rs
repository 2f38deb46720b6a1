//! Path validation by PATH_CHALLENGE and PATH_RESPONSE.
//! <https://www.rfc-editor.org/rfc/rfc9000#section-8.2>

use quipu_base::{Duration, Instant};
use smallvec::SmallVec;

/// Challenges remembered at a time.
const MAX_CHALLENGES: usize = 4;
/// Challenges sent before giving up; our choice.
const MAX_TRIES: u32 = 6;
/// Responses owed at a time: what a peer can make grow.
const MAX_RESPONSES: usize = 4;

/// The validation of one path, both ways.
#[derive(Clone, Debug, Default)]
pub(crate) struct Validation {
    /// Challenges in flight with their times.
    challenges: SmallVec<[([u8; 8], Instant); 2]>,
    tries: u32,
    wants_challenge: bool,
    resend_at: Option<Instant>,
    responses: SmallVec<[[u8; 8]; 1]>,
}

impl Validation {
    /// Starts to validate.
    pub(crate) fn start(&mut self) {
        self.wants_challenge = true;
        self.tries = 0;
    }

    /// True if a challenge is to be sent now.
    pub(crate) fn wants_challenge(&self) -> bool {
        self.wants_challenge
    }

    /// A challenge with that data left.
    pub(crate) fn on_challenge_sent(&mut self, now: Instant, data: [u8; 8], timeout: Duration) {
        if self.challenges.len() >= MAX_CHALLENGES {
            self.challenges.remove(0);
        }
        self.challenges.push((data, now));
        self.wants_challenge = false;
        self.arm(now, timeout);
    }

    /// The anti-amplification limit lets no challenge go. It goes as soon as more came from the
    /// peer; meanwhile the tries pass, so that an address that keeps silent is given up.
    pub(crate) fn on_challenge_withheld(&mut self, now: Instant, timeout: Duration) {
        if self.wants_challenge && self.resend_at.is_none() {
            self.arm(now, timeout);
        }
    }

    fn arm(&mut self, now: Instant, timeout: Duration) {
        // https://www.rfc-editor.org/rfc/rfc9000#section-8.2.1
        //# An endpoint SHOULD NOT probe a new path with packets containing a PATH_CHALLENGE frame
        //# more frequently than it would send an Initial packet.
        let backoff = 1 << self.tries.min(6);
        self.tries += 1;
        self.resend_at = Some(now + timeout.saturating_mul(backoff));
    }

    /// When the next challenge is due.
    pub(crate) fn resend_at(&self) -> Option<Instant> {
        self.resend_at
    }

    /// Time has come; `false` if validation failed for good.
    pub(crate) fn handle_timeout(&mut self, now: Instant) -> bool {
        if self.resend_at.is_some_and(|at| at <= now) {
            self.resend_at = None;
            // https://www.rfc-editor.org/rfc/rfc9000#section-8.2.4
            //# Endpoints SHOULD abandon path validation based on a timer.
            if self.tries >= MAX_TRIES {
                return false;
            }
            self.wants_challenge = true;
        }
        true
    }

    /// A response came; when its challenge was sent, if it was ours.
    pub(crate) fn on_response(&mut self, data: [u8; 8]) -> Option<Instant> {
        let &(_, sent_at) = self.challenges.iter().find(|(challenge, _)| *challenge == data)?;
        self.challenges.clear();
        self.wants_challenge = false;
        self.resend_at = None;
        self.tries = 0;
        Some(sent_at)
    }

    /// A challenge of the peer came: it is answered with the same data on the same path.
    pub(crate) fn on_challenge(&mut self, data: [u8; 8]) {
        // https://www.rfc-editor.org/rfc/rfc9000#section-8.2.2
        //# On receiving a PATH_CHALLENGE frame, an endpoint MUST respond by echoing the data
        //# contained in the PATH_CHALLENGE frame in a PATH_RESPONSE frame.
        // https://www.rfc-editor.org/rfc/rfc9000#section-19.17
        //# The recipient of this frame MUST generate a PATH_RESPONSE frame (Section 19.18)
        //# containing the same Data value.
        if self.responses.len() < MAX_RESPONSES {
            self.responses.push(data);
        }
    }

    /// True if a response is owed.
    pub(crate) fn owes_response(&self) -> bool {
        !self.responses.is_empty()
    }

    /// The next response to send.
    pub(crate) fn take_response(&mut self) -> Option<[u8; 8]> {
        // https://www.rfc-editor.org/rfc/rfc9000#section-8.2.2
        //# An endpoint MUST NOT send more than one PATH_RESPONSE frame in response to one
        //# PATH_CHALLENGE frame; see Section 13.3.
        (!self.responses.is_empty()).then(|| self.responses.remove(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_data_of_a_challenge_validates() {
        let mut validation = Validation::default();
        validation.start();
        assert!(validation.wants_challenge());
        let sent_at = Instant::from_nanos(5);
        validation.on_challenge_sent(sent_at, [1; 8], Duration::from_millis(100));
        assert_eq!(validation.on_response([2; 8]), None);
        assert_eq!(validation.on_response([1; 8]), Some(sent_at));
        assert_eq!(validation.resend_at(), None);
    }

    #[test]
    fn challenges_are_repeated_with_backoff_and_then_given_up() {
        let mut validation = Validation::default();
        validation.start();
        let mut now = Instant::ZERO;
        for round in 0..MAX_TRIES {
            validation.on_challenge_sent(now, [round as u8; 8], Duration::from_millis(100));
            let due = validation.resend_at().unwrap();
            assert_eq!(due - now, Duration::from_millis(100 << round));
            now = due;
            assert_eq!(validation.handle_timeout(now), round + 1 < MAX_TRIES);
        }
    }
    #[test]
    fn tries_pass_while_no_challenge_may_go() {
        let mut validation = Validation::default();
        validation.start();
        let mut now = Instant::ZERO;
        for round in 0..MAX_TRIES {
            validation.on_challenge_withheld(now, Duration::from_millis(100));
            let due = validation.resend_at().unwrap();
            validation.on_challenge_withheld(due, Duration::from_millis(100));
            assert_eq!(validation.resend_at(), Some(due), "one try at a time");
            assert!(validation.wants_challenge());
            now = due;
            assert_eq!(validation.handle_timeout(now), round + 1 < MAX_TRIES);
        }
    }
}
