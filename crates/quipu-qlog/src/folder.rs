//! A folder of files, and the recorders that write them.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use quipu_quic::recorder::{Recorder, RecorderFactory};
use thiserror::Error;

use crate::Form;
use crate::recorder::QlogRecorder;

/// A file could not be written.
#[derive(Debug, Error)]
#[error("cannot write {path}: {source}")]
pub struct QlogError {
    /// Which.
    pub path: PathBuf,
    /// Why.
    pub source: io::Error,
}

/// What recorders leave behind.
#[derive(Debug, Default)]
pub(crate) struct Left {
    pub(crate) written: Vec<PathBuf>,
    pub(crate) error: Option<QlogError>,
}

/// A folder into which each connection's events are written.
///
/// Give [`QlogFolder::recorders`] to the endpoints, let them run, drop them, and call
/// [`QlogFolder::finish`]. A file gets its name when its connection is dropped:
/// `<original destination connection ID>_<client or server>.sqlog`, and in the form of version 0.3,
/// where each path has a file, `<…>_<client or server>_path<path ID>.sqlog`.
#[derive(Clone, Debug)]
pub struct QlogFolder {
    folder: PathBuf,
    form: Form,
    title: String,
    left: Arc<Mutex<Left>>,
}

impl QlogFolder {
    /// Creates `folder` and its parents if they are missing. `title` is that of every file.
    ///
    /// # Errors
    /// If the folder cannot be created.
    pub fn create(folder: &Path, form: Form, title: &str) -> Result<QlogFolder, QlogError> {
        std::fs::create_dir_all(folder)
            .map_err(|source| QlogError { path: folder.to_owned(), source })?;
        Ok(QlogFolder {
            folder: folder.to_owned(),
            form,
            title: title.to_owned(),
            left: Arc::default(),
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// The form of its files.
    pub fn form(&self) -> Form {
        self.form
    }

    /// The title of its files.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// A folder in this one, with another title; what is written there, and what goes wrong there,
    /// is told by [`QlogFolder::finish`] of either. It is created with its first file.
    #[must_use]
    pub fn within(&self, name: &str, title: &str) -> QlogFolder {
        QlogFolder { folder: self.folder.join(name), title: title.to_owned(), ..self.clone() }
    }

    /// Makes a recorder for each connection. A file that cannot be created is told by
    /// [`QlogFolder::finish`]; its connection goes on without.
    pub fn recorders(&self) -> RecorderFactory {
        let QlogFolder { folder, form, title, left } = self.clone();
        Arc::new(move |started| {
            let left = Arc::clone(&left);
            let recorder = QlogRecorder::new(&folder, form, &title, left, started);
            Some(Box::new(recorder) as Box<dyn Recorder>)
        })
    }

    /// The files of the connections dropped so far, in order of name.
    ///
    /// # Errors
    /// The first that went wrong.
    pub fn finish(&self) -> Result<Vec<PathBuf>, QlogError> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = left.error.take() {
            return Err(error);
        }
        let mut written = std::mem::take(&mut left.written);
        written.sort_unstable();
        Ok(written)
    }
}
