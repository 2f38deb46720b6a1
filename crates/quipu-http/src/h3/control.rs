//! What both ends keep of a connection beside its requests: the critical streams, settings and
//! field compression.

use bytes::Bytes;
use quipu_base::{Role, StreamId};

use super::ConnectionError;
use super::frame::{self, FrameError, FrameHeader, HeaderReader, HeaderState, Settings, kind};
use super::streams::{Critical, CriticalStreams, PeerStreams};
use crate::field::FieldList;
use crate::qpack;
use crate::transport::{ReadState, StreamError, StreamTransport};

/// Octets of a frame on the control stream; our choice. SETTINGS take a few dozen.
const MOST_CONTROL_FRAME: u64 = 16_384;
/// Octets of frames without a meaning that a peer may send on one connection; our choice.
const MOST_GREASE: u64 = 1 << 20;

/// What an end is ready to spend on the peer's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Octets of the table for decoding fields; 4,096 by default, as in HTTP/2.
    pub decoding_table: u32,
    /// Octets of the table for encoding fields, if the peer allows as many; 4,096 by default.
    pub encoding_table: u32,
    /// Streams that may wait for the table at a time; 100 by default, as Chromium allows.
    pub blocked_streams: u16,
    /// Octets of one message's fields, counted as [`FieldList::size`] does; 64 kB by default.
    pub field_list: u32,
    /// Octets of one compressed field section; 64 kB by default.
    pub field_section: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            decoding_table: 4_096,
            encoding_table: 4_096,
            blocked_streams: 100,
            field_list: 65_536,
            field_section: 65_536,
        }
    }
}

/// How much QPACK's dynamic tables were used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableUse {
    /// Fields that this end inserted into the table of the peer's decoder.
    pub inserted: u64,
    /// Field lines sent that refer to that table.
    pub references: u64,
    /// Fields that the peer inserted into the table of this end's decoder.
    pub received: u64,
}

/// What the control stream carries beside settings.
#[derive(Debug)]
pub(super) enum Incoming {
    Settings,
    GoAway(u64),
    CancelPush(u64),
    MaxPushId(u64),
    PriorityUpdate { is_push: bool, id: u64, value: Bytes },
}

#[derive(Debug)]
pub(super) struct Control {
    role: Role,
    limits: Limits,
    own: CriticalStreams,
    peer: PeerStreams,
    own_settings: Settings,
    settings: Option<Settings>,
    /// What the peer said on an earlier connection.
    remembered: Option<Settings>,
    pub(super) encoder: qpack::Encoder,
    pub(super) decoder: qpack::Decoder,
    header: HeaderReader,
    /// The frame of the peer's control stream that is being read.
    frame: Option<FrameHeader>,
    payload: Vec<u8>,
    grease_received: u64,
    /// Reused between field sections.
    section: Vec<u8>,
    /// Sent in frames, settings and so on that mean nothing.
    grease: Option<u64>,
}

impl Control {
    pub(super) fn new(
        role: Role,
        limits: Limits,
        own_settings: Settings,
        grease: Option<u64>,
    ) -> Self {
        Control {
            role,
            limits,
            own: CriticalStreams::default(),
            peer: PeerStreams::new(role),
            own_settings: Settings {
                table_capacity: u64::from(limits.decoding_table),
                blocked_streams: u64::from(limits.blocked_streams),
                max_field_section: Some(u64::from(limits.field_list)),
                ..own_settings
            },
            settings: None,
            remembered: None,
            encoder: qpack::Encoder::new(limits.encoding_table),
            decoder: qpack::Decoder::new(
                limits.decoding_table,
                limits.blocked_streams,
                u64::from(limits.field_list),
            ),
            header: HeaderReader::default(),
            frame: None,
            payload: Vec::new(),
            grease_received: 0,
            section: Vec::new(),
            grease,
        }
    }

    pub(super) const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// What the peer said, if it came.
    pub(super) const fn settings(&self) -> Option<&Settings> {
        self.settings.as_ref()
    }

    /// What holds of the peer: what it said, or what it said on an earlier connection, or the defaults.
    pub(super) fn peer(&self) -> Settings {
        // https://www.rfc-editor.org/rfc/rfc9114#section-7.2.4.2
        //# If a server accepts 0-RTT but then sends settings that are not compatible with the
        //# previously specified settings, this MUST be treated as a connection error of type
        //# H3_SETTINGS_ERROR. If a server accepts 0-RTT but then sends a SETTINGS frame that omits
        //# a setting value that the client understands (apart from reserved setting identifiers)
        //# that was previously specified to have a non-default value, this MUST be treated as a
        //# connection error of type H3_SETTINGS_ERROR.
        //# Each endpoint SHOULD use these initial values to send messages before the peer's
        //# SETTINGS frame has arrived, as packets carrying the settings can be lost or delayed.
        // https://www.rfc-editor.org/rfc/rfc9114#section-7.2.4.2
        //# A client MUST comply with stored settings -- or default values if no values are stored
        //# -- when attempting 0-RTT. Once a server has provided new settings, clients MUST comply
        //# with those values.
        self.settings.or(self.remembered).unwrap_or_default()
    }

    /// Whether both ends take datagrams.
    pub(super) fn may_send_datagrams(&self) -> bool {
        // https://www.rfc-editor.org/rfc/rfc9297#section-2.1.1
        //# QUIC DATAGRAM frames MUST NOT be sent until the SETTINGS_H3_DATAGRAM setting has been
        //# both sent and received with a value of 1.
        self.is_started() && self.own_settings.datagrams && self.peer().datagrams
    }

    /// What the peer said on an earlier connection holds until it says something else.
    pub(super) fn remember(&mut self, settings: Option<Settings>) {
        self.remembered = settings;
    }

    pub(super) fn table_use(&self) -> TableUse {
        TableUse {
            inserted: self.encoder.inserted(),
            references: self.encoder.references(),
            received: self.decoder.inserted(),
        }
    }

    pub(super) fn is_started(&self) -> bool {
        self.own.get(Critical::Control).is_some()
    }

    /// Opens the three streams, and states settings.
    pub(super) fn start<T: StreamTransport>(
        &mut self,
        transport: &mut T,
    ) -> Result<(), ConnectionError> {
        // https://www.rfc-editor.org/rfc/rfc9204#section-4.2
        //# Each endpoint MUST initiate, at most, one encoder stream and, at most, one decoder
        //# stream.
        // https://www.rfc-editor.org/rfc/rfc9114#section-6.2
        //# Endpoints SHOULD create the HTTP control stream as well as the unidirectional streams
        //# required by mandatory extensions (such as the QPACK encoder and decoder streams) first,
        //# and then create additional streams as allowed by their peer.
        for which in Critical::ALL {
            let stream = transport.open_unidirectional().ok_or(ConnectionError::NoStreams)?;
            self.own.set(which, stream);
            transport.set_control(stream);
            let mut out = Vec::with_capacity(64);
            frame::put_varint(which.kind(), &mut out);
            if which == Critical::Control {
                // https://www.rfc-editor.org/rfc/rfc9114#section-6.2.1
                //# Each side MUST initiate a single control stream at the beginning of the
                //# connection and send its SETTINGS frame as the first frame on this stream.
                // https://www.rfc-editor.org/rfc/rfc9114#section-3.2
                //# After the QUIC connection is established, a SETTINGS frame MUST be sent by each
                //# endpoint as the initial frame of their respective HTTP control stream.
                // https://www.rfc-editor.org/rfc/rfc9114#section-7.2.4
                //# A SETTINGS frame MUST be sent as the first frame of each control stream (see
                //# Section 6.2.1) by each peer, and it MUST NOT be sent subsequently.
                self.own_settings.encode(self.grease.map(frame::grease), &mut out);
                if let Some(n) = self.grease {
                    frame::put_frame(frame::grease(n.wrapping_add(1)), b"quipu", &mut out);
                }
            }
            transport.write(stream, Bytes::from(out))?;
        }
        Ok(())
    }

    /// Appends `octets` to this end's control stream.
    pub(super) fn write<T: StreamTransport>(
        &self,
        transport: &mut T,
        octets: Vec<u8>,
    ) -> Result<(), StreamError> {
        let unopened = StreamError::NotOpen(StreamId::new(
            self.role,
            quipu_base::StreamDirection::Unidirectional,
            0,
        ));
        let stream = self.own.get(Critical::Control).ok_or(unopened)?;
        transport.write(stream, Bytes::from(octets))
    }

    /// Sends what QPACK has to say on its own streams.
    pub(super) fn flush<T: StreamTransport>(
        &mut self,
        transport: &mut T,
    ) -> Result<(), StreamError> {
        if let Some(stream) = self.own.get(Critical::Encoder)
            && let Some(instructions) = self.encoder.take_instructions()
        {
            transport.write(stream, instructions)?;
        }
        if let Some(stream) = self.own.get(Critical::Decoder)
            && let Some(instructions) = self.decoder.take_instructions()
        {
            transport.write(stream, instructions)?;
        }
        Ok(())
    }

    /// Sends a field section on `stream`, and behind it the header of a DATA frame of `body` octets.
    /// Returns the octets of both. The peer's limit was asked before.
    pub(super) fn send_section<T: StreamTransport>(
        &mut self,
        transport: &mut T,
        stream: StreamId,
        fields: &FieldList,
        body: Option<u64>,
    ) -> Result<u64, StreamError> {
        self.section.clear();
        self.encoder.encode(stream, fields, &mut self.section);
        // Before the section that refers to it.
        self.flush(transport)?;
        let mut out = Vec::with_capacity(self.section.len() + 20);
        frame::put_frame(kind::HEADERS, &self.section, &mut out);
        if let Some(length) = body.filter(|&length| length > 0) {
            FrameHeader { kind: kind::DATA, length }.encode(&mut out);
        }
        let length = out.len() as u64;
        transport.write(stream, Bytes::from(out))?;
        Ok(length)
    }

    /// Octets or an end came on a unidirectional stream of the peer. Frames of the control stream go to
    /// `incoming`, which the caller then handles.
    pub(super) fn on_readable<T: StreamTransport>(
        &mut self,
        transport: &mut T,
        stream: StreamId,
        incoming: &mut Vec<Incoming>,
    ) -> Result<(), ConnectionError> {
        let which = match self.peer.find(stream) {
            Some(which) => Some(which),
            None => self.peer.identify(transport, stream)?,
        };
        let Some(which) = which else { return Ok(()) };
        match which {
            Critical::Control => self.read_control(transport, stream, incoming)?,
            Critical::Encoder => {
                let decoder = &mut self.decoder;
                let mut result = Ok(());
                let state = transport.read(stream, &mut |octets| {
                    if result.is_ok() {
                        result = decoder.on_encoder_stream(octets);
                    }
                });
                result?;
                ended(state, which, stream)?;
            }
            Critical::Decoder => {
                let encoder = &mut self.encoder;
                let mut result = Ok(());
                let state = transport.read(stream, &mut |octets| {
                    if result.is_ok() {
                        result = encoder.on_decoder_stream(octets);
                    }
                });
                result?;
                ended(state, which, stream)?;
            }
        }
        Ok(())
    }

    /// The peer reset one of its unidirectional streams.
    pub(super) fn on_reset(&mut self, stream: StreamId) -> Result<(), ConnectionError> {
        self.peer.on_reset(stream)
    }

    /// The peer stopped one of this end's unidirectional streams.
    pub(super) fn on_stopped(&mut self, stream: StreamId) -> Result<(), ConnectionError> {
        // https://www.rfc-editor.org/rfc/rfc9114#section-6.2.1
        //# The sender MUST NOT close the control stream, and the receiver MUST NOT request that the
        //# sender close the control stream. If either control stream is closed at any point, this
        //# MUST be treated as a connection error of type H3_CLOSED_CRITICAL_STREAM.
        self.own.find(stream).map_or(Ok(()), |which| Err(which.closed(stream)))
    }

    /// Counts octets of a frame of the peer that means nothing.
    pub(super) fn on_grease(&mut self, header: FrameHeader) -> Result<(), ConnectionError> {
        let octets = header.length.saturating_add(header.size() as u64);
        self.grease_received = self.grease_received.saturating_add(octets);
        // https://www.rfc-editor.org/rfc/rfc9114#section-10.5
        //# Implementations SHOULD track the use of these features and set limits on their use.
        if self.grease_received > MOST_GREASE {
            return Err(ConnectionError::TooMuchGrease { limit: MOST_GREASE });
        }
        Ok(())
    }

    /// The peer promised a response on a request's stream: nobody allowed it to.
    pub(super) const fn on_push_promise(&self) -> Result<(), ConnectionError> {
        Err(match self.role {
            // https://www.rfc-editor.org/rfc/rfc9114#section-7.2.5
            //# A client MUST treat receipt of a PUSH_PROMISE frame that contains a larger push ID
            //# than the client has advertised as a connection error of H3_ID_ERROR.
            Role::Client => {
                let problem = "nothing may be pushed";
                ConnectionError::Id { frame: "PUSH_PROMISE", id: 0, problem }
            }
            // https://www.rfc-editor.org/rfc/rfc9114#section-7.2.5
            //# A server MUST treat the receipt of a PUSH_PROMISE frame as a connection error of
            //# type H3_FRAME_UNEXPECTED.
            Role::Server => {
                let place = "from a client";
                ConnectionError::Frame(FrameError::Unexpected { kind: kind::PUSH_PROMISE, place })
            }
        })
    }

    /// A datagram came: for which request, and what it says. None is taken that was not asked for.
    pub(super) fn on_datagram(
        &self,
        datagram: &Bytes,
    ) -> Result<Option<(StreamId, Bytes)>, ConnectionError> {
        let (stream, payload) = super::datagram::decode(datagram)?;
        Ok(self.own_settings.datagrams.then_some((stream, payload)))
    }

    fn read_control<T: StreamTransport>(
        &mut self,
        transport: &mut T,
        stream: StreamId,
        incoming: &mut Vec<Incoming>,
    ) -> Result<(), ConnectionError> {
        loop {
            let header = match self.frame {
                Some(header) => header,
                None => match self.header.frame(transport, stream) {
                    Ok(HeaderState::Complete(header)) => {
                        self.begin(header)?;
                        self.frame = Some(header);
                        header
                    }
                    Ok(HeaderState::Blocked) => return Ok(()),
                    Ok(HeaderState::Ended { .. }) | Err(_) => {
                        return Err(Critical::Control.closed(stream));
                    }
                },
            };
            let is_known = is_known(header.kind);
            let (payload, skipped) = (&mut self.payload, &mut 0u64);
            let left = header.length - payload.len() as u64;
            if left > 0 {
                let state = transport.read_at_most(stream, left, &mut |octets| {
                    *skipped += octets.len() as u64;
                    if is_known {
                        payload.extend_from_slice(octets);
                    }
                });
                ended(state, Critical::Control, stream)?;
                if *skipped < left {
                    if !is_known {
                        self.frame = Some(FrameHeader { length: left - *skipped, ..header });
                    }
                    return Ok(());
                }
            }
            self.frame = None;
            if is_known {
                let frame = self.take(header.kind, transport.takes_datagrams());
                self.payload.clear();
                incoming.push(frame?);
            }
        }
    }

    /// Whether a frame may come now, and is no larger than it may be.
    fn begin(&mut self, header: FrameHeader) -> Result<(), ConnectionError> {
        let FrameHeader { kind, length } = header;
        // https://www.rfc-editor.org/rfc/rfc9114#section-6.2.1
        //# If the first frame of the control stream is any other frame type, this MUST be treated
        //# as a connection error of type H3_MISSING_SETTINGS.
        // https://www.rfc-editor.org/rfc/rfc9114#section-9
        //# However, where a known frame type is required to be in a specific location, such as the
        //# SETTINGS frame as the first frame of the control stream (see Section 6.2.1), an unknown
        //# frame type does not satisfy that requirement and SHOULD be treated as an error.
        if self.settings.is_none() && kind != kind::SETTINGS {
            return Err(ConnectionError::MissingSettings { kind });
        }
        let is_server = self.role == Role::Server;
        // https://www.rfc-editor.org/rfc/rfc9218#section-7.2
        //# If a client receives a PRIORITY_UPDATE frame, this MUST be treated as a connection
        //# error of type H3_FRAME_UNEXPECTED.
        let place = match kind {
            // https://www.rfc-editor.org/rfc/rfc9114#section-7.2.4
            //# If an endpoint receives a second SETTINGS frame on the control stream, the endpoint
            //# MUST respond with a connection error of type H3_FRAME_UNEXPECTED.
            kind::SETTINGS if self.settings.is_some() => Some("after the first"),
            // https://www.rfc-editor.org/rfc/rfc9114#section-7.2.1
            //# If a DATA frame is received on a control stream, the recipient MUST respond with a
            //# connection error of type H3_FRAME_UNEXPECTED.
            // https://www.rfc-editor.org/rfc/rfc9114#section-7.2.2
            //# If a HEADERS frame is received on a control stream, the recipient MUST respond with
            //# a connection error of type H3_FRAME_UNEXPECTED.
            // https://www.rfc-editor.org/rfc/rfc9114#section-7.2.5
            //# If a PUSH_PROMISE frame is received on the control stream, the client MUST respond
            //# with a connection error of type H3_FRAME_UNEXPECTED.
            kind::DATA | kind::HEADERS | kind::PUSH_PROMISE => Some("on the control stream"),
            // https://www.rfc-editor.org/rfc/rfc9114#section-7.2.7
            //# A server MUST NOT send a MAX_PUSH_ID frame. A client MUST treat the receipt of a
            //# MAX_PUSH_ID frame as a connection error of type H3_FRAME_UNEXPECTED.
            kind::MAX_PUSH_ID if !is_server => Some("from a server"),
            kind::PRIORITY_UPDATE | kind::PRIORITY_UPDATE_PUSH if !is_server => {
                Some("from a server")
            }
            // https://www.rfc-editor.org/rfc/rfc9114#section-7.2.8
            //# These frame types MUST NOT be sent, and their receipt MUST be treated as a
            //# connection error of type H3_FRAME_UNEXPECTED.
            kind if kind::is_of_http2(kind) => Some("which only HTTP/2 has"),
            _ => None,
        };
        if let Some(place) = place {
            return Err(FrameError::Unexpected { kind, place }.into());
        }
        // https://www.rfc-editor.org/rfc/rfc9114#section-7.2.8
        //# Endpoints MUST NOT consider these frames to have any meaning upon receipt.
        // https://www.rfc-editor.org/rfc/rfc9114#section-9
        //# Implementations MUST ignore unknown or unsupported values in all extensible protocol
        //# elements.
        if !is_known(kind) {
            return self.on_grease(header);
        }
        if length > MOST_CONTROL_FRAME {
            return Err(FrameError::TooLarge { kind, length, limit: MOST_CONTROL_FRAME }.into());
        }
        Ok(())
    }

    /// The frame in `payload`.
    fn take(&mut self, kind: u64, takes_datagrams: bool) -> Result<Incoming, ConnectionError> {
        let payload = &self.payload;
        Ok(match kind {
            kind::SETTINGS => {
                let settings = Settings::decode(payload)?;
                // https://www.rfc-editor.org/rfc/rfc9297#section-2.1.1
                if settings.datagrams && !takes_datagrams {
                    let problem = "is 1, and the transport parameter says that none are taken";
                    return Err(ConnectionError::Settings { setting: "H3_DATAGRAM", problem });
                }
                self.apply(settings)?;
                Incoming::Settings
            }
            kind::GOAWAY => Incoming::GoAway(frame::read_id(kind, payload)?),
            kind::CANCEL_PUSH => Incoming::CancelPush(frame::read_id(kind, payload)?),
            kind::MAX_PUSH_ID => Incoming::MaxPushId(frame::read_id(kind, payload)?),
            _ => {
                let mut reader = quipu_quic::wire::Reader::new(payload);
                let problem = "ends inside its identifier";
                let id = reader.varint().map_err(|_| FrameError::Malformed { kind, problem })?;
                let value = Bytes::copy_from_slice(reader.take_rest());
                Incoming::PriorityUpdate { is_push: kind == kind::PRIORITY_UPDATE_PUSH, id, value }
            }
        })
    }

    fn apply(&mut self, settings: Settings) -> Result<(), ConnectionError> {
        // https://www.rfc-editor.org/rfc/rfc9114#section-7.2.4.2
        if let Some(remembered) = &self.remembered
            && let Some(setting) = settings.reduced_from(remembered)
        {
            let problem = "is less than what held for 0-RTT";
            return Err(ConnectionError::Settings { setting, problem });
        }
        self.encoder.on_peer_settings(settings.table_capacity, settings.blocked_streams);
        self.settings = Some(settings);
        Ok(())
    }
}

/// Whether a frame of the control stream says something.
const fn is_known(kind: u64) -> bool {
    matches!(
        kind,
        kind::SETTINGS
            | kind::GOAWAY
            | kind::CANCEL_PUSH
            | kind::MAX_PUSH_ID
            | kind::PRIORITY_UPDATE
            | kind::PRIORITY_UPDATE_PUSH
    )
}

/// A critical stream may not end.
fn ended(
    state: Result<ReadState, StreamError>,
    which: Critical,
    stream: StreamId,
) -> Result<(), ConnectionError> {
    match state {
        Ok(ReadState::Blocked) => Ok(()),
        Ok(ReadState::Finished) | Err(_) => Err(which.closed(stream)),
    }
}
