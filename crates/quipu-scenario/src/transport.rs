//! The transport's fields, with the defaults of every experiment.

use std::fmt;
use std::str::FromStr;

use quipu_base::{Bytes, Duration};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::ScenarioError;
use super::choice::{Certificate, KeyExchange, Tls};
use super::units::human;

/// What both ends' QUIC does. All defaults are the project's conventions; papers differ in some.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Transport {
    /// UDP payload of a packet before the path is validated for more. 1,200 B, the least that QUIC
    /// allows: <https://www.rfc-editor.org/rfc/rfc9000#section-14>.
    #[serde(with = "human")]
    pub initial_udp_payload: Bytes,
    /// UDP payload of a packet after the handshake, 1,200 to 65,527 B. 1,350 B.
    #[serde(with = "human")]
    pub udp_payload: Bytes,
    /// Initial congestion window in packets. 10; the framework paper and MobileH2 have 32.
    pub initial_window: u32,
    /// Whether packets are paced. Yes; off where a paper's stack had none. A congestion controller
    /// that names a pacing rate of its own paces all the same.
    pub pacing: bool,
    /// Pacing rate in windows per round trip. 1.25.
    pub pacing_factor: f64,
    /// Packets that may leave at once. 10.
    pub pacing_burst_packets: u32,
    /// Or as many as the pacing rate gives in this time, if that is more. 1 ms.
    #[serde(with = "human")]
    pub pacing_burst_time: Duration,
    /// But never more than this at once. 64 KiB.
    #[serde(with = "human")]
    pub pacing_burst_limit: Bytes,
    /// Whether packets are marked as able to carry congestion marks, ECT(0). No.
    pub ecn: bool,
    /// Ack-eliciting packets per acknowledgement. 2.
    pub ack_every: u32,
    /// How late an acknowledgement is at most. 25 ms.
    #[serde(with = "human")]
    pub max_ack_delay: Duration,
    /// Receive credit of a stream. 6 MiB.
    #[serde(with = "human")]
    pub stream_credit: Bytes,
    /// Receive credit of the connection. 15 MiB.
    #[serde(with = "human")]
    pub connection_credit: Bytes,
    /// TLS or its stand-in without arithmetic. Null.
    pub tls: Tls,
    /// Key exchange. X25519.
    pub key_exchange: KeyExchange,
    /// Kind of the server's certificate. Ed25519.
    pub certificate: Certificate,
    /// Bytes of the server's certificate chain, so that the limit against amplification acts as
    /// in life. 3,000 B.
    #[serde(with = "human")]
    pub certificate_chain: Bytes,
    /// What is done before the page is asked for. Cold.
    pub start: Start,
    /// With `http = "h2-tcp"`, most body bytes of a DATA frame, 1 to 16,384 B: the stream policy is
    /// asked once for each. 16 KiB, what a peer takes without being asked:
    /// <https://www.rfc-editor.org/rfc/rfc9113#section-4.2>.
    #[serde(with = "human")]
    pub data_frame: Bytes,
    /// With `http = "h2-tcp"`, DATA frames are written while fewer bytes than this wait unsent in the
    /// byte stream, so that the stream policy chooses late. 16 KiB, the `TCP_NOTSENT_LOWAT` of
    /// <https://blog.cloudflare.com/http-2-prioritization-with-nginx/> (Meenan 2018).
    #[serde(with = "human")]
    pub unsent_limit: Bytes,
    /// Bytes that the server writes to a stream at a time. Unlimited; the framework paper 32 KiB.
    #[serde(with = "human")]
    pub server_write_chunk: Option<Bytes>,
}

impl Default for Transport {
    fn default() -> Self {
        Transport {
            initial_udp_payload: Bytes(1_200),
            udp_payload: Bytes(1_350),
            initial_window: 10,
            pacing: true,
            pacing_factor: 1.25,
            pacing_burst_packets: 10,
            pacing_burst_time: Duration::from_millis(1),
            pacing_burst_limit: Bytes(64 << 10),
            ecn: false,
            ack_every: 2,
            max_ack_delay: Duration::from_millis(25),
            stream_credit: Bytes(6 << 20),
            connection_credit: Bytes(15 << 20),
            tls: Tls::Null,
            key_exchange: KeyExchange::X25519,
            certificate: Certificate::Ed25519,
            certificate_chain: Bytes(3_000),
            start: Start::Cold,
            data_frame: Bytes(16 << 10),
            unsent_limit: Bytes(16 << 10),
            server_write_chunk: None,
        }
    }
}

/// What is done before the page is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// Nothing: the first request opens the connection, further paths follow the handshake.
    #[default]
    Cold,
    /// The handshake and the validation of all paths; windows are initial.
    PathsReady,
    /// So many small objects were fetched, so that windows and round trips are known.
    Warm(u32),
}

const MOST_WARM_OBJECTS: u32 = 1_000;
const START_NAMES: [&str; 3] = ["cold", "paths-ready", "warm:N"];

impl fmt::Display for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Start::Cold => f.write_str("cold"),
            Start::PathsReady => f.write_str("paths-ready"),
            Start::Warm(objects) => write!(f, "warm:{objects}"),
        }
    }
}

impl FromStr for Start {
    type Err = ScenarioError;

    fn from_str(text: &str) -> Result<Self, ScenarioError> {
        match (text, text.split_once(':')) {
            ("cold", _) => Ok(Start::Cold),
            ("paths-ready", _) => Ok(Start::PathsReady),
            (_, Some(("warm", objects))) => match objects.parse() {
                Ok(objects @ 1..=MOST_WARM_OBJECTS) => Ok(Start::Warm(objects)),
                _ => Err(ScenarioError::invalid("start", text, "warm:1 to warm:1000")),
            },
            _ => Err(ScenarioError::unknown("start", text, START_NAMES)),
        }
    }
}

impl Serialize for Start {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Start {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl Transport {
    /// Checks every field against its range.
    pub(super) fn validate(&self) -> Result<(), ScenarioError> {
        use super::units::Unit;
        let within = |field, bytes: Bytes, least: u64, most: u64, expected| {
            if (least..=most).contains(&bytes.0) {
                Ok(())
            } else {
                Err(ScenarioError::invalid(field, bytes.print(), expected))
            }
        };
        // 65,527 B: what IPv4 and UDP leave of 65,535.
        let payload = "1200B to 65527B";
        within("transport.udp_payload", self.udp_payload, 1_200, 65_527, payload)?;
        let initial = self.initial_udp_payload;
        let expected = "1200B to transport.udp_payload";
        within("transport.initial_udp_payload", initial, 1_200, self.udp_payload.0, expected)?;
        let credit = "1KiB to 1024GiB";
        within("transport.stream_credit", self.stream_credit, 1 << 10, 1 << 40, credit)?;
        within("transport.connection_credit", self.connection_credit, 1 << 10, 1 << 40, credit)?;
        let chain = "100B to 64KiB";
        within("transport.certificate_chain", self.certificate_chain, 100, 1 << 16, chain)?;
        let limit = self.pacing_burst_limit;
        let expected = "transport.udp_payload to 1GiB";
        within("transport.pacing_burst_limit", limit, self.udp_payload.0, 1 << 30, expected)?;
        within("transport.data_frame", self.data_frame, 1, 16_384, "1B to 16KiB")?;
        within("transport.unsent_limit", self.unsent_limit, 1, 1 << 30, "1B to 1GiB")?;
        if self.server_write_chunk == Some(Bytes::ZERO) {
            let expected = "1B or more, or unlimited";
            return Err(ScenarioError::invalid("transport.server_write_chunk", "0B", expected));
        }
        let counted = |field, value: u32, most: u32, expected| {
            if (1..=most).contains(&value) {
                Ok(())
            } else {
                Err(ScenarioError::invalid(field, value, expected))
            }
        };
        counted("transport.initial_window", self.initial_window, 10_000, "1 to 10000 packets")?;
        counted("transport.ack_every", self.ack_every, 1_000, "1 to 1000 packets")?;
        let packets = "1 to 10000 packets";
        counted("transport.pacing_burst_packets", self.pacing_burst_packets, 10_000, packets)?;
        // Written so that NaN fails.
        if !(0.1..=100.0).contains(&self.pacing_factor) {
            let factor = self.pacing_factor;
            return Err(ScenarioError::invalid("transport.pacing_factor", factor, "0.1 to 100"));
        }
        // 2^14 ms: the most that the transport parameter can say.
        if self.max_ack_delay >= Duration::from_millis(1 << 14) {
            let delay = self.max_ack_delay.print();
            return Err(ScenarioError::invalid("transport.max_ack_delay", delay, "below 16384ms"));
        }
        Ok(())
    }

    /// Checks credit against what HTTP/2's windows can be.
    pub(super) fn validate_windows(&self) -> Result<(), ScenarioError> {
        use super::units::Unit;
        // Before SETTINGS come, by RFC 9113, section 6.9.2; it cannot be made smaller.
        const DEFAULT_WINDOW: u32 = 65_535;
        // By RFC 9113, section 6.9.1.
        const LARGEST_WINDOW: u32 = (1 << 31) - 1;
        let most = u64::from(LARGEST_WINDOW);
        let check = |field, bytes: Bytes, least: u32, expected: &str| {
            if (u64::from(least)..=most).contains(&bytes.0) {
                return Ok(());
            }
            let expected = format!("{expected} with http = h2-tcp");
            Err(ScenarioError::invalid(field, bytes.print(), expected))
        };
        check("transport.stream_credit", self.stream_credit, 1, "at most 2147483647B")?;
        let expected = "65535B to 2147483647B";
        check("transport.connection_credit", self.connection_credit, DEFAULT_WINDOW, expected)
    }
}
