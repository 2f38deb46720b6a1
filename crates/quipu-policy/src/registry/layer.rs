//! The questions that policies answer, each a layer of its own.

use std::fmt;

/// Which question a policy answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// Whose bytes go next.
    Stream,
    /// Which path they take.
    Path,
    /// Both at once.
    Joint,
    /// How many streams share a packet.
    Pack,
    /// When and where lost bytes go again.
    Resend,
    /// Which bytes in flight are copied, and where.
    Reinject,
    /// On which path an acknowledgement returns.
    Ack,
    /// How much may be in flight on a path.
    Congestion,
}

impl Layer {
    /// All layers, in the order in which a policy's text names them.
    pub const ALL: [Layer; 8] = [
        Layer::Stream,
        Layer::Path,
        Layer::Joint,
        Layer::Pack,
        Layer::Resend,
        Layer::Reinject,
        Layer::Ack,
        Layer::Congestion,
    ];

    /// Its name in text.
    pub const fn name(self) -> &'static str {
        match self {
            Layer::Stream => "stream",
            Layer::Path => "path",
            Layer::Joint => "joint",
            Layer::Pack => "pack",
            Layer::Resend => "resend",
            Layer::Reinject => "reinject",
            Layer::Ack => "ack",
            Layer::Congestion => "congestion",
        }
    }

    /// The question it answers.
    pub const fn question(self) -> &'static str {
        match self {
            Layer::Stream => "whose bytes go next",
            Layer::Path => "which path they take",
            Layer::Joint => "whose bytes go next, and on which path",
            Layer::Pack => "how many streams share a packet",
            Layer::Resend => "when and where lost bytes go again",
            Layer::Reinject => "which bytes in flight are copied",
            Layer::Ack => "on which path an acknowledgement returns",
            Layer::Congestion => "how much may be in flight on a path",
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
