//! Earliest completion first.

use quipu_base::{Bytes, Duration};

use super::choose::{eligible, is_promising, rest_unless_stuck, wait_for};
use super::{Choice, IdleProbe, MinRtt, Parcel, PathPolicy};
use crate::key::PathKey;
use crate::seam::decision::{Note, Notes};
use crate::seam::event::Event;
use crate::seam::view::{Class, PathView, View};

/// How many waiting bytes the estimate counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backlog {
    /// What is waiting, as in the paper.
    #[default]
    Paper,
    /// At least one window of the path in question, as in the Linux implementation: it waits also
    /// with little to send.
    Linux,
}

/// `ecf`: a slow path is used only if waiting for the fast one would not complete earlier.
///
/// With `k` never-sent bytes on the connection, `f` the usable path of least round-trip time and
/// `s` the open one that [`MinRtt`] would take: wait for `f` if
/// `(1 + k/cwnd_f)·rtt_f < (1 + waiting·β)·(rtt_s + δ)` and `k/cwnd_s·rtt_s ≥ 2·rtt_f + δ`, where δ
/// is the larger deviation of the two. `waiting` is set by a wait, and cleared when the first test
/// fails or `f` becomes another path.
///
/// It sends without waiting: lost bytes; where `f` has no sample, does not answer (a probe timeout
/// passed) or cannot carry a packet; on an unprobed `s`, which then gets its first sample. Of more
/// than two paths only `f` and the best open one are compared.
///
/// Source: Lim et al., "ECF: An MPTCP path scheduler to manage heterogeneous paths", CoNEXT 2017;
/// Linux `mptcp_ecf.c`; confidence high.
#[derive(Clone, Debug)]
pub struct Ecf {
    beta: f64,
    backlog: Backlog,
    /// The fast path that was last waited for: `waiting` is set for it alone.
    waiting_for: Option<PathKey>,
    probe: IdleProbe,
}

impl Ecf {
    /// β of the paper.
    pub const BETA: f64 = 0.25;

    /// The policy with hysteresis `beta` (0 or more).
    pub const fn new(beta: f64, backlog: Backlog, probe: IdleProbe) -> Self {
        Ecf { beta, backlog, waiting_for: None, probe }
    }

    /// The path worth waiting for instead of sending on `slow`, if there is one.
    pub(crate) fn faster_than<'v>(slow: &PathView, view: &View<'v>) -> Option<&'v PathView> {
        eligible(view.paths)
            .filter(|path| is_promising(path) && path.srtt.is_some())
            .min_by_key(|path| (path.srtt, path.key))
            .filter(|fast| fast.key != slow.key && fast.pto_count == 0 && fast.srtt <= slow.srtt)
    }

    /// Whether waiting for `fast` completes earlier than sending on `slow`; keeps `waiting`.
    fn waits(
        &mut self,
        fast: &PathView,
        slow: &PathView,
        unsent: Bytes,
        notes: &mut Notes,
    ) -> bool {
        let Some(race) = Race::new(fast, slow) else { return false };
        let (on_fast, on_slow) = match self.backlog {
            Backlog::Paper => (unsent, unsent),
            Backlog::Linux => (unsent.max(fast.cwnd), unsent.max(slow.cwnd)),
        };
        for (label, path, score) in [
            ("ends on fast, ns", fast, race.fast_ends(on_fast)),
            ("ends on slow, ns", slow, race.slow_ends()),
        ] {
            notes.add(|| Note { label, path: Some(path.key), stream: None, score });
        }
        let waiting = self.waiting_for == Some(fast.key);
        let verdict = race.verdict(on_fast, on_slow, if waiting { self.beta } else { 0.0 });
        match verdict {
            Verdict::Wait => self.waiting_for = Some(fast.key),
            Verdict::Send => self.waiting_for = None,
            Verdict::SendFew => {}
        }
        verdict == Verdict::Wait
    }
}

/// The two inequalities of ECF, for a fast path and a slow one with samples.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Race {
    /// Round-trip times and their larger deviation, in nanoseconds.
    rtt_f: f64,
    rtt_s: f64,
    delta: f64,
    cwnd_f: f64,
    cwnd_s: f64,
}

/// What they say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Waiting for the fast path completes earlier.
    Wait,
    /// It does not; who has waited does no longer.
    Send,
    /// It would, but there is too little to send to be worth it.
    SendFew,
}

impl Race {
    /// `None` if a path has no sample of its round-trip time.
    pub(crate) fn new(fast: &PathView, slow: &PathView) -> Option<Self> {
        let nanos = |time: Duration| time.as_nanos() as f64;
        Some(Race {
            rtt_f: nanos(fast.srtt?),
            rtt_s: nanos(slow.srtt?),
            delta: nanos(fast.rttvar.max(slow.rttvar)),
            cwnd_f: fast.cwnd.0.max(1) as f64,
            cwnd_s: slow.cwnd.0.max(1) as f64,
        })
    }

    /// When `backlog` would end on the fast path, in nanoseconds from now.
    fn fast_ends(&self, backlog: Bytes) -> f64 {
        (1.0 + backlog.0 as f64 / self.cwnd_f) * self.rtt_f
    }

    /// When a packet would end on the slow path, in nanoseconds from now.
    fn slow_ends(&self) -> f64 {
        self.rtt_s + self.delta
    }

    fn is_worth_waiting(&self, backlog: Bytes) -> bool {
        backlog.0 as f64 / self.cwnd_s * self.rtt_s >= 2.0 * self.rtt_f + self.delta
    }

    /// For so many bytes, counted for each path; `patience` is β of who has waited already, else
    /// zero.
    pub(crate) fn verdict(&self, on_fast: Bytes, on_slow: Bytes, patience: f64) -> Verdict {
        if self.fast_ends(on_fast) >= (1.0 + patience) * self.slow_ends() {
            Verdict::Send
        } else if self.is_worth_waiting(on_slow) {
            Verdict::Wait
        } else {
            Verdict::SendFew
        }
    }
}

impl Default for Ecf {
    fn default() -> Self {
        Ecf::new(Self::BETA, Backlog::default(), IdleProbe::default())
    }
}

impl PathPolicy for Ecf {
    fn select(&mut self, parcel: &Parcel<'_>, view: &View<'_>, notes: &mut Notes) -> Choice {
        let Some(slow) = MinRtt::pick(view, notes) else { return rest_unless_stuck(parcel, view) };
        if matches!(parcel.class, Class::Lost { .. }) {
            return Choice::Now(slow.key);
        }
        match Ecf::faster_than(slow, view) {
            Some(fast) if self.waits(fast, slow, view.conn.unsent, notes) => wait_for(fast, view),
            _ => Choice::Now(slow.key),
        }
    }

    fn on_event(&mut self, event: &Event<'_>, _view: &View<'_>) {
        self.probe.on_event(event);
        if let Event::PathGone(path) = event
            && self.waiting_for == Some(*path)
        {
            self.waiting_for = None;
        }
    }

    fn probe(&mut self, view: &View<'_>) -> Option<PathKey> {
        self.probe.due(view)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::World;
    use crate::key::StreamKey;
    use quipu_base::{PathId, StreamId};

    const MS: Duration = Duration::from_millis(1);

    fn world() -> (World, PathKey, PathKey) {
        let mut world = World::new(Bytes(1_000_000));
        let fast = world.add_path(PathId(0)).unwrap();
        let slow = world.add_path(PathId(1)).unwrap();
        world.set_path(fast, |path| {
            path.srtt = Some(MS.saturating_mul(20));
            path.rttvar = MS.saturating_mul(2);
            path.cwnd = Bytes(15_000);
            path.in_flight = Bytes(15_000);
        });
        world.set_path(slow, |path| {
            path.srtt = Some(MS.saturating_mul(100));
            path.rttvar = MS.saturating_mul(5);
            path.cwnd = Bytes(30_000);
        });
        (world, fast, slow)
    }

    fn select(policy: &mut Ecf, world: &mut World, unsent: u64, class: Class) -> Choice {
        world.conn.unsent = Bytes(unsent);
        let stream = StreamKey { slot: 0, id: StreamId(0) };
        let len = Bytes(1_200);
        let parcel = Parcel { stream, len, class, back_fits: false, committed: &[] };
        policy.select(&parcel, &world.view(), &mut Notes::off())
    }

    fn waits(choice: Choice) -> bool {
        matches!(choice, Choice::Wait { .. })
    }

    #[test]
    fn it_waits_while_the_fast_path_completes_earlier() {
        let (mut world, _, slow) = world();
        let mut ecf = Ecf::default();
        assert_eq!(select(&mut ecf, &mut world, 5_000, Class::Fresh), Choice::Now(slow));
        assert!(waits(select(&mut ecf, &mut world, 20_000, Class::Fresh)));
        assert!(waits(select(&mut ecf, &mut world, 60_000, Class::Fresh)));
        assert_eq!(select(&mut ecf, &mut world, 120_000, Class::Fresh), Choice::Now(slow));
        assert_eq!(ecf.waiting_for, None);
    }

    #[test]
    fn having_waited_it_waits_a_little_longer() {
        // 110 ms on the fast path: more than 105, less than 1.25 times that.
        let (mut world, _, slow) = world();
        let mut ecf = Ecf::default();
        assert_eq!(select(&mut ecf, &mut world, 67_500, Class::Fresh), Choice::Now(slow));
        assert!(waits(select(&mut ecf, &mut world, 60_000, Class::Fresh)));
        assert!(waits(select(&mut ecf, &mut world, 67_500, Class::Fresh)));
    }

    #[test]
    fn what_it_waited_for_is_forgotten_with_another_fast_path() {
        let (mut world, fast, slow) = world();
        let mut ecf = Ecf::default();
        assert!(waits(select(&mut ecf, &mut world, 60_000, Class::Fresh)));
        let other = world.add_path(PathId(2)).unwrap();
        let view = world.paths.get(fast).cloned().unwrap();
        world.paths.remove(fast);
        world.set_path(other, |path| {
            path.srtt = view.srtt;
            path.cwnd = view.cwnd;
            path.in_flight = view.in_flight;
        });
        assert_eq!(select(&mut ecf, &mut world, 67_500, Class::Fresh), Choice::Now(slow));
    }

    #[test]
    fn lost_bytes_and_paths_that_do_not_answer_are_not_waited_for() {
        let (mut world, fast, slow) = world();
        let mut ecf = Ecf::default();
        let lost = Class::Lost { origin: slow };
        assert_eq!(select(&mut ecf, &mut world, 20_000, lost), Choice::Now(slow));
        world.set_path(fast, |path| path.pto_count = 1);
        assert_eq!(select(&mut ecf, &mut world, 20_000, Class::Fresh), Choice::Now(slow));
    }

    #[test]
    fn a_paced_fast_path_is_waited_for_until_its_release() {
        let (mut world, fast, _) = world();
        let mut ecf = Ecf::default();
        let release_at = world.now + MS;
        world.set_path(fast, |path| {
            path.in_flight = Bytes::ZERO;
            path.release_at = release_at;
        });
        assert_eq!(
            select(&mut ecf, &mut world, 20_000, Class::Fresh),
            Choice::Wait { until: release_at, on: Some(fast) }
        );
    }

    #[test]
    fn the_linux_form_counts_a_window_at_least() {
        let (mut world, ..) = world();
        let mut ecf = Ecf::new(Ecf::BETA, Backlog::Linux, IdleProbe::default());
        assert!(waits(select(&mut ecf, &mut world, 5_000, Class::Fresh)));
    }
}
