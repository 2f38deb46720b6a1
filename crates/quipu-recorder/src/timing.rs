//! The phases of a request, as chrome-har has them, and when the bytes of its body came.

use serde_json::{Value, json};

use crate::observed::Request;

/// The most points of time that are kept of one body: our choice.
const MOST_ARRIVALS: usize = 1_000;

/// Phases of a request in ms; -1 if one does not apply.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Phases {
    /// When the network began to work on it, in seconds of the browser's clock: the entry's start.
    pub(crate) start: f64,
    /// From being asked for until then.
    pub(crate) queued: f64,
    pub(crate) blocked: f64,
    pub(crate) dns: f64,
    /// With `ssl` in it.
    pub(crate) connect: f64,
    pub(crate) ssl: f64,
    pub(crate) send: f64,
    pub(crate) wait: f64,
    pub(crate) receive: f64,
}

impl Phases {
    /// The phases of `request`, of a load whose last event was at `last`.
    pub(crate) fn of(request: &Request, last: f64) -> Phases {
        let end = request.finished.unwrap_or(last).max(request.asked);
        let timing = &request.response["timing"];
        let number = |name: &str| timing[name].as_f64().unwrap_or(-1.0);
        let started = timing["requestTime"].as_f64().filter(|_| !request.from_memory);
        let Some(start) = started else {
            // Out of a file or a cache: only its head and its end are known.
            let head = request.answered.unwrap_or(end).clamp(request.asked, end);
            return Phases {
                start: request.asked,
                queued: 0.0,
                blocked: -1.0,
                dns: -1.0,
                connect: -1.0,
                ssl: -1.0,
                send: 0.0,
                wait: (head - request.asked) * 1e3,
                receive: (end - head) * 1e3,
            };
        };
        let length = |from: &str, to: &str| {
            if number(from) < 0.0 { -1.0 } else { (number(to) - number(from)).max(0.0) }
        };
        let (dns, connect) = (length("dnsStart", "dnsEnd"), length("connectStart", "connectEnd"));
        let head = number("receiveHeadersEnd");
        Phases {
            start,
            queued: ((start - request.asked) * 1e3).max(0.0),
            // All that comes before sending and is not told otherwise, so that the phases add up to the time.
            blocked: (number("sendStart") - dns.max(0.0) - connect.max(0.0)).max(0.0),
            dns,
            connect,
            ssl: length("sslStart", "sslEnd"),
            send: length("sendStart", "sendEnd").max(0.0),
            wait: length("sendEnd", "receiveHeadersEnd").max(0.0),
            receive: ((end - start) * 1e3 - head).max(0.0),
        }
    }

    /// The whole time from `start`, in ms.
    pub(crate) fn time(&self) -> f64 {
        let parts = [self.blocked, self.dns, self.connect, self.send, self.wait, self.receive];
        parts.into_iter().map(|part| part.max(0.0)).sum()
    }

    pub(crate) fn written(&self) -> Value {
        let mut timings = json!({
            "blocked": rounded(self.blocked),
            "dns": rounded(self.dns),
            "connect": rounded(self.connect),
            "ssl": rounded(self.ssl),
            "send": rounded(self.send),
            "wait": rounded(self.wait),
            "receive": rounded(self.receive),
        });
        if self.queued > 0.0 {
            timings["_queued"] = rounded(self.queued);
        }
        timings
    }
}

/// A time in ms to the µs, as the browser has them.
pub(crate) fn rounded(millis: f64) -> Value {
    json!((millis * 1e3).round() / 1e3)
}

/// When which bytes of a body of `bytes` came: ms from `start`, and bytes on the wire since the point before.
///
/// Chromium tells encoded bytes late, mostly at the end, but decoded ones as they come, so that the body is shared out by
/// these. It tells when the renderer took them, which may be after the network had the last; no point is later.
pub(crate) fn arrivals(request: &Request, start: f64, bytes: f64) -> Vec<(f64, u64)> {
    let decoded = request.decoded();
    if decoded <= 0.0 || bytes <= 0.0 {
        return Vec::new();
    }
    let end = request.finished.unwrap_or(f64::INFINITY);
    let parts: Vec<(f64, f64)> = request
        .data
        .iter()
        .filter(|&&(_, decoded, _)| decoded > 0.0)
        .map(|&(time, decoded, _)| (time, decoded))
        .collect();
    let stride = parts.len().div_ceil(MOST_ARRIVALS).max(1);
    let mut arrivals: Vec<(f64, u64)> = Vec::new();
    let (mut sum, mut told) = (0.0, 0);
    for parts in parts.chunks(stride) {
        let Some(&(time, _)) = parts.last() else { continue };
        sum += parts.iter().map(|&(_, decoded)| decoded).sum::<f64>();
        let until = (bytes * sum / decoded).round() as u64;
        let millis = ((time.min(end) - start) * 1e6).round().max(0.0) / 1e3;
        match arrivals.last_mut() {
            Some(last) if last.0 >= millis => last.1 += until - told,
            _ => arrivals.push((millis, until - told)),
        }
        told = until;
    }
    arrivals
}
