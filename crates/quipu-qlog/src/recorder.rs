//! From the engine's events to records of files.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use quipu_base::{Instant, PathId, Role};
use quipu_quic::recorder::{Event, Recorder, Started};

use crate::event::{connection, packet, path, scheduler};
use crate::file::LogFile;
use crate::folder::{Left, QlogError};
use crate::frame::Context;
use crate::{Form, header};

/// What is remembered of a path, so that only what changed is written.
#[derive(Debug, Default)]
pub(crate) struct PathMemory {
    pub(crate) metrics: path::Written,
    pub(crate) timer: Option<quipu_quic::recorder::Timer>,
}

/// Writes the events of one connection.
pub(crate) struct QlogRecorder {
    folder: PathBuf,
    title: String,
    left: Arc<Mutex<Left>>,
    pub(crate) form: Form,
    group: String,
    role: Role,
    /// By path identifier; one file, of path 0, in the current form.
    files: Vec<Option<LogFile>>,
    failed: bool,
    pub(crate) paths: Vec<PathMemory>,
    pub(crate) state: Option<&'static str>,
    /// By which the peer shifts the delays of its acknowledgements.
    pub(crate) peer_exponent: u8,
    /// By which we do.
    pub(crate) own_exponent: u8,
}

/// Most paths, by identifier, that are told apart; what is beyond has no file or memory of its own.
const MAX_PATHS: usize = 1 << 10;

impl QlogRecorder {
    pub(crate) fn new(
        folder: &Path,
        form: Form,
        title: &str,
        left: Arc<Mutex<Left>>,
        started: &Started,
    ) -> QlogRecorder {
        QlogRecorder {
            folder: folder.to_owned(),
            title: title.to_owned(),
            left,
            form,
            group: started.original_dcid.to_string(),
            role: started.role,
            files: Vec::new(),
            failed: false,
            paths: Vec::new(),
            state: None,
            peer_exponent: 3,
            own_exponent: 3,
        }
    }

    /// The file of a path's events; created if it is not there yet.
    #[inline]
    pub(crate) fn file(&mut self, path: PathId) -> Option<&mut LogFile> {
        let index = match self.form {
            Form::Current => 0,
            Form::Version03 => path.0 as usize,
        };
        if !matches!(self.files.get(index), Some(Some(_))) {
            self.open(index);
        }
        self.files.get_mut(index)?.as_mut()
    }

    #[cold]
    fn open(&mut self, index: usize) {
        if index >= MAX_PATHS || self.failed {
            return;
        }
        if index >= self.files.len() {
            self.files.resize_with(index + 1, || None);
        }
        self.files[index] = self.create(index);
        // Where one cannot be created, no other is tried.
        self.failed = self.files[index].is_none();
    }

    fn create(&self, index: usize) -> Option<LogFile> {
        let vantage = header::vantage(self.role);
        let group = &self.group;
        let (name, trace) = match self.form {
            Form::Current => (format!("{group}_{vantage}.sqlog"), vantage.to_owned()),
            Form::Version03 => {
                (format!("{group}_{vantage}_path{index}.sqlog"), format!("{vantage}, path {index}"))
            }
        };
        match LogFile::create(&self.folder, &name) {
            Ok(mut file) => {
                file.write_header(self.form, &self.title, &trace, group, self.role);
                Some(file)
            }
            Err(source) => {
                self.fail(QlogError { path: self.folder.join(name), source });
                None
            }
        }
    }

    fn fail(&self, error: QlogError) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        left.error.get_or_insert(error);
    }

    /// What is remembered of a path.
    pub(crate) fn memory(&mut self, path: PathId) -> Option<&mut PathMemory> {
        let index = path.0 as usize;
        if index >= MAX_PATHS {
            return None;
        }
        if index >= self.paths.len() {
            self.paths.resize_with(index + 1, PathMemory::default);
        }
        self.paths.get_mut(index)
    }

    /// What the frames of a packet on `path` need to be told; `own`: this end sent it.
    pub(crate) fn context(&self, path: PathId, own: bool) -> Context {
        let ack_delay_exponent = if own { self.own_exponent } else { self.peer_exponent };
        Context { form: self.form, path, ack_delay_exponent }
    }
}

impl Recorder for QlogRecorder {
    fn record(&mut self, now: Instant, event: &Event<'_>) {
        match event {
            Event::PacketSent { packet, probe } => packet::sent(self, now, packet, *probe),
            Event::PacketReceived { packet, .. } => packet::received(self, now, packet),
            Event::Scheduled(scheduled) => scheduler::scheduled(self, now, scheduled),
            Event::Metrics(metrics) => path::metrics(self, now, metrics),
            Event::TimerSet { path, expires_at } => {
                path::timer_set(self, now, *path, *expires_at);
            }
            Event::TimerExpired { path, timer } => path::timer_expired(self, now, *path, *timer),
            Event::PacketLost { kind, path, number, sign } => {
                packet::lost(self, now, *kind, *path, *number, *sign);
            }
            Event::PacketDropped { kind, path, size, reason } => {
                packet::dropped(self, now, *kind, *path, *size, *reason);
            }
            Event::PacketKept { kind, size } => packet::buffered(self, now, *kind, *size),
            Event::Path { path, change } => path::changed(self, now, *path, *change),
            Event::Stream { stream, side, state } => {
                connection::stream(self, now, *stream, *side, *state);
            }
            Event::Started(started) => connection::started(self, now, started),
            Event::State(state) => connection::state(self, now, *state),
            Event::Closed(reason) => connection::closed(self, now, reason),
            Event::Parameters { own, parameters } => {
                connection::parameters(self, now, *own, parameters);
            }
            Event::KeysUpdated { updates } => connection::keys_updated(self, now, *updates),
            _ => {}
        }
    }
}

impl Drop for QlogRecorder {
    fn drop(&mut self) {
        for file in std::mem::take(&mut self.files).into_iter().flatten() {
            match file.finish() {
                Ok(path) => {
                    let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
                    left.written.push(path);
                }
                Err((path, source)) => self.fail(QlogError { path, source }),
            }
        }
    }
}
