//! Keys from the secrets of TLS with the labels of a version, for a client whose server goes on in
//! another version than that of the first flight.
//!
//! `rustls` derives keys with the labels of the version with which a connection was made. It hands
//! secrets out as lines of a key log ([`SecretLog`]), and derives keys from a connection ID with
//! the labels of any version ([`quic::Suite::keys`]). [`with_labels`] gives it such secrets where
//! it would make Initial secrets: no line of cryptography is ours.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use ::rustls as tls;
use tls::Tls13CipherSuite;
use tls::crypto::hmac::Tag;
use tls::crypto::tls13::{Hkdf, HkdfExpander, OkmBlock, OutputLengthError};
use tls::quic;

/// The secrets of both ends of one encryption level.
#[derive(Clone)]
pub(super) struct LevelSecrets {
    pub(super) client: OkmBlock,
    pub(super) server: OkmBlock,
}

/// Keys from `secrets`, at the end of `side`, with the labels of `version`; `None` if the suite
/// knows no QUIC.
/// <https://www.rfc-editor.org/rfc/rfc9369#section-3.3.2>
pub(super) fn with_labels(
    suite: &'static Tls13CipherSuite,
    secrets: &LevelSecrets,
    side: tls::Side,
    version: quic::Version,
) -> Option<quic::Keys> {
    let suite = quic::Suite { suite: taking_secrets(suite), quic: suite.quic? };
    let both = [secrets.client.as_ref(), secrets.server.as_ref()].concat();
    Some(suite.keys(&both, side, version))
}

/// The secrets of the next key phase.
/// <https://www.rfc-editor.org/rfc/rfc9001#section-6.1>
pub(super) fn next_phase(
    suite: &Tls13CipherSuite,
    secrets: &LevelSecrets,
    label: &[u8],
) -> LevelSecrets {
    let next = |secret: &OkmBlock| {
        let expander = suite.hkdf_provider.expander_for_okm(secret);
        let length = (expander.hash_len() as u16).to_be_bytes();
        // HkdfLabel: https://www.rfc-editor.org/rfc/rfc8446#section-7.1
        const PREFIX: &[u8] = b"tls13 ";
        let label_length = [(PREFIX.len() + label.len()) as u8];
        expander.expand_block(&[&length, &label_length, PREFIX, label, &[0]])
    };
    LevelSecrets { client: next(&secrets.client), server: next(&secrets.server) }
}

/// The same suite, whose extraction takes the secrets of client and server, one after the other,
/// for Initial secrets. `rustls` wants it to live for ever, so there is one for each suite.
fn taking_secrets(suite: &'static Tls13CipherSuite) -> &'static Tls13CipherSuite {
    type Pair = (&'static Tls13CipherSuite, &'static Tls13CipherSuite);
    static SUITES: Mutex<Vec<Pair>> = Mutex::new(Vec::new());
    let mut suites = SUITES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, taking)) = suites.iter().find(|(known, _)| std::ptr::eq(*known, suite)) {
        return taking;
    }
    let taking: &'static Tls13CipherSuite = Box::leak(Box::new(Tls13CipherSuite {
        common: tls::crypto::CipherSuiteCommon {
            suite: suite.common.suite,
            hash_provider: suite.common.hash_provider,
            confidentiality_limit: suite.common.confidentiality_limit,
        },
        hkdf_provider: Box::leak(Box::new(TakesSecrets(suite.hkdf_provider))),
        aead_alg: suite.aead_alg,
        quic: suite.quic,
    }));
    suites.push((suite, taking));
    taking
}

/// Derives as another does, but takes what it should extract secrets from for the secrets.
struct TakesSecrets(&'static dyn Hkdf);

impl Hkdf for TakesSecrets {
    fn extract_from_zero_ikm(&self, salt: Option<&[u8]>) -> Box<dyn HkdfExpander> {
        self.0.extract_from_zero_ikm(salt)
    }

    fn extract_from_secret(&self, _: Option<&[u8]>, both: &[u8]) -> Box<dyn HkdfExpander> {
        let (client, server) = both.split_at(both.len() / 2);
        Box::new(GivesSecrets(LevelSecrets {
            client: OkmBlock::new(client),
            server: OkmBlock::new(server),
        }))
    }

    fn expander_for_okm(&self, okm: &OkmBlock) -> Box<dyn HkdfExpander> {
        self.0.expander_for_okm(okm)
    }

    fn hmac_sign(&self, key: &OkmBlock, message: &[u8]) -> Tag {
        self.0.hmac_sign(key, message)
    }
}

/// Expands to the secret of the client or of the server, as the label asks.
struct GivesSecrets(LevelSecrets);

impl HkdfExpander for GivesSecrets {
    fn expand_slice(&self, info: &[&[u8]], output: &mut [u8]) -> Result<(), OutputLengthError> {
        let block = self.expand_block(info);
        match block.as_ref().get(..output.len()) {
            Some(bytes) => {
                output.copy_from_slice(bytes);
                Ok(())
            }
            None => Err(OutputLengthError),
        }
    }

    fn expand_block(&self, info: &[&[u8]]) -> OkmBlock {
        if info.contains(&&b"client in"[..]) {
            self.0.client.clone()
        } else {
            self.0.server.clone()
        }
    }

    fn hash_len(&self) -> usize {
        self.0.client.as_ref().len()
    }
}

/// Keeps the secrets of a handshake until they are taken; what else logs keys goes on to.
pub(super) struct SecretLog {
    wrapped: Arc<dyn tls::KeyLog>,
    secrets: Mutex<LoggedSecrets>,
}

/// Secrets of one handshake as far as they were logged.
#[derive(Default)]
struct LoggedSecrets {
    handshake: [Option<OkmBlock>; 2],
    one_rtt: [Option<OkmBlock>; 2],
}

/// A level whose secrets are taken from a [`SecretLog`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoggedLevel {
    Handshake,
    OneRtt,
}

impl SecretLog {
    /// A log of one handshake, whose lines `wrapped` gets too.
    pub(super) fn new(wrapped: Arc<dyn tls::KeyLog>) -> Self {
        SecretLog { wrapped, secrets: Mutex::default() }
    }

    /// Takes the secrets of a level out, if both ends' were logged.
    pub(super) fn take(&self, level: LoggedLevel) -> Option<LevelSecrets> {
        let mut secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        let pair = match level {
            LoggedLevel::Handshake => std::mem::take(&mut secrets.handshake),
            LoggedLevel::OneRtt => std::mem::take(&mut secrets.one_rtt),
        };
        let [client, server] = pair;
        Some(LevelSecrets { client: client?, server: server? })
    }

    fn place(label: &str) -> Option<(LoggedLevel, usize)> {
        match label {
            "CLIENT_HANDSHAKE_TRAFFIC_SECRET" => Some((LoggedLevel::Handshake, 0)),
            "SERVER_HANDSHAKE_TRAFFIC_SECRET" => Some((LoggedLevel::Handshake, 1)),
            "CLIENT_TRAFFIC_SECRET_0" => Some((LoggedLevel::OneRtt, 0)),
            "SERVER_TRAFFIC_SECRET_0" => Some((LoggedLevel::OneRtt, 1)),
            _ => None,
        }
    }
}

impl tls::KeyLog for SecretLog {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        if self.wrapped.will_log(label) {
            self.wrapped.log(label, client_random, secret);
        }
        let Some((level, end)) = Self::place(label) else { return };
        if secret.len() > OkmBlock::MAX_LEN {
            return;
        }
        let mut secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        let pair = match level {
            LoggedLevel::Handshake => &mut secrets.handshake,
            LoggedLevel::OneRtt => &mut secrets.one_rtt,
        };
        pair[end] = Some(OkmBlock::new(secret));
    }

    fn will_log(&self, label: &str) -> bool {
        Self::place(label).is_some() || self.wrapped.will_log(label)
    }
}

impl fmt::Debug for SecretLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretLog").finish_non_exhaustive()
    }
}
