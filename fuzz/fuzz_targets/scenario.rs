//! A scenario file: what is accepted is written out and read again as the same. A file of one run has no
//! experiment and no sweep.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quipu_scenario::Scenario;

fuzz_target!(|text: &str| {
    let Ok(scenario) = Scenario::from_toml(text, "fuzz.toml") else { return };
    if scenario.validate().is_err() {
        return;
    }
    let written = scenario.to_toml().expect("a valid scenario can be written");
    let again = Scenario::from_toml(&written, "written.toml").expect("what was written is good");
    let of_one_run = Scenario { experiment: None, sweep: None, ..scenario };
    assert_eq!(again, of_one_run);
});
