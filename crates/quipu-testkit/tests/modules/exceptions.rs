//! Circles of modules that may be there: fewer with time.

/// A circle: the crate, the folder (empty at the top), its modules, and why it is there.
pub(crate) type Exception = (&'static str, &'static str, &'static [&'static str], &'static str);

/// A circle may be smaller than it stands here, and must be there.
pub(crate) const EXCEPTIONS: &[Exception] = &[
    (
        "quic",
        "",
        &["connection", "recorder"],
        "A recorder is told of connections, whose state it names.",
    ),
    (
        "quic",
        "connection",
        &["control", "packet", "transmit"],
        "A packet is filled by whoever has something to send in it.",
    ),
    (
        "quic",
        "connection",
        &["handshake", "receive"],
        "Kept packets are read as soon as the handshake gives their keys.",
    ),
    (
        "qlog",
        "",
        &["event", "folder", "recorder"],
        "The recorder writes events into files of its folder, which makes recorders.",
    ),
    (
        "qlog",
        "",
        &["file", "header"],
        "A file begins with its header, whose form the file decides.",
    ),
    (
        "report",
        "",
        &["aggregate", "read", "results"],
        "Results are read into the cells that aggregates are made of.",
    ),
    (
        "link",
        "",
        &[
            "aqm",
            "config",
            "link",
            "loss",
            "outage",
            "pings",
            "propagation",
            "queue",
            "radio",
            "rate",
            "stats",
            "trace",
        ],
        "A link is configured by the parts that it is made of, and each part checks its configuration.",
    ),
    ("web", "har", &["lenient", "model"], "What is read leniently are fields of the model."),
    (
        "web",
        "page",
        &["initiator", "report", "select"],
        "A page's report counts what selecting and attributing found.",
    ),
    (
        "web",
        "page",
        &["object", "size"],
        "The size of an object is a part of it that is known by its kind.",
    ),
    (
        "http",
        "",
        &["byte_stream", "exchange", "h2", "h3", "transport"],
        "Both ways to carry HTTP/2 use its frames, and are transports to it; the transport of QUIC passes its events \
         on to both versions, whose exchanges fail when it does.",
    ),
    (
        "http",
        "h2::frame",
        &["decode", "error", "settings"],
        "An error of a frame names the setting that is wrong.",
    ),
    (
        "http",
        "qpack",
        &["decoder", "prefix"],
        "An error of a field section may be one of its prefix.",
    ),
    (
        "sim",
        "",
        &["node", "outgoing"],
        "A node sends into what the world gives it, and the world sends for nodes.",
    ),
];
