//! Congestion controllers by name.

use crate::congestion::{
    Balia, Bbr, Bbr3, BbrOptions, BbrTuning, ControllerFactory, Coupled, Coupling, Cubic, Lia,
    NewReno, Olia, Quantum, RENO_BETA, STARTUP_GAIN, SlowStartExit, Wvegas, with_prr,
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

/// The parameter by which a loss-based controller gets what ends its slow start; the first of
/// `names` is the default.
fn exit(names: &'static [&'static str; 3]) -> Param {
    Param::choice(
        "exit",
        names,
        "what ends slow start: a loss alone, or before it HyStart++ or hybrid slow start",
    )
}

/// The parameter by which a controller gets what a congestion event leaves of the window.
fn beta() -> Param {
    let about = "what a loss leaves of the window, as a part; mp-quic has 0.7";
    Param::number("beta", RENO_BETA, (0.1, 0.95), about)
}

/// What ends slow start, as the parameter has it.
fn read_exit(values: &Values) -> Result<SlowStartExit, BuildError> {
    values.choice("exit").map(SlowStartExit::read)
}

/// Builds the factory of a coupled controller of whose window a loss leaves `beta`, by its parameters.
fn coupled<C: Coupling + 'static>(
    values: &Values,
    context: &BuildContext,
    beta: f64,
) -> Result<Built, BuildError> {
    let (window, reduction) = (context.initial_window, values.flag("prr")?);
    let exit = read_exit(values)?;
    Ok(Built::controller(ControllerFactory::new(move |_, size| {
        with_prr(reduction, size, Coupled::<C>::new(window, size, exit, beta))
    })))
}

fn newreno() -> Entry {
    Entry {
        name: "newreno",
        layer: Layer::Congestion,
        about: "slow start, one halving per round trip with loss; uncoupled",
        formula: "slow start: cwnd += acknowledged bytes, until ssthresh; then cwnd += packet per window;\n\
                  loss: ssthresh = cwnd = beta * cwnd, once per round trip;\n\
                  exit hystart: once a round's least rtt rises by an eighth (4 to 16 ms), slow start at a quarter of its growth;\n\
                  after five such rounds avoidance, if the rtt falls again slow start as before;\n\
                  exit hybrid: avoidance once the least of a round's first 8 rtts is an eighth (4 to 16 ms) above the\n\
                  connection's least and cwnd is 16 packets;\n\
                  prr: during that trip cwnd = in flight + prr_delivered * ssthresh / RecoverFS - prr_out, until it is ssthresh",
        params: vec![prr(), exit(&SlowStartExit::NAMES), beta()],
        source: "RFC 9002, section 7; RFC 9937 (proportional rate reduction); RFC 9406 (HyStart++); \
                 Ha and Rhee (2011), as in mp-quic (hybrid slow start)",
        confidence: Confidence::High,
        build: &|values, context: &mut BuildContext| {
            let (window, reduction) = (context.initial_window, values.flag("prr")?);
            let (exit, beta) = (read_exit(values)?, values.number("beta")?);
            Ok(Built::controller(ControllerFactory::new(move |_, size| {
                with_prr(reduction, size, NewReno::with(window, size, exit, beta))
            })))
        },
    }
}

fn balia() -> Entry {
    Entry {
        name: "balia",
        layer: Layer::Congestion,
        about: "balanced linked adaptation: slow paths grow more, and give up more at a loss",
        formula: "x_j = cwnd_j / rtt_j, a_i = max x / x_i;\n\
                  per packet acknowledged cwnd_i += x_i / (rtt_i * (sum of x)^2) * (1 + a_i)/2 * (4 + a_i)/5;\n\
                  loss: cwnd_i -= cwnd_i/2 * min(a_i, 1.5); slow start as newreno",
        params: vec![prr(), exit(&SlowStartExit::NAMES)],
        source: "Peng et al., IEEE/ACM ToN 2016; Linux mptcp_balia.c",
        confidence: Confidence::High,
        build: &|values, context| coupled::<Balia>(values, context, RENO_BETA),
    }
}

fn bbr() -> Entry {
    Entry {
        name: "bbr",
        layer: Layer::Congestion,
        about: "pace and window of a model: greatest bandwidth and least round-trip time; version 1",
        formula: "bw = greatest delivery rate of 10 round trips, rtt = least of 10 s, inflight(g) = g * bw * rtt + 3 quanta;\n\
                  pace = g_p * bw, cwnd grows by what is acknowledged up to inflight(g_w), 4 packets at least;\n\
                  startup: g_p = g_w = startup_gain, until bw grew by less than a quarter in each of 3 round trips;\n\
                  drain: g_p = 1 / startup_gain, until at most inflight(1) is in flight;\n\
                  probe bandwidth: g_w = 2, g_p = 1.25, 0.75, then six times 1, each for more than rtt; 1.25 until\n\
                  inflight(1.25) or a loss, 0.75 not below inflight(1); it begins at a random one, but not 0.75 (drain_first: any);\n\
                  probe rtt: after 10 s without an rtt as low, cwnd = 4 packets for 200 ms and a round trip;\n\
                  loss: for a round trip cwnd = what is in flight and acknowledged, then as before; CE marks change nothing",
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
        build: &|values, context| {
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
        formula: "bw = greatest delivery rate of 2 cycles, or the short-term limit; bdp = bw * least rtt of 10 s;\n\
                  pace = 0.99 * gain * bw, cwnd = 2 * bdp + excess acknowledged at once, in UP 2.25 * bdp, in PROBE_RTT 0.5 * bdp;\n\
                  STARTUP gain 2.77 until bw grows by less than 25 % in 3 round trips, or 6 ranges and 2 % are lost in one;\n\
                  DRAIN 0.5; then DOWN 0.9, CRUISE 1, REFILL 1, UP 1.25, asking for more each 2..3 s or min(bdp, 63) round trips;\n\
                  UP loses 2 %: long-term limit = what was in flight then, in CRUISE 0.85 of it; not harmed: + 1, 2, 4, ... packets;\n\
                  loss elsewhere: short-term limits = max(delivered in that round trip, 0.7 * limits), until REFILL;\n\
                  PROBE_RTT for 200 ms each 5 s without a lower rtt",
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
        build: &|values, context| {
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
        formula: "W(t) = 0.4 * (t - K)^3 + W_max packets, t seconds since avoidance began with cwnd0,\n\
                  K = cbrt((W_max - cwnd0) / 0.4);\n\
                  target = W(t + rtt), within cwnd and 1.5 * cwnd; cwnd += (target - cwnd) / cwnd per packet;\n\
                  W_est += a / cwnd per packet, a = 0.53 up to the window before the loss,\n\
                  then 1; if W(t) < W_est, cwnd = W_est unless it is larger;\n\
                  loss: W_max = cwnd, or 0.85 * cwnd if it was below W_max; ssthresh = cwnd = 0.7 * cwnd, once per round trip;\n\
                  exit as newreno",
        params: vec![exit(&SlowStartExit::HYSTART_FIRST), prr()],
        source: "RFC 9438; RFC 9406 (HyStart++); RFC 9937 (proportional rate reduction)",
        confidence: Confidence::High,
        build: &|values, context| {
            let (window, exit) = (context.initial_window, read_exit(values)?);
            let reduction = values.flag("prr")?;
            Ok(Built::controller(ControllerFactory::new(move |_, size| {
                with_prr(reduction, size, Cubic::new(window, size, exit))
            })))
        },
    }
}

fn lia() -> Entry {
    Entry {
        name: "lia",
        layer: Layer::Congestion,
        about: "linked increases: all paths together grow as one connection on the best path",
        formula: "alpha = cwnd_total * max(cwnd_j / rtt_j^2) / (sum of cwnd_j / rtt_j)^2;\n\
                  per packet acknowledged cwnd_i += min(alpha / cwnd_total, 1 / cwnd_i); slow start and loss as newreno",
        params: vec![prr(), exit(&SlowStartExit::NAMES), beta()],
        source: "RFC 6356, section 3",
        confidence: Confidence::High,
        build: &|values, context| coupled::<Lia>(values, context, values.number("beta")?),
    }
}

fn olia() -> Entry {
    Entry {
        name: "olia",
        layer: Layer::Congestion,
        about: "opportunistic linked increases: growth moves from large windows to the best paths",
        formula: "l_j = max(bytes since the last loss, bytes between the last two), best = paths of greatest l_j / rtt_j^2;\n\
                  M = paths of largest cwnd, B = best without M, n paths;\n\
                  per packet acknowledged cwnd_i += (cwnd_i / rtt_i^2) / (sum of cwnd_j / rtt_j)^2 + e_i / cwnd_i,\n\
                  e_i = 1/(n |B|) in B, -1/(n |M|) in M if B is not empty, else 0; slow start and loss as newreno",
        params: vec![prr(), exit(&SlowStartExit::NAMES), beta()],
        source: "Khalili et al., CoNEXT 2012; Linux mptcp_olia.c",
        confidence: Confidence::High,
        build: &|values, context| coupled::<Olia>(values, context, values.number("beta")?),
    }
}

fn wvegas() -> Entry {
    Entry {
        name: "wvegas",
        layer: Layer::Congestion,
        about: "weighted Vegas: few packets in queues, more on paths with more of the rate",
        formula: "once per round trip: diff = cwnd * (rtt - base) / rtt packets, rtt = mean sample, base = least sample;\n\
                  slow start ends at diff > 1; if diff >= a_i: a_i = max(2, 10 * x_i / sum of x), x = cwnd / rtt;\n\
                  diff < a_i: cwnd += 1, diff > a_i: cwnd -= 1;\n\
                  rtt - base at least twice its least: cwnd *= base / (2 * rtt); loss as newreno",
        params: Vec::new(),
        source: "Cao et al., ICNP 2012; Linux mptcp_wvegas.c",
        confidence: Confidence::High,
        build: &|_, context| {
            let window = context.initial_window;
            Ok(Built::controller(ControllerFactory::new(move |_, size| {
                Box::new(Wvegas::new(window, size))
            })))
        },
    }
}
