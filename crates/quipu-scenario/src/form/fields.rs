//! The fields of a scenario itself, and of those of its tables that are there once.

use quipu_web::scheme::BrowserScheme;

use super::experiment::EXPERIMENT;
use super::tables::{CLIENTS, CROSS, FLOW, NETWORK, SERVER};
use super::text::*;
use super::{Absent, Field, Kind, Table};
use crate::limits::MOST_SERVERS;
use crate::{
    Certificate, Discovery, KeyExchange, MOST_CLIENTS, MOST_FLOWS, MOST_RAW_OBJECTS,
    MOST_RAW_STREAMS, MOST_RUNS, MOST_SESSION, Origins, Priorities, Reprioritise, Sender,
    SeriesEnds, Tls, WriteOrder,
};

/// The whole of a scenario file.
pub(crate) fn scenario() -> &'static Table {
    &SCENARIO
}

/// A network in a file of its own.
pub(crate) fn network() -> &'static Table {
    &NETWORK
}

/// A field that has a default.
pub(super) const fn field(name: &'static str, kind: Kind, about: &'static str) -> Field {
    Field { name, about, absent: Absent::Default, kind }
}

/// A field that must be there.
pub(super) const fn required(name: &'static str, kind: Kind, about: &'static str) -> Field {
    Field { name, about, absent: Absent::Required, kind }
}

/// A field for which something stands that is no value.
pub(super) const fn or(
    name: &'static str,
    kind: Kind,
    absent: &'static str,
    about: &'static str,
) -> Field {
    Field { name, about, absent: Absent::Words(absent), kind }
}

macro_rules! words {
    ($choice:ty) => {
        Kind::Words(|| <$choice>::NAMES.to_vec())
    };
}
pub(super) use words;

static SCENARIO: Table = Table {
    title: "Scenario",
    about: "An experiment: every page over every network with every policy, `runs` times. What is \
            left out has its default, so that the empty file is a scenario too.",
    needs: &[],
    minimal: ("", ""),
    fields: &[
        field(
            "seed",
            Kind::Whole(0, i64::MAX as u64),
            "The experiment's seed, from which all chance comes.",
        ),
        field(
            "runs",
            Kind::Whole(1, MOST_RUNS as u64),
            "Runs of each combination; run `n` has the same links, losses and page for each policy.",
        ),
        field(
            "pages",
            Kind::List(&Kind::Text(&PAGE), 0, usize::MAX),
            "Pages: names that come with the program, HAR files, `pries` (drawn anew for each run \
             from the model of Pries et al.) or `pries:N` (the page that run N draws). May be empty \
             if there are flows.",
        ),
        field(
            "session",
            Kind::Whole(1, MOST_SESSION as u64),
            "Pages that a run loads one after the other over its connection, each read for a time \
             drawn from the model of Pries et al.; `pries` draws each, another page is loaded again.",
        ),
        field(
            "browser",
            Kind::Words(|| BrowserScheme::names().collect()),
            "The browser whose requests and priorities are used.",
        ),
        field(
            "priorities",
            words!(Priorities),
            "How the browser tells what is urgent: by the tree of RFC 7540 or by urgencies of RFC 9218.",
        ),
        field(
            "reprioritise",
            words!(Reprioritise),
            "Whether requests under way are prioritised again at layout: as the browser does, or never.",
        ),
        field(
            "visible_images",
            Kind::Whole(0, 1_000),
            "Images that count as visible where a recording does not say which are: the first of the \
             main document that are not small.",
        ),
        field(
            "discovery",
            words!(Discovery),
            "When objects are asked for: when the parser or a parent comes to them, or all at time 0.",
        ),
        field(
            "origins",
            words!(Origins),
            "How many servers a page comes from: one, or as many as the recording has, each with a \
             connection of its own.",
        ),
        field(
            "clients",
            Kind::Either(&[Kind::Whole(1, MOST_CLIENTS as u64), Kind::Table(&CLIENTS)]),
            "Clients, each of which loads the page over connections of its own: a number, or a table.",
        ),
        field(
            "http",
            Kind::Text(&HTTP),
            "How HTTP is carried: over QUIC's streams, over one byte stream as over TCP, or not at \
             all (`raw`: see `raw`). Several ways are rows each.",
        ),
        field(
            "host_jitter",
            Kind::Text(&TIME),
            "Greatest random processing delay of a host per datagram, at most 1s; 0 turns it off.",
        ),
        field(
            "link_overhead",
            Kind::Text(&SIZE),
            "Bytes counted on a link above the UDP payload, at most 1000B: IPv4 and UDP.",
        ),
        field(
            "time_limit",
            Kind::Text(&TIME),
            "Virtual time after which a load that has not ended is an error, 1ms to 1000000s.",
        ),
        field(
            "duration",
            Kind::Text(&TIME),
            "How long a run without pages lasts, unless all its flows end earlier, 1ms to 1000000s. \
             One with pages ends with its page.",
        ),
        field(
            "measure",
            Kind::Table(&MEASURE),
            "Over which part of a run flows and links are measured.",
        ),
        field(
            "series",
            Kind::Text(&SERIES),
            "How finely the state of connections and queues is written out over time \
             (`series.csv`): at the start and then every so long, at least 10us.",
        ),
        field(
            "series_ends",
            words!(SeriesEnds),
            "Which ends of connections are written out: the sender of the data, or both.",
        ),
        field(
            "policies",
            Kind::Table(&POLICIES),
            "Who decides which bytes go next, on which path.",
        ),
        field("transport", Kind::Table(&TRANSPORT), "The transport of both ends."),
        field("raw", Kind::Table(&RAW), "Raw streams, for `http = \"raw\"`."),
        field(
            "networks",
            Kind::List(
                &Kind::Either(&[Kind::Text(&NETWORK_NAME), Kind::Table(&NETWORK)]),
                1,
                usize::MAX,
            ),
            "The networks; each a table, or the name of one that comes with the program or of a file.",
        ),
        or(
            "servers",
            Kind::List(&Kind::Table(&SERVER), 0, MOST_SERVERS),
            "none",
            "Servers that are farther than the network's paths reach, with `origins = \"recorded\"`.",
        ),
        or(
            "flows",
            Kind::List(&Kind::Table(&FLOW), 0, MOST_FLOWS),
            "none",
            "Flows beside the page, or without one.",
        ),
        or("cross", Kind::List(&Kind::Table(&CROSS), 0, MOST_FLOWS), "none", "Cross traffic."),
        or(
            "experiment",
            Kind::Table(&EXPERIMENT),
            "none",
            "What is claimed of the results, for `quipu reproduce`. Plays no part in runs.",
        ),
        or(
            "sweep",
            Kind::Sweep,
            "none",
            "Which fields take which values, for `quipu sweep`: each key is a field with a list of \
             values; `zip` is a list of tables of fields that move together, `random` a table of what is \
             drawn. [sweeps.md](sweeps.md) explains it. Plays no part in single runs.",
        ),
    ],
};

static MEASURE: Table = Table {
    title: "Measure",
    about: "The part of a run over which flows and links are measured.",
    needs: &[],
    minimal: ("", "measure"),
    fields: &[
        field("from", Kind::Text(&TIME), "From when on."),
        field("until", Kind::Text(&TIME_OR_NEVER), "Until when; `never`: until the run ends."),
    ],
};

static POLICIES: Table = Table {
    title: "Policies",
    about: "The policies that are compared: every stream policy with every path policy, then every \
            joint one, then each path alone. `all` stands for every policy of its layer. \
            `quipu schedulers` lists them, and `quipu schedulers NAME` tells the parameters of one.",
    needs: &[],
    minimal: ("", "policies"),
    fields: &[
        field("stream", Kind::List(&Kind::Text(&STREAM), 0, usize::MAX), "Stream policies."),
        field("path", Kind::List(&Kind::Text(&PATH), 0, usize::MAX), "Path policies."),
        field(
            "joint",
            Kind::List(&Kind::Text(&JOINT), 0, usize::MAX),
            "Policies that decide both at once.",
        ),
        field(
            "ack",
            Kind::Text(&ACKS),
            "Which path an acknowledgement takes; several, separated by commas, are rows each.",
        ),
        field(
            "congestion",
            Kind::Text(&CONGESTIONS),
            "How much may be in flight on each path; several, separated by commas, are rows each.",
        ),
        field(
            "pack",
            Kind::Text(&PACK),
            "How many streams share a packet. `default`: what the stream policy says.",
        ),
        field(
            "resend",
            Kind::Text(&RESEND),
            "When and where lost bytes go again. `default`: what the stream policy says.",
        ),
        field(
            "reinject",
            Kind::Text(&REINJECT),
            "Copies of bytes in flight on other paths. `none`: those alone that a path policy brings.",
        ),
        field(
            "baselines",
            Kind::Flag,
            "Whether each path alone is a row too (`single:id=N` with the first stream policy).",
        ),
    ],
};

static TRANSPORT: Table = Table {
    title: "Transport",
    about: "What both ends' QUIC does. All defaults are the project's conventions; papers differ in some.",
    needs: &[],
    minimal: ("", "transport"),
    fields: &[
        field(
            "initial_udp_payload",
            Kind::Text(&SIZE),
            "UDP payload of a packet before the path is validated for more, 1200B to `udp_payload`.",
        ),
        field(
            "udp_payload",
            Kind::Text(&SIZE),
            "UDP payload of a packet after the handshake, 1200B to 65527B.",
        ),
        field(
            "initial_window",
            Kind::Whole(1, 10_000),
            "Initial congestion window in packets; the framework paper and MobileH2 have 32.",
        ),
        field(
            "pacing",
            Kind::Flag,
            "Whether packets are paced. A congestion controller that names a pacing rate of its own \
             paces all the same.",
        ),
        field("pacing_factor", Kind::Number(0.1, 100.0), "Pacing rate in windows per round trip."),
        field("pacing_burst_packets", Kind::Whole(1, 10_000), "Packets that may leave at once."),
        field(
            "pacing_burst_time",
            Kind::Text(&TIME),
            "Or as many as the pacing rate gives in this time, if that is more.",
        ),
        field(
            "pacing_burst_limit",
            Kind::Text(&SIZE),
            "But never more than this at once, `udp_payload` to 1GiB.",
        ),
        field(
            "ecn",
            Kind::Flag,
            "Whether packets are marked as able to carry congestion marks, ECT(0).",
        ),
        field("ack_every", Kind::Whole(1, 1_000), "Ack-eliciting packets per acknowledgement."),
        field(
            "max_ack_delay",
            Kind::Text(&TIME),
            "How late an acknowledgement is at most, below 16384ms.",
        ),
        field("stream_credit", Kind::Text(&SIZE), "Receive credit of a stream, 1KiB to 1024GiB."),
        field(
            "connection_credit",
            Kind::Text(&SIZE),
            "Receive credit of the connection, 1KiB to 1024GiB.",
        ),
        field(
            "tls",
            words!(Tls),
            "TLS 1.3 by rustls, or its stand-in with the same flights and sizes and without arithmetic.",
        ),
        field("key_exchange", words!(KeyExchange), "Key exchange."),
        field("certificate", words!(Certificate), "Kind of the server's certificate."),
        field(
            "certificate_chain",
            Kind::Text(&SIZE),
            "Bytes of the server's certificate chain, 100B to 64KiB, so that the limit against \
             amplification acts as in life.",
        ),
        field(
            "start",
            Kind::Text(&START),
            "What is done before the page is asked for: nothing; the handshake and the validation of \
             all paths; or N small objects were fetched.",
        ),
        field(
            "data_frame",
            Kind::Text(&SIZE),
            "With `http = \"h2-tcp\"`, most body bytes of a DATA frame, 1B to 16KiB: the stream policy \
             is asked once for each.",
        ),
        field(
            "unsent_limit",
            Kind::Text(&SIZE),
            "With `http = \"h2-tcp\"`, DATA frames are written while fewer bytes than this wait unsent \
             in the byte stream, 1B to 1GiB.",
        ),
        field(
            "server_write_chunk",
            Kind::Text(&SIZE_OR_UNLIMITED),
            "Bytes that the server writes to a stream at a time; the framework paper has 32KiB.",
        ),
    ],
};

static RAW: Table = Table {
    title: "Raw",
    about: "What `http = \"raw\"` writes to which stream. Without effect otherwise.",
    needs: &[],
    minimal: ("", "raw"),
    fields: &[
        field(
            "streams",
            Kind::List(
                &Kind::Either(&[Kind::Text(&LATENCY), Kind::Table(&RAW_STREAM)]),
                1,
                MOST_RAW_STREAMS,
            ),
            "The streams, opened in this order, each with a latency of its own for deadline policies \
             such as `edf`, at most 3600s, or `default`.",
        ),
        field(
            "split",
            Kind::Either(&[Kind::Text(&SIZES), Kind::List(&Kind::Text(&SIZE), 0, usize::MAX)]),
            "Sizes in ascending order, one fewer than streams. An object goes to the first stream if \
             it is a document or smaller than the first size, to the second if smaller than the \
             second size, and so on; to the last if it is no smaller than any.",
        ),
        field(
            "order",
            words!(WriteOrder),
            "Order of writing: as given, or shuffled by the run's chance.",
        ),
        field("sender", words!(Sender), "Which end writes; the server is asked by one byte."),
        field("gap", Kind::Text(&TIME), "From one write to the next, at most 1s."),
        field(
            "objects",
            Kind::List(
                &Kind::Either(&[
                    Kind::Text(&SIZES),
                    Kind::List(&Kind::Text(&SIZE), 0, MOST_RAW_OBJECTS),
                ]),
                0,
                MOST_RAW_STREAMS,
            ),
            "Sizes of objects by stream, instead of `pages` and `split`.",
        ),
    ],
};

static RAW_STREAM: Table = Table {
    title: "Raw stream",
    about: "A raw stream, where its latency alone is not enough.",
    needs: &[],
    minimal: ("[raw]\nstreams = [{ latency = \"1ms\" }]\n", "raw.streams[0]"),
    fields: &[or(
        "latency",
        Kind::Text(&LATENCY),
        "that of the policy",
        "From writing to deadline.",
    )],
};
