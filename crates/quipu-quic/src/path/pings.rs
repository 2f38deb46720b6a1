//! PINGs on one path: those that the application asks for, and those that keep the path alive.

/// What is to be asked of the peer on one path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pings {
    /// A packet is to go, so that the path, or the connection, stays alive.
    keep_alive: bool,
    question: Question,
    /// The application waits for the answer to the question.
    application_asks: bool,
}

/// A question of the application, or of ours: does the peer answer on this path?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Question {
    #[default]
    None,
    /// Its PING is to be sent, for the first time or again.
    Waits,
    /// Its PING is in flight.
    Sent,
}

impl Pings {
    /// The application asks. A question that has no answer yet is the same one.
    pub(crate) fn ask(&mut self) {
        self.application_asks = true;
        if self.question == Question::None {
            self.question = Question::Waits;
        }
    }

    /// The peer is to learn that the path goes by other addresses, with the first packet that it receives
    /// from there: a PING is sent until one is acknowledged.
    pub(crate) fn show(&mut self) {
        self.question = Question::Waits;
    }

    /// Nothing was sent for so long that something has to be.
    pub(crate) fn keep_alive(&mut self) {
        self.keep_alive = true;
    }

    /// True if a PING is to go.
    #[inline]
    pub(crate) fn are_due(&self) -> bool {
        self.keep_alive || self.question == Question::Waits
    }

    /// True if a PING is to go so that the path stays alive.
    pub(crate) fn keeps_alive(&self) -> bool {
        self.keep_alive
    }

    /// A PING leaves. True if it is to be answered, so that its packet is to be remembered.
    pub(crate) fn on_sent(&mut self) -> bool {
        self.keep_alive = false;
        let asked = self.question == Question::Waits;
        if asked {
            self.question = Question::Sent;
        }
        asked
    }

    /// The packet with a question was acknowledged. True if the application waits for it.
    pub(crate) fn on_acked(&mut self) -> bool {
        let is_news = std::mem::take(&mut self.question) != Question::None;
        is_news && std::mem::take(&mut self.application_asks)
    }

    /// The packet with a question was lost.
    pub(crate) fn on_lost(&mut self) {
        if self.question == Question::Sent {
            self.question = Question::Waits;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_move_is_shown_until_that_is_acknowledged_and_the_application_hears_nothing() {
        let mut pings = Pings::default();
        pings.show();
        assert!(pings.are_due() && pings.on_sent() && !pings.are_due());
        pings.on_lost();
        assert!(pings.are_due() && pings.on_sent());
        assert!(!pings.on_acked() && !pings.are_due());
        // What was in flight when the path moved shows nothing.
        pings.ask();
        assert!(pings.on_sent());
        pings.show();
        assert!(pings.are_due() && pings.on_sent() && pings.on_acked());
    }

    #[test]
    fn a_question_is_asked_until_it_is_answered_and_answered_once() {
        let mut pings = Pings::default();
        assert!(!pings.are_due());
        pings.ask();
        assert!(pings.are_due() && pings.on_sent());
        pings.ask();
        assert!(!pings.are_due(), "it is in flight");
        pings.on_lost();
        assert!(pings.are_due() && pings.on_sent());
        assert!(pings.on_acked());
        assert!(!pings.on_acked(), "the first packet came late");
        pings.on_lost();
        assert_eq!(pings, Pings::default());
    }

    #[test]
    fn what_keeps_alive_is_sent_once_and_not_remembered() {
        let mut pings = Pings::default();
        pings.keep_alive();
        assert!(pings.are_due() && pings.keeps_alive());
        assert!(!pings.on_sent());
        assert!(!pings.are_due());
    }
}
