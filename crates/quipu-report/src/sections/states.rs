//! States of congestion controllers over time: bands behind what they decide.

use super::Draft;
use super::data::{Rows, text};
use super::words::line_of;
use crate::document::number;
use crate::loads::Loads;
use crate::spec::{Field, Layer, Mark};

/// The dataset.
pub(super) const ID: &str = "load-states";

/// What captions say of the bands.
pub(super) const CAPTION: &str = " Bands behind the lines, one above the other for each path, are the states \
                                  of its congestion controller.";

/// The states of all loads, as a layer behind lines; nothing if no controller tells any. At most `most` paths
/// of each load.
pub(super) fn states(loads: &Loads, most: usize, draft: &mut Draft) -> Option<Layer> {
    let mut rows = Rows::new(["policy", "line", "state", "from", "until"]);
    let mut names: Vec<String> = Vec::new();
    for load in &loads.loads {
        let detail = &load.detail;
        let several = detail.series.len() > 1;
        let at = |instant: quipu_base::Instant| {
            (instant.as_nanos() as f64 - detail.began_at.as_nanos() as f64) / 1e6
        };
        let paths = detail.series.iter().flat_map(|it| it.paths.iter().map(move |path| (it, path)));
        for (connection, path) in paths.take(most) {
            let line = line_of(several, &connection.flow, &path.name);
            for same in path.rows.chunk_by(|one, next| one.state == next.state) {
                let [first, ..] = same else { continue };
                let Some(state) = first.state else { continue };
                // A state lasts until the first sample of the next.
                let next = path.rows.iter().find(|row| row.at > same[same.len() - 1].at);
                let until = next.unwrap_or(&same[same.len() - 1]).at;
                if until <= first.at {
                    continue;
                }
                if !names.iter().any(|known| known == state) {
                    names.push(state.to_owned());
                }
                let times = [at(first.at), at(until)].map(number);
                rows.row([&load.policy, &line, state].map(text).into_iter().chain(times));
            }
        }
    }
    if rows.is_empty() {
        return None;
    }
    draft.dataset(ID, rows.build());
    let state = Field::name("state", "controller state", &names).pale();
    let layer = Layer::new(Mark::rect().styled("behind"))
        .of(ID)
        .with("x", Field::number("from", "since the start").in_time())
        .with("x2", Field::end("until"))
        .with("y", Field::label("line").without_axis())
        .with("fill", state)
        .with(
            "tooltip",
            vec![
                Field::label("line").titled("path"),
                Field::label("state").titled("controller state"),
                Field::number("from", "from, ms"),
                Field::number("until", "until, ms"),
            ],
        );
    Some(layer)
}
