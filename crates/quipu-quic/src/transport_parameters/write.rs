//! Writing our transport parameters.

use super::*;

/// More than any set of the parameters that are known here takes in bytes.
const MAX_SIZE: usize = 512;

impl TransportParameters {
    /// The parameters encoded, a reserved one last; those that say what their
    /// absence says are left out. Times are cut to whole milliseconds.
    pub fn encode(&self) -> Vec<u8> {
        let mut buffer = [0; MAX_SIZE];
        let mut writer = Writer::new(&mut buffer);
        let written = self.write(&mut writer);
        debug_assert!(written.is_ok(), "MAX_SIZE holds every set of parameters");
        writer.written().to_vec()
    }

    /// Writes what [`TransportParameters::encode`] gives.
    ///
    /// # Errors
    /// [`NoSpace`] if they do not fit; a part of them may be written then.
    pub fn write(&self, writer: &mut Writer<'_>) -> Result<(), NoSpace> {
        // https://www.rfc-editor.org/rfc/rfc9000#section-7.4
        //# An endpoint MUST NOT send a parameter more than once in a given transport parameters
        //# extension.
        let absent = TransportParameters::default();
        let put_id = |writer: &mut Writer<'_>, id, cid: Option<ConnectionId>| match cid {
            Some(cid) => put_bytes(writer, id, cid.as_bytes()),
            None => Ok(()),
        };
        put_id(
            writer,
            ParameterId::ORIGINAL_DESTINATION_CONNECTION_ID,
            self.original_destination_connection_id,
        )?;
        let idle = (self.max_idle_timeout.as_millis(), 0);
        put_integer(writer, ParameterId::MAX_IDLE_TIMEOUT, idle)?;
        if let Some(token) = self.stateless_reset_token {
            put_bytes(writer, ParameterId::STATELESS_RESET_TOKEN, token.as_bytes())?;
        }
        for (id, value, absent) in [
            (
                ParameterId::MAX_UDP_PAYLOAD_SIZE,
                self.max_udp_payload_size,
                absent.max_udp_payload_size,
            ),
            (ParameterId::INITIAL_MAX_DATA, self.initial_max_data.0, 0),
            (
                ParameterId::INITIAL_MAX_STREAM_DATA_BIDI_LOCAL,
                self.initial_max_stream_data_bidi_local.0,
                0,
            ),
            (
                ParameterId::INITIAL_MAX_STREAM_DATA_BIDI_REMOTE,
                self.initial_max_stream_data_bidi_remote.0,
                0,
            ),
            (ParameterId::INITIAL_MAX_STREAM_DATA_UNI, self.initial_max_stream_data_uni.0, 0),
            (ParameterId::INITIAL_MAX_STREAMS_BIDI, self.initial_max_streams_bidi, 0),
            (ParameterId::INITIAL_MAX_STREAMS_UNI, self.initial_max_streams_uni, 0),
            (
                ParameterId::ACK_DELAY_EXPONENT,
                u64::from(self.ack_delay_exponent),
                u64::from(absent.ack_delay_exponent),
            ),
            (
                ParameterId::MAX_ACK_DELAY,
                self.max_ack_delay.as_millis(),
                absent.max_ack_delay.as_millis(),
            ),
        ] {
            put_integer(writer, id, (value, absent))?;
        }
        if self.disable_active_migration {
            put_bytes(writer, ParameterId::DISABLE_ACTIVE_MIGRATION, &[])?;
        }
        if let Some(address) = &self.preferred_address {
            address.write(writer)?;
        }
        let limit = (self.active_connection_id_limit, absent.active_connection_id_limit);
        put_integer(writer, ParameterId::ACTIVE_CONNECTION_ID_LIMIT, limit)?;
        let source = self.initial_source_connection_id;
        put_id(writer, ParameterId::INITIAL_SOURCE_CONNECTION_ID, source)?;
        let retry = self.retry_source_connection_id;
        put_id(writer, ParameterId::RETRY_SOURCE_CONNECTION_ID, retry)?;
        if let Some(information) = &self.version_information {
            writer.put_varint(ParameterId::VERSION_INFORMATION.0)?;
            writer.put_varint(information.size() as u64)?;
            information.write(writer)?;
        }
        let datagram = (self.max_datagram_frame_size, absent.max_datagram_frame_size);
        put_integer(writer, ParameterId::MAX_DATAGRAM_FRAME_SIZE, datagram)?;
        if let Some(delay) = self.min_ack_delay {
            put_value(writer, ParameterId::MIN_ACK_DELAY, delay)?;
        }
        if let Some(path) = self.initial_max_path_id {
            // https://www.rfc-editor.org/rfc/rfc10069#section-2.1
            //# This value MUST NOT exceed 2^32-1, the maximum allowed value for the path ID due
            //# to restrictions on the nonce calculation (see Section 2.4).
            put_value(writer, ParameterId::INITIAL_MAX_PATH_ID, u64::from(path.0))?;
        }
        if self.grease_quic_bit {
            put_bytes(writer, ParameterId::GREASE_QUIC_BIT, &[])?;
        }
        if self.ack_return_paths {
            put_bytes(writer, ParameterId::ACK_RETURN_PATHS, &[])?;
        }
        if let Some(reserved) = &self.reserved {
            put_bytes(writer, reserved.id, reserved.value())?;
        }
        Ok(())
    }
}

impl PreferredAddress {
    fn write(&self, writer: &mut Writer<'_>) -> Result<(), NoSpace> {
        let ipv4 = self.ipv4.unwrap_or(UNSPECIFIED_V4);
        let ipv6 = self.ipv6.unwrap_or(UNSPECIFIED_V6);
        let length = 4 + 2 + 16 + 2 + 1 + self.connection_id.length() + ResetToken::LENGTH;
        writer.put_varint(ParameterId::PREFERRED_ADDRESS.0)?;
        writer.put_varint(length as u64)?;
        writer.put_array(ipv4.ip().octets())?;
        writer.put_u16(ipv4.port())?;
        writer.put_array(ipv6.ip().octets())?;
        writer.put_u16(ipv6.port())?;
        writer.put_length_prefixed(self.connection_id.as_bytes())?;
        writer.put_array(*self.reset_token.as_bytes())
    }
}

/// Writes an integer unless it says what its absence says.
fn put_integer(
    writer: &mut Writer<'_>,
    id: ParameterId,
    (value, absent): (u64, u64),
) -> Result<(), NoSpace> {
    if value == absent { Ok(()) } else { put_value(writer, id, value) }
}

fn put_value(writer: &mut Writer<'_>, id: ParameterId, value: u64) -> Result<(), NoSpace> {
    writer.put_varint(id.0)?;
    writer.put_varint(varint::size(value) as u64)?;
    writer.put_varint(value)
}

fn put_bytes(writer: &mut Writer<'_>, id: ParameterId, bytes: &[u8]) -> Result<(), NoSpace> {
    writer.put_varint(id.0)?;
    writer.put_length_prefixed(bytes)
}
