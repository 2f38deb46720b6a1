//! The joint policies by name.

use super::hbes::{HbesPaths, PriorityRounds, hbes};
use crate::path::{PROBE, probe};
use crate::registry::{
    Build, BuildContext, BuildError, Built, Confidence, Entry, Layer, Param, Values,
};
use crate::stream::{QuantumWrr, StreamPolicy};

/// The joint policies of this crate.
pub(crate) fn entries() -> Vec<Entry> {
    vec![hbes_entry()]
}

fn joint(
    name: &'static str,
    about: &'static str,
    params: Vec<Param>,
    source: &'static str,
    confidence: Confidence,
    build: Build,
) -> Entry {
    Entry { name, layer: Layer::Joint, about, params, source, confidence, build }
}

fn hbes_entry() -> Entry {
    joint(
        "hbes",
        "weighted rounds of streams; a packet waits for the path on which it arrives first",
        vec![
            Param::choice(
                "order",
                &["prr", "wrr"],
                "of streams: rounds packet by packet, or quantum rounds over the tree",
            ),
            Param::flag("rebind", false, "plans are made anew when the order of streams changes"),
            Param::flag(
                "stay",
                false,
                "a stream leaves its path only for one that is earlier by its deviation",
            ),
            PROBE,
        ],
        "HBES (Xing et al., IEEE TWC 2023), code of ytxing/mpquic-hbes",
        Confidence::MediumHigh,
        build_hbes,
    )
}

fn build_hbes(values: &Values, context: &mut BuildContext) -> Result<Built, BuildError> {
    let order: Box<dyn StreamPolicy> = match values.choice("order")? {
        "wrr" => Box::new(QuantumWrr::new()),
        _ => Box::new(PriorityRounds::new()),
    };
    let paths = HbesPaths::new(values.flag("stay")?, values.flag("rebind")?, probe(values)?);
    Ok(Built::joint(hbes(order, paths, context.resend, context.pack)))
}
