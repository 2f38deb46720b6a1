use proptest::prelude::*;

use super::*;

fn pattern(start: u64, len: usize) -> Vec<u8> {
    (start..).take(len).map(|at| (at * 7 % 251) as u8).collect()
}

fn read_all(assembler: &mut Assembler, buffers: &mut Buffers) -> Vec<u8> {
    let mut bytes = Vec::new();
    assembler.read(u64::MAX, buffers, &mut |part| bytes.extend_from_slice(part));
    bytes
}

/// A datagram of 1,472 bytes arrives that carries this stretch; how many buffers were exchanged.
fn receive(assembler: &mut Assembler, buffers: &mut Buffers, start: u64, len: usize) -> bool {
    let mut datagram = vec![0; 1_472].into_boxed_slice();
    datagram[30..30 + len].copy_from_slice(&pattern(start, len));
    let before = datagram.as_ptr();
    buffers.lend(&datagram);
    assembler.insert(start, &datagram[30..30 + len], buffers);
    if buffers.end_lending() {
        assembler.keep(&mut datagram, buffers, &mut Spares::new());
    }
    datagram.as_ptr() != before
}

#[test]
fn bytes_in_order_are_read_where_they_came() {
    let (mut assembler, mut buffers) = (Assembler::new(), Buffers::new());
    let mut received = Vec::new();
    for nth in 0..10 {
        assert!(receive(&mut assembler, &mut buffers, nth * 1_300, 1_300));
        assembler.read(u64::MAX, &mut buffers, &mut |part| received.extend_from_slice(part));
    }
    assert_eq!(received, pattern(0, 13_000));
    // Each buffer was exchanged for the one read before.
    assert_eq!((buffers.spent(), assembler.memory()), (1, 0));
}

#[test]
fn bytes_ahead_of_their_turn_are_not_copied_either() {
    let (mut assembler, mut buffers) = (Assembler::new(), Buffers::new());
    for nth in (0..5).rev() {
        assert!(receive(&mut assembler, &mut buffers, nth * 1_000, 1_000));
    }
    assert_eq!(read_all(&mut assembler, &mut buffers), pattern(0, 5_000));
}

#[test]
fn small_frames_are_copied_and_share_buffers() {
    let (mut assembler, mut buffers) = (Assembler::new(), Buffers::new());
    for nth in 0..1_000 {
        assert!(!receive(&mut assembler, &mut buffers, nth * 100, 100));
    }
    assert!(assembler.memory() <= 2 * 100_000 + 4_000, "{}", assembler.memory());
    assert!(assembler.ready.len() < 20, "{} buffers", assembler.ready.len());
    assert_eq!(read_all(&mut assembler, &mut buffers), pattern(0, 100_000));
}

/// As where two paths take turns: every other piece comes ahead of its turn.
#[test]
fn pieces_in_order_between_others_take_memory_in_proportion() {
    for length in [1, 1_000] {
        let (mut assembler, mut buffers) = (Assembler::new(), Buffers::new());
        let mut at = 0;
        while at < 1 << 20 {
            let ahead = at + length;
            assembler.insert(ahead, &pattern(ahead, 1_200), &mut buffers);
            assembler.insert(at, &pattern(at, length as usize), &mut buffers);
            at = ahead + 1_200;
        }
        let held = assembler.memory() as f64 / at as f64;
        assert!(held < 1.5, "{held} bytes are held for each of a stream, by pieces of {length}");
        assert!(read_all(&mut assembler, &mut buffers) == pattern(0, at as usize));
    }
}

/// Memory after so many one-byte pieces, in bytes for each.
fn held_per_byte(count: u64, place: impl Fn(u64) -> u64) -> f64 {
    let (mut assembler, mut buffers) = (Assembler::new(), Buffers::new());
    for nth in 0..count {
        let at = place(nth);
        assembler.insert(at, &pattern(at, 1), &mut buffers);
    }
    assembler.memory() as f64 / count as f64
}

/// A frame of one byte takes at least six bytes in a packet.
#[test]
fn single_bytes_take_memory_in_proportion_wherever_they_lie() {
    for (name, held) in [
        ("one in each 4,096", held_per_byte(10_000, |nth| 1 + 4096 * nth)),
        ("one in each 4,096, from the end", held_per_byte(10_000, |nth| (20_000 - nth) * 4096)),
        ("one in each 2^40", held_per_byte(10_000, |nth| 1 + (nth << 40))),
        ("every other", held_per_byte(100_000, |nth| 1 + 2 * nth)),
        ("every other, from the end", held_per_byte(100_000, |nth| 400_000 - 2 * nth)),
        ("here and there", held_per_byte(50_000, |nth| 1 + nth * 7_919 % 1_000_003)),
        ("all but the first, from the end", held_per_byte(100_000, |nth| 100_001 - nth)),
    ] {
        println!("{name}: {held:.1} bytes each");
        assert!(held < 15.0, "{name}: {held}");
    }
}

/// What a gap of one byte keeps back costs no more each time that more comes.
#[test]
fn pieces_behind_a_gap_cost_the_same_however_many_they_are() {
    for step in [1, 2, 200] {
        crate::cost::grows_in_proportion(8, |times| {
            let (mut assembler, mut buffers) = (Assembler::new(), Buffers::new());
            let data = [7; 150];
            for nth in 0..10_000 * times as u64 {
                let length = (step as usize).min(data.len());
                assembler.insert(1 + 2 * step * nth, &data[..length], &mut buffers);
            }
        });
    }
}

#[test]
fn a_piece_that_waits_for_its_buffer_and_is_dropped_leaves_it() {
    let (mut assembler, mut buffers) = (Assembler::new(), Buffers::new());
    let mut datagram = vec![0; 1_000].into_boxed_slice();
    let before = datagram.as_ptr();
    buffers.lend(&datagram);
    assert!(assembler.insert(5, &datagram[100..700], &mut buffers));
    assembler.skip_to(2_000, &mut buffers);
    assert!(buffers.end_lending());
    assembler.keep(&mut datagram, &mut buffers, &mut Spares::new());
    assert_eq!(datagram.as_ptr(), before);
}

#[derive(Clone, Debug)]
enum Op {
    /// A datagram with these stretches; `true`: its buffer is lent.
    Receive(Vec<(u64, usize)>, bool),
    Read(u64),
}

const REACH: u64 = 12_000;

fn op() -> impl Strategy<Value = Op> {
    let length = prop_oneof![4 => 0usize..6, 2 => 0usize..300, 2 => 700usize..1_200];
    let stretches = prop::collection::vec((0..REACH, length), 1..6);
    prop_oneof![
        5 => (stretches, any::<bool>()).prop_map(|(list, lent)| Op::Receive(list, lent)),
        1 => (0u64..4_000).prop_map(Op::Read),
    ]
}

proptest! {
    #[test]
    fn behaves_like_one_large_buffer(ops in prop::collection::vec(op(), 1..150)) {
        let (mut assembler, mut buffers) = (Assembler::new(), Buffers::new());
        let mut there = vec![false; 2 * REACH as usize];
        let (mut read, mut sent) = (0u64, 0);
        for op in ops {
            match op {
                Op::Receive(stretches, lent) => {
                    let mut datagram: Vec<u8> = Vec::new();
                    for &(start, len) in &stretches {
                        datagram.extend(pattern(start, len));
                        there[start as usize..start as usize + len].fill(true);
                        sent += len + 6;
                    }
                    let mut datagram = datagram.into_boxed_slice();
                    if lent {
                        buffers.lend(&datagram);
                    }
                    let mut at = 0;
                    let mut waits = false;
                    for (start, len) in stretches {
                        waits = assembler.insert(start, &datagram[at..at + len], &mut buffers);
                        at += len;
                    }
                    let length = datagram.len();
                    if buffers.end_lending() {
                        assembler.keep(&mut datagram, &mut buffers, &mut Spares::new());
                    }
                    prop_assert!(lent || !waits);
                    prop_assert_eq!(datagram.len(), length);
                }
                Op::Read(max) => {
                    let mut bytes = Vec::new();
                    let told =
                        assembler.read(max, &mut buffers, &mut |part| bytes.extend_from_slice(part));
                    let contiguous = there.iter().take_while(|&&byte| byte).count() as u64;
                    prop_assert_eq!(told, max.min(contiguous - read));
                    prop_assert_eq!(bytes, pattern(read, told as usize));
                    read += told;
                }
            }
            let contiguous = there.iter().take_while(|&&byte| byte).count() as u64;
            prop_assert_eq!((assembler.read_end(), assembler.contiguous()), (read, contiguous));
            prop_assert!(assembler.memory() <= 5 * sent / 2 + 600, "{} of {sent}", assembler.memory());
            let mut end = contiguous;
            for (start, segment) in assembler.ahead.iter() {
                let segment_end = match segment {
                    Segment::Piece(piece) => piece.end(),
                    Segment::Clump(clump) => clump.end(),
                };
                prop_assert!(start >= end && segment_end > start);
                end = segment_end;
            }
        }
        let rest = read_all(&mut assembler, &mut buffers);
        prop_assert_eq!(rest.len() as u64, assembler.contiguous() - read);
        prop_assert_eq!(rest, pattern(read, (assembler.contiguous() - read) as usize));
    }
}

/// A reader that keeps up leaves nothing behind which the next buffer could grow.
#[test]
fn a_stream_that_filled_large_buffers_uses_the_same_ones_again() {
    let (mut assembler, mut buffers) = (Assembler::new(), Buffers::new());
    let mut at = 0;
    let mut spent = Vec::new();
    for _ in 0..20 {
        for _ in 0..30 {
            assembler.insert(at, &pattern(at, 1_400), &mut buffers);
            at += 1_400;
        }
        read_all(&mut assembler, &mut buffers);
        spent.push(buffers.spent());
    }
    assert_eq!(spent[1..], [spent[1]; 19]);
    assembler.insert(at, &[7], &mut buffers);
    assert!(assembler.memory() <= MAX_SHARED + 2 * ENTRY, "{}", assembler.memory());
}
