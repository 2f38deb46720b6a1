//! Columns of tables and the values in them.

use std::borrow::Cow;

use quipu_base::{Bytes, Duration, Instant, Rate};

/// A value of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// Unknown, or it does not apply.
    Nothing,
    /// A whole number, not negative.
    Whole(u64),
    /// Any number.
    Number(f64),
    /// True or false.
    Flag(bool),
    /// Text.
    Text(&'a str),
}

/// What the values of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Whole numbers, not negative.
    Whole,
    /// Any numbers.
    Number,
    /// True or false.
    Flag,
    /// Texts.
    Text,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name, unlike those of the other columns.
    pub name: Cow<'static, str>,
    /// What its values are.
    pub kind: Kind,
    /// What they mean, as `docs/results.md` tells it; empty of a field of a sweep.
    pub about: &'static str,
}

impl Column {
    /// A column of values that explain themselves, such as a field of a sweep.
    pub fn new(name: impl Into<Cow<'static, str>>, kind: Kind) -> Column {
        Column { name: name.into(), kind, about: "" }
    }
}

/// What a column of whole numbers takes: nanoseconds of times, bytes, bits per second, counts, positions.
pub(crate) trait Whole {
    /// The number; `None` if it is unknown or does not apply.
    fn whole(self) -> Option<u64>;
}

impl Whole for u64 {
    fn whole(self) -> Option<u64> {
        Some(self)
    }
}

impl Whole for u32 {
    fn whole(self) -> Option<u64> {
        Some(self.into())
    }
}

impl Whole for usize {
    fn whole(self) -> Option<u64> {
        u64::try_from(self).ok()
    }
}

impl Whole for Bytes {
    fn whole(self) -> Option<u64> {
        Some(self.0)
    }
}

impl Whole for Duration {
    fn whole(self) -> Option<u64> {
        Some(self.as_nanos())
    }
}

impl Whole for Instant {
    fn whole(self) -> Option<u64> {
        Some(self.as_nanos())
    }
}

impl Whole for Rate {
    fn whole(self) -> Option<u64> {
        Some(self.bits_per_sec())
    }
}

impl<T: Whole> Whole for Option<T> {
    fn whole(self) -> Option<u64> {
        self.and_then(T::whole)
    }
}

impl<'a> Value<'a> {
    /// A whole number, or nothing.
    pub(crate) fn whole(number: impl Whole) -> Value<'a> {
        number.whole().map_or(Value::Nothing, Value::Whole)
    }
}

/// The value of a column of the kind `$kind`. A value of another type does not compile.
macro_rules! value {
    (Whole, $value:expr) => {
        $crate::tables::Value::whole($value)
    };
    (Flag, $value:expr) => {
        $crate::tables::Value::Flag($value)
    };
    (Text, $value:expr) => {
        $crate::tables::Value::Text($value)
    };
}

/// The columns `$name` of the kinds `$kind`, each with what it means as its doc comment.
macro_rules! columns {
    ($($(#[doc = $about:literal])+ $name:ident: $kind:ident,)+) => {
        [$(
            $crate::tables::Column {
                name: std::borrow::Cow::Borrowed(stringify!($name)),
                kind: $crate::tables::Kind::$kind,
                about: concat!($($about),+),
            },
        )+]
    };
}

pub(crate) use {columns, value};
