//! Which fields encoders put into their tables.

use super::Field;
use super::dynamic_table::entry_size;

/// What the tables keep of a field that they do not hold yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexing {
    /// Insert it.
    Insert,
    /// Leave the table as it is.
    Plain,
    /// Leave the table as it is, and forbid others on the way to index the value.
    Never,
}

impl Indexing {
    /// The decision for `field` and a table of `capacity` octets.
    ///
    /// Sensitive fields are never indexed, nor are credentials and short cookies, which could be
    /// guessed octet by octet from compressed sizes. Values that hardly come twice are not inserted.
    pub fn of(field: Field<'_>, capacity: u64) -> Indexing {
        // https://www.rfc-editor.org/rfc/rfc7541#section-7.1.3
        // A cookie of fewer than 20 octets has little entropy; the bound is that of nghttp2.
        if field.sensitive {
            // https://www.rfc-editor.org/rfc/rfc7541#section-6.2.3
            //# When a header field is represented as a literal header field never indexed, it
            //# MUST always be encoded with this specific literal representation. In particular,
            //# when a peer sends a header field that it received represented as a literal header
            //# field never indexed, it MUST use the same representation to forward this header
            //# field.
            // https://www.rfc-editor.org/rfc/rfc7541#section-7.1.3
            //# If HPACK is used for re-encoding, the never-indexed literal representation MUST be
            //# used.
            // https://www.rfc-editor.org/rfc/rfc9204#section-4.5.4
            //# In particular, when a peer sends a field line that it received represented as a
            //# literal field line with the 'N' bit set, it MUST use a literal representation to
            //# forward this field line.
            // https://www.rfc-editor.org/rfc/rfc9204#section-7.1.3
            //# An intermediary MUST NOT re-encode a value that uses a literal representation
            //# with the 'N' bit set with another representation that would index it. If QPACK is
            //# used for re-encoding, a literal representation with the 'N' bit set MUST be used.
            //# If HPACK is used for re-encoding, the never-indexed literal representation [...]
            //# MUST be used.
            return Indexing::Never;
        }
        match field.name {
            b"authorization" | b"proxy-authorization" => Indexing::Never,
            b"cookie" if field.value.len() < 20 => Indexing::Never,
            // Values that mostly differ from message to message: they would push out those that
            // return. The list is that of nghttp2.
            b":path" | b"age" | b"content-length" | b"etag" | b"if-modified-since"
            | b"if-none-match" | b"location" | b"set-cookie" => Indexing::Plain,
            // Larger than three quarters of the table: it would push out nearly all else.
            _ if entry_size(field.name, field.value) > capacity / 4 * 3 => Indexing::Plain,
            _ => Indexing::Insert,
        }
    }
}
