//! Transport parameters: what each end declares about itself during the handshake.
//! <https://www.rfc-editor.org/rfc/rfc9000#section-18>

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6};

use quipu_base::{Bytes, Duration, PathId, Role};
use smallvec::SmallVec;
use thiserror::Error;

use crate::error::{ErrorCode, TransportError};
use crate::wire::frame::MAX_STREAMS;
use crate::wire::{ConnectionId, EndedEarly, NoSpace, Reader, ResetToken, Writer, varint};

/// The most parameters that a peer may list, known ones and others: our choice, four times what
/// the registry holds, so that a long list costs no long time.
pub const MAX_PARAMETERS: usize = 128;

/// What an endpoint declares about itself. [`Default`] holds what absent parameters mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransportParameters {
    /// Server: the destination connection ID of the client's first Initial packet.
    pub original_destination_connection_id: Option<ConnectionId>,
    /// Silence after which the sender drops the connection, in whole milliseconds on the wire;
    /// zero: never.
    pub max_idle_timeout: Duration,
    /// Server: what resets the connection with the handshake's connection ID.
    pub stateless_reset_token: Option<ResetToken>,
    /// The largest UDP payload that the sender takes, at least 1,200 bytes; 65,527 if absent.
    pub max_udp_payload_size: u64,
    /// Credit of the connection.
    pub initial_max_data: Bytes,
    /// Credit of a bidirectional stream that the sender of the parameter opens.
    pub initial_max_stream_data_bidi_local: Bytes,
    /// Credit of a bidirectional stream that its receiver opens.
    pub initial_max_stream_data_bidi_remote: Bytes,
    /// Credit of a unidirectional stream that its receiver opens.
    pub initial_max_stream_data_uni: Bytes,
    /// Bidirectional streams that its receiver may open, at most 2^60.
    pub initial_max_streams_bidi: u64,
    /// Unidirectional streams that its receiver may open, at most 2^60.
    pub initial_max_streams_uni: u64,
    /// By how much the delays in the sender's ACK frames are shifted, at most 20; 3 if absent.
    pub ack_delay_exponent: u8,
    /// The longest time by which the sender delays an acknowledgement, in whole milliseconds below
    /// 2^14; 25 ms if absent.
    pub max_ack_delay: Duration,
    /// True if the peer must not move to another address of the sender's handshake address.
    pub disable_active_migration: bool,
    /// Server: another address to move to.
    pub preferred_address: Option<PreferredAddress>,
    /// Connection IDs that the sender stores, per path with multipath, at least 2; 2 if absent.
    pub active_connection_id_limit: u64,
    /// The source connection ID of the sender's first Initial packet.
    pub initial_source_connection_id: Option<ConnectionId>,
    /// Server: the source connection ID of its Retry packet.
    pub retry_source_connection_id: Option<ConnectionId>,
    /// The largest DATAGRAM frame that the sender takes, type and length included; 0: none.
    /// <https://www.rfc-editor.org/rfc/rfc9221#section-3>
    pub max_datagram_frame_size: u64,
    /// The sender takes requests for acknowledgements, with delays of no less than so many microseconds;
    /// at most its `max_ack_delay`. `None`: it takes none.
    /// <https://datatracker.ietf.org/doc/html/draft-ietf-quic-ack-frequency#section-3>
    pub min_ack_delay: Option<u64>,
    /// The sender takes packets whose QUIC bit is zero.
    /// <https://www.rfc-editor.org/rfc/rfc9287#section-3>
    pub grease_quic_bit: bool,
    /// The largest path ID that its receiver may use; `None`: the sender speaks no multipath.
    /// <https://www.rfc-editor.org/rfc/rfc10069#section-2.1>
    pub initial_max_path_id: Option<PathId>,
    /// True if the sender takes frames that name return paths: see
    /// [`return_paths`](crate::wire::frame::return_paths).
    pub ack_return_paths: bool,
    /// The versions of the sender; `None`: it takes no part in their negotiation.
    /// <https://www.rfc-editor.org/rfc/rfc9368#section-3>
    pub version_information: Option<VersionInformation>,
    /// A parameter without meaning, to send; those of the peer are not read.
    pub reserved: Option<ReservedParameter>,
}

impl Default for TransportParameters {
    fn default() -> Self {
        TransportParameters {
            original_destination_connection_id: None,
            max_idle_timeout: Duration::ZERO,
            stateless_reset_token: None,
            // The defaults of https://www.rfc-editor.org/rfc/rfc9000#section-18.2
            max_udp_payload_size: 65_527,
            initial_max_data: Bytes::ZERO,
            initial_max_stream_data_bidi_local: Bytes::ZERO,
            initial_max_stream_data_bidi_remote: Bytes::ZERO,
            initial_max_stream_data_uni: Bytes::ZERO,
            initial_max_streams_bidi: 0,
            initial_max_streams_uni: 0,
            ack_delay_exponent: 3,
            max_ack_delay: Duration::from_millis(25),
            disable_active_migration: false,
            preferred_address: None,
            active_connection_id_limit: 2,
            initial_source_connection_id: None,
            retry_source_connection_id: None,
            // https://www.rfc-editor.org/rfc/rfc9221#section-3
            //# The default for this parameter is 0, which indicates that the endpoint does not
            //# support DATAGRAM frames.
            max_datagram_frame_size: 0,
            min_ack_delay: None,
            grease_quic_bit: false,
            initial_max_path_id: None,
            ack_return_paths: false,
            version_information: None,
            reserved: None,
        }
    }
}

/// Where a server wants to be reached after the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreferredAddress {
    /// Its IPv4 address; `None` is sent as zeros.
    pub ipv4: Option<SocketAddrV4>,
    /// Its IPv6 address; `None` is sent as zeros.
    pub ipv6: Option<SocketAddrV6>,
    /// The connection ID to use there, of sequence number 1; 1 to 20 bytes.
    pub connection_id: ConnectionId,
    /// What resets the connection with that connection ID.
    pub reset_token: ResetToken,
}

/// What stands for "no IPv4 address" on the wire.
const UNSPECIFIED_V4: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);
/// What stands for "no IPv6 address" on the wire.
const UNSPECIFIED_V6: SocketAddrV6 = SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, 0, 0, 0);

/// Why a peer's transport parameters are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ParameterError {
    /// The bytes end within a parameter, or a parameter within its value.
    #[error("the transport parameters ended early")]
    EndedEarly,
    /// A parameter has bytes behind its value.
    #[error("{0}: bytes left behind the value")]
    TrailingBytes(ParameterId),
    /// A parameter is there twice.
    #[error("{0}: present twice, expected once")]
    Duplicate(ParameterId),
    /// There are more than [`MAX_PARAMETERS`].
    #[error("more than {MAX_PARAMETERS} transport parameters")]
    TooMany,
    /// A client sent what only servers send.
    #[error("{0}: sent by a client, expected from servers only")]
    FromClient(ParameterId),
    /// `version_information` cannot be read.
    #[error("version_information: {0}")]
    VersionInformation(&'static str),
    /// A value is out of its range.
    #[error("{id}: {value}, expected {expected}")]
    Value {
        /// Which parameter.
        id: ParameterId,
        /// What it says.
        value: u64,
        /// What it may say.
        expected: &'static str,
    },
}

impl From<EndedEarly> for ParameterError {
    fn from(_: EndedEarly) -> Self {
        ParameterError::EndedEarly
    }
}

impl From<ParameterError> for TransportError {
    fn from(error: ParameterError) -> Self {
        // https://www.rfc-editor.org/rfc/rfc9000#section-7.4
        //# An endpoint MUST treat receipt of a transport parameter with an invalid value as a
        //# connection error of type TRANSPORT_PARAMETER_ERROR.
        TransportError::new(ErrorCode::TRANSPORT_PARAMETER_ERROR, error.to_string())
    }
}

mod id;
mod read;
mod remembered;
mod reserved;
mod version_information;
mod write;

pub use id::ParameterId;
pub use remembered::RememberedLimits;
pub use reserved::ReservedParameter;
pub use version_information::VersionInformation;

#[cfg(test)]
mod tests;
