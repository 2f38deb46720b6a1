//! The control stream: the frames do not depend on how the bytes are cut into pieces, and what waits is
//! bounded.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quipu_http::h2::frame::FrameDecoder;

const LARGEST_BLOCK: usize = 16 << 10;

fuzz_target!(|pieces: Vec<Vec<u8>>| {
    let mut whole = FrameDecoder::new(LARGEST_BLOCK).with_promises();
    whole.push(&pieces.concat());
    let expected: Vec<_> = std::iter::from_fn(|| whole.next_frame().ok().flatten()).collect();

    let mut decoder = FrameDecoder::new(LARGEST_BLOCK).with_promises();
    let mut found = Vec::new();
    'pieces: for piece in &pieces {
        decoder.push(piece);
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => found.push(frame),
                Ok(None) => break,
                Err(_) => break 'pieces,
            }
        }
        assert!(decoder.buffered() <= 2 * LARGEST_BLOCK + 1_024, "{}", decoder.buffered());
    }
    assert_eq!(found, expected);
});
