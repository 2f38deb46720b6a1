//! What the planner was told of each stream.

use crate::key::StreamKey;

/// By stream slot: whether the planner holds a stream for ready, and which streams are ready
/// to the engine while paths hold all that is pending of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Edges {
    states: Vec<State>,
    covered: Vec<StreamKey>,
    /// Kept for its memory.
    scratch: Vec<StreamKey>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct State {
    ready: bool,
    covered: bool,
}

impl Edges {
    /// A stream's slot begins a new life.
    pub(super) fn reset(&mut self, stream: StreamKey) {
        *self.state(stream) = State::default();
        self.covered.retain(|other| other.slot != stream.slot);
    }

    /// Notes what is so; `Some(ready)` if the planner has to be told.
    pub(super) fn update(&mut self, stream: StreamKey, ready: bool, covered: bool) -> Option<bool> {
        let state = self.state(stream);
        let told = std::mem::replace(&mut state.ready, ready);
        if covered && !std::mem::replace(&mut state.covered, true) {
            self.covered.push(stream);
        }
        (told != ready).then_some(ready)
    }

    /// Takes the streams that were covered when last looked at.
    pub(super) fn take_covered(&mut self) -> Vec<StreamKey> {
        let spare = std::mem::take(&mut self.scratch);
        let covered = std::mem::replace(&mut self.covered, spare);
        for stream in &covered {
            if let Some(state) = self.states.get_mut(stream.index()) {
                state.covered = false;
            }
        }
        covered
    }

    /// Gives back the list for its memory.
    pub(super) fn recycle(&mut self, mut list: Vec<StreamKey>) {
        list.clear();
        self.scratch = list;
    }

    fn state(&mut self, stream: StreamKey) -> &mut State {
        if self.states.len() <= stream.index() {
            self.states.resize(stream.index() + 1, State::default());
        }
        &mut self.states[stream.index()]
    }
}
