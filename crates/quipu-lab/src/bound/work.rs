//! How early several objects can be there together: the network carries no byte twice, and none before
//! it is released.

use quipu_base::Instant;

use super::chain::{Asked, Chains, Load};
use super::way::Way;

/// The earliest instant by which all `targets` can be complete.
///
/// Their bytes, and those that others must have before they are asked for, are released no earlier than
/// their chains say. So for every instant r, all that is released at r or later has to be carried after
/// r; and no target is there before its own chain ends.
pub(super) fn complete(
    load: &Load,
    chains: &Chains,
    down: &Way,
    start: Instant,
    targets: impl Fn(usize) -> bool,
) -> Instant {
    let needed = needed(load, &targets);
    let ends = (0..load.items.len()).filter(|index| targets(*index));
    let mut latest = ends.map(|index| chains.completed[index]).max().unwrap_or(start);

    let mut releases: Vec<(Instant, u64)> =
        chains.released.iter().copied().zip(needed).filter(|(_, bytes)| *bytes > 0).collect();
    releases.sort_unstable_by(|one, other| other.cmp(one));
    let mut bytes = 0_u64;
    let mut later = releases.into_iter().peekable();
    while let Some((at, more)) = later.next() {
        bytes = bytes.saturating_add(more);
        // All of one instant together.
        if later.peek().is_some_and(|(next, _)| *next == at) {
            continue;
        }
        if down.carried(at.as_nanos(), latest.as_nanos()) < bytes {
            latest = latest.max(down.earliest(at, bytes));
        }
    }
    latest
}

/// Bytes of each object, its head included, that must have arrived before all `targets` are complete.
fn needed(load: &Load, targets: &impl Fn(usize) -> bool) -> Vec<u64> {
    let whole = |index: usize| load.items[index].head + load.items[index].body;
    let mut needed: Vec<u64> =
        (0..load.items.len()).map(|index| if targets(index) { whole(index) } else { 0 }).collect();
    // Every object must be asked for before anything of it is sent.
    let mut asked: Vec<bool> = (0..load.items.len()).map(targets).collect();
    for &index in load.order.iter().rev() {
        if !asked[index] {
            continue;
        }
        for &need in &load.items[index].waits_for {
            needed[need] = whole(need);
            asked[need] = true;
        }
        let Some(parent) = load.items[index].asked.parent() else { continue };
        let of_parent = match load.items[index].asked {
            Asked::On { bytes, .. } => load.items[parent].head + bytes.min(load.items[parent].body),
            Asked::With { .. } => 0,
            _ => whole(parent),
        };
        needed[parent] = needed[parent].max(of_parent);
        asked[parent] = true;
    }
    needed
}
