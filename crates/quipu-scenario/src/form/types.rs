//! Types that fields of scenario files have.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use quipu_base::Duration;
use serde::de::value::{I64Deserializer, MapAccessDeserializer, StrDeserializer};
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::{Kind, text};
use crate::error::ScenarioError;

/// A type whose values stand in scenario files.
pub(crate) trait FieldType: Sized {
    /// Whether it is written out with the rest of a scenario.
    const WRITTEN: bool = true;

    /// What a file may have.
    fn kind() -> Kind;

    /// Reads a value.
    ///
    /// # Errors
    /// If the input has none of this kind.
    fn from_input<'de, D: Deserializer<'de>>(input: D) -> Result<Self, D::Error>;

    /// Writes the value as a file has it.
    ///
    /// # Errors
    /// Only those of `output`.
    fn to_output<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error>;

    /// Holds what is inside the value at `path`, if it is a table or a list, to its ranges.
    fn check(&self, path: &str, problems: &mut Vec<ScenarioError>) {
        let _ = (path, problems);
    }
}

/// A type of a field that may be left out, and for which no value stands then.
pub(crate) trait Optional: Sized {
    /// What the field holds where it is there.
    type Given: FieldType;

    /// The field with this in it, or with nothing.
    fn from_given(given: Option<Self::Given>) -> Self;

    /// What is in it, if anything.
    fn given(&self) -> Option<&Self::Given>;
}

impl<T: FieldType> Optional for Option<T> {
    type Given = T;

    fn from_given(given: Option<T>) -> Self {
        given
    }

    fn given(&self) -> Option<&T> {
        self.as_ref()
    }
}

impl<T: FieldType> Optional for Vec<T> {
    type Given = Self;

    fn from_given(given: Option<Self>) -> Self {
        given.unwrap_or_default()
    }

    fn given(&self) -> Option<&Self> {
        (!self.is_empty()).then_some(self)
    }
}

impl<T: FieldType> Optional for BTreeMap<String, T> {
    type Given = Self;

    fn from_given(given: Option<Self>) -> Self {
        given.unwrap_or_default()
    }

    fn given(&self) -> Option<&Self> {
        (!self.is_empty()).then_some(self)
    }
}

/// Types whose default stands for nothing.
macro_rules! optional {
    ($($ty:ty),+ $(,)?) => {$(
        impl $crate::form::Optional for $ty {
            type Given = Self;

            fn from_given(given: Option<Self>) -> Self {
                given.unwrap_or_default()
            }

            fn given(&self) -> Option<&Self> {
                (*self != Self::default()).then_some(self)
            }
        }
    )+};
}
pub(crate) use optional;

optional!(String, bool, Duration);

/// Types that serde knows how to read and to write.
macro_rules! field_types {
    ($($ty:ty: $kind:expr,)+) => {$(
        impl $crate::form::FieldType for $ty {
            fn kind() -> $crate::form::Kind {
                $kind
            }

            fn from_input<'de, D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
                <Self as serde::Deserialize>::deserialize(input)
            }

            fn to_output<S: serde::Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
                serde::Serialize::serialize(self, output)
            }
        }
    )+};
}
pub(crate) use field_types;

field_types! {
    bool: Kind::Flag,
    u8: Kind::Whole(0, u64::from(u8::MAX)),
    u32: Kind::Whole(0, u64::from(u32::MAX)),
    u64: Kind::Whole(0, u64::MAX),
    f64: Kind::number(),
    String: Kind::Text(&text::ANY),
    toml::Value: Kind::Any,
}

/// Types of `[experiment]`, which is read and never written.
macro_rules! read_only {
    ($($ty:ty: $kind:expr,)+) => {$(
        impl $crate::form::FieldType for $ty {
            const WRITTEN: bool = false;

            fn kind() -> $crate::form::Kind {
                $kind
            }

            fn from_input<'de, D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
                <Self as serde::Deserialize>::deserialize(input)
            }

            fn to_output<S: serde::Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
                output.serialize_unit()
            }
        }
    )+};
}
pub(crate) use read_only;

impl<T: FieldType> FieldType for Vec<T> {
    fn kind() -> Kind {
        Kind::List(Box::new(T::kind()), 0, usize::MAX)
    }

    fn from_input<'de, D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let list = Vec::<Held<T>>::deserialize(input)?;
        Ok(list.into_iter().map(|held| held.0).collect())
    }

    fn to_output<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
        output.collect_seq(self.iter().map(As))
    }

    fn check(&self, path: &str, problems: &mut Vec<ScenarioError>) {
        for (index, item) in self.iter().enumerate() {
            item.check(&format!("{path}[{index}]"), problems);
        }
    }
}

impl FieldType for [f64; 2] {
    fn kind() -> Kind {
        Kind::List(Box::new(f64::kind()), 2, 2)
    }

    fn from_input<'de, D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let numbers = Vec::<f64>::deserialize(input)?;
        let wrong = |numbers: Vec<f64>| {
            de::Error::custom(format!("{} in the list; expected 2", numbers.len()))
        };
        numbers.try_into().map_err(wrong)
    }

    fn to_output<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
        self.serialize(output)
    }
}

impl<T: FieldType> FieldType for BTreeMap<String, T> {
    fn kind() -> Kind {
        Kind::Map(Box::new(T::kind()))
    }

    fn from_input<'de, D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let map = BTreeMap::<String, Held<T>>::deserialize(input)?;
        Ok(map.into_iter().map(|(key, held)| (key, held.0)).collect())
    }

    fn to_output<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
        output.collect_map(self.iter().map(|(key, value)| (key, As(value))))
    }

    fn check(&self, path: &str, problems: &mut Vec<ScenarioError>) {
        for (key, value) in self {
            value.check(&crate::field_path::joined(path, key), problems);
        }
    }
}

/// A table for which something shorter may stand, such as a number of clients.
pub(crate) trait Shorthand<S>: Sized {
    /// What a file should have, for messages.
    const EXPECTED: &'static str;

    /// What may stand for the table, of `kind`, which is all that the type allows.
    fn narrow(kind: Kind) -> Kind {
        kind
    }

    /// The table for which `short` stands.
    ///
    /// # Errors
    /// If it stands for none.
    fn from_short(short: S) -> Result<Self, String>;

    /// What is written in place of the table, if anything.
    fn short(&self) -> Option<S> {
        None
    }
}

/// Reads a table, or a text or a number that stands for one.
pub(crate) fn table_or_short<'de, T, S, D>(input: D) -> Result<T, D::Error>
where
    T: Deserialize<'de> + Shorthand<S>,
    S: FieldType,
    D: Deserializer<'de>,
{
    struct Reader<T, S>(PhantomData<(T, S)>);

    impl<'de, T: Deserialize<'de> + Shorthand<S>, S: FieldType> Visitor<'de> for Reader<T, S> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(T::EXPECTED)
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
            T::from_short(S::from_input(StrDeserializer::new(text))?).map_err(E::custom)
        }

        fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
            let short = S::from_input(I64Deserializer::<E>::new(number));
            let wrong = |_| E::invalid_type(de::Unexpected::Signed(number), &self);
            T::from_short(short.map_err(wrong)?).map_err(E::custom)
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
            T::deserialize(MapAccessDeserializer::new(map))
        }
    }

    input.deserialize_any(Reader(PhantomData))
}

/// A value that is read as its [`FieldType`] says.
#[derive(Debug)]
pub(crate) struct Held<T>(pub(crate) T);

impl<'de, T: FieldType> Deserialize<'de> for Held<T> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        T::from_input(input).map(Held)
    }
}

/// A value that is written as its [`FieldType`] says.
#[derive(Debug)]
pub(crate) struct As<'v, T>(pub(crate) &'v T);

impl<T: FieldType> Serialize for As<'_, T> {
    fn serialize<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
        self.0.to_output(output)
    }
}

/// A table that is written field by field.
pub(crate) struct Written<S: Serializer>(S::SerializeMap);

impl<S: Serializer> Written<S> {
    /// A table without fields.
    pub(crate) fn new(output: S) -> Result<Self, S::Error> {
        output.serialize_map(None).map(Written)
    }

    /// Adds the field `name`, if there is anything in it that is written out.
    pub(crate) fn field<T: FieldType>(
        &mut self,
        name: &'static str,
        value: Option<&T>,
    ) -> Result<(), S::Error> {
        match value.filter(|_| T::WRITTEN) {
            Some(value) => self.0.serialize_entry(super::key(name), &As(value)),
            None => Ok(()),
        }
    }

    /// Adds the entry `key`, which is no field.
    pub(crate) fn entry<T: FieldType>(&mut self, key: &str, value: &T) -> Result<(), S::Error> {
        self.0.serialize_entry(key, &As(value))
    }

    /// The table is complete.
    pub(crate) fn end(self) -> Result<S::Ok, S::Error> {
        self.0.end()
    }
}
