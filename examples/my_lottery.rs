//! A scheduler that draws random numbers; `docs/write-a-scheduler.md` tells when it may.
use quipu_cli::base::{Random, uniform};
use quipu_cli::policy::path::{eligible, rest_unless_stuck};
use quipu_cli::policy::registry::Confidence;
use quipu_cli::policy::{
    Built, Choice, Entry, Event, Layer, Notes, Parcel, PathPolicy, Registry, View,
};

/// Each packet takes an open path by lot, in proportion to windows.
struct Lottery {
    random: Random,
    /// From 0 to below 1; drawn anew for each packet.
    ticket: f64,
}

impl PathPolicy for Lottery {
    fn select(&mut self, parcel: &Parcel<'_>, view: &View<'_>, _notes: &mut Notes) -> Choice {
        // Nothing is drawn here: asked twice, the answer is the same.
        let open = || eligible(view.paths).filter(|path| path.is_open(view.now));
        let mut left = self.ticket * open().map(|path| path.cwnd.0 as f64).sum::<f64>();
        let drawn = open().find(|path| {
            left -= path.cwnd.0 as f64;
            left < 0.0
        });
        let path = drawn.or_else(|| open().next());
        path.map_or_else(|| rest_unless_stuck(parcel, view), |path| Choice::Now(path.key))
    }

    fn on_event(&mut self, event: &Event<'_>, _view: &View<'_>) {
        if let Event::Sent(_) = event {
            self.ticket = uniform(&mut self.random);
        }
    }
}

fn main() -> std::process::ExitCode {
    let mut registry = Registry::builtin();
    let entry = Entry {
        name: "my-lottery",
        layer: Layer::Path,
        about: "an open path by lot, in proportion to windows",
        formula: "p_j = cwnd_j / sum of the open paths' cwnd, drawn anew for each packet",
        params: Vec::new(),
        source: "our choice",
        confidence: Confidence::High,
        build: &|_, context| {
            let mut random = context.random("my-lottery");
            let ticket = uniform(&mut random);
            Ok(Built::path(Lottery { random, ticket }))
        },
    };
    registry.add(entry).expect("the name is free");
    quipu_cli::run(&registry)
}
