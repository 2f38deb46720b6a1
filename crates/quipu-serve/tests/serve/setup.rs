//! Folders, requests and responses.

use std::fs;
use std::path::Path;

use http::header::HeaderName;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use quipu_serve::Body;
use quipu_serve::files::Files;
use tempfile::TempDir;
use tower_service::Service;

/// A folder that is served, removed in the end.
pub(crate) struct Site {
    folder: TempDir,
    pub(crate) files: Files,
}

impl Site {
    /// One with these files, each with its content.
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let folder = TempDir::new().unwrap();
        // Not the folder itself, so that there is something beside it.
        let root = folder.path().join("site");
        fs::create_dir(&root).unwrap();
        let site = Site { files: Files::new(&root).unwrap(), folder };
        for (path, text) in files {
            site.write(path, text);
        }
        site
    }

    /// The folder that is served.
    pub(crate) fn root(&self) -> std::path::PathBuf {
        self.folder.path().join("site")
    }

    /// Writes a file below the folder that is served, or beside it.
    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The response to `GET` with these headers.
    pub(crate) async fn get(&self, target: &str, headers: &[(HeaderName, &str)]) -> Answer {
        self.ask(Method::GET, target, headers).await
    }

    pub(crate) async fn ask(
        &self,
        method: Method,
        target: &str,
        headers: &[(HeaderName, &str)],
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(target);
        for (name, value) in headers {
            request = request.header(name, *value);
        }
        Answer::of(self.files.clone().call(request.body(()).unwrap()).await.unwrap()).await
    }
}

/// A response, read whole.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    async fn of(response: Response<Body>) -> Self {
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes().to_vec();
        Answer { status: parts.status, headers: parts.headers, body }
    }

    /// The value of a header.
    pub(crate) fn header(&self, name: HeaderName) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// Checks status and body.
    #[track_caller]
    pub(crate) fn is(&self, status: u16, text: &str) {
        assert_eq!((self.status.as_u16(), self.text()), (status, text), "{:?}", self.headers);
    }
}

/// Sets the time of change of a file, in seconds since 1970.
pub(crate) fn date(path: &Path, seconds: u64) {
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
    fs::File::options().append(true).open(path).unwrap().set_modified(time).unwrap();
}
