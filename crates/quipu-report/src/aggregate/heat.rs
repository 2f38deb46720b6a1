//! Ratios over how unlike the two paths of networks are.

use crate::read::NetworkPath;

/// How unlike two paths are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unlike {
    /// The larger of the rates towards the client by the smaller: 1 and more.
    pub rate: f64,
    /// The round trip of the path with the larger rate by that of the other: below 1 if the faster
    /// path is also the shorter. Of equal rates the path that comes first counts as the faster.
    pub delay: f64,
}

/// How unlike the paths of a network are; `None` unless there are two whose rates and delays are known.
pub(crate) fn unlike(paths: &[NetworkPath]) -> Option<Unlike> {
    let [one, other] = paths else { return None };
    let rates =
        (one.down_rate.filter(|rate| *rate > 0)?, other.down_rate.filter(|rate| *rate > 0)?);
    let (fast, slow) = if rates.0 >= rates.1 { (one, other) } else { (other, one) };
    let (long, short) = (fast.round_trip?, slow.round_trip.filter(|trip| *trip > 0)?);
    let rate = fast.down_rate? as f64 / slow.down_rate? as f64;
    (long > 0).then(|| Unlike { rate, delay: long as f64 / short as f64 })
}

/// A cell of a heat map.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatCell {
    /// Position and label on the axis of rates.
    pub rate: (f64, String),
    /// Position and label on the axis of delays.
    pub delay: (f64, String),
    /// Geometric mean of the ratios that lie in it.
    pub value: f64,
    /// How many they are.
    pub count: usize,
}

/// Values of an axis that have a place of their own; of more, those within a factor of the square root
/// of 2 share one.
const MOST_PLACES: usize = 10;

/// The cells of `points`, from the least rate ratio and delay ratio to the largest.
pub fn heat(points: &[(Unlike, f64)]) -> Vec<HeatCell> {
    let rates = Axis::of(points.iter().map(|(at, _)| at.rate));
    let delays = Axis::of(points.iter().map(|(at, _)| at.delay));
    let mut placed: Vec<((i64, i64), f64)> = Vec::new();
    for (at, value) in points.iter().filter(|(_, value)| *value > 0.0 && value.is_finite()) {
        placed.push(((rates.place(at.rate), delays.place(at.delay)), libm::log(*value)));
    }
    placed.sort_by_key(|(place, _)| *place);
    let cells = placed.chunk_by(|one, next| one.0 == next.0).map(|same| {
        let (rate, delay) = same[0].0;
        let sum: f64 = same.iter().map(|(_, log)| log).sum();
        HeatCell {
            rate: rates.label(rate),
            delay: delays.label(delay),
            value: libm::exp(sum / same.len() as f64),
            count: same.len(),
        }
    });
    cells.collect()
}

/// How the values of an axis are put into places.
struct Axis {
    /// Whether each value, to hundredths, has a place of its own.
    own: bool,
}

impl Axis {
    fn of(values: impl Iterator<Item = f64>) -> Axis {
        let mut places: Vec<i64> = values.map(hundredths).collect();
        places.sort_unstable();
        places.dedup();
        Axis { own: places.len() <= MOST_PLACES }
    }

    fn place(&self, value: f64) -> i64 {
        // Ratios of whole numbers: logarithms of a few tens at most.
        if self.own { hundredths(value) } else { (2.0 * libm::log2(value)).round() as i64 }
    }

    fn label(&self, place: i64) -> (f64, String) {
        if self.own {
            let value = place as f64 / 100.0;
            return (value, format!("{value}"));
        }
        let value = libm::exp2(place as f64 / 2.0);
        (value, format!("about {}", (value * 100.0).round() / 100.0))
    }
}

fn hundredths(value: f64) -> i64 {
    (value * 100.0).round() as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn path(rate: u64, trip: u64) -> NetworkPath {
        NetworkPath {
            name: "any".to_owned(),
            down_rate: Some(rate),
            up_rate: None,
            round_trip: Some(trip),
            down_queue: None,
            down_loss: None,
        }
    }

    #[test]
    fn the_faster_path_comes_first_whatever_the_order() {
        let expected = Some(Unlike { rate: 2.0, delay: 0.5 });
        assert_eq!(unlike(&[path(20, 10), path(10, 20)]), expected);
        assert_eq!(unlike(&[path(10, 20), path(20, 10)]), expected);
        assert_eq!(unlike(&[path(10, 20)]), None);
        assert_eq!(unlike(&[path(10, 20), path(0, 20)]), None);
    }

    proptest! {
        /// Against a plain sum over the points of each cell.
        #[test]
        fn cells_are_means_of_their_points(
            points in prop::collection::vec((1_u32..6, 1_u32..6, 1_u32..100), 1..60),
        ) {
            let at = |rate: u32, delay: u32| Unlike { rate: f64::from(rate), delay: f64::from(delay) };
            let points: Vec<(Unlike, f64)> = points
                .into_iter()
                .map(|(rate, delay, value)| (at(rate, delay), f64::from(value) / 50.0))
                .collect();
            let cells = heat(&points);
            prop_assert_eq!(cells.iter().map(|cell| cell.count).sum::<usize>(), points.len());
            for cell in cells {
                let here: Vec<f64> = points
                    .iter()
                    .filter(|(at, _)| at.rate == cell.rate.0 && at.delay == cell.delay.0)
                    .map(|(_, value)| *value)
                    .collect();
                prop_assert_eq!(here.len(), cell.count);
                let product: f64 = here.iter().product();
                let mean = libm::pow(product, 1.0 / here.len() as f64);
                prop_assert!((mean / cell.value - 1.0).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn many_values_share_places() {
        let at = |index: u32| Unlike { rate: 1.0 + f64::from(index) / 10.0, delay: 1.0 };
        let points: Vec<(Unlike, f64)> = (0..50).map(|index| (at(index), 1.0)).collect();
        let cells = heat(&points);
        assert!(cells.len() <= 7, "{cells:?}");
        assert_eq!(cells[0].rate.1, "about 1");
    }
}
