//! Replays a recorded page, with all its hosts, from one server.
//!
//! - `address` writes addresses as browsers request them;
//! - `plan` decides what requests each object;
//! - `document`, `sheet` and `script` write what does so, in HTML, CSS and JavaScript;
//! - `content` has content of an exact size;
//! - `thinking` lets time pass before responses;
//! - `turns` chooses among the objects of one URL.

mod address;
mod content;
mod document;
mod plan;
mod script;
mod sheet;
mod thinking;
mod turns;

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_MAX_AGE, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue,
    LOCATION,
};
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use quipu_base::Duration;
use quipu_web::page::{Object, ObjectId, ObjectKind, Page};
use tower_service::Service;

use self::address::Address;
use self::content::{Content, Sending};
use self::plan::{Loaded, Plan};
use self::thinking::Thinking;
use self::turns::{Turn, Turns};
use crate::body::{self, Body};
use crate::clock::Begin;

/// Headers that let pages of all hosts read, run and measure what others serve.
const OPEN: [(HeaderName, &str); 7] = [
    (ACCESS_CONTROL_ALLOW_HEADERS, "*"),
    (ACCESS_CONTROL_ALLOW_METHODS, "*"),
    (ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
    // Permission is asked for each time.
    (ACCESS_CONTROL_MAX_AGE, "0"),
    (CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-resource-policy"), "cross-origin"),
    (HeaderName::from_static("timing-allow-origin"), "*"),
];

/// A service that answers for all hosts of a page, so that a browser that opens [`start`](Self::start) requests the
/// page's objects and nothing else, each when what it waits for is there. It is always ready.
///
/// Each object is served at the authority and path of its URL, over any version of HTTP, whatever the scheme of the
/// URL. The response has status 200, the recorded number of bytes, the media type of its kind, and begins after the
/// recorded think time; what is due at the same time, within 0.2 ms, in the order of requests. Nothing is cached, and all
/// origins may read everything. Objects of one URL are served in turn, in the page's order, and begin anew when `start` is
/// requested; several browsers at once would mix them up. Other URLs get 404. Redirects before the main document get 302.
///
/// What requests an object, by what discovered it:
///
/// - **a document**: an element at the recorded byte, or as near as there is room: `link`, `script` (`async` unless
///   it blocks the parser), `img`, `iframe`, `video`; `link rel=preload` for what was preloaded, and for fonts. What
///   has no element, such as `fetch`, what waits for other objects too, and what was requested 50 ms or more after
///   all that it needs, is requested by a script at that byte: such a script runs after the style sheets and
///   scripts before it. What was discovered at the end of a document, by a script at its end;
/// - **a style sheet**: an import, a font that is used or a background that is shown; anything else, by the handler
///   of the sheet's load event;
/// - **a script**: itself, when it runs, after a busy loop for what was computed and timers for what was timed;
/// - **any other object**: the handler of its load event.
///
/// Differences to the page:
///
/// - Of several objects that one waits for, only its discoverer counts, and what runs in a document's order.
/// - A browser takes its own time to parse, and to apply style sheets.
/// - A repeated image, script, style sheet or font of one URL is requested by `fetch`, since browsers would take it
///   from their memory; so is a frame within two others of its URL, since browsers would not load it.
/// - A permission check is sent by the browser if a request of another origin follows it in the page; any other is
///   a plain request. Requests with a body are POST.
/// - An object that names others may need more bytes than recorded: see [`differences`](Self::differences).
/// - Headers have the size that they have. Fonts are not valid: browsers request them, then use others.
#[derive(Clone, Debug)]
pub struct Replay(Arc<Served>);

#[derive(Debug)]
struct Served {
    audience: Audience,
    start: Address,
    hosts: Vec<String>,
    origins: Vec<String>,
    answers: Vec<Answer>,
    turns: BTreeMap<Address, Turns>,
    differences: Vec<Difference>,
    thinking: Thinking,
}

/// An object that is served with another size than recorded, since what it names does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// The object.
    pub object: ObjectId,
    /// Its URL.
    pub url: String,
    /// Recorded bytes of its body.
    pub recorded: u64,
    /// Bytes of the body that is served.
    pub served: u64,
}

/// Who loads a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Audience {
    /// Browsers, which have to be told what to request.
    Browsers,
    /// Clients that know the page.
    Knowing,
}

/// The response for an object.
#[derive(Debug)]
struct Answer {
    think: Duration,
    content: Content,
    /// `None` if no field tells it.
    media_type: Option<&'static str>,
    /// The target of a redirect.
    location: Option<String>,
}

impl Replay {
    /// Serves `page`.
    pub fn new(page: &Page) -> Self {
        Self::to(page, Audience::Browsers)
    }

    /// Serves `page` to clients that know it, as the simulator's servers do: each object has the recorded number of
    /// bytes, which name no other object, and its response status 200 and no field but `content-length`.
    pub fn bare(page: &Page) -> Self {
        Self::to(page, Audience::Knowing)
    }

    fn to(page: &Page, audience: Audience) -> Self {
        let plan = Plan::new(page);
        let answers: Vec<Answer> = (0..page.objects().len())
            .map(|object| match audience {
                Audience::Browsers => answer(&plan, object),
                Audience::Knowing => Answer::bare(&page.objects()[object]),
            })
            .collect();
        let checks: BTreeSet<usize> = plan.checks.iter().flatten().copied().collect();
        let mut turns: BTreeMap<Address, Turns> = BTreeMap::new();
        for (object, address) in plan.addresses.iter().enumerate() {
            let turns = turns.entry(address.clone()).or_default();
            turns.of(&plan, object, checks.contains(&object)).objects.push(object);
        }
        // Redirects come before what they lead to, whatever the order of the page.
        let mut chain = vec![plan.start];
        while let Some(next) = chain.last().and_then(|&last| plan.next[last]) {
            chain.push(next);
        }
        let place = |object: &usize| chain.iter().position(|other| other == object);
        for turns in turns.values_mut() {
            turns.loaded.objects.sort_by_key(|object| place(object).unwrap_or(usize::MAX));
        }
        let differences = page.objects().iter().zip(&answers).filter_map(|(object, answer)| {
            let (recorded, served) = (object.response_bytes.0, answer.content.length());
            let url = object.url.clone();
            (recorded != served).then_some(Difference { object: object.id, url, recorded, served })
        });
        let differences = differences.collect();
        let set = |part: fn(&Address) -> String| {
            let parts: BTreeSet<String> = plan.addresses.iter().map(part).collect();
            parts.into_iter().collect()
        };
        Replay(Arc::new(Served {
            audience,
            start: plan.addresses[plan.start].clone(),
            hosts: set(|address| address.host().trim_matches(['[', ']']).to_owned()),
            origins: set(Address::host_and_port),
            answers,
            turns,
            differences,
            thinking: Thinking::default(),
        }))
    }

    /// The URL to open.
    pub fn start(&self) -> String {
        self.0.start.url()
    }

    /// Number of the page's objects.
    pub fn objects(&self) -> usize {
        self.0.answers.len()
    }

    /// Names of the page's hosts, sorted, without ports: those of a certificate for all of them.
    pub fn hosts(&self) -> &[String] {
        &self.0.hosts
    }

    /// The page's hosts with their ports, sorted, such as `example.com:443`.
    pub fn origins(&self) -> &[String] {
        &self.0.origins
    }

    /// The objects that have another size than recorded, in the page's order.
    pub fn differences(&self) -> &[Difference] {
        &self.0.differences
    }

    /// The response to a request that was there at `begin`.
    async fn respond(self, address: Option<Address>, parts: Parts, begin: Begin) -> Response<Body> {
        let served = &*self.0;
        let found = address.and_then(|address| served.turns.get_key_value(&address));
        let Some((address, turns)) = found else {
            let reason = "the page has no object at this address\n";
            return served.dressed(body::text(StatusCode::NOT_FOUND, reason.to_owned()));
        };
        let is_check = parts.method == Method::OPTIONS;
        if *address == served.start && !is_check {
            served.begin_anew(turns);
        }
        let is_head = parts.method == Method::HEAD;
        let Some(object) = turns.asked(&parts).take(!is_head) else {
            // A check that the page has not is allowed; a URL that has checks alone has nothing else.
            let status = if is_check { StatusCode::NO_CONTENT } else { StatusCode::NOT_FOUND };
            let mut response = Response::new(body::empty());
            *response.status_mut() = status;
            return served.dressed(response);
        };
        let answer = &served.answers[object];
        served.thinking.about(begin, answer.think).await;
        served.dressed(answer.response(is_head))
    }
}

impl Served {
    /// Begins all turns anew if the next object at the start is the first.
    fn begin_anew(&self, start: &Turns) {
        if start.loaded.is_at_first() {
            self.turns.values().flat_map(Turns::all).for_each(Turn::begin_anew);
        }
    }

    /// Adds the headers that all responses to browsers have.
    fn dressed(&self, mut response: Response<Body>) -> Response<Body> {
        if self.audience == Audience::Browsers {
            let headers: &mut HeaderMap = response.headers_mut();
            for (name, value) in OPEN {
                headers.insert(name, HeaderValue::from_static(value));
            }
        }
        response
    }
}

impl Answer {
    /// Bytes that say nothing.
    fn bare(recorded: &Object) -> Self {
        let mut content = Content::default();
        content.pad_to(recorded.response_bytes.0);
        Answer { think: recorded.think_time, content, media_type: None, location: None }
    }

    fn response(&self, is_head: bool) -> Response<Body> {
        let content = if is_head { Content::default() } else { self.content.clone() };
        let mut response = Response::new(Sending::from(content).boxed_unsync());
        let headers = response.headers_mut();
        headers.insert(CONTENT_LENGTH, HeaderValue::from(self.content.length()));
        if let Some(media_type) = self.media_type {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
        }
        if let Some(location) = &self.location
            && let Ok(location) = HeaderValue::try_from(location)
        {
            headers.insert(LOCATION, location);
            *response.status_mut() = StatusCode::FOUND;
        }
        response
    }
}

/// The response for `object`.
fn answer(plan: &Plan<'_>, object: usize) -> Answer {
    let recorded = &plan.page.objects()[object];
    let length = recorded.response_bytes.0;
    let kind = match object == plan.main || plan.next[object].is_some() {
        true => ObjectKind::Document,
        false => recorded.kind,
    };
    let (opaque, media_type) = content::opaque(kind, &plan.addresses[object].path, length);
    let of_text = |text: String| {
        let mut content = Content::default();
        content.push(text);
        content.pad_to(length);
        content
    };
    let content = match plan.loaded[object] {
        Loaded::Document => document::html(plan, object, length),
        Loaded::Sheet { .. } => of_text(sheet::rules(plan, object)),
        Loaded::Script => of_text(script::program(plan, &plan.named[object])),
        Loaded::Opaque => opaque,
    };
    Answer {
        think: recorded.think_time,
        content,
        media_type: Some(media_type),
        location: plan.next[object].map(|next| plan.addresses[next].url()),
    }
}

impl<B> Service<Request<B>> for Replay
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    /// The body of the request is read before the response begins.
    fn call(&mut self, request: Request<B>) -> Self::Future {
        let replay = self.clone();
        let address = Address::requested(&request);
        let (parts, body) = request.into_parts();
        let came = parts.extensions.get::<Begin>().copied();
        Box::pin(async move {
            let mut body = std::pin::pin!(body);
            let mut whole = came;
            while let Some(Ok(_)) = body.frame().await {
                // The server thinks when all of the request is there.
                whole = None;
            }
            let begin = whole.unwrap_or_else(Begin::now);
            Ok(replay.respond(address, parts, begin).await)
        })
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http_body_util::Full;
    use quipu_web::page::Object;

    use super::*;

    /// True if the response is there at once to a request with that body that came a minute ago, and is to be thought
    /// about for a minute.
    async fn is_answered(body: &'static str) -> bool {
        let (url, kind) = ("https://a.test/", ObjectKind::Document);
        let mut document = Object::new(ObjectId(0), url, kind, quipu_base::Bytes(9));
        document.think_time = Duration::from_secs(60);
        let mut replay = Replay::new(&Page::new("p", vec![document]).expect("a page"));
        let request = Request::post(url).extension(Begin::ago(std::time::Duration::from_secs(60)));
        let request = request.body(Full::new(Bytes::from(body))).expect("a request");
        tokio::select! {
            biased;
            response = replay.call(request) => response.is_ok(),
            () = tokio::time::sleep(std::time::Duration::from_millis(50)) => false,
        }
    }

    #[tokio::test]
    async fn thinking_begins_when_the_request_came_or_its_body_ends() {
        assert!(is_answered("").await);
        assert!(!is_answered("x").await);
    }
}
