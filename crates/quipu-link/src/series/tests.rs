use proptest::prelude::*;
use quipu_base::{Bytes, Instant};

use super::*;
use crate::columns::decimal;
use crate::rate::Transmitter;
use crate::{BuiltinTrace, DeliveryTrace, Recording};

fn millis(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// Rows at 0.5, 1.5 (twice), 2 and 3 s; the usual gap, of 1, 0.5 and 1 s, is 1 s.
const LATE: &str =
    "time_s,tech,up_mbps\n0.5,LTE,2\n1.5,LTE,9\n1.5,5G-low,0\n2,LTE,2\n3.0,LTE,1.25\n";

#[test]
fn rates_hold_until_the_next_row_and_then_begin_again() {
    let series = RateSeries::parse(LATE, "up_mbps").unwrap();
    assert_eq!(series.length(), Duration::from_secs(4));
    // 2 Mbit in 1 s, nothing in 0.5 s, 2 Mbit in 1 s, 1.25 Mbit in 1 s, all over 4 s.
    assert_eq!(series.mean_rate(), Rate::from_bits_per_sec(1_312_500));
    let timeline = series.timeline(Play::default());
    let times = [0, 499, 500, 1_499, 1_500, 2_000, 3_000, 3_999, 4_000, 4_500];
    let kbit = times.map(|at| timeline.value_at(millis(at)).bits_per_sec() / 1_000);
    assert_eq!(kbit, [0, 0, 2_000, 2_000, 0, 2_000, 1_250, 1_250, 0, 2_000]);
}

#[test]
fn a_direction_has_its_column() {
    let of = |text| [true, false].map(|down| RateSeries::column_of(text, down));
    assert_eq!(of("time_s,up_mbps,down_mbps\n"), ["down_mbps", "up_mbps"]);
    assert_eq!(of("time_s,mbps,up_mbps\n"), ["mbps", "up_mbps"]);
    assert_eq!(of("time_s,rate\n"), ["mbps", "mbps"]);
}

#[test]
fn a_rate_that_never_changes_holds() {
    let series = RateSeries::parse("time_s,mbps\r\n0,7.5\r\n", "mbps").unwrap();
    assert_eq!(series.length(), Duration::from_secs(1));
    let timeline = series.timeline(Play::default());
    assert_eq!(timeline.value_at(Instant::FAR_FUTURE), Rate::from_bits_per_sec(7_500_000));
}

#[test]
fn texts_that_are_no_series_are_refused_with_line_and_column() {
    let error = |text: &str| RateSeries::parse(text, "mbps").unwrap_err().to_string();
    assert_eq!(error(""), "line 1: no column `time_s`, expected it among ``");
    assert_eq!(
        error("time_s,rate\n"),
        "line 1: no column `mbps`, expected it among `time_s`, `rate`"
    );
    assert_eq!(error("time_s,mbps\n"), "no value in column `mbps`, expected at least one");
    let none = "no rate in column `mbps`, expected one above zero";
    assert_eq!(error("time_s,mbps\n0,0\n1,0.000\n"), none);
    let much = "line 2: `mbps` is 100000.000001, expected at most 100000, as Mbit/s";
    assert_eq!(error("time_s,mbps\n0,100000.000001\n"), much);
    let late = "line 3: `time_s` is 10000001, expected at most 10000000 s";
    assert_eq!(error("time_s,mbps\n0,1\n10000001,1\n"), late);
    for (row, found) in [("1,2,3", 3), ("1", 1), (" ", 1)] {
        let expected = format!("line 3: {found} fields, expected 2 as in the header");
        assert_eq!(error(&format!("time_s,mbps\n0,1\n{row}\n5,1\n")), expected);
    }
    let expected = "line 3: `time_s` is 0.4, expected not before the row before";
    assert_eq!(error("time_s,mbps\n0.5,1\n0.4,1\n"), expected);
    for wrong in ["", "-1", "+1", "1 1", "1.", ".5", "1e3", "NaN", "1.2.3", "18446744073710"] {
        let expected =
            format!("line 2: `mbps` is `{wrong}`, expected a decimal number, such as 12.5");
        assert_eq!(error(&format!("time_s,mbps\n0,{wrong}\n")), expected);
    }
}

#[test]
fn digits_below_the_unit_are_dropped() {
    let scaled = ["12.5", "0.0000019", "00", "18446744073709.551615", "18446744073709.551616"]
        .map(|text| decimal(text, 6));
    assert_eq!(scaled, [Some(12_500_000), Some(1), Some(0), Some(u64::MAX), None]);
}

/// The recordings that ship have the rates as well: `traces/us-drive-08/*.csv`.
#[test]
fn a_recording_moves_the_same_as_rates_and_as_opportunities() {
    let check = |text: &str, recording: Recording| {
        let Recording::Deliveries(trace) = recording else { panic!("Mahimahi's form") };
        let series = RateSeries::parse(text, "mbps").unwrap();
        let mut sender = Transmitter::new(Some(&series.timeline(Play::default())));
        let mut sent = 0u64;
        let mut next = sender.send(Instant::ZERO, DeliveryTrace::OPPORTUNITY);
        for second in 1..trace.length().as_nanos() / 1_000_000_000 {
            let end = millis(second * 1_000);
            while next <= end {
                sent += 1;
                next = sender.send(Instant::ZERO, DeliveryTrace::OPPORTUNITY);
            }
            let recorded = trace.opportunities_by(end);
            assert!(sent.abs_diff(recorded) <= 1, "{second} s: {sent} and {recorded}");
        }
    };
    let att = BuiltinTrace::named("us-drive-08-att").unwrap();
    let verizon = BuiltinTrace::named("us-drive-08-verizon").unwrap();
    check(include_str!("../../traces/us-drive-08/att.down.csv"), att.down().unwrap());
    check(include_str!("../../traces/us-drive-08/att.up.csv"), att.up().unwrap());
    check(include_str!("../../traces/us-drive-08/verizon.down.csv"), verizon.down().unwrap());
    check(include_str!("../../traces/us-drive-08/verizon.up.csv"), verizon.up().unwrap());
}

/// The rate at `at`, looked up row by row; times in milliseconds.
fn naive(rows: &[(u64, u64)], length: u64, at: u64) -> u64 {
    rows.iter().take_while(|(time, _)| *time <= at % length).last().map_or(0, |(_, mbit)| *mbit)
}

proptest! {
    #[test]
    fn a_timeline_gives_the_rate_of_the_row_at_each_time(
        start in 0u64..3,
        rows in proptest::collection::vec((0u64..4, 0u64..3), 1..12),
        until in 0u64..200,
    ) {
        let mut time = start;
        let rows: Vec<(u64, u64)> = rows.into_iter().map(|(gap, mbit)| {
            time += gap;
            (time, mbit)
        }).collect();
        let lines = rows.iter().map(|(time, mbit)| format!("0.{time:03},{mbit}\n"));
        let text: String = std::iter::once("time_s,mbps\n".to_string()).chain(lines).collect();
        match RateSeries::parse(&text, "mbps") {
            Err(error) => {
                // A rate that a row of the same time replaces does not count.
                let of_time = |time: &u64| naive(&rows, u64::MAX, *time);
                prop_assert!(rows.iter().all(|(time, _)| of_time(time) == 0), "{error}");
            }
            Ok(series) => {
                let length = series.length().as_nanos() / 1_000_000;
                prop_assert!(length > time);
                let timeline = series.timeline(Play::default());
                prop_assert_eq!(rate::validate_rates(&timeline), Ok(()));
                for at in 0..=until {
                    let rate = timeline.value_at(millis(at));
                    prop_assert_eq!(rate, Rate::from_mbit_per_sec(naive(&rows, length, at)));
                }
            }
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "(time_s,mbps\\n)?([0-9.]{0,5},[0-9.]{0,5}\\n){0,5}.{0,9}") {
        if let Ok(series) = RateSeries::parse(&text, "mbps") {
            prop_assert!(series.mean_rate().bytes_in(series.length()) < Bytes::MAX);
        }
    }
}
