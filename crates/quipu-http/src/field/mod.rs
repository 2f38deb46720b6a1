//! What HPACK (RFC 7541) and QPACK (RFC 9204) share: field lists, prefix integers, Huffman-coded
//! strings, static and dynamic tables.
//!
//! Nothing here knows the representations of either format; those are in [`hpack`](crate::hpack).

pub mod dynamic_table;
pub mod huffman;
pub mod integer;
pub mod list;
pub mod static_table;
pub mod string;

pub use list::{Field, FieldList};
