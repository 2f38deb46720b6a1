//! The backend of `ServeDir`: files of one folder, and nothing outside of it.

use std::fs::{self, Metadata};
use std::future::{Future, Ready, ready};
use std::io::{self, Cursor, ErrorKind, Read, SeekFrom};
use std::path::{Component, Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime};

use tokio::io::{AsyncRead, AsyncSeek, ReadBuf};
use tower_http::services::fs::{Backend, File};

use super::target;

/// Bytes of a file that is read when it is opened, at most; our choice.
const MOST_WHOLE: usize = 32_768;

/// A folder, by its canonical path. A file is served if its own canonical path is inside the folder and has no
/// hidden name. Symbolic links therefore work within the folder, and never lead outside.
///
/// A process that can write into the folder could replace a directory with a link between this check and the
/// opening of the file. Writers have to be trusted; clients do not.
#[derive(Clone, Debug)]
pub(super) struct Root(Arc<Path>);

impl Root {
    /// The canonical path of `folder`.
    pub(super) fn new(folder: &Path) -> io::Result<Self> {
        let root = fs::canonicalize(folder)?;
        // Fails unless it is a folder that may be read.
        fs::read_dir(&root)?;
        Ok(Root(root.into()))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// The canonical path of a file or folder below the root.
    fn resolve(&self, path: &Path) -> io::Result<(PathBuf, Metadata)> {
        let resolved = fs::canonicalize(path).map_err(missing)?;
        let below = resolved.strip_prefix(&self.0).map_err(|_| outside())?;
        let is_shown = |(depth, name): (usize, Component<'_>)| match name {
            Component::Normal(name) => target::is_shown(depth, &name.to_string_lossy()),
            _ => false,
        };
        if !below.components().enumerate().all(is_shown) {
            return Err(outside());
        }
        let metadata = fs::metadata(&resolved).map_err(missing)?;
        Ok((resolved, metadata))
    }

    /// Opens a regular file. Others are treated as missing: opening a pipe could block forever.
    fn open_file(&self, path: &Path) -> io::Result<RootFile> {
        let (resolved, metadata) = self.resolve(path)?;
        if !metadata.is_file() {
            return Err(outside());
        }
        let file = fs::File::open(resolved).map_err(missing)?;
        let metadata = file.metadata()?;
        let left = metadata.len();
        let content = match usize::try_from(left) {
            Ok(length) if length <= MOST_WHOLE => {
                let mut bytes = Vec::with_capacity(length);
                file.take(left).read_to_end(&mut bytes)?;
                Content::Whole(Cursor::new(bytes))
            }
            _ => Content::Open(tokio::fs::File::from_std(file)),
        };
        let described = Described { metadata, form: form(path) };
        Ok(RootFile { content, described, left })
    }
}

/// The error for files that are not served; clients do not learn why.
fn outside() -> io::Error {
    ErrorKind::NotFound.into()
}

/// Maps errors that concern the path to "not found", and keeps those of the host.
fn missing(error: io::Error) -> io::Error {
    let kinds = [
        ErrorKind::NotFound,
        ErrorKind::PermissionDenied,
        ErrorKind::NotADirectory,
        ErrorKind::InvalidInput,
        ErrorKind::InvalidFilename,
    ];
    let is_missing = kinds.contains(&error.kind()) || is_link_cycle(&error);
    if is_missing { outside() } else { error }
}

/// True if symbolic links form a cycle.
fn is_link_cycle(error: &io::Error) -> bool {
    #[cfg(unix)]
    let is_circle = error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error());
    #[cfg(not(unix))]
    let is_circle = {
        let _ = error;
        false
    };
    is_circle
}

/// Work on the runtime's threads for blocking calls.
type Blocking<T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send>>;

fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Blocking<T> {
    Box::pin(async move {
        let done = tokio::task::spawn_blocking(work).await;
        // Fails only when the runtime shuts down.
        done.unwrap_or_else(|error| Err(io::Error::other(error)))
    })
}

impl Backend for Root {
    type File = RootFile;
    type Metadata = Described;
    type OpenFuture = Blocking<RootFile>;
    type MetadataFuture = Blocking<Described>;

    fn open(&self, path: PathBuf) -> Self::OpenFuture {
        let root = self.clone();
        blocking(move || root.open_file(&path))
    }

    fn metadata(&self, path: PathBuf) -> Self::MetadataFuture {
        let root = self.clone();
        blocking(move || {
            let metadata = root.resolve(&path)?.1;
            Ok(Described { metadata, form: form(&path) })
        })
    }
}

/// Size and modification time, of which `ServeDir` makes entity tags. Compressed forms of a file may have the same
/// time and even the same size, but need distinct tags, so the form replaces the last two bits of the nanoseconds.
///
/// <https://www.rfc-editor.org/rfc/rfc9110#section-8.8.3.3>
#[derive(Clone, Debug)]
pub(super) struct Described {
    metadata: Metadata,
    form: u32,
}

/// A number for each compressed form, 0 for plain files.
fn form(path: &Path) -> u32 {
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("gz") => 1,
        Some("br") => 2,
        Some("zst") => 3,
        _ => 0,
    }
}

impl tower_http::services::fs::Metadata for Described {
    fn is_dir(&self) -> bool {
        self.metadata.is_dir()
    }

    fn modified(&self) -> io::Result<SystemTime> {
        let modified = self.metadata.modified()?;
        // Times before 1970 get no tag.
        let Ok(since) = modified.duration_since(SystemTime::UNIX_EPOCH) else {
            return Ok(modified);
        };
        let nanos = since.subsec_nanos() / 4 * 4 + self.form;
        Ok(SystemTime::UNIX_EPOCH + Duration::new(since.as_secs(), nanos))
    }

    fn len(&self) -> u64 {
        self.metadata.len()
    }
}

/// A file of the length that it had when it was opened: bytes added later are left out, and missing ones are an
/// error. Otherwise the body could contradict `Content-Length`.
#[derive(Debug)]
pub(super) struct RootFile {
    content: Content,
    described: Described,
    /// Bytes from the current position to the end.
    left: u64,
}

/// What is read from.
#[derive(Debug)]
enum Content {
    /// All of a small file, which takes no further blocking call and no buffer of the size for large ones.
    Whole(Cursor<Vec<u8>>),
    Open(tokio::fs::File),
}

impl AsyncRead for RootFile {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let most = buffer.remaining().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        if most == 0 {
            return Poll::Ready(Ok(()));
        }
        let mut part = ReadBuf::new(buffer.initialize_unfilled_to(most));
        ready!(match &mut self.content {
            Content::Whole(bytes) => Pin::new(bytes).poll_read(cx, &mut part),
            Content::Open(file) => Pin::new(file).poll_read(cx, &mut part),
        })?;
        let read = part.filled().len();
        if read == 0 {
            return Poll::Ready(Err(ErrorKind::UnexpectedEof.into()));
        }
        buffer.advance(read);
        self.left -= read as u64;
        Poll::Ready(Ok(()))
    }
}

impl AsyncSeek for RootFile {
    fn start_seek(mut self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()> {
        let SeekFrom::Start(start) = position else { return Err(ErrorKind::Unsupported.into()) };
        self.left = self.described.metadata.len().saturating_sub(start);
        match &mut self.content {
            Content::Whole(bytes) => Pin::new(bytes).start_seek(position),
            Content::Open(file) => Pin::new(file).start_seek(position),
        }
    }

    fn poll_complete(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        match &mut self.content {
            Content::Whole(bytes) => Pin::new(bytes).poll_complete(cx),
            Content::Open(file) => Pin::new(file).poll_complete(cx),
        }
    }
}

impl File for RootFile {
    type Metadata = Described;
    type MetadataFuture<'a> = Ready<io::Result<Described>>;

    fn metadata(&self) -> Self::MetadataFuture<'_> {
        ready(Ok(self.described.clone()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncSeekExt};

    use super::*;

    /// A file of `before` that becomes `text` after it is opened, read from byte `start`.
    async fn read(before: &str, text: &str, start: u64) -> io::Result<String> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("a.txt");
        fs::write(&path, before)?;
        let mut file = Root::new(folder.path())?.open(path.clone()).await?;
        fs::write(&path, text)?;
        file.seek(SeekFrom::Start(start)).await?;
        let mut found = String::new();
        file.read_to_string(&mut found).await?;
        Ok(found)
    }

    #[tokio::test]
    async fn a_file_that_grows_ends_where_it_ended_when_it_was_opened() {
        let large = "0123456789".repeat(MOST_WHOLE / 10 + 1);
        for before in ["0123456789", &large] {
            let after = format!("{before}abc");
            let last = before.len() as u64 - 3;
            assert_eq!(read(before, &after, 0).await.unwrap(), before);
            assert_eq!(read(before, &after, last).await.unwrap(), "789");
            assert_eq!(read(before, &after, last + 3).await.unwrap(), "");
        }
    }

    #[tokio::test]
    async fn a_small_file_is_what_it_was_and_a_large_one_that_shrinks_is_an_error() {
        assert_eq!(read("0123456789", "0123", 2).await.unwrap(), "23456789");
        let large = "0".repeat(MOST_WHOLE + 1);
        let error = read(&large, "0123", 0).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
    }
}
