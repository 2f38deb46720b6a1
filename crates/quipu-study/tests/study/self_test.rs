//! Pages are inferred from recordings as well as the documentation says: a small part of `quipu page self-test`.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use quipu_study::self_test::{Inference, Knowledge, Reach, Row, SelfTest, rows};

#[test]
fn inferred_pages_take_the_time_of_the_true_ones() {
    let test = SelfTest { pages: 16, ..SelfTest::default() };
    let done = AtomicU64::new(0);
    let cases = test
        .run(&AtomicBool::new(false), || {
            done.fetch_add(1, Ordering::Relaxed);
        })
        .unwrap();
    assert_eq!(done.into_inner(), 16);
    let rows = rows(&cases);
    let of = |inference: Inference, reach: Reach| {
        rows.iter().filter(move |row| (row.inference, row.replayed) == (inference, reach))
    };
    for row in of(Inference::TakenOut, Reach::Near) {
        let (median, most) = match row.knowledge {
            Knowledge::Initiators => (0.05, 0.15),
            Knowledge::Times => (0.10, 0.25),
        };
        assert!(row.error.0 <= median && row.error.1 <= most, "{row:?}");
    }
    // What was hidden behind a slow network is in the range.
    let far: Vec<&Row> = of(Inference::TakenOut, Reach::Far).collect();
    for row in &far {
        assert!(row.range.is_some_and(|(holds, _)| holds >= 0.85), "{row:?}");
    }
    // The waits as recorded are no model of a faster network.
    let slow_to_fast = |inference| {
        let is_it = |row: &&Row| row.recorded == [2] && row.metric == "page time";
        let mut found = of(inference, Reach::At(50)).filter(is_it);
        found.next().unwrap().error.0
    };
    let (kept, taken_out) =
        (slow_to_fast(Inference::AsRecorded), slow_to_fast(Inference::TakenOut));
    assert!(kept > 1.0 && taken_out < 0.2, "{kept} and {taken_out}");
}

#[test]
fn the_same_seed_gives_the_same_cases_and_a_stopped_test_gives_none() {
    let test = SelfTest {
        pages: 2,
        recorded_at: vec![10],
        replayed_at: vec![10, 50],
        ..SelfTest::default()
    };
    let run = |stopped| test.run(&AtomicBool::new(stopped), || {}).unwrap();
    assert_eq!(run(false), run(false));
    // Two pages, one recording, two loads, with and without initiators, inferred in two ways.
    assert_eq!(run(false).len(), 16);
    assert!(run(true).is_empty());
}
