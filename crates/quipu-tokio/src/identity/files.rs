//! Certificates, keys and secrets in files.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

use quipu_quic::tls::CertificateDer;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::{self, PemObject};

use super::error::IdentityError;

/// Bytes of a file, at most. Our choice: the certificates of all public authorities have 0.3 MiB.
const MAX_LENGTH: u64 = 1 << 20;

/// Who may read a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Readers {
    /// Whoever the host lets.
    Any,
    /// Its owner alone, where the system knows of owners.
    Owner,
}

/// All certificates of a PEM file, at least one.
pub(super) fn read_certificates(
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, IdentityError> {
    let wrong = |reason| IdentityError::NoCertificate { path: path.to_owned(), reason };
    let text = read(path)?;
    let found: Result<Vec<_>, pem::Error> = CertificateDer::pem_slice_iter(&text).collect();
    let found = found.map_err(|error| wrong(error.to_string()))?;
    if found.is_empty() {
        return Err(wrong("no certificate".to_owned()));
    }
    Ok(found)
}

/// The first private key of a PEM file.
pub(super) fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, IdentityError> {
    let key = PrivateKeyDer::from_pem_slice(&read(path)?);
    key.map_err(|error| {
        let reason = match error {
            pem::Error::NoItemsFound => "no private key".to_owned(),
            error => error.to_string(),
        };
        IdentityError::NoKey { path: path.to_owned(), reason }
    })
}

/// The bytes of a file.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, IdentityError> {
    let failed = |source| IdentityError::Read { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(MAX_LENGTH + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_LENGTH {
        return Err(IdentityError::TooLong(path.to_owned()));
    }
    Ok(bytes)
}

/// Makes a folder that only its owner may look into, unless it is there.
pub(super) fn make_folder(path: &Path) -> Result<(), IdentityError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(|source| IdentityError::Write { path: path.to_owned(), source })
}

/// Writes a file whole, or leaves none.
pub(super) fn write(path: &Path, text: &str, readers: Readers) -> Result<(), IdentityError> {
    let partial = path.with_extension(format!("partial-{}", std::process::id()));
    let written = write_new(&partial, text, readers).and_then(|()| fs::rename(&partial, path));
    written.map_err(|source| {
        // If it cannot be removed either, nobody can help.
        let _ = fs::remove_file(&partial);
        IdentityError::Write { path: path.to_owned(), source }
    })
}

fn write_new(path: &Path, text: &str, readers: Readers) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if readers == Readers::Owner {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    #[cfg(not(unix))]
    let _ = readers;
    let mut file = options.open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
