//! Fields whose type differs from producer to producer: what cannot be used counts as absent.

use std::fmt;

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::{
    Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer,
};
use serde_json::Value;

use super::model::{DevToolsInitiator, HarNetwork, Initiator};

/// A JSON value, as far as it may stand for a number, a text or a truth value.
enum Scalar {
    Absent,
    Bool(bool),
    Number(f64),
    Text(String),
}

struct ScalarVisitor;

impl<'de> Visitor<'de> for ScalarVisitor {
    type Value = Scalar;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Scalar, E> {
        Ok(Scalar::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Scalar, E> {
        Ok(Scalar::Number(value as f64))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Scalar, E> {
        Ok(Scalar::Number(value as f64))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Scalar, E> {
        Ok(Scalar::Number(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Scalar, E> {
        Ok(Scalar::Text(value.to_owned()))
    }

    fn visit_unit<E: Error>(self) -> Result<Scalar, E> {
        Ok(Scalar::Absent)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Scalar, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Scalar::Absent)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Scalar, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Scalar::Absent)
    }
}

pub(super) fn number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    let value = match from.deserialize_any(ScalarVisitor)? {
        Scalar::Number(value) => Some(value),
        Scalar::Text(text) => text.trim().parse().ok(),
        Scalar::Absent | Scalar::Bool(_) => None,
    };
    Ok(value.filter(|value| value.is_finite()))
}

pub(super) fn text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(match from.deserialize_any(ScalarVisitor)? {
        Scalar::Text(text) if !text.is_empty() => Some(text),
        Scalar::Number(value) => Some(value.to_string()),
        Scalar::Text(_) | Scalar::Absent | Scalar::Bool(_) => None,
    })
}

pub(super) fn flag<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    Ok(match from.deserialize_any(ScalarVisitor)? {
        Scalar::Bool(value) => value,
        Scalar::Number(value) => value != 0.0,
        // `_fromCache` is "memory" or "disk".
        Scalar::Text(text) => !matches!(text.as_str(), "" | "0" | "false"),
        Scalar::Absent => false,
    })
}

pub(super) fn timestamp<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Timestamp>, D::Error> {
    Ok(text(from)?.and_then(|text| text.parse().ok()))
}

/// A network with limits has all three, each an amount such as `2mbit`, `40ms` or `unlimited`; any other value but null
/// stands for the present one.
pub(super) fn network<'de, D: Deserializer<'de>>(from: D) -> Result<Option<HarNetwork>, D::Error> {
    let value = Value::deserialize(from)?;
    let is_amount =
        |text: &&str| text.bytes().all(|sign| sign.is_ascii_alphanumeric() || sign == b'.');
    let field = |name: &str| Some(value.get(name)?.as_str().filter(is_amount)?.to_owned());
    let limited = || {
        let (down, up, rtt) = (field("down")?, field("up")?, field("rtt")?);
        Some(HarNetwork::Limited { down, up, rtt })
    };
    Ok((!value.is_null()).then(|| limited().unwrap_or(HarNetwork::Present)))
}

/// A structure that may be null.
pub(super) fn or_default<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::<T>::deserialize(from)?.unwrap_or_default())
}

pub(super) fn initiator<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Initiator>, D::Error> {
    struct InitiatorVisitor;

    impl<'de> Visitor<'de> for InitiatorVisitor {
        type Value = Option<Initiator>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a URL or an initiator object")
        }

        fn visit_str<E: Error>(self, url: &str) -> Result<Self::Value, E> {
            Ok((!url.is_empty()).then(|| Initiator::Url(url.to_owned())))
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            let object = DevToolsInitiator::deserialize(MapAccessDeserializer::new(map))?;
            Ok(Some(Initiator::DevTools(Box::new(object))))
        }

        fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_i64<E: Error>(self, _: i64) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_u64<E: Error>(self, _: u64) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
            Ok(None)
        }
    }

    from.deserialize_any(InitiatorVisitor)
}

/// Whether there is any value but `null`.
pub(super) fn is_there<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    Option::<IgnoredAny>::deserialize(from).map(|value| value.is_some())
}
