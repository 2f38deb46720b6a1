//! The path policies that can be chosen by name.

use quipu_base::{Duration, PathId};

use super::{IdleProbe, MinRtt, Single};
use crate::registry::{Built, Confidence, Entry, Layer, Param};

const PROBE: Param = Param::time(
    "probe",
    IdleProbe::INTERVAL,
    (Duration::ZERO, Duration::from_secs(3_600)),
    "idle time after which a path is refreshed with a PING; 0s: never",
);

pub(crate) fn entries() -> Vec<Entry> {
    vec![minrtt(), single()]
}

fn minrtt() -> Entry {
    Entry {
        name: "minrtt",
        layer: Layer::Path,
        about: "the open path of least smoothed round-trip time, probed paths first",
        params: vec![PROBE],
        source: "mp-quic (De Coninck and Bonaventure, CoNEXT 2017), code",
        confidence: Confidence::High,
        build: |values, _| Ok(Built::path(MinRtt::new(values.time("probe")?))),
    }
}

fn single() -> Entry {
    let id = Param::integer("id", 0, (0, u64::from(u32::MAX)), "identifier of the path");
    Entry {
        name: "single",
        layer: Layer::Path,
        about: "everything on one path; another one only while that cannot carry data",
        params: vec![id],
        source: "our choice",
        confidence: Confidence::High,
        build: |values, _| {
            let id = u32::try_from(values.integer("id")?).unwrap_or(u32::MAX);
            Ok(Built::path(Single::new(PathId(id))))
        },
    }
}
