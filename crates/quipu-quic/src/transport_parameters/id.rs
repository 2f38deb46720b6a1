//! The numbers of the parameters.

use std::fmt;

/// The number of a transport parameter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ParameterId(pub u64);

macro_rules! parameters {
    ($($name:ident = $value:literal, $text:literal;)*) => {
        impl ParameterId {
            $(
                #[doc = concat!("`", $text, "`")]
                pub const $name: ParameterId = ParameterId($value);
            )*

            /// The name that the RFCs give; `None` for a number that is not known here.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some($text),)*
                    _ => None,
                }
            }
        }
    };
}

parameters! {
    ORIGINAL_DESTINATION_CONNECTION_ID = 0x00, "original_destination_connection_id";
    MAX_IDLE_TIMEOUT = 0x01, "max_idle_timeout";
    STATELESS_RESET_TOKEN = 0x02, "stateless_reset_token";
    MAX_UDP_PAYLOAD_SIZE = 0x03, "max_udp_payload_size";
    INITIAL_MAX_DATA = 0x04, "initial_max_data";
    INITIAL_MAX_STREAM_DATA_BIDI_LOCAL = 0x05, "initial_max_stream_data_bidi_local";
    INITIAL_MAX_STREAM_DATA_BIDI_REMOTE = 0x06, "initial_max_stream_data_bidi_remote";
    INITIAL_MAX_STREAM_DATA_UNI = 0x07, "initial_max_stream_data_uni";
    INITIAL_MAX_STREAMS_BIDI = 0x08, "initial_max_streams_bidi";
    INITIAL_MAX_STREAMS_UNI = 0x09, "initial_max_streams_uni";
    ACK_DELAY_EXPONENT = 0x0a, "ack_delay_exponent";
    MAX_ACK_DELAY = 0x0b, "max_ack_delay";
    DISABLE_ACTIVE_MIGRATION = 0x0c, "disable_active_migration";
    PREFERRED_ADDRESS = 0x0d, "preferred_address";
    ACTIVE_CONNECTION_ID_LIMIT = 0x0e, "active_connection_id_limit";
    INITIAL_SOURCE_CONNECTION_ID = 0x0f, "initial_source_connection_id";
    RETRY_SOURCE_CONNECTION_ID = 0x10, "retry_source_connection_id";
    VERSION_INFORMATION = 0x11, "version_information";
    MAX_DATAGRAM_FRAME_SIZE = 0x20, "max_datagram_frame_size";
    INITIAL_MAX_PATH_ID = 0x3e, "initial_max_path_id";
    GREASE_QUIC_BIT = 0x2ab2, "grease_quic_bit";
    MIN_ACK_DELAY = 0xff04_de1b, "min_ack_delay";
    ACK_RETURN_PATHS = 0x2071_7501, "ack_return_paths";
}

impl ParameterId {
    /// True for the parameters that a client must not send.
    /// <https://www.rfc-editor.org/rfc/rfc9000#section-18.2>
    pub const fn is_from_server_only(self) -> bool {
        matches!(
            self,
            ParameterId::ORIGINAL_DESTINATION_CONNECTION_ID
                | ParameterId::STATELESS_RESET_TOKEN
                | ParameterId::PREFERRED_ADDRESS
                | ParameterId::RETRY_SOURCE_CONNECTION_ID
        )
    }
}

impl fmt::Display for ParameterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "transport parameter {:#x}", self.0),
        }
    }
}

impl fmt::Debug for ParameterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ParameterId({self})")
    }
}
