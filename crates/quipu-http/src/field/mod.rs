//! What HPACK (RFC 7541) and QPACK (RFC 9204) share: field lists, prefix integers, Huffman-coded
//! strings, static and dynamic tables, and which fields are worth an entry.
//!
//! Nothing here knows the representations of either format; those are in [`hpack`](crate::hpack) and
//! [`qpack`](crate::qpack).

pub mod dynamic_table;
#[cfg(test)]
pub(crate) mod example;
pub mod huffman;
pub mod indexing;
pub mod integer;
pub mod list;
pub mod static_table;
pub mod string;

pub use list::{Field, FieldList};
