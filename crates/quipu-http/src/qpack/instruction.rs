//! Instructions of the encoder stream and of the decoder stream.
//! <https://www.rfc-editor.org/rfc/rfc9204#section-4.3>,
//! <https://www.rfc-editor.org/rfc/rfc9204#section-4.4>

use std::mem;

use quipu_base::StreamId;

use super::representation::STRING_PREFIX;
use crate::field::integer::{self, IntegerError};
use crate::field::string::{self, Literal, StringError};

const INSERT_NAMED: u8 = 0x80;
const INSERT_NAMED_STATIC: u8 = 0x40;
const INSERT_NAMED_PREFIX: u32 = 6;
const INSERT_LITERAL: u8 = 0x40;
/// Length prefix of the name.
const INSERT_LITERAL_PREFIX: u32 = 5;
const SET_CAPACITY: u8 = 0x20;
const SET_CAPACITY_PREFIX: u32 = 5;
const DUPLICATE_PREFIX: u32 = 5;

const SECTION_ACKNOWLEDGMENT: u8 = 0x80;
const SECTION_ACKNOWLEDGMENT_PREFIX: u32 = 7;
const STREAM_CANCELLATION: u8 = 0x40;
const STREAM_CANCELLATION_PREFIX: u32 = 6;
const INSERT_COUNT_INCREMENT_PREFIX: u32 = 6;

/// The name of a field to insert.
#[derive(Clone, Copy, Debug)]
pub(super) enum Name<T> {
    /// That of an entry of the static table.
    Static(u64),
    /// That of an entry of the dynamic table, by its age: the relative index.
    Dynamic(u64),
    /// Written out.
    Literal(T),
}

/// What the encoder tells the decoder, the strings not decoded yet.
#[derive(Clone, Copy, Debug)]
pub(super) enum EncoderInstruction<'a> {
    /// Set Dynamic Table Capacity, in octets.
    SetCapacity(u64),
    /// Insert with Name Reference or with Literal Name.
    Insert { name: Name<Literal<'a>>, value: Literal<'a> },
    /// Duplicate the entry of this age.
    Duplicate(u64),
}

impl<'a> EncoderInstruction<'a> {
    /// Reads an instruction from the front of `input`, and moves `input` behind it. No instruction,
    /// and no move, if `input` ends before the instruction does. The text of strings is not looked
    /// at, so that an instruction that arrives in many pieces costs little.
    pub(super) fn read(input: &mut &'a [u8]) -> Result<Option<Self>, IntegerError> {
        let mut rest = *input;
        match Self::read_whole(&mut rest) {
            Ok(instruction) => {
                *input = rest;
                Ok(Some(instruction))
            }
            Err(StringError::Length(error)) if error != IntegerError::Truncated => Err(error),
            // Reading decodes no text, so that all else means that octets are missing.
            Err(_) => Ok(None),
        }
    }

    fn read_whole(input: &mut &'a [u8]) -> Result<Self, StringError> {
        let first = *input.first().ok_or(StringError::Truncated)?;
        Ok(if first & INSERT_NAMED != 0 {
            let index = integer::decode(INSERT_NAMED_PREFIX, input)?;
            let is_static = first & INSERT_NAMED_STATIC != 0;
            let name = if is_static { Name::Static(index) } else { Name::Dynamic(index) };
            EncoderInstruction::Insert { name, value: string::split(STRING_PREFIX, input)? }
        } else if first & INSERT_LITERAL != 0 {
            let name = Name::Literal(string::split(INSERT_LITERAL_PREFIX, input)?);
            EncoderInstruction::Insert { name, value: string::split(STRING_PREFIX, input)? }
        } else if first & SET_CAPACITY != 0 {
            EncoderInstruction::SetCapacity(integer::decode(SET_CAPACITY_PREFIX, input)?)
        } else {
            EncoderInstruction::Duplicate(integer::decode(DUPLICATE_PREFIX, input)?)
        })
    }
}

/// Appends Set Dynamic Table Capacity to `out`.
/// <https://www.rfc-editor.org/rfc/rfc9204#section-4.3.1>
pub(super) fn set_capacity(capacity: u64, out: &mut Vec<u8>) {
    integer::encode(SET_CAPACITY_PREFIX, SET_CAPACITY, capacity, out);
}

/// Appends an insertion to `out`.
/// <https://www.rfc-editor.org/rfc/rfc9204#section-4.3.2>,
/// <https://www.rfc-editor.org/rfc/rfc9204#section-4.3.3>
pub(super) fn insert(name: Name<&[u8]>, value: &[u8], out: &mut Vec<u8>) {
    match name {
        Name::Static(index) => {
            let flags = INSERT_NAMED | INSERT_NAMED_STATIC;
            integer::encode(INSERT_NAMED_PREFIX, flags, index, out);
        }
        Name::Dynamic(age) => integer::encode(INSERT_NAMED_PREFIX, INSERT_NAMED, age, out),
        Name::Literal(name) => string::encode(INSERT_LITERAL_PREFIX, INSERT_LITERAL, name, out),
    }
    string::encode(STRING_PREFIX, 0, value, out);
}

/// Appends Duplicate to `out`.
/// <https://www.rfc-editor.org/rfc/rfc9204#section-4.3.4>
pub(super) fn duplicate(age: u64, out: &mut Vec<u8>) {
    integer::encode(DUPLICATE_PREFIX, 0, age, out);
}

/// What the decoder tells the encoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DecoderInstruction {
    /// The oldest unacknowledged section of this stream is decoded.
    SectionAcknowledgment(StreamId),
    /// No section of this stream will be decoded any more.
    StreamCancellation(StreamId),
    /// So many insertions have been received beyond those known.
    InsertCountIncrement(u64),
}

impl DecoderInstruction {
    /// Reads an instruction from the front of `input`, and moves `input` behind it. No instruction,
    /// and no move, if `input` ends before the instruction does.
    pub(super) fn read(input: &mut &[u8]) -> Result<Option<Self>, IntegerError> {
        let mut rest = *input;
        let first = rest.first().copied().unwrap_or_default();
        let prefix = if first & SECTION_ACKNOWLEDGMENT != 0 {
            SECTION_ACKNOWLEDGMENT_PREFIX
        } else {
            // Both others have the same.
            STREAM_CANCELLATION_PREFIX
        };
        let value = match integer::decode(prefix, &mut rest) {
            Ok(value) => value,
            Err(IntegerError::Truncated) => return Ok(None),
            Err(error) => return Err(error),
        };
        *input = rest;
        Ok(Some(if first & SECTION_ACKNOWLEDGMENT != 0 {
            DecoderInstruction::SectionAcknowledgment(StreamId(value))
        } else if first & STREAM_CANCELLATION != 0 {
            DecoderInstruction::StreamCancellation(StreamId(value))
        } else {
            DecoderInstruction::InsertCountIncrement(value)
        }))
    }

    /// Appends the instruction to `out`.
    pub(super) fn encode(self, out: &mut Vec<u8>) {
        match self {
            DecoderInstruction::SectionAcknowledgment(StreamId(stream)) => {
                let prefix = SECTION_ACKNOWLEDGMENT_PREFIX;
                integer::encode(prefix, SECTION_ACKNOWLEDGMENT, stream, out);
            }
            DecoderInstruction::StreamCancellation(StreamId(stream)) => {
                integer::encode(STREAM_CANCELLATION_PREFIX, STREAM_CANCELLATION, stream, out);
            }
            DecoderInstruction::InsertCountIncrement(increment) => {
                integer::encode(INSERT_COUNT_INCREMENT_PREFIX, 0, increment, out);
            }
        }
    }
}

/// The start of an instruction whose end has not arrived.
#[derive(Debug, Default)]
pub(super) struct Unfinished {
    octets: Vec<u8>,
}

impl Unfinished {
    /// Passes what was kept and then `octets` to `read`, and keeps what `read` leaves of them.
    pub(super) fn feed<E>(
        &mut self,
        octets: &[u8],
        read: impl FnOnce(&mut &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.octets.is_empty() {
            let mut rest = octets;
            read(&mut rest)?;
            self.octets.extend_from_slice(rest);
        } else {
            let mut joined = mem::take(&mut self.octets);
            joined.extend_from_slice(octets);
            let mut rest = joined.as_slice();
            read(&mut rest)?;
            let done = joined.len() - rest.len();
            joined.drain(..done);
            self.octets = joined;
        }
        if self.octets.is_empty() {
            // A long instruction must not hold its memory for the rest of the connection.
            self.octets = Vec::new();
        }
        Ok(())
    }

    /// Octets kept.
    pub(super) fn len(&self) -> usize {
        self.octets.len()
    }
}
