//! TUN devices.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use tun_rs::{DeviceBuilder, SyncDevice};

use super::Device;

/// A TUN device of the namespace in which it was made. It is gone when this is dropped.
pub(crate) struct Tun(SyncDevice);

/// Whether this process may open TUN devices.
///
/// # Errors
/// The reason why not.
pub(crate) fn may_open() -> io::Result<()> {
    OpenOptions::new().read(true).write(true).open("/dev/net/tun").map(drop)
}

impl Tun {
    /// A device called `name` in the namespace of the calling thread, down and without addresses. Packets on it have no
    /// header of an offload: they are cut to its MTU, and their checksums are there.
    ///
    /// # Errors
    /// If there may be none, or the name is taken.
    pub(crate) fn open(name: &str, mtu: u16) -> io::Result<Tun> {
        // The library would make the file if there is none.
        may_open()?;
        let device = DeviceBuilder::new()
            .name(name)
            .mtu(mtu)
            .offload(false)
            .packet_information(false)
            .enable(false)
            .build_sync()?;
        device.set_nonblocking(true)?;
        Ok(Tun(device))
    }
}

impl Device for Tun {
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.recv(buffer)
    }

    fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        self.0.send(packet).map(drop)
    }
}
