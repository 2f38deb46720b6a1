//! A trace of a browser, alone or in a recording: work is in order, and busy times are its sums.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quipu_base::{Duration, SignedDuration};
use quipu_web::trace::{Activity, read, read_recording};

fuzz_target!(|input: (i64, &[u8])| {
    let (by, file) = input;
    for activity in [read(file).ok(), read_recording(file, None).ok().flatten()] {
        let Some(activity) = activity else { continue };
        check(&activity);
        check(&activity.shifted(SignedDuration::from_nanos(by)));
    }
});

fn check(activity: &Activity) {
    let mut sum = Duration::ZERO;
    let mut end = Duration::ZERO;
    for work in activity.work() {
        assert!(end <= work.start && work.start < work.end);
        assert_eq!(activity.busy(Duration::ZERO, work.start), sum);
        end = work.end;
        sum += work.end.saturating_sub(work.start);
    }
    assert_eq!(activity.busy(Duration::ZERO, Duration::MAX), sum);
}
