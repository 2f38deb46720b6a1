//! Stream policies by name.

use quipu_base::Duration;

use crate::registry::{
    Build, BuildContext, BuildError, Built, Confidence, Entry, Layer, Param, Values,
};
use crate::stream::{
    ByChunk, ByPriority, FairSojourn, FluidWrr, GroupedWrr, Mixed, Pack, QuantumWrr, Ranked,
    RoundRobin, ScatteredWrr, SmoothWrr, Tokens, UrgencyLevels,
};

const NS3: &str = "\"Extending the ns-3 QUIC Module\" (2020) and code of signetlabdei/quic";
const FRAMEWORK: &str = "\"A Novel Framework for HTTP/2 over MPQUIC\" (2025)";

/// The stream policies of this crate.
pub(super) fn entries() -> Vec<Entry> {
    let mut entries = orders();
    entries.extend(shares());
    entries
}

/// Those that do not share by weight.
fn orders() -> Vec<Entry> {
    let mut orders = vec![
        stream(
            "rr",
            "streams take turns, whatever their priority",
            "next = the first ready stream after the last one served, in order of arrival;\n\
             unit=packet: one stream per packet, unit=frame: the turns that follow share it",
            vec![Param::choice(
                "unit",
                &["packet", "frame"],
                "a turn is a packet; or a frame, and packets are shared",
            )],
            "code of qdeconinck/mp-quic (frame); our choice (packet)",
            Confidence::High,
            &|values, _| {
                Ok(match values.choice("unit")? {
                    "frame" => Built::stream(RoundRobin::new()).with_pack(Pack::Many),
                    _ => Built::stream(RoundRobin::new()),
                })
            },
        ),
        stream(
            "fifo",
            "bytes go in the order in which they were written",
            "key of a written chunk = (time written, stream, offset), least first;\n\
             lost bytes: before all (retx_first), else the key of their chunk",
            vec![retx_first(true)],
            NS3,
            Confidence::High,
            &|values, _| lost_first(Built::stream(ByChunk::fifo()), values),
        ),
        stream(
            "pfifo",
            "the stream of least identifier sends all that it has",
            "key = (stream, offset), least first; lost bytes: the same key, or before all (retx_first)",
            vec![retx_first(false)],
            NS3,
            Confidence::High,
            &|values, _| lost_first(Built::stream(Ranked::pfifo()), values),
        ),
        stream(
            "edf",
            "what was written goes in the order of its deadlines",
            "deadline of a chunk = time written + latency of its stream;\n\
             key = (deadline, stream, offset), least first; lost parts keep their deadline, or go before all (retx_first)",
            vec![
                retx_first(false),
                Param::time(
                    "latency",
                    Duration::from_millis(100),
                    (Duration::ZERO, Duration::from_secs(3_600)),
                    "from writing to deadline, for streams that have none of their own",
                ),
            ],
            NS3,
            Confidence::High,
            &|values, _| lost_first(Built::stream(ByChunk::edf(values.time("latency")?)), values),
        ),
    ];
    orders.extend(ranks());
    orders
}

/// Those that order by priority or size.
fn ranks() -> Vec<Entry> {
    vec![
        stream(
            "rfc9218",
            "urgency levels; streams one after the other, or in turns if incremental",
            "least urgency number first; in a level non-incremental streams one by one in order of id,\n\
             incremental ones round robin; mixed=first: the former first, mixed=fair: by turns;\n\
             starvation_guard: one packet in 64 to the next level",
            vec![
                Param::choice(
                    "mixed",
                    &["first", "fair"],
                    "in a level non-incremental streams go first; or packets alternate",
                ),
                Param::flag(
                    "starvation_guard",
                    false,
                    "one packet in 64 goes to the next lower level",
                ),
            ],
            "RFC 9218 section 10; code of cloudflare/quiche (mixed=first); our choice \
             (starvation_guard)",
            Confidence::High,
            &|values, _| {
                let mixed = match values.choice("mixed")? {
                    "fair" => Mixed::Fair,
                    _ => Mixed::First,
                };
                let guard = values.flag("starvation_guard")?;
                Ok(Built::stream(UrgencyLevels::new(mixed, guard)))
            },
        ),
        stream(
            "strict",
            "the stream of highest priority sends all that it has",
            "key = (heaviest weight or least urgency, arrival), least first; never interleaved",
            vec![Param::choice(
                "by",
                &["weight", "urgency"],
                "highest weight, or lowest urgency number; ties by the other, then by arrival",
            )],
            "textbook; the order of PW-PATS (Du et al. 2026)",
            Confidence::High,
            &|values, _| {
                let by = match values.choice("by")? {
                    "urgency" => ByPriority::Urgency,
                    _ => ByPriority::Weight,
                };
                Ok(Built::stream(Ranked::strict(by)))
            },
        ),
        stream(
            "srpt",
            "the stream with least to send goes first",
            "key = (remaining bytes, id), least first; remaining = size - sent;\n\
             aging: key = remaining * (1 - age / horizon)",
            vec![
                Param::flag("aging", false, "waiting counts like being shorter"),
                Param::time(
                    "horizon",
                    Duration::from_secs(5),
                    (Duration::from_millis(1), Duration::from_secs(3_600)),
                    "age at which nothing shorter goes before a stream (aging)",
                ),
            ],
            "textbook (Schrage 1968); our choice (aging)",
            Confidence::High,
            &|values, _| {
                let horizon = values.time("horizon")?;
                let aging = values.flag("aging")?.then_some(horizon);
                Ok(Built::stream(Ranked::srpt(aging)))
            },
        ),
        stream(
            "sjf",
            "the stream of least total size goes first",
            "key = (size, id), least first; size stays what it was told to be",
            Vec::new(),
            "textbook",
            Confidence::High,
            &|_, _| Ok(Built::stream(Ranked::sjf())),
        ),
        stream(
            "fsp",
            "streams one after the other, as fair sharing by the tree would finish them",
            "simulate generalised processor sharing of the remaining bytes with the tree's shares;\n\
             serve streams one at a time in order of the simulated completions",
            Vec::new(),
            "Friedman and Henderson 2003; the order of \"A Multipath QUIC Scheduler for Mobile \
             HTTP/2\" (2019)",
            Confidence::High,
            &|_, _| Ok(Built::stream(FairSojourn::new())),
        ),
    ]
}

/// Those that share by weight over the dependency tree.
fn shares() -> Vec<Entry> {
    vec![
        stream(
            "wrr",
            "shares by weight over the RFC 7540 dependency tree",
            "share of stream s = product over s and its ancestors a of weight(a) / sum of the active siblings' weights;\n\
             fluid: serve the child of least virtual time v; sending b bytes adds b / weight to v;\n\
             quantum: a child sends weight packets in a row, then the next",
            vec![Param::choice(
                "mode",
                &["fluid", "quantum"],
                "fluid: packet by packet; quantum: as many packets in a row as the weight",
            )],
            "RFC 7540 section 5.3, start-time fair queueing (fluid); code of three prototypes \
             (quantum)",
            Confidence::High,
            &|values, _| {
                Ok(match values.choice("mode")? {
                    "quantum" => Built::stream(QuantumWrr::new()),
                    _ => Built::stream(FluidWrr::new()),
                })
            },
        ),
        stream(
            "swrr",
            "weighted rounds of few packets per stream",
            "scaled: tokens(i) = max(1, floor(weight(i) / g)),\n\
             g = greatest weight of active siblings / most;\n\
             as-published: tokens(i) = 1;\n\
             smooth: current(i) += weight(i); serve the greatest; its current -= sum of weights",
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
            &build_swrr,
        ),
        stream(
            "dwrr",
            "weight first, then short before long",
            "paper: group i of equal weight gets max(1, round(w_i / sum of the groups' w * R)) packets of a round,\n\
             R = max(10 * groups, active streams); heaviest group first, in it the least remaining bytes;\n\
             code: children sorted (leaves first, weight descending, buffered bytes ascending), then weight packets in a row",
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
            &build_dwrr,
        ),
    ]
}

const fn retx_first(default: bool) -> Param {
    Param::flag("retx_first", default, "lost bytes go before all new ones")
}

fn lost_first(built: Built, values: &Values) -> Result<Built, BuildError> {
    Ok(if values.flag("retx_first")? { built.with_lost_first() } else { built })
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
    formula: &'static str,
    params: Vec<Param>,
    source: &'static str,
    confidence: Confidence,
    build: Build,
) -> Entry {
    Entry { name, layer: Layer::Stream, about, formula, params, source, confidence, build }
}
