//! What the browser told of each request, for programs that want the times and not the file.

use quipu_base::{Bytes, Duration};
use quipu_web::phases::Timing;

use crate::Load;
use crate::har;
use crate::observed::Request;

/// A request for a resource and its response; each hop of a redirect is one. Times count from when the page was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exchange<'a> {
    /// What was asked for.
    pub url: &'a str,
    /// The protocol of the response, as ALPN calls it, such as `h3`; empty without a response.
    pub protocol: &'a str,
    /// Status of the response; 0 without one.
    pub status: u16,
    /// When the page asked for it.
    pub asked: Duration,
    /// From the start of the connection that was opened for it to the end of the handshake, TLS included.
    pub connect: Option<Duration>,
    /// When the head of the response was there.
    pub answered: Option<Duration>,
    /// When all of it was there, or it had failed.
    pub finished: Option<Duration>,
    /// When which bytes of the body came, as they are on the wire: the browser tells when they were taken.
    pub arrivals: Vec<(Duration, Bytes)>,
    /// Why it failed.
    pub error: Option<&'a str>,
    /// Whether a cache answered it.
    pub is_from_cache: bool,
}

impl Load {
    /// What was asked for, in order. Empty if nothing was.
    pub fn exchanges(&self) -> impl Iterator<Item = Exchange<'_>> {
        let (start, _) = self.observed.start();
        let requests = self.observed.requests().iter().filter(|request| request.is_for_resource());
        requests.map(move |request| exchange(request, start * 1e3))
    }
}

/// `start` is in milliseconds of the browser's clock.
fn exchange(request: &Request, start: f64) -> Exchange<'_> {
    let since = |millis: f64| time(millis - start);
    let seconds = |seconds: f64| since(seconds * 1e3);
    let timing = match request.from_memory {
        true => Timing::default(),
        false => Timing::read(&request.response["timing"]),
    };
    let opened = timing.connect_start.filter(|begin| *begin >= 0.0).zip(timing.connect_end);
    let status = request.response["status"].as_u64().and_then(|status| u16::try_from(status).ok());
    let arrivals = har::arrivals(request).into_iter();
    Exchange {
        url: request.url(),
        protocol: request.response["protocol"].as_str().unwrap_or_default(),
        status: status.unwrap_or_default(),
        asked: seconds(request.asked),
        connect: opened.map(|(begin, end)| time(end - begin)),
        answered: request.answered.map(seconds),
        finished: request.finished.map(seconds),
        arrivals: arrivals.map(|(at, bytes)| (since(at), Bytes(bytes))).collect(),
        error: request.error.as_deref(),
        is_from_cache: har::from_cache(request).is_some(),
    }
}

/// Milliseconds as a time, zero if there are less.
fn time(millis: f64) -> Duration {
    // As far as it goes.
    Duration::from_nanos((millis.max(0.0) * 1e6).round() as u64)
}
