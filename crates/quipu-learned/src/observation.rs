//! What a path decision looks like as numbers.
//!
//! Paths have places in order of their identifiers; those beyond the last place are not seen. Numbers are in units in which
//! they are of the order of one, and at most [`GREATEST`].

use quipu_base::{Bytes, Duration};
use quipu_policy::path::{can_wait, eligible, opens_by};
use quipu_policy::{Class, Parcel, PathView, View};

/// Most paths that an observation has a place for; our choice: twice what the papers use.
pub const PLACES: usize = 4;

/// The names of the numbers of one path, with their units.
pub const OF_PATH: [&str; 10] = [
    // 1 if there is a path in this place that data may take, whether its window is open or not.
    "is_there",
    // 1 if a packet may leave on it now.
    "is_open",
    "srtt_100ms",
    "rttvar_100ms",
    "min_rtt_100ms",
    "cwnd_100kB",
    // Bytes in flight as a share of the congestion window.
    "in_flight_share",
    // How long until it is expected to open; 0 if it is open.
    "opens_in_100ms",
    // Delivery rate, or window over round-trip time while there is none.
    "rate_10Mbps",
    // Share of packets lost, smoothed.
    "loss_share",
];

/// The names of the numbers that are of no path.
pub const OF_ALL: [&str; 4] = [
    // Bytes that look for a path, of a packet.
    "parcel_kB",
    // 1 if they were lost before.
    "is_lost",
    // Never-sent bytes of all streams.
    "unsent_100kB",
    // Streams with something to send, in tens.
    "ready_10",
];

/// How many numbers an observation has.
pub const LENGTH: usize = PLACES * OF_PATH.len() + OF_ALL.len();

/// The greatest number of an observation.
pub const GREATEST: f32 = 100.0;

/// The names of all numbers, in order: `path0.srtt_100ms`, …, `ready_10`.
pub fn names() -> Vec<String> {
    let of_paths =
        (0..PLACES).flat_map(|place| OF_PATH.iter().map(move |name| format!("path{place}.{name}")));
    of_paths.chain(OF_ALL.iter().map(ToString::to_string)).collect()
}

/// The path in a place, if there is one.
pub fn path_at<'v>(view: &View<'v>, place: usize) -> Option<&'v PathView> {
    if place < PLACES { view.paths.iter().nth(place) } else { None }
}

/// Numbers and allowed answers of one decision.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// See [`names`].
    pub numbers: [f32; LENGTH],
    /// The places of paths that may be answered: open ones, and for bytes that were not lost also those that can be
    /// waited for.
    pub allowed: [bool; PLACES],
}

impl Default for Observation {
    fn default() -> Self {
        Observation { numbers: [0.0; LENGTH], allowed: [false; PLACES] }
    }
}

fn bounded(number: f64) -> f32 {
    // What is no number is none.
    let number = if number.is_nan() { 0.0 } else { number };
    number.clamp(0.0, f64::from(GREATEST)) as f32
}

fn hundred_ms(time: Option<Duration>) -> f32 {
    bounded(time.map_or(0.0, |time| time.as_secs_f64() * 10.0))
}

fn hundred_kb(bytes: Bytes) -> f32 {
    bounded(bytes.0 as f64 / 1e5)
}

fn flag(is: bool) -> f32 {
    if is { 1.0 } else { 0.0 }
}

impl Observation {
    /// Takes the numbers of `view`; those of `parcel` are zero without one.
    pub fn take(&mut self, parcel: Option<&Parcel<'_>>, view: &View<'_>) {
        *self = Observation::default();
        let is_lost = parcel.is_some_and(|parcel| matches!(parcel.class, Class::Lost { .. }));
        let mut may = eligible(view.paths).map(|path| path.key).peekable();
        let places = self.numbers.chunks_exact_mut(OF_PATH.len()).zip(&mut self.allowed);
        for (path, (numbers, allowed)) in view.paths.iter().zip(places) {
            let is_there = may.next_if_eq(&path.key).is_some();
            let is_open = is_there && path.is_open(view.now);
            *allowed = is_open || (is_there && !is_lost && can_wait(path));
            numbers.copy_from_slice(&of_path(path, view, is_there, is_open));
        }
        let of_all = [
            bounded(parcel.map_or(0.0, |parcel| parcel.len.0 as f64 / 1e3)),
            flag(is_lost),
            hundred_kb(view.conn.unsent),
            bounded(f64::from(view.conn.ready) / 10.0),
        ];
        self.numbers[PLACES * OF_PATH.len()..].copy_from_slice(&of_all);
    }
}

fn of_path(
    path: &PathView,
    view: &View<'_>,
    is_there: bool,
    is_open: bool,
) -> [f32; OF_PATH.len()] {
    let opens_in = (!is_open).then(|| opens_by(path, view.now).saturating_since(view.now));
    let share = path.in_flight.0 as f64 / path.cwnd.0.max(1) as f64;
    [
        flag(is_there),
        flag(is_open),
        hundred_ms(path.srtt),
        hundred_ms(Some(path.rttvar)),
        hundred_ms(path.min_rtt),
        hundred_kb(path.cwnd),
        bounded(share),
        hundred_ms(opens_in),
        bounded(path.bandwidth().unwrap_or(0.0) * 8.0 / 1e7),
        bounded(f64::from(path.loss.0) / 1e3),
    ]
}

#[cfg(test)]
mod tests {
    use quipu_base::{PathId, StreamId};
    use quipu_policy::conformance::World;
    use quipu_policy::{PathKey, StreamKey};

    use super::*;

    fn world(paths: u32) -> (World, Vec<PathKey>) {
        let mut world = World::new(Bytes(1_000_000));
        let keys = (0..paths).map(|id| world.add_path(PathId(id)).unwrap()).collect();
        (world, keys)
    }

    fn parcel(class: Class) -> Parcel<'static> {
        let stream = StreamKey { slot: 0, id: StreamId(0) };
        Parcel { stream, len: Bytes(1_200), class, back_fits: false, committed: &[] }
    }

    fn seen(world: &World, class: Class) -> Observation {
        let mut observation = Observation::default();
        observation.take(Some(&parcel(class)), &world.view());
        observation
    }

    fn number(observation: &Observation, name: &str) -> f32 {
        observation.numbers[names().iter().position(|known| known == name).unwrap()]
    }

    #[test]
    fn there_is_a_name_for_each_number() {
        let names = names();
        assert_eq!(names.len(), LENGTH);
        assert!(names.iter().collect::<std::collections::BTreeSet<_>>().len() == LENGTH);
        assert_eq!((&*names[0], &*names[LENGTH - 1]), ("path0.is_there", "ready_10"));
    }

    #[test]
    fn numbers_are_those_of_the_view() {
        let (mut world, keys) = world(2);
        world.set_path(keys[1], |path| {
            path.srtt = Some(Duration::from_millis(50));
            path.in_flight = Bytes(6_000);
        });
        let seen = seen(&world, Class::Fresh);
        assert_eq!(number(&seen, "path1.srtt_100ms"), 0.5);
        assert_eq!(number(&seen, "path1.in_flight_share"), 0.5);
        assert_eq!(number(&seen, "path1.cwnd_100kB"), 0.12);
        assert_eq!(number(&seen, "path2.is_there"), 0.0);
        assert_eq!(number(&seen, "parcel_kB"), 1.2);
        assert_eq!(seen.allowed, [true, true, false, false]);
    }

    #[test]
    fn numbers_are_bounded_and_paths_beyond_the_last_place_unseen() {
        let (mut world, keys) = world(6);
        for key in keys {
            world.set_path(key, |path| {
                path.srtt = Some(Duration::MAX);
                path.rttvar = Duration::MAX;
                path.cwnd = Bytes(u64::MAX);
                path.in_flight = Bytes(u64::MAX / 8);
            });
        }
        let seen = seen(&world, Class::Fresh);
        assert!(seen.numbers.iter().all(|number| (0.0..=GREATEST).contains(number)), "{seen:?}");
        assert_eq!(number(&seen, "path3.srtt_100ms"), GREATEST);
        assert_eq!(seen.allowed, [true; PLACES]);
        assert!(path_at(&world.view(), PLACES).is_none());
    }

    #[test]
    fn lost_bytes_never_wait() {
        let (mut world, keys) = world(2);
        world.set_path(keys[1], |path| path.in_flight = path.cwnd);
        assert_eq!(seen(&world, Class::Fresh).allowed[..2], [true, true]);
        let lost = seen(&world, Class::Lost { origin: keys[1] });
        assert_eq!(lost.allowed[..2], [true, false]);
        assert_eq!(number(&lost, "is_lost"), 1.0);
    }

    #[test]
    fn the_guide_has_the_names_of_all_numbers() {
        let page = include_str!("../../../docs/learned.md");
        let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
        let shown: Vec<&str> = rows.collect();
        let of_paths = OF_PATH.map(|name| format!("pathN.{name}"));
        let expected = of_paths.iter().map(String::as_str).chain(OF_ALL).collect::<Vec<_>>();
        assert_eq!(shown, expected);
    }
}
