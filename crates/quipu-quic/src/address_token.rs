//! Tokens by which clients prove their addresses: what they say, and how they are sealed.
//! <https://www.rfc-editor.org/rfc/rfc9000#section-8.1>

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use quipu_base::{Duration, Instant};

use crate::random::{NoRandomness, Randomness};
use crate::tls::{TOKEN_NONCE_LENGTH, TokenKey};
use crate::wire::{ConnectionId, EndedEarly, Reader, Version};

/// Seals tokens for later connections: what a connection needs of its server.
pub(crate) struct TokenIssuer {
    pub(crate) key: Arc<dyn TokenKey>,
    /// Unix time at the start of the run.
    pub(crate) unix_time: Duration,
    /// Tokens that a client gets.
    pub(crate) per_connection: u8,
}

impl TokenIssuer {
    /// A token for a later connection of the client at that address, in that version.
    pub(crate) fn issue(
        &self,
        now: Instant,
        version: Version,
        address: IpAddr,
        random: &mut dyn Randomness,
    ) -> Result<Vec<u8>, NoRandomness> {
        let made_at = self.unix_time + (now - Instant::ZERO);
        seal(&*self.key, &Claim::Connection { made_at, version, address }, random)
    }
}

/// What a token says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// The client was at this address and got the token with a connection.
    // https://www.rfc-editor.org/rfc/rfc9000#section-8.1.4
    //# Tokens sent in NEW_TOKEN frames MUST include information that allows the server to verify
    //# that the client IP address has not changed from when the token was issued.
    Connection { made_at: Duration, version: Version, address: IpAddr },
    /// The client was at this address and got the token with a Retry packet.
    // https://www.rfc-editor.org/rfc/rfc9000#section-8.1.4
    //# Tokens sent in Retry packets SHOULD include information that allows the server to verify
    //# that the source IP address and port in client packets remain constant.
    Retry {
        made_at: Duration,
        version: Version,
        address: SocketAddr,
        /// Destination of its first packet.
        original_dcid: ConnectionId,
        /// Source of the Retry packet.
        retry_source: ConnectionId,
    },
}

impl Claim {
    pub(crate) fn write(&self) -> Vec<u8> {
        // https://www.rfc-editor.org/rfc/rfc9000#section-8.1.1
        //# A token sent in a NEW_TOKEN frame or a Retry packet MUST be constructed in a way that
        //# allows the server to identify how it was provided to a client.
        let mut token = Vec::with_capacity(1 + 8 + 4 + 17 + 2 + 2 * 21 + TOKEN_NONCE_LENGTH + 16);
        let (kind, made_at, version, ip) = match self {
            Claim::Connection { made_at, version, address } => (0, made_at, version, *address),
            Claim::Retry { made_at, version, address, .. } => (1, made_at, version, address.ip()),
        };
        token.push(kind);
        token.extend_from_slice(&made_at.as_nanos().to_be_bytes());
        token.extend_from_slice(&version.0.to_be_bytes());
        match ip {
            IpAddr::V4(ip) => {
                token.push(4);
                token.extend_from_slice(&ip.octets());
            }
            IpAddr::V6(ip) => {
                token.push(6);
                token.extend_from_slice(&ip.octets());
            }
        }
        if let Claim::Retry { address, original_dcid, retry_source, .. } = self {
            token.extend_from_slice(&address.port().to_be_bytes());
            for cid in [original_dcid, retry_source] {
                // At most 20.
                token.push(cid.length() as u8);
                token.extend_from_slice(cid.as_bytes());
            }
        }
        token
    }

    /// Reads what [`Claim::write`] wrote; anything else is none of our tokens.
    pub(crate) fn read(token: &[u8]) -> Result<Self, EndedEarly> {
        let mut reader = Reader::new(token);
        let kind = reader.u8()?;
        let made_at = Duration::from_nanos(u64::from_be_bytes(reader.array()?));
        let version = Version(reader.u32()?);
        let ip: IpAddr = match reader.u8()? {
            4 => Ipv4Addr::from(reader.array::<4>()?).into(),
            _ => Ipv6Addr::from(reader.array::<16>()?).into(),
        };
        if kind == 0 {
            return Ok(Claim::Connection { made_at, version, address: ip });
        }
        let port = u16::from_be_bytes(reader.array()?);
        let mut cid = || {
            let length = usize::from(reader.u8()?);
            ConnectionId::new(reader.bytes(length)?).ok_or(EndedEarly)
        };
        let (original_dcid, retry_source) = (cid()?, cid()?);
        let address = SocketAddr::new(ip, port);
        Ok(Claim::Retry { made_at, version, address, original_dcid, retry_source })
    }
}

/// A token: its nonce, then what is sealed.
pub(crate) fn seal(
    key: &dyn TokenKey,
    claim: &Claim,
    random: &mut dyn Randomness,
) -> Result<Vec<u8>, NoRandomness> {
    // https://www.rfc-editor.org/rfc/rfc9000#section-8.1.3
    //# A server MUST ensure that every NEW_TOKEN frame it sends is unique across all clients, with
    //# the exception of those sent to repair losses of previously sent NEW_TOKEN frames.
    let nonce = random.draw::<TOKEN_NONCE_LENGTH>()?;
    // https://www.rfc-editor.org/rfc/rfc9000#section-8.1.4
    //# An address validation token MUST be difficult to guess.
    // https://www.rfc-editor.org/rfc/rfc9000#section-8.1.4
    //# For this design to work, the token MUST be covered by integrity protection against
    //# modification or falsification by clients.
    // https://www.rfc-editor.org/rfc/rfc9000#section-8.1.3
    //# A token issued with NEW_TOKEN MUST NOT include information that would allow values to be
    //# linked by an observer to the connection on which it was issued.
    let mut sealed = claim.write();
    key.seal(&nonce, &mut sealed).map_err(|_| NoRandomness)?;
    let mut token = nonce.to_vec();
    token.append(&mut sealed);
    Ok(token)
}

/// What a token says that `key` sealed, and its nonce.
pub(crate) fn open(key: &dyn TokenKey, token: &[u8]) -> Option<([u8; TOKEN_NONCE_LENGTH], Claim)> {
    let (nonce, sealed) = token.split_first_chunk::<TOKEN_NONCE_LENGTH>()?;
    let mut sealed = sealed.to_vec();
    let claim = Claim::read(key.open(nonce, &mut sealed).ok()?).ok()?;
    Some((*nonce, claim))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_read_back() {
        for ip in ["192.0.2.1", "2001:db8::1"] {
            let made_at = Duration::from_nanos(0x0102_0304_0506_0708);
            let ip: IpAddr = ip.parse().unwrap();
            let cid = |bytes: &[u8]| ConnectionId::new(bytes).unwrap();
            for claim in [
                Claim::Connection { made_at, version: Version::V2, address: ip },
                Claim::Retry {
                    made_at,
                    version: Version::V1,
                    address: SocketAddr::new(ip, 65_535),
                    original_dcid: cid(&[3; 20]),
                    retry_source: cid(&[4; 8]),
                },
            ] {
                let written = claim.write();
                assert_eq!(Claim::read(&written), Ok(claim));
                for length in 0..written.len() {
                    assert!(Claim::read(&written[..length]).is_err());
                }
            }
        }
    }
}
