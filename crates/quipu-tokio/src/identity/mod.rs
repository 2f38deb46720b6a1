//! How servers are known, and what of it outlives a restart.
//!
//! - [`ServerIdentity`]: certificate, key and secret of a server, made, read or kept in a folder;
//! - [`Pin`]: the hash by which a client knows a certificate that no authority signed;
//! - [`pinned`], [`trusting`] and [`trusting_host`]: the TLS of a client that knows a server by its pin, or by the
//!   certificate of an authority; with [`trusting_anyone`] it does not know it; [`pinned_config`] is for TCP;
//! - [`server_config`]: the TLS of a server whose certificate may change while it runs.

mod client;
mod error;
mod files;
mod hex;
mod key_log;
mod pin;
mod server;

pub use quipu_quic::tls::rustls::RustlsClient;

pub use client::{pinned, pinned_config, trusting, trusting_anyone, trusting_host};
pub use error::IdentityError;
pub use pin::{Pin, PinError};
pub use server::{Secret, ServerIdentity, self_signed, server_config};
