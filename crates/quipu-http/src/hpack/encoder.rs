//! Fields to header blocks.

use super::DEFAULT_TABLE_SIZE;
use super::representation as repr;
use super::static_table::STATIC_TABLE;
use crate::field::dynamic_table::DynamicTable;
use crate::field::indexing::Indexing;
use crate::field::static_table::Found;
use crate::field::{Field, FieldList, integer, string};

/// Encodes the field lists of one direction of one connection.
///
/// Header blocks must reach the peer's decoder in the order in which they were encoded, and all of
/// them.
#[derive(Debug)]
pub struct Encoder {
    table: DynamicTable,
    /// Most that this end spends on the table, in octets.
    largest_size: u32,
    resize: Option<Resize>,
}

/// A change of the table's capacity that the peer has not been told of.
/// <https://www.rfc-editor.org/rfc/rfc7541#section-4.2>
#[derive(Clone, Copy, Debug)]
struct Resize {
    smallest: u32,
    last: u32,
}

impl Encoder {
    /// An encoder whose table takes at most `largest_size` octets, whatever the peer would allow.
    pub fn new(largest_size: u32) -> Self {
        let mut encoder = Encoder {
            table: DynamicTable::new(u64::from(DEFAULT_TABLE_SIZE)),
            largest_size,
            resize: None,
        };
        encoder.set_peer_limit(DEFAULT_TABLE_SIZE);
        encoder
    }

    /// Follows the peer's SETTINGS_HEADER_TABLE_SIZE, in octets. The next header block tells the peer
    /// which size was chosen: the smaller of `limit` and this end's own limit.
    pub fn set_peer_limit(&mut self, limit: u32) {
        // https://www.rfc-editor.org/rfc/rfc7541#section-4.2
        //# An encoder can choose to use less capacity than this maximum size (see Section 6.3),
        //# but the chosen size MUST stay lower than or equal to the maximum set by the protocol.
        // https://www.rfc-editor.org/rfc/rfc7541#section-6.3
        //# The new maximum size MUST be lower than or equal to the limit determined by the
        //# protocol using HPACK.
        let size = limit.min(self.largest_size);
        if self.resize.is_none() && u64::from(size) == self.table.capacity() {
            return;
        }
        self.table.set_capacity(u64::from(size));
        // https://www.rfc-editor.org/rfc/rfc7541#section-4.2
        //# the smallest maximum table size that occurs in that interval MUST be
        //# signaled in a dynamic table size update.
        let smallest = self.resize.map_or(size, |resize| resize.smallest.min(size));
        self.resize = Some(Resize { smallest, last: size });
    }

    /// Appends the header block of `fields` to `out`.
    ///
    /// Sensitive fields are never indexed, nor are credentials and short cookies, which could be
    /// guessed octet by octet from compressed sizes. Values that hardly come twice are not inserted.
    pub fn encode(&mut self, fields: &FieldList, out: &mut Vec<u8>) {
        // https://www.rfc-editor.org/rfc/rfc9113#section-4.3.1
        //# Once an endpoint acknowledges a change to SETTINGS_HEADER_TABLE_SIZE that reduces the
        //# maximum below the current size of the dynamic table, its HPACK encoder MUST start the
        //# next field block with a Dynamic Table Size Update instruction that sets the dynamic
        //# table to a size that is less than or equal to the reduced maximum; see Section 4.2 of
        //# [COMPRESSION].
        // https://www.rfc-editor.org/rfc/rfc7541#section-4.2
        //# This dynamic table size update MUST occur at the beginning of the first header block
        //# following the change to the dynamic table size.
        if let Some(resize) = self.resize.take() {
            if resize.smallest < resize.last {
                encode_table_size(resize.smallest, out);
            }
            encode_table_size(resize.last, out);
        }
        // https://www.rfc-editor.org/rfc/rfc7541#section-2.1
        //# An encoder MUST order header field representations in the header block according to
        //# their ordering in the original header list.
        for field in fields.iter() {
            self.encode_field(field, out);
        }
    }

    fn encode_field(&mut self, field: Field<'_>, out: &mut Vec<u8>) {
        let indexing = Indexing::of(field, self.table.capacity());
        let found = self.find(field);
        // A sensitive field may only be a table's entry by chance: nothing tells it from a guess.
        if let (Some(Found::Field(index)), false) = (found, indexing == Indexing::Never) {
            integer::encode(repr::INDEXED_PREFIX, repr::INDEXED, index as u64, out);
            return;
        }
        let (prefix, flags) = match indexing {
            Indexing::Insert => (repr::LITERAL_INDEXING_PREFIX, repr::LITERAL_INDEXING),
            Indexing::Plain => (repr::LITERAL_PREFIX, repr::LITERAL_PLAIN),
            Indexing::Never => (repr::LITERAL_PREFIX, repr::LITERAL_NEVER_INDEXED),
        };
        match found {
            Some(Found::Field(index) | Found::Name(index)) => {
                integer::encode(prefix, flags, index as u64, out);
            }
            None => {
                integer::encode(prefix, flags, 0, out);
                string::encode(repr::STRING_PREFIX, 0, field.name, out);
            }
        }
        string::encode(repr::STRING_PREFIX, 0, field.value, out);
        if indexing == Indexing::Insert {
            self.table.insert(field.name, field.value);
        }
    }

    /// The field or its name in either table, by its index on the wire: the static table starts at 1,
    /// the dynamic table follows.
    fn find(&self, field: Field<'_>) -> Option<Found> {
        let in_static = STATIC_TABLE.find(field.name, field.value);
        if let Some(Found::Field(position)) = in_static {
            return Some(Found::Field(position + 1));
        }
        let first_dynamic = STATIC_TABLE.len() + 1;
        let in_dynamic = self.table.find(field.name, field.value);
        match (in_static, in_dynamic) {
            (_, Some(Found::Field(age))) => Some(Found::Field(age + first_dynamic)),
            (Some(Found::Name(position)), _) => Some(Found::Name(position + 1)),
            (_, Some(Found::Name(age))) => Some(Found::Name(age + first_dynamic)),
            _ => None,
        }
    }
}

fn encode_table_size(size: u32, out: &mut Vec<u8>) {
    integer::encode(repr::TABLE_SIZE_PREFIX, repr::TABLE_SIZE, u64::from(size), out);
}
