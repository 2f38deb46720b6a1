//! Requests of hq-interop, and the files that they are for.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Failure;

/// The request for `path`.
pub fn request(path: &str) -> Vec<u8> {
    format!("GET {path}\r\n").into_bytes()
}

/// The file that a request is for. Whatever follows the name on the first line is ignored.
///
/// # Errors
/// If it is no request, or names a file outside of `www`.
pub fn requested(www: &Path, request: &[u8]) -> Result<PathBuf, Failure> {
    let text = std::str::from_utf8(request)?;
    let line = text.lines().next().unwrap_or_default();
    let name = line.strip_prefix("GET /").ok_or_else(|| format!("{line:?} is no request"))?;
    let name = name.split_whitespace().next().unwrap_or_default();
    let inside = |part: &str| !part.is_empty() && part != "." && part != "..";
    if !name.split('/').all(inside) || name.contains('\\') {
        return Err(format!("{name:?} is outside of the folder that is served").into());
    }
    Ok(www.join(name))
}

/// Reads a file that was asked for.
///
/// # Errors
/// As [`requested`], or if the file cannot be read.
pub fn answer(www: &Path, request: &[u8]) -> Result<Vec<u8>, Failure> {
    let file = requested(www, request)?;
    fs::read(&file).map_err(|error| format!("{}: {error}", file.display()).into())
}

/// Writes what a server answered, under the last part of the path.
///
/// # Errors
/// If the file cannot be written.
pub fn save(downloads: &Path, path: &str, bytes: &[u8]) -> Result<(), Failure> {
    let name = path.rsplit('/').next().filter(|name| !name.is_empty());
    let file = downloads.join(name.ok_or_else(|| format!("{path:?} names no file"))?);
    fs::write(&file, bytes).map_err(|error| format!("{}: {error}", file.display()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_a_file_inside_of_the_folder_and_nothing_else() {
        let www = Path::new("www");
        assert_eq!(requested(www, b"GET /a\r\n").unwrap(), Path::new("www/a"));
        assert_eq!(requested(www, &request("/a/b")).unwrap(), Path::new("www/a/b"));
        assert_eq!(requested(www, b"GET /a").unwrap(), Path::new("www/a"));
        for wrong in ["GET /../a", "GET /a/../../b", "GET //etc/passwd", "GET /", "PUT /a", ""] {
            assert!(requested(www, wrong.as_bytes()).is_err(), "{wrong:?}");
        }
    }
}
