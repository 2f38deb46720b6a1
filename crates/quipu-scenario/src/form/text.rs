//! Texts that fields hold: what reads each, and a pattern of the same for JSON Schema.

use quipu_base::{Bytes, Duration, Rate};
use quipu_link::{BuiltinTrace, QueueLimit};
use serde::de::value::{self, StrDeserializer};
use serde::de::{DeserializeOwned, IntoDeserializer};

use crate::experiment::Stat;
use crate::raw::Latency;
use crate::units::{Share, Unit};
use crate::{
    HttpVersion, HttpVersions, LossSpec, PRIES, PageName, PolicyLayer, QueueSpec, Series, Sizes,
    Start, TraceSpec, TraceStart, builtin_networks,
};
use quipu_record::threshold::Threshold;

/// A form of text.
#[derive(Debug)]
pub(crate) struct Text {
    /// What the reference calls it, such as `time`.
    pub(crate) name: &'static str,
    /// What is wanted, as messages have it.
    pub(crate) expected: &'static str,
    /// A regular expression, as JSON Schema has it, that matches what is accepted, and little else.
    pub(crate) pattern: &'static str,
    /// Whether a text is one.
    pub(crate) accepts: fn(&str) -> bool,
    /// Numbers that may stand there without quotation marks.
    pub(crate) numbers: Numbers,
    /// Names that such a text may be.
    pub(crate) names: Names,
    /// Some that are accepted.
    pub(crate) examples: &'static [&'static str],
    /// Some that are not, by reader and pattern alike.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests hold reader and pattern to it"))]
    pub(crate) refused: &'static [&'static str],
}

/// Names that a text may be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Names {
    /// None in particular.
    None,
    /// These, among others.
    Usual(fn() -> Vec<String>),
    /// These, and what the pattern matches.
    All(fn() -> Vec<String>),
    /// Those of the policies of this layer, which only whoever runs scenarios knows.
    Policies(PolicyLayer),
}

impl Names {
    /// The names, as far as they are known here.
    pub(crate) fn list(self) -> Vec<String> {
        match self {
            Names::None | Names::Policies(_) => Vec::new(),
            Names::Usual(names) | Names::All(names) => names(),
        }
    }
}

impl Text {
    /// What is wanted, with all names where there are no others.
    pub(crate) fn wanted(&self) -> String {
        match self.names {
            Names::All(names) => format!("{}; there are: {}", self.expected, names().join(", ")),
            Names::None | Names::Usual(_) | Names::Policies(_) => self.expected.to_owned(),
        }
    }
}

/// Which numbers may stand for a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numbers {
    /// None.
    None,
    /// Zero, which needs no unit.
    Zero,
    /// Those from 0 to 1.
    Share,
    /// Whole ones from 0.
    Index,
}

fn unit<T: Unit>(text: &str) -> bool {
    T::read(text).is_ok()
}

/// Whether serde reads a `T` from a text.
fn read<T: DeserializeOwned>(text: &str) -> bool {
    let input: StrDeserializer<'_, value::Error> = text.into_deserializer();
    T::deserialize(input).is_ok()
}

fn any(text: &str) -> bool {
    !text.trim().is_empty()
}

fn network_names() -> Vec<String> {
    builtin_networks().into_iter().map(|network| network.name).collect()
}

macro_rules! time {
    () => {
        r"[0-9]{1,20}(\.[0-9]{1,18})? *([sS]|[mM][sS]|[uUµ][sS]|[nN][sS])"
    };
}
macro_rules! rate {
    () => {
        r"[0-9]{1,20}(\.[0-9]{1,18})? *([gGmMkK]?[bB][iI][tT])(/s|ps)?"
    };
}
macro_rules! size {
    () => {
        r"[0-9]{1,20}(\.[0-9]{1,18})? *([gGmMkK]?[iI]?[bB])"
    };
}
macro_rules! share {
    () => {
        r"([0-9]{1,20}(\.[0-9]{1,18})? *%|[01](\.[0-9]{1,18})?)"
    };
}
macro_rules! queue {
    () => {
        concat!(r"default|unlimited|[0-9]{1,20}(\.[0-9]{1,18})?bdp|[0-9]{1,20}p|", size!())
    };
}
macro_rules! percentile {
    () => {
        r"p\+?0*(100|[0-9]{1,2})"
    };
}
macro_rules! policy {
    () => {
        r"[a-z0-9_-]+(:[a-z0-9_-]+=[^,\s]+(,[a-z0-9_-]+=[^,\s]+)*)?"
    };
}

/// A name that a user gives.
pub(crate) static NAME: Text = Text {
    name: "name",
    expected: "a name",
    pattern: ".",
    accepts: |text| !text.is_empty(),
    numbers: Numbers::None,
    names: Names::None,
    examples: &["wifi"],
    refused: &[""],
};

/// A host, or several.
pub(crate) static HOSTS: Text = Text {
    name: "hosts",
    expected: "a host name, in which * stands for any text",
    pattern: "^.{1,255}$",
    accepts: |text| (1..=255).contains(&text.len()),
    numbers: Numbers::None,
    names: Names::None,
    examples: &["img.cdn.net", "*.cdn.net", "*"],
    refused: &[""],
};

/// A text of any kind.
pub(crate) static ANY: Text = Text {
    name: "text",
    expected: "a text",
    pattern: "^",
    accepts: |_| true,
    numbers: Numbers::None,
    names: Names::None,
    examples: &["the framework paper's two paths"],
    refused: &[],
};

/// A field of a scenario with its value.
pub(crate) static ASSIGNMENT: Text = Text {
    name: "assignment",
    expected: "KEY=VALUE",
    pattern: "=",
    accepts: |text| text.contains('='),
    numbers: Numbers::None,
    names: Names::None,
    examples: &["transport.initial_window=32"],
    refused: &["transport.initial_window"],
};

/// What a variant is called.
pub(crate) static VARIANT: Text = Text {
    name: "name of a variant",
    expected: "letters, digits, spaces and -_.+, not beginning with a dot, and not `main`",
    pattern: r"^(?!main$)(?!\.)[\p{L}\p{N} _.+-]+$",
    accepts: |text| {
        let sign = |c: char| c.is_alphanumeric() || " -_.+".contains(c);
        text != "main" && !text.is_empty() && !text.starts_with('.') && text.chars().all(sign)
    },
    numbers: Numbers::None,
    names: Names::None,
    examples: &["unpaced", "window 32"],
    refused: &["main", "", ".hidden", "a/b"],
};

/// One number out of many.
pub(crate) static STAT: Text = Text {
    name: "statistic",
    expected: "mean, median, p0 to p100, min, max, first, last, count, rate, part, period, length or \
               deviation",
    pattern: concat!(
        "^(mean|median|min|max|first|last|count|rate|part|period|length|deviation|",
        percentile!(),
        ")$"
    ),
    accepts: |text| Stat::parse(text).is_some(),
    numbers: Numbers::None,
    names: Names::Usual(|| {
        let names = ["mean", "median", "min", "max", "first", "last", "count", "rate", "part"];
        names.into_iter().chain(["period", "length", "deviation"]).map(str::to_owned).collect()
    }),
    examples: &["mean", "p95", "first"],
    refused: &["p101", "average", ""],
};

/// One number out of all runs.
pub(crate) static OVER: Text = Text {
    name: "statistic of runs",
    expected: "mean, median, min, max or p0 to p100",
    pattern: concat!("^(mean|median|min|max|", percentile!(), ")$"),
    accepts: |text| Stat::parse(text).is_some_and(Stat::is_over_runs),
    numbers: Numbers::None,
    names: Names::Usual(|| ["mean", "median", "min", "max"].map(str::to_owned).to_vec()),
    examples: &["median", "mean", "p95"],
    refused: &["first", "p101", "deviation"],
};

/// What a number must be.
pub(crate) static THRESHOLD: Text = Text {
    name: "threshold",
    expected: "a threshold such as < 0.75, >= 90%, 0.9..1.1, = 4.375s or 50% ± 5%",
    pattern: r"^ *([<>]=?|=|[-−+.0-9]).*[0-9]",
    accepts: |text| Threshold::parse(text).is_ok(),
    numbers: Numbers::None,
    names: Names::None,
    examples: &["= 4.375s", "< 0.75", ">= 90%", "0.9..1.1", "4.375s ± 0.1%", "-78ms..-11ms"],
    refused: &["above 1", "", "<"],
};

/// A time.
pub(crate) static TIME: Text = Text {
    name: "time",
    expected: Duration::EXPECTED,
    pattern: concat!("^ *(0|", time!(), ") *$"),
    accepts: unit::<Duration>,
    numbers: Numbers::Zero,
    names: Names::None,
    examples: &["10ms", "1.5s", "100us", "0"],
    refused: &["-1ms", "10", "fast", "1e3ms", ""],
};

/// A time that may never come.
pub(crate) static TIME_OR_NEVER: Text = Text {
    name: "time or `never`",
    expected: Option::<Duration>::EXPECTED,
    pattern: concat!("^ *(never|0|", time!(), ") *$"),
    accepts: unit::<Option<Duration>>,
    numbers: Numbers::Zero,
    names: Names::None,
    examples: &["never", "20s"],
    refused: &["nver", "-1ms", "20"],
};

/// How finely time series are written.
pub(crate) static SERIES: Text = Text {
    name: "time or `none`",
    expected: Series::EXPECTED,
    pattern: concat!("^ *(none|0|", time!(), ") *$"),
    accepts: unit::<Series>,
    numbers: Numbers::Zero,
    names: Names::None,
    examples: &["none", "10ms"],
    refused: &["often", "10"],
};

/// A rate.
pub(crate) static RATE: Text = Text {
    name: "rate",
    expected: Rate::EXPECTED,
    pattern: concat!("^ *(", rate!(), ") *$"),
    accepts: unit::<Rate>,
    numbers: Numbers::None,
    names: Names::None,
    examples: &["30mbit", "500kbit", "1.5mbit/s"],
    refused: &["30", "-30mbit", "30mb", "fast"],
};

/// A rate that may be zero.
pub(crate) static RATE_OR_ZERO: Text = Text {
    name: "rate or 0",
    expected: Option::<Rate>::EXPECTED,
    pattern: concat!("^ *(0|", rate!(), ") *$"),
    accepts: unit::<Option<Rate>>,
    numbers: Numbers::Zero,
    names: Names::None,
    examples: &["4mbit", "0"],
    refused: &["4", "-1mbit"],
};

/// A size.
pub(crate) static SIZE: Text = Text {
    name: "size",
    expected: Bytes::EXPECTED,
    pattern: concat!("^ *(", size!(), ") *$"),
    accepts: unit::<Bytes>,
    numbers: Numbers::None,
    names: Names::None,
    examples: &["3000B", "32KiB", "6MiB", "10kB"],
    refused: &["3000", "-1B", "many"],
};

/// A size that may have no limit.
pub(crate) static SIZE_OR_UNLIMITED: Text = Text {
    name: "size or `unlimited`",
    expected: Option::<Bytes>::EXPECTED,
    pattern: concat!("^ *(unlimited|", size!(), ") *$"),
    accepts: unit::<Option<Bytes>>,
    numbers: Numbers::None,
    names: Names::None,
    examples: &["unlimited", "32KiB"],
    refused: &["unlimted", "32"],
};

/// A share.
pub(crate) static SHARE: Text = Text {
    name: "share",
    expected: Share::EXPECTED,
    pattern: concat!("^ *", share!(), " *$"),
    accepts: unit::<Share>,
    numbers: Numbers::Share,
    names: Names::None,
    examples: &["1.5%", "0.015", "100%"],
    refused: &["-1%", "half", "2"],
};

/// A model of losses.
pub(crate) static LOSS: Text = Text {
    name: "loss",
    expected: LossSpec::EXPECTED,
    pattern: concat!(
        "^ *(",
        share!(),
        r"|(bursts|random) +",
        share!(),
        " +",
        share!(),
        r"|gemodel( +",
        share!(),
        "){1,4}) *$"
    ),
    accepts: unit::<LossSpec>,
    numbers: Numbers::Share,
    names: Names::None,
    examples: &["1.5%", "bursts 1.5% 50%", "gemodel 1% 30% 100% 0%", "random 1.5% 50%"],
    refused: &["much", "burst 1% 50%", "bursts 1%", "gmodel 1% 2%"],
};

/// A recording.
pub(crate) static TRACE: Text = Text {
    name: "recording",
    expected: TraceSpec::EXPECTED,
    pattern: r"\S",
    accepts: unit::<TraceSpec>,
    numbers: Numbers::None,
    names: Names::Usual(|| BuiltinTrace::all().iter().map(|trace| trace.name.to_owned()).collect()),
    examples: &["us-drive-08-att", "traces/bus.csv", "traces/bus.mahi"],
    refused: &[""],
};

/// Where in a recording a run begins.
pub(crate) static TRACE_START: Text = Text {
    name: "time or `random`",
    expected: TraceStart::EXPECTED,
    pattern: concat!("^ *(random|0|", time!(), ") *$"),
    accepts: unit::<TraceStart>,
    numbers: Numbers::Zero,
    names: Names::Usual(|| vec!["random".to_owned()]),
    examples: &["random", "30s"],
    refused: &["rndom", "30"],
};

/// The limit of a queue.
pub(crate) static QUEUE: Text = Text {
    name: "queue",
    expected: QueueLimit::EXPECTED,
    pattern: concat!("^ *(", queue!(), ") *$"),
    accepts: unit::<QueueLimit>,
    numbers: Numbers::None,
    names: Names::None,
    examples: &["default", "1bdp", "50p", "64KiB", "unlimited"],
    refused: &["50", "-1bdp", "long"],
};

/// The queue of a link: a limit, or a way to manage it.
pub(crate) static LINK_QUEUE: Text = Text {
    name: "queue, managed or not",
    expected: QueueSpec::EXPECTED,
    pattern: concat!(
        "^ *(",
        queue!(),
        r"|codel( +(target|interval)=(0|",
        time!(),
        r")| +limit=[0-9]{1,10}p| +memory=",
        size!(),
        r")*|fq-codel( +(target|interval)=(0|",
        time!(),
        r")| +flows=[0-9]{1,10}| +limit=[0-9]{1,10}p| +(quantum|memory)=",
        size!(),
        r")*|pie( +(target|update|burst)=(0|",
        time!(),
        r")| +limit=[0-9]{1,10}p| +memory=",
        size!(),
        r")*) *$"
    ),
    accepts: unit::<QueueSpec>,
    numbers: Numbers::None,
    names: Names::None,
    examples: &["default", "50p", "64KiB", "codel", "fq-codel target=5ms", "pie target=15ms"],
    refused: &["50", "-1bdp", "codell", "codel target=5", "pie interval=5ms"],
};

/// A threshold in a queue.
pub(crate) static MARK: Text = Text {
    name: "threshold of a queue, or `never`",
    expected: Option::<QueueLimit>::EXPECTED,
    pattern: concat!("^ *(never|", queue!(), ") *$"),
    accepts: unit::<Option<QueueLimit>>,
    numbers: Numbers::None,
    names: Names::None,
    examples: &["never", "30p", "0.5bdp"],
    refused: &["nevr", "30"],
};

/// What is done before a page.
pub(crate) static START: Text = Text {
    name: "start",
    expected: "cold, paths-ready, or warm:N with N from 1 to 1000",
    pattern: "^(cold|paths-ready|warm:[+]?0*([1-9][0-9]{0,2}|1000))$",
    accepts: read::<Start>,
    numbers: Numbers::None,
    names: Names::Usual(|| ["cold", "paths-ready", "warm:4"].map(str::to_owned).to_vec()),
    examples: &["cold", "paths-ready", "warm:4", "warm:1000"],
    refused: &["warm", "warm:0", "warm:1001", "hot"],
};

/// Ways to carry HTTP.
pub(crate) static HTTP: Text = Text {
    name: "versions of HTTP",
    expected: "h2, h2-tcp, both separated by a comma, or raw alone",
    pattern: "^ *(raw|(h2|h2-tcp|h3)( *, *(h2|h2-tcp|h3))*) *$",
    accepts: read::<HttpVersions>,
    numbers: Numbers::None,
    names: Names::Usual(|| HttpVersion::NAMES.iter().map(|&name| name.to_owned()).collect()),
    examples: &["h2", "h2-tcp", "h2,h2-tcp", "raw"],
    refused: &["http2", "h2,raw", ""],
};

/// A page.
pub(crate) static PAGE: Text = Text {
    name: "page",
    expected: "the name of a page, a HAR file, pries, or pries:N",
    pattern: r"^(pries:\+?[0-9]{1,20}|(?!pries:).*\S.*)$",
    accepts: |text| any(text) && PageName::parse(text).is_ok(),
    numbers: Numbers::None,
    names: Names::Usual(|| {
        let recorded = quipu_web::pages::builtin().iter().map(|page| page.name);
        recorded.chain([PRIES]).map(str::to_owned).collect()
    }),
    examples: &["framework-youtube", "recordings/shop.har", "pries", "pries:3"],
    refused: &["", "pries:x"],
};

/// A network by name.
pub(crate) static NETWORK_NAME: Text = Text {
    name: "name of a network",
    expected: "the name of a network, or of a file that ends in .toml and describes one",
    pattern: r"\.toml$",
    accepts: |text| text.ends_with(".toml") || network_names().iter().any(|name| name == text),
    numbers: Numbers::None,
    names: Names::All(network_names),
    examples: &["wifi+lte"],
    refused: &["", "wifi+lt"],
};

/// A path of a network.
pub(crate) static PATH_NAME: Text = Text {
    name: "name of a path",
    expected: "the name of a path, or its number from 0",
    pattern: ".",
    accepts: any,
    numbers: Numbers::Index,
    names: Names::None,
    examples: &["wifi", "0"],
    refused: &[""],
};

/// A size for each of several objects.
pub(crate) static SIZES: Text = Text {
    name: "sizes",
    expected: "sizes such as 10kB+2kB, or a list of them",
    pattern: concat!("^ *(", size!(), r"( *\+ *", size!(), ")*)? *$"),
    accepts: read::<Sizes>,
    numbers: Numbers::None,
    names: Names::None,
    examples: &["10kB+2kB", "50kB"],
    refused: &["10+2", "large"],
};

/// The latency of a raw stream.
pub(crate) static LATENCY: Text = Text {
    name: "latency",
    expected: Latency::EXPECTED,
    pattern: concat!("^ *(0|", time!(), "|default) *$"),
    accepts: unit::<Latency>,
    numbers: Numbers::None,
    names: Names::None,
    examples: &["100ms", "default"],
    refused: &["soon", "100"],
};

macro_rules! policies {
    ($($(#[$meta:meta])* $one:ident, $layer:ident, $name:literal, $examples:expr;)+) => {
        $($(#[$meta])*
        pub(crate) static $one: Text = Text {
            name: $name,
            expected: "a policy, such as `quipu schedulers` lists them, with parameters as in \
                       ecf:beta=0.25,delta=1",
            pattern: concat!("^ *", policy!(), " *$"),
            accepts: any,
            numbers: Numbers::None,
            names: Names::Policies(PolicyLayer::$layer),
            examples: $examples,
            refused: &[""],
        };)+
    };
}

policies! {
    /// A stream policy.
    STREAM, Stream, "stream policy", &["dwrr", "rr:unit=frame", "all"];
    /// A path policy.
    PATH, Path, "path policy", &["minrtt", "ecf:beta=0.25,delta=1", "single:id=1", "all"];
    /// A joint policy.
    JOINT, Joint, "joint policy", &["sa-ecf", "sec:queue=paper", "all"];
    /// A flow's controller.
    FLOW_CONGESTION, Congestion, "congestion controller", &["default", "cubic"];
    /// How many streams share a packet.
    PACK, Pack, "packing policy", &["default"];
    /// When lost bytes go again.
    RESEND, Resend, "resending policy", &["default"];
    /// Copies.
    REINJECT, Reinject, "reinjection policy", &["none"];
}

macro_rules! lists_of_policies {
    ($($(#[$meta:meta])* $one:ident, $layer:ident, $name:literal, $examples:expr;)+) => {
        $($(#[$meta])*
        pub(crate) static $one: Text = Text {
            name: $name,
            expected: "policies, such as `quipu schedulers` lists them, separated by commas",
            pattern: concat!("^ *", policy!(), "( *, *", policy!(), ")* *$"),
            accepts: any,
            numbers: Numbers::None,
            names: Names::Policies(PolicyLayer::$layer),
            examples: $examples,
            refused: &[""],
        };)+
    };
}

lists_of_policies! {
    /// Policies of acknowledgements.
    ACKS, Ack, "acknowledgement policies", &["own", "own,min-owd", "all"];
    /// Controllers.
    CONGESTIONS, Congestion, "congestion controllers", &["newreno", "newreno,cubic,olia", "all"];
}
