//! The load of a page: what is asked for when, until all is there.

use std::collections::BTreeMap;

use quipu_base::{Bytes, Duration, Instant, StreamId};
use quipu_lab::loading::Loading;
use quipu_lab::path_record;
use quipu_policy::Urgency;
use quipu_record::{End, RunRecord};
use quipu_tokio::PathInfo;
use quipu_web::page::ObjectId;
use quipu_web::scheme::{BrowserScheme, SchemeState};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::client::Client;
use crate::clock::Clock;
use crate::error::{ExchangeError, LoadError};
use crate::exchange::{Ask, News, Teller, What, send_all};
use crate::head;
use crate::tree::{Http2Tree, Nodes};

/// News that wait to be heard; our choice. Then responses are read no further.
const NEWS: usize = 1_024;

/// The first status that says that there is no such object.
const FAILED_STATUS: u16 = 400;

/// A page that was loaded.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Loaded {
    /// What was measured, in the time of the load's clock; its paths are the client's ends of `paths`, by position
    /// there. The time to connect is left to whoever connected.
    pub record: RunRecord,
    /// What the server answered unlike the recording, by object.
    pub differences: Vec<Difference>,
    /// The paths when the page was there; none over TCP or another library.
    pub paths: Vec<PathInfo>,
}

/// An object that is another one than the page says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// The object.
    pub object: ObjectId,
    /// Status of the response.
    pub status: u16,
    /// Bytes of its body.
    pub received: Bytes,
    /// Bytes of the body on the page.
    pub recorded: Bytes,
}

/// Loads the page of `loading` over `client`, whose server is asked for the objects of all hosts, with the
/// priorities of `browser`. The page is asked for at once, unless `loading` has begun. Responses are taken as
/// they are, whatever status and size the page says.
///
/// Cancelling abandons what is under way.
///
/// # Errors
/// If a response fails, or the page is not there within `limit` of the call.
pub async fn load(
    client: impl Into<Client>,
    loading: Loading,
    browser: &BrowserScheme,
    clock: Clock,
    limit: Duration,
) -> Result<Loaded, LoadError> {
    let client = client.into();
    let (asks, asked) = mpsc::unbounded_channel();
    let (told, mut news) = mpsc::channel(NEWS);
    let mut visit = Visit {
        loading,
        scheme: browser.session(),
        awaits_layout: browser.reprioritises(),
        open: BTreeMap::new(),
        differences: Vec::new(),
        asks,
        nodes: client.tree().map_or_else(Nodes::default, Http2Tree::nodes),
        tree: client.tree().cloned(),
    };
    if !visit.loading.has_begun() {
        visit.loading.begin(clock.now());
    }
    // Dropping it abandons the requests.
    let mut requests = JoinSet::new();
    requests.spawn(send_all(client.clone(), asked, Teller::new(clock, told)));
    let end = clock.now() + limit;
    loop {
        visit.ask(clock.now())?;
        if visit.loading.is_finished() {
            break;
        }
        let next = visit.loading.poll_timeout().map_or(end, |at| at.min(end));
        tokio::select! {
            Some(news) = news.recv() => visit.hear(news)?,
            () = clock.sleep_until(Some(next)) => {}
        }
        let now = clock.now();
        if now >= end {
            return Err(visit.unfinished(limit));
        }
        visit.loading.handle_timeout(now);
    }
    let paths = client.paths();
    let record = visit.loading.record(clock.now(), End::Server);
    let record = record.ok_or_else(|| visit.unfinished(limit))?;
    let counted = (0_u32..)
        .zip(&paths)
        .map(|(position, path)| path_record(End::Client, 0, position, &path.sample.counters));
    let record = RunRecord { paths: counted.collect(), ..record };
    visit.differences.sort_by_key(|difference| difference.object);
    Ok(Loaded { record, differences: visit.differences, paths })
}

/// The load under way.
struct Visit {
    loading: Loading,
    scheme: SchemeState,
    /// Whether layout is still to change priorities.
    awaits_layout: bool,
    /// Requests that are not answered in full.
    open: BTreeMap<ObjectId, Open>,
    differences: Vec<Difference>,
    asks: mpsc::UnboundedSender<Ask>,
    /// What requests are called in the browser's scheme.
    nodes: Nodes,
    /// The tree that the server knows, if it does.
    tree: Option<Http2Tree>,
}

/// A request that is not answered in full.
struct Open {
    /// What the browser's scheme calls it.
    node: StreamId,
    status: u16,
    received: Bytes,
    urgency: watch::Sender<Option<Urgency>>,
}

impl Visit {
    /// Asks for what the page wants by now.
    fn ask(&mut self, now: Instant) -> Result<(), LoadError> {
        if self.awaits_layout && self.loading.is_laid_out() {
            self.awaits_layout = false;
            self.reprioritise()?;
        }
        while let Some(id) = self.loading.poll_request(now) {
            let known = self.loading.object(id).zip(self.loading.facts(id));
            let Some((object, facts)) = known else { continue };
            // Requests are sent in this order.
            let node = self.nodes.next();
            let signal = self.scheme.priority_for(&facts, node);
            let head = head::of(object, signal, self.tree.is_some())
                .map_err(|reason| LoadError::Url { url: object.url.clone(), reason })?;
            let (sender, urgency) = watch::channel(None);
            let body = object.request.body.0;
            let first_urgency = head::urgency(signal);
            // They are taken for as long as this lives.
            let _ = self.asks.send(Ask { object: id, head, body, first_urgency, urgency });
            let open = Open { node, status: 0, received: Bytes::ZERO, urgency: sender };
            self.open.insert(id, open);
        }
        Ok(())
    }

    /// Layout has shown what is in view: images under way get another priority.
    fn reprioritise(&mut self) -> Result<(), LoadError> {
        for (&object, open) in &self.open {
            if !self.loading.is_visible(object) {
                continue;
            }
            let facts = self.loading.facts(object);
            let change = facts.and_then(|facts| self.scheme.reprioritise(&facts, open.node));
            let Some(change) = change else { continue };
            match (&self.tree, change.urgency) {
                (Some(tree), _) => {
                    let mut places = change.places.into_iter();
                    let told = places.try_for_each(|(node, place)| tree.place(node, place));
                    told.map_err(|error| self.failed(object, error.into()))?;
                }
                (None, Some((level, incremental))) => {
                    open.urgency.send_replace(Some(Urgency { level, incremental }));
                }
                (None, None) => {}
            }
        }
        Ok(())
    }

    fn hear(&mut self, News { object, at, what }: News) -> Result<(), LoadError> {
        match what {
            What::Head(status) => {
                if let Some(open) = self.open.get_mut(&object) {
                    open.status = status;
                }
                self.loading.on_head(object, at);
            }
            What::Body(received) => {
                if let Some(open) = self.open.get_mut(&object) {
                    open.received = Bytes(received);
                }
                self.loading.on_body_bytes(object, Bytes(received), at);
            }
            What::End => {
                let recorded = self.loading.object(object).map(|object| object.response_bytes);
                let recorded = recorded.unwrap_or_default();
                if let Some(Open { node, status, received, .. }) = self.open.remove(&object) {
                    self.scheme.on_closed(node);
                    if status >= FAILED_STATUS || received != recorded {
                        self.differences.push(Difference { object, status, received, recorded });
                    }
                }
                self.loading.on_end(object, at);
            }
            What::Failed(source) => return Err(self.failed(object, source)),
        }
        Ok(())
    }

    fn failed(&self, object: ObjectId, source: ExchangeError) -> LoadError {
        let url = self.loading.object(object).map(|object| object.url.clone());
        LoadError::Exchange { url: url.unwrap_or_default(), source }
    }

    fn unfinished(&self, after: Duration) -> LoadError {
        let (open, objects) = (self.loading.open(), self.loading.objects().len());
        LoadError::Unfinished { after, open, objects }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use quipu_lab::pages::RunPage;
    use quipu_scenario::Scenario;
    use quipu_web::page::{Blocking, Discovery, Object, ObjectKind, Page};

    use super::*;

    #[test]
    fn layout_changes_the_urgency_of_images_in_view_that_are_under_way() {
        let object = |id, kind| {
            let url = format!("https://a.example/{id}");
            Object::new(ObjectId(id), url, kind, Bytes(100_000))
        };
        let child = |id, kind| {
            let discovery = Discovery::ParserOffset { parent: ObjectId(0), offset: Bytes(9) };
            object(id, kind).discovered(discovery)
        };
        let mut objects = vec![object(0, ObjectKind::Document), child(1, ObjectKind::Stylesheet)];
        objects[1].blocking = Blocking::Render;
        objects.extend((2..10).map(|id| child(id, ObjectKind::Image)));
        let page = Arc::new(Page::new("page", objects).expect("a page"));
        let scenario = Scenario { visible_images: 7, ..Scenario::default() };
        let browser = BrowserScheme::builtin("chrome").expect("there is one");
        let (asks, mut asked) = mpsc::unbounded_channel();
        let mut visit = Visit {
            loading: Loading::new(RunPage { page }, &scenario),
            scheme: browser.session(),
            awaits_layout: true,
            open: BTreeMap::new(),
            differences: Vec::new(),
            asks,
            nodes: Nodes::default(),
            tree: None,
        };
        let hear = |visit: &mut Visit, object, what| {
            visit
                .hear(News { object: ObjectId(object), at: Instant::ZERO, what })
                .expect("no failure");
            visit.ask(Instant::ZERO).expect("URLs");
        };
        visit.loading.begin(Instant::ZERO);
        visit.ask(Instant::ZERO).expect("URLs");
        hear(&mut visit, 0, What::Head(200));
        hear(&mut visit, 0, What::Body(50_000));
        let urgencies = |visit: &Visit| -> BTreeMap<u32, Option<Urgency>> {
            visit.open.iter().map(|(id, open)| (id.0, *open.urgency.borrow())).collect()
        };
        assert!(urgencies(&visit).values().all(Option::is_none));
        hear(&mut visit, 1, What::End);
        // The last one is out of view.
        let changed: Vec<u32> =
            urgencies(&visit).iter().filter_map(|(id, told)| told.map(|_| *id)).collect();
        assert_eq!(changed, [2, 3, 4, 5, 6, 7, 8]);
        let mut count = 0;
        while let Ok(ask) = asked.try_recv() {
            let known = ask.head.headers().get("priority").is_some();
            assert!(known, "Chrome always says it: {}", ask.object.0);
            count += 1;
        }
        assert_eq!(count, 10);
    }
}
