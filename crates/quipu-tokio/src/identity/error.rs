//! What goes wrong with certificates, keys and their files.

use std::io;
use std::path::PathBuf;

use quipu_quic::random::NoRandomness;
use quipu_quic::tls::rustls::ConfigError;
use thiserror::Error;

/// Why there is no identity, or no trust in one.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// The host has no certificates of authorities.
    #[error(
        "this host trusts no authority; install its ca-certificates, or name a file of certificates"
    )]
    NoRoots,
    /// No key or certificate was made.
    #[error("cannot make a certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    /// TLS refuses it.
    #[error(transparent)]
    Tls(#[from] ConfigError),
    /// rustls refuses it.
    #[error("rustls refuses the configuration: {0}")]
    Rustls(#[from] rustls::Error),
    /// There are no random bytes for a secret.
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
    /// A file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// Which.
        path: PathBuf,
        /// What the host said.
        source: io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// Which.
        path: PathBuf,
        /// What the host said.
        source: io::Error,
    },
    /// A file is longer than any certificate, key or secret.
    #[error("{0} has more than 1 MiB; expected a certificate, a key or a secret")]
    TooLong(PathBuf),
    /// A file has no certificate.
    #[error(
        "{path}: {reason}; expected certificates in PEM, which begin with \
         -----BEGIN CERTIFICATE-----"
    )]
    NoCertificate {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A file has no private key.
    #[error(
        "{path}: {reason}; expected a private key in PEM, which begins with \
         -----BEGIN PRIVATE KEY-----, and is not encrypted"
    )]
    NoKey {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A certificate cannot be that of an authority.
    #[error("{path}: a certificate cannot be trusted: {source}")]
    Root {
        /// Of the file.
        path: PathBuf,
        /// Why.
        source: rustls::Error,
    },
    /// The key belongs to another certificate.
    #[error("the private key is not that of the certificate; give the two that belong together")]
    OtherKey,
    /// A file has no secret.
    #[error(
        "{0}: expected 64 hexadecimal digits; restore the file, or remove it to have another secret \
         made, which resets no older connection"
    )]
    NoSecret(PathBuf),
    /// A folder has one of certificate and key.
    #[error(
        "there is {there}, but no {missing}; restore it, or remove both to have others made, with \
         another pin"
    )]
    Half {
        /// What is there.
        there: PathBuf,
        /// What is not.
        missing: PathBuf,
    },
}
