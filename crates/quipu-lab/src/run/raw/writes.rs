//! What is written to which stream, in which order. Both ends know it.

use quipu_base::{Bytes, Seed, shuffle};
use quipu_web::page::{Object, ObjectId, ObjectKind, Page};

use quipu_scenario::{Raw, WriteOrder};

/// One object, written at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Write {
    /// Number of the stream in the scenario, from 0.
    pub(super) stream: usize,
    pub(super) object: ObjectId,
    pub(super) len: Bytes,
}

/// The writes of `page` in a run whose chance comes from `run`.
pub(super) fn writes(raw: &Raw, page: &Page, run: Seed) -> Vec<Write> {
    let explicit = explicit_streams(raw);
    let write = |(index, object): (usize, &Object)| Write {
        stream: explicit.get(index).copied().unwrap_or_else(|| by_size(raw, object)),
        object: object.id,
        len: object.response_bytes,
    };
    let mut writes: Vec<Write> = page.objects().iter().enumerate().map(write).collect();
    if raw.order == WriteOrder::Random {
        shuffle(&mut writes, &mut run.stream("raw.order", 0));
    }
    writes
}

/// The stream of each object of `raw.objects`, in the order of the page made of them.
fn explicit_streams(raw: &Raw) -> Vec<usize> {
    let lists = raw.objects.iter().enumerate();
    lists.flat_map(|(stream, sizes)| sizes.0.iter().map(move |_| stream)).collect()
}

fn by_size(raw: &Raw, object: &Object) -> usize {
    match object.kind {
        ObjectKind::Document => 0,
        _ => raw.split.0.partition_point(|size| *size <= object.response_bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_scenario::{RawStream, Sizes};

    fn page() -> Page {
        let sizes = [(ObjectKind::Document, 50_000), (ObjectKind::Image, 11_999)];
        let more =
            [(ObjectKind::Image, 12_000), (ObjectKind::Script, 2_000), (ObjectKind::Other, 0)];
        let object = |(id, (kind, bytes)): (u32, (ObjectKind, u64))| {
            Object::new(ObjectId(id), format!("https://a.test/{id}"), kind, Bytes(bytes))
        };
        Page::new("p", (0..).zip(sizes.into_iter().chain(more)).map(object).collect()).unwrap()
    }

    fn streams(raw: &Raw) -> Vec<usize> {
        writes(raw, &page(), Seed::new(1)).iter().map(|write| write.stream).collect()
    }

    #[test]
    fn documents_and_what_is_small_go_to_the_first_stream() {
        assert_eq!(streams(&Raw::default()), [0, 0, 1, 0, 0]);
        let three = Raw {
            streams: vec![RawStream::default(); 3],
            split: Sizes(vec![Bytes(2_000), Bytes(12_000)]),
            ..Raw::default()
        };
        assert_eq!(streams(&three), [0, 1, 2, 1, 0]);
        let one = Raw { split: Sizes(Vec::new()), ..Raw::default() };
        assert_eq!(streams(&one), [0; 5]);
    }

    #[test]
    fn objects_told_one_by_one_go_where_they_are_told_to() {
        let lists = [vec![Bytes(1)], Vec::new(), vec![Bytes(2); 4]];
        let raw = Raw { objects: lists.map(Sizes).to_vec(), ..Raw::default() };
        assert_eq!(streams(&raw), [0, 2, 2, 2, 2]);
    }

    #[test]
    fn a_random_order_is_of_the_run_and_any_order_is_equally_likely() {
        let raw = Raw { order: WriteOrder::Random, ..Raw::default() };
        let order = |seed| -> Vec<u32> {
            writes(&raw, &page(), Seed::new(seed)).iter().map(|write| write.object.0).collect()
        };
        assert_eq!(order(3), order(3));
        let mut counts = [[0_u32; 5]; 5];
        for seed in 0..5_000 {
            let order = order(seed);
            (0..)
                .zip(order)
                .for_each(|(place, object)| counts[place as usize][object as usize] += 1);
        }
        // 1,000 each; five standard deviations are 141.
        assert!(counts.iter().flatten().all(|count| (859..=1_141).contains(count)), "{counts:?}");
    }
}
