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
        params: Vec::new(),
        source: "mp-quic and xquic, code",
        confidence: Confidence::High,
        build: |_, _| Ok(Built::ack(Own)),
    }
}

fn min_rtt() -> Entry {
    Entry {
        name: "min-rtt",
        layer: Layer::Ack,
        about: "on the usable path of least smoothed round-trip time",
        params: Vec::new(),
        source: "XLINK (Zheng et al., SIGCOMM 2021); picoquic, code",
        confidence: Confidence::High,
        build: |_, _| Ok(Built::ack(LeastRtt)),
    }
}

fn any() -> Entry {
    Entry {
        name: "any",
        layer: Layer::Ack,
        about: "on whatever packet leaves next, else as own",
        params: Vec::new(),
        source: "xquic, code",
        confidence: Confidence::High,
        build: |_, _| Ok(Built::ack(Any)),
    }
}

fn all() -> Entry {
    Entry {
        name: "all",
        layer: Layer::Ack,
        about: "a copy on every usable path",
        params: Vec::new(),
        source: "the field's plainest redundancy; our choice",
        confidence: Confidence::High,
        build: |_, _| Ok(Built::ack(All)),
    }
}

fn min_owd() -> Entry {
    let hour = Duration::from_secs(3_600);
    Entry {
        name: "min-owd",
        layer: Layer::Ack,
        about: "on the path that the peer measured to be the fastest way back; min-rtt if it does not",
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
        build: |values, _| {
            Ok(Built::ack(MinOwd::new(values.time("probe")?, values.time("margin")?)))
        },
    }
}
