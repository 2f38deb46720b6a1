//! How recordings are read.

/// How much of what passed in a recording is taken for computing and thinking, which take as long over every
/// network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Compute {
    /// All of it, but the shortest round trip to each host: nothing waits for more than one other.
    AsRecorded,
    /// As little as the recording allows.
    Low,
    /// What is most likely.
    #[default]
    Likely,
    /// As much as the recording allows.
    High,
}
