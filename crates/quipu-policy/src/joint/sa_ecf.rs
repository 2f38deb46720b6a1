//! `sa-ecf`: stream-aware earliest completion first.
//!
//! Source: Rabitsch, Hurtig and Brunström, "A Stream-Aware Multipath QUIC Scheduler for Heterogeneous
//! Paths" (EPIQ 2018); the bytes until completion as in `rainbowsnail/mp-quic`, read in code.

use quipu_base::Bytes;

use super::answer::{Answer, Looks};
use super::by_stream::ByStream;
use super::planner::Planner;
use crate::key::{PathKey, StreamKey};
use crate::path::{
    Choice, Ecf, IdleProbe, MinRtt, Parcel, PathPolicy, Race, Verdict, can_wait, eligible, wait_for,
};
use crate::seam::decision::Notes;
use crate::seam::event::Event;
use crate::seam::view::{Kind, PathView, StreamView, View};
use crate::stream::{QuantumWrr, StreamPolicy, Turn, remaining};

/// Which SA-ECF.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SaEcfMode {
    /// As described.
    #[default]
    Paper,
    /// As in the code of "A Novel Framework for HTTP/2 over MPQUIC".
    AsBuilt,
}

/// Streams go in the quantum rounds of [`QuantumWrr`]. The fastest path takes the stream whose turn
/// it is. While that path is full, the streams are looked at in order of their turns: the first that
/// would not end earlier by waiting for it goes on the best open path; all others wait.
///
/// The test is that of [`Ecf`], with a flag `waiting` per stream and, for the bytes to send, what the
/// whole connection must send until the stream is done ([`SaEcf::until_done`]), at most what it has
/// to send. A look costs no token. A stream below one that has something to send itself is not
/// looked at. Lost bytes do not wait.
///
/// As built, three things differ. The bytes until a stream is done are those waiting in its current
/// write, at most 32 KiB: here what waits of the stream, cut to that. Their least over the streams
/// looked at counts for each; the test of the fast path counts at most a window of it, that of the
/// slow one at least a window, so it waits far more readily. The stream found is not the one sent:
/// a look ends the turns of the streams before it and costs it a token, then the stream goes whose
/// turn it is. A second look at a stream that keeps its turn uses up one of as many looks as there
/// are streams. Not copied: on deep trees a look also ended the turns of groups; equality of the two
/// sides of the second test counts as waiting.
///
/// Looking at all streams costs O(streams), once per event that finds the fast path full and another
/// open; `visits` bounds it.
#[derive(Clone, Debug)]
pub struct SaEcf {
    mode: SaEcfMode,
    looks: Looks,
    pin: bool,
    order: QuantumWrr,
    /// The path of each stream that has one for good.
    pins: ByStream<PathKey>,
    /// As built: the stream whose look is paid for when something is sent.
    looked: Option<StreamKey>,
}

/// Bytes of one write of the published file server.
const WRITE: Bytes = Bytes(32 * 1024);

impl SaEcf {
    /// The policy. `beta`: how much longer a stream waits once it does. `pin`: a stream stays on its
    /// first path while that can carry data, as MobileH2 describes SA-ECF and its port does it.
    /// `visits`: most streams looked at; zero: all.
    pub fn new(mode: SaEcfMode, beta: f64, pin: bool, visits: usize, probe: IdleProbe) -> Self {
        SaEcf {
            mode,
            looks: Looks::new(beta, visits, probe),
            pin,
            order: QuantumWrr::new(),
            pins: ByStream::default(),
            looked: None,
        }
    }

    /// Bytes that the connection must send until a stream is done that has `remaining` bytes and the
    /// share `share` (φ), in packets of `packet`: `remaining` if its turn of `turn` bytes suffices,
    /// else `L·(g·(remaining/L − 1) + remaining/L)` with `g = (1 − φ)/φ`. Not finite if it has no
    /// share.
    pub fn until_done(remaining: Bytes, share: f64, turn: Bytes, packet: Bytes) -> f64 {
        let (bytes, packet) = (remaining.0 as f64, packet.0 as f64);
        if remaining <= turn || packet <= 0.0 {
            return bytes;
        }
        let others = (1.0 - share) / share;
        others * (bytes - packet) + bytes
    }

    /// The same, of a stream of this connection.
    fn backlog(&self, stream: &StreamView, packet: Bytes, view: &View<'_>) -> Bytes {
        if self.mode == SaEcfMode::AsBuilt {
            return stream.written.since(stream.high_sent).min(WRITE);
        }
        let alone = view.conn.ready <= 1;
        let share = if alone { 1.0 } else { self.order.share(stream.key) };
        let turn = packet.saturating_mul(self.order.packets_left(stream.key));
        let bytes = SaEcf::until_done(remaining(stream), share, turn, packet);
        // The cast saturates.
        Bytes(bytes as u64).min(view.conn.unsent)
    }

    fn look(&mut self, view: &View<'_>, notes: &mut Notes) -> Option<Answer> {
        let first = self.order.next(view, notes)?.stream;
        let Some(best) = MinRtt::pick(view, notes) else { return Some(Answer::rest(first)) };
        let fast = Ecf::faster_than(best, view);
        let race = fast.and_then(|fast| Some((fast, Race::new(fast, best)?)));
        let streams = view.conn.ready as usize;
        let mut least = Bytes::MAX;
        let mut looks = 0;
        let mut waits_for = fast;
        let mut turns = self.order.turns();
        while let Some(stream) = turns.next() {
            if self.mode == SaEcfMode::AsBuilt && looks >= streams || looks >= self.looks.visits {
                break;
            }
            looks += 1;
            if let Some(pinned) = self.pinned(stream, view) {
                if pinned.is_open(view.now) {
                    return Some(Answer::now(stream, pinned.key));
                }
                waits_for = waits_for.or(Some(pinned));
                continue;
            }
            let Some((fast, race)) = &race else { return Some(Answer::now(stream, best.key)) };
            let Some(stream_view) = view.streams.get(stream) else { continue };
            let backlog = self.backlog(stream_view, best.payload, view);
            least = least.min(backlog);
            let (on_fast, on_slow) = match self.mode {
                SaEcfMode::Paper => (backlog, backlog),
                SaEcfMode::AsBuilt => (least.min(fast.cwnd), least.max(best.cwnd)),
            };
            let verdict = self.looks.verdict((fast, race), stream, [on_fast, on_slow], notes);
            let keeps_turn = self.order.packets_left(stream) > 1;
            match (verdict, self.mode) {
                (Verdict::Wait, SaEcfMode::Paper) => {}
                (Verdict::Wait, SaEcfMode::AsBuilt) => looks += usize::from(keeps_turn),
                (_, SaEcfMode::Paper) => return Some(Answer::now(stream, best.key)),
                (_, SaEcfMode::AsBuilt) => {
                    let sent = if keeps_turn { stream } else { turns.next().unwrap_or(first) };
                    self.looked = Some(stream);
                    return Some(Answer::now(sent, best.key));
                }
            }
        }
        // Only a stream that was not looked at can be without a path to wait for.
        Some(waits_for.map_or(Answer::now(first, best.key), |path| Answer {
            stream: first,
            choice: Some(wait_for(path, view)),
        }))
    }

    /// The path that a stream must take, while that can carry data.
    fn pinned<'v>(&self, stream: StreamKey, view: &View<'v>) -> Option<&'v PathView> {
        let pin = self.pins.get(stream).filter(|_| self.pin)?;
        let path = eligible(view.paths).find(|path| path.key == pin)?;
        (path.is_open(view.now) || can_wait(path)).then_some(path)
    }
}

impl PathPolicy for SaEcf {
    fn select(&mut self, parcel: &Parcel<'_>, view: &View<'_>, notes: &mut Notes) -> Choice {
        self.looks.select(parcel, view, notes)
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        self.looks.on_event(event);
        self.looked = None;
        self.order.on_event(event, view);
        match *event {
            Event::Placed { path, piece }
                if self.pin
                    && piece.kind == Kind::Fresh
                    && self.pinned(piece.stream, view).is_none() =>
            {
                self.pins.set(piece.stream, path);
            }
            Event::Closed(stream) => self.pins.remove(stream),
            _ => {}
        }
    }

    fn fill(&mut self, path: PathKey, parcel: &Parcel<'_>, view: &View<'_>) -> bool {
        self.pinned(parcel.stream, view).is_none_or(|pinned| pinned.key == path)
    }

    fn probe(&mut self, view: &View<'_>) -> Option<PathKey> {
        self.looks.probe(view)
    }
}

impl Planner for SaEcf {
    fn next(
        &mut self,
        filling: Option<PathKey>,
        view: &View<'_>,
        notes: &mut Notes,
    ) -> Option<Turn> {
        if filling.is_some() {
            return self.order.next(view, notes);
        }
        if self.looks.answer.is_none() {
            self.looks.answer = self.look(view, notes);
        }
        self.looks.turn()
    }

    fn on_taken(&mut self, turn: Turn, kind: Kind, view: &View<'_>) {
        if let Some(stream) = self.looked.take() {
            self.order.pass_turn_to(stream);
            self.order.on_taken(Turn { stream, max: Bytes(1) }, kind, view);
        }
        self.order.on_taken(turn, kind, view);
    }
}

#[cfg(test)]
mod tests;
