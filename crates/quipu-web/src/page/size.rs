//! How large an object is, from whichever field of the recording knows.

use quipu_base::Bytes;

use super::RequestSize;
use crate::har::{Entry, MAX_OBJECT_BYTES};

/// Header of a response where the recording does not tell: a few hundred bytes, our choice.
pub(super) const DEFAULT_RESPONSE_HEADER: Bytes = Bytes(300);

/// Header of a request where the recording does not tell: a few hundred bytes, our choice.
pub(super) const DEFAULT_REQUEST_HEADER: Bytes = Bytes(400);

/// A header longer than this is rather a body whose encoding is unknown. Our choice.
const MAX_HEADER: u64 = 16 << 10;

/// The sizes of one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    /// What the recording counts for the response: on the wire if it knows.
    pub(super) recorded: Bytes,
    /// Encoded body.
    pub(super) body: Bytes,
    /// Header.
    pub(super) header: Bytes,
    /// Where `body` comes from.
    pub(super) source: SizeSource,
    /// `header` is a default.
    pub(super) header_guessed: bool,
}

/// What the size of a body was taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SizeSource {
    /// Nothing known; taken as 0.
    Unknown,
    /// The decoded body: nothing came over the wire in the recording.
    Decoded,
    /// Bytes on the wire.
    Wire,
}

/// A stated size; zero and negative values state nothing.
fn stated(size: Option<f64>) -> Option<u64> {
    // In range: sizes above MAX_OBJECT_BYTES are refused with the file.
    size.filter(|&size| size >= 1.0).map(|size| (size as u64).min(MAX_OBJECT_BYTES))
}

/// Sizes of the response of `entry`. In `firefox` recordings `bodySize` includes the header.
pub(super) fn response_sizes(entry: &Entry, firefox: bool) -> Sizes {
    let response = &entry.response;
    let header = stated(response.headers_size);
    let body_field = stated(response.body_size);
    let content = stated(response.content.size);
    let saved = stated(response.content.compression).unwrap_or(0);
    // chrome-har calls the whole body saved where none came over the wire.
    let encoded = content.map_or(0, |size| size.saturating_sub(saved));
    let parts = body_field.map(|body| if firefox { body } else { body + header.unwrap_or(0) });
    let counted = stated(response.transfer_size).or(stated(entry.bytes_in)).or(parts);
    let Some(wire) = counted.filter(|_| !is_revalidated(entry)) else {
        let (body, source) = match (content, response.content.size) {
            (Some(size), _) => (if encoded > 0 { encoded } else { size }, SizeSource::Decoded),
            (None, Some(0.0)) => (0, SizeSource::Wire),
            (None, _) => (0, SizeSource::Unknown),
        };
        return Sizes {
            recorded: Bytes(counted.unwrap_or(header.unwrap_or(0) + encoded)),
            body: Bytes(body),
            header: header.map_or(DEFAULT_RESPONSE_HEADER, Bytes),
            source,
            header_guessed: header.is_none(),
        };
    };

    let mut body = stated(entry.object_size)
        .or(body_field
            .map(|body| if firefox { body.saturating_sub(header.unwrap_or(0)) } else { body }))
        .unwrap_or_else(|| wire.saturating_sub(header.unwrap_or(0)))
        .min(wire);
    // What exceeds the decoded body by a little is the header: chrome-har counts it in.
    match content {
        Some(content) if body > content && body - content <= MAX_HEADER => body = content,
        None if response.content.size == Some(0.0) && wire <= MAX_HEADER => body = 0,
        _ => {}
    }
    let rest = wire - body;
    let (header, header_guessed) = match header {
        Some(header) => (header, false),
        None if rest > 0 && rest <= MAX_HEADER => (rest, false),
        None => (DEFAULT_RESPONSE_HEADER.0, true),
    };
    Sizes {
        recorded: Bytes(wire),
        body: Bytes(body),
        header: Bytes(header),
        source: SizeSource::Wire,
        header_guessed,
    }
}

/// Size of the request of `entry`, and whether its header is a default.
pub(super) fn request_size(entry: &Entry) -> (RequestSize, bool) {
    let body = Bytes(stated(entry.request.body_size).unwrap_or(0));
    let header = stated(entry.request.headers_size).or_else(|| {
        stated(entry.bytes_out).map(|sent| sent.saturating_sub(body.0)).filter(|&sent| sent > 0)
    });
    match header {
        Some(header) => (RequestSize { header: Bytes(header), body }, false),
        None => (RequestSize { header: DEFAULT_REQUEST_HEADER, body }, true),
    }
}

/// True if the browser had the body: nothing of it came over the wire, or the server only said
/// that it has not changed.
pub(super) fn came_from_cache(entry: &Entry) -> bool {
    let response = &entry.response;
    let nothing_came = stated(response.transfer_size).is_none()
        && stated(entry.bytes_in).is_none()
        && stated(response.body_size).is_none();
    let told = entry.from_cache || response.from_disk_cache;
    stated(response.content.size).is_some() && (nothing_came || told || is_revalidated(entry))
}

/// True for 304, where the decoded body is known: a cold load gets all of it.
fn is_revalidated(entry: &Entry) -> bool {
    entry.response.status == Some(304.0) && stated(entry.response.content.size).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::har::{Content, Response};

    fn entry(headers: f64, body: f64, transfer: f64, content: f64, compression: f64) -> Entry {
        Entry {
            response: Response {
                headers_size: Some(headers),
                body_size: Some(body),
                transfer_size: Some(transfer),
                content: Content {
                    size: Some(content),
                    compression: Some(compression),
                    mime_type: None,
                },
                ..Response::default()
            },
            ..Entry::default()
        }
    }

    #[test]
    fn chrome_har_counts_the_header_into_the_body() {
        let sizes = response_sizes(&entry(-1.0, 47_197.0, 47_197.0, 47_016.0, 0.0), false);
        assert_eq!((sizes.recorded.0, sizes.body.0, sizes.header.0), (47_197, 47_016, 181));
        assert!(!sizes.header_guessed);
        let encoded = response_sizes(&entry(-1.0, 365_098.0, 365_098.0, 1_028_346.0, 0.0), false);
        assert_eq!((encoded.body.0, encoded.header_guessed), (365_098, true));
    }

    #[test]
    fn firefox_counts_the_header_into_the_body_and_states_both() {
        let sizes = response_sizes(&entry(1_917.0, 58_315.0, 0.0, 187_881.0, 0.0), true);
        assert_eq!((sizes.recorded.0, sizes.body.0, sizes.header.0), (58_315, 56_398, 1_917));
    }

    #[test]
    fn web_page_test_states_wire_and_body() {
        let mut recorded = entry(1_253.0, 248_927.0, 0.0, 248_927.0, 0.0);
        recorded.bytes_in = Some(250_119.0);
        recorded.object_size = Some(248_927.0);
        let sizes = response_sizes(&recorded, false);
        assert_eq!((sizes.recorded.0, sizes.body.0, sizes.header.0), (250_119, 248_927, 1_253));
    }

    #[test]
    fn a_warm_cache_leaves_the_decoded_size() {
        let recorded = entry(-1.0, 0.0, 0.0, 16_011.0, 11.0);
        assert!(came_from_cache(&recorded));
        let sizes = response_sizes(&recorded, false);
        assert_eq!((sizes.body.0, sizes.source), (16_000, SizeSource::Decoded));
    }

    #[test]
    fn a_revalidated_object_has_the_size_that_a_cold_load_gets() {
        let mut recorded = entry(-1.0, 0.0, 180.0, 50_000.0, 0.0);
        recorded.response.status = Some(304.0);
        assert!(came_from_cache(&recorded));
        let sizes = response_sizes(&recorded, false);
        assert_eq!((sizes.recorded.0, sizes.body.0), (180, 50_000));
    }

    #[test]
    fn an_empty_response_has_a_header_only() {
        let sizes = response_sizes(&entry(-1.0, 24.0, 24.0, 0.0, 0.0), false);
        assert_eq!((sizes.body.0, sizes.header.0), (0, 24));
    }

    #[test]
    fn negative_sizes_state_nothing() {
        let sizes = response_sizes(&entry(145.0, -145.0, -2.0, -1.0, -9.0), false);
        assert_eq!((sizes.body.0, sizes.source), (0, SizeSource::Unknown));
    }
}
