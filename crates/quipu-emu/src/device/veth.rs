//! Virtual Ethernet devices, read and written with packet sockets.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockProtocol, SockType, bind, setsockopt, socket, sockopt,
};

use super::Device;
use crate::packet;

/// Bytes of an Ethernet header.
const HEADER: usize = 14;
/// Bursts of a host wait here, while they are read. The kernel may give less.
const BUFFER: usize = 16 << 20;

/// The emulator's end of a pair of virtual Ethernet devices.
pub(crate) struct Veth(File);

impl Veth {
    /// Address of the hosts' ends. All have the same: nobody resolves it, as interfaces do without.
    pub(crate) const HOST: [u8; 6] = [2, 0, 0, 0, 0, 1];
    /// Address of the emulator's ends.
    pub(crate) const OURS: [u8; 6] = [2, 0, 0, 0, 0, 2];

    /// Opens the device called `name` in the namespace of the calling thread.
    ///
    /// # Errors
    /// If there is none, or the system refuses packet sockets.
    pub(crate) fn open(name: &str) -> io::Result<Veth> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let all = SockProtocol::EthAll;
        let socket = socket(AddressFamily::Packet, SockType::Raw, flags, all)?;
        let missing = || io::Error::new(io::ErrorKind::NotFound, format!("no interface {name}"));
        let address = getifaddrs()?
            .filter(|found| found.interface_name == name)
            .find_map(|found| found.address?.as_link_addr().copied())
            .ok_or_else(missing)?;
        // Its protocol is zero, at which that of the socket stays as it is.
        bind(std::os::fd::AsRawFd::as_raw_fd(&socket), &address)?;
        if setsockopt(&socket, sockopt::RcvBufForce, &BUFFER).is_err() {
            setsockopt(&socket, sockopt::RcvBuf, &BUFFER)?;
        }
        if setsockopt(&socket, sockopt::SndBufForce, &BUFFER).is_err() {
            setsockopt(&socket, sockopt::SndBuf, &BUFFER)?;
        }
        Ok(Veth(File::from(socket)))
    }
}

impl Device for Veth {
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut header = [0; HEADER];
        let mut parts = [IoSliceMut::new(&mut header), IoSliceMut::new(buffer)];
        let length = self.0.read_vectored(&mut parts)?.saturating_sub(HEADER);
        if let Some(packet) = buffer.get_mut(..length) {
            packet::fill_checksum(packet);
        }
        Ok(length)
    }

    fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        let kind: [u8; 2] = match packet.first().map(|byte| byte >> 4) {
            Some(6) => [0x86, 0xdd],
            _ => [0x08, 0x00],
        };
        let mut header = [0; HEADER];
        header[..6].copy_from_slice(&Veth::HOST);
        header[6..12].copy_from_slice(&Veth::OURS);
        header[12..].copy_from_slice(&kind);
        self.0.write_vectored(&[IoSlice::new(&header), IoSlice::new(packet)]).map(drop)
    }
}
