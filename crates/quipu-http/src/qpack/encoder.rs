//! Fields to field sections.

use std::mem;

use bytes::Bytes;
use quipu_base::StreamId;
use thiserror::Error;

use super::instruction::{self, DecoderInstruction, Name, Unfinished};
use super::outstanding::Outstanding;
use super::prefix::{Prefix, max_entries};
use super::representation as repr;
use super::static_table::STATIC_TABLE;
use crate::field::dynamic_table::{DynamicTable, entry_size};
use crate::field::indexing::Indexing;
use crate::field::integer::{self, IntegerError};
use crate::field::static_table::Found;
use crate::field::{Field, FieldList, string};

/// Encodes the field sections that one end of a connection sends.
///
/// Insertions that the peer has not acknowledged are never evicted. So all instructions that are on
/// their way, or wait to be sent, fit into a table: their length is bounded by its capacity.
#[derive(Debug)]
pub struct Encoder {
    table: DynamicTable,
    /// Most that this end spends on the table, in octets.
    largest_table: u32,
    /// SETTINGS_QPACK_MAX_TABLE_CAPACITY of the peer, in octets.
    peer_limit: u64,
    /// SETTINGS_QPACK_BLOCKED_STREAMS of the peer.
    blocked_limit: u64,
    outstanding: Outstanding,
    references: u64,
    unfinished: Unfinished,
    instructions: Vec<u8>,
    /// The lines of the section at hand.
    lines: Vec<u8>,
}

/// Why an instruction of the decoder stream was not understood.
/// <https://www.rfc-editor.org/rfc/rfc9204#section-6>: each is a connection error of type
/// QPACK_DECODER_STREAM_ERROR.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DecoderStreamError {
    /// A stream or an increment is no valid integer.
    #[error(transparent)]
    Integer(#[from] IntegerError),
    /// An acknowledgment for a stream without an unacknowledged section.
    #[error("a Section Acknowledgment for stream {stream}, which has no unacknowledged section")]
    NothingOutstanding {
        /// The stream.
        stream: StreamId,
    },
    /// An Insert Count Increment of zero.
    #[error("an Insert Count Increment of zero")]
    IncrementZero,
    /// An Insert Count Increment beyond what was inserted.
    #[error("an Insert Count Increment of {increment} after {known} of {inserted} insertions")]
    IncrementTooLarge {
        /// The increment received.
        increment: u64,
        /// Insertions that were known to have arrived.
        known: u64,
        /// Insertions made.
        inserted: u64,
    },
}

/// A section while it is encoded.
#[derive(Debug)]
struct Section {
    /// Insertions before the section.
    base: u64,
    /// Whether the section may use the dynamic table.
    dynamic: bool,
    /// Whether it may refer to entries that the peer is not known to have.
    may_block: bool,
    /// The oldest entry referred to.
    oldest: u64,
    required: u64,
}

impl Encoder {
    /// An encoder whose table takes at most `largest_table` octets, whatever the peer would allow.
    /// It uses none before [`Encoder::on_peer_settings`].
    pub fn new(largest_table: u32) -> Self {
        Encoder {
            // https://www.rfc-editor.org/rfc/rfc9204#section-3.2.3
            //# When the maximum table capacity is zero, the encoder MUST NOT insert entries
            //# into the dynamic table and MUST NOT send any encoder instructions on the encoder
            //# stream.
            table: DynamicTable::new(0),
            largest_table,
            peer_limit: 0,
            blocked_limit: 0,
            outstanding: Outstanding::default(),
            references: 0,
            unfinished: Unfinished::default(),
            instructions: Vec::new(),
            lines: Vec::new(),
        }
    }

    /// Follows the peer's SETTINGS_QPACK_MAX_TABLE_CAPACITY, in octets, and
    /// SETTINGS_QPACK_BLOCKED_STREAMS. The table takes the smaller of `max_table_capacity` and this
    /// end's own limit, and the peer is told.
    ///
    /// To be called once, or twice if the first time was with remembered settings for early data.
    /// Values may only grow then; smaller ones are ignored. A `max_table_capacity` that was remembered
    /// and is not zero must not change at all
    /// (<https://www.rfc-editor.org/rfc/rfc9204#section-3.2.3>), which the caller checks.
    pub fn on_peer_settings(&mut self, max_table_capacity: u64, blocked_streams: u64) {
        self.peer_limit = self.peer_limit.max(max_table_capacity);
        self.blocked_limit = self.blocked_limit.max(blocked_streams);
        // https://www.rfc-editor.org/rfc/rfc9204#section-3.2.3
        //# The encoder MUST NOT set a dynamic table capacity that exceeds this maximum, but
        //# it can choose to use a lower dynamic table capacity
        // https://www.rfc-editor.org/rfc/rfc9204#section-4.3.1
        //# The new capacity MUST be lower than or equal to the limit described in Section 3.2.3.
        let capacity = self.peer_limit.min(self.largest_table.into());
        // https://www.rfc-editor.org/rfc/rfc9204#section-4.3.1
        //# This MUST NOT cause the eviction of entries that are not evictable
        // The capacity never shrinks.
        if capacity > self.table.capacity() {
            self.table.set_capacity(capacity);
            instruction::set_capacity(capacity, &mut self.instructions);
        }
    }

    /// Insertions into the table so far.
    pub fn inserted(&self) -> u64 {
        self.table.inserted()
    }

    /// References to entries of the dynamic table so far, in all sections.
    pub fn references(&self) -> u64 {
        self.references
    }

    /// Appends the encoded field section of `fields`, which is to be sent on `stream`, to `out`. What
    /// it needs of the table is queued: [`Encoder::take_instructions`] should be sent before it, or
    /// with it.
    ///
    /// Sections of one stream must be sent in the order in which they were encoded. Which fields are
    /// never indexed is the same as in [`hpack`](crate::hpack::Encoder::encode).
    pub fn encode(&mut self, stream: StreamId, fields: &FieldList, out: &mut Vec<u8>) {
        let mut section = Section {
            base: self.table.inserted(),
            dynamic: self.table.capacity() > 0 && self.outstanding.may_record(stream),
            may_block: self.outstanding.may_block(stream, self.blocked_limit),
            oldest: u64::MAX,
            required: 0,
        };
        let mut lines = mem::take(&mut self.lines);
        lines.clear();
        // https://www.rfc-editor.org/rfc/rfc9204#section-2.1
        //# An encoder MUST emit field representations in the order they appear in the input
        //# field section.
        for field in fields.iter() {
            self.encode_field(field, &mut section, &mut lines);
        }
        // https://www.rfc-editor.org/rfc/rfc9204#section-4.5.1.2
        //# The value of Base MUST NOT be negative.
        let Section { base, oldest, required, .. } = section;
        Prefix { required, base }.encode(max_entries(self.peer_limit), out);
        out.extend_from_slice(&lines);
        self.lines = lines;
        if required > 0 {
            self.outstanding.record(stream, oldest, required);
        }
    }

    fn encode_field(&mut self, field: Field<'_>, section: &mut Section, lines: &mut Vec<u8>) {
        let indexing = Indexing::of(field, self.table.capacity());
        let in_static = STATIC_TABLE.find(field.name, field.value);
        // A sensitive field may only be a table's entry by chance: nothing tells it from a guess.
        if indexing != Indexing::Never {
            if let Some(Found::Field(position)) = in_static {
                let flags = repr::INDEXED | repr::INDEXED_STATIC;
                integer::encode(repr::INDEXED_PREFIX, flags, position as u64, lines);
                return;
            }
            if let Some(index) = self.entry_for(field, indexing, in_static, section) {
                self.refer(index, section);
                match section.base.checked_sub(index + 1) {
                    Some(relative) => {
                        integer::encode(repr::INDEXED_PREFIX, repr::INDEXED, relative, lines);
                    }
                    None => {
                        let (prefix, flags) =
                            (repr::POST_BASE_INDEXED_PREFIX, repr::POST_BASE_INDEXED);
                        integer::encode(prefix, flags, index - section.base, lines);
                    }
                }
                return;
            }
        }
        self.encode_literal(field, indexing == Indexing::Never, in_static, section, lines);
    }

    fn encode_literal(
        &mut self,
        field: Field<'_>,
        never: bool,
        in_static: Option<Found>,
        section: &mut Section,
        lines: &mut Vec<u8>,
    ) {
        // https://www.rfc-editor.org/rfc/rfc9204#section-4.5.4
        //# When the 'N' bit is set, the encoded field line MUST always be encoded with a literal
        //# representation.
        let never = |flag: u8| if never { flag } else { 0 };
        if let Some(Found::Field(position) | Found::Name(position)) = in_static {
            let flags = repr::NAMED | repr::NAMED_STATIC | never(repr::NAMED_NEVER_INDEXED);
            integer::encode(repr::NAMED_PREFIX, flags, position as u64, lines);
        } else if let Some(index) = self.entry_of_name(field, section) {
            self.refer(index, section);
            if let Some(relative) = section.base.checked_sub(index + 1) {
                let flags = repr::NAMED | never(repr::NAMED_NEVER_INDEXED);
                integer::encode(repr::NAMED_PREFIX, flags, relative, lines);
            } else {
                let flags = never(repr::POST_BASE_NAMED_NEVER_INDEXED);
                let offset = index - section.base;
                integer::encode(repr::POST_BASE_NAMED_PREFIX, flags, offset, lines);
            }
        } else {
            let flags = repr::LITERAL | never(repr::LITERAL_NEVER_INDEXED);
            string::encode(repr::LITERAL_PREFIX, flags, field.name, lines);
        }
        string::encode(repr::STRING_PREFIX, 0, field.value, lines);
    }

    fn refer(&mut self, index: u64, section: &mut Section) {
        section.oldest = section.oldest.min(index);
        // https://www.rfc-editor.org/rfc/rfc9204#section-2.1.2
        //# For a field section encoded using references to the dynamic table,
        //# the Required Insert Count is one larger than the largest absolute index of all
        //# referenced dynamic table entries.
        section.required = section.required.max(index + 1);
        self.references += 1;
    }

    /// The entry of the dynamic table to refer to for `field`: one that is there, or one that is
    /// inserted here.
    fn entry_for(
        &mut self,
        field: Field<'_>,
        indexing: Indexing,
        in_static: Option<Found>,
        section: &Section,
    ) -> Option<u64> {
        if !section.dynamic {
            return None;
        }
        let found = self.table.find(field.name, field.value);
        let newest = match found {
            Some(Found::Field(age)) if self.is_draining(age) => {
                if self.duplicate(age, section) {
                    0
                } else if self.is_in_flight(age) {
                    age
                } else {
                    return None;
                }
            }
            Some(Found::Field(age)) => age,
            _ if indexing == Indexing::Insert && self.insert(field, in_static, found, section) => 0,
            _ => return None,
        };
        if section.may_block || !self.is_in_flight(newest) {
            return Some(self.index(newest));
        }
        // The section must not wait for the newest, but the peer may have an older copy.
        match self.find_usable(field, section)? {
            Found::Field(age) => Some(self.index(age)),
            Found::Name(_) => None,
        }
    }

    /// An entry whose name a literal can take.
    fn entry_of_name(&self, field: Field<'_>, section: &Section) -> Option<u64> {
        if !section.dynamic {
            return None;
        }
        let (Found::Field(age) | Found::Name(age)) = self.find_usable(field, section)?;
        (!self.is_draining(age) || self.is_in_flight(age)).then(|| self.index(age))
    }

    /// Searches the entries that `section` may refer to.
    fn find_usable(&self, field: Field<'_>, section: &Section) -> Option<Found> {
        let in_flight = self.table.inserted() - self.outstanding.known_received();
        let youngest = if section.may_block { 0 } else { in_flight };
        // Entries in flight are in the table, whose length is no larger than `usize` can tell.
        self.table.find_from(usize::try_from(youngest).ok()?, field.name, field.value)
    }

    /// Inserts `field`, if only entries have to leave for it that may. `found` is what the dynamic
    /// table has of it.
    fn insert(
        &mut self,
        field: Field<'_>,
        in_static: Option<Found>,
        found: Option<Found>,
        section: &Section,
    ) -> bool {
        let Field { name, value, .. } = field;
        if !self.has_room(entry_size(name, value), section) {
            return false;
        }
        let name = match (in_static, found) {
            (Some(Found::Field(position) | Found::Name(position)), _) => {
                Name::Static(position as u64)
            }
            (None, Some(Found::Field(age) | Found::Name(age))) => Name::Dynamic(age as u64),
            (None, None) => Name::Literal(name),
        };
        instruction::insert(name, value, &mut self.instructions);
        self.table.insert(field.name, value);
        true
    }

    /// Inserts a copy of an entry that would soon have to leave, if there is room.
    fn duplicate(&mut self, age: usize, section: &Section) -> bool {
        let Some((name, value)) = self.table.get(age) else { return false };
        if !self.has_room(entry_size(name, value), section) {
            return false;
        }
        instruction::duplicate(age as u64, &mut self.instructions);
        self.table.duplicate(age);
        true
    }

    fn has_room(&self, size: u64, section: &Section) -> bool {
        // https://www.rfc-editor.org/rfc/rfc9204#section-2.1.1
        //# If the dynamic table does not contain enough room for a new entry without
        //# evicting other entries, and the entries that would be evicted are not
        //# evictable, the encoder MUST NOT insert that entry into the dynamic table
        //# (including duplicates of existing entries).
        // https://www.rfc-editor.org/rfc/rfc9204#section-3.2.2
        //# The encoder MUST NOT cause a dynamic table entry to be evicted unless that entry is
        //# evictable
        self.table.has_room(size, self.outstanding.evictable().min(section.oldest))
    }

    /// Whether an entry is in the last quarter of the table, and should better not be referred to any
    /// more, so that it can leave.
    /// <https://www.rfc-editor.org/rfc/rfc9204#section-2.1.1.1>; the quarter is our choice.
    fn is_draining(&self, age: usize) -> bool {
        let since = self.table.octets_since(age).unwrap_or(u64::MAX);
        since > self.table.capacity() / 4 * 3
    }

    /// Whether the peer is not known to have an entry. Such an entry cannot leave yet, so that
    /// references to it do not keep it longer.
    fn is_in_flight(&self, age: usize) -> bool {
        self.index(age) >= self.outstanding.known_received()
    }

    /// The absolute index of an entry of the table.
    fn index(&self, age: usize) -> u64 {
        self.table.inserted() - 1 - age as u64
    }

    /// Octets for the encoder stream, if there are any.
    pub fn take_instructions(&mut self) -> Option<Bytes> {
        let instructions = mem::take(&mut self.instructions);
        (!instructions.is_empty()).then(|| instructions.into())
    }

    /// Takes the next octets of the peer's decoder stream, cut anywhere.
    pub fn on_decoder_stream(&mut self, octets: &[u8]) -> Result<(), DecoderStreamError> {
        let mut unfinished = mem::take(&mut self.unfinished);
        unfinished.feed(octets, |input| {
            while let Some(instruction) = DecoderInstruction::read(input)? {
                self.apply(instruction)?;
            }
            Ok::<_, DecoderStreamError>(())
        })?;
        self.unfinished = unfinished;
        Ok(())
    }

    fn apply(&mut self, instruction: DecoderInstruction) -> Result<(), DecoderStreamError> {
        match instruction {
            DecoderInstruction::SectionAcknowledgment(stream) => {
                // https://www.rfc-editor.org/rfc/rfc9204#section-4.4.1
                //# If an encoder receives a Section Acknowledgment instruction referring to a
                //# stream on which every encoded field section with a non-zero Required Insert
                //# Count has already been acknowledged, this MUST be treated as a connection error
                //# of type QPACK_DECODER_STREAM_ERROR.
                if !self.outstanding.on_acknowledged(stream) {
                    return Err(DecoderStreamError::NothingOutstanding { stream });
                }
            }
            DecoderInstruction::StreamCancellation(stream) => {
                self.outstanding.on_cancelled(stream);
            }
            DecoderInstruction::InsertCountIncrement(increment) => {
                // https://www.rfc-editor.org/rfc/rfc9204#section-4.4.3
                //# An encoder that receives an Increment field equal to zero, or one that increases
                //# the Known Received Count beyond what the encoder has sent, MUST treat this as a
                //# connection error of type QPACK_DECODER_STREAM_ERROR.
                if increment == 0 {
                    return Err(DecoderStreamError::IncrementZero);
                }
                let (known, inserted) = (self.outstanding.known_received(), self.inserted());
                let received = known.saturating_add(increment);
                if received > inserted {
                    return Err(DecoderStreamError::IncrementTooLarge {
                        increment,
                        known,
                        inserted,
                    });
                }
                self.outstanding.on_received(received);
            }
        }
        Ok(())
    }

    /// Sections that the peer has not acknowledged.
    #[cfg(test)]
    pub(super) fn outstanding_for_test(&self) -> usize {
        self.outstanding.len()
    }

    /// Whether the table still has every entry that must not be evicted.
    #[cfg(test)]
    pub(super) fn has_what_it_must_for_test(&self) -> bool {
        self.table.inserted() - self.table.len() as u64 <= self.outstanding.evictable()
    }
}
