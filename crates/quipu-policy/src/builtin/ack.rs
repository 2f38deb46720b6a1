//! Acknowledgement policies by name.

use quipu_base::Duration;

use crate::ack::{All, Any, LeastRtt, MinOwd, Own};
use crate::registry::{Built, Confidence, Entry, Layer, Param};

/// The acknowledgement policies of this crate.
pub(super) fn entries() -> Vec<Entry> {
    vec![own(), min_rtt(), any(), all(), min_owd()]
}

fn own() -> Entry {
    Entry {
        name: "own",
        layer: Layer::Ack,
        about: "on the path whose packets are acknowledged",
        formula: "return path of j = j; while that cannot be used, the usable path of least srtt",
        params: Vec::new(),
        source: "mp-quic and xquic, code",
        confidence: Confidence::High,
        build: &|_, _| Ok(Built::ack(Own)),
    }
}

fn min_rtt() -> Entry {
    Entry {
        name: "min-rtt",
        layer: Layer::Ack,
        about: "on the usable path of least smoothed round-trip time",
        formula: "return path = the usable path of least srtt",
        params: Vec::new(),
        source: "XLINK (Zheng et al., SIGCOMM 2021); picoquic, code",
        confidence: Confidence::High,
        build: &|_, _| Ok(Built::ack(LeastRtt)),
    }
}

fn any() -> Entry {
    Entry {
        name: "any",
        layer: Layer::Ack,
        about: "on whatever packet leaves next, else as own",
        formula: "return path = that of the packet that leaves next; else the path itself",
        params: Vec::new(),
        source: "xquic, code",
        confidence: Confidence::High,
        build: &|_, _| Ok(Built::ack(Any)),
    }
}

fn all() -> Entry {
    Entry {
        name: "all",
        layer: Layer::Ack,
        about: "a copy on every usable path",
        formula: "a copy of each acknowledgement on every path",
        params: Vec::new(),
        source: "the field's plainest redundancy; our choice",
        confidence: Confidence::High,
        build: &|_, _| Ok(Built::ack(All)),
    }
}

fn min_owd() -> Entry {
    let hour = Duration::from_secs(3_600);
    Entry {
        name: "min-owd",
        layer: Layer::Ack,
        about: "on the path that the peer measured to be the fastest way back; own if it does not",
        formula: "the sender measures rtt[j][r] of data path j by acknowledgements copied on every return path r;\n\
                  it asks for r* = argmin rtt[j][r] if rtt[j][r*] < rtt[j][in use] - max(rttvar, 5 ms); by CHANGE_RETURN_PATH;\n\
                  the receiver obeys, and returns to own at a probe timeout of r*; without the extension: own",
        params: vec![
            Param::time(
                "probe",
                MinOwd::PROBE_INTERVAL,
                (Duration::from_millis(100), hour),
                "so often the next acknowledgement of a path goes on all paths",
            ),
            Param::time(
                "margin",
                MinOwd::MARGIN,
                (Duration::ZERO, hour),
                "least gain for which the return path changes; more if the round-trip time varies",
            ),
        ],
        source: "MobileH2 (Wang et al., APNet 2019), paper and code",
        confidence: Confidence::High,
        build: &|values, _| {
            Ok(Built::ack(MinOwd::new(values.time("probe")?, values.time("margin")?)))
        },
    }
}
