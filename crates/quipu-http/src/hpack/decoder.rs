//! Header blocks to fields.

use thiserror::Error;

use super::DEFAULT_TABLE_SIZE;
use super::representation as repr;
use super::static_table::STATIC_TABLE;
use crate::field::dynamic_table::{DynamicTable, entry_size};
use crate::field::integer::{self, IntegerError};
use crate::field::string::{self, StringError};
use crate::field::{Field, FieldList};

/// Decodes the header blocks of one direction of one connection.
///
/// Blocks must come whole and in the order in which they were encoded. After an error the tables of
/// both ends differ, and the connection cannot go on.
#[derive(Debug)]
pub struct Decoder {
    table: DynamicTable,
    /// Octets to which the peer may set the table's size.
    table_limit: u32,
    /// Whether the limit sank below the size in use, so that the next block must start with a new one.
    size_update_due: bool,
    largest_list: u64,
}

/// How a block was decoded that was no error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    /// All fields are in the list.
    Complete,
    /// The list would have been larger than allowed: it holds the fields before the first that had no
    /// room. The table has followed the whole block, so the connection can go on.
    TooLarge,
}

/// Why a block could not be decoded.
/// <https://www.rfc-editor.org/rfc/rfc7540#section-4.3>: each is a connection error of type
/// COMPRESSION_ERROR.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// An index or a size is no valid integer.
    #[error(transparent)]
    Integer(#[from] IntegerError),
    /// A name or a value is no valid string.
    #[error(transparent)]
    String(#[from] StringError),
    /// An index points at no entry.
    #[error("index {index} points at no entry: the tables end at index {last}")]
    IndexOutOfRange {
        /// The index received.
        index: u64,
        /// The last valid index.
        last: usize,
    },
    /// The peer set a table size above the limit.
    #[error("a table size of {size} octets, where {limit} is the limit")]
    TableSizeTooLarge {
        /// The size received, in octets.
        size: u64,
        /// The limit in force, in octets.
        limit: u32,
    },
    /// A table size came after the first field of a block.
    #[error("a change of the table size after the first field of a block")]
    TableSizeMisplaced,
    /// The limit was lowered, and the block does not start with a new size.
    #[error("the block does not start with a table size, though the limit was lowered to {limit}")]
    TableSizeMissing {
        /// The limit in force, in octets.
        limit: u32,
    },
    /// The literals of a block, unpacked, are many times larger than a list may be.
    #[error("a block of literals that take more than {limit} octets")]
    Bomb {
        /// Octets of literals that one block may unpack to.
        limit: u64,
    },
}

/// Octets that the literals of a block may take beyond the largest list; our choice. They are only
/// unpacked to keep the table right, and a literal whose name is in the table takes two octets of a
/// block, and thousands once it is unpacked.
const MOST_UNPACKED: u64 = 1 << 20;

impl Decoder {
    /// A decoder whose table is limited to [`DEFAULT_TABLE_SIZE`], for lists of at most `largest_list`
    /// octets, counted as [`FieldList::size`] does.
    pub const fn new(largest_list: u64) -> Self {
        Decoder {
            table: DynamicTable::new(DEFAULT_TABLE_SIZE as u64),
            table_limit: DEFAULT_TABLE_SIZE,
            size_update_due: false,
            largest_list,
        }
    }

    /// Sets the table's limit to `limit` octets. To be called when the peer has acknowledged the
    /// SETTINGS_HEADER_TABLE_SIZE that announced it.
    pub fn set_table_limit(&mut self, limit: u32) {
        self.table_limit = limit;
        if self.table.capacity() > u64::from(limit) {
            self.size_update_due = true;
        }
    }

    /// The table as a size update to `capacity` would leave it.
    #[cfg(test)]
    pub(super) fn table_capacity_for_test(&mut self, capacity: u64) {
        self.table.set_capacity(capacity);
    }

    /// Decodes a whole header block into `fields`, whose former content is removed.
    ///
    /// Work and memory are bounded by the block's length, the table's limit and the list's limit.
    pub fn decode(&mut self, block: &[u8], fields: &mut FieldList) -> Result<Outcome, DecodeError> {
        fields.clear();
        let outcome = self.decode_fields(block, fields);
        if outcome.is_err() {
            fields.drop_tail();
        }
        outcome
    }

    fn decode_fields(
        &mut self,
        mut block: &[u8],
        fields: &mut FieldList,
    ) -> Result<Outcome, DecodeError> {
        self.decode_table_sizes(&mut block)?;
        let mut outcome = Outcome::Complete;
        let limit = self.largest_list.saturating_add(MOST_UNPACKED);
        let mut unpacked = 0u64;
        let mut unpack = |name: &[u8], value: &[u8]| {
            unpacked = unpacked.saturating_add(entry_size(name, value));
            if unpacked > limit { Err(DecodeError::Bomb { limit }) } else { Ok(()) }
        };
        // https://www.rfc-editor.org/rfc/rfc7541#section-2.1
        //# A decoder MUST order header fields in the decoded header list according to their
        //# ordering in the header block.
        while let Some(&first) = block.first() {
            // https://www.rfc-editor.org/rfc/rfc7541#section-3.2
            //# To ensure that the decoding will successfully produce a header list, a decoder
            //# MUST obey the following rules.
            if first & repr::INDEXED != 0 {
                let index = integer::decode(repr::INDEXED_PREFIX, &mut block)?;
                let (name, value) = self.entry(index)?;
                let size = entry_size(name, value);
                if self.has_room(fields, size, &mut outcome) {
                    let (name, value) = self.entry(index)?;
                    fields.push_field(Field { name, value, sensitive: false });
                }
            } else if first & repr::LITERAL_INDEXING != 0 {
                let prefix = repr::LITERAL_INDEXING_PREFIX;
                let name_end = self.decode_literal(prefix, &mut block, fields)?;
                let start = fields.tail_start();
                let (name, value) = fields.tail()[start..].split_at(name_end - start);
                unpack(name, value)?;
                self.table.insert(name, value);
                self.keep_literal(name_end, false, fields, &mut outcome);
            } else if first & repr::TABLE_SIZE != 0 {
                return Err(DecodeError::TableSizeMisplaced);
            } else {
                let sensitive = first & repr::LITERAL_NEVER_INDEXED != 0;
                let name_end = self.decode_literal(repr::LITERAL_PREFIX, &mut block, fields)?;
                let start = fields.tail_start();
                let (name, value) = fields.tail()[start..].split_at(name_end - start);
                unpack(name, value)?;
                self.keep_literal(name_end, sensitive, fields, &mut outcome);
            }
        }
        Ok(outcome)
    }

    /// <https://www.rfc-editor.org/rfc/rfc7541#section-4.2>
    fn decode_table_sizes(&mut self, block: &mut &[u8]) -> Result<(), DecodeError> {
        let kind_mask = repr::INDEXED | repr::LITERAL_INDEXING | repr::TABLE_SIZE;
        while block.first().is_some_and(|first| first & kind_mask == repr::TABLE_SIZE) {
            let size = integer::decode(repr::TABLE_SIZE_PREFIX, block)?;
            // https://www.rfc-editor.org/rfc/rfc7541#section-6.3
            //# A value that exceeds this limit MUST be treated as a decoding error.
            if size > u64::from(self.table_limit) {
                return Err(DecodeError::TableSizeTooLarge { size, limit: self.table_limit });
            }
            self.table.set_capacity(size);
            self.size_update_due = false;
        }
        // https://www.rfc-editor.org/rfc/rfc9113#section-4.3.1
        //# An endpoint MUST treat a field block that follows an acknowledgment of the reduction
        //# to the maximum dynamic table size as a connection error (Section 5.4.1) of type
        //# COMPRESSION_ERROR if it does not start with a conformant Dynamic Table Size Update
        //# instruction.
        if self.size_update_due {
            return Err(DecodeError::TableSizeMissing { limit: self.table_limit });
        }
        Ok(())
    }

    /// Reads a literal's name and value into the list's tail; returns where the name ends there.
    fn decode_literal(
        &self,
        prefix: u32,
        block: &mut &[u8],
        fields: &mut FieldList,
    ) -> Result<usize, DecodeError> {
        let index = integer::decode(prefix, block)?;
        if index == 0 {
            string::decode(repr::STRING_PREFIX, block, fields.tail())?;
        } else {
            let (name, _) = self.entry(index)?;
            fields.tail().extend_from_slice(name);
        }
        let name_end = fields.tail().len();
        string::decode(repr::STRING_PREFIX, block, fields.tail())?;
        Ok(name_end)
    }

    /// Makes a field of the list's tail, or drops it if the list has no room for it.
    fn keep_literal(
        &self,
        name_end: usize,
        sensitive: bool,
        fields: &mut FieldList,
        outcome: &mut Outcome,
    ) {
        let start = fields.tail_start();
        let (name, value) = fields.tail()[start..].split_at(name_end - start);
        let size = entry_size(name, value);
        if self.has_room(fields, size, outcome) {
            fields.keep_tail(name_end, sensitive);
        } else {
            fields.drop_tail();
        }
    }

    fn has_room(&self, fields: &FieldList, size: u64, outcome: &mut Outcome) -> bool {
        let room = *outcome == Outcome::Complete && fields.size() + size <= self.largest_list;
        if !room {
            // https://www.rfc-editor.org/rfc/rfc9113#section-10.5.1
            //# The field block MUST be processed to ensure a consistent connection state, unless
            //# the connection is closed.
            *outcome = Outcome::TooLarge;
        }
        room
    }

    /// <https://www.rfc-editor.org/rfc/rfc7541#section-2.3.3>
    fn entry(&self, index: u64) -> Result<(&[u8], &[u8]), DecodeError> {
        let last = STATIC_TABLE.len() + self.table.len();
        usize::try_from(index)
            .ok()
            // https://www.rfc-editor.org/rfc/rfc7541#section-6.1
            //# It MUST be treated as a decoding error if found in an indexed header field
            //# representation.
            .and_then(|index| index.checked_sub(1))
            .and_then(|position| match position.checked_sub(STATIC_TABLE.len()) {
                None => STATIC_TABLE.get(position),
                Some(age) => self.table.get(age),
            })
            // https://www.rfc-editor.org/rfc/rfc7541#section-2.3.3
            //# Indices strictly greater than the sum of the lengths of both tables MUST be
            //# treated as a decoding error.
            .ok_or(DecodeError::IndexOutOfRange { index, last })
    }
}
