//! `srpt-ecf`: the shortest stream first, each on the path that completes it earlier.
//!
//! Source: Jonglez et al., "SRPT-ECF: challenging Round-Robin for stream-aware multipath scheduling"
//! (2020, HAL hal-02570686), of which only the abstract was available: the details are our
//! reconstruction.

use std::collections::BTreeSet;

use quipu_base::Bytes;

use super::answer::{Answer, Looks};
use super::by_stream::ByStream;
use super::planner::Planner;
use crate::key::{PathKey, StreamKey};
use crate::path::{Choice, Ecf, IdleProbe, MinRtt, Parcel, PathPolicy, Race, Verdict, wait_for};
use crate::seam::decision::Notes;
use crate::seam::event::Event;
use crate::seam::view::View;
use crate::stream::{Turn, remaining};

/// The fastest path takes the ready stream with least to send; ties go to the lower identifier. While
/// that path is full, streams are looked at in this order: the first that would not end earlier by
/// waiting for it goes on the best open path; all others wait. The test is that of [`Ecf`], with a
/// flag `waiting` per stream, for the bytes that end before the stream does: those of the streams
/// before it and its own. Lost bytes do not wait.
///
/// A stream whose size the application did not tell is ranked by what was written of it.
/// As the bytes grow along the order, the streams that wait are mostly the first ones. Looking at
/// all of them costs O(streams), once per event that finds the fast path full and another open;
/// `visits` bounds it.
#[derive(Clone, Debug)]
pub struct SrptEcf {
    looks: Looks,
    /// Ready streams.
    order: BTreeSet<(Bytes, StreamKey)>,
    /// What remains of each of them.
    remaining: ByStream<Bytes>,
}

impl SrptEcf {
    /// The policy. `beta`: how much longer a stream waits once it does. `visits`: most streams looked
    /// at; zero: all.
    pub fn new(beta: f64, visits: usize, probe: IdleProbe) -> Self {
        SrptEcf {
            looks: Looks::new(beta, visits, probe),
            order: BTreeSet::new(),
            remaining: ByStream::default(),
        }
    }

    fn look(&mut self, view: &View<'_>, notes: &mut Notes) -> Option<Answer> {
        let &(_, first) = self.order.first()?;
        let Some(best) = MinRtt::pick(view, notes) else { return Some(Answer::rest(first)) };
        let race =
            Ecf::faster_than(best, view).and_then(|fast| Some((fast, Race::new(fast, best)?)));
        let Some((fast, race)) = race else { return Some(Answer::now(first, best.key)) };
        let mut backlog = Bytes::ZERO;
        for &(bytes, stream) in self.order.iter().take(self.looks.visits) {
            backlog += bytes;
            let verdict = self.looks.verdict((fast, &race), stream, [backlog; 2], notes);
            if verdict != Verdict::Wait {
                return Some(Answer::now(stream, best.key));
            }
        }
        Some(Answer { stream: first, choice: Some(wait_for(fast, view)) })
    }

    /// Brings the place of a ready stream up to date.
    fn refresh(&mut self, stream: StreamKey, view: &View<'_>) {
        if self.remaining.get(stream).is_some() {
            self.insert(stream, view);
        }
    }

    fn insert(&mut self, stream: StreamKey, view: &View<'_>) {
        let Some(bytes) = view.streams.get(stream).map(remaining) else { return };
        if self.remaining.get(stream) != Some(bytes) {
            self.remove(stream);
            self.remaining.set(stream, bytes);
            self.order.insert((bytes, stream));
        }
    }

    fn remove(&mut self, stream: StreamKey) {
        if let Some(bytes) = self.remaining.get(stream) {
            self.remaining.remove(stream);
            self.order.remove(&(bytes, stream));
        }
    }
}

impl PathPolicy for SrptEcf {
    fn select(&mut self, parcel: &Parcel<'_>, view: &View<'_>, notes: &mut Notes) -> Choice {
        self.looks.select(parcel, view, notes)
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        self.looks.on_event(event);
        match *event {
            Event::Ready(stream) => self.insert(stream, view),
            Event::Stopped(stream) | Event::Closed(stream) => self.remove(stream),
            Event::Sized(stream) | Event::Written(stream) | Event::Requeued { stream, .. } => {
                self.refresh(stream, view);
            }
            Event::Placed { piece, .. } => self.refresh(piece.stream, view),
            Event::Acked(packet) => {
                for piece in packet.pieces {
                    self.refresh(piece.stream, view);
                }
            }
            _ => {}
        }
    }

    fn probe(&mut self, view: &View<'_>) -> Option<PathKey> {
        self.looks.probe(view)
    }
}

impl Planner for SrptEcf {
    fn next(
        &mut self,
        filling: Option<PathKey>,
        view: &View<'_>,
        notes: &mut Notes,
    ) -> Option<Turn> {
        if filling.is_some() {
            return self.order.first().map(|&(_, stream)| Turn::unlimited(stream));
        }
        if self.looks.answer.is_none() {
            self.looks.answer = self.look(view, notes);
        }
        self.looks.turn()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::joint::planned::Planned;
    use crate::joint::testing::Scene;
    use crate::key::Span;
    use crate::reinject::ResendRules;
    use crate::seam::decision::Decision;
    use crate::stream::Pack;
    use proptest::prelude::*;
    use quipu_base::{Duration, Offset};

    fn scene(visits: usize) -> Scene<Planned<SrptEcf>> {
        let planner = SrptEcf::new(Ecf::BETA, visits, IdleProbe::new(Duration::ZERO));
        let mut scene = Scene::new(Planned::of(planner, ResendRules::default(), Pack::One));
        let ms = Duration::from_millis;
        scene.world.set_path(scene.fast, |path| {
            path.rttvar = ms(2);
            path.cwnd = Bytes(15_000);
        });
        scene.world.set_path(scene.slow, |path| {
            path.rttvar = ms(5);
            path.cwnd = Bytes(30_000);
        });
        scene
    }

    #[test]
    fn the_fast_path_takes_the_shortest_stream() {
        let mut scene = scene(0);
        let long = scene.open(3_600);
        let short = scene.open(2_400);
        let order: Vec<_> = (0..5).filter_map(|_| scene.send()).map(|(_, it)| it).collect();
        assert_eq!(order, [short, short, long, long, long]);
    }

    #[test]
    fn streams_wait_by_the_bytes_that_end_before_them() {
        let mut scene = scene(0);
        scene.fill_window(scene.fast);
        scene.open(20_000);
        assert!(matches!(scene.ask(), Decision::Wait { .. }));
        scene.open(40_000);
        assert!(matches!(scene.ask(), Decision::Wait { .. }), "60,000 bytes: 100 against 105 ms");
        let third = scene.open(60_000);
        assert_eq!(scene.send(), Some((scene.slow, third)), "120,000 bytes");
    }

    #[test]
    fn too_few_bytes_are_not_worth_waiting() {
        let mut scene = scene(0);
        scene.fill_window(scene.fast);
        let stream = scene.open(5_000);
        assert_eq!(scene.send(), Some((scene.slow, stream)));
    }

    #[test]
    fn no_more_streams_are_looked_at_than_allowed() {
        let mut scene = scene(2);
        scene.fill_window(scene.fast);
        for bytes in [20_000, 40_000, 60_000] {
            scene.open(bytes);
        }
        assert!(matches!(scene.ask(), Decision::Wait { .. }));
    }

    #[test]
    fn lost_bytes_of_a_waiting_stream_do_not_wait() {
        let mut scene = scene(0);
        let stream = scene.open(20_000);
        let (fast, slow) = (scene.fast, scene.slow);
        scene.send();
        scene.fill_window(fast);
        assert!(matches!(scene.ask(), Decision::Wait { .. }));
        scene.lose(stream, Span::new(Offset(0), Offset(1_200)), fast);
        assert_eq!(scene.send(), Some((slow, stream)));
    }

    proptest! {
        #[test]
        fn decisions_are_those_of_a_sorted_list(
            sizes in prop::collection::vec(1..60_000u64, 1..12),
            full in any::<bool>(),
            rtt in 21..400u64,
        ) {
            let mut scene = scene(0);
            let mut list: Vec<(u64, StreamKey)> =
                sizes.iter().map(|&bytes| (bytes, scene.open(bytes))).collect();
            list.sort();
            scene.world.set_path(scene.slow, |path| path.srtt = Some(Duration::from_millis(rtt)));
            if full {
                scene.fill_window(scene.fast);
            }
            scene.tell(Event::PathMeasured(scene.slow));
            let rtt = rtt as f64;
            let mut ahead = 0.0;
            let sends = list.iter().find(|&&(bytes, _)| {
                ahead += bytes as f64;
                let waits = (1.0 + ahead / 15_000.0) * 20.0 < rtt + 5.0
                    && ahead / 30_000.0 * rtt >= 2.0 * 20.0 + 5.0;
                !full || !waits
            });
            let path = if full { scene.slow } else { scene.fast };
            prop_assert_eq!(scene.send(), sends.map(|&(_, stream)| (path, stream)));
        }
    }
}
