//! Queues as a scenario writes them: a limit, or a way to manage them with its parameters.

use quipu_base::Bytes;
use quipu_link::{Aqm, AqmLimit, CoDel, FqCoDel, Pie, QueueLimit};

use super::form::pattern::{queue, size, time};
use super::form::text::unit;
use super::form::{Names, Numbers, Text, amounts};
use super::units::{Unit, UnitError};
use quipu_record::nearest;

/// The queue in front of a link, written as one text.
///
/// ```
/// use quipu_scenario::{QueueSpec, units::Unit};
///
/// // Drop-tail, full at its limit.
/// assert!(matches!(QueueSpec::read("64KiB")?, QueueSpec::DropTail(_)));
/// // Managed: parameters that are not given have their defaults.
/// let queue = QueueSpec::read("codel target=10ms")?;
/// assert_eq!(queue.print(), "codel target=10ms interval=100ms limit=1000p memory=32MiB");
/// assert_eq!(queue.summary(), "codel target=10ms");
/// # Ok::<(), quipu_scenario::units::UnitError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum QueueSpec {
    /// A drop-tail queue with this limit: `default`, `1bdp`, `50p`, `64KiB` or `unlimited`. A packet
    /// stands for 1,500 bytes.
    DropTail(QueueLimit),
    /// `codel`, `fq-codel` or `pie`, each with parameters `name=value`; see [`CoDel`], [`FqCoDel`]
    /// and [`Pie`].
    ///
    /// All have `target` (a time), `limit` (packets of any size, such as `1000p`) and `memory`
    /// (bytes); the CoDels have `interval`, FQ-CoDel also `quantum` (bytes) and `flows` (a number),
    /// PIE `update` and `burst` (times).
    Managed(Aqm),
}

impl QueueSpec {
    /// True if chance decides anything.
    pub fn is_random(&self) -> bool {
        matches!(self, QueueSpec::Managed(aqm) if aqm.is_random())
    }

    /// As [`Unit::print`], without the parameters that have their defaults.
    pub fn summary(&self) -> String {
        let QueueSpec::Managed(aqm) = self else { return self.print() };
        let (name, parameters) = words(aqm);
        let (_, defaults) = words(&default_of(name).unwrap_or(*aqm));
        let changed = parameters.into_iter().zip(defaults).filter(|(own, default)| own != default);
        changed.fold(name.to_owned(), |text, ((parameter, value), _)| {
            format!("{text} {parameter}={value}")
        })
    }
}

impl Default for QueueSpec {
    fn default() -> Self {
        QueueSpec::DropTail(QueueLimit::default())
    }
}

impl From<QueueLimit> for QueueSpec {
    fn from(limit: QueueLimit) -> Self {
        QueueSpec::DropTail(limit)
    }
}

impl From<Aqm> for QueueSpec {
    fn from(aqm: Aqm) -> Self {
        QueueSpec::Managed(aqm)
    }
}

/// A name, its parameters in order, and what was expected if one of them is wrong.
struct Known {
    name: &'static str,
    parameters: &'static [&'static str],
    expected: &'static str,
    /// The same, if the name itself was nearly written.
    meant: &'static str,
}

const KNOWN: [Known; 3] = [
    Known {
        name: "codel",
        parameters: &["target", "interval", "limit", "memory"],
        expected: "`codel`, with any of target=5ms interval=100ms limit=1000p memory=32MiB",
        meant: "a queue such as default, 50p, codel, fq-codel or pie; did you mean `codel`?",
    },
    Known {
        name: "fq-codel",
        parameters: &["target", "interval", "quantum", "flows", "limit", "memory"],
        expected: "`fq-codel`, with any of target=5ms interval=100ms quantum=1514B flows=1024 \
                   limit=10240p memory=32MiB",
        meant: "a queue such as default, 50p, codel, fq-codel or pie; did you mean `fq-codel`?",
    },
    Known {
        name: "pie",
        parameters: &["target", "update", "burst", "limit", "memory"],
        expected: "`pie`, with any of target=15ms update=15ms burst=150ms limit=1000p memory=32MiB",
        meant: "a queue such as default, 50p, codel, fq-codel or pie; did you mean `pie`?",
    },
];

fn default_of(name: &str) -> Option<Aqm> {
    match name {
        "codel" => Some(Aqm::CoDel(CoDel::default())),
        "fq-codel" => Some(Aqm::FqCoDel(FqCoDel::default())),
        "pie" => Some(Aqm::Pie(Pie::default())),
        _ => None,
    }
}

/// The name of `aqm` and its parameters, in the order of [`KNOWN`].
fn words(aqm: &Aqm) -> (&'static str, Vec<(&'static str, String)>) {
    let limits = |limit: &AqmLimit| {
        [("limit", format!("{}p", limit.datagrams)), ("memory", limit.bytes.print())]
    };
    match aqm {
        Aqm::CoDel(CoDel { target, interval, limit }) => {
            let own = [("target", target.print()), ("interval", interval.print())];
            ("codel", own.into_iter().chain(limits(limit)).collect())
        }
        Aqm::FqCoDel(FqCoDel { target, interval, quantum, flows, limit }) => {
            let own = [
                ("target", target.print()),
                ("interval", interval.print()),
                ("quantum", quantum.print()),
                ("flows", flows.to_string()),
            ];
            ("fq-codel", own.into_iter().chain(limits(limit)).collect())
        }
        Aqm::Pie(Pie { target, update, burst, limit }) => {
            let own =
                [("target", target.print()), ("update", update.print()), ("burst", burst.print())];
            ("pie", own.into_iter().chain(limits(limit)).collect())
        }
    }
}

/// Sets a parameter from its text; `None` if it has no such parameter, or the text is none.
fn set(aqm: &mut Aqm, parameter: &str, value: &str) -> Option<()> {
    let limit = match aqm {
        Aqm::CoDel(CoDel { target, interval, limit }) => match parameter {
            "target" => return put(target, value),
            "interval" => return put(interval, value),
            _ => limit,
        },
        Aqm::FqCoDel(FqCoDel { target, interval, quantum, flows, limit }) => match parameter {
            "target" => return put(target, value),
            "interval" => return put(interval, value),
            "quantum" => return put(quantum, value),
            "flows" => {
                *flows = count(value)?;
                return Some(());
            }
            _ => limit,
        },
        Aqm::Pie(Pie { target, update, burst, limit }) => match parameter {
            "target" => return put(target, value),
            "update" => return put(update, value),
            "burst" => return put(burst, value),
            _ => limit,
        },
    };
    match parameter {
        "limit" => limit.datagrams = count(value.strip_suffix('p')?)?,
        "memory" => limit.bytes = Bytes::parse(value)?,
        _ => return None,
    }
    Some(())
}

fn put<T: Unit>(slot: &mut T, value: &str) -> Option<()> {
    *slot = T::parse(value)?;
    Some(())
}

/// A whole number in digits alone.
fn count(text: &str) -> Option<u32> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

impl Unit for QueueSpec {
    const EXPECTED: &'static str = "a queue such as default, 1bdp, 50p, 64KiB or unlimited, or one \
                                    that is managed, such as codel, `fq-codel target=5ms` or pie";

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let Some(mut aqm) = words.next().and_then(default_of) else {
            return QueueLimit::parse(text).map(QueueSpec::DropTail);
        };
        let mut given: Vec<&str> = Vec::new();
        for word in words {
            let (parameter, value) = word.split_once('=')?;
            if given.contains(&parameter) {
                return None;
            }
            given.push(parameter);
            set(&mut aqm, parameter, value)?;
        }
        Some(QueueSpec::Managed(aqm))
    }

    fn print(&self) -> String {
        match self {
            QueueSpec::DropTail(limit) => limit.print(),
            QueueSpec::Managed(aqm) => {
                let (name, parameters) = words(aqm);
                parameters.into_iter().fold(name.to_owned(), |text, (parameter, value)| {
                    format!("{text} {parameter}={value}")
                })
            }
        }
    }

    fn read(text: &str) -> Result<Self, UnitError> {
        Self::parse(text.trim())
            .ok_or_else(|| UnitError { text: text.to_owned(), expected: expected(text) })
    }
}

/// What `text`, which is no queue, should have been.
fn expected(text: &str) -> &'static str {
    let mut words = text.split_whitespace();
    let name = words.next().unwrap_or_default();
    let known = |name: &str| KNOWN.iter().find(|known| known.name == name);
    if let Some(known) = known(name) {
        return wrong_parameter(known, words).unwrap_or(known.expected);
    }
    // A limit is no name, however like one it is.
    let is_word = name.starts_with(|first: char| first.is_ascii_alphabetic());
    let names = KNOWN.iter().map(|known| known.name).chain(["default", "unlimited"]);
    let meant = nearest(name, names).filter(|_| is_word).and_then(known);
    meant.map_or(QueueSpec::EXPECTED, |known| known.meant)
}

/// Of the first parameter whose value is wrong what is right.
fn wrong_parameter<'a>(
    known: &Known,
    words: impl Iterator<Item = &'a str>,
) -> Option<&'static str> {
    for word in words {
        let (parameter, value) = word.split_once('=')?;
        let parameter = known.parameters.iter().find(|name| **name == parameter);
        let Some(parameter) = parameter else {
            let given = word.split_once('=').map_or(word, |(given, _)| given);
            let meant = nearest(given, known.parameters.iter().copied());
            return meant.and_then(|meant| did_you_mean(known.name, meant));
        };
        let mut aqm = default_of(known.name)?;
        if set(&mut aqm, parameter, value).is_none() {
            return Some(match *parameter {
                "target" => "target with a time, such as target=5ms",
                "interval" => "interval with a time, such as interval=100ms",
                "update" => "update with a time, such as update=15ms",
                "burst" => "burst with a time, such as burst=150ms",
                "quantum" => "quantum with a size, such as quantum=1514B",
                "flows" => "flows with a number of queues, such as flows=1024",
                "limit" => "limit with a number of packets, such as limit=1000p",
                _ => "memory with a size, such as memory=32MiB",
            });
        }
    }
    None
}

/// The parameters of a queue, and the one that was probably meant.
fn did_you_mean(name: &str, parameter: &str) -> Option<&'static str> {
    macro_rules! meant {
        ($expected:literal: $($parameter:literal)*) => {
            match parameter {
                $($parameter => Some(concat!($expected, "; did you mean `", $parameter, "`?")),)*
                _ => None,
            }
        };
    }
    match name {
        "codel" => {
            meant!("target, interval, limit or memory": "target" "interval" "limit" "memory")
        }
        "fq-codel" => meant!(
            "target, interval, quantum, flows, limit or memory":
            "target" "interval" "quantum" "flows" "limit" "memory"
        ),
        _ => meant!(
            "target, update, burst, limit or memory": "target" "update" "burst" "limit" "memory"
        ),
    }
}

/// The queue of a link: a limit, or a way to manage it.
static LINK_QUEUE: Text = Text {
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

amounts! {
    QueueSpec: LINK_QUEUE,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use quipu_base::Duration;

    use super::*;

    fn queue(text: &str) -> QueueSpec {
        QueueSpec::read(text).unwrap()
    }

    fn refused(text: &str) -> String {
        QueueSpec::read(text).unwrap_err().to_string()
    }

    #[test]
    fn every_word_reaches_the_queue() {
        assert_eq!(queue("default"), QueueSpec::default());
        assert_eq!(queue("50p"), QueueLimit::packets(50).into());
        assert_eq!(queue("codel"), Aqm::CoDel(CoDel::default()).into());
        let limit = AqmLimit { datagrams: 10, bytes: Bytes(4 << 20) };
        let [target, interval] = [6, 120].map(Duration::from_millis);
        assert_eq!(
            queue("codel  target=6ms interval=120ms limit=10p memory=4MiB"),
            Aqm::CoDel(CoDel { target, interval, limit }).into()
        );
        let (quantum, flows) = (Bytes(300), 16);
        assert_eq!(
            queue("fq-codel flows=16 quantum=300B target=6ms interval=0.12s limit=10p memory=4MiB"),
            Aqm::FqCoDel(FqCoDel { target, interval, quantum, flows, limit }).into()
        );
        let [update, burst] = [20, 0].map(Duration::from_millis);
        assert_eq!(
            queue("pie target=6ms update=20ms burst=0ms limit=10p memory=4MiB"),
            Aqm::Pie(Pie { target, update, burst, limit }).into()
        );
    }

    #[test]
    fn summaries_tell_what_is_no_default() {
        let summary = |text| queue(text).summary();
        assert_eq!(summary("default"), "default");
        assert_eq!(summary("codel"), "codel");
        assert_eq!(summary("fq-codel limit=10240p flows=4"), "fq-codel flows=4");
        assert_eq!(summary("pie target=20ms memory=1MiB"), "pie target=20ms memory=1MiB");
    }

    #[test]
    fn errors_name_what_is_right_and_the_nearest_word() {
        let did_you_mean = |text: &str, word: &str| {
            let error = refused(text);
            assert!(error.ends_with(&format!("did you mean `{word}`?")), "{error}");
        };
        did_you_mean("codell", "codel");
        did_you_mean("fqcodel", "fq-codel");
        did_you_mean("fq_codel target=5ms", "fq-codel");
        did_you_mean("pi", "pie");
        did_you_mean("codel traget=5ms", "target");
        did_you_mean("fq-codel quantums=5B", "quantum");
        did_you_mean("pie brust=5ms", "burst");
        assert_eq!(
            refused("codel target=5"),
            "`codel target=5`: expected target with a time, such as target=5ms"
        );
        assert_eq!(
            refused("fq-codel limit=5"),
            "`fq-codel limit=5`: expected limit with a number of packets, such as limit=1000p"
        );
        for text in ["codel 5ms", "codel target=1ms target=2ms", "pie xyzzy=1"] {
            assert!(refused(text).contains("with any of target="), "{}", refused(text));
        }
        for text in ["", "-5p", "0p", "xyzzy", "codel,pie"] {
            assert!(refused(text).contains("expected a queue"), "{}", refused(text));
        }
    }

    #[test]
    fn chance_is_where_it_is() {
        let random = ["default", "codel", "fq-codel", "pie"].map(|text| queue(text).is_random());
        assert_eq!(random, [false, false, true, true]);
    }

    fn specs() -> impl Strategy<Value = QueueSpec> {
        let time = || (0u64..1 << 40).prop_map(Duration::from_nanos);
        let limit = || {
            (any::<u32>(), any::<u64>())
                .prop_map(|(datagrams, bytes)| AqmLimit { datagrams, bytes: Bytes(bytes) })
        };
        prop_oneof![
            (time(), time(), limit()).prop_map(|(target, interval, limit)| {
                Aqm::CoDel(CoDel { target, interval, limit }).into()
            }),
            (time(), time(), any::<u64>(), any::<u32>(), limit()).prop_map(
                |(target, interval, quantum, flows, limit)| {
                    let quantum = Bytes(quantum);
                    Aqm::FqCoDel(FqCoDel { target, interval, quantum, flows, limit }).into()
                }
            ),
            (time(), time(), time(), limit()).prop_map(|(target, update, burst, limit)| {
                Aqm::Pie(Pie { target, update, burst, limit }).into()
            }),
        ]
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(spec in specs()) {
            prop_assert_eq!(QueueSpec::read(&spec.print()), Ok(spec));
            prop_assert_eq!(QueueSpec::read(&spec.summary()), Ok(spec));
        }

        #[test]
        fn no_text_panics(text in "(codel|fq-codel|pie|[a-z]{0,6})( ?[a-z]{0,8}=?[0-9a-zA-Z.]{0,8}){0,4}") {
            if let Ok(spec) = QueueSpec::read(&text) {
                prop_assert_eq!(QueueSpec::read(&spec.print()), Ok(spec));
            }
        }
    }
}
