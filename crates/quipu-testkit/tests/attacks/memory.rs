//! Memory that a peer makes a victim hold: bytes held are in proportion to bytes received.

use quipu_base::{Duration, Offset, Role, StreamId};
use quipu_quic::wire::Frame;
use quipu_quic::wire::frame::Stream;
use quipu_testkit::forge::{Forge, Setup, one_rtt};

use crate::setup;

/// UDP payload that the attacks on reassembly send, in bytes.
const SENT: u64 = 80_000;
/// What a victim holds at most for it.
const HELD: i64 = 200_000;

/// A victim whose application reads nothing.
fn stubborn() -> Setup {
    Setup { reads: false, ..setup() }
}

fn stream(id: u64, offset: u64, data: &[u8]) -> Frame<'_> {
    Frame::Stream(Stream { stream: StreamId(id), offset: Offset(offset), fin: false, data })
}

/// What a server holds after packets full of the frames that `make` makes.
fn held_after<'a>(make: impl FnMut(u64) -> Frame<'a>) -> i64 {
    held_by(&stubborn(), make)
}

/// The same of a server of `setup`.
fn held_by<'a>(setup: &Setup, mut make: impl FnMut(u64) -> Frame<'a>) -> i64 {
    let mut forge = Forge::against(Role::Server, setup).acknowledging();
    let mut nth = 0;
    let work = forge.cost(|forge| {
        let before = forge.work().bytes_in;
        while forge.work().bytes_in - before < SENT {
            let mut packet = one_rtt();
            while packet.payload_length() < 1_200 {
                packet = packet.frame(make(nth));
                nth += 1;
            }
            forge.send(packet);
            forge.wait(Duration::from_millis(1));
        }
    });
    assert_eq!(forge.closed(), None);
    println!("{work:?}");
    work.held
}

/// One byte in each block of four kilobytes, so that each takes a block of its own.
#[test]
fn one_byte_per_block_of_a_stream_holds_in_proportion() {
    let held = held_after(|nth| stream(0, nth * 4096 % 6_000_000 + nth / 1464, &[7]));
    assert!(held <= HELD, "{held} bytes for {SENT}");
}

/// One byte each on all the streams that the peer may open, at offsets that leave gaps.
#[test]
fn one_byte_on_each_of_many_streams_holds_in_proportion() {
    let streams = setup().server.max_streams;
    let held = held_after(|nth| stream(4 * (nth % streams), 1 + 2 * (nth / streams), &[7]));
    assert!(held <= HELD, "{held} bytes for {SENT}");
}

/// The same where the peer may open many more. A stream on which something came has its own price,
/// whatever came: its state, what policies see of it, and the first node of the tree of what lies
/// beyond a gap.
#[test]
fn each_further_stream_that_is_allowed_holds_a_bounded_amount() {
    let streams = 4_000;
    let mut setup = stubborn();
    setup.server.max_streams = streams;
    let held = held_by(&setup, |nth| stream(4 * (nth % streams), 1 + 2 * (nth / streams), &[7]));
    assert!(held <= HELD + 1_200 * streams as i64, "{held} bytes for {SENT}");
}

/// Every other byte: the list of ranges is as long as can be.
#[test]
fn every_other_byte_of_a_stream_holds_in_proportion() {
    let held = held_after(|nth| stream(0, 1 + 2 * nth, &[7]));
    assert!(held <= HELD, "{held} bytes for {SENT}");
}

/// The same bytes again and again.
#[test]
fn the_same_bytes_again_and_again_hold_once() {
    let data = [7; 1_000];
    let held = held_after(|_| stream(0, 1, &data));
    assert!(held <= 20_000, "{held} bytes");
}

/// Overlapping pieces with one end.
#[test]
fn overlapping_pieces_hold_once() {
    let data = [7; 1_000];
    let held = held_after(|nth| stream(0, 1 + nth % 997, &data[..1_000 - (nth % 997) as usize]));
    assert!(held <= 20_000, "{held} bytes");
}

/// Handshake bytes after the handshake: TLS takes them in order, and what lies further ahead is
/// bounded. <https://www.rfc-editor.org/rfc/rfc9000#section-7.5>
#[test]
fn handshake_bytes_far_ahead_are_bounded() {
    let mut forge = Forge::against(Role::Server, &setup());
    let data = [7; 1_000];
    let work = forge.cost(|forge| {
        for nth in 0..100 {
            forge.say([Frame::Crypto { offset: Offset(1 + nth * 2_000), data: &data }]);
        }
    });
    println!("{:?} {work:?}", forge.closed());
    assert!(work.peak <= 150_000, "{work:?}");
    assert!(forge.closed().is_some());
}

/// A connection that does nothing.
#[test]
fn an_idle_connection_is_small() {
    let mut forge = Forge::against(Role::Server, &setup()).acknowledging();
    forge.wait(Duration::from_secs(1));
    let held = forge.work().held;
    println!("{held} bytes");
    // The null TLS, the policies and the application of the testkit included.
    assert!(held < 12_500, "{held} bytes");
}

/// Connections that are dropped leave nothing.
#[test]
fn a_dropped_connection_leaves_nothing() {
    let mut forge = Forge::against(Role::Server, &setup()).acknowledging();
    for id in 0..100 {
        forge.say([stream(4 * id, 0, &[7; 1_000])]);
        forge.act(|connection, now| {
            let _ = connection.write(now, StreamId(4 * id), vec![7; 10_000].into());
        });
        forge.wait(Duration::from_millis(10));
    }
    forge.victim_mut().drop_connections();
    let held = forge.work().held;
    println!("{held} bytes");
    // Empty lists of the endpoint.
    assert!(held < 8_000, "{held} bytes");
}
