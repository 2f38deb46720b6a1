//! Both ends over three kinds of streams that deliver independently.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proptest::prelude::*;

use super::*;
use crate::field::example::browser_request;

/// What happens next.
#[derive(Clone, Debug)]
enum Operation {
    /// The settings reach the encoder.
    Settings,
    /// A section is encoded on the stream of this number.
    Encode(u64, Vec<(Vec<u8>, Vec<u8>, bool)>),
    /// So many octets of the encoder stream arrive.
    EncoderStream(usize),
    /// So many octets of the decoder stream arrive.
    DecoderStream(usize),
    /// The next section of a stream arrives.
    Section(u64),
    /// The decoding end gives a stream up.
    Cancel(u64),
}

/// Both ends and all that is on its way between them.
struct Exchange {
    encoder: Encoder,
    decoder: Decoder,
    settings: (u32, u16),
    encoder_stream: VecDeque<u8>,
    decoder_stream: VecDeque<u8>,
    /// By stream: sections that were not decoded, with their fields.
    sections: BTreeMap<u64, VecDeque<(Vec<u8>, FieldList)>>,
    blocked: BTreeSet<u64>,
    cancelled: BTreeSet<u64>,
}

impl Exchange {
    fn new(largest_table: u32, capacity: u32, blocked: u16) -> Self {
        Exchange {
            encoder: Encoder::new(largest_table),
            decoder: Decoder::new(capacity, blocked, NO_LIMIT),
            settings: (capacity, blocked),
            encoder_stream: VecDeque::new(),
            decoder_stream: VecDeque::new(),
            sections: BTreeMap::new(),
            blocked: BTreeSet::new(),
            cancelled: BTreeSet::new(),
        }
    }

    fn run(&mut self, operation: Operation) {
        match operation {
            Operation::Settings => {
                let (capacity, blocked) = self.settings;
                self.encoder.on_peer_settings(capacity.into(), blocked.into());
            }
            Operation::Encode(stream, fields) => {
                let mut list = FieldList::new();
                for (name, value, sensitive) in &fields {
                    list.push_field(crate::field::Field { name, value, sensitive: *sensitive });
                }
                let section = encoded(&mut self.encoder, stream, &list);
                // The encoding end may not know yet that nobody reads the stream.
                if !self.cancelled.contains(&stream) {
                    self.sections.entry(stream).or_default().push_back((section, list));
                }
            }
            Operation::EncoderStream(count) => {
                let count = count.min(self.encoder_stream.len());
                let octets: Vec<u8> = self.encoder_stream.drain(..count).collect();
                self.decoder.on_encoder_stream(&octets).unwrap();
                while let Some(StreamId(stream)) = self.decoder.poll_unblocked() {
                    assert!(self.blocked.remove(&stream));
                    self.decode(stream);
                    assert!(!self.blocked.contains(&stream));
                }
            }
            Operation::DecoderStream(count) => {
                let count = count.min(self.decoder_stream.len());
                let octets: Vec<u8> = self.decoder_stream.drain(..count).collect();
                self.encoder.on_decoder_stream(&octets).unwrap();
            }
            Operation::Section(stream) => {
                if !self.blocked.contains(&stream) {
                    self.decode(stream);
                }
            }
            Operation::Cancel(stream) => {
                if self.cancelled.insert(stream) {
                    self.decoder.cancel(StreamId(stream));
                    self.blocked.remove(&stream);
                    self.sections.remove(&stream);
                }
            }
        }
        assert!(self.encoder.has_what_it_must_for_test());
        self.encoder_stream.extend(self.encoder.take_instructions().into_iter().flatten());
        self.decoder_stream.extend(self.decoder.take_instructions().into_iter().flatten());
    }

    /// Decodes the next section of a stream, unless it is blocked.
    fn decode(&mut self, stream: u64) {
        let Some(sections) = self.sections.get_mut(&stream) else { return };
        let Some((section, expected)) = sections.front() else { return };
        let mut fields = FieldList::new();
        match self.decoder.decode(StreamId(stream), section, &mut fields).unwrap() {
            Outcome::Complete => {
                let values = |list: &FieldList| -> Vec<(Vec<u8>, Vec<u8>)> {
                    list.iter().map(|field| (field.name.into(), field.value.into())).collect()
                };
                assert_eq!(values(&fields), values(expected));
                // The encoder marks more fields as sensitive.
                assert!(
                    fields.iter().zip(expected.iter()).all(|(a, b)| a.sensitive || !b.sensitive)
                );
                sections.pop_front();
            }
            Outcome::Blocked => {
                assert!(fields.is_empty());
                self.blocked.insert(stream);
            }
            Outcome::TooLarge => panic!("there is no limit"),
        }
    }

    /// Delivers all, after which neither end waits for anything.
    fn finish(&mut self) {
        self.run(Operation::EncoderStream(usize::MAX));
        for stream in 0..STREAMS {
            for _ in 0..=self.sections.get(&stream).map_or(0, VecDeque::len) {
                self.run(Operation::Section(stream));
            }
        }
        self.run(Operation::DecoderStream(usize::MAX));
        assert!(self.sections.values().all(VecDeque::is_empty));
        assert_eq!(self.encoder.outstanding_for_test(), 0);
        assert_eq!(self.encoder.inserted(), self.decoder.inserted());
    }
}

const STREAMS: u64 = 6;

/// Names and values from a small set, so that tables are hit, and some random ones.
fn fields() -> impl Strategy<Value = Vec<(Vec<u8>, Vec<u8>, bool)>> {
    let name = prop_oneof![
        Just(b":path".to_vec()),
        Just(b"user-agent".to_vec()),
        Just(b"cookie".to_vec()),
        Just(b"x".to_vec()),
        Just(b"y".to_vec()),
        proptest::collection::vec(any::<u8>(), 0..20),
    ];
    let value = prop_oneof![
        Just(b"/".to_vec()),
        Just(b"1".to_vec()),
        Just(b"2".to_vec()),
        Just(vec![b'3'; 40]),
        proptest::collection::vec(any::<u8>(), 0..100),
    ];
    let field = (name, value, prop::bool::weighted(0.1));
    proptest::collection::vec(field, 0..8)
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        1 => Just(Operation::Settings),
        8 => (0..STREAMS, fields()).prop_map(|(stream, fields)| Operation::Encode(stream, fields)),
        6 => (1_usize..60).prop_map(Operation::EncoderStream),
        4 => (1_usize..8).prop_map(Operation::DecoderStream),
        8 => (0..STREAMS).prop_map(Operation::Section),
        1 => (0..STREAMS).prop_map(Operation::Cancel),
    ]
}

fn table_size() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0), 30_u32..70, 70_u32..300, Just(4096)]
}

proptest! {
    #[test]
    fn whatever_arrives_first_is_decoded_as_it_was_encoded(
        largest_table in table_size(),
        capacity in table_size(),
        blocked in 0_u16..4,
        operations in proptest::collection::vec(operation(), 1..120),
    ) {
        let mut exchange = Exchange::new(largest_table, capacity, blocked);
        for operation in operations {
            exchange.run(operation);
        }
        exchange.finish();
    }
}

/// Requests of a page: all at once, then one after the other.
#[test]
fn a_browsers_requests_shrink() {
    for (capacity, blocked, all_at_once) in
        [(4096, 100, true), (4096, 100, false), (4096, 0, false), (1024, 16, false), (0, 0, true)]
    {
        let (mut encoder, mut decoder) = pair(capacity, blocked);
        let (mut sections, mut instructions, mut raw) = (0, 0, 0);
        let mut waiting = Vec::new();
        for index in 0..110 {
            let fields = browser_request(index);
            raw += fields.iter().map(|field| field.name.len() + field.value.len()).sum::<usize>();
            let section = encoded(&mut encoder, 4 * index as u64, &fields);
            sections += section.len();
            if let Some(octets) = encoder.take_instructions() {
                instructions += octets.len();
                decoder.on_encoder_stream(&octets).unwrap();
            }
            waiting.push((index, section, fields));
            if !all_at_once || index == 109 {
                for (index, section, fields) in waiting.drain(..) {
                    let out = decoded(&mut decoder, 4 * index as u64, &section);
                    assert_eq!(out, Ok(fields));
                }
                pass_acknowledgments(&mut decoder, &mut encoder);
            }
        }
        let sent = sections + instructions;
        let share = if capacity == 4096 { 4 } else { 1 };
        assert!(sent * share < raw, "{sections} + {instructions} octets of {raw}");
        assert_eq!(encoder.references() > 500, capacity > 0);
    }
}
