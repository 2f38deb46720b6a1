//! What it costs to send and to receive a batch over loopback.

use std::fmt;
use std::io::{self, IoSliceMut};
use std::net::UdpSocket;
use std::time::Instant;

use quinn_udp::{RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use socket2::SockRef;

/// UDP payload, as the simulator's packets have it.
const PAYLOAD: usize = 1_350;
/// Datagrams of batches; 48 of them are 64,800 B.
const BATCHES: [usize; 8] = [1, 2, 4, 8, 16, 24, 32, 48];
/// Batches of each size.
const ROUNDS: usize = 2_000;
/// As the runtime receives: so many buffers of so many bytes in a call.
const BUFFERS: usize = 8;
const BUFFER: usize = 1 << 16;
/// What the runtime asks the kernel to keep.
const KERNEL_BUFFER: usize = 4 << 20;

/// Nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    /// For a batch, whatever is in it.
    pub(super) batch: f64,
    /// For each datagram of it.
    pub(super) each: f64,
}

#[derive(Clone, Debug)]
pub(super) struct Sockets {
    pub(super) medians: Vec<(usize, f64, f64)>,
    pub(super) send: Line,
    pub(super) receive: Line,
    /// Datagrams that the kernel segments, at most.
    pub(super) send_batch: usize,
    /// Datagrams that one call brought, at most.
    pub(super) receive_batch: usize,
    /// Bytes that a socket holds, as the kernel counts them.
    pub(super) buffer: usize,
}

impl fmt::Display for Sockets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (datagrams, send, receive) in &self.medians {
            writeln!(
                f,
                "{datagrams:>3} datagrams sent in {send:.0} ns, received in {receive:.0} ns"
            )?;
        }
        writeln!(
            f,
            "sockets      send {:.0} + {:.0} ns each, up to {}; receive {:.0} + {:.0} ns each, up to {}",
            self.send.batch,
            self.send.each,
            self.send_batch,
            self.receive.batch,
            self.receive.each,
            self.receive_batch,
        )
    }
}

struct End {
    socket: UdpSocket,
    state: UdpSocketState,
}

impl End {
    fn new() -> io::Result<End> {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        let plain = SockRef::from(&socket);
        plain.set_send_buffer_size(KERNEL_BUFFER)?;
        plain.set_recv_buffer_size(KERNEL_BUFFER)?;
        plain.set_nonblocking(true)?;
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        Ok(End { socket, state })
    }

    fn send(&self, to: &End, contents: &[u8]) -> io::Result<()> {
        let transmit = Transmit {
            destination: to.socket.local_addr()?,
            ecn: None,
            contents,
            segment_size: (contents.len() > PAYLOAD).then_some(PAYLOAD),
            src_ip: None,
        };
        self.state.try_send(UdpSockRef::from(&self.socket), &transmit)
    }

    /// Datagrams of one call.
    fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut pieces = buffer.chunks_exact_mut(BUFFER);
        let mut pieces: [IoSliceMut<'_>; BUFFERS] =
            std::array::from_fn(|_| IoSliceMut::new(pieces.next().unwrap_or_default()));
        let mut metas = [RecvMeta::default(); BUFFERS];
        let count = self.state.recv(UdpSockRef::from(&self.socket), &mut pieces, &mut metas)?;
        let datagrams = |meta: &RecvMeta| meta.len.div_ceil(meta.stride.max(1));
        Ok(metas.iter().take(count).map(datagrams).sum())
    }
}

/// Sends batches of every size, and receives each before the next.
pub(super) fn measure() -> io::Result<Sockets> {
    let (sender, receiver) = (End::new()?, End::new()?);
    let most = sender.state.max_gso_segments().clamp(1, 64);
    let (contents, mut buffer) = (vec![7; PAYLOAD * 64], vec![0; BUFFERS * BUFFER]);
    let mut medians = Vec::new();
    for datagrams in BATCHES.into_iter().filter(|datagrams| *datagrams <= most) {
        let (mut sent, mut received) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            sent.push(time(|| sender.send(&receiver, &contents[..datagrams * PAYLOAD]))?.1);
            let (came, taken) = time(|| receiver.receive(&mut buffer))?;
            // Loopback is done before the call returns; where the kernel joins nothing, there is more.
            if came == datagrams {
                received.push(taken);
            }
            while receiver.receive(&mut buffer).is_ok() {}
        }
        medians.push((datagrams, median(sent), median(received)));
    }
    for _ in 0..BUFFERS {
        // Some may not fit into the kernel's buffer.
        let whole = most.min(BATCHES[BATCHES.len() - 1]);
        sender.send(&receiver, &contents[..whole * PAYLOAD])?;
    }
    let receive_batch = receiver.receive(&mut buffer)?;
    Ok(Sockets {
        send: line(medians.iter().map(|(count, send, _)| (*count as f64, *send))),
        receive: line(medians.iter().map(|(count, _, receive)| (*count as f64, *receive))),
        medians,
        send_batch: most,
        receive_batch,
        buffer: SockRef::from(&sender.socket).send_buffer_size()?,
    })
}

/// What `action` gives, and the nanoseconds that it took.
#[expect(clippy::disallowed_methods, reason = "it measures the host's time")]
fn time<R>(action: impl FnOnce() -> io::Result<R>) -> io::Result<(R, f64)> {
    let begin = Instant::now();
    let result = action()?;
    Ok((result, begin.elapsed().as_nanos() as f64))
}

/// NaN if there are none.
fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The line of least squares through points that are measured, neither of its costs negative.
fn line(points: impl Iterator<Item = (f64, f64)> + Clone) -> Line {
    let points = points.filter(|(_, time)| time.is_finite());
    let count = points.clone().count().max(1) as f64;
    let mean = |of: fn((f64, f64)) -> f64| points.clone().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let over = points.clone().map(|point| (point.0 - x) * (point.1 - y)).sum::<f64>();
    let under = points.clone().map(|point| (point.0 - x) * (point.0 - x)).sum::<f64>();
    let each = if under > 0.0 { (over / under).max(0.0) } else { y / x };
    Line { batch: (y - each * x).max(0.0), each }
}
