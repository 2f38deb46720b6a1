//! How the policies of this crate decide, in formulas: what `quipu schedulers NAME` prints.
//!
//! Symbols as in the sources: `f` and `s` the fast and the slow path, `j` any path, `rtt` smoothed
//! round-trip times, `owd` one-way delays, `L` and `mss` bytes of a packet, `w` weights.

use super::layer::Layer;

/// A formula by layer and name; its lines are separated by line feeds.
pub(super) type Formula = (Layer, &'static str, &'static str);

const STREAM: &[Formula] = &[
    (
        Layer::Stream,
        "rr",
        "next = the first ready stream after the last one served, in order of arrival;\n\
         unit=packet: one stream per packet, unit=frame: the turns that follow share it",
    ),
    (
        Layer::Stream,
        "fifo",
        "key of a written chunk = (time written, stream, offset), least first;\n\
         lost bytes: before all (retx_first), else the key of their chunk",
    ),
    (
        Layer::Stream,
        "pfifo",
        "key = (stream, offset), least first; lost bytes: the same key, or before all (retx_first)",
    ),
    (
        Layer::Stream,
        "edf",
        "deadline of a chunk = time written + latency of its stream;\n\
         key = (deadline, stream, offset), least first; lost parts keep their deadline, or go before all (retx_first)",
    ),
    (
        Layer::Stream,
        "wrr",
        "share of stream s = product over s and its ancestors a of weight(a) / sum of the active siblings' weights;\n\
         fluid: serve the child of least virtual time v; sending b bytes adds b / weight to v;\n\
         quantum: a child sends weight packets in a row, then the next",
    ),
    (
        Layer::Stream,
        "swrr",
        "scaled: tokens(i) = max(1, floor(weight(i) / g)),\n\
         g = greatest weight of active siblings / most;\n\
         as-published: tokens(i) = 1;\n\
         smooth: current(i) += weight(i); serve the greatest; its current -= sum of weights",
    ),
    (
        Layer::Stream,
        "dwrr",
        "paper: group i of equal weight gets max(1, round(w_i / sum of the groups' w * R)) packets of a round,\n\
         R = max(10 * groups, active streams); heaviest group first, in it the least remaining bytes;\n\
         code: children sorted (leaves first, weight descending, buffered bytes ascending), then weight packets in a row",
    ),
    (
        Layer::Stream,
        "rfc9218",
        "least urgency number first; in a level non-incremental streams one by one in order of id,\n\
         incremental ones round robin; mixed=first: the former first, mixed=fair: by turns;\n\
         starvation_guard: one packet in 64 to the next level",
    ),
    (
        Layer::Stream,
        "strict",
        "key = (heaviest weight or least urgency, arrival), least first; never interleaved",
    ),
    (
        Layer::Stream,
        "srpt",
        "key = (remaining bytes, id), least first; remaining = size - sent;\n\
         aging: key = remaining * (1 - age / horizon)",
    ),
    (Layer::Stream, "sjf", "key = (size, id), least first; size stays what it was told to be"),
    (
        Layer::Stream,
        "fsp",
        "simulate generalised processor sharing of the remaining bytes with the tree's shares;\n\
         serve streams one at a time in order of the simulated completions",
    ),
];

const PATH: &[Formula] = &[
    (
        Layer::Path,
        "minrtt",
        "the open path of least srtt; a path without a sample only if no other is open, fewest packets sent first",
    ),
    (
        Layer::Path,
        "lowrtt",
        "the open path of least srtt; unprobed paths by fewest packets sent;\n\
         after a packet on an unprobed path a copy goes on each open path with fewer packets sent, until there is a sample",
    ),
    (
        Layer::Path,
        "path-rr",
        "cursor: the next open path in order of id; packets: the open path with fewest packets sent",
    ),
    (
        Layer::Path,
        "path-wrr",
        "per packet credit(j) += weight(j) / sum of weights; the open path of most credit, which pays 1;\n\
         weight = cwnd, or bandwidth; credit is kept within -8..8",
    ),
    (Layer::Path, "single", "path id, while it can carry data; else the open path of least srtt"),
    (
        Layer::Path,
        "ecf",
        "f = usable path of least srtt, s = open path of least srtt, k = unsent bytes, d = max(rttvar_f, rttvar_s);\n\
         wait if (1 + k/cwnd_f) * rtt_f < (1 + waiting * beta) * (rtt_s + d) and k/cwnd_s * rtt_s >= 2 * rtt_f + d;\n\
         else send on s",
    ),
    (
        Layer::Path,
        "blest",
        "r = rtt_s / rtt_f; X = mss * (cwnd_f + (r - 1)/2) * r with cwnd_f in packets;\n\
         M = connection credit left + bytes in flight;\n\
         wait if lambda * X > M - mss * (packets in flight on s + 1), else send on s",
    ),
    (
        Layer::Path,
        "otias",
        "Q_j = bytes bound to j and this packet, C_j = max(0, cwnd_j - in flight);\n\
         R_j = 0 if Q_j <= C_j, else ceil((Q_j - C_j) / cwnd_j);\n\
         bind to the path of least R_j * srtt_j + srtt_j / 2",
    ),
    (
        Layer::Path,
        "pats",
        "Q_j = bytes planned for j and this packet, C_j = max(0, cwnd_j - in flight);\n\
         R_j = 0 if Q_j <= C_j, else ceil((Q_j - C_j) / cwnd_j);\n\
         PAT_j = R_j * srtt_j + srtt_j / 2; the path of least PAT_j, its window open or not",
    ),
    (
        Layer::Path,
        "stms",
        "gap_s = sum over faster paths f of bw_f * (owd_s - owd_f);\n\
         the fastest path takes the first unsent byte, path s the first at least gap_s beyond it;\n\
         gap grows by a packet when s arrives early, shrinks by one when s is waited for",
    ),
    (
        Layer::Path,
        "dems",
        "a stream of known size: path A sends from its front, path B from its back, until they meet;\n\
         the path of larger one-way delay stops when remaining <= bw_A * (owd_B - owd_A);\n\
         the path that is done first copies the other's bytes nearest the meeting point, up to a share of the stream",
    ),
    (
        Layer::Path,
        "redundant",
        "each path with room first takes the oldest bytes not sent on it and not acknowledged, then new ones (minrtt)",
    ),
    (
        Layer::Path,
        "backup",
        "class of a path: low if srtt > 2 s, 2 probe timeouts or loss > 30 %; middle if srtt > min(500 ms, 3 * least srtt),\n\
         bandwidth < 3 Mbit/s or loss > 10 %; else high;\n\
         open path of least srtt in the best class; a standby path only if no available one has its class or a better one",
    ),
    (
        Layer::Path,
        "rap",
        "the open path of least srtt, whatever its class; lost bytes prefer another path than the one that lost them",
    ),
    (
        Layer::Path,
        "peekaboo",
        "f blocked, s open: for a in {wait, send}: p_a = theta_a . x + alpha * sqrt(x' A_a^-1 x), theta_a = A_a^-1 b_a;\n\
         the greater p_a, turned over with probability epsilon; reward = mss / (acknowledged at - decided at);\n\
         A_a += x x', b_a += reward * x",
    ),
];

const JOINT: &[Formula] = &[
    (
        Layer::Joint,
        "sa-ecf",
        "streams in WRR order, each with a flag waiting of its own; ECF's test with\n\
         k_s = L * (g * (rem/L - 1) + rem/L), g = (1 - share) / share, L = packet size, at most the bytes queued;\n\
         a stream that waits lets the next one try; all wait: wait",
    ),
    (
        Layer::Joint,
        "sec",
        "streams in order of GPS completion; d_j = rtt_j + Q_j; S_j = BW_j * (K - d_j) over the paths where K > d_j,\n\
         K = (size + sum BW_j * d_j) / sum BW_j; then Q_j += S_j / BW_j (pipelined) or rtt_j + S_j / BW_j (paper);\n\
         no more than S_j bytes of the stream go on path j",
    ),
    (
        Layer::Joint,
        "pw-pats",
        "PF = 1 + log2(weight); high = the first max(s_min, ceil(alpha * N)) active streams by PF;\n\
         order (high, PF descending, arrival), strictly; path of least PAT_j / PF, which is that of least PAT_j",
    ),
    (
        Layer::Joint,
        "fstream",
        "a stream goes on one path: T_j = size / (share_j * bw_j) + srtt_j / 2, the least;\n\
         share_j = w / (w + sum of weights on j); on each path streams share by weight",
    ),
    (
        Layer::Joint,
        "pstream",
        "streams in order of (weight descending, arrival); BW_j = share_j * bw_j; the bytes of a stream are split over paths\n\
         so that all end at the same time, counting srtt_j / 2; fixed when the stream begins",
    ),
    (
        Layer::Joint,
        "hbes",
        "A_j = (L + q_j) / BW_j + srtt_j / 2, BW_j = cwnd_j / srtt_j, q_j = bytes stored for j;\n\
         store the packet for the path of least A_j, open or not; paths send what is stored for them first",
    ),
    (
        Layer::Joint,
        "ms-hs",
        "critical streams strictly first, the others by weight; on each path in proportion to bandwidth;\n\
         a critical stream only on paths with owd_j <= least owd + rem / sum of bandwidths",
    ),
    (
        Layer::Joint,
        "srpt-ecf",
        "streams by remaining bytes; ECF's test with k = bytes of all streams up to and with this one;\n\
         a stream that waits lets the next one try",
    ),
];

const PACK: &[Formula] = &[
    (Layer::Pack, "one", "a packet is closed when its stream has no more for it"),
    (Layer::Pack, "many", "a packet is filled with the next turns while they fit"),
];

const RESEND: &[Formula] = &[
    (
        Layer::Resend,
        "rank",
        "lost bytes of a stream go before its fresh ones, in the stream's own turn",
    ),
    (
        Layer::Resend,
        "first",
        "lost bytes of all streams, oldest loss first, go before all fresh ones",
    ),
    (
        Layer::Resend,
        "mp-quic",
        "as first: lost bytes of all streams go before all fresh ones; their path: the path policy's",
    ),
    (
        Layer::Resend,
        "xquic",
        "lost bytes go before all fresh ones, on whichever path the path policy picks, also after timeouts;\n\
         a path's bytes in flight are pending again from its second probe timeout in a row",
    ),
    (
        Layer::Resend,
        "picoquic",
        "lost bytes go before the fresh ones of their stream, on any open path, the longest unused first",
    ),
];

const REINJECT: &[Formula] = &[
    (
        Layer::Reinject,
        "redundant",
        "each path with room first takes the oldest bytes not sent on it and not acknowledged",
    ),
    (
        Layer::Reinject,
        "unprobed",
        "a packet sent on path a, which has no round-trip sample: a copy for each open path with fewer packets sent than a",
    ),
    (
        Layer::Reinject,
        "tail",
        "a path done with its part of a stream copies what others have in flight of it, last bytes first, up to a share",
    ),
    (
        Layer::Reinject,
        "xlink",
        "dt = min(cached frames / frame rate, cached bytes / bit rate);\n\
         copies on if dt < t1, off if dt > t2, between them if max over paths with bytes in flight of (srtt + rttvar) > dt;\n\
         deadline: copy once what was sent max(min(factor * least srtt, hard), lower) ago or earlier",
    ),
];

const ACK: &[Formula] = &[
    (
        Layer::Ack,
        "own",
        "return path of j = j; while that cannot be used, the usable path of least srtt",
    ),
    (Layer::Ack, "min-rtt", "return path = the usable path of least srtt"),
    (Layer::Ack, "any", "return path = that of the packet that leaves next; else the path itself"),
    (Layer::Ack, "all", "a copy of each acknowledgement on every path"),
    (
        Layer::Ack,
        "min-owd",
        "the sender measures rtt[j][r] of data path j by acknowledgements copied on every return path r;\n\
         it asks for r* = argmin rtt[j][r] if rtt[j][r*] < rtt[j][in use] - max(rttvar, 5 ms); by CHANGE_RETURN_PATH;\n\
         the receiver obeys, and returns to own at a probe timeout of r*; without the extension: min-rtt",
    ),
];

const CONGESTION: &[Formula] = &[
    (
        Layer::Congestion,
        "newreno",
        "slow start: cwnd += acknowledged bytes, until ssthresh; then cwnd += packet per window;\n\
         loss: ssthresh = cwnd = cwnd / 2, once per round trip;\n\
         prr: during that trip cwnd = in flight + prr_delivered * ssthresh / RecoverFS - prr_out, until it is ssthresh",
    ),
    (
        Layer::Congestion,
        "bbr",
        "bw = greatest delivery rate of 10 round trips, rtt = least of 10 s, inflight(g) = g * bw * rtt + 3 quanta;\n\
         pace = g_p * bw, cwnd grows by what is acknowledged up to inflight(g_w), 4 packets at least;\n\
         startup: g_p = g_w = startup_gain, until bw grew by less than a quarter in each of 3 round trips;\n\
         drain: g_p = 1 / startup_gain, until at most inflight(1) is in flight;\n\
         probe bandwidth: g_w = 2, g_p = 1.25, 0.75, then six times 1, each for more than rtt; 1.25 until\n\
         inflight(1.25) or a loss, 0.75 not below inflight(1); it begins at a random one, but not 0.75 (drain_first: any);\n\
         probe rtt: after 10 s without an rtt as low, cwnd = 4 packets for 200 ms and a round trip;\n\
         loss: for a round trip cwnd = what is in flight and acknowledged, then as before; CE marks change nothing",
    ),
    (
        Layer::Congestion,
        "cubic",
        "W(t) = 0.4 * (t - K)^3 + W_max packets, t seconds since avoidance began with cwnd0,\n\
         K = cbrt((W_max - cwnd0) / 0.4);\n\
         target = W(t + rtt), within cwnd and 1.5 * cwnd; cwnd += (target - cwnd) / cwnd per packet;\n\
         W_est += a / cwnd per packet, a = 0.53 up to the window before the loss,\n\
         then 1; if W(t) < W_est, cwnd = W_est unless it is larger;\n\
         loss: W_max = cwnd, or 0.85 * cwnd if it was below W_max; ssthresh = cwnd = 0.7 * cwnd, once per round trip;\n\
         hystart: once a round's least rtt rises by an eighth (4 to 16 ms), slow start at a quarter of its growth;\n\
         after five such rounds avoidance, if the rtt falls again slow start as before",
    ),
    (
        Layer::Congestion,
        "balia",
        "x_j = cwnd_j / rtt_j, a_i = max x / x_i;\n\
         per packet acknowledged cwnd_i += x_i / (rtt_i * (sum of x)^2) * (1 + a_i)/2 * (4 + a_i)/5;\n\
         loss: cwnd_i -= cwnd_i/2 * min(a_i, 1.5); slow start as newreno",
    ),
    (
        Layer::Congestion,
        "bbr3",
        "bw = greatest delivery rate of 2 cycles, or the short-term limit; bdp = bw * least rtt of 10 s;\n\
         pace = 0.99 * gain * bw, cwnd = 2 * bdp + excess acknowledged at once, in UP 2.25 * bdp, in PROBE_RTT 0.5 * bdp;\n\
         STARTUP gain 2.77 until bw grows by less than 25 % in 3 round trips, or 6 ranges and 2 % are lost in one;\n\
         DRAIN 0.5; then DOWN 0.9, CRUISE 1, REFILL 1, UP 1.25, asking for more each 2..3 s or min(bdp, 63) round trips;\n\
         UP loses 2 %: long-term limit = what was in flight then, in CRUISE 0.85 of it; not harmed: + 1, 2, 4, ... packets;\n\
         loss elsewhere: short-term limits = max(delivered in that round trip, 0.7 * limits), until REFILL;\n\
         PROBE_RTT for 200 ms each 5 s without a lower rtt",
    ),
    (
        Layer::Congestion,
        "lia",
        "alpha = cwnd_total * max(cwnd_j / rtt_j^2) / (sum of cwnd_j / rtt_j)^2;\n\
         per packet acknowledged cwnd_i += min(alpha / cwnd_total, 1 / cwnd_i); slow start and loss as newreno",
    ),
    (
        Layer::Congestion,
        "olia",
        "l_j = max(bytes since the last loss, bytes between the last two), best = paths of greatest l_j / rtt_j^2;\n\
         M = paths of largest cwnd, B = best without M, n paths;\n\
         per packet acknowledged cwnd_i += (cwnd_i / rtt_i^2) / (sum of cwnd_j / rtt_j)^2 + e_i / cwnd_i,\n\
         e_i = 1/(n |B|) in B, -1/(n |M|) in M if B is not empty, else 0; slow start and loss as newreno",
    ),
    (
        Layer::Congestion,
        "wvegas",
        "once per round trip: diff = cwnd * (rtt - base) / rtt packets, rtt = mean sample, base = least sample;\n\
         slow start ends at diff > 1; if diff >= a_i: a_i = max(2, 10 * x_i / sum of x), x = cwnd / rtt;\n\
         diff < a_i: cwnd += 1, diff > a_i: cwnd -= 1;\n\
         rtt - base at least twice its least: cwnd *= base / (2 * rtt); loss as newreno",
    ),
];

/// The formulas of every policy of this crate.
pub(super) fn builtin() -> impl Iterator<Item = Formula> {
    let layers = [STREAM, PATH, JOINT, PACK, RESEND, REINJECT, ACK, CONGESTION];
    layers.into_iter().flatten().copied()
}
