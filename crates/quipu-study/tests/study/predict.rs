//! What a recording at one speed says of others is near to what a browser measured there: a part of
//! `quipu page predict` over the pages of our own.

use quipu_study::predict::{PredictError, Prediction, errors, predict, table};

#[test]
fn pages_of_our_own_are_predicted_from_a_recording_at_another_speed() {
    let mut all: Vec<Prediction> = Vec::new();
    for page in ["rust-book", "sb-admin", "sphinx-manual"] {
        let found = predict(page).unwrap();
        // Three speeds, each from each.
        assert_eq!(found.len(), 9, "{page}");
        all.extend(found);
    }
    let [as_recorded, likely] = errors(&all);
    assert!(likely.0 <= 0.20, "{likely:?}\n{}", table(&all));
    assert!(likely.1 <= 0.35 && as_recorded.1 > 1.0, "{likely:?} {as_recorded:?}");
    // A slow recording kept as it is makes no page of a fast network.
    let slow_to_fast = all
        .iter()
        .filter(|it| (it.recorded.as_str(), it.replayed.as_str()) == ("2mbit", "unlimited"));
    for prediction in slow_to_fast {
        let kept = prediction.error(prediction.as_recorded);
        assert!(kept > 0.8, "{}: {kept}", prediction.page);
        assert!(prediction.low <= prediction.likely && prediction.likely <= prediction.high);
    }
}

#[test]
fn recordings_at_one_speed_say_nothing_of_predictions() {
    let error = predict("google").unwrap_err();
    assert!(matches!(error, PredictError::OneSpeed { speeds: 0, .. }), "{error}");
    assert!(error.to_string().contains("quipu page record --at"), "{error}");
    // What a file calls a network is no text that could name other things than a rate and a delay.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("made.har");
    let network = |rate: &str| {
        format!(r#"{{"down": "{rate},trace=us-drive-08", "up": "{rate}", "rtt": "40ms"}}"#)
    };
    let page = |id: &str, rate: &str| format!(r#"{{"id": "{id}", "_network": {}}}"#, network(rate));
    let entry = |id: &str| {
        format!(
            r#"{{"pageref": "{id}", "time": 5, "request": {{"url": "https://a.test/"}}, "response": {{"status": 200, "bodySize": 9}}}}"#
        )
    };
    let [one, two] = [page("1", "2mbit"), page("2", "20mbit")];
    let log = format!(
        r#"{{"log": {{"pages": [{one}, {two}], "entries": [{}, {}]}}}}"#,
        entry("1"),
        entry("2")
    );
    std::fs::write(&file, log).unwrap();
    let error = predict(&file.to_string_lossy()).unwrap_err();
    assert!(matches!(error, PredictError::OneSpeed { speeds: 0, .. }), "{error}");
    let error = predict("./no-such.har").unwrap_err();
    assert!(matches!(error, PredictError::Read(_)), "{error}");
}
