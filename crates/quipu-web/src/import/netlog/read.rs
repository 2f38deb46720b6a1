//! From the text of a netlog to its events.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::super::ImportError;
use super::event::{Constants, Event, Names, Written};
use crate::trace::lenient;

/// The most events that a log may have, of any kind. Our choice; a page of 1,000 requests has some 200,000.
const MAX_EVENTS: usize = 5_000_000;

/// What has been read of a log.
#[derive(Default)]
pub(super) struct Log {
    pub(super) constants: Constants,
    pub(super) names: Option<Names>,
    pub(super) events: Vec<Event>,
    /// Events of any kind.
    pub(super) count: usize,
    /// Why reading ended, if that was no fault of the text.
    stopped: Option<ImportError>,
}

/// Reads a netlog. Chromium writes it until it ends: if it is killed, the text stops in the middle.
pub(super) fn log(file: &[u8]) -> Result<Log, ImportError> {
    let text = file.strip_prefix(&[0xef, 0xbb, 0xbf]).unwrap_or(file);
    let mut log = Log::default();
    let mut from = serde_json::Deserializer::from_slice(text);
    let result = Document(&mut log).deserialize(&mut from);
    if let Some(error) = log.stopped.take() {
        return Err(error);
    }
    match result {
        Ok(()) if log.names.is_some() => Ok(log),
        Ok(()) => Err(ImportError::NoUrlRequests { events: 0 }),
        Err(error) if error.is_eof() && log.names.is_some() => Ok(log),
        Err(error) => {
            let text = error.to_string();
            let message = text.rfind(" at line ").map_or(text.as_str(), |end| &text[..end]);
            let (line, column) = (error.line(), error.column());
            Err(ImportError::Malformed { line, column, message: message.to_owned() })
        }
    }
}

struct Document<'l>(&'l mut Log);

impl<'de> DeserializeSeed<'de> for Document<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Document<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with `constants` and `events`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "constants" => self.0.constants = map.next_value()?,
                "events" => map.next_value_seed(Events(self.0))?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

struct Events<'l>(&'l mut Log);

impl<'de> DeserializeSeed<'de> for Events<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Events<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let log = self.0;
        let stop = |log: &mut Log, error| {
            log.stopped = Some(error);
            A::Error::custom("stopped")
        };
        let names = match Names::of(&log.constants) {
            Ok(names) => log.names.insert(names),
            Err(error) => return Err(stop(log, error)),
        };
        while let Some(AnyEvent(written)) = list.next_element()? {
            log.count += 1;
            if log.count > MAX_EVENTS {
                return Err(stop(log, ImportError::TooManyEvents { limit: MAX_EVENTS }));
            }
            log.events.extend(names.event(written));
        }
        Ok(())
    }
}

/// An event, or any other value, which is none.
#[derive(Deserialize)]
struct AnyEvent(#[serde(deserialize_with = "lenient::object")] Written);
