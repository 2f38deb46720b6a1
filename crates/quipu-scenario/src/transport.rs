//! The transport's fields, with the defaults of every experiment.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::LazyLock;

use quipu_base::{Bytes, Duration};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::choice::{Certificate, KeyExchange, LossDetection, ReturnPaths, Tls};
use super::error::ScenarioError;
use super::form::text::read;
use super::form::{As, FieldType, Kind, Names, Numbers, Text, field_types, table};
use super::limits::INITIAL_WINDOWS;
use super::profile::Profile;
use super::units::Unit;

table! {
    /// The QUIC settings of both ends. The defaults are those of the profile `quipu`, the project's
    /// conventions; another `profile` has others.
    pub struct Transport as "Transport" partial PartialTransport {
        /// The named transport that provides all omitted values: our conventions, or a paper's prototype. `quipu
        /// transports` shows their values and sources.
        pub profile: Profile = Profile::Quipu,
        /// UDP payload of a packet before the path is validated for more, at most `udp_payload`.
        ///
        /// 1,200 B are the least that QUIC allows: <https://www.rfc-editor.org/rfc/rfc9000#section-14>.
        pub initial_udp_payload: Bytes [PAYLOADS] = Bytes(1_200),
        /// Largest UDP payload of a packet after the handshake.
        pub udp_payload: Bytes [PAYLOADS] = Bytes(1_350),
        /// Whether packets larger than `initial_udp_payload` are sent only after a probe of their size has
        /// arrived, and smaller ones when the path stops carrying them. Without it every packet may have
        /// `udp_payload` once the path is validated, whatever the path carries.
        ///
        /// <https://www.rfc-editor.org/rfc/rfc9000#section-14.3>
        pub mtu_discovery: bool = true,
        /// Initial congestion window in packets; the framework paper and MobileH2 use 32.
        pub initial_window: u32 [INITIAL_WINDOWS] = 10,
        /// Whether packets are paced. A congestion controller with its own pacing rate paces in any case.
        ///
        /// Off where a paper's stack had none.
        pub pacing: bool = true,
        /// Pacing rate in windows per round trip.
        pub pacing_factor: f64 [0.1..=100.0] = 1.25,
        /// Packets that may be sent in one burst.
        pub pacing_burst_packets: u32 [1..=10_000] = 10,
        /// The burst is the amount that the pacing rate allows in this time, if that is more than
        /// `pacing_burst_packets`.
        pub pacing_burst_time: Duration = Duration::from_millis(1),
        /// Upper limit of a burst; at least `udp_payload`.
        pub pacing_burst_limit: Bytes [..=Bytes(1 << 30)] = Bytes(64 << 10),
        /// Assumed round-trip time of a path before the first measurement.
        pub initial_rtt: Duration [LEAST_RTT..=MOST_RTT] = Duration::from_millis(333),
        /// Lower limit of probe timeouts before backoff; 0: they are determined by the round-trip time, its variation
        /// and `max_ack_delay` alone.
        pub least_probe_timeout: Duration [..=MOST_RTT] = Duration::ZERO,
        /// When a packet counts as lost after a later packet was acknowledged: if that one was sent at least three
        /// packets later, or 9/8 of a round trip after the packet was sent; or by time alone.
        pub loss_detection: LossDetection = LossDetection::PacketsOrTime,
        /// Whether packets that arrive after they were declared lost raise the thresholds of loss detection: that of
        /// packets to what was seen, that of time by a quarter of the least round-trip time. 16 rounds of losses
        /// without such a packet lower them again.
        pub adaptive_reordering: bool = true,
        /// Whether the congestion controller restores its window when all packets of a round of losses arrive after
        /// all.
        pub undo_spurious: bool = true,
        /// Whether packet numbers are skipped now and then, at random, so that a peer that acknowledges what it did
        /// not receive is found out. A gap in packet numbers is acknowledged at once.
        pub skip_packet_numbers: bool = true,
        /// Whether packets are marked as ECN-capable, ECT(0).
        pub ecn: bool = false,
        /// Ack-eliciting packets per acknowledgement.
        pub ack_every: u32 [1..=1_000] = 2,
        /// Maximum delay of an acknowledgement.
        ///
        /// 2^14 ms are more than the transport parameter can say.
        pub max_ack_delay: Duration [..Duration::from_millis(1 << 14)] = Duration::from_millis(25),
        /// Receive credit of a stream.
        pub stream_credit: Bytes [CREDITS] = Bytes(6 << 20),
        /// Receive credit of the connection.
        pub connection_credit: Bytes [CREDITS] = Bytes(15 << 20),
        /// TLS 1.3 by rustls, or a substitute with the same flights and sizes but without cryptography.
        pub tls: Tls = Tls::Null,
        /// Key exchange.
        pub key_exchange: KeyExchange = KeyExchange::X25519,
        /// Kind of the server's certificate.
        pub certificate: Certificate = Certificate::Ed25519,
        /// Size of the server's certificate chain, so that the anti-amplification limit takes effect as on the
        /// Internet.
        pub certificate_chain: Bytes [Bytes(100)..=Bytes(1 << 16)] = Bytes(3_000),
        /// What precedes the page request: nothing; the handshake and the validation of all paths; or the transfer of N
        /// small objects.
        pub start: Start = Start::Cold,
        /// With `http = "h2-tcp"`, the largest number of body bytes in a DATA frame: the stream policy is called once
        /// per frame.
        ///
        /// The default is what a peer takes without being asked:
        /// <https://www.rfc-editor.org/rfc/rfc9113#section-4.2>.
        pub data_frame: Bytes [Bytes(1)..=Bytes(16 << 10)] = Bytes(16 << 10),
        /// With `http = "h2-tcp"`, DATA frames are written while fewer bytes than this are unsent in the byte stream,
        /// so that the stream policy decides late.
        ///
        /// The default is the `TCP_NOTSENT_LOWAT` of
        /// <https://blog.cloudflare.com/http-2-prioritization-with-nginx/> (Meenan 2018).
        pub unsent_limit: Bytes [Bytes(1)..=Bytes(1 << 30)] = Bytes(16 << 10),
        /// Bytes that the server writes to a stream at a time; the framework paper uses 32KiB.
        pub server_write_chunk: Option<Bytes> = None,
        /// Concurrent requests that an HTTP/2 server accepts (SETTINGS_MAX_CONCURRENT_STREAMS); further requests wait
        /// at the client.
        ///
        /// The default is that of nginx. <https://www.rfc-editor.org/rfc/rfc9113#section-6.5.2>
        pub request_limit: u32 [1..=65_536] = 128,
        /// Which ends support the extension by which a data sender selects the return paths of acknowledgements,
        /// CHANGE_RETURN_PATH of MobileH2. It is used if both support it.
        pub return_paths: ReturnPaths = ReturnPaths::Both,
    }
}

/// Round-trip times that may be assumed.
const LEAST_RTT: Duration = Duration::from_millis(1);
const MOST_RTT: Duration = Duration::from_secs(60);
/// UDP payloads of packets. 65,527 B: what IPv4 and UDP leave of 65,535.
const PAYLOADS: RangeInclusive<Bytes> = Bytes(1_200)..=Bytes(65_527);
/// Credits of receivers: a kibibyte to a tebibyte.
const CREDITS: RangeInclusive<Bytes> = Bytes(1 << 10)..=Bytes(1 << 40);

/// Fields that a file leaves out are those of its profile.
impl From<PartialTransport> for Transport {
    fn from(given: PartialTransport) -> Self {
        let profile = given.profile.unwrap_or_default();
        given.or(Transport::of(profile))
    }
}

impl Transport {
    /// What a scenario has that says no more than the name of the profile.
    pub fn of(profile: Profile) -> &'static Transport {
        static ALL: LazyLock<[Transport; Profile::ALL.len()]> = LazyLock::new(|| {
            Profile::ALL.map(|profile| Transport::read(profile).unwrap_or_default())
        });
        &ALL[profile as usize]
    }

    fn read(profile: Profile) -> Result<Transport, toml::de::Error> {
        let given: PartialTransport = toml::from_str(&profile.transport_text())?;
        Ok(Transport { profile, ..given.or(&Transport::default()) })
    }

    /// Puts the values of `profile` in the table `transport` in place of those that are as in the
    /// profile that it has now; what was chosen otherwise stays.
    pub(crate) fn change_profile(transport: &mut toml::Table, profile: Profile) {
        let old = transport.get("profile").and_then(toml::Value::as_str);
        let old = old.and_then(|name| name.parse().ok()).unwrap_or_default();
        let [old, new] = [old, profile]
            .map(|profile| toml::Table::try_from(As(Transport::of(profile))).unwrap_or_default());
        for (field, value) in transport.iter_mut() {
            if let (Some(before), Some(now)) = (old.get(field), new.get(field))
                && value == before
            {
                value.clone_from(now);
            }
        }
    }
}

impl FieldType for Transport {
    fn kind() -> Kind {
        Kind::Table(Transport::table())
    }

    fn from_input<'de, D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        PartialTransport::from_input(input).map(Transport::from)
    }

    fn to_output<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
        self.written().to_output(output)
    }

    fn check(&self, path: &str, problems: &mut Vec<ScenarioError>) {
        self.check_fields(path, problems);
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

/// Objects that may be fetched before a page.
pub(crate) const MOST_WARM_OBJECTS: u32 = 1_000;
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

/// What is done before a page.
static START: Text = Text {
    name: "start",
    expected: "cold, paths-ready, or warm:N with N from 1 to 1000",
    pattern: "^(cold|paths-ready|warm:[+]?0*([1-9][0-9]{0,2}|1000))$",
    accepts: read::<Start>,
    numbers: Numbers::None,
    names: Names::Usual(|| ["cold", "paths-ready", "warm:4"].map(str::to_owned).to_vec()),
    examples: &["cold", "paths-ready", "warm:4", "warm:1000"],
    refused: &["warm", "warm:0", "warm:1001", "hot"],
};

field_types! {
    Start: Kind::Text(&START),
}

impl Transport {
    /// Checks that sizes go together.
    pub(super) fn validate(&self) -> Result<(), ScenarioError> {
        let invalid = |field: &str, bytes: Bytes, expected: &str| {
            Err(ScenarioError::invalid(format!("transport.{field}"), bytes.print(), expected))
        };
        if self.initial_udp_payload > self.udp_payload {
            let expected = "at most transport.udp_payload";
            return invalid("initial_udp_payload", self.initial_udp_payload, expected);
        }
        if self.pacing_burst_limit < self.udp_payload {
            let expected = "at least transport.udp_payload";
            return invalid("pacing_burst_limit", self.pacing_burst_limit, expected);
        }
        Ok(())
    }

    /// Checks credit against what HTTP/2's windows can be.
    pub(super) fn validate_windows(&self) -> Result<(), ScenarioError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_of_a_profile_is_one_that_its_field_can_hold() {
        for profile in Profile::ALL {
            let transport = Transport::read(profile).unwrap();
            assert_eq!((transport.profile, Transport::of(profile)), (profile, &transport));
            let mut problems = Vec::new();
            transport.check_fields("transport", &mut problems);
            assert!(problems.is_empty(), "{profile}: {problems:?}");
            let table = |profile| toml::Table::try_from(As(Transport::of(profile))).unwrap();
            let (ours, base) = (table(profile), table(Profile::Quipu));
            for value in profile.values() {
                assert!(!value.source.is_empty(), "{profile}: {}", value.field);
                let other = ours.get(value.field) != base.get(value.field);
                assert!(other || value.field.contains('.'), "{profile}: {}", value.field);
            }
        }
        assert_eq!(Transport::of(Profile::Quipu), &Transport::default());
        assert_eq!(Profile::ALL.map(|profile| profile.to_string()), Profile::NAMES);
    }
}
