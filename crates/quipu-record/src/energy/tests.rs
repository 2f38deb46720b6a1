use proptest::prelude::*;

use super::*;

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn lte() -> RadioClock {
    RadioClock::new(0, Some(LTE), None)
}

#[test]
fn a_radio_that_carries_nothing_takes_nothing() {
    let record = lte().record();
    assert_eq!((record.energy, record.tail, record.wakeups), (Some(0), Duration::ZERO, 0));
}

#[test]
fn one_datagram_costs_a_promotion_its_bits_and_a_tail() {
    let mut clock = lte();
    clock.on_received(at(0), Bytes(1_000));
    let record = clock.record();
    assert_eq!(record.wakeups, 1);
    // 1.2107 W * 0.2601 s + 1.06 W * 11.576 s + 8,000 bit * 51.97 nJ, in µJ.
    let expected = 314_903.07 + 12_270_560.0 + 415.76;
    let energy = record.energy.unwrap() as f64;
    assert!((energy - expected).abs() < 1.0, "{energy} is not {expected}");
}

#[test]
fn a_megabyte_over_wifi_in_one_second_has_the_energy_of_the_formula() {
    let mut clock = RadioClock::new(1, Some(WIFI), None);
    // 8 Mb/s: 137.01 * 8 + 132.86 mW for a second, as the paper's formula has it.
    clock.on_received(at(0), Bytes(0));
    for step in 1..=100 {
        clock.on_received(at(10 * step), Bytes(10_000));
    }
    let record = clock.record();
    assert_eq!(record.active, Duration::from_secs(1));
    let transfer = 137_010.0 * 8.0 + 132_860.0;
    let around = 124.4 * 79.1 + 119.3 * 238.1;
    let energy = record.energy.unwrap() as f64;
    assert!((energy - transfer - around).abs() < 1.0, "{energy}");
}

#[test]
fn a_short_gap_is_transfer_a_long_one_tail_and_after_the_tail_it_sleeps() {
    let mut clock = lte();
    for millis in [0, 100, 201, 5_201] {
        clock.on_sent(at(millis), Bytes(100));
    }
    let record = clock.record();
    assert_eq!(record.active, Duration::from_millis(100));
    assert_eq!(record.tail, Duration::from_millis(101 + 5_000 + 11_576));
    assert_eq!(record.wakeups, 1);
    clock.on_sent(at(5_201 + 20_000), Bytes(100));
    let record = clock.record();
    assert_eq!(record.tail, Duration::from_millis(101 + 5_000 + 2 * 11_576));
    assert_eq!(record.wakeups, 2);
}

#[test]
fn a_path_without_a_model_has_time_and_cost_and_no_energy() {
    let mut clock = RadioClock::new(0, None, Some(2_500_000));
    clock.on_received(at(0), Bytes(1_000_000));
    clock.on_sent(at(50), Bytes(1_000_000));
    let record = clock.record();
    assert_eq!((record.energy, record.wakeups, record.tail), (None, 0, Duration::ZERO));
    assert_eq!(record.active, Duration::from_millis(50));
    // 2.5 for a megabyte, two of them.
    assert_eq!(record.cost, Some(5_000_000));
    assert_eq!(lte().record().cost, None);
}

#[test]
fn visits_of_a_session_add_up_to_the_whole() {
    let mut clock = lte();
    clock.on_received(at(0), Bytes(1_000));
    let first = clock.record();
    clock.on_received(at(3_000), Bytes(2_000));
    let whole = clock.record();
    let second = whole.since(&first);
    assert_eq!(first.energy.unwrap() + second.energy.unwrap(), whole.energy.unwrap());
    assert_eq!(second.tail, Duration::from_millis(3_000), "the first one's tail goes on");
    assert_eq!(second.bytes_down, Bytes(2_000));
}

proptest! {
    #[test]
    fn one_more_datagram_or_byte_never_takes_less(
        wifi in any::<bool>(),
        steps in proptest::collection::vec((0_u64..30_000, 0_u64..100_000, any::<bool>()), 1..40),
        more in 1_u64..1_000_000,
    ) {
        let model = if wifi { WIFI } else { LTE };
        let mut clock = RadioClock::new(0, Some(model), Some(1_000_000));
        let mut now = 0;
        let mut before = clock.record();
        for (gap, bytes, up) in steps {
            now += gap;
            if up { clock.on_sent(at(now), Bytes(bytes)) } else { clock.on_received(at(now), Bytes(bytes)) }
            let record = clock.record();
            prop_assert!(record.energy >= before.energy);
            prop_assert!(record.cost >= before.cost);
            before = record;
        }
        clock.on_sent(at(now), Bytes(more));
        prop_assert!(clock.record().energy >= before.energy);
        prop_assert!(clock.record().cost >= before.cost);
    }
}
