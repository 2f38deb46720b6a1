//! Path validation by PATH_CHALLENGE and PATH_RESPONSE: our side.
//! <https://www.rfc-editor.org/rfc/rfc9000#section-8.2>

use quipu_base::{Duration, Instant};

use crate::constant_time;

/// Challenges remembered at a time.
const MAX_CHALLENGES: usize = 4;
/// Challenges sent before giving up; our choice.
const MAX_TRIES: u32 = 6;

/// The validation of one address of the peer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Validation {
    /// Challenges in flight.
    challenges: Vec<Challenge>,
    tries: u32,
    wants_challenge: bool,
    resend_at: Option<Instant>,
    /// Given up at the latest then; `None`: when the tries are used up.
    ends_at: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Challenge {
    data: [u8; 8],
    sent_at: Instant,
    /// In a datagram of full size.
    is_full: bool,
}

/// The challenge that a response answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answered {
    pub(crate) sent_at: Instant,
    /// Its datagram was of full size, so that the path is known to carry such.
    pub(crate) is_full: bool,
}

impl Validation {
    /// Starts to validate, and gives up when the tries are used up.
    pub(crate) fn start(&mut self) {
        *self = Validation { wants_challenge: true, ..Validation::default() };
    }

    /// Starts to validate, and gives up at `ends_at` at the latest.
    pub(crate) fn start_until(&mut self, ends_at: Instant) {
        self.start();
        self.ends_at = Some(ends_at);
    }

    /// True if a challenge is to be sent now.
    pub(crate) fn wants_challenge(&self) -> bool {
        self.wants_challenge
    }

    /// True until an answer came or it was given up.
    pub(crate) fn is_under_way(&self) -> bool {
        self.wants_challenge || self.resend_at.is_some()
    }

    /// A challenge with that data left, in a datagram of full size or not.
    pub(crate) fn on_challenge_sent(
        &mut self,
        now: Instant,
        data: [u8; 8],
        is_full: bool,
        timeout: Duration,
    ) {
        if self.challenges.len() >= MAX_CHALLENGES {
            self.challenges.remove(0);
        }
        self.challenges.push(Challenge { data, sent_at: now, is_full });
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
        self.tries = self.tries.saturating_add(1);
        let at = now + timeout.saturating_mul(backoff);
        self.resend_at = Some(self.ends_at.map_or(at, |end| at.min(end)));
    }

    /// When the next challenge is due, or the validation is given up.
    pub(crate) fn resend_at(&self) -> Option<Instant> {
        self.resend_at
    }

    /// Time has come; `false` if validation failed for good.
    pub(crate) fn handle_timeout(&mut self, now: Instant) -> bool {
        if self.resend_at.is_some_and(|at| at <= now) {
            self.resend_at = None;
            // https://www.rfc-editor.org/rfc/rfc9000#section-8.2.4
            //# Endpoints SHOULD abandon path validation based on a timer.
            if self.ends_at.map_or(self.tries >= MAX_TRIES, |end| end <= now) {
                self.wants_challenge = false;
                return false;
            }
            self.wants_challenge = true;
        }
        true
    }

    /// A response came; what it answers, if that is ours. One to a challenge that was kept small is
    /// followed by a challenge of full size.
    pub(crate) fn on_response(&mut self, data: [u8; 8]) -> Option<Answered> {
        let mut challenges = self.challenges.iter();
        let challenge = challenges.find(|known| constant_time::equal(&known.data, &data))?;
        let answered = Answered { sent_at: challenge.sent_at, is_full: challenge.is_full };
        // https://www.rfc-editor.org/rfc/rfc9000#section-8.2.1
        //# To ensure that the path MTU is large enough, the endpoint MUST perform a second path
        //# validation by sending a PATH_CHALLENGE frame in a datagram of at least 1200 bytes.
        // https://www.rfc-editor.org/rfc/rfc9000#section-8.2.3
        //# However, the endpoint MUST initiate another path validation with an expanded datagram
        //# to verify that the path supports the required MTU.
        let ends_at = self.ends_at;
        *self = Validation { wants_challenge: !answered.is_full, ends_at, ..Validation::default() };
        Some(answered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_millis(100);

    #[test]
    fn only_the_data_of_a_challenge_validates() {
        let mut validation = Validation::default();
        validation.start();
        assert!(validation.wants_challenge());
        let sent_at = Instant::from_nanos(5);
        validation.on_challenge_sent(sent_at, [1; 8], true, TIMEOUT);
        assert_eq!(validation.on_response([2; 8]), None);
        assert!(validation.is_under_way());
        let answered = Answered { sent_at, is_full: true };
        assert_eq!(validation.on_response([1; 8]), Some(answered));
        assert_eq!(validation.resend_at(), None);
        assert!(!validation.is_under_way());
        assert_eq!(validation.on_response([1; 8]), None, "once");
    }

    #[test]
    fn a_small_challenge_is_followed_by_one_of_full_size() {
        let mut validation = Validation::default();
        validation.start();
        validation.on_challenge_sent(Instant::ZERO, [1; 8], false, TIMEOUT);
        assert!(!validation.on_response([1; 8]).unwrap().is_full);
        assert!(validation.wants_challenge());
        validation.on_challenge_sent(Instant::ZERO, [2; 8], true, TIMEOUT);
        assert_eq!(validation.on_response([1; 8]), None, "it was answered");
        assert!(validation.on_response([2; 8]).unwrap().is_full);
        assert!(!validation.is_under_way());
    }

    #[test]
    fn challenges_are_repeated_with_backoff_and_then_given_up() {
        let mut validation = Validation::default();
        validation.start();
        let mut now = Instant::ZERO;
        for round in 0..MAX_TRIES {
            validation.on_challenge_sent(now, [round as u8; 8], true, TIMEOUT);
            let due = validation.resend_at().unwrap();
            assert_eq!(due - now, Duration::from_millis(100 << round));
            now = due;
            assert_eq!(validation.handle_timeout(now), round + 1 < MAX_TRIES);
        }
        assert!(!validation.is_under_way());
    }

    #[test]
    fn it_ends_when_its_time_is_over() {
        let mut validation = Validation::default();
        let end = Instant::ZERO + Duration::from_millis(250);
        validation.start_until(end);
        validation.on_challenge_sent(Instant::ZERO, [1; 8], true, TIMEOUT);
        let second = validation.resend_at().unwrap();
        assert!(validation.handle_timeout(second));
        validation.on_challenge_sent(second, [2; 8], true, TIMEOUT);
        assert_eq!(validation.resend_at(), Some(end));
        assert!(!validation.handle_timeout(end));
        assert!(!validation.is_under_way());
    }

    #[test]
    fn tries_pass_while_no_challenge_may_go() {
        let mut validation = Validation::default();
        validation.start();
        let mut now = Instant::ZERO;
        for round in 0..MAX_TRIES {
            validation.on_challenge_withheld(now, TIMEOUT);
            let due = validation.resend_at().unwrap();
            validation.on_challenge_withheld(due, TIMEOUT);
            assert_eq!(validation.resend_at(), Some(due), "one try at a time");
            assert!(validation.wants_challenge());
            now = due;
            assert_eq!(validation.handle_timeout(now), round + 1 < MAX_TRIES);
        }
    }

    #[test]
    fn a_flood_of_challenges_is_not_remembered() {
        let mut validation = Validation::default();
        validation.start();
        for nth in 0..=u8::MAX {
            validation.on_challenge_sent(Instant::ZERO, [nth; 8], true, TIMEOUT);
        }
        assert_eq!(validation.challenges.len(), MAX_CHALLENGES);
    }
}
