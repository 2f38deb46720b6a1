//! The waterfall whose colours are the types of objects.

use super::super::data::{Rows, text};
use super::{
    CHOSEN, COLUMNS, LEAST_BAR, MARKS, Row, at, cells, critical, each, end, further, lines, marks,
    millis, most, ordered, tooltip,
};
use crate::document::{Control, Figure, number};
use crate::loads::{Loads, Replayed};
use crate::sections::Draft;
use crate::spec::{Field, Layer, Mark, Spec};

/// Types with a colour of their own: as many as the page has colours.
const MOST_TYPES: usize = 8;
/// All types without one.
const OTHER_TYPES: &str = "other";

/// The types of all objects, in the order of their first ones; those with the fewest objects count as other types if there
/// are more types than colours.
fn with_colours<'a>(kinds: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut types: Vec<(&str, usize)> = Vec::new();
    for kind in kinds {
        match types.iter_mut().find(|(name, _)| *name == kind) {
            Some((_, count)) => *count += 1,
            None => types.push((kind, 1)),
        }
    }
    let mut counts: Vec<usize> = types.iter().map(|(_, count)| *count).collect();
    counts.sort_unstable_by(|one, next| next.cmp(one));
    let is_too_many = types.len() > MOST_TYPES;
    let least = counts.get(MOST_TYPES - 1).filter(|_| is_too_many).map_or(0, |count| count + 1);
    let mut names: Vec<String> = types
        .into_iter()
        .filter(|(kind, count)| *count >= least && !(is_too_many && *kind == OTHER_TYPES))
        .map(|(kind, _)| kind.to_owned())
        .collect();
    if is_too_many {
        names.push(OTHER_TYPES.to_owned());
    }
    names
}

/// The same coloured by type, in the order of requests or of priorities.
pub(super) fn by_type(loads: &Loads, controls: &[Control], alt: &str, draft: &mut Draft) -> Figure {
    let (id, events_id) = ("waterfall-types", "waterfall-events");
    let objects = loads.loads.iter().flat_map(|load| &load.detail.objects);
    let types = with_colours(objects.map(|object| object.kind.as_str()));
    let mut rows = Rows::new(CHOSEN.into_iter().chain(COLUMNS).chain(["type", "bar_to"]));
    for (Replayed { policy, detail, .. }, order) in each(loads) {
        let (end, critical) = (end(detail), critical(detail));
        for Row { label, part, object } in ordered(detail, order, most(loads)) {
            let cells = cells(detail, &label, object, critical.contains(&object.object));
            let chosen = [policy, order, part.as_str()].map(text);
            let is_named = types.contains(&object.kind);
            let kind = if is_named { object.kind.as_str() } else { OTHER_TYPES };
            let least = millis(object.first_byte) + LEAST_BAR * end;
            let bar = [text(kind), number(millis(object.completed).max(least))];
            rows.row(chosen.into_iter().chain(cells).chain(bar));
        }
    }
    let bars = Layer::new(Mark::bar(0.7))
        .with("y", Field::sorted("object", ""))
        .with("x", at("first_byte"))
        .with("x2", Field::end("bar_to"))
        .with("color", Field::name("type", "type", &types))
        .with("tooltip", tooltip());
    let spec = Spec::steps(id, 14).named("object", "url");
    let spec = marks(lines(spec, loads).layer(bars), events_id, loads);
    draft.dataset(id, rows.build());
    Figure {
        id: id.to_owned(),
        title: "Waterfall by type".to_owned(),
        caption: format!(
            "The same objects: thin lines reach from request to completion, bars from the first byte to \
             the last, in the colour of the type. {MARKS}{}",
            further(loads)
        ),
        alt: alt.to_owned(),
        spec: spec.value(),
        datasets: [id, events_id].map(str::to_owned).to_vec(),
        controls: controls.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(kinds: &[(&str, usize)]) -> Vec<String> {
        let kinds = kinds.iter().flat_map(|(kind, count)| std::iter::repeat_n(*kind, *count));
        with_colours(kinds)
    }

    #[test]
    fn types_have_colours_until_there_are_more_of_them() {
        let eight = ["a", "b", "c", "d", "e", "f", "g", "other"].map(|kind| (kind, 1));
        assert_eq!(named(&eight), eight.map(|(kind, _)| kind));
        let nine = ["a", "b", "c", "d", "e", "f", "g", "other", "h"];
        let nine: Vec<(&str, usize)> = nine.into_iter().zip([9, 8, 7, 6, 5, 4, 3, 3, 2]).collect();
        assert_eq!(named(&nine), ["a", "b", "c", "d", "e", "f", "other"]);
        let many: Vec<String> = (0..40).map(|kind| kind.to_string()).collect();
        assert_eq!(with_colours(many.iter().map(String::as_str)), ["other"]);
    }
}
