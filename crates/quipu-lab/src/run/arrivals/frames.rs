//! Where the bodies are in a byte stream of HTTP/2.

use std::collections::BTreeMap;

use quipu_base::StreamId;
use quipu_http::h2::frame::Header;

/// Walks over the frames that a server sends, as its octets come in any order.
#[derive(Debug, Default)]
pub(super) struct DataFrames {
    /// All octets before this one have been walked over.
    next: u64,
    /// Octets that came before those in front of them.
    early: BTreeMap<u64, Vec<u8>>,
    header: Vec<u8>,
    /// Octets left of the frame at hand.
    left: u64,
    /// Of a padded DATA frame whose padding is still to be told: stream and octets.
    padded: Option<(StreamId, u64)>,
}

impl DataFrames {
    /// Takes `octets`, which begin at `offset`; tells `body` the stream, start and end of the body in
    /// each DATA frame that begins in what is there.
    pub(super) fn take(
        &mut self,
        offset: u64,
        octets: &[u8],
        mut body: impl FnMut(StreamId, u64, u64),
    ) {
        if offset > self.next {
            let kept = self.early.entry(offset).or_default();
            if kept.len() < octets.len() {
                *kept = octets.to_vec();
            }
            return;
        }
        self.walk(offset, octets, &mut body);
        while let Some(entry) = self.early.first_entry()
            && *entry.key() <= self.next
        {
            let (offset, octets) = entry.remove_entry();
            self.walk(offset, &octets, &mut body);
        }
    }

    /// Walks over those of `octets`, which begin at `offset`, that are next.
    fn walk(&mut self, offset: u64, octets: &[u8], body: &mut impl FnMut(StreamId, u64, u64)) {
        let known = usize::try_from(self.next.saturating_sub(offset)).unwrap_or(usize::MAX);
        let mut octets = octets.get(known..).unwrap_or_default();
        while let Some((&first, rest)) = octets.split_first() {
            if self.left == 0 {
                self.header.push(first);
                (octets, self.next) = (rest, self.next + 1);
                self.begin(body);
                continue;
            }
            if let Some((stream, length)) = self.padded.take() {
                let start = self.next + 1;
                body(stream, start, start + (length - 1).saturating_sub(u64::from(first)));
            }
            let skipped = usize::try_from(self.left).unwrap_or(usize::MAX).min(octets.len());
            octets = octets.get(skipped..).unwrap_or_default();
            self.left -= skipped as u64;
            self.next += skipped as u64;
        }
    }

    /// Begins a frame if its header is complete.
    fn begin(&mut self, body: &mut impl FnMut(StreamId, u64, u64)) {
        let Ok(header) = <[u8; Header::LEN]>::try_from(&*self.header) else { return };
        self.header.clear();
        let header = Header::decode(header);
        let length = header.length as u64;
        let stream = StreamId(u64::from(header.stream.value()));
        self.left = length;
        if header.is_data() && length > 0 {
            if header.is_padded() {
                self.padded = Some((stream, length));
            } else {
                body(stream, self.next, self.next + length);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATA: u8 = 0;
    const PADDED: u8 = 0x8;

    fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![0, 0, payload.len() as u8, kind, flags, 0, 0, 0, stream];
        frame.extend_from_slice(payload);
        frame
    }

    #[test]
    fn bodies_are_found_in_any_order_of_octets() {
        let mut octets = frame(4, 0, 0, &[0; 12]);
        octets.extend(frame(DATA, 0, 1, b"hello"));
        octets.extend(frame(DATA, 1, 1, b""));
        octets.extend(frame(DATA, PADDED, 3, &[2, b'a', b'b', 0, 0]));
        octets.extend(frame(1, 4, 5, &[0x88]));
        octets.extend(frame(DATA, 1, 5, b"!"));
        let bodies = [(StreamId(1), 30, 35), (StreamId(3), 54, 56), (StreamId(5), 77, 78)];
        for step in 1..octets.len() {
            for reversed in [false, true] {
                let mut chunks: Vec<(usize, &[u8])> =
                    octets.chunks(step).enumerate().map(|(at, part)| (at * step, part)).collect();
                if reversed {
                    chunks.reverse();
                }
                let mut found = Vec::new();
                let mut frames = DataFrames::default();
                for (offset, part) in chunks {
                    for _again in 0..2 {
                        frames.take(offset as u64, part, |stream, start, end| {
                            found.push((stream, start, end));
                        });
                    }
                }
                assert_eq!(found, bodies, "{step} {reversed}");
            }
        }
    }
}
