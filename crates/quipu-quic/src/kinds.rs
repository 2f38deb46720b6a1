//! The kinds of packets and of frames, and which frame may travel in which packet.

use std::fmt;

/// The packets that carry frames, in the order in which a connection comes to them.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-12.4>
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PacketKind {
    /// Long header; keys that anyone on the path can derive.
    Initial,
    /// Long header; keys of an earlier connection.
    ZeroRtt,
    /// Long header; keys of this handshake.
    Handshake,
    /// Short header; the connection's keys.
    OneRtt,
}

impl PacketKind {
    /// Every kind.
    pub const ALL: [PacketKind; 4] =
        [PacketKind::Initial, PacketKind::ZeroRtt, PacketKind::Handshake, PacketKind::OneRtt];
}

/// The type that a frame starts with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameType(pub u64);

macro_rules! frame_types {
    ($($name:ident = $value:literal, $text:literal;)*) => {
        impl FrameType {
            $(
                #[doc = concat!("`", $text, "`")]
                pub const $name: FrameType = FrameType($value);
            )*

            /// The name that the RFCs give; `None` for a type that is not known here.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some($text),)*
                    0x09..=0x0f => Some("STREAM"),
                    _ => None,
                }
            }

            /// Every type that is known here, ascending.
            #[cfg(test)]
            pub(crate) fn known() -> impl Iterator<Item = FrameType> {
                let mut types: Vec<_> = [$(FrameType::$name),*].into();
                types.extend((0x09..=0x0f).map(FrameType));
                types.sort_unstable();
                types.into_iter()
            }
        }
    };
}

frame_types! {
    PADDING = 0x00, "PADDING";
    PING = 0x01, "PING";
    ACK = 0x02, "ACK";
    ACK_ECN = 0x03, "ACK_ECN";
    RESET_STREAM = 0x04, "RESET_STREAM";
    STOP_SENDING = 0x05, "STOP_SENDING";
    CRYPTO = 0x06, "CRYPTO";
    NEW_TOKEN = 0x07, "NEW_TOKEN";
    STREAM = 0x08, "STREAM";
    MAX_DATA = 0x10, "MAX_DATA";
    MAX_STREAM_DATA = 0x11, "MAX_STREAM_DATA";
    MAX_STREAMS_BIDIRECTIONAL = 0x12, "MAX_STREAMS (bidirectional)";
    MAX_STREAMS_UNIDIRECTIONAL = 0x13, "MAX_STREAMS (unidirectional)";
    DATA_BLOCKED = 0x14, "DATA_BLOCKED";
    STREAM_DATA_BLOCKED = 0x15, "STREAM_DATA_BLOCKED";
    STREAMS_BLOCKED_BIDIRECTIONAL = 0x16, "STREAMS_BLOCKED (bidirectional)";
    STREAMS_BLOCKED_UNIDIRECTIONAL = 0x17, "STREAMS_BLOCKED (unidirectional)";
    NEW_CONNECTION_ID = 0x18, "NEW_CONNECTION_ID";
    RETIRE_CONNECTION_ID = 0x19, "RETIRE_CONNECTION_ID";
    PATH_CHALLENGE = 0x1a, "PATH_CHALLENGE";
    PATH_RESPONSE = 0x1b, "PATH_RESPONSE";
    CONNECTION_CLOSE = 0x1c, "CONNECTION_CLOSE";
    APPLICATION_CLOSE = 0x1d, "CONNECTION_CLOSE (application)";
    HANDSHAKE_DONE = 0x1e, "HANDSHAKE_DONE";
    IMMEDIATE_ACK = 0x1f, "IMMEDIATE_ACK";
    DATAGRAM = 0x30, "DATAGRAM";
    DATAGRAM_LENGTH = 0x31, "DATAGRAM (with length)";
    PATH_ACK = 0x3e, "PATH_ACK";
    PATH_ACK_ECN = 0x3f, "PATH_ACK_ECN";
    ACK_FREQUENCY = 0xaf, "ACK_FREQUENCY";
    PATH_ABANDON = 0x3e75, "PATH_ABANDON";
    PATH_STATUS_BACKUP = 0x3e76, "PATH_STATUS_BACKUP";
    PATH_STATUS_AVAILABLE = 0x3e77, "PATH_STATUS_AVAILABLE";
    PATH_NEW_CONNECTION_ID = 0x3e78, "PATH_NEW_CONNECTION_ID";
    PATH_RETIRE_CONNECTION_ID = 0x3e79, "PATH_RETIRE_CONNECTION_ID";
    MAX_PATH_ID = 0x3e7a, "MAX_PATH_ID";
    PATHS_BLOCKED = 0x3e7b, "PATHS_BLOCKED";
    PATH_CIDS_BLOCKED = 0x3e7c, "PATH_CIDS_BLOCKED";
    ACK_RETURN_PATHS = 0x2071_7501, "ACK_RETURN_PATHS";
}

impl FrameType {
    /// Bit of a STREAM type: an Offset field is there.
    pub(crate) const STREAM_OFFSET: u64 = 0x04;
    /// Bit of a STREAM type: a Length field is there.
    pub(crate) const STREAM_LENGTH: u64 = 0x02;
    /// Bit of a STREAM type: the stream ends here.
    pub(crate) const STREAM_FIN: u64 = 0x01;

    /// True for the eight types of STREAM frames.
    pub const fn is_stream(self) -> bool {
        self.0 >= 0x08 && self.0 <= 0x0f
    }

    /// True if a packet that holds such a frame has to be acknowledged. PATH_ACK is as ACK.
    pub const fn is_ack_eliciting(self) -> bool {
        // https://www.rfc-editor.org/rfc/rfc9002#section-2
        //# All frames other than ACK, PADDING, and CONNECTION_CLOSE are considered ack-eliciting.
        // https://www.rfc-editor.org/rfc/rfc9000#section-19.21
        //# Extension frames MUST be congestion controlled and MUST cause an ACK frame to be sent.
        !matches!(
            self,
            FrameType::PADDING
                | FrameType::ACK
                | FrameType::ACK_ECN
                | FrameType::PATH_ACK
                | FrameType::PATH_ACK_ECN
                | FrameType::CONNECTION_CLOSE
                | FrameType::APPLICATION_CLOSE
        )
    }

    /// True if a packet that holds only such frames does not make the peer move to its path.
    /// <https://www.rfc-editor.org/rfc/rfc9000#section-9.1>
    ///
    /// PATH_NEW_CONNECTION_ID is taken as NEW_CONNECTION_ID.
    pub const fn is_probing(self) -> bool {
        matches!(
            self,
            FrameType::PADDING
                | FrameType::PATH_CHALLENGE
                | FrameType::PATH_RESPONSE
                | FrameType::NEW_CONNECTION_ID
                | FrameType::PATH_NEW_CONNECTION_ID
        )
    }

    /// True if packets of `kind` may hold such a frame; a frame in another packet is a
    /// PROTOCOL_VIOLATION. Types that are not known here are allowed nowhere.
    /// <https://www.rfc-editor.org/rfc/rfc9000#section-12.4>, table 3; the frames of RFC 10069
    /// and those of draft-ietf-quic-ack-frequency travel in 1-RTT packets only.
    pub const fn is_allowed_in(self, kind: PacketKind) -> bool {
        match kind {
            PacketKind::OneRtt => self.name().is_some(),
            PacketKind::ZeroRtt => {
                // https://www.rfc-editor.org/rfc/rfc9221#section-5
                //# Like STREAM frames, DATAGRAM frames contain application data and MUST be
                //# protected with either 0-RTT or 1-RTT keys.
                // https://www.rfc-editor.org/rfc/rfc9001#section-8.3
                //# A server MUST treat receipt of a CRYPTO frame in a 0-RTT packet as a connection
                //# error of type PROTOCOL_VIOLATION.
                matches!(
                    self.0,
                    0x00 | 0x01 | 0x04 | 0x05 | 0x08..=0x1a | 0x1c | 0x1d | 0x30 | 0x31
                )
            }
            PacketKind::Initial | PacketKind::Handshake => {
                // https://www.rfc-editor.org/rfc/rfc10069#section-4
                //# All frames defined in this document MUST only be sent in 1-RTT packets. If an
                //# endpoint receives a multipath-specific frame in a different packet type, it
                //# MUST close the connection with an error of type PROTOCOL_VIOLATION.
                matches!(self.0, 0x00..=0x03 | 0x06 | 0x1c)
            }
        }
    }
}

impl fmt::Display for FrameType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "frame of type {:#x}", self.0),
        }
    }
}

impl fmt::Debug for FrameType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "FrameType({name})"),
            None => write!(f, "FrameType({:#x})", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// <https://www.rfc-editor.org/rfc/rfc9000#section-12.4>, table 3, and the frames of RFC 9221, of
    /// RFC 10069, of draft-ietf-quic-ack-frequency and of our extension: packets (Initial, Handshake, 0-RTT, 1-RTT), not ack-eliciting (N),
    /// probing (P).
    const TABLE: &[(u64, &str, &str)] = &[
        (0x00, "IH01", "NP"),
        (0x01, "IH01", ""),
        (0x02, "IH_1", "N"),
        (0x03, "IH_1", "N"),
        (0x04, "__01", ""),
        (0x05, "__01", ""),
        (0x06, "IH_1", ""),
        (0x07, "___1", ""),
        (0x08, "__01", ""),
        (0x09, "__01", ""),
        (0x0a, "__01", ""),
        (0x0b, "__01", ""),
        (0x0c, "__01", ""),
        (0x0d, "__01", ""),
        (0x0e, "__01", ""),
        (0x0f, "__01", ""),
        (0x10, "__01", ""),
        (0x11, "__01", ""),
        (0x12, "__01", ""),
        (0x13, "__01", ""),
        (0x14, "__01", ""),
        (0x15, "__01", ""),
        (0x16, "__01", ""),
        (0x17, "__01", ""),
        (0x18, "__01", "P"),
        (0x19, "__01", ""),
        (0x1a, "__01", "P"),
        (0x1b, "___1", "P"),
        (0x1c, "IH01", "N"),
        (0x1d, "__01", "N"),
        (0x1e, "___1", ""),
        (0x1f, "___1", ""),
        (0x30, "__01", ""),
        (0x31, "__01", ""),
        (0x3e, "___1", "N"),
        (0x3f, "___1", "N"),
        (0xaf, "___1", ""),
        (0x3e75, "___1", ""),
        (0x3e76, "___1", ""),
        (0x3e77, "___1", ""),
        (0x3e78, "___1", "P"),
        (0x3e79, "___1", ""),
        (0x3e7a, "___1", ""),
        (0x3e7b, "___1", ""),
        (0x3e7c, "___1", ""),
        (0x2071_7501, "___1", ""),
    ];

    #[test]
    fn every_type_follows_the_table_of_the_rfc() {
        let known: Vec<_> = FrameType::known().map(|known| known.0).collect();
        let listed: Vec<_> = TABLE.iter().map(|row| row.0).collect();
        assert_eq!(known, listed);
        for &(value, packets, notes) in TABLE {
            let frame_type = FrameType(value);
            let kinds = [
                (PacketKind::Initial, 'I'),
                (PacketKind::Handshake, 'H'),
                (PacketKind::ZeroRtt, '0'),
                (PacketKind::OneRtt, '1'),
            ];
            for (kind, letter) in kinds {
                let allowed = frame_type.is_allowed_in(kind);
                assert_eq!(allowed, packets.contains(letter), "{frame_type} in {kind:?}");
            }
            assert_eq!(frame_type.is_ack_eliciting(), !notes.contains('N'), "{frame_type}");
            assert_eq!(frame_type.is_probing(), notes.contains('P'), "{frame_type}");
        }
    }

    #[test]
    fn an_unknown_type_is_allowed_nowhere() {
        for kind in PacketKind::ALL {
            assert!(!FrameType(0x40).is_allowed_in(kind));
        }
        assert_eq!(FrameType(0x40).to_string(), "frame of type 0x40");
    }
}
