//! From parents to [`Discovery`]: byte offsets for what a parser finds, delays for the rest.
//!
//! A recording tells lines, a load needs bytes. With `d` decoded bytes and lines of one length, a
//! child in line `l` and column `c` stands at decoded byte `l · d/lines + c`, and the parser has
//! come there when the same share of the encoded body has arrived. The number of lines is not
//! recorded: where children name at least four different lines, the last of them is taken as the
//! document's last line, because pages end with scripts; else lines have 80 bytes (our choice).
//! Children without a line are spread evenly, in document order.
//!
//! An inline script's request is placed where the script stands, unless it was recorded after the
//! document's end: then the script waited for something, and the gap is kept.

use std::collections::BTreeSet;

use quipu_base::{Bytes, Duration};

use super::initiator::{Edge, Position};
use super::select::Draft;
use super::{Discovery, ObjectId, ObjectKind};

/// No recorded delay is believed beyond this: 10 minutes, our choice.
pub(super) const MAX_DELAY: Duration = Duration::from_secs(600);

/// Bytes of a line where the number of lines is unknown.
const LINE_BYTES: f64 = 80.0;

/// Different lines that children must name before the last one counts as the document's end.
const LINES_TO_TRUST: usize = 4;

/// How a discovery was worked out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Basis {
    /// Delay as recorded, or nothing to work out.
    Delay,
    /// A recorded delay above [`MAX_DELAY`] was cut.
    DelayCut,
    /// Offset from a line.
    Line,
    /// Offset by even spreading.
    Spread,
}

/// The discovery of each draft. Ids are positions.
pub(super) fn discoveries(drafts: &[Draft<'_>]) -> Vec<(Discovery, Basis)> {
    let mut found: Vec<_> = drafts.iter().map(|draft| after_completion(drafts, draft)).collect();
    for (parent, children) in parsed_children(drafts) {
        place(drafts, parent, &children, &mut found);
    }
    found
}

/// Id of the draft at `index`.
pub(super) fn id_of(index: usize) -> ObjectId {
    // In range: a file has at most MAX_ENTRIES.
    ObjectId(u32::try_from(index).unwrap_or(u32::MAX))
}

fn after_completion(drafts: &[Draft<'_>], child: &Draft<'_>) -> (Discovery, Basis) {
    let Some(parent) = child.parent else { return (Discovery::Root, Basis::Delay) };
    let recorded = child.start.saturating_sub(drafts[parent].end);
    let basis = if recorded > MAX_DELAY { Basis::DelayCut } else { Basis::Delay };
    (Discovery::AfterCompletion { parent: id_of(parent) }, basis)
}

/// From the end of the parent to the request of `child`, where it was found by nothing else.
pub(super) fn gap(drafts: &[Draft<'_>], child: &Draft<'_>) -> Duration {
    let end = child.parent.map(|parent| drafts[parent].end);
    end.map_or(Duration::ZERO, |end| child.start.saturating_sub(end)).min(MAX_DELAY)
}

/// True if `child` was found by its parent's parser, or came with its parent.
fn is_parsed(parent: &Draft<'_>, child: &Draft<'_>) -> bool {
    match child.edge {
        Edge::Push | Edge::Arriving => true,
        Edge::Initiator { by_script, .. } => {
            let waited = by_script && child.start >= parent.end;
            parent.kind == ObjectKind::Document && !waited
        }
        Edge::None | Edge::Ended | Edge::Redirect => false,
    }
}

/// The children that parsers find, per parent, each list in order of start.
fn parsed_children(drafts: &[Draft<'_>]) -> Vec<(usize, Vec<usize>)> {
    let mut pairs: Vec<_> = drafts
        .iter()
        .enumerate()
        .filter_map(|(child, draft)| {
            let parent = draft.parent?;
            is_parsed(&drafts[parent], draft).then_some((parent, child))
        })
        .collect();
    pairs.sort_unstable();
    pairs
        .chunk_by(|one, other| one.0 == other.0)
        .map(|family| (family[0].0, family.iter().map(|&(_, child)| child).collect()))
        .collect()
}

/// Writes the offsets of the `children` that the parser of `parent` finds.
fn place(
    drafts: &[Draft<'_>],
    parent: usize,
    children: &[usize],
    found: &mut [(Discovery, Basis)],
) {
    let body = drafts[parent].sizes.body;
    let decoded = drafts[parent].entry.response.content.size.unwrap_or(0.0).max(body.0 as f64);
    let position = |child: usize| match drafts[child].edge {
        Edge::Initiator { at, .. } => at,
        _ => None,
    };
    let lines = line_count(children.iter().filter_map(|&child| position(child)), decoded);
    let unplaced = children
        .iter()
        .filter(|&&child| position(child).is_none() && at_head(drafts, parent, child).is_none())
        .count();
    let mut rank = 0_usize;
    for &child in children {
        let (share, basis) = match (at_head(drafts, parent, child), position(child)) {
            (Some(()), _) => (0.0, Basis::Delay),
            (None, Some(at)) if decoded > 0.0 => {
                ((at.line / lines + at.column / decoded).min(1.0), Basis::Line)
            }
            _ => {
                rank += 1;
                (rank as f64 / (unplaced + 1) as f64, Basis::Spread)
            }
        };
        let offset = Bytes((share * body.0 as f64) as u64).min(body);
        found[child] = (Discovery::ParserOffset { parent: id_of(parent), offset }, basis);
    }
}

/// Some if `child` comes with the head of the parent's response: it was pushed, or asked for
/// before the parent was.
fn at_head(drafts: &[Draft<'_>], parent: usize, child: usize) -> Option<()> {
    let early = drafts[child].start < drafts[parent].start;
    (drafts[child].edge == Edge::Push || early).then_some(())
}

/// Lines of a document of `decoded` bytes whose children stand at `positions`: at least 1.
fn line_count(positions: impl Iterator<Item = Position>, decoded: f64) -> f64 {
    // Lines are compared as integers; a float of any size saturates.
    let lines: BTreeSet<u64> = positions.map(|at| at.line as u64).collect();
    let last = lines.last().copied().unwrap_or(0).saturating_add(1) as f64;
    if lines.len() >= LINES_TO_TRUST { last } else { last.max(decoded / LINE_BYTES) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: f64) -> Position {
        Position { line, column: 0.0 }
    }

    #[test]
    fn many_lines_tell_the_length_of_the_document_and_few_do_not() {
        let many = [at(1.0), at(5.0), at(80.0), at(99.0)];
        assert_eq!(line_count(many.into_iter(), 1e6), 100.0);
        assert_eq!(line_count([at(8.0)].into_iter(), 80_000.0), 1_000.0);
        assert_eq!(line_count([at(8.0)].into_iter(), 80.0), 9.0);
        assert_eq!(line_count([].into_iter(), 0.0), 1.0);
    }
}
