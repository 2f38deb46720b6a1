//! Loads that a browser made: their record, out of what it tells.

use std::collections::BTreeMap;
use std::sync::Arc;

use quipu_base::{Bytes, Instant};
use quipu_record::{End, RunRecord};
use quipu_scenario::Scenario;
use quipu_web::metrics::Timeline;
use quipu_web::page::ObjectId;

use crate::loading::Loading;
use crate::pages::RunPage;

/// A request and its response, as a browser tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// What was asked for.
    pub url: String,
    /// When.
    pub requested_at: Instant,
    /// When the head of the response was there.
    pub head_at: Instant,
    /// When which bytes of the body came, in order.
    pub arrivals: Vec<(Instant, Bytes)>,
    /// When all of it was there.
    pub completed_at: Instant,
}

/// The record of a load of the page, whose objects are known by their URLs, and among those of one URL by their order; what
/// the page does not have is left out. The page's times count from the first request.
///
/// # Errors
/// The URL of the first object that the page waits for and `observed` does not have.
pub fn record_of(
    loaded: RunPage,
    scenario: &Scenario,
    observed: &[Observed],
) -> Result<RunRecord, String> {
    let page = Arc::clone(&loaded.page);
    let mut loading = Loading::new(loaded, scenario);
    let mut waiting: BTreeMap<&str, Vec<ObjectId>> = BTreeMap::new();
    for object in page.objects().iter().rev() {
        waiting.entry(&object.url).or_default().push(object.id);
    }
    let mut found: Vec<(ObjectId, &Observed)> = Vec::new();
    for exchange in observed {
        let object = waiting.get_mut(exchange.url.as_str()).and_then(Vec::pop);
        found.extend(object.map(|object| (object, exchange)));
    }
    let missed = page.objects().iter().find(|object| {
        object.holds_load()
            && waiting.get(object.url.as_str()).is_some_and(|left| left.contains(&object.id))
    });
    if let Some(object) = missed {
        return Err(object.url.clone());
    }
    let mut timeline = Timeline::new(Arc::clone(&page));
    let mut events: Vec<(Instant, ObjectId, Event)> = Vec::new();
    for (object, exchange) in found {
        let Observed { requested_at, head_at, ref arrivals, completed_at, .. } = *exchange;
        let first = arrivals.first().map_or(completed_at, |&(at, _)| at);
        loading.mark_first_byte(object, first);
        let mut received = Bytes::ZERO;
        events.push((requested_at, object, Event::Request));
        events.push((head_at, object, Event::Head));
        for &(at, bytes) in arrivals {
            received = Bytes(received.0.saturating_add(bytes.0));
            events.push((at, object, Event::Body(received)));
        }
        events.push((completed_at, object, Event::End));
    }
    // What is at the same instant stays in the order above.
    events.sort_by_key(|&(at, ..)| at);
    let end = events.last().map_or(Instant::ZERO, |&(at, ..)| at);
    for (at, object, event) in events {
        match event {
            Event::Request => timeline.on_request(object, at),
            Event::Head => timeline.on_response_head(object, at),
            Event::Body(received) => timeline.on_body_bytes(object, received, at),
            Event::End => timeline.on_complete(object, at),
        }
    }
    // A page has a document, for which it waits.
    loading.record_of(&timeline, end, End::Server).ok_or_else(String::new)
}

/// What happened to an object.
enum Event {
    Request,
    Head,
    /// So many bytes of its body were there.
    Body(Bytes),
    End,
}

#[cfg(test)]
mod tests {
    use quipu_base::Duration;
    use quipu_web::page::{Blocking, Discovery, Object, ObjectKind, Page};

    use super::*;

    const DOCUMENT: &str = "https://a.test/";
    const SHEET: &str = "https://a.test/s.css";
    const IMAGE: &str = "https://a.test/i";

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// A document of 1,000 bytes, a style sheet that blocks rendering, and the same image twice.
    fn page() -> RunPage {
        let object = |id, url: &str, kind, bytes| {
            let object = Object::new(ObjectId(id), url.to_owned(), kind, Bytes(bytes));
            let discovery = Discovery::ParserOffset { parent: ObjectId(0), offset: Bytes(9) };
            if id == 0 { object } else { object.discovered(discovery) }
        };
        let mut objects = vec![
            object(0, DOCUMENT, ObjectKind::Document, 1_000),
            object(1, SHEET, ObjectKind::Stylesheet, 1_000),
            object(2, IMAGE, ObjectKind::Image, 1_000),
            object(3, IMAGE, ObjectKind::Image, 1_000),
        ];
        objects[1].blocking = Blocking::Render;
        RunPage { page: Arc::new(Page::new("page", objects).expect("a page")) }
    }

    fn exchange(url: &str, requested: u64, completed: u64) -> Observed {
        let half = (requested + completed) / 2;
        Observed {
            url: url.to_owned(),
            requested_at: at(requested),
            head_at: at(half),
            arrivals: vec![(at(half), Bytes(500)), (at(completed), Bytes(500))],
            completed_at: at(completed),
        }
    }

    #[test]
    fn what_a_browser_tells_has_the_metrics_of_a_load() {
        let observed = [
            exchange(DOCUMENT, 10, 50),
            exchange(IMAGE, 30, 90),
            exchange("https://a.test/favicon.ico", 40, 500),
            exchange(SHEET, 30, 70),
            exchange(IMAGE, 60, 210),
        ];
        let record = record_of(page(), &Scenario::default(), &observed).expect("a record");
        let millis = Duration::from_millis;
        assert_eq!((record.page_time, record.critical_time), (millis(200), millis(60)));
        assert_eq!(record.object_index, millis((40 + 80 + 60 + 200) / 4));
        let times: Vec<(Instant, Instant, Instant)> = record
            .objects
            .iter()
            .map(|object| (object.requested_at, object.first_byte_at, object.completed_at))
            .collect();
        let expected = [(10, 30, 50), (30, 50, 70), (30, 60, 90), (60, 135, 210)];
        assert_eq!(times, expected.map(|(one, two, three)| (at(one), at(two), at(three))));
        // Halves of four equal objects: at 20 and 40, 40 and 60, 50 and 80, 125 and 200 ms.
        let sum = 20 + 40 + 40 + 60 + 50 + 80 + 125 + 200;
        assert_eq!(record.byte_index, Duration::from_micros(sum * 1_000 / 8));
    }

    #[test]
    fn an_object_that_the_page_waits_for_and_the_browser_did_not_ask_for_is_told() {
        let observed = [exchange(DOCUMENT, 0, 10), exchange(IMAGE, 5, 20), exchange(SHEET, 5, 30)];
        let refused = record_of(page(), &Scenario::default(), &observed);
        assert_eq!(refused.expect_err("the second image is missing"), IMAGE);
        let refused = record_of(page(), &Scenario::default(), &[]);
        assert_eq!(refused.expect_err("nothing is there"), DOCUMENT);
    }
}
