//! Content of an exact size.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use quipu_web::page::ObjectKind;

/// Bytes of padding that are sent at a time.
const CHUNK: u64 = 16_384;
static PADDING: [u8; CHUNK as usize] = [b' '; CHUNK as usize];

/// Content as pieces: padding is not kept in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Content {
    pieces: Vec<Piece>,
    length: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Bytes(Bytes),
    /// So many spaces.
    Padding(u64),
}

impl Content {
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    pub(super) fn push(&mut self, bytes: impl Into<Bytes>) {
        let bytes = bytes.into();
        // Lengths have 64 bits on every supported platform, at most.
        self.length += bytes.len() as u64;
        self.pieces.push(Piece::Bytes(bytes));
    }

    /// Adds spaces until the content has `length` bytes.
    pub(super) fn pad_to(&mut self, length: u64) {
        let missing = length.saturating_sub(self.length);
        self.pieces.push(Piece::Padding(missing));
        self.length += missing;
    }

    /// Adds a comment of HTML that ends at `length`, or spaces if there is no room for one.
    pub(super) fn comment_to(&mut self, length: u64) {
        const AROUND: u64 = "<!---->".len() as u64;
        if length.saturating_sub(self.length) >= AROUND {
            self.push(Bytes::from_static(b"<!--"));
            self.pad_to(length - 3);
            self.push(Bytes::from_static(b"-->"));
        } else {
            self.pad_to(length);
        }
    }
}

/// The body of a response with that content.
#[derive(Debug)]
pub(super) struct Sending {
    pieces: std::vec::IntoIter<Piece>,
    padding: u64,
    left: u64,
}

impl From<Content> for Sending {
    fn from(content: Content) -> Self {
        let Content { pieces, length } = content;
        Sending { pieces: pieces.into_iter(), padding: 0, left: length }
    }
}

impl Body for Sending {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let bytes = loop {
            if self.padding > 0 {
                let length = self.padding.min(CHUNK);
                self.padding -= length;
                break Bytes::from_static(&PADDING[..length as usize]);
            }
            match self.pieces.next() {
                None => return Poll::Ready(None),
                Some(Piece::Padding(length)) => self.padding = length,
                Some(Piece::Bytes(bytes)) if bytes.is_empty() => {}
                Some(Piece::Bytes(bytes)) => break bytes,
            }
        };
        self.left -= bytes.len() as u64;
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

/// A picture of one pixel: transparent, where the format knows that.
const GIF: &[u8] = b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff!\xf9\x04\x01\0\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";
const PNG: &[u8] =
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\
    \0\0\0\rIDATx\xdacd\xf8\xcfP\x0f\0\x03\x86\x01\x80Z4}k\0\0\0\0IEND\xaeB`\x82";
const WEBP: &[u8] = b"RIFF\x1a\0\0\0WEBPVP8L\r\0\0\0/\0\0\0\x10\x07\x10\x11\x11\x88\x88\xfe\x07\0";
const SVG: &[u8] = br#"<svg xmlns="http://www.w3.org/2000/svg"/>"#;

/// The Huffman table of a JPEG file, `class` 0x00 or 0x10, that has a single code, of one bit.
const fn huffman(class: u8) -> [u8; 22] {
    let mut table = [0; 22];
    table[0] = 0xff;
    table[1] = 0xc4;
    table[3] = 20;
    table[4] = class;
    table[5] = 1;
    table
}

/// A grey pixel in a baseline JPEG file: each of the two coefficients that are coded takes one bit.
fn jpeg() -> Vec<u8> {
    let mut file = vec![0xff, 0xd8, 0xff, 0xdb, 0, 67, 0];
    file.extend([1; 64]);
    file.extend([0xff, 0xc0, 0, 11, 8, 0, 1, 0, 1, 1, 1, 0x11, 0]);
    file.extend(huffman(0x00));
    file.extend(huffman(0x10));
    file.extend([0xff, 0xda, 0, 8, 1, 1, 0, 0, 63, 0, 0b0011_1111, 0xff, 0xd9]);
    file
}

/// The head of a WAV file whose samples are `length - 44` bytes: 8 channels of 32 bits at 192 kHz, so that much of
/// it is little playing time.
fn wav(length: u64) -> Vec<u8> {
    const HEAD: u64 = 44;
    let size = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX).to_le_bytes();
    let (rate, block): (u32, u16) = (192_000, 32);
    let mut head = b"RIFF".to_vec();
    head.extend(size(length.saturating_sub(8)));
    head.extend(b"WAVEfmt \x10\0\0\0\x01\0\x08\0");
    head.extend(rate.to_le_bytes());
    head.extend((rate * u32::from(block)).to_le_bytes());
    head.extend(block.to_le_bytes());
    head.extend(b"\x20\0data");
    head.extend(size(length.saturating_sub(HEAD)));
    head
}

/// The content of an object of `kind` and its media type, for kinds that name no other object. Pictures are valid
/// if they have room for a head; what follows it is not looked at. Fonts are not: browsers request them, and show
/// others.
pub(super) fn opaque(kind: ObjectKind, path: &str, length: u64) -> (Content, &'static str) {
    let (head, media_type) = match kind {
        ObjectKind::Document => (Vec::new(), "text/html; charset=utf-8"),
        ObjectKind::Stylesheet => (Vec::new(), "text/css; charset=utf-8"),
        ObjectKind::Script => (Vec::new(), "text/javascript; charset=utf-8"),
        ObjectKind::Font => (Vec::new(), "font/woff2"),
        ObjectKind::Xhr | ObjectKind::Fetch => (b"{}".to_vec(), "application/json"),
        ObjectKind::Image => picture(path, length),
        ObjectKind::Media => (wav(length), "audio/wav"),
        ObjectKind::Manifest => (b"{}".to_vec(), "application/manifest+json"),
        ObjectKind::Preflight | ObjectKind::Ping => (Vec::new(), "text/plain; charset=utf-8"),
        ObjectKind::Prefetch | ObjectKind::Other => (Vec::new(), "application/octet-stream"),
    };
    let mut content = Content::default();
    if head.len() as u64 <= length {
        content.push(head);
    }
    content.pad_to(length);
    (content, media_type)
}

/// By the ending of the path, as far as there is room. GIF has the shortest head, and is what others are in place
/// of formats that are not made here.
fn picture(path: &str, length: u64) -> (Vec<u8>, &'static str) {
    let path = path.split('?').next().unwrap_or_default();
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending).to_ascii_lowercase();
    let (head, media_type) = match ending.as_str() {
        "png" => (PNG.to_vec(), "image/png"),
        "jpg" | "jpeg" => (jpeg(), "image/jpeg"),
        "webp" => (WEBP.to_vec(), "image/webp"),
        "svg" => (SVG.to_vec(), "image/svg+xml"),
        _ => (GIF.to_vec(), "image/gif"),
    };
    if head.len() as u64 <= length { (head, media_type) } else { (GIF.to_vec(), "image/gif") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_end_where_they_should_or_are_spaces() {
        for length in 0..20 {
            let mut content = Content::default();
            content.push(&b"ab"[..]);
            content.comment_to(length);
            assert_eq!(content.length(), length.max(2));
        }
    }

    #[test]
    fn every_kind_has_content_of_every_size() {
        for kind in ObjectKind::ALL {
            for path in ["/a.png", "/a.jpg", "/a.webp?x", "/a.svg", "/a", "/"] {
                for length in [0, 1, 42, 43, 44, 200, 1 << 40] {
                    assert_eq!(opaque(kind, path, length).0.length(), length);
                }
            }
        }
    }

    #[test]
    fn heads_have_the_lengths_that_their_formats_tell() {
        assert_eq!(WEBP.len(), 8 + 26);
        assert_eq!(wav(1000).len(), 44);
        assert_eq!(GIF.len(), 43);
        assert_eq!(PNG.len(), 70);
        assert_eq!(opaque(ObjectKind::Image, "/a.png", 69).1, "image/gif");
        assert_eq!(opaque(ObjectKind::Image, "/a.png", 70).1, "image/png");
    }
}
