//! Sizes of the handshake's messages in bytes, four bytes of message header included.
//!
//! Measured on `rustls` 0.23.46 with X25519 as the only key exchange, an Ed25519 certificate and
//! TLS13_AES_256_GCM_SHA384, its first choice; a test measures it again. CRYPTO framing is not
//! included.

use std::net::IpAddr;

/// ServerHello.
pub const SERVER_HELLO: usize = 90;
/// CertificateVerify with an Ed25519 signature.
pub const CERTIFICATE_VERIFY: usize = 72;
/// Finished of either end with SHA-384.
pub const FINISHED: usize = 52;
/// One NewSessionTicket; see [`session_ticket`].
pub const SESSION_TICKET: usize = 81;
/// NewSessionTicket messages that a server sends, in 1-RTT packets, when the handshake is over.
pub const SESSION_TICKETS: usize = 2;
/// The largest certificate chain that its message can hold with room to spare.
pub const MAX_CERTIFICATE_CHAIN: usize = (1 << 24) - 1_024;

/// ClientHello without names, protocols and transport parameters.
const CLIENT_HELLO_BASE: usize = 157;
/// EncryptedExtensions without name, protocol and transport parameters.
const ENCRYPTED_EXTENSIONS_BASE: usize = 6;
/// Certificate without the certificate.
const CERTIFICATE_BASE: usize = 13;
/// Type and length of an extension.
const EXTENSION: usize = 4;
/// Bytes by which `rustls` names a session that its server keeps.
const SESSION_NAME: usize = 32;
/// The output of SHA-384.
const HASH: usize = 48;

/// ClientHello to a server of this name, which offers `alpn` and carries `parameters` bytes of
/// transport parameters. For `localhost` and one protocol of A bytes: 186 + A + `parameters`; 190
/// from a client that also names the two other groups of `ring`, P-256 and P-384.
pub fn client_hello(server_name: &str, alpn: &[Vec<u8>], parameters: usize) -> usize {
    // An address is not sent.
    let name = if server_name.parse::<IpAddr>().is_ok() {
        0
    } else {
        // List length, name type, name length, name.
        EXTENSION + 2 + 1 + 2 + server_name.len()
    };
    let protocols: usize = alpn.iter().map(|name| 1 + name.len()).sum();
    let alpn = if alpn.is_empty() { 0 } else { EXTENSION + 2 + protocols };
    CLIENT_HELLO_BASE + name + alpn + EXTENSION + parameters
}

/// What a ClientHello takes that resumes a session, beside [`client_hello`]: `pre_shared_key` with
/// one identity of 32 bytes and its binder. `early_data`: 0-RTT is offered.
pub const fn resumption(early_data: bool) -> usize {
    let early_data = if early_data { EXTENSION } else { 0 };
    EXTENSION + 2 + (2 + SESSION_NAME + 4) + 2 + (1 + HASH) + early_data
}

/// ServerHello. `resumed`: a session is resumed.
pub const fn server_hello(resumed: bool) -> usize {
    // The number of the identity.
    SERVER_HELLO + if resumed { EXTENSION + 2 } else { 0 }
}

/// One NewSessionTicket. `early_data`: 0-RTT is allowed, up to so many bytes.
pub const fn session_ticket(early_data: bool) -> usize {
    SESSION_TICKET + if early_data { EXTENSION + 4 } else { 0 }
}

/// EncryptedExtensions with the chosen protocol and `parameters` bytes of transport parameters.
/// `named`: the client sent the server's name, which is confirmed if no session is resumed. With a
/// name and a protocol of A bytes: 21 + A + `parameters`; [`EARLY_DATA`] more if 0-RTT is accepted.
pub fn encrypted_extensions(named: bool, alpn: Option<&[u8]>, parameters: usize) -> usize {
    let name = if named { EXTENSION } else { 0 };
    let alpn = alpn.map_or(0, |name| EXTENSION + 2 + 1 + name.len());
    ENCRYPTED_EXTENSIONS_BASE + name + alpn + EXTENSION + parameters
}

/// What EncryptedExtensions take beside that if 0-RTT is accepted.
pub const EARLY_DATA: usize = EXTENSION;

/// Certificate with one certificate of `chain` bytes.
pub fn certificate(chain: usize) -> usize {
    CERTIFICATE_BASE + chain
}
