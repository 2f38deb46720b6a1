//! Reading a peer's transport parameters.

use super::*;

impl TransportParameters {
    /// Reads and checks the parameters that an end of role `from` sent. Parameters that are not
    /// known here are ignored, but count as present.
    ///
    /// Not checked: that the connection IDs are those of the handshake's packets, which takes the
    /// connection's knowledge. <https://www.rfc-editor.org/rfc/rfc9000#section-7.3>
    ///
    /// # Errors
    /// [`ParameterError`], always a TRANSPORT_PARAMETER_ERROR to the peer.
    pub fn read(bytes: &[u8], from: Role) -> Result<Self, ParameterError> {
        let mut parameters = TransportParameters::default();
        let mut seen = SmallVec::<[ParameterId; 32]>::new();
        let mut reader = Reader::new(bytes);
        while !reader.is_empty() {
            let id = ParameterId(reader.varint()?);
            let mut value = Reader::new(reader.length_prefixed()?);
            // https://www.rfc-editor.org/rfc/rfc9000#section-7.4
            //# An endpoint SHOULD treat receipt of duplicate transport parameters as a connection
            //# error of type TRANSPORT_PARAMETER_ERROR.
            if seen.contains(&id) {
                return Err(ParameterError::Duplicate(id));
            }
            if seen.len() == MAX_PARAMETERS {
                return Err(ParameterError::TooMany);
            }
            seen.push(id);
            // https://www.rfc-editor.org/rfc/rfc9000#section-18.2
            //# A server MUST treat receipt of any of these transport parameters as a connection
            //# error of type TRANSPORT_PARAMETER_ERROR.
            if from.is_client() && id.is_from_server_only() {
                return Err(ParameterError::FromClient(id));
            }
            // https://www.rfc-editor.org/rfc/rfc9000#section-7.4.2
            //# An endpoint MUST ignore transport parameters that it does not support.
            if id.name().is_none() {
                continue;
            }
            parameters.take(id, from, &mut value)?;
            // https://www.rfc-editor.org/rfc/rfc9287#section-3
            //# The transport parameter is sent with an empty value; an endpoint that understands
            //# this transport parameter MUST treat receipt of a non-empty value of the transport
            //# parameter as a connection error of type TRANSPORT_PARAMETER_ERROR.
            if !value.is_empty() {
                return Err(ParameterError::TrailingBytes(id));
            }
        }
        // "Endpoints that support this extension MUST treat receipt of a min_ack_delay that is greater
        // than the max_ack_delay as a connection error of type TRANSPORT_PARAMETER_ERROR."
        // https://datatracker.ietf.org/doc/html/draft-ietf-quic-ack-frequency#section-3
        if let Some(delay) = parameters.min_ack_delay {
            let (id, most) = (ParameterId::MIN_ACK_DELAY, parameters.max_ack_delay.as_micros());
            check(id, delay, |delay| delay <= most, "at most max_ack_delay")?;
        }
        Ok(parameters)
    }

    /// The ranges are those of <https://www.rfc-editor.org/rfc/rfc9000#section-18.2>.
    fn take(
        &mut self,
        id: ParameterId,
        from: Role,
        value: &mut Reader<'_>,
    ) -> Result<(), ParameterError> {
        match id {
            ParameterId::ORIGINAL_DESTINATION_CONNECTION_ID => {
                self.original_destination_connection_id = Some(connection_id(id, value)?);
            }
            ParameterId::MAX_IDLE_TIMEOUT => {
                self.max_idle_timeout = Duration::from_millis(value.varint()?);
            }
            ParameterId::STATELESS_RESET_TOKEN => {
                self.stateless_reset_token = Some(ResetToken::new(value.array()?));
            }
            ParameterId::MAX_UDP_PAYLOAD_SIZE => {
                self.max_udp_payload_size = value.varint()?;
                check(id, self.max_udp_payload_size, |size| size >= 1200, "at least 1200")?;
            }
            ParameterId::INITIAL_MAX_DATA => self.initial_max_data = Bytes(value.varint()?),
            ParameterId::INITIAL_MAX_STREAM_DATA_BIDI_LOCAL => {
                self.initial_max_stream_data_bidi_local = Bytes(value.varint()?);
            }
            ParameterId::INITIAL_MAX_STREAM_DATA_BIDI_REMOTE => {
                self.initial_max_stream_data_bidi_remote = Bytes(value.varint()?);
            }
            ParameterId::INITIAL_MAX_STREAM_DATA_UNI => {
                self.initial_max_stream_data_uni = Bytes(value.varint()?);
            }
            ParameterId::INITIAL_MAX_STREAMS_BIDI => {
                self.initial_max_streams_bidi = streams(id, value)?;
            }
            ParameterId::INITIAL_MAX_STREAMS_UNI => {
                self.initial_max_streams_uni = streams(id, value)?;
            }
            ParameterId::ACK_DELAY_EXPONENT => {
                let exponent = value.varint()?;
                check(id, exponent, |exponent| exponent <= 20, "at most 20")?;
                self.ack_delay_exponent = exponent as u8;
            }
            ParameterId::MAX_ACK_DELAY => {
                let delay = value.varint()?;
                check(id, delay, |delay| delay < 1 << 14, "below 2^14")?;
                self.max_ack_delay = Duration::from_millis(delay);
            }
            ParameterId::DISABLE_ACTIVE_MIGRATION => self.disable_active_migration = true,
            ParameterId::PREFERRED_ADDRESS => {
                self.preferred_address = Some(PreferredAddress::read(value)?);
            }
            ParameterId::ACTIVE_CONNECTION_ID_LIMIT => {
                self.active_connection_id_limit = value.varint()?;
                // https://www.rfc-editor.org/rfc/rfc9000#section-18.2
                //# An endpoint that receives a value less than 2 MUST close the connection with
                //# an error of type TRANSPORT_PARAMETER_ERROR.
                check(id, self.active_connection_id_limit, |limit| limit >= 2, "at least 2")?;
            }
            ParameterId::INITIAL_SOURCE_CONNECTION_ID => {
                self.initial_source_connection_id = Some(connection_id(id, value)?);
            }
            ParameterId::RETRY_SOURCE_CONNECTION_ID => {
                self.retry_source_connection_id = Some(connection_id(id, value)?);
            }
            ParameterId::VERSION_INFORMATION => {
                // https://www.rfc-editor.org/rfc/rfc9368#section-4
                //# Both endpoints MUST parse their peer's Version Information during the handshake.
                self.version_information = Some(VersionInformation::read(value, from)?);
            }
            ParameterId::MAX_DATAGRAM_FRAME_SIZE => {
                self.max_datagram_frame_size = value.varint()?;
            }
            ParameterId::MIN_ACK_DELAY => self.min_ack_delay = Some(value.varint()?),
            ParameterId::GREASE_QUIC_BIT => self.grease_quic_bit = true,
            ParameterId::INITIAL_MAX_PATH_ID => {
                let path = value.varint()?;
                let expected = "at most 2^32 - 1";
                // https://www.rfc-editor.org/rfc/rfc10069#section-2.1
                //# If an initial_max_path_id transport parameter value higher than 2^32-1 is
                //# received, the receiver MUST close the connection with an error of type
                //# TRANSPORT_PARAMETER_ERROR.
                let path = u32::try_from(path).map_err(|_| ParameterError::Value {
                    id,
                    value: path,
                    expected,
                })?;
                self.initial_max_path_id = Some(PathId(path));
            }
            ParameterId::ACK_RETURN_PATHS => self.ack_return_paths = true,
            _ => {}
        }
        Ok(())
    }
}

impl PreferredAddress {
    fn read(value: &mut Reader<'_>) -> Result<Self, ParameterError> {
        let ipv4 = SocketAddrV4::new(Ipv4Addr::from(value.array::<4>()?), value.u16()?);
        let ipv6 = SocketAddrV6::new(Ipv6Addr::from(value.array::<16>()?), value.u16()?, 0, 0);
        let id = ParameterId::PREFERRED_ADDRESS;
        let length = value.u8()?;
        let mut bytes = Reader::new(value.bytes(usize::from(length))?);
        let connection_id = connection_id(id, &mut bytes)?;
        // https://www.rfc-editor.org/rfc/rfc9000#section-18.2
        //# A client MUST treat a violation of these requirements as a connection error of type
        //# TRANSPORT_PARAMETER_ERROR.
        check(id, u64::from(length), |length| length > 0, "a connection ID")?;
        let reset_token = ResetToken::new(value.array()?);
        Ok(PreferredAddress {
            ipv4: Some(ipv4).filter(|v4| *v4 != UNSPECIFIED_V4),
            ipv6: Some(ipv6).filter(|v6| *v6 != UNSPECIFIED_V6),
            connection_id,
            reset_token,
        })
    }
}

fn check(
    id: ParameterId,
    value: u64,
    allowed: impl Fn(u64) -> bool,
    expected: &'static str,
) -> Result<(), ParameterError> {
    if allowed(value) { Ok(()) } else { Err(ParameterError::Value { id, value, expected }) }
}

fn streams(id: ParameterId, value: &mut Reader<'_>) -> Result<u64, ParameterError> {
    let count = value.varint()?;
    // https://www.rfc-editor.org/rfc/rfc9000#section-4.6
    //# If either is received, the connection MUST be closed immediately with a connection error
    //# of type TRANSPORT_PARAMETER_ERROR if the offending value was received in a transport
    //# parameter or of type FRAME_ENCODING_ERROR if it was received in a frame; see Section 10.2.
    check(id, count, |count| count <= MAX_STREAMS, "at most 2^60")?;
    Ok(count)
}

fn connection_id(id: ParameterId, value: &mut Reader<'_>) -> Result<ConnectionId, ParameterError> {
    let bytes = value.take_rest();
    let length = bytes.len() as u64;
    let expected = "at most 20 bytes";
    ConnectionId::new(bytes).ok_or(ParameterError::Value { id, value: length, expected })
}
