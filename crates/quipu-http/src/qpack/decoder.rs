//! Field sections to fields.

use std::mem;

use bytes::Bytes;
use quipu_base::StreamId;
use thiserror::Error;

use super::blocked::Blocked;
use super::instruction::{DecoderInstruction, EncoderInstruction, Name, Unfinished};
use super::prefix::{Prefix, max_entries};
use super::representation as repr;
use super::static_table::static_entry;
use crate::field::dynamic_table::{DynamicTable, entry_size};
use crate::field::huffman::HuffmanError;
use crate::field::integer::{self, IntegerError};
use crate::field::string::{self, Literal, StringError};
use crate::field::{Field, FieldList};

/// Decodes the field sections that the peer of one connection sends.
///
/// After any input, ask [`Decoder::poll_unblocked`] and then [`Decoder::take_instructions`]. After an
/// error the connection cannot go on.
#[derive(Debug)]
pub struct Decoder {
    table: DynamicTable,
    /// Octets to which the peer may set the table's capacity.
    table_limit: u32,
    blocked: Blocked,
    blocked_limit: u16,
    largest_list: u64,
    /// Insertions that the peer has been told of.
    reported: u64,
    unfinished: Unfinished,
    /// Strings of the instruction at hand.
    strings: Vec<u8>,
    instructions: Vec<u8>,
}

/// How a section was decoded that was no error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    /// All fields are in the list.
    Complete,
    /// The list would have been larger than allowed: it holds the fields before the first that had no
    /// room. The rest of the section was not looked at, since no table depends on it.
    TooLarge,
    /// The section needs insertions that have not arrived. The stream is blocked: its octets after
    /// the section should stay unread until [`Decoder::poll_unblocked`] names it.
    Blocked,
}

/// Why a section could not be decoded.
/// <https://www.rfc-editor.org/rfc/rfc9204#section-6>: each is a connection error of type
/// QPACK_DECOMPRESSION_FAILED.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// An index or a count is no valid integer.
    #[error(transparent)]
    Integer(#[from] IntegerError),
    /// A name or a value is no valid string.
    #[error(transparent)]
    String(#[from] StringError),
    /// No encoder could have produced this Required Insert Count.
    #[error("the encoded Required Insert Count {encoded} fits no state of the table")]
    RequiredInsertCount {
        /// The value received.
        encoded: u64,
    },
    /// The Base would be negative.
    #[error("a Base {delta} and one below the Required Insert Count {required}")]
    NegativeBase {
        /// The Required Insert Count.
        required: u64,
        /// The Delta Base received.
        delta: u64,
    },
    /// The section would block more streams than the limit allows.
    #[error("more blocked streams than the {limit} allowed")]
    TooManyBlocked {
        /// SETTINGS_QPACK_BLOCKED_STREAMS of this end.
        limit: u16,
    },
    /// The static table has no such entry.
    #[error("the static table has no entry {index}")]
    StaticIndex {
        /// The index received.
        index: u64,
    },
    /// A relative index leads to before the first entry.
    #[error("relative index {index} from Base {base} leads to before the first entry")]
    RelativeIndex {
        /// The index received.
        index: u64,
        /// The Base of the section.
        base: u64,
    },
    /// A reference to an entry that the Required Insert Count does not cover.
    #[error("a reference to entry {index}, where the Required Insert Count is {required}")]
    BeyondRequired {
        /// The absolute index.
        index: u64,
        /// The Required Insert Count of the section.
        required: u64,
    },
    /// A reference to an entry that has been evicted.
    #[error("a reference to entry {index}, which has been evicted")]
    Evicted {
        /// The absolute index.
        index: u64,
    },
}

/// Why an instruction of the encoder stream was not understood.
/// <https://www.rfc-editor.org/rfc/rfc9204#section-6>: each is a connection error of type
/// QPACK_ENCODER_STREAM_ERROR.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EncoderStreamError {
    /// An index, a length or a capacity is no valid integer.
    #[error(transparent)]
    Integer(#[from] IntegerError),
    /// A string is no Huffman code.
    #[error(transparent)]
    Huffman(#[from] HuffmanError),
    /// The peer set a capacity above the limit.
    #[error("a table capacity of {capacity} octets, where {limit} is the limit")]
    CapacityTooLarge {
        /// The capacity received, in octets.
        capacity: u64,
        /// SETTINGS_QPACK_MAX_TABLE_CAPACITY of this end, in octets.
        limit: u32,
    },
    /// The static table has no such entry.
    #[error("the static table has no entry {index}")]
    StaticIndex {
        /// The index received.
        index: u64,
    },
    /// The dynamic table has no such entry, or no longer.
    #[error("relative index {index} points at none of the table's {entries} entries")]
    DynamicIndex {
        /// The relative index received.
        index: u64,
        /// Entries of the table.
        entries: usize,
    },
    /// The peer inserted an entry larger than the table.
    #[error("an entry of {size} octets for a table of {capacity}")]
    EntryTooLarge {
        /// What the entry counts, in octets.
        size: u64,
        /// The table's capacity, in octets.
        capacity: u64,
    },
    /// An instruction is longer than any insertion into the table can be.
    #[error("an instruction of more than {limit} octets")]
    InstructionTooLong {
        /// Longest unfinished instruction, in octets.
        limit: u64,
    },
}

impl Decoder {
    /// A decoder that keeps what this end's SETTINGS say.
    ///
    /// `table_limit` is SETTINGS_QPACK_MAX_TABLE_CAPACITY in octets, `blocked_limit` is
    /// SETTINGS_QPACK_BLOCKED_STREAMS. Lists have at most `largest_list` octets, counted as
    /// [`FieldList::size`] does.
    pub fn new(table_limit: u32, blocked_limit: u16, largest_list: u64) -> Self {
        Decoder {
            // https://www.rfc-editor.org/rfc/rfc9204#section-3.2.2
            //# The initial capacity of the dynamic table is zero.
            table: DynamicTable::new(0),
            table_limit,
            blocked: Blocked::default(),
            blocked_limit,
            largest_list,
            reported: 0,
            unfinished: Unfinished::default(),
            strings: Vec::new(),
            instructions: Vec::new(),
        }
    }

    /// Insertions into the table so far.
    pub fn inserted(&self) -> u64 {
        self.table.inserted()
    }

    /// Takes the next octets of the peer's encoder stream, cut anywhere. An unfinished instruction is
    /// kept, up to a few times the table's capacity.
    pub fn on_encoder_stream(&mut self, octets: &[u8]) -> Result<(), EncoderStreamError> {
        let mut unfinished = mem::take(&mut self.unfinished);
        unfinished.feed(octets, |input| {
            while let Some(instruction) = EncoderInstruction::read(input)? {
                self.apply(instruction)?;
            }
            Ok::<_, EncoderStreamError>(())
        })?;
        // Code of 30 bits for each octet, and the integers of the instruction.
        let limit = 4 * self.table.capacity() + 32;
        if unfinished.len() as u64 > limit {
            return Err(EncoderStreamError::InstructionTooLong { limit });
        }
        self.unfinished = unfinished;
        Ok(())
    }

    fn apply(&mut self, instruction: EncoderInstruction<'_>) -> Result<(), EncoderStreamError> {
        match instruction {
            EncoderInstruction::SetCapacity(capacity) => {
                // https://www.rfc-editor.org/rfc/rfc9204#section-4.3.1
                //# The decoder MUST treat a new dynamic table capacity value that
                //# exceeds this limit as a connection error of type QPACK_ENCODER_STREAM_ERROR.
                if capacity > u64::from(self.table_limit) {
                    let limit = self.table_limit;
                    return Err(EncoderStreamError::CapacityTooLarge { capacity, limit });
                }
                self.table.set_capacity(capacity);
            }
            EncoderInstruction::Insert { name, value } => self.insert(name, value)?,
            EncoderInstruction::Duplicate(index) => {
                let age = self.age(index)?;
                self.table.duplicate(age);
            }
        }
        Ok(())
    }

    fn insert(
        &mut self,
        name: Name<Literal<'_>>,
        value: Literal<'_>,
    ) -> Result<(), EncoderStreamError> {
        let mut strings = mem::take(&mut self.strings);
        strings.clear();
        match name {
            Name::Static(index) => {
                // https://www.rfc-editor.org/rfc/rfc9204#section-3.1
                //# If this index is received on the encoder stream, this MUST be treated as a
                //# connection error of type QPACK_ENCODER_STREAM_ERROR.
                let entry = static_entry(index);
                let (name, _) = entry.ok_or(EncoderStreamError::StaticIndex { index })?;
                value.decode(&mut strings)?;
                self.check_size(name, &strings)?;
                self.table.insert(name, &strings);
            }
            Name::Dynamic(index) => {
                let age = self.age(index)?;
                value.decode(&mut strings)?;
                let name = self.table.get(age).map_or(&[][..], |(name, _)| name);
                self.check_size(name, &strings)?;
                self.table.insert_with_name_of(age, &strings);
            }
            Name::Literal(name) => {
                name.decode(&mut strings)?;
                let name_end = strings.len();
                value.decode(&mut strings)?;
                let (name, value) = strings.split_at(name_end);
                self.check_size(name, value)?;
                self.table.insert(name, value);
            }
        }
        self.strings = strings;
        Ok(())
    }

    /// The age of the entry at a relative index of the encoder stream, which is the same if there is
    /// such an entry.
    fn age(&self, index: u64) -> Result<usize, EncoderStreamError> {
        // https://www.rfc-editor.org/rfc/rfc9204#section-2.2.3
        //# If the decoder encounters a reference in an encoder instruction to a dynamic
        //# table entry that has already been evicted, it MUST treat this as a connection
        //# error of type QPACK_ENCODER_STREAM_ERROR.
        let entries = self.table.len();
        usize::try_from(index)
            .ok()
            .filter(|&age| age < entries)
            .ok_or(EncoderStreamError::DynamicIndex { index, entries })
    }

    fn check_size(&self, name: &[u8], value: &[u8]) -> Result<(), EncoderStreamError> {
        // https://www.rfc-editor.org/rfc/rfc9204#section-3.2.2
        //# It is an error if the encoder attempts to add an entry that is larger than the
        //# dynamic table capacity; the decoder MUST treat this as a connection error of type
        //# QPACK_ENCODER_STREAM_ERROR.
        let (size, capacity) = (entry_size(name, value), self.table.capacity());
        if size > capacity {
            return Err(EncoderStreamError::EntryTooLarge { size, capacity });
        }
        Ok(())
    }

    /// Decodes a whole encoded field section of `stream` into `fields`, whose former content is
    /// removed.
    ///
    /// After [`Outcome::Blocked`] the caller keeps the section, and passes it again when
    /// [`Decoder::poll_unblocked`] has named the stream. Sections of one stream come in their order.
    /// Work and memory are bounded by the section's length, the table's limit and the list's limit.
    pub fn decode(
        &mut self,
        stream: StreamId,
        mut section: &[u8],
        fields: &mut FieldList,
    ) -> Result<Outcome, DecodeError> {
        fields.clear();
        let inserted = self.table.inserted();
        let prefix = Prefix::decode(max_entries(self.table_limit.into()), inserted, &mut section)?;
        if prefix.required > inserted {
            // https://www.rfc-editor.org/rfc/rfc9204#section-2.1.2
            //# If a decoder encounters more blocked streams than it promised to support, it MUST
            //# treat this as a connection error of type QPACK_DECOMPRESSION_FAILED.
            let limit = self.blocked_limit;
            return if self.blocked.insert(stream, prefix.required, limit) {
                Ok(Outcome::Blocked)
            } else {
                Err(DecodeError::TooManyBlocked { limit })
            };
        }
        self.blocked.remove(stream);
        let outcome = self.decode_lines(prefix, section, fields);
        fields.drop_tail();
        let outcome = outcome?;
        // A list that is too large counts as decoded: nothing of the section is needed any more.
        // https://www.rfc-editor.org/rfc/rfc9204#section-2.2.2.1
        //# After the decoder finishes decoding a field section encoded using
        //# representations containing dynamic table references, it MUST emit a Section
        //# Acknowledgment instruction
        if prefix.required > 0 {
            DecoderInstruction::SectionAcknowledgment(stream).encode(&mut self.instructions);
            self.reported = self.reported.max(prefix.required);
        }
        Ok(outcome)
    }

    fn decode_lines(
        &self,
        prefix: Prefix,
        mut lines: &[u8],
        fields: &mut FieldList,
    ) -> Result<Outcome, DecodeError> {
        // https://www.rfc-editor.org/rfc/rfc9204#section-2.2
        //# The decoder MUST emit field lines in the order their representations appear in
        //# the encoded field section.
        while let Some(&first) = lines.first() {
            let kept = if first & repr::INDEXED != 0 {
                let index = integer::decode(repr::INDEXED_PREFIX, &mut lines)?;
                let is_static = first & repr::INDEXED_STATIC != 0;
                self.keep_entry(self.entry(prefix, is_static, index)?, fields)
            } else if first & repr::NAMED != 0 {
                let index = integer::decode(repr::NAMED_PREFIX, &mut lines)?;
                let is_static = first & repr::NAMED_STATIC != 0;
                let (name, _) = self.entry(prefix, is_static, index)?;
                fields.tail().extend_from_slice(name);
                self.keep_literal(first & repr::NAMED_NEVER_INDEXED != 0, &mut lines, fields)?
            } else if first & repr::LITERAL != 0 {
                string::decode(repr::LITERAL_PREFIX, &mut lines, fields.tail())?;
                self.keep_literal(first & repr::LITERAL_NEVER_INDEXED != 0, &mut lines, fields)?
            } else if first & repr::POST_BASE_INDEXED != 0 {
                let index = integer::decode(repr::POST_BASE_INDEXED_PREFIX, &mut lines)?;
                self.keep_entry(self.dynamic_entry(prefix, prefix.post_base(index))?, fields)
            } else {
                let index = integer::decode(repr::POST_BASE_NAMED_PREFIX, &mut lines)?;
                let (name, _) = self.dynamic_entry(prefix, prefix.post_base(index))?;
                fields.tail().extend_from_slice(name);
                let sensitive = first & repr::POST_BASE_NAMED_NEVER_INDEXED != 0;
                self.keep_literal(sensitive, &mut lines, fields)?
            };
            if !kept {
                return Ok(Outcome::TooLarge);
            }
        }
        Ok(Outcome::Complete)
    }

    /// Appends a table's entry to the list; false if the list has no room for it.
    fn keep_entry(&self, (name, value): (&[u8], &[u8]), fields: &mut FieldList) -> bool {
        let room = fields.size() + entry_size(name, value) <= self.largest_list;
        if room {
            fields.push_field(Field { name, value, sensitive: false });
        }
        room
    }

    /// Reads the value of a literal whose name is the list's tail, and makes a field of both; false
    /// if the list has no room for it.
    fn keep_literal(
        &self,
        sensitive: bool,
        lines: &mut &[u8],
        fields: &mut FieldList,
    ) -> Result<bool, DecodeError> {
        let start = fields.tail_start();
        let name_end = fields.tail().len();
        string::decode(repr::STRING_PREFIX, lines, fields.tail())?;
        let (name, value) = fields.tail()[start..].split_at(name_end - start);
        let size = entry_size(name, value);
        let room = fields.size() + size <= self.largest_list;
        if room {
            fields.keep_tail(name_end, sensitive);
        }
        Ok(room)
    }

    fn entry(
        &self,
        prefix: Prefix,
        is_static: bool,
        index: u64,
    ) -> Result<(&[u8], &[u8]), DecodeError> {
        if is_static {
            // https://www.rfc-editor.org/rfc/rfc9204#section-3.1
            //# When the decoder encounters an invalid static table index in a field line
            //# representation, it MUST treat this as a connection error of type
            //# QPACK_DECOMPRESSION_FAILED.
            static_entry(index).ok_or(DecodeError::StaticIndex { index })
        } else {
            self.dynamic_entry(prefix, prefix.relative(index)?)
        }
    }

    /// The entry of an absolute index.
    fn dynamic_entry(&self, prefix: Prefix, index: u64) -> Result<(&[u8], &[u8]), DecodeError> {
        // https://www.rfc-editor.org/rfc/rfc9204#section-2.2.1
        //# If it encounters a Required Insert Count smaller than expected, it MUST treat this as
        //# a connection error of type QPACK_DECOMPRESSION_FAILED
        // https://www.rfc-editor.org/rfc/rfc9204#section-2.2.3
        //# If the decoder encounters a reference in a field line representation to a
        //# dynamic table entry that has already been evicted or that has an absolute
        //# index greater than or equal to the declared Required Insert Count
        //# [...] it MUST treat this as a connection error of type
        //# QPACK_DECOMPRESSION_FAILED.
        let required = prefix.required;
        if index >= required {
            return Err(DecodeError::BeyondRequired { index, required });
        }
        let age = self.table.age_of(index);
        age.and_then(|age| self.table.get(age)).ok_or(DecodeError::Evicted { index })
    }

    /// A stream that was blocked and whose section can be decoded now, each once.
    pub fn poll_unblocked(&mut self) -> Option<StreamId> {
        self.blocked.poll(self.table.inserted())
    }

    /// No section of `stream` will be decoded any more, because the stream was reset or this end
    /// abandons reading it. The stream is no longer blocked.
    pub fn cancel(&mut self, stream: StreamId) {
        self.blocked.remove(stream);
        // https://www.rfc-editor.org/rfc/rfc9204#section-2.2.2.2
        //# A decoder with a maximum dynamic table capacity [...] equal to zero MAY omit sending
        //# Stream Cancellations, because the encoder cannot have any dynamic table references.
        if self.table_limit > 0 {
            DecoderInstruction::StreamCancellation(stream).encode(&mut self.instructions);
        }
    }

    /// Octets for the decoder stream, if there are any.
    ///
    /// Insertions that no acknowledged section has told the peer of are reported here, together, so
    /// that it is best called once all input at hand has been passed on.
    pub fn take_instructions(&mut self) -> Option<Bytes> {
        // https://www.rfc-editor.org/rfc/rfc9204#section-4.4.3
        //# The decoder should send an Increment value that
        //# increases the Known Received Count to the total number of dynamic table
        //# insertions and duplications processed so far.
        let inserted = self.table.inserted();
        if inserted > self.reported {
            let increment = DecoderInstruction::InsertCountIncrement(inserted - self.reported);
            increment.encode(&mut self.instructions);
            self.reported = inserted;
        }
        let instructions = mem::take(&mut self.instructions);
        (!instructions.is_empty()).then(|| instructions.into())
    }

    /// The table.
    #[cfg(test)]
    pub(super) fn table_for_test(&self) -> &DynamicTable {
        &self.table
    }
}
