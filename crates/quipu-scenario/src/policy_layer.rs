//! What policies decide.

/// What a policy decides: for each of these a scenario names some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyLayer {
    /// Which stream's bytes go next.
    Stream,
    /// Which path they take.
    Path,
    /// Both at once.
    Joint,
    /// Which path an acknowledgement takes.
    Ack,
    /// How much may be in flight on a path.
    Congestion,
    /// How many streams share a packet.
    Pack,
    /// When and where lost bytes go again.
    Resend,
    /// Copies of bytes in flight on other paths.
    Reinject,
}
