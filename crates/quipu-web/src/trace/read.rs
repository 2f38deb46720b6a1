//! From the text of a trace to the events that tell of a load.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::event::{Event, Written};
use super::lenient;
use super::{MAX_EVENTS, TraceError};

/// What has been read.
#[derive(Default)]
pub(super) struct Collected {
    pub(super) events: Vec<Event>,
    /// Events of any kind.
    count: usize,
    /// Whether there is a list of events.
    list: bool,
}

impl Collected {
    fn take_list<'de, A: SeqAccess<'de>>(&mut self, mut list: A) -> Result<(), A::Error> {
        self.list = true;
        while let Some(written) = list.next_element_seed(AnyEvent)? {
            self.count += 1;
            if self.count > MAX_EVENTS {
                return Err(A::Error::custom("too many events"));
            }
            self.events.extend(written.event());
        }
        Ok(())
    }
}

/// An event, or any other value, which is none.
struct AnyEvent;

impl<'de> DeserializeSeed<'de> for AnyEvent {
    type Value = Written;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Written, D::Error> {
        lenient::object(from)
    }
}

/// A list of events, wherever it stands.
struct List<'c>(&'c mut Collected);

impl<'de> DeserializeSeed<'de> for List<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for List<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<(), A::Error> {
        self.0.take_list(list)
    }
}

/// A whole trace: an object with `traceEvents`, or the list alone.
struct Document<'c>(&'c mut Collected);

impl<'de> DeserializeSeed<'de> for Document<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Document<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with `traceEvents` or a list of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<(), A::Error> {
        self.0.take_list(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if key == "traceEvents" {
                map.next_value_seed(List(self.0))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

/// Reads the events of a trace, with or without a byte order mark.
pub(super) fn events(file: &[u8]) -> Result<Vec<Event>, TraceError> {
    let text = file.strip_prefix(&[0xef, 0xbb, 0xbf]).unwrap_or(file);
    let mut collected = Collected::default();
    let mut from = serde_json::Deserializer::from_slice(text);
    let result = Document(&mut collected).deserialize(&mut from).and_then(|()| from.end());
    if collected.count > MAX_EVENTS {
        return Err(TraceError::TooManyEvents { limit: MAX_EVENTS });
    }
    match result {
        Ok(()) if collected.list => Ok(collected.events),
        Ok(()) => Err(TraceError::NoEvents),
        // The format lets a list end without its bracket, for programs that write it until they are stopped.
        Err(error) if error.is_eof() && is_open_list(text) => Ok(collected.events),
        Err(error) => {
            let event = collected.list.then_some(collected.count + 1);
            Err(TraceError::from_json(&error, event))
        }
    }
}

/// Whether `text` is a list that lacks its closing bracket, after a complete event.
fn is_open_list(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    let end = text.strip_suffix(b",").unwrap_or(text).trim_ascii_end();
    text.starts_with(b"[") && end.ends_with(b"}")
}

/// A load of a recording of ours, as far as its trace goes.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct RecordedPage {
    #[serde(deserialize_with = "lenient::text")]
    pub(super) id: Option<std::sync::Arc<str>>,
    #[serde(rename = "_traceOffset", deserialize_with = "lenient::number")]
    pub(super) offset: Option<f64>,
    #[serde(rename = "_traceEvents", deserialize_with = "recorded_events")]
    pub(super) events: Option<Collected>,
}

fn recorded_events<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Collected>, D::Error> {
    let mut collected = Collected::default();
    List(&mut collected).deserialize(from)?;
    Ok(Some(collected))
}

/// Reads the traces of all loads of a recording.
pub(super) fn recorded(file: &[u8]) -> Result<Vec<RecordedPage>, TraceError> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Recording {
        #[serde(deserialize_with = "lenient::object")]
        log: Log,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Log {
        pages: Option<Vec<RecordedPage>>,
    }
    let text = file.strip_prefix(&[0xef, 0xbb, 0xbf]).unwrap_or(file);
    let recording: Recording =
        serde_json::from_slice(text).map_err(|error| TraceError::from_json(&error, None))?;
    Ok(recording.log.pages.unwrap_or_default())
}
