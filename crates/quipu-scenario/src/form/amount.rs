//! Amounts with their units: the texts that they are written as.

use quipu_base::{Bytes, Duration, Rate};
use quipu_link::QueueLimit;

use super::pattern::{queue, rate, share, size, time};
use super::text::{Names, Numbers, Text, unit};
use crate::units::{Share, Unit};

/// Amounts that are read from text.
macro_rules! amounts {
    ($($ty:ty: $text:ident,)+) => {$(
        impl $crate::form::FieldType for $ty {
            fn kind() -> $crate::form::Kind {
                $crate::form::Kind::Text(&$text)
            }

            fn from_input<'de, D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
                match $text.numbers {
                    $crate::form::Numbers::None => {
                        let text = <String as serde::Deserialize>::deserialize(input)?;
                        <$ty as $crate::units::Unit>::read(&text).map_err(serde::de::Error::custom)
                    }
                    _ => $crate::units::human::deserialize(input),
                }
            }

            fn to_output<S: serde::Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
                $crate::units::human::serialize(self, output)
            }
        }
    )+};
}

pub(crate) use amounts;

amounts! {
    Duration: TIME,
    Option<Duration>: TIME_OR_NEVER,
    Rate: RATE,
    Option<Rate>: RATE_OR_ZERO,
    Bytes: SIZE,
    Option<Bytes>: SIZE_OR_UNLIMITED,
    Share: SHARE,
    QueueLimit: QUEUE,
    Option<QueueLimit>: MARK,
}

/// A time.
pub(super) static TIME: Text = Text {
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
pub(super) static TIME_OR_NEVER: Text = Text {
    name: "time or `never`",
    expected: Option::<Duration>::EXPECTED,
    pattern: concat!("^ *(never|0|", time!(), ") *$"),
    accepts: unit::<Option<Duration>>,
    numbers: Numbers::Zero,
    names: Names::None,
    examples: &["never", "20s"],
    refused: &["nver", "-1ms", "20"],
};

/// A rate.
pub(super) static RATE: Text = Text {
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
pub(super) static RATE_OR_ZERO: Text = Text {
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
pub(super) static SIZE: Text = Text {
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
pub(super) static SIZE_OR_UNLIMITED: Text = Text {
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
pub(super) static SHARE: Text = Text {
    name: "share",
    expected: Share::EXPECTED,
    pattern: concat!("^ *", share!(), " *$"),
    accepts: unit::<Share>,
    numbers: Numbers::Share,
    names: Names::None,
    examples: &["1.5%", "0.015", "100%"],
    refused: &["-1%", "half", "2"],
};

/// The limit of a queue.
pub(super) static QUEUE: Text = Text {
    name: "queue",
    expected: QueueLimit::EXPECTED,
    pattern: concat!("^ *(", queue!(), ") *$"),
    accepts: unit::<QueueLimit>,
    numbers: Numbers::None,
    names: Names::None,
    examples: &["default", "1bdp", "50p", "64KiB", "unlimited"],
    refused: &["50", "-1bdp", "long"],
};

/// A threshold in a queue.
pub(super) static MARK: Text = Text {
    name: "threshold of a queue, or `never`",
    expected: Option::<QueueLimit>::EXPECTED,
    pattern: concat!("^ *(never|", queue!(), ") *$"),
    accepts: unit::<Option<QueueLimit>>,
    numbers: Numbers::None,
    names: Names::None,
    examples: &["never", "30p", "0.5bdp"],
    refused: &["nevr", "30"],
};
