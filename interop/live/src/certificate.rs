//! Certificates for servers of these tests.

use std::path::Path;
use std::{fs, io};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::{Failure, Options};

/// Names that make a certificate longer than three datagrams.
const MANY_NAMES: usize = 300;

/// Writes `cert.pem`, `priv.key` and `ca.pem` for `localhost` and the names of the interop runner
/// into `folder`. A long one does not fit into what a server may send before it knows that the client
/// is at its address.
///
/// # Errors
/// If no certificate can be made, or a file not be written.
pub fn make(folder: &Path, is_long: bool) -> Result<(), Failure> {
    let mut names: Vec<String> =
        ["localhost", "server", "server4", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
    if is_long {
        names.extend(
            (0..MANY_NAMES).map(|at| format!("long-name-{at}.of-this-certificate.example")),
        );
    }
    // ECDSA on P-256: every peer knows it.
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?;
    let certificate = rcgen::CertificateParams::new(names)?.self_signed(&key)?;
    fs::create_dir_all(folder)?;
    fs::write(folder.join("cert.pem"), certificate.pem())?;
    fs::write(folder.join("ca.pem"), certificate.pem())?;
    fs::write(folder.join("priv.key"), key.serialize_pem())?;
    Ok(())
}

/// The server's certificates and key.
///
/// # Errors
/// If a file is missing or is no PEM.
pub fn of_server(
    options: &Options,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), Failure> {
    let chain = certificates(&options.cert)?;
    let key = PrivateKeyDer::from_pem_file(&options.key)
        .map_err(|error| format!("{}: {error}", options.key.display()))?;
    Ok((chain, key))
}

/// What a client trusts.
///
/// # Errors
/// If the file is missing or is no PEM.
pub fn roots(options: &Options) -> Result<rustls::RootCertStore, Failure> {
    let mut roots = rustls::RootCertStore::empty();
    for certificate in certificates(&options.ca)? {
        roots.add(certificate)?;
    }
    Ok(roots)
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let read = || CertificateDer::pem_file_iter(file)?.collect::<Result<Vec<_>, _>>();
    let found = read().map_err(|error| format!("{}: {error}", file.display()))?;
    if found.is_empty() {
        let error = io::Error::new(io::ErrorKind::InvalidData, "no certificate");
        return Err(format!("{}: {error}", file.display()).into());
    }
    Ok(found)
}
