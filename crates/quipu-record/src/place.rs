//! The columns that say which run a row is of: all tables begin with them.

use crate::names::{Place, RunNames};
use crate::tables::{Column, Value, columns};

/// What the rows of every table begin with.
pub(crate) static PLACE: [Column; 4] = columns! {
    /// the page's name, as the terminal shows it; empty without a page
    page: Text,
    /// the network's name
    network: Text,
    /// the policy's name
    policy: Text,
    /// number of the run, from 0; the same number means the same links, losses and page
    run: Whole,
};

/// What every row begins with, as values.
pub(crate) fn lead_of(names: &dyn RunNames) -> [Value<'_>; 4] {
    let Place { page, network, policy, run } = names.place();
    [Value::Text(page), Value::Text(network), Value::Text(policy), Value::Whole(run.into())]
}
