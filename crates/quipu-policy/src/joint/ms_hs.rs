//! `ms-hs`: critical streams before others, and only on paths that speed them up.

use quipu_base::Bytes;

use super::allotting::{Allotter, Cause, Effect, NO_LIMIT};
use super::by_stream::ByStream;
use super::lanes::Lanes;
use super::path_queues::PathQueues;
use crate::key::{PathKey, StreamKey};
use crate::seam::decision::Notes;
use crate::seam::event::Event;
use crate::seam::view::View;
use crate::stream::{Turn, remaining};

/// The algorithm of `ms-hs`: every stream has two priorities, its class and its weight.
///
/// On each path, critical streams go before the others, and within a class streams share by weight
/// over the dependency tree. A critical stream uses only the paths that can end it earlier: those with
/// `delay_j ≤ least delay + remaining/Σ bandwidth`; the others use any path. Nothing else is limited:
/// paths take from their queues as fast as they send, so a stream's rate is split in proportion to
/// the bandwidth of its paths. Which paths a critical stream may use is looked at anew before each
/// send batch. While a path has no sample, all streams use any path.
///
/// Source: MS-HS (Liang et al., ISCTech 2022), known only from one sentence in PW-PATS (Du et al.,
/// 2026): it controls each stream's rate and gives every stream two priorities. All else is our
/// reconstruction; confidence low.
#[derive(Clone)]
pub struct MsHs {
    /// Greatest urgency value of a critical stream.
    urgency: u8,
    critical: PathQueues,
    others: PathQueues,
    /// The class of each stream, as last looked at.
    is_critical: ByStream<bool>,
}

impl MsHs {
    /// Urgencies below the default of RFC 9218 are critical: our choice.
    pub const URGENCY: u8 = 2;

    /// The algorithm; streams of `urgency` or more urgent are critical.
    pub fn new(urgency: u8) -> Self {
        MsHs {
            urgency,
            critical: PathQueues::default(),
            others: PathQueues::default(),
            is_critical: ByStream::default(),
        }
    }

    /// The paths that a stream may use.
    pub fn paths_of(&self, stream: StreamKey) -> impl Iterator<Item = PathKey> {
        let class = if self.was_critical(stream) { &self.critical } else { &self.others };
        class.left(stream).iter().map(|&(path, _)| path)
    }

    fn was_critical(&self, stream: StreamKey) -> bool {
        self.is_critical.get(stream).unwrap_or_default()
    }

    /// The queues of a stream's class, as last looked at.
    fn class_of(&mut self, stream: StreamKey) -> &mut PathQueues {
        if self.was_critical(stream) { &mut self.critical } else { &mut self.others }
    }

    /// Looks at a stream's class anew; `true` if it is another.
    fn classify(&mut self, stream: StreamKey, view: &View<'_>) -> bool {
        let Some(urgency) = view.streams.get(stream).map(|it| it.priority.urgency) else {
            return false;
        };
        let critical = urgency <= self.urgency;
        let other = self.was_critical(stream) != critical;
        self.is_critical.set(stream, critical);
        other
    }

    /// Moves a stream to the class that it now has.
    fn reclassify(&mut self, stream: StreamKey, view: &View<'_>) -> Effect {
        let before = self.was_critical(stream);
        if !self.classify(stream, view) {
            return Effect::Keeps;
        }
        let old = if before { &mut self.critical } else { &mut self.others };
        let ready = old.is_ready(stream);
        old.on_event(&Event::Stopped(stream), view);
        old.take_back(stream, view);
        if !ready {
            return Effect::Keeps;
        }
        self.class_of(stream).on_event(&Event::Ready(stream), view)
    }

    fn place_critical(&mut self, stream: StreamKey, lanes: &Lanes, view: &View<'_>) {
        let Some(it) = view.streams.get(stream) else { return };
        let delays = lanes.lanes.iter().map(|lane| lane.pipe.delay());
        let latest = delays.min().unwrap_or_default() + lanes.rate().time_for(remaining(it));
        let allowed = lanes.lanes.iter().map(|lane| {
            let speeds_up = !lanes.limited || lane.pipe.delay() <= latest;
            (lane.path, if speeds_up { NO_LIMIT } else { Bytes::ZERO })
        });
        self.critical.place(stream, allowed, view);
    }
}

impl Default for MsHs {
    fn default() -> Self {
        MsHs::new(Self::URGENCY)
    }
}

impl Allotter for MsHs {
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) -> Effect {
        match *event {
            Event::Ready(stream) => {
                self.classify(stream, view);
                self.class_of(stream).on_event(event, view)
            }
            Event::Stopped(stream) => self.class_of(stream).on_event(event, view),
            Event::Placed { piece, .. } => self.class_of(piece.stream).on_event(event, view),
            Event::Reprioritised(stream) => self.reclassify(stream, view),
            _ => {
                let effect = self.critical.on_event(event, view);
                effect.max(self.others.on_event(event, view))
            }
        }
    }

    fn renew(&mut self, cause: Cause, lanes: &Lanes, view: &View<'_>) {
        match cause {
            Cause::Streams => {}
            Cause::Batch => self.critical.take_back_all(view),
            Cause::Paths => {
                self.critical.take_back_all(view);
                self.others.take_back_all(view);
            }
            Cause::Stuck => {
                self.critical.take_back_off(lanes, view);
                self.others.take_back_off(lanes, view);
            }
        }
        let loose = self.critical.take_loose(view);
        for &stream in &loose {
            self.place_critical(stream, lanes, view);
        }
        self.critical.recycle(loose);
        let loose = self.others.take_loose(view);
        for &stream in &loose {
            let all = lanes.lanes.iter().map(|lane| (lane.path, NO_LIMIT));
            self.others.place(stream, all, view);
        }
        self.others.recycle(loose);
    }

    fn next_on(&mut self, path: PathKey, view: &View<'_>, notes: &mut Notes) -> Option<Turn> {
        self.critical.next_on(path, view, notes).or_else(|| self.others.next_on(path, view, notes))
    }

    fn any_ready(&mut self, view: &View<'_>) -> Option<StreamKey> {
        self.critical.any_ready(view).or_else(|| self.others.any_ready(view))
    }
}

#[cfg(test)]
mod tests;
