//! The fields of a network's radio.

use super::fields::{field, or, required, words};
use super::text::*;
use super::{Kind, Table};
use crate::RadioTiming;

/// A scenario with one access point and a station of each kind.
const ONE_RADIO: &str = "[[networks]]\nname = \"n\"\n[[networks.paths]]\nname = \"p\"\nradio = \"a\"\n\
    down = { rate = \"1mbit\", delay = \"1ms\" }\n[networks.radio]\n\
    propagation = { shadowing = { deviation = 4, distance = 10 } }\n\
    access_points = [{ name = \"a\", position = [0, 0], channel = 36 }]\n\
    stations = [{ position = [1, 1], walk = [{ to = [2, 2], speed = 1 }] },\n\
    { waypoints = [{ at = \"0s\", position = [1, 1] }] },\n\
    { wander = { area = [9, 9], speed = [1, 2] } }]\n";

/// East and north in metres.
const PLACE: Kind = Kind::List(&Kind::Number(-1e9, 1e9), 2, 2);

pub(super) static RADIO: Table = Table {
    title: "Radio",
    about: "Wi-Fi of a network: 802.11a. A path leads over it if it names one of the access points. \
            Access points on one channel, and all their stations, share its airtime in both \
            directions. The client of the page is the first station, those of flows and cross traffic \
            are the next ones in order; clients without a station of their own are where the last one \
            is.",
    needs: &[],
    minimal: (ONE_RADIO, "networks[0].radio"),
    fields: &[
        field(
            "timing",
            words!(RadioTiming),
            "How airtime is counted: as in the standard, or as wmediumd counts it.",
        ),
        field(
            "queue",
            Kind::Text(&QUEUE),
            "Drop-tail queue of each sender for each other end. `default`: that of a link with 54 \
             Mb/s and the round trip of the path.",
        ),
        field("propagation", Kind::Table(&PROPAGATION), "What becomes of a signal on its way."),
        required(
            "access_points",
            Kind::List(&Kind::Table(&ACCESS_POINT), 0, 64),
            "The access points, at most 64.",
        ),
        required(
            "stations",
            Kind::List(&Kind::Table(&STATION), 1, 1_000),
            "The stations, 1 to 1000.",
        ),
    ],
};

static PROPAGATION: Table = Table {
    title: "Propagation",
    about: "What becomes of a signal on its way: log-distance loss with shadows and fading.",
    needs: &[],
    minimal: (ONE_RADIO, "networks[0].radio.propagation"),
    fields: &[
        field("exponent", Kind::Number(1.0, 8.0), "Exponent of the distance."),
        field(
            "fading",
            Kind::Number(0.0, 30.0),
            "Standard deviation of the fading of each attempt in decibels.",
        ),
        field("noise", Kind::Number(-150.0, 0.0), "Noise in dBm."),
        field(
            "margin",
            Kind::Number(0.0, 30.0),
            "Decibels above its sensitivity that a rate must have to be chosen.",
        ),
        or("shadowing", Kind::Table(&SHADOWING), "none", "Shadows."),
    ],
};

static SHADOWING: Table = Table {
    title: "Shadowing",
    about: "Shadows, which are alike at places and times that are near each other.",
    needs: &[],
    minimal: (ONE_RADIO, "networks[0].radio.propagation.shadowing"),
    fields: &[
        required("deviation", Kind::Number(0.0, 30.0), "Standard deviation in decibels."),
        required(
            "distance",
            Kind::Number(0.1, 10_000.0),
            "Metres over which the correlation falls to 1/e.",
        ),
        field(
            "time",
            Kind::Text(&TIME_OR_NEVER),
            "Time over which it falls to 1/e, at least 10ms.",
        ),
    ],
};

static ACCESS_POINT: Table = Table {
    title: "Access point",
    about: "An access point.",
    needs: &[],
    minimal: (ONE_RADIO, "networks[0].radio.access_points[0]"),
    fields: &[
        required("name", Kind::Text(&NAME), "What paths call it."),
        required("position", PLACE, "Metres to the east and to the north."),
        required("channel", Kind::Whole(0, 255), "Number of the channel, such as 36."),
        field("power", Kind::Number(-30.0, 60.0), "Power of the transmitter in dBm."),
        field("gain", Kind::Number(-30.0, 60.0), "Gain of the antenna in decibels."),
    ],
};

static STATION: Table = Table {
    title: "Station",
    about: "A station: at a `position`, from which it may `walk`; or at `waypoints`; or it may \
            `wander`.",
    needs: &[&["position", "waypoints", "wander"]],
    minimal: (ONE_RADIO, "networks[0].radio.stations[0]"),
    fields: &[
        or(
            "position",
            PLACE,
            "none",
            "Where it is, or begins to walk: metres to the east and to the north.",
        ),
        field("power", Kind::Number(-30.0, 60.0), "Power of the transmitter in dBm."),
        field("gain", Kind::Number(-30.0, 60.0), "Gain of the antenna in decibels."),
        or(
            "walk",
            Kind::List(&Kind::Table(&LEG), 0, usize::MAX),
            "none",
            "Where it goes from its position, from the start of the run on.",
        ),
        or(
            "waypoints",
            Kind::List(&Kind::Table(&WAYPOINT), 0, usize::MAX),
            "none",
            "Where it is at which times.",
        ),
        or("wander", Kind::Table(&WANDER), "none", "It goes to one drawn place after the other."),
    ],
};

static LEG: Table = Table {
    title: "Leg",
    about: "A straight way.",
    needs: &[],
    minimal: (ONE_RADIO, "networks[0].radio.stations[0].walk[0]"),
    fields: &[
        required("to", PLACE, "Its end: metres to the east and to the north."),
        required("speed", Kind::Number(0.01, 1_000.0), "Metres per second."),
    ],
};

static WAYPOINT: Table = Table {
    title: "Waypoint",
    about: "A place at a time.",
    needs: &[],
    minimal: (ONE_RADIO, "networks[0].radio.stations[1].waypoints[0]"),
    fields: &[
        required("at", Kind::Text(&TIME), "When, from the start of the run."),
        required("position", PLACE, "Where: metres to the east and to the north."),
    ],
};

static WANDER: Table = Table {
    title: "Wander",
    about: "Random waypoints.",
    needs: &[],
    minimal: (ONE_RADIO, "networks[0].radio.stations[2].wander"),
    fields: &[
        required(
            "area",
            PLACE,
            "Metres from west to east and from south to north, from the origin on.",
        ),
        required(
            "speed",
            Kind::List(&Kind::Number(0.01, 1_000.0), 2, 2),
            "The slowest and the fastest leg in metres per second.",
        ),
    ],
};
