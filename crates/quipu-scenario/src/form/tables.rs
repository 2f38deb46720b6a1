//! The fields of tables that a scenario may have several of: networks, paths, links, traffic.

use super::fields::{field, or, required, words};
use super::radio::RADIO;
use super::text::*;
use super::{Field, Kind, Table};
use crate::{CrossKind, Direction, MOST_CLIENTS, MOST_PATHS, MOST_STREAMS, TraceEnd};

/// A scenario with one path alone; its networks, paths and links are the tables below.
const ONE_LINK: &str = "[[networks]]\nname = \"n\"\n[[networks.paths]]\nname = \"p\"\n\
                        [networks.paths.down]\nrate = \"1mbit\"\ndelay = \"1ms\"\n";
const ONE_SHARED: &str = "[[networks]]\nname = \"n\"\n[[networks.paths]]\nname = \"p\"\n\
    down = { rate = \"1mbit\", delay = \"1ms\" }\n[[networks.links]]\nname = \"l\"\n\
    down = { rate = \"1mbit\", delay = \"1ms\" }\n";
const ONE_FLOW: &str = "[[flows]]\nname = \"f\"\n";
const ONE_CROSS: &str = "[[cross]]\nname = \"c\"\nrate = \"1mbit\"\n";
const ONE_STEP: &str = "[[networks]]\nname = \"n\"\n[[networks.paths]]\nname = \"p\"\n\
    [networks.paths.down]\nrate = \"1mbit\"\ndelay = \"1ms\"\nsteps = [{ at = \"1s\", rate = \"2mbit\" }]\n\
    outages = [{ from = \"1s\", until = \"2s\" }]\n";

pub(super) static NETWORK: Table = Table {
    title: "Network",
    about: "The paths between client and server.",
    needs: &[],
    minimal: (ONE_LINK, "networks[0]"),
    fields: &[
        required("name", Kind::Text(&NAME), "What it is called in tables, such as `wifi+lte`."),
        field("about", Kind::Text(&ANY), "One line on what it stands for and where it comes from."),
        required(
            "paths",
            Kind::List(&Kind::Table(&PATH), 1, MOST_PATHS),
            "The paths; the first carries the handshake.",
        ),
        or(
            "links",
            Kind::List(&Kind::Table(&SHARED_LINKS), 0, usize::MAX),
            "none",
            "Links that paths may lead over by name: see `via`.",
        ),
        or("radio", Kind::Table(&RADIO), "none", "What paths over the radio need."),
    ],
};

static SHARED_LINKS: Table = Table {
    title: "Shared links",
    about: "Links that paths lead over which name them in `via`.",
    needs: &[],
    minimal: (ONE_SHARED, "networks[0].links[0]"),
    fields: &[
        required("name", Kind::Text(&NAME), "What paths call them."),
        required("down", Kind::Table(&LINK), "Towards the client."),
        or(
            "up",
            Kind::Table(&UPLINK),
            "as `down`",
            "Towards the server. What is not given is the downlink's.",
        ),
    ],
};

static PATH: Table = Table {
    title: "Path",
    about: "A way between client and server. Mostly it has two links of its own, one for each \
            direction. With `access` it is a dumbbell: in each direction a link of the sender, the \
            path's own, and a link of the receiver. Every pair of a client and a server has access \
            links of its own, while the path's own link is there once for all pairs. With \
            `bottleneck` a path leads over the links of an earlier path, whose queues it shares. On \
            the server's side of all that, `via` names links of the network; on the client's side, \
            `radio` an access point.",
    needs: &[&["down", "bottleneck"]],
    minimal: (ONE_LINK, "networks[0].paths[0]"),
    fields: &[
        required("name", Kind::Text(&NAME), "What it is called in tables, such as `wifi`."),
        or(
            "radio",
            Kind::Text(&NAME),
            "the client is at the links",
            "The access point between the path's links and the client.",
        ),
        or(
            "via",
            Kind::List(&Kind::Text(&NAME), 0, usize::MAX),
            "none",
            "Links of the network between the server and the path's own, in order from the server on.",
        ),
        or(
            "down",
            Kind::Table(&LINK),
            "none beside a `bottleneck`",
            "From the server to the client.",
        ),
        or(
            "up",
            Kind::Table(&UPLINK),
            "as `down`",
            "From the client to the server. What is not given is the downlink's.",
        ),
        or(
            "bottleneck",
            Kind::Text(&NAME),
            "none",
            "Name of an earlier path of the network, whose links this path leads over instead of \
             links of its own.",
        ),
        or(
            "access",
            Kind::Table(&LINK),
            "the hosts are at the shared links",
            "Each of the links between a host and the shared ones: the client's and the server's, in \
             both directions.",
        ),
    ],
};

static LINK: Table = Table {
    title: "Link",
    about: "One direction of a path: with a rate, or as a recording of one says. In `down` and \
            `access` rate and delay must be told, or recordings of them; in `up` everything may be \
            left out.",
    needs: &[&["rate", "trace"], &["delay", "delay_trace"]],
    minimal: (ONE_LINK, "networks[0].paths[0].down"),
    fields: &LINK_FIELDS,
};

static UPLINK: Table = Table {
    title: "Uplink",
    about: "The other direction, where everything may be left out.",
    needs: &[],
    minimal: (ONE_LINK, "networks[0].paths[0].up"),
    fields: &LINK_FIELDS,
};

static LINK_FIELDS: [Field; 18] = [
    or(
        "rate",
        Kind::Text(&RATE),
        "it or a `trace` must be there; in `up` as in `down`",
        "Bits per second.",
    ),
    or(
        "trace",
        Kind::Text(&TRACE),
        "none",
        "The recording whose rates the link has, in place of `rate`.",
    ),
    or(
        "column",
        Kind::Text(&NAME),
        "`down_mbps` or `up_mbps`, or else `mbps`",
        "The column of a CSV file that has the rates.",
    ),
    field(
        "steps",
        Kind::List(&Kind::Table(&STEP), 0, usize::MAX),
        "When rate, delay and loss change, in order of time.",
    ),
    or(
        "delay",
        Kind::Text(&TIME),
        "0 with a `delay_trace`, else it must be there; in `up` as in `down`",
        "One-way propagation delay.",
    ),
    or(
        "delay_trace",
        Kind::Text(&TRACE),
        "none",
        "The recording whose delays the link has on top of `delay`: half of each round trip in the \
         column `rtt_ms`, or all of each delay in `delay_ms`, until the next one.",
    ),
    field("jitter", Kind::Text(&TIME), "Each datagram takes `delay ± jitter`; not above `delay`."),
    field(
        "jitter_correlation",
        Kind::Text(&SHARE),
        "How far each datagram's jitter follows that of the one before, from 0% to below 100%.",
    ),
    field("jitter_reorders", Kind::Flag, "Whether jitter may let a datagram overtake another."),
    field(
        "loss",
        Kind::Text(&LOSS),
        "Which datagrams are lost: a share of them; `bursts SHARE CORRELATION`; `gemodel P [R [1-H \
         [1-K]]]` as netem has it; or `random SHARE CORRELATION` as netem has it, which loses far \
         less than the share.",
    ),
    or(
        "loss_trace",
        Kind::Text(&TRACE),
        "none",
        "The recording whose losses the link has in place of `loss`: the column `loss_percent`, or \
         else what was lost of the pings in `rtt_ms` in windows of five seconds.",
    ),
    or(
        "from",
        Kind::Text(&TRACE_START),
        "the start of the recordings",
        "Where in its recordings a run begins: at a time, or at one drawn for each run.",
    ),
    or(
        "at_end",
        words!(TraceEnd),
        "`loop`",
        "What comes after the end of its recordings: they start again, the last values hold, or \
         nothing leaves the link any more.",
    ),
    field(
        "queue",
        Kind::Text(&LINK_QUEUE),
        "Drop-tail queue: bytes, packets of 1,500 B, or bandwidth-delay products over the whole path. \
         `default`: the larger of 2bdp and 50p. Of a recording the mean rate and the median delay \
         count. Or one that is managed: `codel` with any of `target=5ms interval=100ms limit=1000p \
         memory=32MiB`, `fq-codel` also with `quantum=1514B flows=1024`, `pie` with `target=15ms \
         update=15ms burst=150ms limit=1000p memory=32MiB`.",
    ),
    field(
        "mark",
        Kind::Text(&MARK),
        "Datagrams that are ECN-capable and find more than this in the queue are marked.",
    ),
    field("reorder", Kind::Table(&REORDER), "Share of datagrams that is late, and by how much."),
    field(
        "duplicate",
        Kind::Table(&DUPLICATE),
        "Share of datagrams that arrives twice, and the time between.",
    ),
    field("outages", Kind::List(&Kind::Table(&OUTAGE), 0, usize::MAX), "When the link is down."),
];

static STEP: Table = Table {
    title: "Step",
    about: "A change of the link, counted from the start of the run: of its rate, its delay, its loss, \
            or of several of them. A change `over` a time is a ramp.",
    needs: &[&["rate", "delay", "loss"]],
    minimal: (ONE_STEP, "networks[0].paths[0].down.steps[0]"),
    fields: &[
        required("at", Kind::Text(&TIME), "First instant of the change."),
        or(
            "rate",
            Kind::Text(&RATE_OR_ZERO),
            "as before",
            "Bits per second from then on. 0: nothing moves until the next step with a rate, of which \
             there must be one.",
        ),
        or("delay", Kind::Text(&TIME), "as before", "One-way delay from then on."),
        or("loss", Kind::Text(&LOSS), "as before", "Which datagrams are lost from then on."),
        or("over", Kind::Text(&TIME), "0: at once", "How long it takes to get there."),
    ],
};

static REORDER: Table = Table {
    title: "Reorder",
    about: "A share of the datagrams is late.",
    needs: &[],
    minimal: (ONE_LINK, "networks[0].paths[0].down.reorder"),
    fields: &[
        required("share", Kind::Text(&SHARE), "The share."),
        required("extra", Kind::Text(&TIME), "The further delay."),
    ],
};

static DUPLICATE: Table = Table {
    title: "Duplicate",
    about: "A share of the datagrams arrives twice.",
    needs: &[],
    minimal: (ONE_LINK, "networks[0].paths[0].down.duplicate"),
    fields: &[
        required("share", Kind::Text(&SHARE), "The share."),
        required("after", Kind::Text(&TIME), "Time to the copy."),
    ],
};

static OUTAGE: Table = Table {
    title: "Outage",
    about: "A time in which a link is down, counted from the start of the run.",
    needs: &[],
    minimal: (ONE_STEP, "networks[0].paths[0].down.outages[0]"),
    fields: &[
        required("from", Kind::Text(&TIME), "First instant at which it is down."),
        required("until", Kind::Text(&TIME_OR_NEVER), "First instant at which it is up again."),
    ],
};

pub(super) static CLIENTS: Table = Table {
    title: "Clients",
    about: "The clients of a run, each of which loads the page. All lead over the same links of the \
            network; access links are each host's own.",
    needs: &[],
    minimal: ("clients = { count = 2 }\n", "clients"),
    fields: &[
        required("count", Kind::Whole(1, MOST_CLIENTS as u64), "How many."),
        or(
            "servers",
            Kind::Whole(1, MOST_CLIENTS as u64),
            "as many as clients",
            "Servers, each with access links of its own: client `i` loads from server `i mod servers`.",
        ),
        field(
            "spread",
            Kind::Text(&TIME),
            "Each client starts at an instant drawn evenly from this long, the same for every policy.",
        ),
        field(
            "every",
            Kind::Text(&TIME),
            "Client `i` starts `i` times this late, beside what `spread` draws.",
        ),
    ],
};

pub(super) static SERVER: Table = Table {
    title: "Server",
    about: "How far some servers are beyond the network: a link between them and every path, whose rate \
            is not limited. The first entry that holds for a host counts.",
    needs: &[],
    minimal: (
        "pages = [\"amazon\"]\norigins = \"recorded\"\n[[servers]]\nhosts = \"*\"\ndelay = \"1ms\"\n",
        "servers[0]",
    ),
    fields: &[
        required(
            "hosts",
            Kind::Text(&NAME),
            "Which hosts: a name as it stands in URLs, where `*` stands for any text.",
        ),
        required("delay", Kind::Text(&TIME), "One-way delay in each direction, at most 10s."),
    ],
};

pub(super) static FLOW: Table = Table {
    title: "Flow",
    about: "A connection between a client and a server of its own, over the same network as all \
            others, that carries as much as congestion control allows.",
    needs: &[],
    minimal: (ONE_FLOW, "flows[0]"),
    fields: &[
        required("name", Kind::Text(&NAME), "What it is called in tables."),
        field(
            "start",
            Kind::Text(&TIME),
            "When its client opens the connection, counted from the start of the run.",
        ),
        field(
            "stop",
            Kind::Text(&TIME_OR_NEVER),
            "When both ends close it, whatever is under way.",
        ),
        field(
            "bytes",
            Kind::Text(&SIZE_OR_UNLIMITED),
            "Bytes that it carries, over all its streams.",
        ),
        field(
            "direction",
            words!(Direction),
            "Which way: `down`, from the server to the client, or `up`.",
        ),
        or(
            "paths",
            Kind::List(&Kind::Text(&PATH_NAME), 0, usize::MAX),
            "all",
            "The network's paths that it uses, by name or number; the first carries the handshake.",
        ),
        field(
            "congestion",
            Kind::Text(&FLOW_CONGESTION),
            "Its congestion controller. `default`: that of the row, see `policies.congestion`.",
        ),
        field("path", Kind::Text(&super::text::PATH), "Its path policy."),
        field(
            "streams",
            Kind::Whole(1, MOST_STREAMS as u64),
            "Streams that share it, packet by packet.",
        ),
        or(
            "initial_window",
            Kind::Whole(1, 10_000),
            "that of `transport`",
            "Its initial congestion window in packets.",
        ),
    ],
};

pub(super) static CROSS: Table = Table {
    title: "Cross traffic",
    about: "A sender of datagrams that answers to nothing, and a sink for them, on one path of the \
            network.",
    needs: &[],
    minimal: (ONE_CROSS, "cross[0]"),
    fields: &[
        required("name", Kind::Text(&NAME), "What it is called in tables."),
        field("path", Kind::Text(&PATH_NAME), "The path, by name or number."),
        field(
            "direction",
            words!(Direction),
            "Which way: `down`, towards the client's side, or `up`.",
        ),
        field(
            "kind",
            words!(CrossKind),
            "How datagrams follow one another: at constant distances; at distances from an \
             exponential law; or at constant distances in times from an exponential law, with \
             silence between.",
        ),
        required(
            "rate",
            Kind::Text(&RATE),
            "Bits per second as links count them, headers included; of `on-off` while it is on. At \
             most 100gbit.",
        ),
        field("packet", Kind::Text(&SIZE), "UDP payload of a datagram, 64B to 65527B."),
        field(
            "on",
            Kind::Text(&TIME),
            "Mean length of the times in which `on-off` sends, drawn from an exponential law, 1us to \
             1000000s.",
        ),
        field(
            "off",
            Kind::Text(&TIME),
            "Mean length of the times in which it is silent, 1us to 1000000s.",
        ),
        field("start", Kind::Text(&TIME), "When it begins."),
        field("stop", Kind::Text(&TIME_OR_NEVER), "When it ends."),
    ],
};
