//! Attacks of published classes on our engine, each with the bound that it must not pass.
//!
//! Bounds are bytes of memory (this program counts what is allocated), datagrams and bytes sent,
//! and how often memory is asked for, which stands for work. None is wall time; what a datagram
//! costs is for the bench `hostile`. `docs/security.md` lists all classes with these tests.
//!
//! A test that is ignored waits for a cure, which its reason names.

mod acks;
mod floods;
mod frames;
mod handshake;
mod ids;
mod memory;
mod on_the_wire;
mod paths;
mod random;

use quipu_base::Bytes;
use quipu_testkit::forge::{Allocated, Setup, Work};

/// Counts the memory that a piece of work takes: of its thread alone.
fn counted(work: &mut dyn FnMut()) -> Allocated {
    let info = allocation_counter::measure(work);
    Allocated { held: info.bytes_current, peak: info.bytes_max, count: info.count_total }
}

/// Two ends whose memory is counted.
fn setup() -> Setup {
    Setup { meter: counted, ..Setup::default() }
}

/// The same, where one write takes more than a stream may have unsent by default.
fn setup_for_long_writes() -> Setup {
    let mut setup = setup();
    setup.server.max_unsent = Bytes::MAX;
    setup
}

/// Holds what the victim did to a bound of bytes held in the end, of bytes held at any time, and of
/// bytes sent per byte received.
#[track_caller]
fn assert_bounded(work: Work, held: i64, peak: i64, amplification: f64) {
    println!("{work:?}");
    assert!(work.held <= held, "{} bytes held, expected at most {held}", work.held);
    assert!(work.peak <= peak, "{} bytes held at a time, expected at most {peak}", work.peak);
    let most = work.bytes_in as f64 * amplification + 3_000.0;
    assert!((work.bytes_out as f64) <= most, "sent {} for {}", work.bytes_out, work.bytes_in);
}
