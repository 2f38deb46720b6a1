//! Configuration of connections.

use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};

use quipu_base::{Bytes, Duration, Rate};
use thiserror::Error;

use crate::stream::CancelLimit;
use crate::wire::Version;

/// Smallest UDP payload that every path carries.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-14>
pub const MIN_UDP_PAYLOAD: u16 = 1200;

/// What an Ethernet of 1,500 bytes leaves behind the headers of IPv4 and UDP.
const ETHERNET_PAYLOAD: u16 = 1_472;
/// The same over IPv6.
const ETHERNET_PAYLOAD_IPV6: u16 = 1_452;

/// Settings of the transport. Times are of one connection; amounts are UDP payload bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransportConfig {
    /// Largest UDP payload sent on a validated path; 1,200 to 65,527. Default 1,472: what an Ethernet
    /// of 1,500 bytes leaves behind the headers of IPv4 and UDP. Over IPv6, whose header is 20 bytes
    /// longer, no more than 1,452 of it are tried unless it is above 1,472.
    pub max_udp_payload: u16,
    /// How the size of full datagrams is found. Default: by probes.
    pub mtu: Mtu,
    /// Largest UDP payload that is taken, as the peer is told; 1,200 to 65,527. Default 65,527, which
    /// stands for any. <https://www.rfc-editor.org/rfc/rfc9000#section-18.2>
    pub max_received_payload: u16,
    /// Largest UDP payload sent during the handshake and on a path that is not validated; 1,200 to
    /// `max_udp_payload`. Default 1,200. <https://www.rfc-editor.org/rfc/rfc9000#section-14.1>
    pub initial_udp_payload: u16,
    /// Pacing rate as a multiple of window per smoothed round trip, in percent; `None`: no pacing.
    /// Default 125. <https://www.rfc-editor.org/rfc/rfc9002#section-7.7>
    pub pacing_percent: Option<u32>,
    /// What may leave back to back.
    pub burst: Burst,
    /// When packets count as lost, and when a path is probed.
    pub recovery: RecoveryRules,
    /// Now and then a packet number is not used, chosen at random: a peer that acknowledges it
    /// acknowledges what it did not receive, and the connection is closed. Default true.
    /// <https://www.rfc-editor.org/rfc/rfc9000#section-21.4>
    pub skips_packet_numbers: bool,
    /// Mark 1-RTT packets as ECN-capable, ECT(0), where the path and the peer carry it. Default
    /// false. <https://www.rfc-editor.org/rfc/rfc9000#section-13.4>
    pub ecn: bool,
    /// Acknowledge at the latest after so many ack-eliciting packets. Default 2.
    /// <https://www.rfc-editor.org/rfc/rfc9000#section-13.2.2>
    pub ack_every: u32,
    /// Acknowledge at the latest so late. Default 25 ms.
    pub max_ack_delay: Duration,
    /// Acknowledgements on request of those who send data. Default: requests of the peer are obeyed, and
    /// none is made. `None`: the peer is told to make none.
    /// <https://datatracker.ietf.org/doc/html/draft-ietf-quic-ack-frequency>
    pub ack_frequency: Option<AckFrequencyConfig>,
    /// Receive window per stream. Default 6 MiB.
    pub stream_window: Bytes,
    /// Receive window of the connection. Default 15 MiB.
    pub connection_window: Bytes,
    /// Bytes kept for sending at most, over all streams of a connection, until the peer has them; at
    /// least 1. Each stream may use 16 KiB beyond, or a sixteenth of it if that is less. What more is
    /// [written](crate::Connection::write) is not taken. Default 16 MiB: what a path of 1 Gbit/s holds
    /// in 130 ms.
    pub send_buffer: Bytes,
    /// Of a stream, bytes that were not sent yet at most; at least 1. What more is written is not taken: it
    /// would be out of the processor's cache before it is sent, which costs a quarter of a bulk transfer's
    /// time. Policies see no more of it either. Default 1 MiB, sent in 8 ms at 1 Gbit/s.
    pub max_unsent: Bytes,
    /// Streams of each direction that the peer may have open, at most 2^20. Default 128, since each that
    /// something came for holds about 1.2 kB, however little it was, and 16 KiB more if it filled such a buffer
    /// before; 100 are the least that should be allowed. <https://www.rfc-editor.org/rfc/rfc9000#section-4.6>
    pub max_streams: u64,
    /// How many of its streams the peer may cancel before the connection is closed. Default 1,000 at
    /// once and 33 per second.
    pub cancels: CancelLimit,
    /// Silence after which the connection ends; zero: never. Default 30 s.
    pub idle_timeout: Duration,
    /// A PING is sent when nothing that the peer has to acknowledge was sent for so long, so that an
    /// idle connection lives; above 0. `None`, the default: it may end. Shorter than the idle timeouts
    /// of both ends. <https://www.rfc-editor.org/rfc/rfc9000#section-10.1.2>
    pub keep_alive: Option<Duration>,
    /// The same for each path by itself, after so long without any packet sent on it, so that NATs and
    /// firewalls on paths that are not used remember them; above 0. Default `None`. Many forget UDP
    /// after 30 s. <https://www.rfc-editor.org/rfc/rfc4787#section-4.3>
    pub path_keep_alive: Option<Duration>,
    /// Paths at a time, 1 to 32; 1: the multipath extension is not offered. Default 8.
    pub max_paths: u32,
    /// Connection IDs issued for each path. Default 2.
    pub connection_ids_per_path: u8,
    /// Versions of QUIC that we speak, each once, the most wanted first. Default: v1 alone. With
    /// more than one, or with v2, the transport parameter `version_information` is sent.
    ///
    /// A server accepts connections of each, and goes on in the most wanted one of those that the
    /// client allows. A client that learns that the server does not speak its first version begins
    /// again with the most wanted one that the server does speak.
    /// <https://www.rfc-editor.org/rfc/rfc9368#section-2>
    pub versions: Vec<Version>,
    /// The version of a client's first flight, one of `versions`; `None`: the first of them. A
    /// server that wants another one goes on in that without a further round trip, so the oldest
    /// one is a good choice where it is not known what a server speaks. Default `None`.
    pub first_version: Option<Version>,
    /// Datagrams of the application, which are not sent again when they are lost. Default `None`: the
    /// peer is told to send none. <https://www.rfc-editor.org/rfc/rfc9221>
    pub datagrams: Option<DatagramConfig>,
    /// Values without meaning are sent where peers have to ignore them: a reserved transport parameter,
    /// a reserved version beside ours, and any value of the QUIC bit in 1-RTT packets to peers that
    /// allow it, as we do then. Default true. Must be false where other protocols on the same port are
    /// known by that bit. <https://www.rfc-editor.org/rfc/rfc9287>
    pub grease: bool,
    /// Ask the peer not to reach this end from another address than that of the handshake. Default
    /// false; not with `max_paths` above 1 unless there is a `preferred_address`, to which alone
    /// further paths could be opened then. A rebinding of the peer's address that it knows nothing of
    /// is followed all the same.
    /// <https://www.rfc-editor.org/rfc/rfc9000#section-18.2>
    pub disable_active_migration: bool,
    /// Where a server would rather be reached than at the address of the handshake, as it tells its
    /// clients; it has to receive there too. Of no meaning at a client. Default: nowhere else.
    /// <https://www.rfc-editor.org/rfc/rfc9000#section-9.6>
    pub preferred_address: PreferredAddresses,
    /// A client moves its first path to the address that the server prefers, once the handshake is
    /// confirmed and the address proved to work, if it is of the family of the present one. To one of
    /// the other family the application may [move](crate::Connection::migrate) it. Default true.
    /// <https://www.rfc-editor.org/rfc/rfc9000#section-9.6.1>
    pub follows_preferred_address: bool,
    /// A client that waits for the rest of a stream asks the server when nothing comes for one and a
    /// half probe timeouts, once in each silence: a translator of addresses on the way may have
    /// forgotten it. Default true; our choice.
    pub probe_silence: bool,
    /// Early data (0-RTT): a client sends what its application writes before the handshake is over,
    /// if it has the session of an earlier connection whose server allowed it; a server accepts
    /// that, and tells its application what came early ([`Connection::is_early`]). Whoever recorded
    /// such data can send it again, so only an application that can bear that may switch this on.
    /// Default false. <https://www.rfc-editor.org/rfc/rfc9001#section-9.2>
    ///
    /// [`Connection::is_early`]: crate::Connection::is_early
    pub early_data: bool,
    /// Ask the peer to spare a path that keeps silent, once only backup paths are left to carry data,
    /// until it answers again. Default true.
    /// <https://www.rfc-editor.org/rfc/rfc10069#section-3.3>
    pub warns_of_broken_paths: bool,
    /// Offer the extension by which a sender of data names the return paths of acknowledgements:
    /// see [`return_paths`](crate::wire::frame::return_paths). Default true; without multipath it
    /// is not offered. The acknowledgement policy `min-owd` needs it on both ends.
    pub ack_return_paths: bool,
}

/// Where a server wants to be reached, once for each family of addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PreferredAddresses {
    /// Over IPv4; `None`: no preference.
    pub ipv4: Option<SocketAddrV4>,
    /// Over IPv6; `None`: no preference.
    pub ipv6: Option<SocketAddrV6>,
}

impl PreferredAddresses {
    /// True if `address` is one of them.
    pub fn contains(&self, address: SocketAddr) -> bool {
        self.like(address) == Some(address)
    }

    /// The one of the family of `address`.
    pub fn like(&self, address: SocketAddr) -> Option<SocketAddr> {
        match address {
            SocketAddr::V4(_) => self.ipv4.map(SocketAddr::V4),
            SocketAddr::V6(_) => self.ipv6.map(SocketAddr::V6),
        }
    }
}

/// How the size of full datagrams on a path is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mtu {
    /// Full datagrams have `initial_udp_payload` bytes until a probe of a larger size arrived, and the
    /// least size again when the path stops carrying larger ones. A path is probed once it was
    /// validated and a full datagram with data left.
    /// <https://www.rfc-editor.org/rfc/rfc9000#section-14.3>
    Discover {
        /// Time from the end of a search to the next, which may find more; above 0. Default 10
        /// minutes. <https://www.rfc-editor.org/rfc/rfc8899#section-5.1.1>
        raise_after: Duration,
    },
    /// Full datagrams have `max_udp_payload` bytes as soon as the path is validated, whatever it
    /// carries.
    Fixed,
}

impl Default for Mtu {
    fn default() -> Self {
        Mtu::Discover { raise_after: Duration::from_secs(600) }
    }
}

/// What loss recovery does where stacks differ from what RFC 9002 recommends, which is the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoveryRules {
    /// The round-trip time of a path before the first sample; above 0. Default 333 ms. A path between
    /// hosts between which there was one takes the last round-trip time of that.
    /// <https://www.rfc-editor.org/rfc/rfc9002#section-6.2.2>
    pub initial_rtt: Duration,
    /// The probe timeout is at least so long, before backoff. Default 0: round-trip time, its
    /// variation and the peer's delay decide.
    pub least_probe_timeout: Duration,
    /// A packet is lost once one sent so many later was acknowledged; at least 3. `None`: it is lost
    /// by time alone, 9/8 of a round trip. Default 3.
    /// <https://www.rfc-editor.org/rfc/rfc9002#section-6.1.1>
    pub packet_threshold: Option<u64>,
    /// Packets that arrive after they were declared lost raise both thresholds: that of packets up
    /// to 4,096, that of time up to two round trips. 16 rounds of losses without such a packet lower
    /// them again. Default true.
    /// <https://www.rfc-editor.org/rfc/rfc8985#section-6.2>
    pub adapts_to_reordering: bool,
    /// The controller restores what it reduced for losses all of which turn out to be none. Default
    /// true. <https://www.rfc-editor.org/rfc/rfc9438#section-4.9>
    pub undoes_spurious_reductions: bool,
}

impl RecoveryRules {
    /// What is used unless something else is chosen.
    pub const STANDARD: RecoveryRules = RecoveryRules {
        // https://www.rfc-editor.org/rfc/rfc9002#section-6.2.2
        //# When no previous RTT is available, the initial RTT SHOULD be set to 333
        //# milliseconds.
        initial_rtt: Duration::from_millis(333),
        least_probe_timeout: Duration::ZERO,
        // https://www.rfc-editor.org/rfc/rfc9002#section-6.1.1
        //# The RECOMMENDED initial value for the packet reordering threshold
        //# (kPacketThreshold) is 3
        packet_threshold: Some(LEAST_PACKET_THRESHOLD),
        adapts_to_reordering: true,
        undoes_spurious_reductions: true,
    };
}

impl Default for RecoveryRules {
    fn default() -> Self {
        RecoveryRules::STANDARD
    }
}

// https://www.rfc-editor.org/rfc/rfc9002#section-6.1.1
//# In order to remain similar to TCP, implementations SHOULD NOT use a packet threshold
//# less than 3; see [RFC5681].
const LEAST_PACKET_THRESHOLD: u64 = 3;

/// How much may leave back to back on a paced path: the larger of the first two, but no more than
/// the third. Our choice: so that batches form which a kernel segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// Full packets. Default 10, the initial window that RFC 9002 allows.
    /// <https://www.rfc-editor.org/rfc/rfc9002#section-7.7>
    pub packets: u32,
    /// What the pacing rate gives in this time. Default 1 ms.
    pub time: Duration,
    /// UDP payload bytes. Default 64 KiB.
    pub limit: Bytes,
}

impl Default for Burst {
    fn default() -> Self {
        Burst { packets: 10, time: Duration::from_millis(1), limit: Bytes(64 << 10) }
    }
}

impl Burst {
    /// UDP payload bytes of a burst at that pacing rate.
    pub(crate) fn bytes(&self, rate: Rate, datagram_size: Bytes) -> Bytes {
        let packets = datagram_size.saturating_mul(u64::from(self.packets));
        packets.max(rate.bytes_in(self.time)).min(self.limit)
    }
}

impl Default for TransportConfig {
    fn default() -> Self {
        TransportConfig {
            max_udp_payload: ETHERNET_PAYLOAD,
            mtu: Mtu::default(),
            max_received_payload: 65_527,
            initial_udp_payload: MIN_UDP_PAYLOAD,
            pacing_percent: Some(125),
            burst: Burst::default(),
            recovery: RecoveryRules::default(),
            skips_packet_numbers: true,
            ecn: false,
            ack_every: 2,
            max_ack_delay: Duration::from_millis(25),
            ack_frequency: Some(AckFrequencyConfig::default()),
            stream_window: Bytes(6 << 20),
            connection_window: Bytes(15 << 20),
            send_buffer: Bytes(16 << 20),
            max_unsent: Bytes(1 << 20),
            max_streams: 128,
            cancels: CancelLimit::default(),
            idle_timeout: Duration::from_secs(30),
            keep_alive: None,
            path_keep_alive: None,
            max_paths: 8,
            connection_ids_per_path: 2,
            versions: vec![Version::V1],
            first_version: None,
            datagrams: None,
            grease: true,
            disable_active_migration: false,
            preferred_address: PreferredAddresses::default(),
            follows_preferred_address: true,
            probe_silence: true,
            warns_of_broken_paths: true,
            // https://www.rfc-editor.org/rfc/rfc9001#section-5.6
            //# A client therefore MUST NOT use 0-RTT for application data unless specifically
            //# requested by the application that is in use.
            early_data: false,
            ack_return_paths: true,
        }
    }
}

/// Acknowledgements on request. Requests hold for a whole connection; packets of each path count by
/// themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckFrequencyConfig {
    /// The peer may ask for delays of acknowledgements down to this, as it is told; at most
    /// `max_ack_delay`. Default 1 ms.
    pub least_delay: Duration,
    /// What is asked of a peer that takes requests. Default `None`: nothing.
    pub request: Option<AckRequest>,
}

impl Default for AckFrequencyConfig {
    fn default() -> Self {
        AckFrequencyConfig { least_delay: Duration::from_millis(1), request: None }
    }
}

/// How the peer is asked to acknowledge our packets. It is told of packets that were overtaken as soon
/// as that counts as their loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckRequest {
    /// At the latest after so many ack-eliciting packets, or after half a congestion window if that is
    /// less; at least 1. Default 10.
    pub every: u32,
    /// At the latest so late, or after a smoothed round-trip time if that is less. Default 25 ms.
    pub max_delay: Duration,
}

impl Default for AckRequest {
    fn default() -> Self {
        AckRequest { every: 10, max_delay: Duration::from_millis(25) }
    }
}

/// Datagrams of the application. Bounds of queues count the bytes of each datagram and 64 more for what
/// is kept of it; one datagram is kept in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramConfig {
    /// Largest DATAGRAM frame that is taken, type and length included, as the peer is told; above 0.
    /// Default 65,535: any that fits a packet.
    /// <https://www.rfc-editor.org/rfc/rfc9221#section-3>
    pub max_frame: u16,
    /// Bytes of datagrams that wait to be sent, at most: the oldest make room for new ones. Default
    /// 1 MiB.
    pub send_queue: Bytes,
    /// Bytes of datagrams that wait to be read, at most: the oldest make room for new ones. Default
    /// 1 MiB.
    pub receive_queue: Bytes,
    /// Datagrams go before the data of streams, but while both wait, after so many packets with
    /// datagrams one is left to streams alone; above 0. Default 3. Streams marked as
    /// [control streams](crate::Connection::set_control) go before both.
    /// <https://www.rfc-editor.org/rfc/rfc9221#section-5.1>
    pub packets_in_row: u8,
}

impl Default for DatagramConfig {
    fn default() -> Self {
        DatagramConfig {
            // https://www.rfc-editor.org/rfc/rfc9221#section-3
            //# For most uses of DATAGRAM frames, it is RECOMMENDED to send a value of 65535 in the
            //# max_datagram_frame_size transport parameter to indicate that this endpoint will
            //# accept any DATAGRAM frame that fits inside a QUIC packet.
            max_frame: 65_535,
            send_queue: Bytes(1 << 20),
            receive_queue: Bytes(1 << 20),
            packets_in_row: 3,
        }
    }
}

/// A setting that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{field} is {value}, expected {expected}")]
pub struct ConfigError {
    /// The field of [`TransportConfig`].
    pub field: &'static str,
    /// What it holds.
    pub value: String,
    /// What it may hold.
    pub expected: &'static str,
}

impl TransportConfig {
    /// True if the return-path extension is offered: it is of no use on one path.
    pub(crate) fn offers_return_paths(&self) -> bool {
        self.ack_return_paths && self.max_paths > 1
    }

    /// The largest UDP payload to send to that address, as far as we are concerned.
    pub(crate) fn max_payload_to(&self, remote: SocketAddr) -> u16 {
        if remote.is_ipv6() && self.max_udp_payload <= ETHERNET_PAYLOAD {
            self.max_udp_payload.min(ETHERNET_PAYLOAD_IPV6)
        } else {
            self.max_udp_payload
        }
    }

    /// The version of a client's first flight.
    pub(crate) fn first_version(&self) -> Version {
        self.first_version.or(self.versions.first().copied()).unwrap_or(Version::V1)
    }

    /// True if versions are negotiated, so that `version_information` is sent.
    pub(crate) fn negotiates_version(&self) -> bool {
        // https://www.rfc-editor.org/rfc/rfc9369#section-4
        //# Any QUIC endpoint that supports QUIC version 2 MUST send, process, and validate the
        //# version_information transport parameter specified in [QUIC-VN] to prevent version
        //# downgrade attacks.
        self.versions != [Version::V1]
    }

    /// Checks every field.
    ///
    /// # Errors
    /// The first field whose value cannot be.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let wrong = |field, value: &dyn std::fmt::Display, expected| {
            Err(ConfigError { field, value: value.to_string(), expected })
        };
        if !(MIN_UDP_PAYLOAD..=65_527).contains(&self.max_udp_payload) {
            return wrong("max_udp_payload", &self.max_udp_payload, "1200 to 65527 bytes");
        }
        if !(MIN_UDP_PAYLOAD..=self.max_udp_payload).contains(&self.initial_udp_payload) {
            let payload = &self.initial_udp_payload;
            return wrong("initial_udp_payload", payload, "1200 bytes to max_udp_payload");
        }
        if let Mtu::Discover { raise_after } = self.mtu
            && raise_after.is_zero()
        {
            return wrong("mtu.raise_after", &raise_after, "above 0");
        }
        if !(MIN_UDP_PAYLOAD..=65_527).contains(&self.max_received_payload) {
            return wrong(
                "max_received_payload",
                &self.max_received_payload,
                "1200 to 65527 bytes",
            );
        }
        if self.pacing_percent == Some(0) {
            return wrong("pacing_percent", &0, "above 0, or none");
        }
        if self.burst.packets == 0 {
            return wrong("burst.packets", &0, "at least 1");
        }
        if self.burst.limit < Bytes(u64::from(self.max_udp_payload)) {
            return wrong("burst.limit", &self.burst.limit, "at least max_udp_payload");
        }
        if self.recovery.initial_rtt.is_zero() {
            return wrong("recovery.initial_rtt", &self.recovery.initial_rtt, "above 0");
        }
        if let Some(threshold) = self.recovery.packet_threshold
            && threshold < LEAST_PACKET_THRESHOLD
        {
            return wrong("recovery.packet_threshold", &threshold, "at least 3, or none");
        }
        if self.ack_every == 0 {
            return wrong("ack_every", &0, "at least 1");
        }
        // https://www.rfc-editor.org/rfc/rfc9000#section-18.2
        //# Values of 2^14 or greater are invalid.
        if self.max_ack_delay >= Duration::from_millis(1 << 14) {
            return wrong("max_ack_delay", &self.max_ack_delay, "below 2^14 ms");
        }
        if let Some(AckFrequencyConfig { least_delay, request }) = self.ack_frequency {
            if least_delay > self.max_ack_delay {
                return wrong("ack_frequency.least_delay", &least_delay, "at most max_ack_delay");
            }
            if request.is_some_and(|request| request.every == 0) {
                return wrong("ack_frequency.request.every", &0, "at least 1");
            }
            if let Some(delay) = request.map(|request| request.max_delay)
                && delay >= Duration::from_millis(1 << 14)
            {
                return wrong("ack_frequency.request.max_delay", &delay, "below 2^14 ms");
            }
        }
        if self.stream_window.is_zero() || self.stream_window.0 >= 1 << 40 {
            return wrong("stream_window", &self.stream_window, "1 byte to 1 TiB");
        }
        if self.connection_window.is_zero() || self.connection_window.0 >= 1 << 40 {
            return wrong("connection_window", &self.connection_window, "1 byte to 1 TiB");
        }
        for (field, interval) in
            [("keep_alive", self.keep_alive), ("path_keep_alive", self.path_keep_alive)]
        {
            if let Some(interval) = interval.filter(|interval| interval.is_zero()) {
                return wrong(field, &interval, "above 0, or none");
            }
        }
        if !(1..=32).contains(&self.max_paths) {
            return wrong("max_paths", &self.max_paths, "1 to 32");
        }
        // https://www.rfc-editor.org/rfc/rfc10069#section-2.2
        let elsewhere = self.preferred_address != PreferredAddresses::default();
        if self.disable_active_migration && self.max_paths > 1 && !elsewhere {
            return wrong("disable_active_migration", &true, "false with more than one path");
        }
        if !(1..=8).contains(&self.connection_ids_per_path) {
            return wrong("connection_ids_per_path", &self.connection_ids_per_path, "1 to 8");
        }
        if let Some(datagrams) = &self.datagrams {
            for (field, value) in [
                ("datagrams.max_frame", datagrams.max_frame),
                ("datagrams.packets_in_row", datagrams.packets_in_row.into()),
            ] {
                if value == 0 {
                    return wrong(field, &value, "above 0");
                }
            }
        }
        if self.send_buffer.is_zero() {
            return wrong("send_buffer", &self.send_buffer, "at least 1 byte");
        }
        if self.max_unsent.is_zero() {
            return wrong("max_unsent", &self.max_unsent, "at least 1 byte");
        }
        if self.cancels.burst == 0 {
            return wrong("cancels.burst", &0, "at least 1");
        }
        if self.max_streams > 1 << 20 {
            return wrong("max_streams", &self.max_streams, "at most 2^20");
        }
        if self.versions.is_empty() {
            return wrong("versions", &"empty", "at least one version");
        }
        for (at, version) in self.versions.iter().enumerate() {
            if !version.is_known() || self.versions[..at].contains(version) {
                return wrong("versions", version, "versions 1 and 2, each at most once");
            }
        }
        if let Some(first) = self.first_version
            && !self.versions.contains(&first)
        {
            return wrong("first_version", &first, "one of versions");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_valid_and_mistakes_name_the_field() {
        assert_eq!(TransportConfig::default().validate(), Ok(()));
        let config = TransportConfig { max_paths: 0, ..TransportConfig::default() };
        let error = config.validate().unwrap_err();
        assert_eq!(error.to_string(), "max_paths is 0, expected 1 to 32");
        let twice = vec![Version::V1, Version::V1];
        let config = TransportConfig { versions: twice, ..TransportConfig::default() };
        assert_eq!(config.validate().unwrap_err().field, "versions");
        let first_version = Some(Version::V2);
        let config = TransportConfig { first_version, ..TransportConfig::default() };
        assert_eq!(config.validate().unwrap_err().field, "first_version");
    }
}
