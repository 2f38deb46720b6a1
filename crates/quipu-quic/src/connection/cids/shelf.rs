//! Connection IDs that nothing needs at present, one behind the other in one piece of memory: a
//! connection that does nothing has two for each path that it may open, at either end.

use quipu_base::PathId;

use crate::wire::{ConnectionId, NoSpace, Reader, ResetToken, Writer};

/// The longest record: path identifier and sequence number, length, connection ID, token.
const MAX_RECORD: usize = 8 + 8 + 1 + ConnectionId::MAX_LENGTH + ResetToken::LENGTH;

/// In the byte of the length: a token follows the connection ID.
const HAS_TOKEN: u8 = 0x80;

/// A connection ID of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) path: PathId,
    pub(super) sequence: u64,
    pub(super) id: ConnectionId,
    pub(super) token: Option<ResetToken>,
}

/// Connection IDs by path and sequence number, in the order in which they were put there.
#[derive(Debug, Default)]
pub(super) struct Shelf(Vec<u8>);

impl Shelf {
    /// Puts a connection ID there.
    pub(super) fn put(&mut self, kept: &Kept) {
        let mut record = [0; MAX_RECORD];
        let mut writer = Writer::new(&mut record);
        if kept.write(&mut writer).is_ok() {
            self.0.extend_from_slice(writer.written());
        }
    }

    /// All that are there.
    pub(super) fn iter(&self) -> impl Iterator<Item = Kept> {
        self.records().map(|(_, kept)| kept)
    }

    /// Those of a path.
    pub(super) fn of(&self, path: PathId) -> impl Iterator<Item = Kept> {
        self.iter().filter(move |kept| kept.path == path)
    }

    /// That of a path and sequence number.
    pub(super) fn get(&self, path: PathId, sequence: u64) -> Option<Kept> {
        self.of(path).find(|kept| kept.sequence == sequence)
    }

    /// Takes out that of a path and sequence number.
    pub(super) fn take(&mut self, path: PathId, sequence: u64) -> Option<Kept> {
        self.take_first(|kept| (kept.path, kept.sequence) == (path, sequence))
    }

    /// Takes out the first of a path.
    pub(super) fn take_of(&mut self, path: PathId) -> Option<Kept> {
        self.take_first(|kept| kept.path == path)
    }

    /// Gives back memory that is not needed.
    pub(super) fn release(&mut self) {
        self.0.shrink_to_fit();
    }

    fn take_first(&mut self, wanted: impl Fn(&Kept) -> bool) -> Option<Kept> {
        let (range, kept) = self.records().find(|(_, kept)| wanted(kept))?;
        self.0.drain(range);
        Some(kept)
    }

    /// Connection IDs with the places of their records.
    fn records(&self) -> impl Iterator<Item = (std::ops::Range<usize>, Kept)> {
        let length = self.0.len();
        let mut reader = Reader::new(&self.0);
        std::iter::from_fn(move || {
            let start = length - reader.remaining();
            let kept = Kept::read(&mut reader)?;
            Some((start..length - reader.remaining(), kept))
        })
    }
}

impl Kept {
    fn write(&self, writer: &mut Writer<'_>) -> Result<(), NoSpace> {
        writer.put_varint(self.path.0.into())?;
        writer.put_varint(self.sequence)?;
        // At most 20.
        let length = self.id.length() as u8;
        writer.put_u8(if self.token.is_some() { length | HAS_TOKEN } else { length })?;
        writer.put_bytes(self.id.as_bytes())?;
        self.token.map_or(Ok(()), |token| writer.put_array(*token.as_bytes()))
    }

    /// `None` at the end.
    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let path = PathId(u32::try_from(reader.varint().ok()?).ok()?);
        let sequence = reader.varint().ok()?;
        let length = reader.u8().ok()?;
        let id = ConnectionId::new(reader.bytes(usize::from(length & !HAS_TOKEN)).ok()?)?;
        let token = match length & HAS_TOKEN {
            0 => None,
            _ => Some(ResetToken::new(reader.array().ok()?)),
        };
        Some(Kept { path, sequence, id, token })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(path: u32, sequence: u64) -> Kept {
        let id = ConnectionId::new(&[sequence as u8; 20][..4 + path as usize % 17]).unwrap();
        let token = sequence.is_multiple_of(2).then(|| ResetToken::new([path as u8; 16]));
        Kept { path: PathId(path), sequence, id, token }
    }

    #[test]
    fn connection_ids_of_all_lengths_come_back_as_they_were_put() {
        let mut shelf = Shelf::default();
        let all: Vec<Kept> = (0..20)
            .flat_map(|path| [kept(path, 0), kept(path, 1), kept(path, u64::MAX >> 2)])
            .chain([kept(u32::MAX, 5)])
            .collect();
        all.iter().for_each(|kept| shelf.put(kept));
        assert_eq!(shelf.iter().collect::<Vec<_>>(), all);
        assert_eq!(shelf.get(PathId(7), 1), Some(kept(7, 1)));
        assert_eq!(shelf.get(PathId(7), 2), None);
        assert_eq!(shelf.take(PathId(7), 1), Some(kept(7, 1)));
        assert_eq!(shelf.take(PathId(7), 1), None);
        assert_eq!(shelf.of(PathId(7)).count(), 2);
        assert_eq!(shelf.take_of(PathId(7)), Some(kept(7, 0)));
        assert_eq!(shelf.take_of(PathId(7)), Some(kept(7, u64::MAX >> 2)));
        assert_eq!(shelf.take_of(PathId(7)), None);
        assert_eq!(shelf.iter().count(), all.len() - 3);
    }

    #[test]
    fn a_connection_id_takes_little_more_than_its_bytes() {
        let mut shelf = Shelf::default();
        let id = ConnectionId::new(&[1; 8]).unwrap();
        let token = Some(ResetToken::new([2; 16]));
        for (path, sequence) in (0..8).flat_map(|path| [(path, 0), (path, 1)]) {
            shelf.put(&Kept { path: PathId(path), sequence, id, token });
        }
        shelf.release();
        assert_eq!(shelf.0.capacity(), 16 * (3 + 8 + 16));
    }
}
