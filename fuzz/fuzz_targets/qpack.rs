//! Field sections and the streams of QPACK in any order: what decodes comes out of an encoder and a
//! decoder unchanged, whatever the peer acknowledges.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quipu_base::StreamId;
use quipu_http::field::FieldList;
use quipu_http::qpack::{Decoder, Encoder, Outcome};

const LARGEST_LIST: u64 = 16 << 10;
const TABLE: u32 = 512;

fuzz_target!(|inputs: Vec<(u8, Vec<u8>)>| {
    let mut decoder = Decoder::new(TABLE, 4, LARGEST_LIST);
    // This encoder follows what the fuzzer sends as the peer's decoder stream, the second decoder
    // what the encoder sends.
    let (mut encoder, mut second) = (Encoder::new(TABLE), Decoder::new(TABLE, 4, LARGEST_LIST));
    encoder.on_peer_settings(TABLE.into(), 4);
    let (mut fields, mut again) = (FieldList::new(), FieldList::new());
    for (number, (kind, octets)) in (0..).zip(&inputs) {
        // Streams return, so that some have several sections.
        let stream = StreamId(4 * (number % 8));
        match kind % 4 {
            0 if decoder.on_encoder_stream(octets).is_err() => return,
            1 if encoder.on_decoder_stream(octets).is_err() => return,
            2 => decoder.cancel(stream),
            3 => {
                let Ok(outcome) = decoder.decode(stream, octets, &mut fields) else { return };
                assert!(fields.size() <= LARGEST_LIST);
                if outcome != Outcome::Complete {
                    continue;
                }
                let mut section = Vec::new();
                encoder.encode(stream, &fields, &mut section);
                if let Some(instructions) = encoder.take_instructions() {
                    second.on_encoder_stream(&instructions).expect("our own instructions are good");
                }
                let outcome = second.decode(stream, &section, &mut again).expect("our own section");
                assert_eq!(outcome, Outcome::Complete);
                // The encoder marks more fields as sensitive than the peer did.
                let pairs = |list: &FieldList| -> Vec<_> {
                    list.iter().map(|field| (field.name.to_vec(), field.value.to_vec())).collect()
                };
                assert_eq!(pairs(&again), pairs(&fields));
            }
            _ => {}
        }
        while decoder.poll_unblocked().is_some() {}
    }
});
