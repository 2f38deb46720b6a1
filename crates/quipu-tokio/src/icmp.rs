//! What the network says of datagrams that did not arrive (ICMP): heard on Linux, by clients, while a
//! handshake goes on.
//!
//! Nobody signs such a message. One that quotes our datagram with its connection ID, which is random, was
//! written by somebody who saw it, and only that says at once that nobody listens. All others are hints: they let
//! the next uplink be tried, and tell why a handshake timed out. What is said of a server that has answered, and of
//! connections that exist, is not heard.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};

use quipu_quic::wire::ConnectionId;

/// Bytes of a long header up to the end of its destination connection ID, at most.
/// <https://www.rfc-editor.org/rfc/rfc8999#section-5.1>
const HEADER: usize = 6 + ConnectionId::MAX_LENGTH;

/// Why a datagram did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    Network,
    Host,
    Port,
    Prohibited,
}

impl Reason {
    /// Of a message's type and code, if it says that a destination is unreachable.
    /// <https://www.rfc-editor.org/rfc/rfc792>, <https://www.rfc-editor.org/rfc/rfc1812#section-5.2.7.1>
    pub(crate) fn of_v4(kind: u8, code: u8) -> Option<Self> {
        match (kind, code) {
            (3, 0 | 6 | 11) => Some(Reason::Network),
            (3, 1 | 7 | 8 | 12) => Some(Reason::Host),
            (3, 3) => Some(Reason::Port),
            (3, 9 | 10 | 13) => Some(Reason::Prohibited),
            _ => None,
        }
    }

    /// The same of ICMPv6. <https://www.rfc-editor.org/rfc/rfc4443#section-3.1>
    pub(crate) fn of_v6(kind: u8, code: u8) -> Option<Self> {
        match (kind, code) {
            (1, 0 | 2) => Some(Reason::Network),
            (1, 3) => Some(Reason::Host),
            (1, 4) => Some(Reason::Port),
            (1, 1 | 5 | 6) => Some(Reason::Prohibited),
            _ => None,
        }
    }
}

/// What was said, and by whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hint {
    pub(crate) reason: Reason,
    pub(crate) from: Option<IpAddr>,
}

impl Hint {
    /// What an error of sending says, if it is about the way: `local` is where the datagram was to leave.
    pub(crate) fn of_host(error: &io::Error, local: IpAddr) -> Option<Self> {
        let reason = match error.kind() {
            // Linux takes an address of the loopback interface for an invalid one of other networks.
            io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::NetworkDown
            | io::ErrorKind::InvalidInput => Reason::Network,
            io::ErrorKind::HostUnreachable => Reason::Host,
            // By a filter of the host, or a route that says so.
            io::ErrorKind::PermissionDenied => Reason::Prohibited,
            _ => return None,
        };
        Some(Hint { reason, from: Some(local) })
    }
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.reason {
            Reason::Network => "network unreachable",
            Reason::Host => "host unreachable",
            Reason::Port => "port unreachable",
            Reason::Prohibited => "prohibited",
        })?;
        self.from.map_or(Ok(()), |from| write!(f, ", says {from}"))
    }
}

/// What a message means for a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nobody has the server's port.
    Refused,
    /// It may be so, and may pass.
    Hint,
}

/// A message of a datagram that did not arrive.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    /// Where the datagram was to go.
    pub(crate) remote: SocketAddr,
    pub(crate) hint: Hint,
    /// The begin of its UDP payload, as far as it is quoted.
    pub(crate) quoted: Vec<u8>,
}

impl Report {
    /// What it says of a handshake with `remote`, whose first datagrams are for `original`; `None`: it is of
    /// something else.
    pub(crate) fn verdict(&self, remote: SocketAddr, original: &ConnectionId) -> Option<Verdict> {
        let same = self.remote.ip() == remote.ip() && self.remote.port() == remote.port();
        if !same {
            return None;
        }
        let Some((length, id)) = self.quoted.get(5).zip(self.quoted.get(6..)) else {
            // Routers need not quote more than 8 bytes, which are UDP's header.
            // https://www.rfc-editor.org/rfc/rfc792
            return Some(Verdict::Hint);
        };
        let is_ours = self.quoted.first().is_some_and(|first| first & 0x80 != 0)
            && usize::from(*length) == original.length()
            && id.starts_with(original.as_bytes());
        match self.hint.reason {
            _ if !is_ours => None,
            Reason::Port => Some(Verdict::Refused),
            // These may pass: https://www.rfc-editor.org/rfc/rfc1122#section-4.2.3.9
            Reason::Network | Reason::Host | Reason::Prohibited => Some(Verdict::Hint),
        }
    }
}

#[cfg(target_os = "linux")]
pub(crate) use linux::{hear, receive};

#[cfg(target_os = "linux")]
mod linux {
    use std::io::{self, IoSliceMut};
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
    use std::os::fd::{AsFd, AsRawFd};

    use nix::libc;
    use nix::sys::socket::{
        ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt,
    };

    use super::{HEADER, Hint, Reason, Report};

    /// Bytes for what the kernel says beside a datagram: the error with the address of who reports it, and
    /// whatever else the socket asks for of each datagram.
    const CONTROL: usize = 512;

    /// The kernel is to keep such messages for a socket, or to throw them away.
    pub(crate) fn hear(socket: &impl AsFd, is_ipv4: bool, hears: bool) -> io::Result<()> {
        let set = match is_ipv4 {
            true => setsockopt(socket, sockopt::Ipv4RecvErr, &hears),
            false => setsockopt(socket, sockopt::Ipv6RecvErr, &hears),
        };
        set.map_err(io::Error::from)
    }

    /// The next message that the kernel keeps; `None` if it is of no interest here.
    pub(crate) fn receive(socket: &impl AsRawFd) -> io::Result<Option<Report>> {
        let (mut quoted, mut control) = ([0; HEADER], [0; CONTROL]);
        let mut buffers = [IoSliceMut::new(&mut quoted)];
        let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
        let message = recvmsg::<SockaddrStorage>(
            socket.as_raw_fd(),
            &mut buffers,
            Some(&mut control),
            flags,
        )?;
        let (length, remote) = (message.bytes, message.address.as_ref().and_then(address));
        let hint = message.cmsgs()?.find_map(|control| match control {
            ControlMessageOwned::Ipv4RecvErr(error, from)
                if error.ee_origin == libc::SO_EE_ORIGIN_ICMP =>
            {
                let from = from.map(|from| Ipv4Addr::from(u32::from_be(from.sin_addr.s_addr)));
                let reason = Reason::of_v4(error.ee_type, error.ee_code)?;
                Some(Hint { reason, from: from.map(IpAddr::from) })
            }
            ControlMessageOwned::Ipv6RecvErr(error, from)
                if error.ee_origin == libc::SO_EE_ORIGIN_ICMP6 =>
            {
                let from = from.map(|from| Ipv6Addr::from(from.sin6_addr.s6_addr));
                let reason = Reason::of_v6(error.ee_type, error.ee_code)?;
                Some(Hint { reason, from: from.map(IpAddr::from) })
            }
            // Of the host itself, such as of a datagram that is too large for its interface.
            _ => None,
        });
        let quoted = quoted.get(..length).unwrap_or_default().to_vec();
        Ok(remote.zip(hint).map(|(remote, hint)| Report { remote, hint, quoted }))
    }

    fn address(storage: &SockaddrStorage) -> Option<SocketAddr> {
        if let Some(v4) = storage.as_sockaddr_in() {
            return Some(SocketAddr::new(v4.ip().into(), v4.port()));
        }
        let v6 = storage.as_sockaddr_in6()?;
        Some(SocketAddr::new(v6.ip().into(), v6.port()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A report of a datagram whose header begins with that byte and has that destination.
    fn report(reason: Reason, first: u8, destination: &[u8], quoted: usize) -> Report {
        let mut header = vec![first, 0, 0, 0, 1, destination.len() as u8];
        header.extend_from_slice(destination);
        header.truncate(quoted);
        let hint = Hint { reason, from: Some("192.0.2.254".parse().unwrap()) };
        Report { remote: "192.0.2.1:4433".parse().unwrap(), hint, quoted: header }
    }

    fn verdict(report: &Report) -> Option<Verdict> {
        let original = ConnectionId::new(&[7; 8]).unwrap();
        report.verdict("192.0.2.1:4433".parse().unwrap(), &original)
    }

    #[test]
    fn only_what_quotes_the_connection_id_ends_a_handshake() {
        assert_eq!(verdict(&report(Reason::Port, 0xc0, &[7; 8], 14)), Some(Verdict::Refused));
        for (first, destination) in [(0x40, &[7; 8][..]), (0xc0, &[8; 8]), (0xc0, &[7; 9])] {
            assert_eq!(verdict(&report(Reason::Port, first, destination, 26)), None);
        }
        // The header of UDP alone, or the ID in part.
        assert_eq!(verdict(&report(Reason::Port, 0xc0, &[7; 8], 0)), Some(Verdict::Hint));
        assert_eq!(verdict(&report(Reason::Port, 0xc0, &[7; 8], 5)), Some(Verdict::Hint));
        assert_eq!(verdict(&report(Reason::Port, 0xc0, &[7; 8], 13)), None);
    }

    #[test]
    fn what_may_pass_is_a_hint() {
        for reason in [Reason::Network, Reason::Host, Reason::Prohibited] {
            assert_eq!(verdict(&report(reason, 0xc0, &[7; 8], 14)), Some(Verdict::Hint));
            assert_eq!(verdict(&report(reason, 0xc0, &[8; 8], 14)), None);
        }
    }

    #[test]
    fn another_address_or_port_is_of_something_else() {
        let report = report(Reason::Port, 0xc0, &[7; 8], 14);
        let original = ConnectionId::new(&[7; 8]).unwrap();
        for remote in ["192.0.2.1:4434", "192.0.2.2:4433", "[2001:db8::1]:4433"] {
            assert_eq!(report.verdict(remote.parse().unwrap(), &original), None);
        }
    }

    #[test]
    fn types_and_codes_of_both_families_are_told_apart() {
        assert_eq!(Reason::of_v4(3, 3), Some(Reason::Port));
        assert_eq!(Reason::of_v6(1, 4), Some(Reason::Port));
        assert_eq!(Reason::of_v4(3, 13), Some(Reason::Prohibited));
        // Fragmentation needed, packet too big, time exceeded.
        for none in [Reason::of_v4(3, 4), Reason::of_v6(2, 0), Reason::of_v4(11, 0)] {
            assert_eq!(none, None);
        }
    }
}
