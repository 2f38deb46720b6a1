//! The joint policies by name.

use super::hbes::{HbesPaths, PriorityRounds, hbes};
use super::planned::Planned;
use super::sa_ecf::{SaEcf, SaEcfMode};
use crate::path::{Ecf, PROBE, probe};
use crate::registry::{
    Build, BuildContext, BuildError, Built, Confidence, Entry, Layer, Param, Values,
};
use crate::stream::{QuantumWrr, StreamPolicy};

/// The joint policies of this crate.
pub(crate) fn entries() -> Vec<Entry> {
    vec![sa_ecf(), hbes_entry()]
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

const VISITS: Param = Param::integer(
    "visits",
    0,
    (0, u32::MAX as u64),
    "most streams looked at while the fast path is full; 0: all",
);

fn beta() -> Param {
    Param::number("beta", Ecf::BETA, (0.0, 100.0), "how much longer a stream waits once it does")
}

fn visits(values: &Values) -> Result<usize, BuildError> {
    Ok(usize::try_from(values.integer("visits")?).unwrap_or(usize::MAX))
}

fn sa_ecf() -> Entry {
    joint(
        "sa-ecf",
        "weighted rounds; a stream leaves a full fast path only if waiting would not end it earlier",
        vec![
            Param::choice(
                "mode",
                &["paper", "as-built"],
                "as described, or as in the code of the HTTP/2 framework",
            ),
            beta(),
            Param::flag("pin", false, "a stream stays on its first path"),
            VISITS,
            PROBE,
        ],
        "SA-ECF (Rabitsch et al., EPIQ 2018), code of rainbowsnail/mp-quic; as built: code of \
         \"A Novel Framework for HTTP/2 over MPQUIC\" (2025)",
        Confidence::High,
        |values, context| {
            let mode = match values.choice("mode")? {
                "as-built" => SaEcfMode::AsBuilt,
                _ => SaEcfMode::Paper,
            };
            let (beta, pin) = (values.number("beta")?, values.flag("pin")?);
            let planner = SaEcf::new(mode, beta, pin, visits(values)?, probe(values)?);
            Ok(Built::joint(Planned::of(planner, context.resend, context.pack)))
        },
    )
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
