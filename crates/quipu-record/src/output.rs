//! The directory of a result: it appears whole, or not at all.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::file::FileError;
use crate::series::SeriesPart;
use crate::sheets::names;

/// The folder of a result that has copies of the files from which it was made.
pub const INPUTS: &str = "inputs";

/// A directory that results will be written to.
///
/// Files are first written into a directory beside it, which is renamed at the end and removed
/// if nothing is written.
#[derive(Debug)]
pub struct Output {
    target: PathBuf,
    partial: PathBuf,
    /// Holds the lock on the partial folder, where folders can be locked.
    _lock: Option<fs::File>,
}

/// Results cannot be written to a directory.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OutputError {
    /// Something is there already.
    #[error("output folder {0} is not empty; --force replaces the results in it")]
    NotEmpty(PathBuf),
    /// It is a file.
    #[error("output folder {0} is a file; expected a folder or a new name")]
    NotADirectory(PathBuf),
    /// Another process writes to it.
    #[error("another process is writing to output folder {0}; wait for it, or give another folder")]
    Busy(PathBuf),
    /// The file system refused.
    #[error("cannot write to output folder {folder}: {source}")]
    Io {
        /// The folder.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file could not be written.
    #[error(transparent)]
    File(#[from] FileError),
}

impl Output {
    /// Makes sure, before any run, that results can be written to `target`. Parents are made if
    /// they are missing, and what a process that was killed has left there is removed.
    ///
    /// # Errors
    /// If `target` is a file, cannot be written, another process writes to it, or it holds anything and `force`
    /// is not set.
    pub fn prepare(target: &Path, force: bool) -> Result<Output, OutputError> {
        let failed = |source| OutputError::Io { folder: target.to_owned(), source };
        match fs::read_dir(target) {
            Ok(mut entries) => {
                if entries.next().is_some() && !force {
                    return Err(OutputError::NotEmpty(target.to_owned()));
                }
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) if error.kind() == ErrorKind::NotADirectory => {
                return Err(OutputError::NotADirectory(target.to_owned()));
            }
            Err(error) => return Err(failed(error)),
        }
        let parent = match target.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        fs::create_dir_all(parent).map_err(failed)?;
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let partial = parent.join(format!(".{name}.partial"));
        if partial.is_dir() {
            // What nobody holds was left by a process that was killed.
            match lock(&partial) {
                Lock::Busy => return Err(OutputError::Busy(target.to_owned())),
                Lock::Held(_) | Lock::Impossible => {
                    fs::remove_dir_all(&partial).map_err(failed)?;
                }
            }
        }
        fs::create_dir(&partial).map_err(failed)?;
        let held = match lock(&partial) {
            Lock::Busy => return Err(OutputError::Busy(target.to_owned())),
            Lock::Held(file) => Some(file),
            Lock::Impossible => None,
        };
        Ok(Output { target: target.to_owned(), partial, _lock: held })
    }

    /// A file for the time series of the run at `place` (page, network, policy and number of the run),
    /// called `part`, to be there before [`Output::publish`].
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn series_part(
        &self,
        part: &str,
        place: [String; 4],
    ) -> Result<SeriesPart<fs::File>, FileError> {
        SeriesPart::create(&self.partial, part, place)
    }

    /// The folder that files are written into before [`Output::publish`].
    pub fn folder(&self) -> &Path {
        &self.partial
    }

    /// Gives the directory its name, with all files that are in [`Output::folder`].
    ///
    /// # Errors
    /// If the directory cannot be renamed; then nothing is left behind.
    pub fn publish(self) -> Result<(), OutputError> {
        self.rename().map_err(|source| OutputError::Io { folder: self.target.clone(), source })
    }

    fn rename(&self) -> io::Result<()> {
        // An empty folder gives way; what is in a full one and is not ours stays as it is.
        match fs::remove_dir(&self.target) {
            Ok(()) => fs::rename(&self.partial, &self.target),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                fs::rename(&self.partial, &self.target)
            }
            Err(_) => {
                names().try_for_each(|name| self.replace(&name))?;
                replace_folder(&self.partial, &self.target, INPUTS)
            }
        }
    }
}

/// Puts the numbered folders in the folder `name` of `from` in the place of those in that of `to`; what is beside them
/// there stays.
///
/// # Errors
/// If one cannot be removed or renamed.
pub fn replace_folder(from: &Path, to: &Path, name: &str) -> io::Result<()> {
    let numbered = |folder: &Path| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let is_number = |entry: &fs::DirEntry| {
            entry.file_name().to_string_lossy().bytes().all(|byte| byte.is_ascii_digit())
        };
        entries.filter(is_number).map(|entry| entry.path()).collect::<Vec<PathBuf>>()
    };
    let (from, to) = (from.join(name), to.join(name));
    numbered(&to).iter().try_for_each(fs::remove_dir_all)?;
    let new = numbered(&from);
    if new.is_empty() {
        // One that is empty has no use; what else is in it is not ours.
        let _ = fs::remove_dir(&to);
        return Ok(());
    }
    fs::create_dir_all(&to)?;
    new.iter()
        .try_for_each(|folder| fs::rename(folder, to.join(folder.file_name().unwrap_or_default())))
}

impl Output {
    /// Puts the file `name` into the target; one of an earlier result goes even if there is none now.
    fn replace(&self, name: &str) -> io::Result<()> {
        let (from, to) = (self.partial.join(name), self.target.join(name));
        let result = if from.exists() { fs::rename(from, to) } else { fs::remove_file(to) };
        match result {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            result => result,
        }
    }
}

/// What came of locking a folder.
enum Lock {
    Held(fs::File),
    Busy,
    /// The system locks no folders.
    Impossible,
}

/// Locks `folder` as long as the file is open; a process that ends gives its locks up.
fn lock(folder: &Path) -> Lock {
    let Ok(file) = fs::File::open(folder) else { return Lock::Impossible };
    match file.try_lock() {
        Ok(()) => Lock::Held(file),
        Err(fs::TryLockError::WouldBlock) => Lock::Busy,
        Err(fs::TryLockError::Error(_)) => Lock::Impossible,
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        // Gone already if the result was published; if it cannot be removed, nobody can help.
        let _ = fs::remove_dir_all(&self.partial);
    }
}
