//! The order of streams as an agent's decision: whose bytes the next packet carries.

use std::sync::Arc;

use quipu_base::Bytes;
use quipu_learned::observation::GREATEST;
use quipu_policy::stream::Turn;
use quipu_policy::{Event, Kind, Notes, StreamPolicy, StreamView, View};

use super::exchange::Exchange;
use crate::policy::ready::Ready;

/// Most streams that a question has a place for; our choice.
pub(crate) const STREAMS: usize = 16;

/// The names of the numbers of one stream, with their units.
pub(crate) const OF_STREAM: [&str; 7] = [
    "is_there",
    // Bytes of all that the stream will carry, if that was told.
    "size_100kB",
    // Bytes that it has yet to send for the first time.
    "unsent_100kB",
    "sent_100kB",
    // How long it has been open.
    "age_100ms",
    // Urgency 0 (most) to 7, in sevenths.
    "urgency_share",
    // Weight of its node in the dependency tree, 1 to 256, in 256ths; 0 without a node.
    "weight_share",
];

/// The names of the numbers that are of no stream.
pub(crate) const OF_ORDER: [&str; 2] = ["unsent_100kB", "ready_10"];

/// How many numbers a question has.
pub(crate) const ORDER_LENGTH: usize = STREAMS * OF_STREAM.len() + OF_ORDER.len();

/// The names of all numbers, in order.
pub(crate) fn names() -> Vec<String> {
    let streams = (0..STREAMS)
        .flat_map(|place| OF_STREAM.iter().map(move |name| format!("stream{place}.{name}")));
    streams.chain(OF_ORDER.iter().map(ToString::to_string)).collect()
}

/// The stream that the agent chooses among those that are ready, the first of them in order of arrival.
pub(crate) struct Ordered {
    exchange: Arc<Exchange>,
    ready: Ready,
}

impl Ordered {
    pub(crate) fn new(exchange: Arc<Exchange>) -> Ordered {
        Ordered { exchange, ready: Ready::default() }
    }
}

fn scaled(number: f64, unit: f64) -> f32 {
    (number / unit).clamp(0.0, f64::from(GREATEST)) as f32
}

fn bytes(bytes: Bytes) -> f32 {
    scaled(bytes.0 as f64, 1e5)
}

fn of_stream(stream: &StreamView, view: &View<'_>) -> [f32; OF_STREAM.len()] {
    let end = stream.size.map_or(stream.written.0, |size| size.0.max(stream.written.0));
    let weight = view.priorities.node_of(stream.key).map_or(0, |node| node.weight);
    let age = view.now.saturating_since(stream.opened_at).as_secs_f64();
    [
        1.0,
        bytes(stream.size.unwrap_or(Bytes::ZERO)),
        bytes(Bytes(end.saturating_sub(stream.high_sent.0))),
        bytes(Bytes(stream.high_sent.0)),
        scaled(age, 0.1),
        scaled(f64::from(stream.priority.urgency), 7.0),
        scaled(f64::from(weight), 256.0),
    ]
}

impl StreamPolicy for Ordered {
    fn next(&mut self, view: &View<'_>, _notes: &mut Notes) -> Option<Turn> {
        let first = self.ready.keys().next()?;
        if self.ready.keys().nth(1).is_none() {
            return Some(Turn::unlimited(first));
        }
        let ready = &self.ready;
        let place = self.exchange.ask(
            view.now,
            |shared| {
                shared.numbers.fill(0.0);
                shared.allowed.fill(false);
                let places = shared.numbers.chunks_exact_mut(OF_STREAM.len());
                for ((key, numbers), allowed) in ready.keys().zip(places).zip(&mut shared.allowed) {
                    if let Some(stream) = view.streams.get(key) {
                        numbers.copy_from_slice(&of_stream(stream, view));
                        *allowed = true;
                    }
                }
                let of_all = [bytes(view.conn.unsent), scaled(f64::from(view.conn.ready), 10.0)];
                shared.numbers[STREAMS * OF_STREAM.len()..].copy_from_slice(&of_all);
            },
            |answer| answer.first().map_or(0, |place| *place as usize),
        );
        let chosen = place.filter(|place| *place < STREAMS);
        let chosen = chosen.and_then(|place| self.ready.keys().nth(place));
        Some(Turn::unlimited(chosen.unwrap_or(first)))
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        self.exchange.count(event);
        self.ready.on_event(event, view);
    }

    fn on_taken(&mut self, _turn: Turn, _kind: Kind, _view: &View<'_>) {}

    fn on_returned(&mut self, _turn: Turn, _view: &View<'_>) {}
}
