//! Reproducing the papers: experiments with verdicts.
//!
//! - [`Experiment`]: the `[experiment]` table of a scenario file: claims, rules, the papers' numbers.
//! - [`cases`]: the ids of a file, each with its own scenario and experiment; [`choose`]: those that come
//!   with the program, by name.
//! - [`Job`]: an id ready to run. [`reproduce`]: all of them on all cores, and what was found ([`Judged`]).
//!
//! Within: `settings` changes scenarios, `places` tells what a rule compares, `select` and `samples` take
//! numbers from runs, `compare` makes estimates of them, `verdict` judges; `docs` writes it down. The format
//! is explained in `docs/reproduce.md`.

mod axes;
mod catalogue;
mod compare;
mod data;
mod docs;
mod job;
mod metric;
mod places;
mod runner;
mod samples;
mod select;
mod settings;
mod spec;
mod threshold;
mod verdict;

use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, Deserialize, Deserializer, MapAccess, value};

pub use axes::{Case, cases};
pub use catalogue::{builtin, choose};
pub use data::DataRow;
pub use docs::{check_page, counts, page, terminal};
pub use job::{ExperimentError, Job, Origin, load};
pub use metric::{Column, Metric, Named, Quantity, Stat};
pub use runner::{Place, Progress, ReproduceError, Todo, VERDICTS, reproduce, stored};
pub use settings::Settings;
pub(crate) use settings::put_at;
pub use spec::{
    AxisValue, Data, DataValue, Experiment, Others, Paper, Places, Quick, Rule, RuleKind, Side,
    Test, Variant, Verdict,
};
pub use threshold::{Amount, Dimension, Position, Threshold};
pub use verdict::{BoundRow, Finding, Judged, RuleVerdict};

/// Reads a table, or what `named` makes of a text.
fn text_or_table<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
    expected: &'static str,
    named: impl FnOnce(&str) -> T,
) -> Result<T, D::Error> {
    struct Reader<T, F> {
        expected: &'static str,
        named: F,
        table: PhantomData<T>,
    }

    impl<'de, T: Deserialize<'de>, F: FnOnce(&str) -> T> de::Visitor<'de> for Reader<T, F> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.expected)
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
            Ok((self.named)(text))
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
            T::deserialize(value::MapAccessDeserializer::new(map))
        }
    }

    deserializer.deserialize_any(Reader { expected, named, table: PhantomData })
}

#[cfg(test)]
mod tests;
