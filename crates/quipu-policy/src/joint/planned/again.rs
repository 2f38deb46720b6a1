//! Packets that are answered like the one before, without the planner.

use quipu_base::Instant;

use super::Planned;
use super::place::send;
use crate::joint::free_set::Spare;
use crate::joint::planner::Planner;
use crate::key::{PathKey, StreamKey};
use crate::seam::decision::{Decision, Notes};
use crate::seam::event::Event;
use crate::seam::view::{Class, Kind, View};
use crate::stream::Turn;

/// The planner's last answer, which it [repeats](Planner::repeats).
#[derive(Clone, Copy, Debug)]
pub(super) struct Again {
    at: Instant,
    path: PathKey,
    stream: StreamKey,
}

impl<P: Planner> Planned<P> {
    /// A turn was answered with a path: the planner may answer the same until something happens.
    pub(super) fn note_answer(&mut self, turn: Turn, path: PathKey, view: &View<'_>) {
        let unlimited = turn.max == Turn::unlimited(turn.stream).max;
        let repeats = || {
            let path = view.paths.get(path);
            path.is_some_and(|path| self.planner.repeats(turn.stream, path))
        };
        self.again = (unlimited && self.ledger.is_empty() && repeats()).then_some(Again {
            at: view.now,
            path,
            stream: turn.stream,
        });
    }

    /// Only what came of the answer leaves it as it is.
    pub(super) fn keep_answer(&mut self, event: &Event<'_>) {
        let Some(Again { path, stream, .. }) = self.again else { return };
        let came_of_it = match event {
            Event::Placed { path: other, piece } => {
                *other == path && piece.stream == stream && piece.kind != Kind::Copy
            }
            Event::Sent(packet) => packet.path == path,
            _ => false,
        };
        if !came_of_it {
            self.again = None;
        }
    }

    /// The same answer as before, with the bytes that follow; `None`: all is to be asked. Explanations
    /// are given by those who are asked.
    pub(super) fn answer_again(&mut self, view: &View<'_>, notes: &Notes) -> Option<Decision> {
        let Again { at, path, stream } = self.again?;
        let is_open = view.paths.get(path).is_some_and(|path| path.is_open(view.now));
        let nothing_free = [Spare::Lost, Spare::Skipped].iter().all(|&why| self.free.is_empty(why));
        if at != view.now
            || !is_open
            || !nothing_free
            || notes.are_on()
            || self.credit_used_up(view)
        {
            self.again = None;
            return None;
        }
        let offer = self.offer_of(Turn::unlimited(stream), view).ok();
        let fresh = offer.filter(|offer| {
            !matches!(offer.run.class, Class::Lost { .. }) && !offer.run.span.is_empty()
        });
        let Some(offer) = fresh else {
            self.again = None;
            return None;
        };
        Some(send(path, stream, offer.run.span, offer.max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::joint::Pair;
    use crate::joint::testing::{Scene, sends};
    use crate::key::Span;
    use crate::path::MinRtt;
    use crate::reinject::ResendRules;
    use crate::stream::{Pack, Ranked, RoundRobin, StreamPolicy, UrgencyLevels};
    use quipu_base::{Duration, Offset};

    fn scene(stream: impl StreamPolicy + 'static) -> Scene<Pair> {
        let path = Box::new(MinRtt::new(Duration::ZERO));
        Scene::new(Pair::new(Box::new(stream), path, ResendRules::default(), Pack::Many))
    }

    fn is_kept(scene: &Scene<Pair>) -> bool {
        scene.joint.again.is_some()
    }

    fn packet(number: u64) -> Span {
        Span::new(Offset(1_200 * number), Offset(1_200 * (number + 1)))
    }

    // In builds that debug, each repeated answer is compared with that of the planner.

    #[test]
    fn one_stream_on_one_path_is_answered_again_without_the_planner() {
        let mut scene = scene(RoundRobin::new());
        let stream = scene.open(6_000);
        for number in 0..5 {
            assert_eq!(is_kept(&scene), number > 0);
            assert_eq!(sends(scene.ask()), Some((scene.fast, stream, 1_200 * number)));
            scene.place(scene.fast, stream, packet(number));
        }
        assert!(sends(scene.ask()).is_none(), "nothing is left");
        assert!(!is_kept(&scene));
    }

    #[test]
    fn any_other_event_asks_the_planner() {
        let mut scene = scene(RoundRobin::new());
        let stream = scene.open(60_000);
        scene.send();
        assert!(is_kept(&scene));
        scene.write(stream, 100);
        assert!(!is_kept(&scene));
        scene.send();
        let other = scene.open(60_000);
        assert_eq!(scene.send(), Some((scene.fast, stream)));
        assert!(!is_kept(&scene), "two streams take turns");
        assert_eq!(scene.send(), Some((scene.fast, other)));
    }

    #[test]
    fn a_path_that_closes_lets_the_planner_choose() {
        let mut scene = scene(RoundRobin::new());
        let stream = scene.open(60_000);
        scene.send();
        scene.fill_window(scene.fast);
        assert!(is_kept(&scene));
        assert_eq!(sends(scene.ask()), Some((scene.slow, stream, 1_200)));
    }

    #[test]
    fn time_that_passes_asks_the_planner() {
        let mut scene = scene(RoundRobin::new());
        scene.open(60_000);
        scene.send();
        scene.world.now += Duration::from_millis(1);
        assert!(scene.joint.answer_again(&scene.world.view(), &Notes::off()).is_none());
    }

    #[test]
    fn those_who_explain_are_asked() {
        let mut scene = scene(RoundRobin::new());
        scene.open(60_000);
        scene.send();
        assert!(scene.joint.answer_again(&scene.world.view(), &Notes::on()).is_none());
    }

    #[test]
    fn strict_orders_stay_with_their_first_stream() {
        let urgent = |scene: &mut Scene<Pair>| {
            let first = scene.open(2_400);
            let second = scene.open(60_000);
            let order: Vec<_> = (0..3).map(|_| scene.send().map(|(_, stream)| stream)).collect();
            assert_eq!(order, [Some(first), Some(first), Some(second)]);
            assert!(is_kept(scene));
        };
        urgent(&mut scene(Ranked::pfifo()));
        urgent(&mut scene(Ranked::srpt(None)));
        urgent(&mut scene(UrgencyLevels::default()));
    }
}
