//! What a client remembers of a server's parameters, to send 0-RTT in a later connection.
//! <https://www.rfc-editor.org/rfc/rfc9000#section-7.4.1>

use quipu_base::{Bytes, Role};

use super::{ParameterError, TransportParameters};

/// The parameters that a server must not lower between a connection and a later one in which it
/// accepts 0-RTT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RememberedLimits {
    /// `active_connection_id_limit`.
    pub active_connection_ids: u64,
    /// `initial_max_data`.
    pub data: Bytes,
    /// `initial_max_stream_data_bidi_local`.
    pub stream_data_bidi_local: Bytes,
    /// `initial_max_stream_data_bidi_remote`.
    pub stream_data_bidi_remote: Bytes,
    /// `initial_max_stream_data_uni`.
    pub stream_data_uni: Bytes,
    /// `initial_max_streams_bidi`.
    pub streams_bidi: u64,
    /// `initial_max_streams_uni`.
    pub streams_uni: u64,
    /// `max_datagram_frame_size`.
    pub datagram_frame: u64,
}

impl RememberedLimits {
    /// Bytes of [`RememberedLimits::to_bytes`].
    pub const SIZE: usize = 8 * 8;

    /// The limits that `parameters` set.
    pub const fn of(parameters: &TransportParameters) -> Self {
        RememberedLimits {
            active_connection_ids: parameters.active_connection_id_limit,
            data: parameters.initial_max_data,
            stream_data_bidi_local: parameters.initial_max_stream_data_bidi_local,
            stream_data_bidi_remote: parameters.initial_max_stream_data_bidi_remote,
            stream_data_uni: parameters.initial_max_stream_data_uni,
            streams_bidi: parameters.initial_max_streams_bidi,
            streams_uni: parameters.initial_max_streams_uni,
            // https://www.rfc-editor.org/rfc/rfc9221#section-3
            //# When servers decide to accept 0-RTT data, they MUST send a max_datagram_frame_size
            //# transport parameter greater than or equal to the value they sent to the client in the
            //# connection where they sent them the NewSessionTicket message.
            datagram_frame: parameters.max_datagram_frame_size,
        }
    }

    /// True if what keeps to `remembered` keeps to these too: none is lower.
    pub fn cover(&self, remembered: &RememberedLimits) -> bool {
        self.values().iter().zip(remembered.values()).all(|(now, before)| *now >= before)
    }

    /// The limits as bytes, to keep them beside a session.
    pub fn to_bytes(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        for (place, value) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(self.values()) {
            *place = value.to_be_bytes();
        }
        bytes
    }

    /// The limits that [`RememberedLimits::to_bytes`] wrote.
    pub fn from_bytes(bytes: &[u8; Self::SIZE]) -> Self {
        let mut values = [0; 8];
        for (value, bytes) in values.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *value = u64::from_be_bytes(*bytes);
        }
        let [ids, data, local, remote, uni, streams_bidi, streams_uni, datagram_frame] = values;
        RememberedLimits {
            active_connection_ids: ids,
            data: Bytes(data),
            stream_data_bidi_local: Bytes(local),
            stream_data_bidi_remote: Bytes(remote),
            stream_data_uni: Bytes(uni),
            streams_bidi,
            streams_uni,
            datagram_frame,
        }
    }

    const fn values(&self) -> [u64; 8] {
        [
            self.active_connection_ids,
            self.data.0,
            self.stream_data_bidi_local.0,
            self.stream_data_bidi_remote.0,
            self.stream_data_uni.0,
            self.streams_bidi,
            self.streams_uni,
            self.datagram_frame,
        ]
    }
}

impl TransportParameters {
    /// The parameters of a server in an earlier connection, as a client may use them for 0-RTT.
    ///
    /// # Errors
    /// [`ParameterError`] if they are no parameters.
    pub fn remembered(bytes: &[u8]) -> Result<Self, ParameterError> {
        let known = Self::read(bytes, Role::Server)?;
        // https://www.rfc-editor.org/rfc/rfc9000#section-7.4.1
        //# A client MUST NOT use remembered values for the following parameters:
        //# ack_delay_exponent, max_ack_delay, initial_source_connection_id,
        //# original_destination_connection_id, preferred_address, retry_source_connection_id, and
        //# stateless_reset_token. The client MUST use the server's new values in the handshake
        //# instead; if the server does not provide new values, the default values are used. A
        //# client that attempts to send 0-RTT data MUST remember all other transport parameters
        //# used by the server that it is able to process.
        let fresh = TransportParameters::default();
        Ok(TransportParameters {
            ack_delay_exponent: fresh.ack_delay_exponent,
            max_ack_delay: fresh.max_ack_delay,
            initial_source_connection_id: None,
            original_destination_connection_id: None,
            preferred_address: None,
            retry_source_connection_id: None,
            stateless_reset_token: None,
            // https://www.rfc-editor.org/rfc/rfc10069#section-2.1
            //# The initial_max_path_id parameter MUST NOT be remembered for use in a subsequent
            //# connection (Section 7.4.1 of [QUIC-TRANSPORT]).
            initial_max_path_id: None,
            // Nor what stands on multipath, or belongs to the handshake.
            ack_return_paths: false,
            version_information: None,
            // "Endpoints MUST NOT remember the value of the min_ack_delay transport parameter"
            // https://datatracker.ietf.org/doc/html/draft-ietf-quic-ack-frequency#section-3
            min_ack_delay: None,
            // Packets of 0-RTT have the bit.
            grease_quic_bit: false,
            ..known
        })
    }
}

#[cfg(test)]
mod tests {
    use quipu_base::{Duration, PathId};

    use super::*;
    use crate::wire::ConnectionId;

    fn limits() -> RememberedLimits {
        RememberedLimits {
            active_connection_ids: 4,
            data: Bytes(1 << 40),
            stream_data_bidi_local: Bytes(1),
            stream_data_bidi_remote: Bytes(2),
            stream_data_uni: Bytes(3),
            streams_bidi: 100,
            streams_uni: 3,
            datagram_frame: 65_535,
        }
    }

    #[test]
    fn limits_survive_as_bytes_each_in_its_place() {
        assert_eq!(RememberedLimits::from_bytes(&limits().to_bytes()), limits());
        for at in 0..8 {
            let mut bytes = limits().to_bytes();
            bytes[at * 8 + 7] ^= 1;
            let other = RememberedLimits::from_bytes(&bytes);
            assert_ne!(other, limits());
            assert_ne!(limits().cover(&other), other.cover(&limits()));
        }
        assert!(limits().cover(&limits()));
    }

    #[test]
    fn nothing_is_remembered_that_belongs_to_one_connection() {
        let before = TransportParameters {
            original_destination_connection_id: Some(ConnectionId::EMPTY),
            max_idle_timeout: Duration::from_secs(9),
            initial_max_data: Bytes(77),
            ack_delay_exponent: 5,
            max_ack_delay: Duration::from_millis(7),
            initial_source_connection_id: Some(ConnectionId::EMPTY),
            initial_max_path_id: Some(PathId(3)),
            ack_return_paths: true,
            min_ack_delay: Some(1_000),
            grease_quic_bit: true,
            ..TransportParameters::default()
        };
        let after = TransportParameters {
            max_idle_timeout: Duration::from_secs(9),
            initial_max_data: Bytes(77),
            ..TransportParameters::default()
        };
        assert_eq!(TransportParameters::remembered(&before.encode()), Ok(after));
    }
}
