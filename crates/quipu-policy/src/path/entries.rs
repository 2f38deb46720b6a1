//! The path policies that can be chosen by name.

use quipu_base::{Duration, PathId};

use super::{Backlog, Bind, Ecf, IdleProbe, MinRtt, Pats, RoundRobin, Single, Turns};
use crate::registry::{BuildError, Built, Confidence, Entry, Layer, Param, Values};
use crate::reinject::{Redundant, most_urgency};

/// How often idle paths are probed.
pub(crate) const PROBE: Param = Param::time(
    "probe",
    IdleProbe::INTERVAL,
    (Duration::ZERO, Duration::from_secs(3_600)),
    "idle time after which a path is refreshed with a PING; 0s: never",
);

/// When packets are bound to paths.
pub(crate) const BIND: Param = Param::choice(
    "bind",
    &["late", "early", "literal"],
    "when a packet is bound to a path; literal: to open ones only",
);

/// The value of [`BIND`].
pub(crate) fn bind(values: &Values) -> Result<Bind, BuildError> {
    Ok(match values.choice("bind")? {
        "early" => Bind::Early,
        "literal" => Bind::Literal,
        _ => Bind::Late,
    })
}

pub(crate) fn entries() -> Vec<Entry> {
    vec![minrtt(), round_robin(), single(), ecf(), pats(), redundant()]
}

/// The value of [`PROBE`].
pub(crate) fn probe(values: &Values) -> Result<IdleProbe, BuildError> {
    Ok(IdleProbe::new(values.time("probe")?))
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

fn round_robin() -> Entry {
    let turns = Param::choice(
        "by",
        &["cursor", "packets"],
        "next in order of identifier, or fewest packets sent",
    );
    Entry {
        name: "path-rr",
        layer: Layer::Path,
        about: "packets go round the open paths",
        params: vec![turns],
        source: "tquic (cursor) and mp-quic (packets), code",
        confidence: Confidence::High,
        build: |values, _| {
            let turns = match values.choice("by")? {
                "packets" => Turns::Packets,
                _ => Turns::Cursor,
            };
            Ok(Built::path(RoundRobin::new(turns)))
        },
    }
}

fn ecf() -> Entry {
    Entry {
        name: "ecf",
        layer: Layer::Path,
        about: "a slow path is used only if waiting for the fast one would not complete earlier",
        params: vec![
            Param::number("beta", Ecf::BETA, (0.0, 100.0), "how much longer it waits once it does"),
            Param::choice(
                "backlog",
                &["paper", "linux"],
                "waiting bytes as they are, or at least a window",
            ),
            PROBE,
        ],
        source: "ECF (Lim et al., CoNEXT 2017); Linux mptcp_ecf.c, code",
        confidence: Confidence::High,
        build: |values, _| {
            let backlog = match values.choice("backlog")? {
                "linux" => Backlog::Linux,
                _ => Backlog::Paper,
            };
            Ok(Built::path(Ecf::new(values.number("beta")?, backlog, probe(values)?)))
        },
    }
}

fn pats() -> Entry {
    Entry {
        name: "pats",
        layer: Layer::Path,
        about: "the path on which a packet arrives first, its window open or not",
        params: vec![
            BIND,
            Param::number(
                "lookahead",
                0.0,
                (0.0, 64.0),
                "most bytes planned, in sums of all windows; 0: 2 if late, 1 if early",
            ),
            Param::flag("rebind", true, "plans are made anew when a more urgent stream arrives"),
            PROBE,
        ],
        source: "OTIAS (Yang et al., 2014); PATS (Gao et al., 2024) after PW-PATS (Du et al., 2026)",
        confidence: Confidence::Medium,
        build: |values, _| {
            let lookahead = values.number("lookahead")?;
            Ok(Built::path(Pats::new(
                bind(values)?,
                lookahead,
                values.flag("rebind")?,
                probe(values)?,
            )))
        },
    }
}

fn redundant() -> Entry {
    Entry {
        name: "redundant",
        layer: Layer::Path,
        about: "minrtt, and every path carries all that is not yet acknowledged",
        params: vec![most_urgency(), PROBE],
        source: "Linux MPTCP, code",
        confidence: Confidence::High,
        build: |values, _| {
            let urgency = u8::try_from(values.integer("urgency")?).unwrap_or(7);
            let path = MinRtt::new(values.time("probe")?);
            Ok(Built::path(path).with_reinject(Redundant::new(urgency)))
        },
    }
}
