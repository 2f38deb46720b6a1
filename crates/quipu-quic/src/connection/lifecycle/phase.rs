//! The life of a connection, as a table of transitions.
//! <https://www.rfc-editor.org/rfc/rfc9000#section-10>

/// Where a connection is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// TLS has not finished.
    Handshaking,
    /// TLS has finished here.
    Established,
    /// Both ends know that TLS has finished.
    Confirmed,
    /// We closed: what comes is answered with CONNECTION_CLOSE.
    Closing,
    /// The peer closed, or both: nothing is sent.
    Draining,
    /// Over.
    Closed,
}

/// What happens to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// TLS finishes.
    Complete,
    /// The handshake is confirmed.
    Confirm,
    /// We close.
    Close,
    /// The peer closes.
    PeerCloses,
    /// The connection ends without a word: it was idle, reset, or never came about.
    Abort,
    /// Three probe timeouts have passed.
    Expire,
}

impl Phase {
    /// The phase after a step; `None` if the step changes nothing.
    #[inline]
    pub(crate) const fn after(self, step: Step) -> Option<Phase> {
        use Phase::*;
        match (self, step) {
            (Handshaking, Step::Complete) => Some(Established),
            (Established, Step::Confirm) => Some(Confirmed),
            (Handshaking | Established | Confirmed, Step::Close) => Some(Closing),
            // https://www.rfc-editor.org/rfc/rfc9000#section-10.2.2
            // A CONNECTION_CLOSE frame says that the peer is closing or draining.
            (Handshaking | Established | Confirmed | Closing, Step::PeerCloses) => Some(Draining),
            (Handshaking | Established | Confirmed | Closing | Draining, Step::Abort) => {
                Some(Closed)
            }
            (Closing | Draining, Step::Expire) => Some(Closed),
            _ => None,
        }
    }

    /// True while packets are read and written.
    #[inline]
    pub(crate) const fn is_open(self) -> bool {
        matches!(self, Phase::Handshaking | Phase::Established | Phase::Confirmed)
    }

    /// True once TLS has finished, while packets are read and written.
    #[inline]
    pub(crate) const fn is_established(self) -> bool {
        matches!(self, Phase::Established | Phase::Confirmed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PHASES: [Phase; 6] = [
        Phase::Handshaking,
        Phase::Established,
        Phase::Confirmed,
        Phase::Closing,
        Phase::Draining,
        Phase::Closed,
    ];
    const STEPS: [Step; 6] =
        [Step::Complete, Step::Confirm, Step::Close, Step::PeerCloses, Step::Abort, Step::Expire];

    #[test]
    fn every_step_from_every_phase() {
        let mut table = String::new();
        for phase in PHASES {
            for step in STEPS {
                if let Some(next) = phase.after(step) {
                    table += &format!("{phase:?} + {step:?} = {next:?}\n");
                }
            }
        }
        println!("{table}");
        assert_eq!(
            table,
            "Handshaking + Complete = Established
Handshaking + Close = Closing
Handshaking + PeerCloses = Draining
Handshaking + Abort = Closed
Established + Confirm = Confirmed
Established + Close = Closing
Established + PeerCloses = Draining
Established + Abort = Closed
Confirmed + Close = Closing
Confirmed + PeerCloses = Draining
Confirmed + Abort = Closed
Closing + PeerCloses = Draining
Closing + Abort = Closed
Closing + Expire = Closed
Draining + Abort = Closed
Draining + Expire = Closed
"
        );
    }

    #[test]
    fn a_connection_that_closed_does_not_open_again() {
        for phase in PHASES.into_iter().filter(|phase| !phase.is_open()) {
            for next in STEPS.into_iter().filter_map(|step| phase.after(step)) {
                assert!(!next.is_open(), "{phase:?} to {next:?}");
            }
        }
        assert!(STEPS.into_iter().all(|step| Phase::Closed.after(step).is_none()));
    }
}
