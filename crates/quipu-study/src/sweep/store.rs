//! What was run, by the content of what was asked for: a database of SQLite in each folder.
//!
//! Its one table has a row for each run: by which program it was made (but for its policies, which keys tell
//! apart), its key, what came of it in postcard's form, and the checksum of that (XXH3, 64 bits). A row is written at
//! once: whoever is killed meanwhile loses that run alone. The database has a write-ahead log, so that several
//! processes of one machine may write side by side; it takes no file system that machines share.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Row, params};
use thiserror::Error;
use xxhash_rust::xxh3::xxh3_64;

use quipu_record::RunRecord;

/// The database's name in its folder.
const FILE: &str = "runs.sqlite";
/// How long others may write before this gives up: longer than any checkpoint on a slow disk.
const PATIENCE: Duration = Duration::from_secs(120);
/// Between two attempts where SQLite does not wait by itself.
const PAUSE: Duration = Duration::from_millis(5);

const TABLE: &str = "
    CREATE TABLE IF NOT EXISTS runs (
        program BLOB NOT NULL,
        key BLOB NOT NULL,
        failed INTEGER NOT NULL,
        outcome BLOB NOT NULL,
        checksum INTEGER NOT NULL,
        PRIMARY KEY (program, key)
    )";
// What is damaged there is written again.
const INSERT: &str = "
    INSERT OR REPLACE INTO runs (program, key, failed, outcome, checksum) VALUES (?, ?, ?, ?, ?)";
const SELECT: &str = "SELECT outcome, checksum FROM runs WHERE program = ? AND key = ?";
const SELECT_ALL: &str = "SELECT outcome, checksum, key, failed FROM runs WHERE program = ?";
const COUNT_OTHERS: &str = "SELECT count(*) FROM runs WHERE program <> ?";

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

/// Where a run is kept.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// Which of the databases.
    database: usize,
    failed: bool,
}

/// All runs that are kept in some folders, and the database for new ones.
#[derive(Debug)]
pub(super) struct Store {
    folder: PathBuf,
    /// Hash of all that decides results, but of single policies, which keys tell apart: what is kept of a run
    /// has the form that this program gives it.
    program: u128,
    /// The folder's own, which need not be there, and those of others.
    databases: Vec<PathBuf>,
    slots: BTreeMap<u128, Slot>,
    notes: Vec<String>,
    /// For writing, from the first run on.
    own: Mutex<Option<Connection>>,
}

impl Store {
    /// The store in `folder`, and the runs that `others` have beside it, of programs that have the hash
    /// `program` of all but single policies. Nothing is made yet.
    ///
    /// # Errors
    /// If a database is there and cannot be read.
    pub(super) fn open(
        folder: &Path,
        others: &[PathBuf],
        program: u128,
    ) -> Result<Store, StoreError> {
        let mut store = Store {
            folder: folder.to_owned(),
            program,
            databases: Vec::new(),
            slots: BTreeMap::new(),
            notes: Vec::new(),
            own: Mutex::new(None),
        };
        store.add(folder)?;
        for other in others {
            store.add(other)?;
        }
        Ok(store)
    }

    fn add(&mut self, folder: &Path) -> Result<(), StoreError> {
        let file = folder.join(FILE);
        let database = self.databases.len();
        self.databases.push(file.clone());
        if !file.exists() {
            return Ok(());
        }
        let Found { runs, damaged, foreign } =
            patiently(|| read_all(&file, self.program)).map_err(failed_at(&file))?;
        for (key, failed) in runs {
            self.slots.entry(key).or_insert(Slot { database, failed });
        }
        let name = file.display();
        if damaged > 0 {
            self.notes.push(format!("{name}: {damaged} runs are damaged and left out"));
        }
        if foreign > 0 {
            self.notes.push(format!("{name}: {foreign} runs of another program are left out"));
        }
        Ok(())
    }

    /// What is to be said of the databases, a line each.
    pub(super) fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Whether the run is kept, and if so whether it failed.
    pub(super) fn outcome(&self, key: u128) -> Option<bool> {
        self.slots.get(&key).map(|slot| slot.failed)
    }

    /// Whether the run is kept in another folder alone.
    pub(super) fn is_elsewhere(&self, key: u128) -> bool {
        self.slots.get(&key).is_some_and(|slot| slot.database > 0)
    }

    /// Keeps what came of a run.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn keep(&self, key: u128, outcome: &Outcome) -> Result<(), StoreError> {
        let bytes = postcard::to_stdvec(outcome)
            .map_err(io::Error::other)
            .map_err(|source| self.failed(source))?;
        self.insert(key, outcome.is_err(), &bytes)
    }

    /// Keeps a run that is in another folder.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub(super) fn take_over(&self, key: u128, reader: &mut Reader<'_>) -> Result<(), StoreError> {
        match reader.bytes(key)? {
            Some((slot, bytes)) => self.insert(key, slot.failed, &bytes),
            None => Ok(()),
        }
    }

    /// Keeps all runs that the store in `folder` has and `wants` names, at once, and returns their keys. Damaged ones are
    /// left there, and so are those of another program.
    ///
    /// # Errors
    /// If it cannot be read, or they cannot be written; none is kept then.
    pub(super) fn take_all(
        &mut self,
        folder: &Path,
        wants: impl Fn(u128) -> bool,
    ) -> Result<Vec<u128>, StoreError> {
        let file = folder.join(FILE);
        if !file.exists() {
            return Ok(Vec::new());
        }
        let from = patiently(|| open(&file)).map_err(failed_at(&file))?;
        let own_file = self.folder.join(FILE);
        let mut own = self.lock();
        let database = match own.take() {
            Some(database) => own.insert(database),
            None => own.insert(self.create()?),
        };
        let all = database.transaction().map_err(failed_at(&own_file))?;
        let program = self.program.to_le_bytes();
        let mut taken = Vec::new();
        let mut copy = || -> rusqlite::Result<()> {
            // Who was killed may have made the file and no table.
            if !from.table_exists(None, "runs")? {
                return Ok(());
            }
            let mut query = from.prepare(SELECT_ALL)?;
            let mut rows = query.query([program])?;
            let mut insert = all.prepare(INSERT)?;
            while let Some(row) = rows.next()? {
                let (outcome, is_whole) = outcome_of(row)?;
                let (key, failed) = (row.get::<_, [u8; 16]>(2)?, row.get::<_, bool>(3)?);
                let key_number = u128::from_le_bytes(key);
                if is_whole && wants(key_number) {
                    insert.execute(params![program, key, failed, outcome, checksum(&outcome)])?;
                    taken.push((key_number, failed));
                }
            }
            Ok(())
        };
        copy().map_err(failed_at(&file))?;
        all.commit().map_err(failed_at(&own_file))?;
        drop(own);
        let keys = taken.iter().map(|(key, _)| *key).collect();
        // The first of the databases is the folder's own.
        let slots = taken.into_iter().map(|(key, failed)| (key, Slot { database: 0, failed }));
        self.slots.extend(slots);
        Ok(keys)
    }

    /// The hash that was given when it was opened.
    pub(super) fn program(&self) -> u128 {
        self.program
    }

    fn failed(&self, source: io::Error) -> StoreError {
        StoreError { file: self.folder.join(FILE), source }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Connection>> {
        // A thread that panicked has written a whole row or none.
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn insert(&self, key: u128, failed: bool, outcome: &[u8]) -> Result<(), StoreError> {
        let mut own = self.lock();
        let database = match own.take() {
            Some(database) => own.insert(database),
            None => own.insert(self.create()?),
        };
        let (program, key) = (self.program.to_le_bytes(), key.to_le_bytes());
        database
            .execute(INSERT, params![program, key, failed, outcome, checksum(outcome)])
            .map_err(failed_at(&self.folder.join(FILE)))?;
        Ok(())
    }

    /// Opens the folder's own database for writing, and makes what is missing of it.
    fn create(&self) -> Result<Connection, StoreError> {
        fs::create_dir_all(&self.folder)
            .map_err(|source| StoreError { file: self.folder.clone(), source })?;
        let file = self.folder.join(FILE);
        let create = || -> rusqlite::Result<Connection> {
            let database = Connection::open(&file)?;
            database.busy_timeout(PATIENCE)?;
            database.pragma_update(None, "journal_mode", "WAL")?;
            // A run that is lost with the machine is made again; a killed process loses nothing by it.
            database.pragma_update(None, "synchronous", "NORMAL")?;
            database.execute_batch(TABLE)?;
            Ok(database)
        };
        patiently(create).map_err(failed_at(&file))
    }

    /// Makes sure that what was kept survives the machine's end too.
    ///
    /// # Errors
    /// If the file system refuses.
    pub(super) fn sync(&self) -> Result<(), StoreError> {
        let Some(database) = &*self.lock() else { return Ok(()) };
        database
            .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
            .map_err(failed_at(&self.folder.join(FILE)))
    }

    /// For reading runs, from one thread.
    pub(super) fn reader(&self) -> Reader<'_> {
        Reader { store: self, open: None }
    }
}

/// Reads runs of a store.
pub(super) struct Reader<'s> {
    store: &'s Store,
    /// Which of the databases was read last.
    open: Option<(usize, Connection)>,
}

impl Reader<'_> {
    /// Where the run is kept, and what came of it.
    fn bytes(&mut self, key: u128) -> Result<Option<(Slot, Vec<u8>)>, StoreError> {
        let Some(&slot) = self.store.slots.get(&key) else { return Ok(None) };
        let Some(file) = self.store.databases.get(slot.database) else { return Ok(None) };
        let mut read = || -> rusqlite::Result<Option<(Vec<u8>, bool)>> {
            let database = match self.open.take().filter(|(open, _)| *open == slot.database) {
                Some(open) => self.open.insert(open),
                None => self.open.insert((slot.database, open(file)?)),
            };
            let (program, key) = (self.store.program.to_le_bytes(), key.to_le_bytes());
            database.1.query_row(SELECT, params![program, key], outcome_of).optional()
        };
        match patiently(&mut read).map_err(failed_at(file))? {
            Some((bytes, true)) => Ok(Some((slot, bytes))),
            Some((_, false)) => Err(StoreError { file: file.clone(), source: changed() }),
            None => Ok(None),
        }
    }

    /// What came of the run; `None` if it is not kept.
    ///
    /// # Errors
    /// If it cannot be read, or has changed since it was found.
    pub(super) fn read(&mut self, key: u128) -> Result<Option<Outcome>, StoreError> {
        let Some((_, bytes)) = self.bytes(key)? else { return Ok(None) };
        let outcome = postcard::from_bytes(&bytes).map_err(io::Error::other);
        outcome.map(Some).map_err(|source| self.store.failed(source))
    }
}

/// Does it again as long as others are in the way: SQLite does not wait by itself where a database becomes
/// one with a write-ahead log, nor where that log is removed with the last connection.
#[expect(clippy::disallowed_methods, reason = "another process is waited for, no event of a run")]
fn patiently<T>(mut attempt: impl FnMut() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
    for _ in 0..PATIENCE.as_millis() / PAUSE.as_millis() {
        match attempt() {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {
                thread::sleep(PAUSE);
            }
            other => return other,
        }
    }
    attempt()
}

fn changed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a run was damaged since the store was opened")
}

/// What is in a database.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    /// Key, and whether the run failed.
    runs: Vec<(u128, bool)>,
    /// Rows whose checksum is that of something else.
    damaged: usize,
    /// Runs of another program.
    foreign: u32,
}

/// All that one database has of a program.
fn read_all(file: &Path, program: u128) -> rusqlite::Result<Found> {
    let database = open(file)?;
    let mut found = Found::default();
    // Who made the file may be about to make the table, or was killed before.
    if !database.table_exists(None, "runs")? {
        return Ok(found);
    }
    let program = program.to_le_bytes();
    let mut query = database.prepare(SELECT_ALL)?;
    let mut rows = query.query([program])?;
    while let Some(row) = rows.next()? {
        match outcome_of(row)? {
            (_, true) => found.runs.push((u128::from_le_bytes(row.get(2)?), row.get(3)?)),
            (_, false) => found.damaged += 1,
        }
    }
    found.foreign = database.query_row(COUNT_OTHERS, [program], |row| row.get(0))?;
    Ok(found)
}

/// What a row has of a run in its first two columns, and whether the second is the checksum of the first.
fn outcome_of(row: &Row<'_>) -> rusqlite::Result<(Vec<u8>, bool)> {
    let outcome: Vec<u8> = row.get(0)?;
    let is_whole = row.get::<_, i64>(1)? == checksum(&outcome);
    Ok((outcome, is_whole))
}

fn checksum(outcome: &[u8]) -> i64 {
    xxh3_64(outcome).cast_signed()
}

/// Opens a database that is there; for reading alone, if its file may not be written.
fn open(file: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let database = Connection::open_with_flags(file, flags)?;
    database.busy_timeout(PATIENCE)?;
    Ok(database)
}

/// The error of a database, and what to do about one that is damaged.
fn failed_at(file: &Path) -> impl Fn(rusqlite::Error) -> StoreError {
    let file = file.to_owned();
    move |error| {
        let is_damaged = matches!(
            error.sqlite_error_code(),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
        );
        let source = match is_damaged {
            true => io::Error::new(
                io::ErrorKind::InvalidData,
                format!("{error}: remove the file, and its runs are made again"),
            ),
            false => io::Error::other(error),
        };
        StoreError { file: file.clone(), source }
    }
}

#[cfg(test)]
mod tests;
