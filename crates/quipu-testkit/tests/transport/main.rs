//! What the transport does beside streams: sizes of datagrams, marks, PINGs, idle connections,
//! farewells, datagrams of the application, acknowledgements on request, grease, servers that would
//! rather be reached elsewhere, the frames of RFC 10069, timers that are served late.
#![expect(clippy::unwrap_used, reason = "tests")]

mod datagrams;
mod ecn;
mod grease;
mod late;
mod life;
mod mtu;
mod multipath;
mod preferred_address;
mod requests;
mod setup;
