//! What was run, by the content of what was asked for: segments that only grow.
//!
//! A segment is a list of frames: a mark of four bytes, the length of the body, its checksum (XXH3, 64
//! bits), both in little-endian order, and the body. The body of the first frame tells which program made the
//! others, but for its policies, and thereby their form; that of each other is the key of a run (16 bytes) and what came of it, in
//! postcard's form. Each process that runs something writes a segment of its own and never touches
//! another, so that several may work side by side. A frame is written at once: whoever is killed
//! meanwhile loses that run alone. Where a frame is damaged the next mark is looked for.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use thiserror::Error;
use xxhash_rust::xxh3::xxh3_64;

use quipu_record::RunRecord;

const MARK: [u8; 4] = *b"\xf1Qr\n";
/// Mark, length, checksum.
const HEAD: usize = 4 + 4 + 8;
const KEY: usize = 16;
/// Bytes after which a segment is followed by another.
const MOST_OWN: u64 = 256 << 20;
/// The largest segment that is read.
const MOST_READ: u64 = 2 << 30;
/// How often the length of a segment is summed in vain before the rest of it counts as damaged.
const MOST_IN_VAIN: usize = 8;
/// How segments end.
const ENDING: &str = "runs";

/// What came of a run: its records, or why it failed.
pub(super) type Outcome = Result<Vec<RunRecord>, String>;

/// A store cannot be read or written.
#[derive(Debug, Error)]
#[error("{}: {source}", .file.display())]
pub struct StoreError {
    /// The file or folder.
    pub file: PathBuf,
    /// Why.
    pub source: io::Error,
}

/// Hash of all that decides results, but of single policies, which keys tell apart: what is kept of a run has
/// the form that this program gives it.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Header {
    program: [u8; KEY],
}

/// Where a run is kept.
#[derive(Clone, Copy, Debug)]
struct Slot {
    segment: u32,
    offset: u64,
    length: u32,
    failed: bool,
}

/// All runs that are kept in some folders, and a segment for new ones.
#[derive(Debug)]
pub(super) struct Store {
    folder: PathBuf,
    header: Header,
    segments: Vec<PathBuf>,
    /// How many of the segments are in the folder itself.
    own_segments: usize,
    slots: BTreeMap<u128, Slot>,
    notes: Vec<String>,
    segment: Mutex<Option<(File, u64)>>,
}

/// What was found in a segment.
#[derive(Debug, Default, PartialEq, Eq)]
struct Scan {
    /// Key, place and length of what came of it, and whether it failed.
    runs: Vec<(u128, u64, u32, bool)>,
    /// Runs of another program.
    foreign: usize,
    /// Bytes that are no frames, the last one left out.
    damaged: u64,
    /// Whether the last frame is incomplete.
    torn: bool,
}

impl Store {
    /// The store in `folder`, and the runs that `others` have beside it, of programs that have the hash
    /// `frame` of all but single policies. Nothing is made yet.
    ///
    /// # Errors
    /// If a folder or a segment in it cannot be read.
    pub(super) fn open(
        folder: &Path,
        others: &[PathBuf],
        frame: u128,
    ) -> Result<Store, StoreError> {
        let mut store = Store {
            folder: folder.to_owned(),
            header: Header { program: frame.to_le_bytes() },
            segments: Vec::new(),
            own_segments: 0,
            slots: BTreeMap::new(),
            notes: Vec::new(),
            segment: Mutex::new(None),
        };
        store.add(folder)?;
        store.own_segments = store.segments.len();
        for other in others {
            store.add(other)?;
        }
        Ok(store)
    }

    fn add(&mut self, folder: &Path) -> Result<(), StoreError> {
        let failed = |file: &Path| {
            let file = file.to_owned();
            move |source| StoreError { file, source }
        };
        let entries = match fs::read_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries.map_err(failed(folder))?,
        };
        let mut files = Vec::new();
        for entry in entries {
            let path = entry.map_err(failed(folder))?.path();
            if path.extension().is_some_and(|ending| ending == ENDING) {
                files.push(path);
            }
        }
        files.sort();
        let (mut foreign, mut foreign_segments) = (0, 0);
        for file in files {
            let length = fs::metadata(&file).map_err(failed(&file))?.len();
            let name = file.display();
            if length > MOST_READ {
                self.notes.push(format!("{name}: larger than 2 GiB, so none of ours: left out"));
                continue;
            }
            let bytes = fs::read(&file).map_err(failed(&file))?;
            let Scan { runs, foreign: of_others, damaged, torn } = scan(&bytes, &self.header);
            if damaged > 0 {
                let rest = runs.len() + of_others;
                self.notes
                    .push(format!("{name}: {damaged} bytes are damaged; {rest} runs are read"));
            } else if torn {
                self.notes.push(format!(
                    "{name}: the last run was not written to its end and is made again"
                ));
            }
            foreign += of_others;
            foreign_segments += usize::from(of_others > 0);
            // A store is far from so many segments.
            let segment = u32::try_from(self.segments.len()).unwrap_or(u32::MAX);
            for (key, offset, length, failed) in runs {
                self.slots.entry(key).or_insert(Slot { segment, offset, length, failed });
            }
            self.segments.push(file);
        }
        if foreign > 0 {
            let folder = folder.display();
            self.notes.push(format!(
                "{folder}: {foreign} runs of another program in {foreign_segments} files are left out"
            ));
        }
        Ok(())
    }

    /// What is to be said of the segments, a line each.
    pub(super) fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Whether the run is kept, and if so whether it failed.
    pub(super) fn outcome(&self, key: u128) -> Option<bool> {
        self.slots.get(&key).map(|slot| slot.failed)
    }

    /// Whether the run is kept in another folder alone.
    pub(super) fn is_elsewhere(&self, key: u128) -> bool {
        self.slots.get(&key).is_some_and(|slot| slot.segment as usize >= self.own_segments)
    }

    /// Keeps what came of a run.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn keep(&self, key: u128, outcome: &Outcome) -> Result<(), StoreError> {
        let mut body = key.to_le_bytes().to_vec();
        body = postcard::to_extend(outcome, body).map_err(|error| self.failed(error))?;
        self.append(&body)
    }

    /// Keeps a run that is in another folder.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub(super) fn take_over(&self, key: u128, reader: &mut Reader<'_>) -> Result<(), StoreError> {
        let mut body = key.to_le_bytes().to_vec();
        if let Some(bytes) = reader.bytes(key)? {
            body.extend_from_slice(&bytes);
            self.append(&body)?;
        }
        Ok(())
    }

    /// The hash that was given when it was opened.
    pub(super) fn frame(&self) -> u128 {
        u128::from_le_bytes(self.header.program)
    }

    fn failed(&self, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> StoreError {
        StoreError { file: self.folder.clone(), source: io::Error::other(error) }
    }

    fn lock(&self) -> MutexGuard<'_, Option<(File, u64)>> {
        // What a thread that panicked has written is a whole frame or is found damaged.
        self.segment.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn append(&self, body: &[u8]) -> Result<(), StoreError> {
        let frame = frame(body).map_err(|error| self.failed(error))?;
        let mut segment = self.lock();
        let failed = |source| StoreError { file: self.folder.clone(), source };
        let (file, written) = match segment.take().filter(|(_, written)| *written < MOST_OWN) {
            Some(open) => segment.insert(open),
            None => segment.insert(self.new_segment().map_err(failed)?),
        };
        file.write_all(&frame).map_err(failed)?;
        *written += frame.len() as u64;
        Ok(())
    }

    /// A segment that nobody else has.
    fn new_segment(&self) -> io::Result<(File, u64)> {
        fs::create_dir_all(&self.folder)?;
        let header = postcard::to_stdvec(&self.header).map_err(io::Error::other)?;
        let frame = frame(&header)?;
        for number in 0_u32.. {
            let path = self.folder.join(format!("{number:06}.{ENDING}"));
            match OpenOptions::new().write(true).create_new(true).open(path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                file => {
                    let mut file = file?;
                    file.write_all(&frame)?;
                    return Ok((file, frame.len() as u64));
                }
            }
        }
        Err(io::Error::other("there is no name left for a segment"))
    }

    /// Makes sure that what was kept survives the machine's end too.
    ///
    /// # Errors
    /// If the file system refuses.
    pub(super) fn sync(&self) -> Result<(), StoreError> {
        match &*self.lock() {
            Some((file, _)) => file.sync_data().map_err(|error| self.failed(error)),
            None => Ok(()),
        }
    }

    /// For reading runs, from one thread.
    pub(super) fn reader(&self) -> Reader<'_> {
        Reader { store: self, open: None }
    }
}

/// Reads runs of a store.
pub(super) struct Reader<'s> {
    store: &'s Store,
    open: Option<(u32, File)>,
}

impl Reader<'_> {
    fn bytes(&mut self, key: u128) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(slot) = self.store.slots.get(&key) else { return Ok(None) };
        let Some(path) = self.store.segments.get(slot.segment as usize) else { return Ok(None) };
        let read = |open: &mut Option<(u32, File)>| -> io::Result<Vec<u8>> {
            if open.as_ref().is_none_or(|(segment, _)| *segment != slot.segment) {
                *open = Some((slot.segment, File::open(path)?));
            }
            let mut bytes = vec![0; slot.length as usize];
            if let Some((_, file)) = open {
                file.seek(SeekFrom::Start(slot.offset))?;
                file.read_exact(&mut bytes)?;
            }
            Ok(bytes)
        };
        let bytes = read(&mut self.open);
        bytes.map(Some).map_err(|source| StoreError { file: path.clone(), source })
    }

    /// What came of the run; `None` if it is not kept.
    ///
    /// # Errors
    /// If it cannot be read, or has changed since it was found.
    pub(super) fn read(&mut self, key: u128) -> Result<Option<Outcome>, StoreError> {
        let Some(bytes) = self.bytes(key)? else { return Ok(None) };
        postcard::from_bytes(&bytes).map(Some).map_err(|error| self.store.failed(error))
    }
}

fn frame(body: &[u8]) -> io::Result<Vec<u8>> {
    let length = u32::try_from(body.len()).map_err(io::Error::other)?;
    let mut frame = Vec::with_capacity(HEAD + body.len());
    frame.extend_from_slice(&MARK);
    frame.extend_from_slice(&length.to_le_bytes());
    frame.extend_from_slice(&xxh3_64(body).to_le_bytes());
    frame.extend_from_slice(body);
    Ok(frame)
}

/// Why no frame is at a place.
enum NoFrame {
    /// Something else is there.
    Other,
    /// The bytes end before the frame does.
    Torn,
    /// The checksum is that of another body of this length.
    Damaged(usize),
}

/// The body of the frame at `at`.
fn frame_at(bytes: &[u8], at: usize) -> Result<&[u8], NoFrame> {
    let rest = bytes.get(at..).unwrap_or_default();
    let Some((head, rest)) = rest.split_at_checked(HEAD) else {
        let length = rest.len().min(MARK.len());
        return Err(if rest[..length] == MARK[..length] { NoFrame::Torn } else { NoFrame::Other });
    };
    let (mark, head) = head.split_at(4);
    let (length, sum) = head.split_at(4);
    if mark != MARK {
        return Err(NoFrame::Other);
    }
    let length = length.try_into().map(u32::from_le_bytes).map_err(|_| NoFrame::Other)?;
    let sum = sum.try_into().map(u64::from_le_bytes).map_err(|_| NoFrame::Other)?;
    let body = rest.get(..length as usize).ok_or(NoFrame::Torn)?;
    if xxh3_64(body) == sum { Ok(body) } else { Err(NoFrame::Damaged(body.len())) }
}

/// All whole frames of a segment, whatever lies between them.
fn scan(bytes: &[u8], own: &Header) -> Scan {
    let mut found = Scan::default();
    let mut is_own = None;
    let mut at = 0;
    // Where something begins that is no frame.
    let mut lost: Option<(usize, bool)> = None;
    // Bytes that may still be summed in vain: marks in damaged bytes may state any length.
    let mut patience = MOST_IN_VAIN * bytes.len();
    while at < bytes.len() {
        let body = match frame_at(bytes, at) {
            Ok(body) => body,
            Err(why) => {
                lost.get_or_insert((at, matches!(why, NoFrame::Torn)));
                if let NoFrame::Damaged(length) = why {
                    patience = patience.saturating_sub(length);
                }
                match bytes[at + 1..].windows(4).position(|it| it == MARK) {
                    Some(distance) if patience > 0 => at += 1 + distance,
                    _ => break,
                }
                continue;
            }
        };
        if let Some((from, _)) = lost.take() {
            found.damaged += (at - from) as u64;
        }
        let start = at + HEAD;
        at = start + body.len();
        match (is_own, body.split_first_chunk::<KEY>()) {
            (None, _) => {
                let header = postcard::from_bytes::<Header>(body);
                // Without a header nobody knows what the rest is.
                is_own = Some(header.is_ok_and(|header| header == *own));
            }
            (Some(true), Some((key, rest))) => {
                // The first byte of a result tells which it is.
                let failed = rest.first() == Some(&1);
                // A body is shorter than 2^32.
                let (offset, length) = ((start + KEY) as u64, rest.len() as u32);
                found.runs.push((u128::from_le_bytes(*key), offset, length, failed));
            }
            _ => found.foreign += 1,
        }
    }
    match lost {
        Some((_, true)) => found.torn = true,
        Some((from, false)) => found.damaged += (bytes.len() - from) as u64,
        None => {}
    }
    found
}

#[cfg(test)]
mod tests;
