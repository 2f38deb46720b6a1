//! Values that a file has as a text or as a table.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, Deserialize, Deserializer, MapAccess, value};

/// Reads a table, or what `named` makes of a text.
pub(super) fn text_or_table<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
    expected: &'static str,
    named: impl FnOnce(&str) -> T,
) -> Result<T, D::Error> {
    struct Reader<T, F> {
        expected: &'static str,
        named: F,
        table: PhantomData<T>,
    }

    impl<'de, T: Deserialize<'de>, F: FnOnce(&str) -> T> de::Visitor<'de> for Reader<T, F> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.expected)
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
            Ok((self.named)(text))
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
            T::deserialize(value::MapAccessDeserializer::new(map))
        }
    }

    deserializer.deserialize_any(Reader { expected, named, table: PhantomData })
}
