//! A scheduler of one's own beside all others; `docs/write-a-scheduler.md` leads through it.
use quipu_cli::base::Duration;
use quipu_cli::policy::path::{eligible, rest_unless_stuck};
use quipu_cli::policy::registry::{Confidence, Param};
use quipu_cli::policy::{Built, Choice, Entry, Layer, Notes, Parcel, PathPolicy, Registry, View};

/// The open path whose window is least full; a millisecond of round trip counts `toll` thousandths.
struct LeastFull {
    toll: u64,
}

impl PathPolicy for LeastFull {
    fn select(&mut self, parcel: &Parcel<'_>, view: &View<'_>, _notes: &mut Notes) -> Choice {
        eligible(view.paths)
            .filter(|path| path.is_open(view.now))
            .min_by_key(|path| {
                let fill = path.in_flight.0 * 1_000 / path.cwnd.0.max(1);
                (fill + self.toll * path.srtt.map_or(0, Duration::as_millis), path.key)
            })
            .map_or_else(|| rest_unless_stuck(parcel, view), |path| Choice::Now(path.key))
    }
}

fn main() -> std::process::ExitCode {
    let mut registry = Registry::builtin();
    let entry = Entry {
        name: "my-scheduler",
        layer: Layer::Path,
        about: "the open path whose window is least full",
        formula: "fill_j = 1000 * in_flight / cwnd + toll * rtt_ms; the open path of least fill_j",
        params: vec![Param::integer("toll", 0, (0, 1_000), "thousandths per ms of round trip")],
        source: "our choice",
        confidence: Confidence::High,
        build: &|values, _| Ok(Built::path(LeastFull { toll: values.integer("toll")? })),
    };
    registry.add(entry).expect("the name is free");
    quipu_cli::run(&registry)
}
