//! `pfifo`: streams in order of their identifiers.
//!
//! Source: "Extending the ns-3 QUIC Module" (MSWiM 2020) and its module `signetlabdei/quic`, read in
//! code: chunks go in order of (stream, offset). The end of a chunk changes nothing in that order,
//! so turns do not end there. Lost bytes have the same rank, or go before all (`retx_first`, a
//! switch that the module has off).

use super::ranked::{Rank, Ranked};
use crate::seam::event::Event;
use crate::seam::view::{StreamView, View};

/// Rank by stream identifier.
#[derive(Clone, Copy, Debug)]
pub struct ByIdentifier;

impl Ranked<ByIdentifier> {
    /// The ready stream of least identifier sends all that it has.
    pub fn pfifo() -> Self {
        Ranked::by(ByIdentifier)
    }
}

impl Rank for ByIdentifier {
    type Key = u64;
    const SENT_STAYS_FIRST: bool = true;

    fn key(&self, stream: &StreamView, _view: &View<'_>) -> u64 {
        stream.key.id.0
    }

    fn depends_on(&self, _event: &Event<'_>) -> bool {
        false
    }

    fn explain(&self, stream: &StreamView, _view: &View<'_>) -> (&'static str, f64) {
        ("stream", stream.key.id.0 as f64)
    }
}

#[cfg(test)]
mod tests {
    use quipu_base::Duration;

    use super::*;
    use crate::StreamPolicy;
    use crate::stream::testing::Driver;

    #[test]
    fn the_lower_stream_goes_first_whenever_it_was_written() {
        let mut driver = Driver::new(Ranked::pfifo());
        driver.open(8, 3_000);
        driver.advance(Duration::from_millis(1));
        assert_eq!(driver.packets(1, 1_000), [8]);
        driver.open(4, 2_000);
        assert_eq!(driver.packets(9, 1_000), [4, 4, 8, 8]);
    }

    #[test]
    fn lost_bytes_have_the_rank_of_their_stream() {
        let mut driver = Driver::new(Ranked::pfifo());
        driver.open(4, 2_000);
        driver.open(8, 2_000);
        driver.open(12, 2_000);
        assert_eq!(driver.packets(3, 1_000), [4, 4, 8]);
        driver.lose(8, 0, 1_000);
        driver.lose(4, 1_000, 2_000);
        assert_eq!(driver.packets(9, 1_000), [4, 8, 8, 12, 12]);
    }

    #[test]
    fn plans_are_called_back_only_by_a_stream_that_goes_before_them() {
        let mut driver = Driver::new(Ranked::pfifo());
        driver.open(8, 3_000);
        let planned = driver.take(1_000);
        assert_eq!(driver.policy.order(), 0);
        driver.open(12, 1_000);
        assert_eq!(driver.policy.order(), 0);
        driver.open(4, 1_000);
        assert_eq!(driver.policy.order(), 1);
        driver.give_back(planned);
        assert_eq!(driver.policy.order(), 1);
        // Nothing is planned now.
        driver.open(0, 1_000);
        assert_eq!(driver.policy.order(), 1);
        assert_eq!(driver.packets(9, 1_000), [0, 4, 8, 8, 8, 12]);
    }
}
