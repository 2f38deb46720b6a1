//! What a field may hold beyond what its type says: ranges, forms of text, words.

use std::fmt::{self, Display};
use std::ops::{Bound, RangeBounds};

use quipu_base::{Bytes, Duration, Rate};

use super::text::Text;
use super::{FieldType, Kind};
use crate::error::ScenarioError;
use crate::units::{Share, Unit};

/// What a field of type `T` may hold, as it stands in brackets behind the type in `table!`.
pub(crate) trait Limit<T> {
    /// `kind`, which is all that the type allows, without what is not allowed here.
    fn narrow(&self, kind: Kind) -> Kind;

    /// Adds to `problems` if `value`, of the field at `path`, is not allowed.
    fn check(&self, value: &T, path: &str, problems: &mut Vec<ScenarioError>);
}

/// The ends of a range as messages have them, such as `1` and `10`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ends {
    /// The least value.
    pub(crate) least: Option<String>,
    /// The largest value, or the one that all are below.
    pub(crate) most: Option<String>,
    /// Whether it is the one that all are below.
    pub(crate) below: bool,
}

impl Display for Ends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.least, &self.most) {
            (Some(least), Some(most)) if self.below => write!(f, "{least} to below {most}"),
            (Some(least), Some(most)) => write!(f, "{least} to {most}"),
            (Some(least), None) => write!(f, "{least} or more"),
            (None, Some(most)) if self.below => write!(f, "below {most}"),
            (None, Some(most)) => write!(f, "at most {most}"),
            (None, None) => Ok(()),
        }
    }
}

/// A range of values, or of the length of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds<T>(Bound<T>, Bound<T>);

/// A form that a text must have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OfText(pub(crate) &'static Text);

/// Words, of which it must be one.
#[derive(Clone, Debug)]
pub(crate) struct OneOf<W>(pub(crate) W);

/// Numbers, of which it must be one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Among(pub(crate) &'static [u8]);

/// A type whose values have an order and a range.
pub(crate) trait Ranged: FieldType + Copy + PartialOrd {
    /// The value as messages have it.
    fn shown(self) -> String;

    /// `kind` within `bounds`.
    fn within(kind: Kind, bounds: &Bounds<Self>) -> Kind;
}

impl<T: Copy> Bounds<T> {
    /// The range `range`, such as `1..=10`.
    pub(crate) fn of(range: impl RangeBounds<T>) -> Self {
        Bounds(range.start_bound().cloned(), range.end_bound().cloned())
    }

    fn contains(&self, value: &T) -> bool
    where
        T: PartialOrd,
    {
        // Of what cannot be compared, such as NaN, nothing is in a range.
        (self.0, self.1).contains(value)
    }

    /// Its ends, each `shown` as a message has it.
    fn ends(&self, shown: impl Fn(T) -> String) -> Ends {
        let end = |bound: Bound<T>| match bound {
            Bound::Included(value) | Bound::Excluded(value) => Some(shown(value)),
            Bound::Unbounded => None,
        };
        let below = matches!(self.1, Bound::Excluded(_));
        Ends { least: end(self.0), most: end(self.1), below }
    }
}

impl Bounds<f64> {
    /// The ends of a range of numbers.
    pub(crate) fn of_numbers(&self) -> Ends {
        self.ends(Ranged::shown)
    }
}

impl<T: Ranged> Limit<T> for Bounds<T> {
    fn narrow(&self, kind: Kind) -> Kind {
        T::within(kind, self)
    }

    fn check(&self, value: &T, path: &str, problems: &mut Vec<ScenarioError>) {
        if !self.contains(value) {
            problems.push(ScenarioError::invalid(
                path,
                value.shown(),
                self.ends(T::shown).to_string(),
            ));
        }
    }
}

/// The range of an amount that may be none, such as `never`.
impl<T: Ranged> Limit<Option<T>> for Bounds<T>
where
    Option<T>: FieldType,
{
    fn narrow(&self, kind: Kind) -> Kind {
        T::within(kind, self)
    }

    fn check(&self, value: &Option<T>, path: &str, problems: &mut Vec<ScenarioError>) {
        if let Some(value) = value {
            Limit::<T>::check(self, value, path, problems);
        }
    }
}

/// The range of both numbers of a pair.
impl<T: Ranged> Limit<[T; 2]> for Bounds<T> {
    fn narrow(&self, kind: Kind) -> Kind {
        match kind {
            Kind::List(of, least, most) => Kind::List(Box::new(T::within(*of, self)), least, most),
            other => other,
        }
    }

    fn check(&self, value: &[T; 2], path: &str, problems: &mut Vec<ScenarioError>) {
        for (index, value) in value.iter().enumerate() {
            Limit::<T>::check(self, value, &format!("{path}[{index}]"), problems);
        }
    }
}

/// The length of a list.
impl<T> Limit<Vec<T>> for Bounds<usize> {
    fn narrow(&self, kind: Kind) -> Kind {
        let least = match self.0 {
            Bound::Included(least) => least,
            Bound::Excluded(least) => least + 1,
            Bound::Unbounded => 0,
        };
        let most = match self.1 {
            Bound::Included(most) => most,
            Bound::Excluded(most) => most.saturating_sub(1),
            Bound::Unbounded => usize::MAX,
        };
        match kind {
            Kind::List(of, ..) => Kind::List(of, least, most),
            other => other,
        }
    }

    fn check(&self, value: &Vec<T>, path: &str, problems: &mut Vec<ScenarioError>) {
        if !self.contains(&value.len()) {
            let expected = self.ends(|count| count.to_string()).to_string();
            problems.push(ScenarioError::invalid(path, value.len(), expected));
        }
    }
}

/// A type that is written as a text: of another one its form can be asked.
pub(crate) trait Texted: Display {}

impl Texted for String {}

impl<T: Texted> Limit<T> for OfText {
    fn narrow(&self, _: Kind) -> Kind {
        Kind::Text(self.0)
    }

    fn check(&self, value: &T, path: &str, problems: &mut Vec<ScenarioError>) {
        let text = value.to_string();
        if !(self.0.accepts)(&text) {
            problems.push(ScenarioError::invalid(path, format!("`{text}`"), self.0.wanted()));
        }
    }
}

/// The form of each text of a list.
impl Limit<Vec<String>> for OfText {
    fn narrow(&self, kind: Kind) -> Kind {
        match kind {
            Kind::List(_, least, most) => Kind::List(Box::new(Kind::Text(self.0)), least, most),
            other => other,
        }
    }

    fn check(&self, value: &Vec<String>, path: &str, problems: &mut Vec<ScenarioError>) {
        for (index, text) in value.iter().enumerate() {
            Limit::<String>::check(self, text, &format!("{path}[{index}]"), problems);
        }
    }
}

impl<T: Display, W: Fn() -> Vec<&'static str>> Limit<T> for OneOf<W> {
    fn narrow(&self, _: Kind) -> Kind {
        Kind::Words((self.0)())
    }

    fn check(&self, value: &T, path: &str, problems: &mut Vec<ScenarioError>) {
        let (text, words) = (value.to_string(), (self.0)());
        if !words.contains(&text.as_str()) {
            let what = path.rsplit('.').next().unwrap_or_default().to_owned();
            problems.push(ScenarioError::unknown(what, &text, words).at(path));
        }
    }
}

impl Limit<u8> for Among {
    fn narrow(&self, _: Kind) -> Kind {
        Kind::Among(self.0)
    }

    fn check(&self, value: &u8, path: &str, problems: &mut Vec<ScenarioError>) {
        if !self.0.contains(value) {
            problems.push(ScenarioError::invalid(path, value, Kind::Among(self.0).expected()));
        }
    }
}

macro_rules! whole {
    ($($ty:ty),+) => {$(
        impl Ranged for $ty {
            fn shown(self) -> String {
                self.to_string()
            }

            fn within(kind: Kind, bounds: &Bounds<Self>) -> Kind {
                let Kind::Whole(least, most) = kind else { return kind };
                let least = match bounds.0 {
                    Bound::Included(value) => value.into(),
                    Bound::Excluded(value) => u64::from(value).saturating_add(1),
                    Bound::Unbounded => least,
                };
                let most = match bounds.1 {
                    Bound::Included(value) => value.into(),
                    Bound::Excluded(value) => u64::from(value).saturating_sub(1),
                    Bound::Unbounded => most,
                };
                Kind::Whole(least, most)
            }
        }
    )+};
}

whole!(u8, u32, u64);

impl Ranged for f64 {
    fn shown(self) -> String {
        self.to_string()
    }

    fn within(_: Kind, bounds: &Bounds<Self>) -> Kind {
        Kind::Number(bounds.0, bounds.1)
    }
}

macro_rules! amounts {
    ($($ty:ty),+) => {$(
        impl Ranged for $ty {
            fn shown(self) -> String {
                self.print()
            }

            fn within(kind: Kind, bounds: &Bounds<Self>) -> Kind {
                match kind {
                    Kind::Text(text) => Kind::Amount(text, bounds.ends(Self::shown)),
                    other => other,
                }
            }
        }
    )+};
}

amounts!(Bytes, Duration, Rate, Share);
