//! Files that policies are made of, such as the weights of a trained one.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use thiserror::Error;

/// Most bytes of a file; our choice: networks that decide for every packet are far smaller.
const MOST_BYTES: u64 = 64 << 20;

/// A file as it was when the text that names it was read. Whoever writes it anew changes no policy that was chosen
/// before.
#[derive(Clone)]
pub struct PolicyFile {
    name: Arc<str>,
    contents: Arc<Contents>,
}

struct Contents {
    bytes: Vec<u8>,
    /// What [`PolicyFile::parsed`] made of them.
    parsed: OnceLock<Arc<dyn Any + Send + Sync>>,
}

/// Why a file cannot be had.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileError {
    /// It has no name, or one that texts of policies cannot hold.
    #[error("the name of a file, without blanks and commas")]
    Name,
    /// There is no such file, or it cannot be read.
    #[error("a file that can be read: {0}")]
    Unreadable(#[from] io::Error),
    /// It is a folder, a device or a pipe.
    #[error("a regular file")]
    NoFile,
    /// It is too long.
    #[error("a file of at most {} MiB", MOST_BYTES >> 20)]
    TooLong,
}

/// The contents that policies hold, by name, so that those of many rows share them.
static HELD: Mutex<BTreeMap<Arc<str>, Weak<Contents>>> = Mutex::new(BTreeMap::new());

impl PolicyFile {
    /// Reads the file of that name, which is relative to the working directory.
    ///
    /// # Errors
    /// If it is no regular file, too long or unreadable, or if its name has blanks or commas, which separate policies
    /// and parameters in texts. Errors say what was expected.
    pub fn read(name: &str) -> Result<PolicyFile, FileError> {
        if name.is_empty() || name.contains(|sign: char| sign == ',' || sign.is_whitespace()) {
            return Err(FileError::Name);
        }
        // A pipe would not end, and be empty when the next row reads it.
        if !fs::metadata(name)?.is_file() {
            return Err(FileError::NoFile);
        }
        let mut bytes = Vec::new();
        File::open(name)?.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MOST_BYTES {
            return Err(FileError::TooLong);
        }
        Ok(PolicyFile { name: name.into(), contents: shared(name, bytes) })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What was in it.
    pub fn bytes(&self) -> &[u8] {
        &self.contents.bytes
    }

    /// What `parse` makes of its bytes: made once, and shared by all policies that hold the same contents.
    ///
    /// # Errors
    /// Those of `parse`.
    pub fn parsed<T: Any + Send + Sync, E>(
        &self,
        parse: impl FnOnce(&[u8]) -> Result<T, E>,
    ) -> Result<Arc<T>, E> {
        let known = self.contents.parsed.get().cloned();
        if let Some(known) = known.and_then(|known| known.downcast().ok()) {
            return Ok(known);
        }
        let made = Arc::new(parse(self.bytes())?);
        // If another kind of policy parsed them before, this one is not kept.
        let _ = self.contents.parsed.set(made.clone());
        Ok(made)
    }
}

/// The contents that are held under that name already, if they are these bytes.
fn shared(name: &str, bytes: Vec<u8>) -> Arc<Contents> {
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    held.retain(|_, contents| contents.strong_count() > 0);
    if let Some(known) = held.get(name).and_then(Weak::upgrade)
        && known.bytes == bytes
    {
        return known;
    }
    let contents = Arc::new(Contents { bytes, parsed: OnceLock::new() });
    held.insert(name.into(), Arc::downgrade(&contents));
    contents
}

impl PartialEq for PolicyFile {
    fn eq(&self, other: &Self) -> bool {
        let is_same = Arc::ptr_eq(&self.contents, &other.contents);
        self.name == other.name && (is_same || self.bytes() == other.bytes())
    }
}

impl fmt::Debug for PolicyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PolicyFile({:?}, {} bytes)", self.name, self.bytes().len())
    }
}

impl fmt::Display for PolicyFile {
    /// Its name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of this name in a folder for tests.
    fn file(name: &str, bytes: &[u8]) -> String {
        let folder = std::env::temp_dir().join(format!("quipu-policy-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join(name);
        fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    }

    #[test]
    fn contents_are_those_of_when_the_name_was_read() {
        let name = file("contents", b"1");
        let first = PolicyFile::read(&name).unwrap();
        let same = PolicyFile::read(&name).unwrap();
        file("contents", b"2");
        let second = PolicyFile::read(&name).unwrap();
        assert_eq!((first.bytes(), second.bytes()), (&b"1"[..], &b"2"[..]));
        assert_eq!((first.name(), second.name()), (&*name, &*name));
        assert!(first == same && first != second);
        assert!(Arc::ptr_eq(&first.contents, &same.contents), "rows share them");
    }

    #[test]
    fn contents_are_parsed_once() {
        let name = file("parsed", b"12");
        let length = |bytes: &[u8]| Ok::<_, String>(bytes.len());
        let [one, other] = [0, 1].map(|_| PolicyFile::read(&name).unwrap());
        assert!(one.parsed(|_| Err::<usize, _>("no")).is_err(), "an error is not kept");
        assert_eq!(*one.parsed(length).unwrap(), 2);
        assert_eq!(*other.parsed(|_| Err::<usize, _>("again")).unwrap(), 2);
        // What another kind of policy takes them for is not mixed up with it.
        assert_eq!(*other.parsed(|_| Ok::<_, String>("text")).unwrap(), "text");
    }

    #[test]
    fn what_is_no_file_says_what_was_expected() {
        let folder = std::env::temp_dir();
        let error = |name: &str| PolicyFile::read(name).unwrap_err().to_string();
        assert_eq!(error(""), "the name of a file, without blanks and commas");
        assert_eq!(error("a b"), error(""));
        assert_eq!(error(folder.to_str().unwrap()), "a regular file");
        assert!(error("no-such-file").starts_with("a file that can be read: "));
    }

    #[cfg(unix)]
    #[test]
    fn a_device_without_an_end_is_no_file() {
        assert!(matches!(PolicyFile::read("/dev/zero"), Err(FileError::NoFile)));
    }
}
