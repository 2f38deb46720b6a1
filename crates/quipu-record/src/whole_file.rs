//! Files that appear whole, or not at all.

use std::io::{self, Write};
use std::path::Path;

/// Writes `content` to `file`: first beside it, then it takes the name. What was there before is
/// replaced, and stays as it is if anything fails.
///
/// # Errors
/// If the file system refuses; nothing is left behind then.
pub fn write_whole(file: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    file.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".partial-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // As of any other file; the process's mask takes its part away.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let mut partial = builder.tempfile_in(folder)?;
    partial.write_all(content.as_ref())?;
    partial.persist(file)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole_and_a_failure_leaves_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("page.md");
        write_whole(&file, "one").unwrap();
        write_whole(&file, "two").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "two");
        let taken = folder.path().join("folder");
        fs::create_dir(&taken).unwrap();
        fs::write(taken.join("inside"), "").unwrap();
        assert!(write_whole(&taken, "three").is_err());
        assert!(write_whole(Path::new("/"), "four").is_err());
        let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap()).collect();
        assert_eq!(names.len(), 2, "no partial file: {names:?}");
    }
}
