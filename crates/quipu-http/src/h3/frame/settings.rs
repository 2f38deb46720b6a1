//! The SETTINGS frame: <https://www.rfc-editor.org/rfc/rfc9114#section-7.2.4>.

use super::{FrameError, kind, put_frame, put_varint};
use quipu_quic::wire::Reader;

/// What an end is ready for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Octets of QPACK's dynamic table for decoding.
    /// <https://www.rfc-editor.org/rfc/rfc9204#section-5>
    pub table_capacity: u64,
    /// Streams that may wait for QPACK's table at a time.
    pub blocked_streams: u64,
    /// Octets of a field section, each field counted with 32 more; `None` for no limit.
    pub max_field_section: Option<u64>,
    /// Whether CONNECT may name a protocol. <https://www.rfc-editor.org/rfc/rfc9220#section-3>
    pub extended_connect: bool,
    /// Whether HTTP datagrams are taken. <https://www.rfc-editor.org/rfc/rfc9297#section-2.1.1>
    pub datagrams: bool,
}

const TABLE_CAPACITY: u64 = 0x01;
const MAX_FIELD_SECTION: u64 = 0x06;
const BLOCKED_STREAMS: u64 = 0x07;
const EXTENDED_CONNECT: u64 = 0x08;
const DATAGRAMS: u64 = 0x33;

/// Settings of a frame that are looked at: our choice. There are a dozen in use.
const MOST_SETTINGS: usize = 256;

impl Settings {
    /// Appends the frame, with one setting that says nothing if `grease` is its identifier.
    pub fn encode(&self, grease: Option<u64>, out: &mut Vec<u8>) {
        let mut payload = Vec::with_capacity(32);
        let mut put = |id, value| {
            put_varint(id, &mut payload);
            put_varint(value, &mut payload);
        };
        // https://www.rfc-editor.org/rfc/rfc9114#section-7.2.4.2
        //# The server MUST include all settings that differ from their default values.
        if self.table_capacity > 0 {
            put(TABLE_CAPACITY, self.table_capacity);
        }
        if let Some(size) = self.max_field_section {
            put(MAX_FIELD_SECTION, size);
        }
        if self.blocked_streams > 0 {
            put(BLOCKED_STREAMS, self.blocked_streams);
        }
        if self.extended_connect {
            put(EXTENDED_CONNECT, 1);
        }
        // https://www.rfc-editor.org/rfc/rfc9297#section-2.1.1
        //# The value of the SETTINGS_H3_DATAGRAM setting MUST be either 0 or 1.
        if self.datagrams {
            put(DATAGRAMS, 1);
        }
        // https://www.rfc-editor.org/rfc/rfc9114#section-7.2.4.1
        //# Endpoints SHOULD include at least one such setting in their SETTINGS frame.
        if let Some(id) = grease {
            put(id, id & 0x3f);
        }
        put_frame(kind::SETTINGS, &payload, out);
    }

    /// Reads the payload of a frame.
    ///
    /// # Errors
    /// See [`FrameError`].
    pub fn decode(payload: &[u8]) -> Result<Settings, FrameError> {
        let truncated =
            |_| FrameError::Malformed { kind: kind::SETTINGS, problem: "ends inside a setting" };
        let mut settings = Settings::default();
        let mut seen = Vec::new();
        let mut reader = Reader::new(payload);
        while !reader.is_empty() {
            let id = reader.varint().map_err(truncated)?;
            let value = reader.varint().map_err(truncated)?;
            // https://www.rfc-editor.org/rfc/rfc9114#section-7.2.4
            //# The same setting identifier MUST NOT occur more than once in the SETTINGS frame.
            if seen.contains(&id) {
                return Err(FrameError::SettingTwice { id });
            }
            if seen.len() == MOST_SETTINGS {
                let problem = "more settings than anyone needs";
                return Err(FrameError::Malformed { kind: kind::SETTINGS, problem });
            }
            seen.push(id);
            let flag = || match value {
                0 | 1 => Ok(value == 1),
                // https://www.rfc-editor.org/rfc/rfc9297#section-2.1.1
                //# If the SETTINGS_H3_DATAGRAM setting is received with a value that is neither 0
                //# nor 1, the receiver MUST terminate the connection with error H3_SETTINGS_ERROR.
                _ => Err(FrameError::SettingValue { id, value }),
            };
            match id {
                TABLE_CAPACITY => settings.table_capacity = value,
                MAX_FIELD_SECTION => settings.max_field_section = Some(value),
                BLOCKED_STREAMS => settings.blocked_streams = value,
                EXTENDED_CONNECT => settings.extended_connect = flag()?,
                DATAGRAMS => settings.datagrams = flag()?,
                // https://www.rfc-editor.org/rfc/rfc9114#section-7.2.4.1
                //# These reserved settings MUST NOT be sent, and their receipt MUST be treated as a
                //# connection error of type H3_SETTINGS_ERROR.
                0x00 | 0x02..=0x05 => return Err(FrameError::SettingOfHttp2 { id }),
                // https://www.rfc-editor.org/rfc/rfc9114#section-7.2.4
                //# An implementation MUST ignore any parameter with an identifier it does not
                //# understand.
                // https://www.rfc-editor.org/rfc/rfc9114#section-7.2.4.1
                //# Endpoints MUST NOT consider such settings to have any meaning upon receipt.
                _ => {}
            }
        }
        Ok(settings)
    }

    /// What of these settings is less than in `remembered`, which the peer stated on an earlier
    /// connection and which held for what was sent early. A limit that is not stated any more counts too.
    /// <https://www.rfc-editor.org/rfc/rfc9114#section-7.2.4.2>
    pub fn reduced_from(&self, remembered: &Settings) -> Option<&'static str> {
        let limit = |settings: &Settings| settings.max_field_section.unwrap_or(u64::MAX);
        // https://www.rfc-editor.org/rfc/rfc9204#section-3.2.3
        // The capacity that an encoder used must stay what it was.
        let capacity =
            remembered.table_capacity != 0 && self.table_capacity != remembered.table_capacity;
        let omits_limit =
            self.max_field_section.is_none() && remembered.max_field_section.is_some();
        [
            (capacity, "QPACK_MAX_TABLE_CAPACITY"),
            (self.blocked_streams < remembered.blocked_streams, "QPACK_BLOCKED_STREAMS"),
            (limit(self) < limit(remembered) || omits_limit, "MAX_FIELD_SECTION_SIZE"),
            (remembered.extended_connect && !self.extended_connect, "ENABLE_CONNECT_PROTOCOL"),
            // https://www.rfc-editor.org/rfc/rfc9297#section-2.1.1
            //# If a client stores the value of the SETTINGS_H3_DATAGRAM setting with their 0-RTT
            //# state, they MUST validate that the new value of the SETTINGS_H3_DATAGRAM setting
            //# sent by the server in the handshake is greater than or equal to the stored value; if
            //# not, the client MUST terminate the connection with error H3_SETTINGS_ERROR.
            (remembered.datagrams && !self.datagrams, "H3_DATAGRAM"),
        ]
        .into_iter()
        .find_map(|(reduced, name)| reduced.then_some(name))
    }
}
