//! Congestion controllers by name.

use crate::congestion::{
    Balia, Bbr, Bbr3, BbrOptions, BbrTuning, ControllerFactory, Coupled, Coupling, Cubic, Lia,
    NewReno, Olia, Quantum, STARTUP_GAIN, Wvegas, with_prr,
};
use crate::registry::{BuildContext, BuildError, Built, Confidence, Entry, Layer, Param, Values};

/// The congestion controllers of this crate.
pub(super) fn entries() -> Vec<Entry> {
    vec![newreno(), balia(), bbr(), bbr3(), cubic(), lia(), olia(), wvegas()]
}

/// The parameter by which a loss-based controller gets it.
fn prr() -> Param {
    Param::flag("prr", false, "proportional rate reduction: after a loss sending slows, not stops")
}

/// Builds the factory of a coupled controller, with proportional rate reduction if the parameter
/// says so.
fn coupled<C: Coupling + 'static>(
    values: &Values,
    context: &BuildContext,
) -> Result<Built, BuildError> {
    let (window, reduction) = (context.initial_window, values.flag("prr")?);
    Ok(Built::controller(ControllerFactory::new(move |_, size| {
        with_prr(reduction, size, Coupled::<C>::new(window, size))
    })))
}

fn newreno() -> Entry {
    Entry {
        name: "newreno",
        layer: Layer::Congestion,
        about: "slow start, one halving per round trip with loss; uncoupled",
        params: vec![prr()],
        source: "RFC 9002, section 7; RFC 9937 (proportional rate reduction)",
        confidence: Confidence::High,
        build: |values, context: &mut BuildContext| {
            let (window, reduction) = (context.initial_window, values.flag("prr")?);
            Ok(Built::controller(ControllerFactory::new(move |_, size| {
                with_prr(reduction, size, NewReno::new(window, size))
            })))
        },
    }
}

fn balia() -> Entry {
    Entry {
        name: "balia",
        layer: Layer::Congestion,
        about: "balanced linked adaptation: slow paths grow more, and give up more at a loss",
        params: vec![prr()],
        source: "Peng et al., IEEE/ACM ToN 2016; Linux mptcp_balia.c",
        confidence: Confidence::High,
        build: |values, context| coupled::<Balia>(values, context),
    }
}

fn bbr() -> Entry {
    Entry {
        name: "bbr",
        layer: Layer::Congestion,
        about: "pace and window of a model: greatest bandwidth and least round-trip time; version 1",
        params: vec![
            Param::number(
                "startup_gain",
                STARTUP_GAIN,
                (1.1, 10.0),
                "gain of pace and window in startup; the ns-3 module has 2.89",
            ),
            Param::choice(
                "quantum",
                &Quantum::NAMES,
                "what is sent at a time, of which the window holds three more: a packet, or by the rate",
            ),
            Param::flag(
                "drain_first",
                false,
                "the gain cycle may begin with 0.75, as the ns-3 module draws",
            ),
        ],
        source: "draft-cardwell-iccrg-bbr-congestion-control-00; Paro et al. (2020), section 3",
        confidence: Confidence::High,
        build: |values, context| {
            let options = BbrOptions {
                initial_packets: context.initial_window,
                startup_gain: values.number("startup_gain")?,
                quantum: Quantum::read(values.choice("quantum")?),
                drain_first: values.flag("drain_first")?,
            };
            let seed = context.seed;
            Ok(Built::controller(ControllerFactory::new(move |path, size| {
                let random = seed.stream("bbr", u64::from(path.id.0));
                Box::new(Bbr::new(options, size, random))
            })))
        },
    }
}

fn bbr3() -> Entry {
    let share = |name, default, most, about| Param::number(name, default, (0.0, most), about);
    let BbrTuning { loss_threshold, beta, headroom, pacing_margin } = BbrTuning::DEFAULT;
    Entry {
        name: "bbr3",
        layer: Layer::Congestion,
        about: "a model of the path's bandwidth, round-trip time and loss sets pace and window; uncoupled",
        params: vec![
            share(
                "loss_threshold",
                loss_threshold,
                0.5,
                "loss rate at which a probe went too high",
            ),
            share("beta", beta, 1.0, "what a round trip with loss leaves at least, as a share"),
            share("headroom", headroom, 0.9, "share of the limit left to others between probes"),
            share(
                "pacing_margin",
                pacing_margin,
                0.5,
                "how far the pace stays below the bandwidth",
            ),
        ],
        source: "draft-ietf-ccwg-bbr-06",
        confidence: Confidence::High,
        build: |values, context| {
            let (window, seed) = (context.initial_window, context.seed);
            let tuning = BbrTuning {
                loss_threshold: values.number("loss_threshold")?,
                beta: values.number("beta")?,
                headroom: values.number("headroom")?,
                pacing_margin: values.number("pacing_margin")?,
            };
            Ok(Built::controller(ControllerFactory::new(move |path, size| {
                let random = seed.stream("bbr3", u64::from(path.id.0));
                Box::new(Bbr3::new(window, size, tuning, random))
            })))
        },
    }
}

fn cubic() -> Entry {
    Entry {
        name: "cubic",
        layer: Layer::Congestion,
        about: "a cubic function of the time since the last reduction, or Reno's growth; uncoupled",
        params: vec![
            Param::flag(
                "hystart",
                true,
                "HyStart++: the first slow start ends when round-trip times rise",
            ),
            prr(),
        ],
        source: "RFC 9438; RFC 9406 (HyStart++); RFC 9937 (proportional rate reduction)",
        confidence: Confidence::High,
        build: |values, context| {
            let (window, hystart) = (context.initial_window, values.flag("hystart")?);
            let reduction = values.flag("prr")?;
            Ok(Built::controller(ControllerFactory::new(move |_, size| {
                with_prr(reduction, size, Cubic::new(window, size, hystart))
            })))
        },
    }
}

fn lia() -> Entry {
    Entry {
        name: "lia",
        layer: Layer::Congestion,
        about: "linked increases: all paths together grow as one connection on the best path",
        params: vec![prr()],
        source: "RFC 6356, section 3",
        confidence: Confidence::High,
        build: |values, context| coupled::<Lia>(values, context),
    }
}

fn olia() -> Entry {
    Entry {
        name: "olia",
        layer: Layer::Congestion,
        about: "opportunistic linked increases: growth moves from large windows to the best paths",
        params: vec![prr()],
        source: "Khalili et al., CoNEXT 2012; Linux mptcp_olia.c",
        confidence: Confidence::High,
        build: |values, context| coupled::<Olia>(values, context),
    }
}

fn wvegas() -> Entry {
    Entry {
        name: "wvegas",
        layer: Layer::Congestion,
        about: "weighted Vegas: few packets in queues, more on paths with more of the rate",
        params: Vec::new(),
        source: "Cao et al., ICNP 2012; Linux mptcp_wvegas.c",
        confidence: Confidence::High,
        build: |_, context| {
            let window = context.initial_window;
            Ok(Built::controller(ControllerFactory::new(move |_, size| {
                Box::new(Wvegas::new(window, size))
            })))
        },
    }
}
