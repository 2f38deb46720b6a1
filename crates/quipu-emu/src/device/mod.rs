//! The emulator's ends of the hosts' interfaces: IP packets out of a host, and into it.

mod statistics;
mod tun;
mod veth;

use std::io;
use std::os::fd::BorrowedFd;

use serde::{Deserialize, Serialize};

pub(crate) use statistics::Statistics;
pub(crate) use tun::{Tun, may_open};
pub(crate) use veth::Veth;

/// What interfaces of hosts are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceKind {
    /// TUN devices: the kernel hands IP packets to the emulator. It takes rights to open `/dev/net/tun`.
    Tun,
    /// Pairs of virtual Ethernet devices, of which the emulator reads and writes one end with a packet socket.
    Veth,
}

/// The emulator's end of an interface. Neither call ever waits.
pub(crate) trait Device: Send {
    /// Readable when a packet is there.
    fn descriptor(&self) -> BorrowedFd<'_>;

    /// The next packet that the host sends, at the beginning of `buffer`; what does not fit is cut off.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if there is none, and as reading fails.
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize>;

    /// Hands a packet to the host.
    ///
    /// # Errors
    /// If the host did not take it.
    fn send(&mut self, packet: &[u8]) -> io::Result<()>;
}

impl DeviceKind {
    /// The name in files: `tun` or `veth`.
    pub const fn name(self) -> &'static str {
        match self {
            DeviceKind::Tun => "tun",
            DeviceKind::Veth => "veth",
        }
    }
}
