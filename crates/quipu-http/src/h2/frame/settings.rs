//! Settings. <https://www.rfc-editor.org/rfc/rfc7540#section-6.5>

use super::{DEFAULT_FRAME_SIZE, ErrorCode, FrameError, LARGEST_FRAME_SIZE};

const HEADER_TABLE_SIZE: u16 = 0x1;
const ENABLE_PUSH: u16 = 0x2;
const MAX_CONCURRENT_STREAMS: u16 = 0x3;
const INITIAL_WINDOW_SIZE: u16 = 0x4;
const MAX_FRAME_SIZE: u16 = 0x5;
const MAX_HEADER_LIST_SIZE: u16 = 0x6;
/// <https://www.rfc-editor.org/rfc/rfc9218#section-2.1>
const NO_RFC7540_PRIORITIES: u16 = 0x9;

const LARGEST_WINDOW: u32 = (1 << 31) - 1;

/// Settings that a SETTINGS frame states; `None` where it states nothing.
/// <https://www.rfc-editor.org/rfc/rfc7540#section-6.5.2>
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Octets that the sender's decoding table may have.
    pub header_table_size: Option<u32>,
    /// Whether the sender takes pushed responses. <https://www.rfc-editor.org/rfc/rfc9113#section-8.4>
    pub enable_push: Option<bool>,
    /// Requests that the sender takes at a time, or pushed responses.
    pub max_concurrent_streams: Option<u32>,
    /// Flow-control credit of a stream, 0 to 2^31 - 1; without meaning over QUIC's streams, which have
    /// their own.
    pub initial_window_size: Option<u32>,
    /// Payload octets of a frame that the sender takes, 16,384 to 2^24 - 1.
    pub max_frame_size: Option<u32>,
    /// Octets of a field list that the sender takes, counted as
    /// [`FieldList::size`](crate::field::FieldList::size) does.
    pub max_header_list_size: Option<u32>,
    /// Whether the sender leaves the dependency tree alone, and sends or wants urgencies instead.
    /// <https://www.rfc-editor.org/rfc/rfc9218#section-2.1>
    pub no_rfc7540_priorities: Option<bool>,
}

impl Settings {
    pub(super) const ENTRY_LEN: usize = 6;

    /// The stated settings as identifier and value.
    pub(super) fn entries(&self) -> impl Iterator<Item = (u16, u32)> {
        [
            (HEADER_TABLE_SIZE, self.header_table_size),
            (ENABLE_PUSH, self.enable_push.map(u32::from)),
            (MAX_CONCURRENT_STREAMS, self.max_concurrent_streams),
            (INITIAL_WINDOW_SIZE, self.initial_window_size),
            (MAX_FRAME_SIZE, self.max_frame_size),
            (MAX_HEADER_LIST_SIZE, self.max_header_list_size),
            // https://www.rfc-editor.org/rfc/rfc9218#section-2.1
            //# The value of SETTINGS_NO_RFC7540_PRIORITIES MUST be 0 or 1.
            (NO_RFC7540_PRIORITIES, self.no_rfc7540_priorities.map(u32::from)),
        ]
        .into_iter()
        .filter_map(|(identifier, value)| Some((identifier, value?)))
    }

    /// Reads the payload of a SETTINGS frame. Unknown settings are ignored, the last of equal ones
    /// holds.
    pub(super) fn decode(payload: &[u8]) -> Result<Settings, FrameError> {
        let (entries, rest) = payload.as_chunks::<{ Settings::ENTRY_LEN }>();
        // https://www.rfc-editor.org/rfc/rfc9113#section-6.5
        //# A SETTINGS frame with a length other than a multiple of 6 octets MUST be treated as a
        //# connection error (Section 5.4.1) of type FRAME_SIZE_ERROR.
        if !rest.is_empty() {
            return Err(FrameError::Length {
                kind: "SETTINGS",
                length: payload.len(),
                expected: "a multiple of 6 is",
            });
        }
        let mut settings = Settings::default();
        // https://www.rfc-editor.org/rfc/rfc9113#section-6.5.3
        //# The values in the SETTINGS frame MUST be processed in the order they appear, with no
        //# other frame processing between values.
        for &[high, low, a, b, c, d] in entries {
            let identifier = u16::from_be_bytes([high, low]);
            settings.set(identifier, u32::from_be_bytes([a, b, c, d]))?;
        }
        Ok(settings)
    }

    fn set(&mut self, identifier: u16, value: u32) -> Result<(), FrameError> {
        // https://www.rfc-editor.org/rfc/rfc9113#section-6.5
        //# A badly formed or incomplete SETTINGS frame MUST be treated as a connection error
        //# (Section 5.4.1) of type PROTOCOL_ERROR.
        let protocol_error = |name, expected| FrameError::Setting {
            name,
            value,
            expected,
            code: ErrorCode::PROTOCOL_ERROR,
        };
        // https://www.rfc-editor.org/rfc/rfc9113#section-6.5
        //# Implementations MUST support all of the settings defined by this specification.
        match identifier {
            HEADER_TABLE_SIZE => self.header_table_size = Some(value),
            ENABLE_PUSH if value <= 1 => self.enable_push = Some(value == 1),
            // https://www.rfc-editor.org/rfc/rfc9113#section-6.5.2
            //# Any value other than 0 or 1 MUST be treated as a connection error (Section 5.4.1)
            //# of type PROTOCOL_ERROR.
            ENABLE_PUSH => return Err(protocol_error("ENABLE_PUSH", "0 or 1")),
            MAX_CONCURRENT_STREAMS => self.max_concurrent_streams = Some(value),
            INITIAL_WINDOW_SIZE if value <= LARGEST_WINDOW => {
                self.initial_window_size = Some(value);
            }
            // https://www.rfc-editor.org/rfc/rfc9113#section-6.5.2
            //# Values above the maximum flow-control window size of 2^31-1 MUST be treated as a
            //# connection error (Section 5.4.1) of type FLOW_CONTROL_ERROR.
            INITIAL_WINDOW_SIZE => {
                return Err(FrameError::Setting {
                    name: "INITIAL_WINDOW_SIZE",
                    value,
                    expected: "at most 2147483647",
                    code: ErrorCode::FLOW_CONTROL_ERROR,
                });
            }
            MAX_FRAME_SIZE if (DEFAULT_FRAME_SIZE..=LARGEST_FRAME_SIZE).contains(&value) => {
                self.max_frame_size = Some(value);
            }
            // https://www.rfc-editor.org/rfc/rfc9113#section-6.5.2
            //# Values outside this range MUST be treated as a connection error (Section 5.4.1) of
            //# type PROTOCOL_ERROR.
            MAX_FRAME_SIZE => return Err(protocol_error("MAX_FRAME_SIZE", "16384 to 16777215")),
            NO_RFC7540_PRIORITIES if value <= 1 => {
                self.no_rfc7540_priorities = Some(value == 1);
            }
            NO_RFC7540_PRIORITIES => {
                // https://www.rfc-editor.org/rfc/rfc9218#section-2.1
                //# Any value other than 0 or 1 MUST be treated as a connection error (see Section
                //# 5.4.1 of [HTTP/2]) of type PROTOCOL_ERROR.
                return Err(protocol_error("NO_RFC7540_PRIORITIES", "0 or 1"));
            }
            MAX_HEADER_LIST_SIZE => self.max_header_list_size = Some(value),
            // https://www.rfc-editor.org/rfc/rfc9113#section-5.5
            //# Implementations MUST ignore unknown or unsupported values in all extensible
            //# protocol elements.
            // https://www.rfc-editor.org/rfc/rfc9113#section-6.5.2
            //# An endpoint that receives a SETTINGS frame with any unknown or unsupported
            //# identifier MUST ignore that setting.
            // https://www.rfc-editor.org/rfc/rfc9113#section-6.5.3
            //# Unsupported settings MUST be ignored.
            _ => {}
        }
        Ok(())
    }
}
