use proptest::prelude::*;
use quipu_base::Duration;
use rand_core::Rng;

use super::*;

fn losses(loss: impl Into<Loss>, draws: usize) -> Vec<bool> {
    let mut process = LossProcess::new(loss.into(), Seed::new(11));
    (0..draws).map(|_| process.draw(Instant::ZERO)).collect()
}

/// Lost datagrams, and runs of them.
fn count(losses: &[bool]) -> (usize, usize) {
    let lost = losses.iter().filter(|&&lost| lost).count();
    let ended = losses.windows(2).filter(|pair| pair[0] && !pair[1]).count();
    (lost, ended + usize::from(losses.last() == Some(&true)))
}

fn assert_near(found: f64, expected: f64, within: f64) {
    assert!((found - expected).abs() <= within * expected, "{found}, expected {expected}");
}

#[test]
fn independent_losses_are_one_number_each_of_the_losses_stream() {
    let mut random = Seed::new(11).stream("link.loss", 0);
    for lost in losses(0.25, 10_000) {
        assert_eq!(lost, random.next_u64() < 1 << 62);
    }
}

#[test]
fn zero_never_loses_and_one_always_does() {
    let model = |loss_in_bad, loss_in_good| {
        Loss::from(GilbertElliott { loss_in_bad, loss_in_good, ..GilbertElliott::new(0.3, 0.4) })
    };
    let correlated = |share| Loss::Correlated { share, correlation: 0.5 };
    for loss in [0.0.into(), correlated(0.0), model(0.0, 0.0), GilbertElliott::new(0.0, 1.0).into()]
    {
        assert_eq!(count(&losses(loss, 10_000)), (0, 0), "{loss:?}");
    }
    for loss in [1.0.into(), correlated(1.0), model(1.0, 1.0)] {
        assert_eq!(count(&losses(loss, 10_000)), (10_000, 1), "{loss:?}");
    }
}

#[test]
fn the_state_before_a_datagram_decides_and_the_first_one_is_good() {
    // Changes with every datagram.
    assert_eq!(losses(GilbertElliott::new(1.0, 1.0), 5), [false, true, false, true, false]);
    // Turns bad after the first datagram, for good.
    assert_eq!(losses(GilbertElliott::new(1.0, 0.0), 4), [false, true, true, true]);
    let good_loses =
        GilbertElliott { loss_in_good: 1.0, loss_in_bad: 0.0, ..GilbertElliott::new(1.0, 0.0) };
    assert_eq!(losses(good_loses, 4), [true, false, false, false]);
}

#[test]
fn closed_forms_computed_by_hand() {
    // A fifth of the time is bad, and a run of losses is a stay in the bad state.
    let two = GilbertElliott::new(0.05, 0.2);
    assert_near(two.share(), 0.2, 1e-12);
    assert_near(two.mean_burst(), 5.0, 1e-12);
    // p = 1/2, r = 1/2, 1 - h = 1/2, 1 - k = 1/4: half of the time is bad, so 3/8 are lost. The
    // state says nothing about the next one, so 5/8 of the losses are the last of their run.
    let four =
        GilbertElliott { loss_in_bad: 0.5, loss_in_good: 0.25, ..GilbertElliott::new(0.5, 0.5) };
    assert_near(four.share(), 0.375, 1e-12);
    assert_near(four.mean_burst(), 1.6, 1e-12);
    // Without a change, a run of losses ends as it does with losses each by itself.
    let still = GilbertElliott { loss_in_good: 0.25, ..GilbertElliott::new(0.0, 0.0) };
    assert_near(still.share(), 0.25, 1e-12);
    assert_near(still.mean_burst(), 4.0 / 3.0, 1e-12);
    assert_eq!(GilbertElliott::new(0.0, 0.0).mean_burst(), 0.0);
    assert_eq!(GilbertElliott::new(0.1, 0.0).mean_burst(), f64::INFINITY);
}

#[test]
fn long_run_losses_and_bursts_are_those_of_the_closed_forms() {
    const DRAWS: usize = 1_000_000;
    let models = [
        GilbertElliott::new(0.01, 0.3),
        GilbertElliott { loss_in_bad: 0.8, loss_in_good: 0.01, ..GilbertElliott::new(0.02, 0.25) },
        // Few losses in the bad state, most of them in the good one.
        GilbertElliott { loss_in_bad: 0.02, loss_in_good: 0.3, ..GilbertElliott::new(0.1, 0.05) },
        GilbertElliott::with_share(0.015, 0.5),
    ];
    for model in models {
        let (lost, runs) = count(&losses(model, DRAWS));
        // About four standard deviations at least.
        assert_near(lost as f64 / DRAWS as f64, model.share(), 0.05);
        assert_near(lost as f64 / runs as f64, model.mean_burst(), 0.03);
    }
}

#[test]
fn a_share_and_a_correlation_make_a_model_that_has_both() {
    let model = GilbertElliott::with_share(0.2, 0.6);
    assert_near(model.share(), 0.2, 1e-12);
    let losses = losses(model, 500_000);
    let both = losses.windows(2).filter(|pair| pair[0] && pair[1]).count() as f64 / 500_000.0;
    // Correlation of a yes or no: (P(both) - s^2) / (s - s^2).
    assert_near((both - 0.04) / 0.16, 0.6, 0.03);
}

/// The sum of fresh numbers weighted 1/2, 1/4, 1/8, ... lies below 1/4, 1/8 and 1/16 with
/// probability 5/72, 1/288 and 143/2,073,600: values of Fabius' function.
#[test]
fn with_a_correlation_of_one_half_netem_loses_what_fabius_function_says() {
    let lost = |share, draws| count(&losses(Loss::Correlated { share, correlation: 0.5 }, draws)).0;
    assert_near(lost(0.25, 1_000_000) as f64, 1e6 * 5.0 / 72.0, 0.03);
    assert_near(lost(0.125, 1_000_000) as f64, 1e6 / 288.0, 0.12);
    assert_near(lost(0.0625, 4_000_000) as f64, 4e6 * 143.0 / 2_073_600.0, 0.35);
    // Not even 1153/561,842,749,440, which is for 1/64: two in a thousand million.
    assert_eq!(lost(0.015, 4_000_000), 0);
}

#[test]
fn netem_without_correlation_loses_each_by_itself() {
    let correlated = losses(Loss::Correlated { share: 0.1, correlation: 0.0 }, 100_000);
    // Its numbers have 32 bits of the same 64.
    assert_eq!(correlated, losses(0.1, 100_000));
}

#[test]
fn numbers_that_make_no_loss_are_refused_by_name() {
    let valid = GilbertElliott::new(0.1, 0.2);
    for value in [-0.1, 1.1, f64::NAN] {
        let refused = |loss: Loss| loss.validate().unwrap_err().field;
        assert_eq!(refused(value.into()), "loss");
        assert_eq!(refused(Loss::Correlated { share: value, correlation: 0.5 }), "loss.share");
        let models = [
            (GilbertElliott { good_to_bad: value, ..valid }, "loss.good_to_bad"),
            (GilbertElliott { bad_to_good: value, ..valid }, "loss.bad_to_good"),
            (GilbertElliott { loss_in_bad: value, ..valid }, "loss.loss_in_bad"),
            (GilbertElliott { loss_in_good: value, ..valid }, "loss.loss_in_good"),
        ];
        for (model, field) in models {
            assert_eq!(refused(model.into()), field);
        }
    }
    assert_eq!(Loss::from(valid).validate(), Ok(()));
}

/// A probability, often one of the ends.
fn probability() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), Just(1.0), 0.0..=1.0]
}

proptest! {
    #[test]
    fn every_valid_model_has_a_share_and_a_burst_and_draws(
        good_to_bad in probability(),
        bad_to_good in probability(),
        loss_in_bad in probability(),
        loss_in_good in probability(),
    ) {
        let model = GilbertElliott { good_to_bad, bad_to_good, loss_in_bad, loss_in_good };
        prop_assert_eq!(Loss::from(model).validate(), Ok(()));
        let (share, burst) = (model.share(), model.mean_burst());
        prop_assert!((0.0..=1.0).contains(&share));
        let burst_fits = if share == 0.0 { burst == 0.0 } else { burst >= 1.0 };
        prop_assert!(burst_fits, "share {}, burst {}", share, burst);
        let (lost, runs) = count(&losses(model, 200));
        prop_assert!(runs <= lost);
        // None at all only if no state that it can be in loses any, and the other way round.
        if loss_in_good == 0.0 && (good_to_bad == 0.0 || loss_in_bad == 0.0) {
            prop_assert_eq!(lost, 0);
        }
        if loss_in_good == 1.0 && (good_to_bad == 0.0 || loss_in_bad == 1.0) {
            prop_assert_eq!(lost, 200);
        }
    }

    #[test]
    fn a_share_that_grows_loses_all_that_it_lost_before(
        share in 0.0f64..=1.0,
        more in 0.0f64..=1.0,
        correlation in 0.0f64..1.0,
    ) {
        let (less, more) = (share.min(more), share.max(more));
        let with = |share| losses(Loss::Correlated { share, correlation }, 200);
        prop_assert!(with(less).iter().zip(with(more)).all(|(less, more)| *less <= more));
        prop_assert!(losses(less, 200).iter().zip(losses(more, 200)).all(|(less, more)| *less <= more));
    }
}

/// Losses of `count` datagrams, one each millisecond, with a loss that changes at set times.
fn losses_over_time(first: Loss, changes: &[(u64, Loss)], count: u64) -> Vec<bool> {
    let changes = changes.iter().map(|&(at, loss)| (Duration::from_millis(at), loss));
    let losses = Timeline::of_steps(first, changes);
    let mut process = LossProcess::over_time(Some(&losses), Loss::default(), Seed::new(11));
    (0..count).map(|at| process.draw(Instant::ZERO + Duration::from_millis(at))).collect()
}

#[test]
fn each_datagram_meets_the_loss_of_its_instant_with_the_same_chance() {
    let [low, high] = [0.1, 0.4].map(|share| losses(share, 2_000));
    let changed =
        losses_over_time(Loss::Independent(0.1), &[(1_000, Loss::Independent(0.4))], 2_000);
    assert_eq!(changed[..1_000], low[..1_000]);
    assert_eq!(changed[1_000..], high[1_000..]);
    // A time without loss takes its numbers too.
    let none = [(500, Loss::default()), (1_000, Loss::Independent(0.4))];
    let paused = losses_over_time(Loss::Independent(0.1), &none, 2_000);
    assert!(!paused[500..1_000].contains(&true));
    assert_eq!(paused[1_000..], high[1_000..]);
}

#[test]
fn a_model_begins_anew_when_its_time_comes() {
    let bursts = Loss::GilbertElliott(GilbertElliott::with_share(0.2, 0.8));
    let all = Loss::Independent(1.0);
    let changed = losses_over_time(bursts, &[(1_000, all), (1_500, bursts)], 20_000);
    assert!(changed[1_000..1_500].iter().all(|lost| *lost));
    let (lost, runs) = count(&changed[1_500..]);
    // One in five, in runs of 1 / ((1 - 0.8) (1 - 0.2)) = 6.25.
    assert!((3_000..4_400).contains(&lost), "{lost}");
    assert!((4.5..8.0).contains(&(lost as f64 / runs as f64)), "{lost} in {runs} runs");
}
