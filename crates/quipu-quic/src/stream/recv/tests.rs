use proptest::prelude::*;

use super::*;

fn read_all(half: &mut RecvHalf, buffers: &mut Buffers) -> Vec<u8> {
    let mut bytes = Vec::new();
    half.read(u64::MAX, buffers, &mut |part| bytes.extend_from_slice(part));
    bytes
}

fn pattern(start: u64, len: u64) -> Vec<u8> {
    (start..start + len).map(|at| (at * 7 % 251) as u8).collect()
}

#[test]
fn bytes_come_out_in_order_whatever_the_order_they_came_in() {
    let (mut half, mut buffers) = (RecvHalf::new(100_000), Buffers::new());
    let late = half.on_data(Offset(5), b" world", true, &mut buffers).unwrap();
    assert_eq!(late, Received { growth: 11, ..Received::default() });
    let early = half.on_data(Offset(0), b"hello ", false, &mut buffers).unwrap();
    assert_eq!(early, Received { readable: true, ..Received::default() });
    assert_eq!(read_all(&mut half, &mut buffers), b"hello world");
    assert!(half.is_all_read());
}

#[test]
fn an_end_alone_is_news() {
    let (mut half, mut buffers) = (RecvHalf::new(100), Buffers::new());
    half.on_data(Offset(0), b"a", false, &mut buffers).unwrap();
    read_all(&mut half, &mut buffers);
    assert!(half.on_data(Offset(1), b"", true, &mut buffers).unwrap().readable);
    assert!(half.is_all_read());
    assert!(!half.on_data(Offset(1), b"", true, &mut buffers).unwrap().readable);
}

#[test]
fn data_beyond_the_credit_is_a_fault() {
    let (mut half, mut buffers) = (RecvHalf::new(10), Buffers::new());
    assert_eq!(
        half.on_data(Offset(5), b"123456", false, &mut buffers),
        Err(StreamFault::FlowControl)
    );
    assert_eq!(
        half.on_data(Offset(MAX_OFFSET), b"1", false, &mut buffers),
        Err(StreamFault::FlowControl)
    );
    assert_eq!(
        half.on_data(Offset(u64::MAX), b"1", false, &mut buffers),
        Err(StreamFault::FlowControl)
    );
    assert!(half.on_data(Offset(5), b"12345", false, &mut buffers).is_ok());
}

#[test]
fn the_final_size_stays_and_bounds_the_data() {
    let (mut half, mut buffers) = (RecvHalf::new(100), Buffers::new());
    half.on_data(Offset(0), b"123456", false, &mut buffers).unwrap();
    let short = half.on_data(Offset(0), b"12345", true, &mut buffers);
    assert_eq!(short, Err(StreamFault::FinalSize));
    assert_eq!(half.on_reset(Offset(5), &mut buffers), Err(StreamFault::FinalSize));
    half.on_data(Offset(6), b"78", true, &mut buffers).unwrap();
    let beyond = half.on_data(Offset(8), b"9", false, &mut buffers);
    assert_eq!(beyond, Err(StreamFault::FinalSize));
    let moved = half.on_data(Offset(7), b"", true, &mut buffers);
    assert_eq!(moved, Err(StreamFault::FinalSize));
    assert_eq!(half.on_reset(Offset(9), &mut buffers), Err(StreamFault::FinalSize));
}

#[test]
fn dropped_bytes_count_as_consumed_once() {
    let (mut half, mut buffers) = (RecvHalf::new(100), Buffers::new());
    half.on_data(Offset(0), &[1; 30], false, &mut buffers).unwrap();
    half.read(10, &mut buffers, &mut |_| {});
    half.on_data(Offset(40), &[1; 10], false, &mut buffers).unwrap();
    assert_eq!(half.stop(&mut buffers), 40);
    assert_eq!(half.stop(&mut buffers), 0);
    let more = half.on_data(Offset(30), &[1; 30], false, &mut buffers).unwrap();
    assert_eq!(more, Received { growth: 10, discarded: 10, ..Received::default() });
    let reset = half.on_reset(Offset(70), &mut buffers).unwrap();
    assert_eq!((reset.growth, reset.discarded), (10, 10));
}

#[test]
fn credit_is_due_after_half_a_window_until_the_size_is_known() {
    let (mut half, mut buffers) = (RecvHalf::new(100), Buffers::new());
    half.on_data(Offset(0), &[1; 60], false, &mut buffers).unwrap();
    assert!(!half.is_credit_due());
    half.read(50, &mut buffers, &mut |_| {});
    assert!(half.is_credit_due());
    assert_eq!(half.next_credit_end(), Offset(150));
    half.grant();
    assert_eq!(half.credit_end(), Offset(150));
    assert!(!half.is_credit_due());
    half.on_data(Offset(60), &[1; 60], true, &mut buffers).unwrap();
    read_all(&mut half, &mut buffers);
    assert!(!half.is_credit_due());
}

#[derive(Clone, Debug)]
enum Op {
    Data(u64, u64),
    Read(u64),
}

fn op(reach: u64) -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => (0..reach, 0u64..3000).prop_map(|(at, len)| Op::Data(at, len)),
        1 => (0u64..3000).prop_map(|at| Op::Data(at, 1)),
        2 => (0u64..9000).prop_map(Op::Read),
    ]
}

proptest! {
    #[test]
    fn behaves_like_one_large_buffer(ops in prop::collection::vec(op(30_000), 1..120)) {
        const WINDOW: u64 = 20_000;
        let (mut half, mut buffers) = (RecvHalf::new(WINDOW), Buffers::new());
        let mut there = vec![false; 60_000];
        let (mut read, mut highest) = (0u64, 0u64);
        for op in ops {
            match op {
                Op::Data(at, len) => {
                    let end = at + len;
                    let told = half.on_data(Offset(at), &pattern(at, len), false, &mut buffers);
                    if end > half.credit_end().0 {
                        prop_assert_eq!(told, Err(StreamFault::FlowControl));
                        continue;
                    }
                    let before = there.iter().take_while(|&&byte| byte).count();
                    there[at as usize..end as usize].fill(true);
                    let after = there.iter().take_while(|&&byte| byte).count();
                    let growth = end.saturating_sub(highest);
                    highest = highest.max(end);
                    prop_assert_eq!(
                        told,
                        Ok(Received { growth, readable: after > before, ..Received::default() })
                    );
                }
                Op::Read(max) => {
                    let mut bytes = Vec::new();
                    let told = half.read(max, &mut buffers, &mut |part| bytes.extend_from_slice(part));
                    let contiguous = there.iter().take_while(|&&byte| byte).count() as u64;
                    prop_assert_eq!(told, max.min(contiguous - read));
                    prop_assert_eq!(bytes, pattern(read, told));
                    read += told;
                    if half.is_credit_due() {
                        half.grant();
                        prop_assert_eq!(half.credit_end(), Offset(read + WINDOW));
                    }
                }
            }
            let contiguous = there.iter().take_while(|&&byte| byte).count() as u64;
            prop_assert_eq!(half.readable(), contiguous - read);
            prop_assert!(half.memory() as u64 <= 3 * WINDOW + 1_000);
        }
    }
}
