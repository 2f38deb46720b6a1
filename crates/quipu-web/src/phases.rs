//! Phases of requests, and the arrival of their bodies, as entries of HAR files have them.
//!
//! Chromium tells the same of a request over the DevTools protocol and in its traces: when it was requested, answered and
//! complete, and a [`Timing`]. [`Phases::of`] makes the phases of an entry of these, and [`encoded`] turns the arrival of
//! the decoded body into that of the encoded one. Times are milliseconds of one clock.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::trace::lenient;

/// The most points of time that are written of one body: our choice.
const MOST_ARRIVALS: usize = 1_000;

/// `Network.ResourceTiming` of the DevTools protocol, which traces have too: milliseconds since `request_time`, which is in
/// seconds. Negative times do not apply.
///
/// <https://chromedevtools.github.io/devtools-protocol/tot/Network/#type-ResourceTiming>
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Timing {
    /// When the network stack began to work on the request; absent or 0 if the response came from a cache.
    #[serde(deserialize_with = "lenient::number")]
    pub request_time: Option<f64>,
    /// Start of the name lookup.
    #[serde(deserialize_with = "lenient::number")]
    pub dns_start: Option<f64>,
    /// End of the name lookup.
    #[serde(deserialize_with = "lenient::number")]
    pub dns_end: Option<f64>,
    /// Start of the connection's set-up.
    #[serde(deserialize_with = "lenient::number")]
    pub connect_start: Option<f64>,
    /// End of the connection's set-up, with TLS.
    #[serde(deserialize_with = "lenient::number")]
    pub connect_end: Option<f64>,
    /// Start of the TLS handshake.
    #[serde(deserialize_with = "lenient::number")]
    pub ssl_start: Option<f64>,
    /// End of the TLS handshake.
    #[serde(deserialize_with = "lenient::number")]
    pub ssl_end: Option<f64>,
    /// When sending the request began.
    #[serde(deserialize_with = "lenient::number")]
    pub send_start: Option<f64>,
    /// When the request had been sent.
    #[serde(deserialize_with = "lenient::number")]
    pub send_end: Option<f64>,
    /// When the header of the response had arrived.
    #[serde(deserialize_with = "lenient::number")]
    pub receive_headers_end: Option<f64>,
}

impl Timing {
    /// Reads the JSON object `value`; fields that are missing or no numbers are absent, as all are of any other value.
    pub fn read(value: &Value) -> Timing {
        lenient::object(value).unwrap_or_default()
    }
}

/// Phases of a request, as an entry of a HAR file has them: its start, then durations in milliseconds. Negative durations do
/// not apply.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phases {
    /// When the network stack began to work on the request, which is the start of the entry.
    pub start: f64,
    /// From the request of the page until then; not part of [`Phases::total`].
    pub queued: f64,
    /// Waiting for a connection.
    pub blocked: f64,
    /// Name lookup.
    pub dns: f64,
    /// Set-up of a connection, `ssl` included.
    pub connect: f64,
    /// TLS handshake.
    pub ssl: f64,
    /// Sending the request.
    pub send: f64,
    /// From then until the header of the response had arrived.
    pub wait: f64,
    /// From then until the body was complete.
    pub receive: f64,
}

impl Default for Phases {
    fn default() -> Phases {
        Phases {
            start: 0.0,
            queued: 0.0,
            blocked: -1.0,
            dns: -1.0,
            connect: -1.0,
            ssl: -1.0,
            send: 0.0,
            wait: 0.0,
            receive: 0.0,
        }
    }
}

impl Phases {
    /// The phases of a request that the page made at `requested`, that was `answered`, if ever, and complete at `end`.
    pub fn of(requested: f64, answered: Option<f64>, end: f64, timing: &Timing) -> Phases {
        let end = end.max(requested);
        let started = timing.request_time.filter(|&time| time > 0.0).map(|time| time * 1e3);
        let Some(start) = started else {
            // From a file or a cache, or a redirect: only its header and its end are known.
            let header = answered.unwrap_or(end).max(requested).min(end);
            return Phases {
                start: requested,
                wait: header - requested,
                receive: end - header,
                ..Phases::default()
            };
        };
        let length = |from: Option<f64>, to: Option<f64>| match (from, to) {
            (Some(from), Some(to)) if from >= 0.0 => (to - from).max(0.0),
            _ => -1.0,
        };
        let dns = length(timing.dns_start, timing.dns_end);
        let connect = length(timing.connect_start, timing.connect_end);
        let send = timing.send_start.unwrap_or(0.0);
        let header = timing.receive_headers_end.unwrap_or(0.0);
        Phases {
            start,
            queued: (start - requested).max(0.0),
            // All that precedes sending and has no phase of its own, so that the phases add up.
            blocked: (send - dns.max(0.0) - connect.max(0.0)).max(0.0),
            dns,
            connect,
            ssl: length(timing.ssl_start, timing.ssl_end),
            send: length(timing.send_start, timing.send_end).max(0.0),
            wait: length(timing.send_end, timing.receive_headers_end).max(0.0),
            receive: (end - start - header).max(0.0),
        }
    }

    /// The duration of the entry.
    pub fn total(&self) -> f64 {
        let parts = [self.blocked, self.dns, self.connect, self.send, self.wait, self.receive];
        parts.into_iter().map(|part| part.max(0.0)).sum()
    }

    /// `timings` of the entry.
    pub fn written(&self) -> Value {
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

/// When which bytes of an encoded body of `body` bytes arrived, no later than `end`: times, and bytes since the point before.
/// `decoded` has the same of the decoded body, in order.
///
/// Chromium reports encoded bytes late, mostly at the end, but decoded ones as they arrive, so that the encoded ones are
/// distributed in proportion. It reports when the renderer took them, which may be after the network had the last.
pub fn encoded(decoded: &[(f64, u64)], body: u64, end: f64) -> Vec<(f64, u64)> {
    let all = decoded.iter().fold(0_u64, |sum, (_, bytes)| sum.saturating_add(*bytes)).max(1);
    let (mut sum, mut told) = (0_u64, 0_u64);
    let share = |&(at, bytes): &(f64, u64)| {
        sum = sum.saturating_add(bytes);
        let until = (body as f64 * sum as f64 / all as f64).round() as u64;
        let new = until.saturating_sub(told);
        told = told.max(until);
        (at.min(end), new)
    };
    decoded.iter().map(share).filter(|&(_, bytes)| bytes > 0).collect()
}

/// `_arrivals` of an entry that starts at `start`: at most 1,000 points, each a time since then, later than the one before,
/// and the bytes since the point before.
pub fn written_arrivals(arrivals: &[(f64, u64)], start: f64) -> Vec<(f64, u64)> {
    let stride = arrivals.len().div_ceil(MOST_ARRIVALS).max(1);
    let mut written: Vec<(f64, u64)> = Vec::new();
    for part in arrivals.chunks(stride) {
        let Some(&(at, _)) = part.last() else { continue };
        let at = to_micros((at - start).max(0.0));
        let bytes = part.iter().fold(0_u64, |sum, (_, bytes)| sum.saturating_add(*bytes));
        match written.last_mut() {
            Some(last) if last.0 >= at => last.1 = last.1.saturating_add(bytes),
            _ => written.push((at, bytes)),
        }
    }
    written
}

/// A time with the resolution that browsers have, a microsecond.
pub fn rounded(millis: f64) -> Value {
    json!(to_micros(millis))
}

fn to_micros(millis: f64) -> f64 {
    (millis * 1e3).round() / 1e3
}

/// The date at `millis` of Unix time, to the microsecond.
pub fn date(millis: f64) -> String {
    // A float outside the range of an integer becomes its nearest.
    let date = Timestamp::from_microsecond((millis * 1e3).round() as i64).unwrap_or_default();
    date.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timing() -> Timing {
        Timing::read(&json!({
            "requestTime": 100.01, "dnsStart": 1.0, "dnsEnd": 3.0, "connectStart": 3.0, "connectEnd": 9.0,
            "sslStart": 5.0, "sslEnd": 9.0, "sendStart": 10.0, "sendEnd": 10.5, "receiveHeadersEnd": 30.5,
        }))
    }

    #[test]
    fn phases_add_up_to_the_time_from_start_to_end() {
        let phases = Phases::of(100_000.0, Some(100_050.0), 100_080.0, &timing());
        assert_eq!(phases.start, 100_010.0);
        let timings = json!({
            "_queued": 10.0, "blocked": 2.0, "dns": 2.0, "connect": 6.0, "ssl": 4.0, "send": 0.5,
            "wait": 20.0, "receive": 39.5,
        });
        assert_eq!(phases.written(), timings);
        assert_eq!(rounded(phases.total()), json!(70.0));
    }

    #[test]
    fn a_response_from_a_cache_waits_for_its_header_and_then_receives() {
        for timing in [Timing::default(), Timing { request_time: Some(0.0), ..timing() }] {
            let phases = Phases::of(10.0, Some(14.0), 15.0, &timing);
            assert_eq!((phases.start, phases.wait, phases.receive), (10.0, 4.0, 1.0));
            assert_eq!((phases.blocked, phases.dns, phases.total()), (-1.0, -1.0, 5.0));
        }
        // An end before the start, and no answer.
        let phases = Phases::of(10.0, None, 9.0, &Timing::default());
        assert_eq!((phases.wait, phases.receive), (0.0, 0.0));
    }

    #[test]
    fn what_is_no_timing_is_absent() {
        for value in [Value::Null, json!(3), json!([1]), json!({ "requestTime": {} })] {
            assert_eq!(Timing::read(&value), Timing::default(), "{value}");
        }
    }

    #[test]
    fn encoded_bytes_arrive_in_proportion_and_none_after_the_end() {
        let decoded = [(60.0, 3_000), (70.0, 0), (90.0, 1_000)];
        assert_eq!(encoded(&decoded, 1_001, 80.0), [(60.0, 751), (80.0, 250)]);
        assert_eq!(encoded(&decoded, 0, 80.0), []);
        assert_eq!(encoded(&[], 10, 80.0), []);
    }

    #[test]
    fn arrivals_are_few_increase_in_time_and_lose_no_byte() {
        let all: Vec<(f64, u64)> = (0..3_500).map(|part| (f64::from(part), 7)).collect();
        let written = written_arrivals(&all, 1.0);
        assert!(written.len() <= MOST_ARRIVALS);
        assert_eq!(written.iter().map(|(_, bytes)| bytes).sum::<u64>(), 3_500 * 7);
        let same = [(0.0, 1), (5.000_1, 2), (5.000_2, 3), (4.0, 4)];
        assert_eq!(written_arrivals(&same, 1.0), [(0.0, 1), (4.0, 9)]);
    }
}
