//! The stream policies by name.

use super::{Fifo, FluidWrr, GroupedWrr, Pack, QuantumWrr, RoundRobin};
use super::{ScatteredWrr, SmoothWrr, Tokens};
use crate::registry::{BuildContext, BuildError, Built, Confidence, Entry, Layer, Param, Values};

const FRAMEWORK: &str = "\"A Novel Framework for HTTP/2 over MPQUIC\" (2025)";

/// The stream policies of this crate.
pub(crate) fn entries() -> Vec<Entry> {
    vec![
        stream(
            "rr",
            "streams take turns, whatever their priority",
            vec![Param::choice(
                "unit",
                &["packet", "frame"],
                "a turn is a packet; or a frame, and packets are shared",
            )],
            "code of qdeconinck/mp-quic (frame); our choice (packet)",
            Confidence::High,
            |values, _| {
                Ok(match values.choice("unit")? {
                    "frame" => Built::stream(RoundRobin::new()).with_pack(Pack::Many),
                    _ => Built::stream(RoundRobin::new()),
                })
            },
        ),
        stream(
            "fifo",
            "bytes go in the order in which they were written",
            vec![Param::flag("retx_first", true, "lost bytes go before all new ones")],
            "\"Extending the ns-3 QUIC Module\" (2020) and code of signetlabdei/quic",
            Confidence::High,
            |values, _| {
                let built = Built::stream(Fifo::new());
                Ok(if values.flag("retx_first")? { built.with_lost_first() } else { built })
            },
        ),
        stream(
            "wrr",
            "shares by weight over the RFC 7540 dependency tree",
            vec![Param::choice(
                "mode",
                &["fluid", "quantum"],
                "fluid: packet by packet; quantum: as many packets in a row as the weight",
            )],
            "RFC 7540 section 5.3, start-time fair queueing (fluid); code of three prototypes \
             (quantum)",
            Confidence::High,
            |values, _| {
                Ok(match values.choice("mode")? {
                    "quantum" => Built::stream(QuantumWrr::new()),
                    _ => Built::stream(FluidWrr::new()),
                })
            },
        ),
        stream(
            "swrr",
            "weighted rounds of few packets per stream",
            vec![
                Param::choice(
                    "mode",
                    &["scaled", "as-published", "smooth"],
                    "scaled: as described; as-published: one packet each; smooth: spread evenly",
                ),
                Param::integer("most", 10, (1, 256), "packets of the heaviest in a round (scaled)"),
            ],
            "Xing et al. 2023 as quoted in \"A Novel Framework for HTTP/2 over MPQUIC\" (2025) and \
             its code; code of ytxing/mpquic-hbes (smooth, low confidence)",
            Confidence::MediumHigh,
            build_swrr,
        ),
        stream(
            "dwrr",
            "weight first, then short before long",
            vec![
                Param::choice(
                    "mode",
                    &["paper", "code"],
                    "paper: groups of equal weight with slots; code: quantum rounds, root sorted",
                ),
                Param::integer(
                    "slots",
                    10,
                    (1, 10_000),
                    "least packets of a round per group (paper)",
                ),
            ],
            FRAMEWORK,
            Confidence::Medium,
            build_dwrr,
        ),
    ]
}

fn build_swrr(values: &Values, _: &mut BuildContext) -> Result<Built, BuildError> {
    let most = u16::try_from(values.integer("most")?).unwrap_or(u16::MAX);
    Ok(match values.choice("mode")? {
        "as-published" => Built::stream(ScatteredWrr::new(Tokens::One)),
        "smooth" => Built::stream(SmoothWrr::new()),
        _ => Built::stream(ScatteredWrr::new(Tokens::Scaled(most))),
    })
}

fn build_dwrr(values: &Values, _: &mut BuildContext) -> Result<Built, BuildError> {
    let slots = u32::try_from(values.integer("slots")?).unwrap_or(u32::MAX);
    Ok(match values.choice("mode")? {
        "code" => Built::stream(QuantumWrr::with_sorted_root()),
        _ => Built::stream(GroupedWrr::new(slots)),
    })
}

fn stream(
    name: &'static str,
    about: &'static str,
    params: Vec<Param>,
    source: &'static str,
    confidence: Confidence,
    build: crate::registry::Build,
) -> Entry {
    Entry { name, layer: Layer::Stream, about, params, source, confidence, build }
}
