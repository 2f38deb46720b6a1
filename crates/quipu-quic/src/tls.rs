//! The seam behind which TLS lives: handshake bytes by encryption level, and keys.
//!
//! Start with [`ClientTls`] and [`ServerTls`], which start a [`Session`] for each connection. A
//! session takes and gives handshake bytes and hands out [`Keys`]; [`protection`] applies them to
//! packets. [`rustls`] is the implementation that meets the world; another one, for virtual time,
//! does the same without arithmetic.
//!
//! <https://www.rfc-editor.org/rfc/rfc9001>
//!
//! Not here: CRYPTO frames, their reassembly and their retransmission.

mod key;
mod negotiated;
mod own;
pub mod protection;
mod retry;
pub mod rustls;
mod session;

pub use ::rustls::pki_types::CertificateDer;
pub use key::{DirectionKeys, HeaderKey, Keys, OpenError, PacketKey, PacketKeyPair, SealError};
pub use negotiated::{CipherSuite, KeyExchangeGroup, Negotiated};
pub use own::{ResetKey, SECRET_LENGTH, TOKEN_NONCE_LENGTH, TokenKey};
pub use retry::retry_tag;
pub use session::{
    ClientHello, ClientStart, ClientTls, EarlyData, InitialSecrets, KeyChange, Level, ServerStart,
    ServerTls, Session, StartError, TlsError,
};
