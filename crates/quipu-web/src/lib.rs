//! Web pages, browsers and page loads, sans-IO.
//!
//! - [`har`]: HAR 1.2 files as their producers write them.
//! - [`page`]: a [`page::Page`] of objects, each with its size and how it is discovered, made from a
//!   HAR file by [`page::read`], which also reports everything that it guessed.
//! - [`pages`]: the recordings that ship inside the library.
//!
//! Not here: any connection. A driver asks a page load what to request, carries it over whatever
//! it drives, and tells what arrived.

pub mod har;
pub mod load;
pub mod metrics;
mod name;
pub mod page;
pub mod pages;

pub use name::UnknownName;
