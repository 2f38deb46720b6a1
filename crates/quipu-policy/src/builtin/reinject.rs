//! Reinjection policies by name.

use quipu_base::Duration;

use crate::registry::{BuildError, Built, Confidence, Entry, Layer, Param, Values};
use crate::reinject::{
    CopyOrder, CopyPaths, Deadline, Need, Playback, Redundant, TailCopies, UnprobedCopies, Xlink,
};

/// The reinjection policies of this crate.
pub(super) fn entries() -> Vec<Entry> {
    vec![redundant(), xlink(), unprobed(), tail()]
}

/// The parameter of [`Redundant`].
pub(super) fn most_urgency() -> Param {
    Param::integer("urgency", 7, (0, 7), "streams up to this urgency number are copied; 7: all")
}

fn redundant() -> Entry {
    Entry {
        name: "redundant",
        layer: Layer::Reinject,
        about: "every path carries all that is not yet acknowledged",
        formula: "each path with room first takes the oldest bytes not sent on it and not acknowledged",
        params: vec![most_urgency()],
        source: "Linux MPTCP, code",
        confidence: Confidence::High,
        build: &|values, _| {
            let urgency = u8::try_from(values.integer("urgency")?).unwrap_or(7);
            Ok(Built::reinject(Redundant::new(urgency)))
        },
    }
}

/// When what is in flight is copied.
fn need(values: &Values) -> Result<Need, BuildError> {
    let first = u32::try_from(values.integer("first_frame")?).unwrap_or(u32::MAX);
    let order = match values.choice("order")? {
        "frame" => CopyOrder::Frame(first),
        "append" => CopyOrder::Append,
        _ => CopyOrder::Stream,
    };
    let playback = Playback { short: values.time("t1")?, ample: values.time("t2")?, order };
    let deadline = Deadline {
        factor: values.number("factor")?,
        most: values.time("hard")?,
        least: values.time("lower")?,
        low_at_once: values.flag("low_at_once")?,
    };
    Ok(match values.choice("mode")? {
        "deadline" => Need::Deadline(deadline),
        "rest" => Need::Rest,
        _ => Need::Playback(playback),
    })
}

fn xlink() -> Entry {
    let time = |name, default, about| {
        Param::time(name, default, (Duration::ZERO, Duration::from_secs(3_600)), about)
    };
    let Deadline { factor, most, least, low_at_once } = Deadline::DEFAULT;
    Entry {
        name: "xlink",
        layer: Layer::Reinject,
        about: "what is in flight is copied once to another path: by playback, deadline, or at rest",
        formula: "dt = min(cached frames / frame rate, cached bytes / bit rate);\n\
                  copies on if dt < t1, off if dt > t2, between them if max over paths with bytes in flight of (srtt + rttvar) > dt;\n\
                  deadline: copy once what was sent max(min(factor * least srtt, hard), lower) ago or earlier",
        params: vec![
            Param::choice("mode", &["playback", "deadline", "rest"], "when copies go"),
            time("t1", Playback::DEFAULT.short, "playback: copied if less is left to play"),
            time("t2", Playback::DEFAULT.ample, "playback: not copied if more is left to play"),
            Param::choice("order", &["stream", "frame", "append"], "playback: what copies precede"),
            Param::integer(
                "first_frame",
                16_384,
                (0, u64::from(u32::MAX)),
                "order=frame: bytes of a stream's first frame",
            ),
            Param::number("factor", factor, (0.0, 100.0), "deadline: times the least round trip"),
            time("hard", most, "deadline: at most"),
            time("lower", least, "deadline: at least"),
            Param::flag("low_at_once", low_at_once, "deadline: none for paths of the low class"),
            Param::flag("standby", false, "copies may take standby paths"),
            Param::flag("original", false, "copies may take the path of the original"),
        ],
        source: "XLINK (Zheng et al., SIGCOMM 2021), summaries; xquic's controllers, code",
        confidence: Confidence::MediumHigh,
        build: &|values, _| {
            let paths =
                CopyPaths { standby: values.flag("standby")?, original: values.flag("original")? };
            Ok(Built::reinject(Xlink::new(need(values)?, paths)))
        },
    }
}

fn unprobed() -> Entry {
    Entry {
        name: "unprobed",
        layer: Layer::Reinject,
        about: "what leaves on a path without a sample is copied to one that sent less",
        formula: "a packet sent on path a, which has no round-trip sample: a copy for each open path with fewer packets sent than a",
        params: Vec::new(),
        source: "mp-quic (De Coninck and Bonaventure, CoNEXT 2017), code",
        confidence: Confidence::High,
        build: &|_, _| Ok(Built::reinject(UnprobedCopies::new())),
    }
}

fn tail() -> Entry {
    let most = Param::number("most", TailCopies::MOST, (0.0, 1.0), "most of a stream copied");
    Entry {
        name: "tail",
        layer: Layer::Reinject,
        about: "an idle path copies what another one sent last of a finished stream",
        formula: "a path done with its part of a stream copies what others have in flight of it, last bytes first, up to a share",
        params: vec![most],
        source: "DEMS (Guo et al., MobiCom 2017), summaries",
        confidence: Confidence::Medium,
        build: &|values, _| Ok(Built::reinject(TailCopies::new(values.number("most")?))),
    }
}
