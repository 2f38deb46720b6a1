//! The life of a path identifier, as a table of transitions.
//! <https://www.rfc-editor.org/rfc/rfc10069#section-3>

use quipu_policy::PathState;

/// Where the life of a path identifier is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// Both ends may use it, and neither has.
    Unused,
    /// In use, but no address of the peer has been validated.
    Validating,
    /// It may carry data.
    Usable,
    /// It stopped answering while another path went on.
    Suspect,
    /// This end gave it up and told the peer, which has not said so yet.
    Abandoned,
    /// Both ends gave it up; for a while its late packets are still known.
    Draining,
    /// Used up.
    Gone,
}

/// What happens to a path identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The client sends its first packet there, or the server receives it.
    Open,
    /// The peer proved that it receives at its address.
    Validate,
    /// A probe timeout passed while another path answered.
    FallSilent,
    /// An acknowledgement came for a packet sent on it.
    Answer,
    /// This end gives it up.
    Abandon,
    /// PATH_ABANDON came.
    PeerAbandons,
    /// Late packets have had their time.
    Expire,
}

/// A step that the stage does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IllegalStep;

impl Stage {
    /// The stage after a step.
    pub(crate) const fn after(self, step: Step) -> Result<Stage, IllegalStep> {
        use Stage::*;
        Ok(match (self, step) {
            (Unused, Step::Open) => Validating,
            (Validating, Step::Validate) => Usable,
            (Usable, Step::FallSilent) => Suspect,
            (Suspect, Step::Answer) => Usable,
            (Unused | Validating | Usable | Suspect, Step::Abandon) => Abandoned,
            // Also before anything was sent or received on the path.
            // https://www.rfc-editor.org/rfc/rfc10069#section-3.4
            (Unused | Validating | Usable | Suspect | Abandoned | Draining, Step::PeerAbandons) => {
                Draining
            }
            (Draining, Step::Expire) => Gone,
            // https://www.rfc-editor.org/rfc/rfc10069#section-3.4
            //# After a path is abandoned, the path ID MUST NOT be reused for new paths, as the path
            //# ID is part of the nonce calculation Section 2.4.
            _ => return Err(IllegalStep),
        })
    }

    /// True while packets may be sent on the path.
    pub(crate) const fn is_open(self) -> bool {
        matches!(self, Stage::Validating | Stage::Usable | Stage::Suspect)
    }

    /// True until either end gave the path up.
    pub(crate) const fn is_current(self) -> bool {
        matches!(self, Stage::Unused) || self.is_open()
    }

    /// What policies see of a path that is open.
    pub(crate) const fn seen(self) -> PathState {
        match self {
            Stage::Unused | Stage::Validating => PathState::Validating,
            Stage::Usable => PathState::Usable,
            Stage::Suspect => PathState::Suspect,
            Stage::Abandoned | Stage::Draining | Stage::Gone => PathState::Closing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAGES: [Stage; 7] = [
        Stage::Unused,
        Stage::Validating,
        Stage::Usable,
        Stage::Suspect,
        Stage::Abandoned,
        Stage::Draining,
        Stage::Gone,
    ];
    const STEPS: [Step; 7] = [
        Step::Open,
        Step::Validate,
        Step::FallSilent,
        Step::Answer,
        Step::Abandon,
        Step::PeerAbandons,
        Step::Expire,
    ];

    #[test]
    fn every_step_from_every_stage() {
        let mut table = String::new();
        for stage in STAGES {
            for step in STEPS {
                if let Ok(next) = stage.after(step) {
                    table += &format!("{stage:?} + {step:?} = {next:?}\n");
                }
            }
        }
        println!("{table}");
        assert_eq!(
            table,
            "Unused + Open = Validating
Unused + Abandon = Abandoned
Unused + PeerAbandons = Draining
Validating + Validate = Usable
Validating + Abandon = Abandoned
Validating + PeerAbandons = Draining
Usable + FallSilent = Suspect
Usable + Abandon = Abandoned
Usable + PeerAbandons = Draining
Suspect + Answer = Usable
Suspect + Abandon = Abandoned
Suspect + PeerAbandons = Draining
Abandoned + PeerAbandons = Draining
Draining + PeerAbandons = Draining
Draining + Expire = Gone
"
        );
    }

    #[test]
    fn no_stage_leads_back_to_an_identifier_that_was_not_used() {
        let mut reached = vec![Stage::Unused];
        let mut at = 0;
        while let Some(&stage) = reached.get(at) {
            let next = STEPS.into_iter().filter_map(|step| stage.after(step).ok());
            let fresh: Vec<_> = next.filter(|next| !reached.contains(next)).collect();
            assert!(!fresh.contains(&Stage::Unused));
            reached.extend(fresh);
            at += 1;
        }
        reached.sort_unstable();
        reached.dedup();
        assert_eq!(reached, STAGES, "every stage is reached");
        assert!(STEPS.into_iter().all(|step| Stage::Gone.after(step).is_err()));
    }
}
