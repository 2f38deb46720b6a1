//! Fields with a few named values.

use quipu_record::energy::{self, PowerModel};

/// Declares an enum whose values have names in files and on the command line.
macro_rules! choices {
    ($(#[$meta:meta])* $name:ident, $what:literal { $($(#[$doc:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub enum $name { $($(#[$doc])* $variant,)+ }

        impl $name {
            /// The names of all values.
            pub const NAMES: &[&str] = &[$($text),+];
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(match self { $($name::$variant => $text),+ })
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::error::ScenarioError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $($text => Ok($name::$variant),)+
                    _ => Err($crate::error::ScenarioError::unknown(
                        $what, text, Self::NAMES.iter().copied())),
                }
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        $crate::form::field_types! {
            $name: $crate::form::Kind::Words($name::NAMES.to_vec()),
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <String as serde::Deserialize>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

pub(crate) use choices;

choices! {
    /// When a packet counts as lost.
    LossDetection, "loss detection" {
        /// Once one sent three later was acknowledged, or 9/8 of a round trip after it left: RFC 9002,
        /// section 6.1.
        #[default]
        PacketsOrTime = "packets-or-time",
        /// By time alone, as gQUIC stacks did.
        Time = "time",
    }
}

choices! {
    /// Which ends have the extension for return paths of acknowledgements.
    ReturnPaths, "return paths" {
        /// Both, so that it is used.
        #[default]
        Both = "both",
        /// The client alone: the server is a legacy one.
        Client = "client",
        /// The server alone: the client is a legacy one.
        Server = "server",
        /// Neither.
        None = "none",
    }
}

impl ReturnPaths {
    /// Whether the client has it.
    pub fn at_client(self) -> bool {
        matches!(self, ReturnPaths::Both | ReturnPaths::Client)
    }

    /// Whether the server has it.
    pub fn at_server(self) -> bool {
        matches!(self, ReturnPaths::Both | ReturnPaths::Server)
    }
}

choices! {
    /// A published model of a radio's power.
    EnergyModel, "energy model" {
        /// Wi-Fi of Huang et al. (MobiSys 2012).
        #[default]
        Wifi = "wifi",
        /// LTE of Huang et al. (MobiSys 2012).
        Lte = "lte",
    }
}

impl EnergyModel {
    /// What the radio takes in each of its states.
    pub fn power(self) -> PowerModel {
        match self {
            EnergyModel::Wifi => energy::WIFI,
            EnergyModel::Lte => energy::LTE,
        }
    }
}

choices! {
    /// When objects are asked for.
    Discovery, "discovery" {
        /// When the parser or a parent comes to them, as recorded.
        #[default]
        Recorded = "recorded",
        /// All at time 0, as in the framework paper; what the server pushes, if it was not promised, with
        /// the head of the document.
        AllAtOnce = "all-at-once",
    }
}

choices! {
    /// How much of what passed in a recording is taken for computing and thinking.
    Compute, "compute" {
        /// All of it but round trips: every wait of the recording is kept.
        AsRecorded = "as-recorded",
        /// As little as the recording allows.
        Low = "low",
        /// What is most likely: the network of the recording is taken out.
        #[default]
        Likely = "likely",
        /// As much as the recording allows.
        High = "high",
    }
}

choices! {
    /// Which objects the server pushes.
    Push, "push" {
        /// None; the browser refuses pushed responses.
        #[default]
        None = "none",
        /// Those that the recorded server pushed.
        Recorded = "recorded",
        /// Style sheets, scripts and fonts that rendering or parsing waits for.
        Critical = "critical",
        /// Images.
        Images = "images",
        /// Style sheets, scripts, fonts, images, audio and video.
        Assets = "assets",
    }
}

choices! {
    /// How many servers a page comes from.
    Origins, "origins" {
        /// One server over one connection, as in the papers.
        #[default]
        One = "one",
        /// As many as the recording has: each scheme and authority has a server and a connection of its
        /// own, over all paths, opened when the first object of it is asked for.
        Recorded = "recorded",
    }
}

choices! {
    /// How HTTP is carried.
    HttpVersion, "http" {
        /// HTTP/2 over QUIC with the dependency tree, as the papers do it.
        #[default]
        H2 = "h2",
        /// HTTP/2 over one byte stream, as over TCP: a loss holds up all that follows it. The stream
        /// policy orders DATA frames of all responses in that stream, which is one of QUIC's; so the
        /// handshake is QUIC's too, of one round trip less than TCP's and TLS's, and its
        /// acknowledgements tell more ranges than TCP's, and without doubt about retransmissions.
        H2Tcp = "h2-tcp",
        /// HTTP/3, whose priorities are the urgencies of RFC 9218 whatever `priorities` says. Nothing is pushed.
        H3 = "h3",
        /// Not at all: objects on raw QUIC streams, as in the ns-3 paper.
        Raw = "raw",
    }
}

choices! {
    /// In which order the objects of a page are written to raw streams.
    WriteOrder, "order" {
        /// As the page, or `raw.objects`, has them.
        #[default]
        Given = "given",
        /// Shuffled, by the run's chance.
        Random = "random",
    }
}

choices! {
    /// Which end writes to raw streams.
    Sender, "sender" {
        /// The server, when it is asked.
        #[default]
        Server = "server",
        /// The client, when it can.
        Client = "client",
    }
}

choices! {
    /// How a browser tells what is urgent.
    Priorities, "priorities" {
        /// By places in the dependency tree of RFC 7540.
        #[default]
        Tree = "tree",
        /// By urgencies of RFC 9218, as over HTTP/3; in HTTP/2's requests as `priority` field.
        Urgency = "urgency",
    }
}

choices! {
    /// Whether requests under way get another priority when layout shows what is in view.
    Reprioritise, "reprioritise" {
        /// As the browser does: Chrome does it.
        #[default]
        Browser = "browser",
        /// Never; nothing is known to be in view.
        Off = "off",
    }
}

choices! {
    /// The handshake and the packet protection.
    Tls, "tls" {
        /// Same flights and sizes, no arithmetic, results repeatable to the byte.
        #[default]
        Null = "null",
        /// TLS 1.3 by rustls, with random keys.
        Rustls = "rustls",
    }
}

choices! {
    /// The key exchange, which decides the size of the first flights.
    KeyExchange, "key_exchange" {
        /// X25519: 32 B shares.
        #[default]
        X25519 = "x25519",
    }
}

choices! {
    /// The kind of the server's certificate, which decides the size of its signature.
    Certificate, "certificate" {
        /// Ed25519: 64 B signatures.
        #[default]
        Ed25519 = "ed25519",
    }
}

choices! {
    /// Which way bytes go.
    Direction, "direction" {
        /// From the server to the client.
        #[default]
        Down = "down",
        /// From the client to the server.
        Up = "up",
    }
}

choices! {
    /// How the datagrams of cross traffic follow one another.
    CrossKind, "kind" {
        /// At constant distances.
        #[default]
        Constant = "constant",
        /// At distances from an exponential law.
        Poisson = "poisson",
        /// At constant distances in times from an exponential law, with silence between.
        OnOff = "on-off",
    }
}

choices! {
    /// What a link does when the recording that it follows is over.
    TraceEnd, "at_end" {
        /// The recording starts again.
        #[default]
        Loop = "loop",
        /// Its last rate, delay or loss holds for good; not for recordings in Mahimahi's form.
        Hold = "hold",
        /// Nothing leaves the link any more.
        Stop = "stop",
    }
}

choices! {
    /// Which ends of a connection a time series shows.
    SeriesEnds, "series_ends" {
        /// The one that sends the data: the server of a page.
        #[default]
        Sender = "sender",
        /// The one that receives it too.
        Both = "both",
    }
}

choices! {
    /// How airtime on the radio is counted; see [`quipu_link::radio::Timing`].
    RadioTiming, "timing" {
        /// As in the standard.
        #[default]
        Standard = "standard",
        /// As wmediumd counts it.
        Wmediumd = "wmediumd",
    }
}

impl From<Push> for quipu_web::push::Push {
    fn from(push: Push) -> Self {
        match push {
            Push::None => quipu_web::push::Push::None,
            Push::Recorded => quipu_web::push::Push::Recorded,
            Push::Critical => quipu_web::push::Push::Critical,
            Push::Images => quipu_web::push::Push::Images,
            Push::Assets => quipu_web::push::Push::Assets,
        }
    }
}

impl From<Direction> for quipu_record::Direction {
    fn from(direction: Direction) -> Self {
        match direction {
            Direction::Down => quipu_record::Direction::Down,
            Direction::Up => quipu_record::Direction::Up,
        }
    }
}
