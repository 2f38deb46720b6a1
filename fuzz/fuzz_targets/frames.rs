//! A packet's plaintext: whatever is a frame is written, and what was written is read
//! and written again as the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quipu_quic::wire::frame::write_ack;
use quipu_quic::wire::{Frame, Frames, Writer};

fuzz_target!(|payload: &[u8]| {
    for frame in Frames::new(payload) {
        let Ok(frame) = frame else { return };
        // Not the frame itself: a number may come in a longer form than we write.
        let written = write(&frame);
        let again = Frames::new(&written).next().expect("a frame").expect("a good frame");
        assert_eq!(write(&again), written);
        if let Frame::Ack(ack) = &frame {
            // Room for less than all ranges: those that fit are whole.
            let mut short = vec![0; written.len() / 2 + 1];
            let mut writer = Writer::new(&mut short);
            let _ = write_ack(&mut writer, ack.path, ack.delay, ack.ranges.iter(), ack.ecn);
        }
    }
});

fn write(frame: &Frame<'_>) -> Vec<u8> {
    let mut buffer = vec![0; frame.size()];
    let mut writer = Writer::new(&mut buffer);
    frame.write(&mut writer).expect("the size is that of the frame");
    assert_eq!(writer.remaining(), 0, "the size is that of the frame");
    buffer
}
