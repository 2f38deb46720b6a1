//! One file: records into a buffer, the buffer into a file, which gets its name at the end.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use quipu_base::{Instant, PathId, Role};

use crate::json::Json;
use crate::{Form, header};

/// What a record begins with. <https://www.rfc-editor.org/rfc/rfc7464#section-2.2>
pub(crate) const SEPARATOR: u8 = 0x1e;

/// Bytes that are collected before they are written; our choice.
const BUFFER: usize = 128 << 10;

/// A file of one trace.
pub(crate) struct LogFile {
    json: Json,
    file: Option<File>,
    partial: PathBuf,
    target: PathBuf,
    error: Option<io::Error>,
}

impl LogFile {
    /// Creates `folder/name`, under another name until [`LogFile::finish`].
    pub(crate) fn create(folder: &Path, name: &str) -> io::Result<LogFile> {
        fs::create_dir_all(folder)?;
        let partial = folder.join(format!(".{name}.partial-{}", std::process::id()));
        Ok(LogFile {
            json: Json { out: Vec::with_capacity(BUFFER + BUFFER / 8) },
            file: Some(File::create(&partial)?),
            partial,
            target: folder.join(name),
            error: None,
        })
    }

    /// Writes the first record.
    pub(crate) fn write_header(
        &mut self,
        form: Form,
        title: &str,
        trace: &str,
        group: &str,
        role: Role,
    ) {
        header::write(&mut self.json.out, form, title, trace, group, role);
    }

    /// Begins an event; its data follow, then [`LogFile::end`]. `tuple` is the path, unless it is
    /// the first.
    #[inline]
    pub(crate) fn begin(&mut self, now: Instant, name: &'static str, tuple: PathId) -> &mut Json {
        let json = &mut self.json;
        json.out.push(SEPARATOR);
        json.raw("{\"time\":");
        json.time(now);
        json.raw(",\"name\":\"");
        json.raw(name);
        if tuple == PathId::ZERO {
            json.raw("\",\"data\":{");
        } else {
            json.raw("\",\"tuple\":\"");
            json.integer(u64::from(tuple.0));
            json.raw("\",\"data\":{");
        }
        json
    }

    /// Ends an event.
    #[inline]
    pub(crate) fn end(&mut self) {
        self.json.raw("}}\n");
        if self.json.out.len() >= BUFFER {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if let Some(file) = &mut self.file
            && let Err(error) = file.write_all(&self.json.out)
        {
            // What comes after is lost too; the first error is told.
            self.error = Some(error);
            self.file = None;
        }
        self.json.out.clear();
    }

    /// Writes the rest and gives the file its name; `Err` with the path if anything failed, and
    /// then nothing is left behind.
    pub(crate) fn finish(mut self) -> Result<PathBuf, (PathBuf, io::Error)> {
        self.flush();
        let renamed = match self.error.take() {
            Some(error) => Err(error),
            None => fs::rename(&self.partial, &self.target),
        };
        match renamed {
            Ok(()) => Ok(self.target),
            Err(error) => {
                // If it cannot be removed either, nobody can help.
                let _ = fs::remove_file(&self.partial);
                Err((self.target, error))
            }
        }
    }
}
