//! Which moves there are, as a table of transitions.

/// Where a path stands with its addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// No address has been proved yet.
    Fresh,
    /// The one address is proved.
    Settled,
    /// The peer seems to have moved; the address before was proved and is kept.
    Moved,
    /// The peer tries another address.
    Tried,
    /// That other address is proved.
    Ready,
    /// The peer moved to an address of ours that we prefer, and is followed once that is proved.
    Awaited,
    /// This end tries another address, to move there.
    Moving,
}

/// What happens to a path that may change its addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// The newest packet so far came from an address never seen, and moves the path.
    Strange,
    /// The newest packet so far came from an address never seen, to try it.
    StrangeTry,
    /// The newest packet so far came from an address never seen to the one that we prefer, and
    /// moves the path.
    StrangePreferred,
    /// The newest packet so far came from the other address, and moves the path.
    FromOther,
    /// The same, where the other address is one to that which we prefer.
    OtherPreferred,
    /// The address in use is proved.
    ActiveProved,
    /// The other address is proved.
    OtherProved,
    /// No answer came from the address in use.
    ActiveFailed,
    /// No answer came from the other address.
    OtherFailed,
    /// This end wants to move to an address never seen.
    Choose,
    /// This end's address is gone, and another takes its place.
    Rebind,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Nothing.
    None,
    /// The new address takes the place of the one in use, which is forgotten.
    Replace,
    /// The new address takes the place of the one in use, which is kept.
    Move,
    /// The new address is tried, as the peer wished.
    Try,
    /// The new address is tried, as this end wished.
    Choose,
    /// The new address is tried, and takes the place of the one in use once it is proved.
    Await,
    /// The other address, which is tried, takes the place of the one in use once it is proved.
    Adopt,
    /// The other address takes the place of the one in use, which is kept.
    Follow,
    /// The other address, proved, takes the place of the one in use, which is forgotten.
    Switch,
    /// The path returns to the address before.
    Return,
    /// The address in use stays; the one before is forgotten.
    Settle,
    /// The other address is forgotten.
    Drop,
    /// The path has no address that works.
    GiveUp,
    /// What this end wants cannot be done now.
    Refuse,
}

impl Input {
    /// True if this end asks for it.
    pub(super) const fn is_ours(self) -> bool {
        matches!(self, Input::Choose | Input::Rebind)
    }
}

impl Action {
    /// True if it brings in an address never seen.
    pub(super) const fn is_new(self) -> bool {
        matches!(
            self,
            Action::Replace | Action::Move | Action::Try | Action::Choose | Action::Await
        )
    }
}

impl State {
    /// The state after `input`, and what is to be done.
    pub(crate) const fn after(self, input: Input) -> (State, Action) {
        use State::*;
        match (self, input) {
            // Whoever copied the first packets of a path must not keep it: while nothing is proved,
            // any newer packet moves the path.
            // https://www.rfc-editor.org/rfc/rfc9000#section-9.3.3
            (Fresh, Input::Strange | Input::StrangeTry | Input::Rebind) => (Fresh, Action::Replace),
            (Fresh, Input::ActiveProved) => (Settled, Action::Settle),
            (Fresh, Input::ActiveFailed) => (Fresh, Action::GiveUp),

            // https://www.rfc-editor.org/rfc/rfc9000#section-9.3
            //# If the recipient permits the migration, it MUST send subsequent packets to the new
            //# peer address and MUST initiate path validation (Section 8.2) to verify the peer's
            //# ownership of the address if validation is not already underway.
            (Settled | Tried | Ready | Awaited, Input::Strange) => (Moved, Action::Move),
            (Settled | Tried | Ready | Awaited | Moving, Input::Rebind) => (Moved, Action::Move),
            (Settled | Tried, Input::StrangeTry) => (Tried, Action::Try),
            // https://www.rfc-editor.org/rfc/rfc9000#section-9.6.2
            //# The server MUST send non-probing packets from its original address until it
            //# receives a non-probing packet from the client at its preferred address and until
            //# the server has validated the new path.
            (Settled | Tried | Ready | Awaited, Input::StrangePreferred) => {
                (Awaited, Action::Await)
            }
            (Tried, Input::OtherPreferred) => (Awaited, Action::Adopt),
            (Awaited, Input::OtherProved) => (Settled, Action::Switch),
            (Awaited, Input::OtherFailed) => (Settled, Action::Drop),
            (Settled | Tried | Ready, Input::Choose) => (Moving, Action::Choose),

            (Moved, Input::Strange | Input::Rebind) => (Moved, Action::Replace),
            (Moved, Input::FromOther) => (Settled, Action::Return),
            (Moved, Input::ActiveProved) => (Settled, Action::Settle),
            // https://www.rfc-editor.org/rfc/rfc9000#section-9.3.2
            //# To protect the connection from failing due to such a spurious migration, an
            //# endpoint MUST revert to using the last validated peer address when validation of a
            //# new peer address fails.
            (Moved, Input::ActiveFailed) => (Settled, Action::Return),

            (Tried, Input::FromOther) => (Moved, Action::Follow),
            (Tried, Input::OtherProved) => (Ready, Action::None),
            (Tried | Ready, Input::OtherFailed) => (Settled, Action::Drop),
            (Ready, Input::FromOther | Input::OtherPreferred) => (Settled, Action::Switch),

            (Moving, Input::OtherProved) => (Settled, Action::Switch),
            (Moving, Input::OtherFailed) => (Settled, Action::Drop),

            (state, Input::Choose) => (state, Action::Refuse),
            (state, _) => (state, Action::None),
        }
    }
}
