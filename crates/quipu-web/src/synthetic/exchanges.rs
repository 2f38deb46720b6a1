//! A page of objects that wait for each other.

use quipu_base::{Bytes, Duration};

use crate::page::{Discovery, Object, ObjectId, ObjectKind, Page, PageError};
use crate::recording::{self, Recorded, Recording};

/// The HAR file of a page of `count` objects of `size` each: a document, and scripts each of which the one before requests
/// after it has computed for `rest`. It measures what an exchange of a request and its response takes. Our choice.
///
/// # Errors
/// If `count` is 0 or more than a page may have.
pub fn exchanges(count: u32, size: Bytes, rest: Duration) -> Result<String, PageError> {
    let objects = (0..count).map(|object| {
        let (kind, discovery) = match object.checked_sub(1) {
            None => (ObjectKind::Document, Discovery::Root),
            Some(before) => {
                (ObjectKind::Script, Discovery::AfterCompletion { parent: ObjectId(before) })
            }
        };
        let url = format!("https://exchanges.test/{object}");
        Object::new(ObjectId(object), url, kind, size).discovered(discovery)
    });
    let page = Page::new("exchanges", objects.collect())?;
    // As it would be over an infinitely fast network.
    let recorded = |object: u32| {
        let at = rest.saturating_mul(object.into());
        Recorded {
            object: ObjectId(object),
            connection: 0,
            connected: None,
            requested: at,
            first_byte: at,
            completed: at,
            pushed: false,
            carried: Vec::new(),
            segments: Vec::new(),
        }
    };
    let recording = Recording {
        page: &page,
        title: "exchanges".to_owned(),
        began: Duration::ZERO,
        on_load: rest.saturating_mul(count.saturating_sub(1).into()),
        objects: (0..count).map(recorded).collect(),
        initiators: true,
    };
    Ok(recording::write(&[recording], env!("CARGO_PKG_VERSION")))
}
