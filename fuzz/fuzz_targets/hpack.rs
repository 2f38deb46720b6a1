//! Header blocks of one connection: what decodes comes out of an encoder and a decoder unchanged.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quipu_http::field::FieldList;
use quipu_http::hpack::{Decoder, Encoder, Outcome};

const LARGEST_LIST: u64 = 16 << 10;

fuzz_target!(|blocks: Vec<Vec<u8>>| {
    let mut decoder = Decoder::new(LARGEST_LIST);
    let (mut encoder, mut second) = (Encoder::new(4_096), Decoder::new(LARGEST_LIST));
    let (mut fields, mut again) = (FieldList::new(), FieldList::new());
    for block in &blocks {
        let Ok(outcome) = decoder.decode(block, &mut fields) else { return };
        assert!(fields.size() <= LARGEST_LIST);
        if outcome == Outcome::TooLarge {
            continue;
        }
        let mut encoded = Vec::new();
        encoder.encode(&fields, &mut encoded);
        let outcome = second.decode(&encoded, &mut again).expect("our own block is good");
        assert_eq!(outcome, Outcome::Complete);
        // The encoder marks more fields as sensitive than the peer did.
        let pairs = |list: &FieldList| -> Vec<_> {
            list.iter().map(|field| (field.name.to_vec(), field.value.to_vec())).collect()
        };
        assert_eq!(pairs(&again), pairs(&fields));
    }
});
