//! Where what is fetched goes: standard output, or a file that is there once it is whole.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use ring::digest::{Context, SHA256};
use tempfile::NamedTempFile;

use super::error::FetchError;

/// Octets of a body on their way to where they belong.
pub(super) struct Output {
    place: Place,
    digest: Context,
    /// Bytes so far, those of an earlier fetch included.
    pub(super) bytes: u64,
}

enum Place {
    Standard,
    /// Takes the place of the file in the end, or is gone.
    Whole(NamedTempFile, PathBuf),
    /// Kept if the fetch is cut off.
    Part(File, PathBuf),
    /// A device or a pipe, which nothing takes the place of.
    Direct(File, PathBuf),
}

/// What an earlier fetch kept of a file.
pub(super) struct Part {
    pub(super) bytes: u64,
    /// ETag or date of what it is a part of.
    pub(super) validator: String,
}

/// What a link names is written, and the link stays.
fn resolved(file: &Path) -> PathBuf {
    std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned())
}

/// The file beside `file` that ends so.
fn beside(file: &Path, end: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(end);
    name.into()
}

impl Part {
    /// What is there of `file`, if it is known of what.
    pub(super) fn of(file: &Path) -> Option<Part> {
        let file = resolved(file);
        let validator = std::fs::read_to_string(beside(&file, ".part.validator")).ok()?;
        let bytes = std::fs::metadata(beside(&file, ".part")).ok()?.len();
        (bytes > 0).then_some(Part { bytes, validator })
    }
}

impl Output {
    /// For `file`, or standard output. If it is to be kept when it is cut off, `kept` tells of what it is a
    /// part; with `after`, it goes on behind what is there.
    pub(super) fn open(
        file: Option<&Path>,
        kept: Option<&str>,
        after: bool,
    ) -> Result<Output, FetchError> {
        let Some(file) = file else {
            return Ok(Output::at(Place::Standard));
        };
        let failed = |error| cannot_write(file, &error);
        let resolved = resolved(file);
        let file = resolved.as_path();
        if std::fs::metadata(file).is_ok_and(|there| !there.is_file()) {
            let opened = File::options().write(true).open(file).map_err(failed)?;
            return Ok(Output::at(Place::Direct(opened, file.to_owned())));
        }
        let Some(validator) = kept else {
            let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
            let temporary = temporary_in(folder.unwrap_or(Path::new(".")));
            return Ok(Output::at(Place::Whole(temporary.map_err(failed)?, file.to_owned())));
        };
        let part = beside(file, ".part");
        let mut opened = File::options();
        opened.create(true).write(true);
        let opened = if after { opened.append(true) } else { opened.truncate(true) };
        let mut output =
            Output::at(Place::Part(opened.open(&part).map_err(failed)?, file.to_owned()));
        if after {
            output.take_in(&part).map_err(failed)?;
        } else {
            std::fs::write(beside(file, ".part.validator"), validator).map_err(failed)?;
        }
        Ok(output)
    }

    fn at(place: Place) -> Output {
        Output { place, digest: Context::new(&SHA256), bytes: 0 }
    }

    /// What is there counts.
    fn take_in(&mut self, part: &Path) -> io::Result<()> {
        let mut file = File::open(part)?;
        let mut buffer = vec![0; 1 << 16];
        loop {
            let read = file.read(&mut buffer)?;
            if read == 0 {
                return Ok(());
            }
            self.digest.update(&buffer[..read]);
            self.bytes += read as u64;
        }
    }

    pub(super) fn write(&mut self, octets: &[u8]) -> Result<(), FetchError> {
        self.digest.update(octets);
        self.bytes += octets.len() as u64;
        let (written, place) = match &mut self.place {
            Place::Standard => {
                let mut out = io::stdout().lock();
                (out.write_all(octets).and_then(|()| out.flush()), Path::new("standard output"))
            }
            Place::Whole(file, place) => (file.write_all(octets), place.as_path()),
            Place::Part(file, place) | Place::Direct(file, place) => {
                (file.write_all(octets), place.as_path())
            }
        };
        written.map_err(|error| cannot_write(place, &error))
    }

    /// What came is not kept, not even to be gone on with.
    pub(super) fn discard(self) {
        if let Place::Part(_, file) = &self.place {
            remove_part(file);
        }
    }

    /// The body is complete: it takes its place, if it has that checksum. Returns its SHA-256.
    pub(super) fn finish(self, expected: Option<&[u8; 32]>) -> Result<String, FetchError> {
        let digest = self.digest.finish();
        let hex: String = digest.as_ref().iter().map(|octet| format!("{octet:02x}")).collect();
        if expected.is_some_and(|expected| expected != digest.as_ref()) {
            if let Place::Part(_, file) = &self.place {
                // What is wrong is not worth to be gone on with.
                remove_part(file);
            }
            let reason = format!("the SHA-256 is {hex}, not the one of --checksum");
            return Err(FetchError::new(FetchError::CHECKSUM, reason));
        }
        match self.place {
            Place::Standard | Place::Direct(..) => {}
            Place::Whole(temporary, file) => {
                let persisted = temporary.persist(&file);
                persisted.map_err(|error| cannot_write(&file, &error.error))?;
            }
            Place::Part(part, file) => {
                drop(part);
                let renamed = std::fs::rename(beside(&file, ".part"), &file);
                renamed.map_err(|error| cannot_write(&file, &error))?;
                remove_part(&file);
            }
        }
        Ok(hex)
    }
}

/// Nobody goes on with a file.
fn remove_part(file: &Path) {
    // They may not be there.
    let _ = std::fs::remove_file(beside(file, ".part"));
    let _ = std::fs::remove_file(beside(file, ".part.validator"));
}

/// A file that those may read whom the user's umask lets, as other files that programs make: temporary
/// ones are not.
fn temporary_in(folder: &Path) -> io::Result<NamedTempFile> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let all = std::fs::Permissions::from_mode(0o666);
        tempfile::Builder::new().permissions(all).tempfile_in(folder)
    }
    #[cfg(not(unix))]
    tempfile::Builder::new().tempfile_in(folder)
}

fn cannot_write(place: &Path, error: &io::Error) -> FetchError {
    FetchError::new(FetchError::WRITE, format!("cannot write {}: {error}", place.display()))
}
