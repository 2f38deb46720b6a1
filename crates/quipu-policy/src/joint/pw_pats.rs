//! `pw-pats`: priority weights and packet arrival time.
//!
//! Source: Du, Chen, Yu, Du, Xie and Chen, "A Priority-Weighted and Packet Arrival Time based
//! Scheduling Algorithm for MP-QUIC" (Acta Electronica Sinica, 2026).
//!
//! The paper divides the arrival time of a packet on each path by a factor of its stream's weight
//! ([`priority_factor`]) and takes the least. For one packet that factor is the same on every path,
//! so the path is that of [`Pats`], and among all pairs of stream and path the least has the heaviest
//! stream. What is left is an order of streams ([`WeightedOrder`]) that is asked first and whose
//! bytes count as queue: a [`Pair`] of the two, certain though our reading. A stream that becomes
//! ready goes ahead of lighter bytes that are planned and not sent, on every path.

use super::Pair;
use crate::path::Pats;
use crate::reinject::ResendRules;
use crate::stream::Pack;

mod order;

pub use order::WeightedOrder;

/// The factor of a stream's weight (1 to 256): `1 + log2(weight)`, 1 to 9.
pub fn priority_factor(weight: u16) -> f64 {
    1.0 + libm::log2(f64::from(weight.max(1)))
}

/// `pw-pats`: [`WeightedOrder`] over [`Pats`].
pub fn pw_pats(order: WeightedOrder, paths: Pats, resend: ResendRules, pack: Pack) -> Pair {
    Pair::new(Box::new(order), Box::new(paths), resend, pack)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::joint::testing::Scene;
    use crate::path::{Bind, IdleProbe};
    use crate::priority::NodeId;
    use quipu_base::Bytes;

    #[test]
    fn the_factor_is_one_and_the_logarithm_of_the_weight() {
        for (weight, factor) in [(256, 9.0), (128, 8.0), (1, 1.0)] {
            assert_eq!(priority_factor(weight), factor);
        }
        assert!((priority_factor(90) - 7.49).abs() < 0.005);
    }

    fn scene(bind: Bind) -> Scene<Pair> {
        let pats = Pats::new(bind, 0.0, true, IdleProbe::default());
        let order = WeightedOrder::default();
        Scene::new(pw_pats(order, pats, ResendRules::default(), Pack::One))
    }

    #[test]
    fn a_heavier_stream_takes_the_place_of_lighter_plans() {
        for bind in [Bind::Late, Bind::Early] {
            let mut scene = scene(bind);
            let light = scene.open_at(NodeId::ROOT, 90, 30_000);
            let (fast, slow) = (scene.fast, scene.slow);
            scene.fill_window(fast);
            // 30 and 50 ms on the fast path for 20 packets: as early as the 50 ms of the slow one.
            scene.ask();
            assert!(scene.joint.ledger().held(light) >= Bytes(12_000));
            let heavy = scene.open_at(NodeId::ROOT, 256, 12_000);
            scene.world.set_path(fast, |path| path.in_flight = Bytes::ZERO);
            let order: Vec<_> = (0..10).filter_map(|_| scene.send()).collect();
            let on_fast = order.iter().filter(|(path, _)| *path == fast);
            assert!(on_fast.clone().all(|(_, stream)| *stream == heavy), "{order:?}");
            assert_eq!(on_fast.count(), 10);
            assert!(!order.contains(&(slow, heavy)));
        }
    }

    #[test]
    fn with_one_stream_it_is_pats() {
        let pats = || Pats::new(Bind::Late, 0.0, true, IdleProbe::default());
        let order = Box::new(crate::conformance::FirstCome::default());
        let plain = Pair::new(order, Box::new(pats()), ResendRules::default(), Pack::One);
        let (mut plain, mut weighted) = (Scene::new(plain), scene(Bind::Late));
        let sent = [&mut plain, &mut weighted].map(|scene| {
            scene.open(60_000);
            (0..20).map(|_| scene.send().map(|(path, _)| path)).collect::<Vec<_>>()
        });
        assert_eq!(sent[0], sent[1]);
        assert!(sent[0].contains(&Some(plain.slow)));
    }
}
