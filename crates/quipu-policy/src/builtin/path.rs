//! Path policies by name.

use quipu_base::{Duration, PathId};

use super::reinject::most_urgency;
use crate::path::{
    Backlog, Bind, Blest, Classes, Dems, Ecf, Estimate, IdleProbe, Lambda, Learning, MinRtt, Pats,
    Peekaboo, RoundRobin, Single, Standby, Stms, Turns, Weight, WeightedPaths,
};
use crate::registry::{BuildError, Built, Confidence, Entry, Layer, Param, Values};
use crate::reinject::{Redundant, TailCopies, UnprobedCopies};

/// How often idle paths are probed.
pub(super) const PROBE: Param = Param::time(
    "probe",
    IdleProbe::INTERVAL,
    (Duration::ZERO, Duration::from_secs(3_600)),
    "idle time after which a path is refreshed with a PING; 0s: never",
);

/// When packets are bound to paths.
pub(super) const BIND: Param = Param::choice(
    "bind",
    &["late", "early", "literal"],
    "when a packet is bound to a path; literal: to open ones only",
);

/// The value of [`BIND`].
pub(super) fn bind(values: &Values) -> Result<Bind, BuildError> {
    Ok(match values.choice("bind")? {
        "early" => Bind::Early,
        "literal" => Bind::Literal,
        _ => Bind::Late,
    })
}

/// The path policies of this crate.
pub(super) fn entries() -> Vec<Entry> {
    vec![
        minrtt(),
        lowrtt(),
        round_robin(),
        weighted(),
        single(),
        ecf(),
        blest(),
        otias(),
        pats(),
        stms(),
        dems(),
        redundant(),
        backup(),
        rap(),
        peekaboo(),
    ]
}

/// The value of [`PROBE`].
pub(super) fn probe(values: &Values) -> Result<IdleProbe, BuildError> {
    Ok(IdleProbe::new(values.time("probe")?))
}

fn minrtt() -> Entry {
    Entry {
        name: "minrtt",
        layer: Layer::Path,
        about: "the open path of least smoothed round-trip time, probed paths first",
        formula: "the open path of least srtt; a path without a sample only if no other is open, fewest packets sent first",
        params: vec![PROBE],
        source: "mp-quic (De Coninck and Bonaventure, CoNEXT 2017), code",
        confidence: Confidence::High,
        build: &|values, _| Ok(Built::path(MinRtt::new(values.time("probe")?))),
    }
}

fn lowrtt() -> Entry {
    let duplicate =
        Param::flag("dup_unprobed", true, "copies on other paths while a path has no sample");
    Entry {
        name: "lowrtt",
        layer: Layer::Path,
        about: "minrtt, and what leaves on a path without a sample is copied to another one",
        formula: "the open path of least srtt; unprobed paths by fewest packets sent;\n\
                  after a packet on an unprobed path a copy goes on each open path with fewer packets sent, until there is a sample",
        params: vec![duplicate, PROBE],
        source: "mp-quic (De Coninck and Bonaventure, CoNEXT 2017), code",
        confidence: Confidence::High,
        build: &|values, _| {
            let built = Built::path(MinRtt::new(values.time("probe")?));
            let copies = values.flag("dup_unprobed")?;
            Ok(if copies { built.with_reinject(UnprobedCopies::new()) } else { built })
        },
    }
}

fn weighted() -> Entry {
    let weight = Param::choice("by", &["cwnd", "bandwidth"], "what packets are in proportion to");
    Entry {
        name: "path-wrr",
        layer: Layer::Path,
        about: "packets go to open paths in proportion to windows or bandwidths",
        formula: "per packet credit(j) += weight(j) / sum of weights; the open path of most credit, which pays 1;\n\
                  weight = cwnd, or bandwidth; credit is kept within -8..8",
        params: vec![weight, PROBE],
        source: "our choice",
        confidence: Confidence::High,
        build: &|values, _| {
            let weight = match values.choice("by")? {
                "bandwidth" => Weight::Bandwidth,
                _ => Weight::Window,
            };
            Ok(Built::path(WeightedPaths::new(weight, probe(values)?)))
        },
    }
}

fn single() -> Entry {
    let id = Param::integer("id", 0, (0, u64::from(u32::MAX)), "identifier of the path");
    Entry {
        name: "single",
        layer: Layer::Path,
        about: "everything on one path; another one only while that cannot carry data",
        formula: "path id, while it can carry data; else the open path of least srtt",
        params: vec![id],
        source: "our choice",
        confidence: Confidence::High,
        build: &|values, _| {
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
        formula: "cursor: the next open path in order of id; packets: the open path with fewest packets sent",
        params: vec![turns],
        source: "tquic (cursor) and mp-quic (packets), code",
        confidence: Confidence::High,
        build: &|values, _| {
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
        formula: "f = usable path of least srtt, s = open path of least srtt, k = unsent bytes, d = max(rttvar_f, rttvar_s);\n\
                  wait if (1 + k/cwnd_f) * rtt_f < (1 + waiting * beta) * (rtt_s + d) and k/cwnd_s * rtt_s >= 2 * rtt_f + d;\n\
                  else send on s",
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
        build: &|values, _| {
            let backlog = match values.choice("backlog")? {
                "linux" => Backlog::Linux,
                _ => Backlog::Paper,
            };
            Ok(Built::path(Ecf::new(values.number("beta")?, backlog, probe(values)?)))
        },
    }
}

fn blest() -> Entry {
    let lambda = |name, default, about| Param::number(name, default, (0.0, 100.0), about);
    Entry {
        name: "blest",
        layer: Layer::Path,
        about: "a slow path is used only if that leaves window for the fast one",
        formula: "r = rtt_s / rtt_f; X = mss * (cwnd_f + (r - 1)/2) * r with cwnd_f in packets;\n\
                  M = connection credit left + bytes in flight;\n\
                  wait if lambda * X > M - mss * (packets in flight on s + 1), else send on s",
        params: vec![
            Param::choice(
                "estimate",
                &["paper", "linux"],
                "what the fast path could send meanwhile",
            ),
            lambda(
                "lambda",
                0.0,
                "factor of it, at the start if linux; 0: 1 if paper, 1.2 if linux",
            ),
            lambda("min", Lambda::LINUX.min, "least factor; linux"),
            lambda("max", Lambda::LINUX.max, "greatest factor; linux"),
            lambda(
                "up",
                Lambda::LINUX.up,
                "added once per round trip if credit stopped data; linux",
            ),
            lambda("down", Lambda::LINUX.down, "taken off else; linux"),
            PROBE,
        ],
        source: "BLEST (Ferlin et al., IFIP Networking 2016); Linux mptcp_blest.c, code",
        confidence: Confidence::High,
        build: &|values, _| {
            let (estimate, standard) = match values.choice("estimate")? {
                "linux" => (Estimate::Linux, Lambda::LINUX),
                _ => (Estimate::Paper, Lambda::PAPER),
            };
            let given = values.number("lambda")?;
            let lambda = Lambda {
                start: if given > 0.0 { given } else { standard.start },
                min: values.number("min")?,
                max: values.number("max")?,
                up: values.number("up")?,
                down: values.number("down")?,
            };
            Ok(Built::path(Blest::new(estimate, lambda, probe(values)?)))
        },
    }
}

fn otias() -> Entry {
    Entry {
        name: "otias",
        layer: Layer::Path,
        about: "packets are bound to the path on which they arrive first when first looked at",
        formula: "Q_j = bytes bound to j and this packet, C_j = max(0, cwnd_j - in flight);\n\
                  R_j = 0 if Q_j <= C_j, else ceil((Q_j - C_j) / cwnd_j);\n\
                  bind to the path of least R_j * srtt_j + srtt_j / 2",
        params: vec![
            Param::number(
                "lookahead",
                1.0,
                (0.0, 64.0),
                "most bytes bound, in sums of all windows",
            ),
            Param::flag("rebind", false, "bound anew when a more urgent stream arrives"),
            PROBE,
        ],
        source: "OTIAS (Yang et al., 2014) after PW-PATS (Du et al., 2026)",
        confidence: Confidence::Medium,
        build: &|values, _| {
            let (lookahead, rebind) = (values.number("lookahead")?, values.flag("rebind")?);
            Ok(Built::path(Pats::new(Bind::Early, lookahead, rebind, probe(values)?)))
        },
    }
}

fn pats() -> Entry {
    Entry {
        name: "pats",
        layer: Layer::Path,
        about: "the path on which a packet arrives first, its window open or not",
        formula: "Q_j = bytes planned for j and this packet, C_j = max(0, cwnd_j - in flight);\n\
                  R_j = 0 if Q_j <= C_j, else ceil((Q_j - C_j) / cwnd_j);\n\
                  PAT_j = R_j * srtt_j + srtt_j / 2; the path of least PAT_j, its window open or not",
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
        build: &|values, _| {
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
        formula: "each path with room first takes the oldest bytes not sent on it and not acknowledged, then new ones (minrtt)",
        params: vec![most_urgency(), PROBE],
        source: "Linux MPTCP, code",
        confidence: Confidence::High,
        build: &|values, _| {
            let urgency = u8::try_from(values.integer("urgency")?).unwrap_or(7);
            let path = MinRtt::new(values.time("probe")?);
            Ok(Built::path(path).with_reinject(Redundant::new(urgency)))
        },
    }
}

fn stms() -> Entry {
    Entry {
        name: "stms",
        layer: Layer::Path,
        about: "slow paths send ahead, so that bytes arrive in order",
        formula: "gap_s = sum over faster paths f of bw_f * (owd_s - owd_f);\n\
                  the fastest path takes the first unsent byte, path s the first at least gap_s beyond it;\n\
                  gap grows by a packet when s arrives early, shrinks by one when s is waited for",
        params: vec![PROBE],
        source: "STMS (Shi et al., USENIX ATC 2018), summaries",
        confidence: Confidence::MediumLow,
        build: &|values, _| Ok(Built::path(Stms::new(probe(values)?))),
    }
}

fn dems() -> Entry {
    let tail =
        Param::number("tail", TailCopies::MOST, (0.0, 1.0), "most of a stream copied at its end");
    Entry {
        name: "dems",
        layer: Layer::Path,
        about: "a finished stream goes from both ends, until they meet",
        formula: "a stream of known size: path A sends from its front, path B from its back, until they meet;\n\
                  the path of larger one-way delay stops when remaining <= bw_A * (owd_B - owd_A);\n\
                  the path that is done first copies the other's bytes nearest the meeting point, up to a share of the stream",
        params: vec![tail, PROBE],
        source: "DEMS (Guo et al., MobiCom 2017), summaries",
        confidence: Confidence::Medium,
        build: &|values, _| {
            let built = Built::path(Dems::new(probe(values)?));
            let tail = values.number("tail")?;
            Ok(if tail > 0.0 { built.with_reinject(TailCopies::new(tail)) } else { built })
        },
    }
}

fn backup() -> Entry {
    Entry {
        name: "backup",
        layer: Layer::Path,
        about: "the best class by quality and status, within it the least round-trip time",
        formula: "class of a path: low if srtt > 2 s, 2 probe timeouts or loss > 30 %; middle if srtt > min(500 ms, 3 * least srtt),\n\
                  bandwidth < 3 Mbit/s or loss > 10 %; else high;\n\
                  open path of least srtt in the best class; a standby path only if no available one has its class or a better one",
        params: vec![
            Param::choice(
                "standby",
                &["better", "open", "last"],
                "standby paths serve if of a better class, if no available one is open, or exists",
            ),
            PROBE,
        ],
        source: "xquic's backup, minrtt and interop, code",
        confidence: Confidence::High,
        build: &|values, _| {
            let standby = match values.choice("standby")? {
                "open" => Standby::Open,
                "last" => Standby::Last,
                _ => Standby::Better,
            };
            Ok(Built::path(Classes::new(standby, probe(values)?)))
        },
    }
}

fn rap() -> Entry {
    Entry {
        name: "rap",
        layer: Layer::Path,
        about: "the open path of least round-trip time, standby or not",
        formula: "the open path of least srtt, whatever its class; lost bytes prefer another path than the one that lost them",
        params: vec![PROBE],
        source: "xquic's rap, code",
        confidence: Confidence::High,
        build: &|values, _| Ok(Built::path(Classes::new(Standby::Equal, probe(values)?))),
    }
}

fn peekaboo() -> Entry {
    let flip = |name, default, about| Param::number(name, default, (0.0, 1.0), about);
    let Learning { alpha, flip_wait, flip_send, discount } = Learning::DEFAULT;
    Entry {
        name: "peekaboo",
        layer: Layer::Path,
        about: "a bandit learns whether to wait for the fast path or send on a slow one",
        formula: "f blocked, s open: for a in {wait, send}: p_a = theta_a . x + alpha * sqrt(x' A_a^-1 x), theta_a = A_a^-1 b_a;\n\
                  the greater p_a, turned over with probability epsilon; reward = mss / (acknowledged at - decided at);\n\
                  A_a += x x', b_a += reward * x",
        params: vec![
            Param::number("alpha", alpha, (0.0, 100.0), "deviations added to what is expected"),
            flip("epsilon_wait", flip_wait, "how often it sends although it would wait"),
            flip("epsilon_send", flip_send, "how often it waits although it would send"),
            Param::number(
                "discount",
                discount,
                (0.01, 1.0),
                "weight kept with each reward; 1: all",
            ),
            PROBE,
        ],
        source: "Peekaboo (Wu et al., IEEE JSAC 2020); public Go port, code",
        confidence: Confidence::Medium,
        build: &|values, context| {
            let learning = Learning {
                alpha: values.number("alpha")?,
                flip_wait: values.number("epsilon_wait")?,
                flip_send: values.number("epsilon_send")?,
                discount: values.number("discount")?,
            };
            Ok(Built::path(Peekaboo::new(learning, context.random("peekaboo"), probe(values)?)))
        },
    }
}
