//! Joint policies that decide packet by packet, by name.

use super::path::{BIND, PROBE, bind, probe};
use crate::joint::{
    HbesPaths, Planned, PriorityRounds, SaEcf, SaEcfMode, SrptEcf, WeightedOrder, hbes, pw_pats,
};
use crate::path::{Ecf, Pats};
use crate::registry::{
    Build, BuildContext, BuildError, Built, Confidence, Entry, Layer, Param, Values,
};
use crate::stream::{QuantumWrr, StreamPolicy};

/// The joint policies of this crate that allot nothing.
pub(super) fn entries() -> Vec<Entry> {
    vec![sa_ecf(), srpt_ecf(), pw_pats_entry(), hbes_entry()]
}

fn joint(
    name: &'static str,
    about: &'static str,
    formula: &'static str,
    params: Vec<Param>,
    source: &'static str,
    confidence: Confidence,
    build: Build,
) -> Entry {
    Entry { name, layer: Layer::Joint, about, formula, params, source, confidence, build }
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
        "streams in WRR order, each with a flag waiting of its own; ECF's test with\n\
         k_s = L * (g * (rem/L - 1) + rem/L), g = (1 - share) / share, L = packet size, at most the bytes queued;\n\
         a stream that waits lets the next one try; all wait: wait",
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
        &|values, context| {
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

fn srpt_ecf() -> Entry {
    joint(
        "srpt-ecf",
        "the shortest stream first; it leaves a full fast path if waiting would not end it earlier",
        "streams by remaining bytes; ECF's test with k = bytes of all streams up to and with this one;\n\
         a stream that waits lets the next one try",
        vec![beta(), VISITS, PROBE],
        "SRPT-ECF (Jonglez et al., 2020), abstract; ECF (Lim et al., CoNEXT 2017)",
        Confidence::Medium,
        &|values, context| {
            let planner = SrptEcf::new(values.number("beta")?, visits(values)?, probe(values)?);
            Ok(Built::joint(Planned::of(planner, context.resend, context.pack)))
        },
    )
}

fn pw_pats_entry() -> Entry {
    joint(
        "pw-pats",
        "heavy streams first, each packet on the path on which it arrives first",
        "PF = 1 + log2(weight); high = the first max(s_min, ceil(alpha * N)) active streams by PF;\n\
         order (high, PF descending, arrival), strictly; path of least PAT_j / PF, which is that of least PAT_j",
        vec![
            Param::number("alpha", 1.0 / 3.0, (0.0, 1.0), "share of the streams that are high"),
            Param::integer("s_min", 1, (0, u64::from(u32::MAX)), "least number of high streams"),
            Param::integer(
                "pw_share",
                0,
                (0, u64::from(u32::MAX)),
                "low streams have one packet in so many, such as 32; 0: what is left",
            ),
            BIND,
            PROBE,
        ],
        "PW-PATS (Du et al., 2026); alpha and s_min are our choice",
        Confidence::Medium,
        &build_pw_pats,
    )
}

fn build_pw_pats(values: &Values, context: &mut BuildContext) -> Result<Built, BuildError> {
    let whole = |name| -> Result<u32, BuildError> {
        Ok(u32::try_from(values.integer(name)?).unwrap_or(u32::MAX))
    };
    let order = WeightedOrder::new(values.number("alpha")?, whole("s_min")?, whole("pw_share")?);
    let paths = Pats::new(bind(values)?, 0.0, true, probe(values)?);
    Ok(Built::joint(pw_pats(order, paths, context.resend, context.pack)))
}

fn hbes_entry() -> Entry {
    joint(
        "hbes",
        "weighted rounds of streams; a packet waits for the path on which it arrives first",
        "A_j = (L + q_j) / BW_j + srtt_j / 2, BW_j = cwnd_j / srtt_j, q_j = bytes stored for j;\n\
         store the packet for the path of least A_j, open or not; paths send what is stored for them first",
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
        &build_hbes,
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
