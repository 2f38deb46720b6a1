//! Joint policies that allot the bytes of streams to paths beforehand, by name.

use super::path::{PROBE, probe};
use crate::joint::{
    Allotter, Allotting, AtStart, Bandwidth, Clamp, DelayTerm, Estimator, MsHs, Queue, Quotas, Sec,
    Unknown,
};
use crate::registry::{BuildContext, BuildError, Built, Confidence, Entry, Layer, Param, Values};

const BANDWIDTH: Param = Param::choice(
    "bandwidth",
    &["window", "rate"],
    "of a path: window over round-trip time, or the measured delivery rate",
);

/// The joint policies of this crate that allot.
pub(super) fn entries() -> Vec<Entry> {
    vec![sec(), pstream(), fstream(), ms_hs()]
}

fn build(
    allotter: impl Allotter + 'static,
    delay: DelayTerm,
    values: &Values,
    context: &BuildContext,
) -> Result<Built, BuildError> {
    let bandwidth = match values.choice("bandwidth")? {
        "rate" => Bandwidth::Rate,
        _ => Bandwidth::Window,
    };
    let allotting = Allotting::new(allotter, Estimator { delay, bandwidth }, probe(values)?);
    Ok(Built::joint(allotting.planned(context.resend, context.pack)))
}

fn sec() -> Entry {
    Entry {
        name: "sec",
        layer: Layer::Joint,
        about: "streams in the order of fair completion, each split so that it ends earliest",
        formula: "streams in order of GPS completion; d_j = rtt_j + Q_j; S_j = BW_j * (K - d_j) over the paths where K > d_j,\n\
                  K = (size + sum BW_j * d_j) / sum BW_j; then Q_j += S_j / BW_j (pipelined) or rtt_j + S_j / BW_j (paper);\n\
                  no more than S_j bytes of the stream go on path j",
        params: vec![
            Param::choice(
                "queue",
                &["pipelined", "paper"],
                "what a stream adds to the wait of the next: its bytes, or a round trip too",
            ),
            Param::choice(
                "clamp",
                &["fill", "paper"],
                "water-filling over the best paths, or all paths and shares below zero cut",
            ),
            Param::choice(
                "delay_term",
                &["rtt", "arrival"],
                "a stream ends when it is acknowledged, or when it arrives",
            ),
            BANDWIDTH,
            Param::choice(
                "unknown",
                &["turns", "buffered"],
                "streams of unknown size: all take turns, or what is buffered counts",
            ),
            Param::choice(
                "quotas",
                &["renewed", "fixed"],
                "allotments follow the estimates, or hold until streams or paths change",
            ),
            PROBE,
        ],
        source: "\"A Multipath QUIC Scheduler for Mobile HTTP/2\" (Wang, Gao, Xu, APNet 2019) and \
                 its code",
        confidence: Confidence::High,
        build: &|values, context| {
            let queue = match values.choice("queue")? {
                "paper" => Queue::Paper,
                _ => Queue::Pipelined,
            };
            let clamp = match values.choice("clamp")? {
                "paper" => Clamp::Paper,
                _ => Clamp::Fill,
            };
            let delay = match values.choice("delay_term")? {
                "arrival" => DelayTerm::Arrival,
                _ => DelayTerm::Rtt,
            };
            let unknown = match values.choice("unknown")? {
                "buffered" => Unknown::Buffered,
                _ => Unknown::Turns,
            };
            let quotas = match values.choice("quotas")? {
                "fixed" => Quotas::Fixed,
                _ => Quotas::Renewed,
            };
            let sec = Sec::new(queue, clamp, unknown, context.seed).with_quotas(quotas);
            build(sec, delay, values, context)
        },
    }
}

fn pstream() -> Entry {
    Entry {
        name: "pstream",
        layer: Layer::Joint,
        about: "a stream is split over its shares of the paths when it begins",
        formula: "streams in order of (weight descending, arrival); BW_j = share_j * bw_j; the bytes of a stream are split over paths\n\
                  so that all end at the same time, counting srtt_j / 2; fixed when the stream begins",
        params: vec![BANDWIDTH, PROBE],
        source: "PStream (Shi et al., ICCCN 2020), code of ytxing/mpquic-hbes",
        confidence: Confidence::High,
        build: &|values, context| build(AtStart::pstream(), DelayTerm::Arrival, values, context),
    }
}

fn fstream() -> Entry {
    Entry {
        name: "fstream",
        layer: Layer::Joint,
        about: "a stream as a whole goes to the path on which it would arrive first",
        formula: "a stream goes on one path: T_j = size / (share_j * bw_j) + srtt_j / 2, the least;\n\
                  share_j = w / (w + sum of weights on j); on each path streams share by weight",
        params: vec![BANDWIDTH, PROBE],
        source: "FStream (Shi et al., ICPADS 2019) after the code of PStream and the text of PW-PATS",
        confidence: Confidence::Medium,
        build: &|values, context| build(AtStart::fstream(), DelayTerm::Arrival, values, context),
    }
}

fn ms_hs() -> Entry {
    Entry {
        name: "ms-hs",
        layer: Layer::Joint,
        about: "critical streams first, and only on paths that speed them up; a reconstruction",
        formula: "critical streams strictly first, the others by weight; on each path in proportion to bandwidth;\n\
                  a critical stream only on paths with owd_j <= least owd + rem / sum of bandwidths",
        params: vec![
            Param::integer(
                "critical",
                u64::from(MsHs::URGENCY),
                (0, 7),
                "streams of this urgency and more urgent ones are critical",
            ),
            BANDWIDTH,
            PROBE,
        ],
        source: "MS-HS (Liang et al., ISCTech 2022), one sentence in PW-PATS; mostly our \
                 reconstruction",
        confidence: Confidence::Low,
        build: &|values, context| {
            let urgency = u8::try_from(values.integer("critical")?).unwrap_or(7);
            build(MsHs::new(urgency), DelayTerm::Arrival, values, context)
        },
    }
}
