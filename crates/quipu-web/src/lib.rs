//! Web pages, browsers and page loads, sans-IO.
//!
//! From a recording to a result:
//!
//! 1. [`har`] reads HAR 1.2 files as their producers write them; [`pages`] has some that ship
//!    inside the library, [`synthetic`] makes pages up.
//! 2. [`page::read`] makes a [`page::Page`] of it: objects with sizes and think times, each with the
//!    way it is discovered; and a [`page::PageReport`] of everything that was guessed.
//! 3. [`scheme::BrowserScheme`] says which priority goes with which request.
//! 4. [`layout::Viewport`] says which images are in view, [`load::PageLoad`] says what to request when, as responses arrive.
//! 5. [`push::Push`] says what a server sends unasked.
//! 6. [`metrics::Timeline`] records what arrived when, and gives page time, object index, byte
//!    index and critical time.
//! 7. [`recording::write`] makes a HAR file of a load, for the viewers of others and for [`page::read`].
//!
//! 8. [`trace`] reads what the main thread of a browser did during a load, [`archive`] unpacks what holds recordings
//!    and traces, [`import`] makes HAR files of Chrome's network logs and of traces; [`phases`] has what their entries share.
//!
//! Not here: any connection. A driver carries the requests over whatever it drives.

pub mod archive;
pub mod har;
pub mod import;
pub mod layout;
pub mod load;
pub mod metrics;
mod name;
pub mod page;
pub mod pages;
pub mod phases;
pub mod push;
pub mod recording;
pub mod scheme;
pub mod synthetic;
pub mod trace;

pub use name::UnknownName;
