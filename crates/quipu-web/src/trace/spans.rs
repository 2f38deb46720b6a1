//! Nested spans of one thread, made flat.

use std::sync::Arc;

use quipu_base::Duration;

use super::{Work, WorkKind};

/// Something that a thread did, with all that it did meanwhile on behalf of it.
#[derive(Clone, Debug)]
pub(super) struct Span {
    pub(super) start: Duration,
    pub(super) end: Duration,
    pub(super) kind: WorkKind,
    pub(super) url: Option<Arc<str>>,
}

/// The innermost span at each time: disjoint intervals in order, each as long as can be. A span that ends after the
/// one that it began in is cut there.
pub(super) fn flatten(mut spans: Vec<Span>) -> Vec<Work> {
    // Of spans that begin at one time the longest is outermost; else the first.
    spans.sort_by(|a, b| a.start.cmp(&b.start).then(b.end.cmp(&a.end)));
    let mut flat = Flat { work: Vec::new(), until: Duration::ZERO };
    let mut open: Vec<Span> = Vec::new();
    for mut span in spans {
        while let Some(inner) = open.pop_if(|inner| inner.end <= span.start) {
            flat.add(&inner, inner.end);
        }
        if let Some(outer) = open.last() {
            flat.add(outer, span.start);
            span.end = span.end.min(outer.end);
        }
        flat.until = flat.until.max(span.start);
        open.push(span);
    }
    while let Some(inner) = open.pop() {
        flat.add(&inner, inner.end);
    }
    flat.work
}

struct Flat {
    work: Vec<Work>,
    /// Where the next interval begins.
    until: Duration,
}

impl Flat {
    /// `span` was the innermost until `end`.
    fn add(&mut self, span: &Span, end: Duration) {
        let start = self.until;
        if end <= start {
            return;
        }
        self.until = end;
        if let Some(last) = self.work.last_mut()
            && last.end == start
            && last.kind == span.kind
            && last.url == span.url
        {
            last.end = end;
            return;
        }
        self.work.push(Work { start, end, kind: span.kind, url: span.url.clone() });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn span(start: u64, end: u64, url: &str) -> Span {
        let url = (!url.is_empty()).then(|| url.into());
        let kind = if url.is_none() { WorkKind::Other } else { WorkKind::Script };
        Span { start: Duration::from_micros(start), end: Duration::from_micros(end), kind, url }
    }

    fn flat(spans: Vec<Span>) -> Vec<(u128, u128, String)> {
        let name = |work: &Work| work.url.as_deref().unwrap_or("").to_owned();
        let micros = |time: Duration| u128::from(time.as_micros());
        flatten(spans)
            .iter()
            .map(|work| (micros(work.start), micros(work.end), name(work)))
            .collect()
    }

    #[test]
    fn inner_spans_take_their_time_from_outer_ones() {
        let spans = vec![span(0, 10, ""), span(2, 8, "a"), span(3, 5, "b"), span(5, 6, "b")];
        let expected = [(0, 2, ""), (2, 3, "a"), (3, 6, "b"), (6, 8, "a"), (8, 10, "")];
        assert_eq!(flat(spans), expected.map(|(from, to, url)| (from, to, url.to_owned())));
    }

    #[test]
    fn a_span_ends_with_the_one_that_it_is_in() {
        let spans = vec![span(0, 4, "a"), span(3, 9, "b"), span(6, 7, "")];
        let expected = [(0, 3, "a"), (3, 4, "b"), (6, 7, "")];
        assert_eq!(flat(spans), expected.map(|(from, to, url)| (from, to, url.to_owned())));
    }

    #[test]
    fn spans_of_one_length_and_none_are_no_trouble() {
        assert_eq!(flat(vec![span(5, 5, "a"), span(7, 3, "b")]), []);
        assert_eq!(flat(vec![span(1, 3, ""), span(1, 3, "a")]), [(1, 3, "a".to_owned())]);
    }

    proptest! {
        #[test]
        fn intervals_are_disjoint_and_cover_what_outer_spans_do(
            spans in prop::collection::vec((0..60_u64, 0..20_u64), 0..30),
        ) {
            let spans: Vec<Span> =
                spans.iter().map(|&(start, length)| span(start, start + length, "a")).collect();
            let work = flatten(spans.clone());
            prop_assert!(work.iter().all(|work| work.start < work.end));
            prop_assert!(work.windows(2).all(|pair| pair[0].end <= pair[1].start));
            for moment in 0..80 {
                let at = Duration::from_nanos(moment * 1_000 + 500);
                let busy = work.iter().any(|work| work.start <= at && at < work.end);
                let spanned = spans.iter().any(|span| span.start <= at && at < span.end);
                prop_assert!(!busy || spanned);
            }
        }
    }
}
