//! From the text of a trace to the events that tell of a load.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::event::{Event, Written};
use super::lenient;
use super::{MAX_EVENTS, TraceError};

/// An event of a trace, as one of its readers needs it.
pub(crate) trait Traced: Sized {
    /// The fields that are looked at.
    type Written: for<'de> Deserialize<'de> + Default;

    /// The event, if the reader has use for it.
    fn from_written(written: Self::Written) -> Option<Self>;
}

impl Traced for Event {
    type Written = Written;

    fn from_written(written: Written) -> Option<Event> {
        written.event()
    }
}

/// What has been read.
pub(super) struct Collected<T = Event> {
    pub(super) events: Vec<T>,
    /// Events of any kind.
    count: usize,
    /// Whether there is a list of events.
    list: bool,
}

impl<T> Default for Collected<T> {
    fn default() -> Collected<T> {
        Collected { events: Vec::new(), count: 0, list: false }
    }
}

impl<T: Traced> Collected<T> {
    fn take_list<'de, A: SeqAccess<'de>>(&mut self, mut list: A) -> Result<(), A::Error> {
        self.list = true;
        while let Some(written) = list.next_element_seed(AnyEvent(PhantomData))? {
            self.count += 1;
            if self.count > MAX_EVENTS {
                return Err(A::Error::custom("too many events"));
            }
            self.events.extend(T::from_written(written));
        }
        Ok(())
    }
}

/// An event, or any other value, which is none.
struct AnyEvent<W>(PhantomData<W>);

impl<'de, W: Deserialize<'de> + Default> DeserializeSeed<'de> for AnyEvent<W> {
    type Value = W;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<W, D::Error> {
        lenient::object(from)
    }
}

/// A list of events, wherever it stands.
struct List<'c, T>(&'c mut Collected<T>);

impl<'de, T: Traced> DeserializeSeed<'de> for List<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de, T: Traced> Visitor<'de> for List<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<(), A::Error> {
        self.0.take_list(list)
    }
}

/// A whole trace: an object with `traceEvents`, or the list alone.
struct Document<'c, T>(&'c mut Collected<T>);

impl<'de, T: Traced> DeserializeSeed<'de> for Document<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de, T: Traced> Visitor<'de> for Document<'_, T> {
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
pub(crate) fn events<T: Traced>(file: &[u8]) -> Result<Vec<T>, TraceError> {
    let text = file.strip_prefix(&[0xef, 0xbb, 0xbf]).unwrap_or(file);
    let mut collected = Collected::<T>::default();
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
    let mut collected = Collected::<Event>::default();
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
