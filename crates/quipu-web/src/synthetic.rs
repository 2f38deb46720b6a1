//! Made-up pages with the statistics of real ones, and sessions of them.
//!
//! The model is that of Pries, Magyari and Tran-Gia, "An HTTP Web Traffic Model Based on the Top
//! One Million Visited Web Pages" (NGI 2012), with the fitted distributions that the ns-3 QUIC
//! paper (Paro et al., 2020) lists in its Table 1. The fits miss some of the measured means;
//! [`Sample`] puts what is really drawn beside what the table says.

mod exchanges;
mod laws;
mod rules;
mod sample;

use quipu_base::{Bytes, Duration, Seed};

use crate::page::{Discovery, Object, ObjectId, ObjectKind, Page, PageError};

pub use exchanges::exchanges;
pub use rules::by_rules;
pub use sample::{Measured, Moments, Quantity, Sample};

/// A page of a session, and how long it is read.
#[derive(Clone, Debug, PartialEq)]
pub struct Visit {
    /// The page.
    pub page: Page,
    /// From the end of its load to the request of the next page.
    pub reading: Duration,
}

/// The `index`-th random page of `seed`: documents first, then images as embedded objects, which
/// the first document's parser finds, spread evenly. Values are drawn, rounded down and limited to
/// between 1 (embedded objects: 0) and the largest of the paper's table.
///
/// The same seed and index give the same page on every machine.
///
/// # Errors
/// None: every drawn page is sound.
pub fn pries(seed: Seed, index: u64) -> Result<Page, PageError> {
    let mut random = seed.stream("synthetic.pries", index);
    let mains = laws::mains(&mut random);
    let embedded = laws::embedded(&mut random);
    let mut objects: Vec<Object> = Vec::new();
    let count = mains + embedded;
    let first_bytes = laws::main_size(&mut random);
    for position in 0..count {
        let is_main = position < mains;
        let bytes = match position {
            0 => first_bytes,
            _ if is_main => laws::main_size(&mut random),
            _ => laws::embedded_size(&mut random),
        };
        let (kind, name) = match is_main {
            true => (ObjectKind::Document, "main"),
            false => (ObjectKind::Image, "embedded"),
        };
        // Few enough for 32 bits: the numbers are limited above.
        let id = ObjectId(u32::try_from(position).unwrap_or(u32::MAX));
        let url = format!("https://pries-{index}.test/{name}-{position}");
        let discovery = match position {
            0 => Discovery::Root,
            _ => Discovery::ParserOffset {
                parent: ObjectId(0),
                offset: Bytes(first_bytes.0 * position / count),
            },
        };
        objects.push(Object::new(id, url, kind, bytes).discovered(discovery));
    }
    Page::new(format!("pries-{index}"), objects)
}

/// The time for which the reader of visit `visit` of session `index` stays on the page: at most
/// 10,000 s.
pub fn reading_time(seed: Seed, index: u64, visit: u32) -> Duration {
    laws::reading_time(&mut of_visit(seed, visit).stream("synthetic.reading", index))
}

/// The page of visit `visit` of session `index`, the first being the `index`-th page of the seed,
/// and how long it is read. Later visits of a longer session change nothing in earlier ones.
///
/// # Errors
/// None: every drawn page is sound.
pub fn visit(seed: Seed, index: u64, visit: u32) -> Result<Visit, PageError> {
    let page = pries(of_visit(seed, visit), index)?;
    Ok(Visit { page, reading: reading_time(seed, index, visit) })
}

/// The `index`-th browsing session of `seed`: `pages` pages with reading times between.
///
/// # Errors
/// None: every drawn page is sound.
pub fn session(seed: Seed, index: u64, pages: u32) -> Result<Vec<Visit>, PageError> {
    (0..pages).map(|number| visit(seed, index, number)).collect()
}

fn of_visit(seed: Seed, visit: u32) -> Seed {
    match visit {
        0 => seed,
        _ => seed.child("synthetic.visit", u64::from(visit)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_repeat_and_differ_by_index() {
        let page = |index| pries(Seed::new(1), index).unwrap();
        assert_eq!(page(3), page(3));
        assert_ne!(page(3).body_bytes(), page(4).body_bytes());
    }

    #[test]
    fn a_session_begins_with_the_page_of_its_index_and_goes_on_with_others() {
        let visits = session(Seed::new(1), 3, 4).unwrap();
        assert_eq!(visits.len(), 4);
        assert_eq!(visits[0].page, pries(Seed::new(1), 3).unwrap());
        assert_eq!(visits[..2], session(Seed::new(1), 3, 2).unwrap());
        let mut bytes: Vec<Bytes> = visits.iter().map(|visit| visit.page.body_bytes()).collect();
        bytes.sort_unstable();
        bytes.dedup();
        assert_eq!(bytes.len(), 4, "four different pages");
        assert_ne!(visits[0].reading, visits[1].reading);
        assert_ne!(visits[0].reading, reading_time(Seed::new(1), 4, 0));
    }
}
