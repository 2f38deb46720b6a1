//! The `[experiment]` table of a scenario file: claims, rules and the papers' numbers.
//!
//! - [`Experiment`]: the table; [`Rule`]: when a claim counts as shown.
//! - [`OpenSetting`]: what the paper leaves open, with plausible values.
//! - [`ResultTable`]: a table of results, for texts to show.
//! - [`cases`]: the ids of a file, each a [`Case`] with its own scenario and experiment.
//! - [`Measure`]: what a rule looks at; [`Threshold`](quipu_record::threshold::Threshold): what it must be.
//!
//! Start with [`cases`], [`Experiment`] and [`Rule`].
//!
//! Not here: runs, and how a rule is judged. The format is explained in `docs/reproduce.md`.

mod measure;
mod settings;
mod spec;

pub use crate::cases::{Case, cases};
pub use measure::{Column, DRAWN, Measure, Metric, Named, Stat};
pub(crate) use settings::Change;
pub use settings::Settings;
pub use spec::{
    AxisValue, Data, DataValue, Experiment, Line, OpenSetting, OpenValue, Others, Part, Quick,
    ResultTable, Rule, Side, Test, Untestable, Variant,
};

#[cfg(test)]
mod tests;
