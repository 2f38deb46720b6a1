//! Whether the host's interfaces, addresses or routes changed, as the kernel tells on Linux.
//!
//! What changed is not read: whoever is woken asks for all uplinks anew.

#[cfg(target_os = "linux")]
pub(crate) use kernel::Changes;
#[cfg(not(target_os = "linux"))]
pub(crate) use nobody::Changes;

#[cfg(target_os = "linux")]
mod kernel {
    use std::io;
    use std::os::fd::OwnedFd;
    use std::task::{Context, Poll};

    use rustix::net::netlink::SocketAddrNetlink;
    use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};
    use tokio::io::unix::AsyncFd;

    /// Groups of <https://man7.org/linux/man-pages/man7/rtnetlink.7.html>, from linux/rtnetlink.h.
    const LINK: u32 = 0x1;
    const IPV4_ADDRESS: u32 = 0x10;
    const IPV4_ROUTE: u32 = 0x40;
    const IPV6_ADDRESS: u32 = 0x100;
    const IPV6_ROUTE: u32 = 0x400;

    /// Messages that are taken at a time, at most: others wait for the next turn.
    const AT_ONCE: usize = 64;

    /// A socket on which the kernel tells of changes. Any user may have one.
    pub(crate) struct Changes {
        fd: AsyncFd<OwnedFd>,
        /// It tells nothing any more.
        failed: bool,
    }

    impl Changes {
        /// To be called within a runtime.
        #[expect(
            deprecated,
            reason = "its successor is unsafe; an OwnedFd keeps its descriptor, as that demands"
        )]
        pub(crate) fn new() -> io::Result<Self> {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let fd = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
            let groups = LINK | IPV4_ADDRESS | IPV4_ROUTE | IPV6_ADDRESS | IPV6_ROUTE;
            bind(&fd, &SocketAddrNetlink::new(0, groups))?;
            Ok(Changes { fd: AsyncFd::new(fd)?, failed: false })
        }

        /// Ready once for all that was told since.
        pub(crate) fn poll_changed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
            let mut any = false;
            for _ in 0..AT_ONCE {
                if self.failed {
                    break;
                }
                let Poll::Ready(Ok(mut guard)) = self.fd.poll_read_ready(cx) else { break };
                // The rest of a longer message is dropped.
                let read = guard.try_io(|fd| {
                    let mut message = [0; 64];
                    Ok(recv(fd.get_ref(), &mut message[..], RecvFlags::empty())?)
                });
                let Ok(read) = read else { continue };
                // Lost messages tell of a change, too; a socket that fails otherwise would wake its reader
                // for ever.
                self.failed = read.is_err_and(|error| !is_overrun(&error));
                any = true;
            }
            if any { Poll::Ready(()) } else { Poll::Pending }
        }
    }

    fn is_overrun(error: &io::Error) -> bool {
        error.raw_os_error() == Some(rustix::io::Errno::NOBUFS.raw_os_error())
    }

    #[cfg(test)]
    mod tests {
        use std::future::poll_fn;
        use std::time::Duration;

        use super::*;

        #[tokio::test]
        async fn nothing_is_told_where_nothing_changes() {
            let mut changes = Changes::new().unwrap();
            // Another test may make or remove interfaces, but not all the time.
            let mut quiet = false;
            for _ in 0..50 {
                let told = poll_fn(|cx| changes.poll_changed(cx));
                quiet |= tokio::time::timeout(Duration::from_millis(20), told).await.is_err();
            }
            assert!(quiet);
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod nobody {
    use std::io;
    use std::task::{Context, Poll};

    /// Nobody tells: the host is asked now and then.
    pub(crate) struct Changes;

    impl Changes {
        pub(crate) fn new() -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(crate) fn poll_changed(&mut self, _cx: &mut Context<'_>) -> Poll<()> {
            Poll::Pending
        }
    }
}
