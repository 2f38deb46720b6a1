//! Files of which no more is read than is allowed, whatever their metadata say.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The content of the file at `path`; `None` if that is more than `most` bytes, of which no more are
/// read. Devices without an end are refused by this too.
///
/// # Errors
/// If the file is unreadable.
pub fn read_at_most(path: &Path, most: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= most).then_some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        std::fs::write(&file, b"1234").unwrap();
        assert_eq!(read_at_most(&file, 4).unwrap().as_deref(), Some(&b"1234"[..]));
        assert_eq!(read_at_most(&file, 3).unwrap(), None);
        assert!(read_at_most(&folder.path().join("b"), 4).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_device_without_an_end_is_refused() {
        assert_eq!(read_at_most(Path::new("/dev/zero"), 1_000).unwrap(), None);
    }
}
