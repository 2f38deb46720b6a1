//! Reinjection by need: XLINK's, and the controllers of xquic.

use quipu_base::{Duration, Instant};

use super::sent_log::{Sent, SentLog};
use crate::key::{PathKey, Span, StreamKey};
use crate::path::{PathQuality, eligible};
use crate::reinject::Reinject;
use crate::seam::decision::{Note, Notes};
use crate::seam::event::{Event, Quality};
use crate::seam::view::{Kind, PathView, SentPacket, View};

/// When what is in flight is copied.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Need {
    /// By what the application tells of its playback: XLINK.
    Playback(Playback),
    /// As soon as it is in flight for longer than a deadline: the deadline controller of xquic.
    Deadline(Deadline),
    /// As soon as nothing else would go: the default controller of xquic.
    Rest,
}

/// XLINK's two thresholds, and which copies go before fresh bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Playback {
    /// With less left to play, everything in flight is copied.
    pub short: Duration,
    /// With more left to play, nothing is.
    pub ample: Duration,
    /// What copies go before.
    pub order: CopyOrder,
}

/// What the copies of a stream go before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CopyOrder {
    /// Fresh bytes of streams of lower priority: a higher urgency number.
    #[default]
    Stream,
    /// The same, and the copies of each stream's first so many bytes go before its other bytes, and
    /// those of all streams of its priority.
    Frame(u32),
    /// Nothing: they go when nothing fresh would.
    Append,
}

/// The deadline of xquic: `max(min(factor·min_srtt, most), least)` after sending.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Deadline {
    /// Times the least smoothed round-trip time of all paths.
    pub factor: f64,
    /// At most so long.
    pub most: Duration,
    /// At least so long.
    pub least: Duration,
    /// What leaves on a path of [`PathQuality::Low`] is copied at once.
    pub low_at_once: bool,
}

/// Which paths copies may take, beside the usable ones that the originals did not take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyPaths {
    /// Standby paths too, available ones first.
    pub standby: bool,
    /// The path of the original, if no other one is open: `rap` of xquic.
    pub original: bool,
}

/// `xlink`: what is in flight on one path is copied to another, each packet once.
///
/// The copy takes the open path of least round-trip time that is not the original's. Of the packets
/// that are due the one sent first is copied first. What to copy, and before what, tells [`Need`]:
///
/// - by playback: with `Δt = min(cached frames/frame rate, cached bytes/play rate)` left to play,
///   copies go if `Δt < T1`; not if `Δt > T2`; between, if the largest `srtt + rttvar` of a path with
///   bytes in flight is larger than `Δt`. An application that told nothing is served as if it had
///   nothing left, our choice;
/// - by deadline: before anything fresh;
/// - at rest: when nothing else would go.
///
/// T1 and T2 are an operator's in the paper; 500 ms and 2 s are our choice. The order by stream has
/// urgencies for priorities. The order by frame needs to know where a stream's first video frame
/// ends: as a number of bytes here. xquic's controller for datagrams, which copies at once, has no use
/// without datagrams.
///
/// Source: Zheng et al., "XLINK: QoE-driven multi-path QUIC transport in large-scale video services",
/// SIGCOMM 2021, by summaries; the controllers of alibaba/xquic, read in code. Confidence medium to
/// high.
#[derive(Clone, Debug)]
pub struct Xlink {
    need: Need,
    paths: CopyPaths,
    /// Left to play when the application told last.
    left_to_play: Option<Duration>,
    /// By rank: two to an urgency where copies go by priority, else one in all.
    levels: [SentLog; LEVELS],
    wake_at: Option<Instant>,
}

/// Eight urgencies, first frames and the rest.
const LEVELS: usize = 16;

/// Time left to play; `None` if the application does not tell.
fn left_to_play(quality: &Quality) -> Option<Duration> {
    let of_frames = quality.cached_frames.zip(quality.frames_per_second);
    let of_frames = of_frames
        .filter(|(_, rate)| *rate > 0)
        .map(|(frames, rate)| Duration::from_secs(1).scaled(frames, u64::from(rate)));
    let of_bytes = quality.cached_bytes.zip(quality.play_rate);
    let of_bytes = of_bytes
        .filter(|(_, rate)| rate.bits_per_sec() > 0)
        .map(|(bytes, rate)| rate.time_for(bytes));
    [of_frames, of_bytes].into_iter().flatten().min()
}

impl Playback {
    /// T1 and T2 of 500 ms and 2 s, copies by stream.
    pub const DEFAULT: Playback = Playback {
        short: Duration::from_millis(500),
        ample: Duration::from_secs(2),
        order: CopyOrder::Stream,
    };
}

impl Deadline {
    /// Values of xquic.
    pub const DEFAULT: Deadline = Deadline {
        factor: 1.1,
        most: Duration::from_millis(500),
        least: Duration::from_millis(20),
        low_at_once: true,
    };

    /// How long a packet may be in flight.
    pub fn after(&self, least_rtt: Option<Duration>) -> Duration {
        let flexible = least_rtt.map_or(self.most, |least| {
            Duration::from_nanos((least.as_nanos() as f64 * self.factor) as u64)
        });
        flexible.min(self.most).max(self.least)
    }
}

impl Xlink {
    /// The policy.
    pub fn new(need: Need, paths: CopyPaths) -> Self {
        let levels = std::array::from_fn(|_| SentLog::default());
        Xlink { need, paths, left_to_play: None, levels, wake_at: None }
    }

    /// The level of a stream's bytes in a packet that starts at `start`.
    fn level(&self, urgency: u8, start: u64) -> usize {
        let rank = usize::from(urgency.min(7)) * 2;
        match self.need {
            Need::Playback(Playback { order: CopyOrder::Frame(first), .. }) => {
                rank + usize::from(start >= u64::from(first))
            }
            Need::Playback(Playback { order: CopyOrder::Stream, .. }) => rank + 1,
            Need::Playback(_) | Need::Deadline(_) | Need::Rest => 0,
        }
    }

    /// Levels whose copies go before the next bytes of a stream; all, if nothing fresh would go.
    fn levels_before(&self, instead_of: Option<StreamKey>, view: &View<'_>) -> usize {
        let Some(stream) = instead_of else { return LEVELS };
        match self.need {
            Need::Deadline(_) => LEVELS,
            Need::Playback(Playback { order: CopyOrder::Stream | CopyOrder::Frame(_), .. }) => view
                .streams
                .get(stream)
                .map_or(0, |stream| self.level(stream.priority.urgency, stream.high_sent.0)),
            Need::Playback(_) | Need::Rest => 0,
        }
    }

    fn is_needed(&self, view: &View<'_>) -> bool {
        let Need::Playback(Playback { short, ample, .. }) = self.need else { return true };
        let Some(left) = self.left_to_play else { return true };
        left < short || (left <= ample && Xlink::slowest_delivery(view) > left)
    }

    /// The largest round-trip time and deviation of a path with bytes in flight.
    fn slowest_delivery(view: &View<'_>) -> Duration {
        view.paths
            .iter()
            .filter(|path| !path.in_flight.is_zero())
            .filter_map(|path| path.srtt.map(|srtt| srtt + path.rttvar))
            .max()
            .unwrap_or_default()
    }

    /// From when on a packet sent on `path` is to be copied.
    fn due_at(&self, sent: &Sent, path: PathKey, view: &View<'_>) -> Instant {
        let Need::Deadline(deadline) = self.need else { return sent.at };
        let least_rtt = PathQuality::least_rtt(view);
        let path = view.paths.get(path).filter(|_| deadline.low_at_once);
        if path.is_some_and(|path| PathQuality::of(path, least_rtt) == PathQuality::Low) {
            return sent.at;
        }
        sent.at + deadline.after(least_rtt)
    }

    /// The path that a copy of what `original` carried takes.
    fn target(&self, original: PathKey, view: &View<'_>) -> Option<PathKey> {
        let rank =
            |path: &PathView| (path.key == original, path.srtt.is_none(), path.srtt, path.key);
        let allowed = |path: &&PathView| {
            path.is_open(view.now) && (self.paths.original || path.key != original)
        };
        let available = eligible(view.paths).filter(allowed).min_by_key(|path| rank(path));
        let any = || view.paths.usable().filter(allowed).min_by_key(|path| rank(path));
        match available {
            Some(path) if path.key != original => Some(path.key),
            _ if self.paths.standby => any().map(|path| path.key),
            available => available.map(|path| path.key),
        }
    }

    fn log(&mut self, packet: &SentPacket<'_>, view: &View<'_>) {
        for piece in packet.pieces {
            let Some(stream) = view.streams.get(piece.stream) else { continue };
            let level = self.level(stream.priority.urgency, piece.span.start.0);
            if let Some(log) = self.levels.get_mut(level) {
                log.push(packet, piece);
            }
        }
    }

    /// When the next packet falls due, after now.
    fn next_due(&mut self, view: &View<'_>) -> Option<Instant> {
        let Need::Deadline(_) = self.need else { return None };
        let mut soonest: Option<Instant> = None;
        for path in view.paths.iter() {
            let oldest = self.levels[0].oldest(path.key, view.streams);
            let due = oldest.map(|oldest| self.due_at(&oldest, path.key, view));
            let due = due.filter(|due| *due > view.now);
            soonest = [soonest, due].into_iter().flatten().min();
        }
        soonest
    }
}

impl Reinject for Xlink {
    fn next(
        &mut self,
        instead_of: Option<StreamKey>,
        view: &View<'_>,
        notes: &mut Notes,
    ) -> Option<(PathKey, StreamKey, Span)> {
        if !self.is_needed(view) {
            return None;
        }
        for level in 0..self.levels_before(instead_of, view) {
            if self.levels[level].is_empty() {
                continue;
            }
            let mut first: Option<(Sent, PathKey)> = None;
            for path in view.paths.iter() {
                let Some(oldest) = self.levels[level].oldest(path.key, view.streams) else {
                    continue;
                };
                let earlier = first.is_none_or(|(other, _)| oldest.at < other.at);
                if !earlier || self.due_at(&oldest, path.key, view) > view.now {
                    continue;
                }
                if let Some(target) = self.target(path.key, view) {
                    first = Some((oldest, target));
                }
            }
            if let Some((sent, target)) = first {
                notes.add(|| Note {
                    label: "in flight for, seconds",
                    path: Some(target),
                    stream: Some(sent.stream),
                    score: (view.now - sent.at).as_secs_f64(),
                });
                return Some((target, sent.stream, sent.span));
            }
        }
        None
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        match *event {
            Event::Sent(packet) => self.log(&packet, view),
            Event::Placed { piece, .. } if piece.kind == Kind::Copy => {
                for log in &mut self.levels {
                    log.copied(piece.stream, piece.span);
                }
            }
            Event::Acked(_) | Event::Lost(_) | Event::Requeued { .. } | Event::Closed(_) => {
                for log in &mut self.levels {
                    log.trim(view.streams);
                }
            }
            Event::PathGone(path) => {
                for log in &mut self.levels {
                    log.forget(path);
                }
            }
            Event::Quality(quality) => self.left_to_play = left_to_play(&quality),
            Event::Drained => self.wake_at = self.next_due(view),
            _ => {}
        }
    }

    fn armed(&self) -> bool {
        let off = match self.need {
            Need::Playback(Playback { ample, .. }) => {
                self.left_to_play.is_some_and(|left| left > ample)
            }
            Need::Deadline(_) | Need::Rest => false,
        };
        !off && self.levels.iter().any(|log| !log.is_empty())
    }

    fn wake_at(&self) -> Option<Instant> {
        self.wake_at
    }
}

impl Default for Xlink {
    fn default() -> Self {
        Xlink::new(Need::Playback(Playback::DEFAULT), CopyPaths::default())
    }
}

#[cfg(test)]
mod tests;
