//! The policies of this crate by name: an entry for each, with its parameters, its formula, its source, and what makes one.
//!
//! The [registry](crate::registry) is how policies are named, chosen and built; it knows none of them, and no
//! policy knows of it. Only here both are known.

use crate::registry::{Entry, Registry};

mod ack;
mod allotting;
mod congestion;
mod joint;
mod path;
mod reinject;
mod rules;
mod stream;

impl Registry {
    /// Every policy of this crate.
    pub fn builtin() -> Self {
        Registry::of_crate(entries())
    }
}

/// The policies of this crate, by layer, in the order in which they are listed.
fn entries() -> Vec<Entry> {
    let groups = [
        stream::entries(),
        path::entries(),
        joint::entries(),
        allotting::entries(),
        rules::entries(),
        reinject::entries(),
        ack::entries(),
        congestion::entries(),
    ];
    groups.into_iter().flatten().collect()
}
