//! What a host's timers, sockets and processor cost.

use quipu_base::{Bytes, Duration, Rate};

/// Costs of one host, as a driver over sockets has them.
///
/// The host is one thread that does one thing after the other, as the runtime's driver does: it takes
/// what has come, gives it to the protocol, serves a deadline that is due, and sends what the protocol
/// has. What comes in the meantime waits.
///
/// - **Timers.** A deadline fires at the next multiple of `timer_tick`, and then late by a random time:
///   evenly spread from zero to `timer_late` for one half, from there to `timer_late_p99` up to the
///   99th percentile, and on at that slope. Stalls beyond that are no property of a timer.
/// - **Waking.** A datagram that comes while the host sleeps, with nothing to do or under way, is taken later by a
///   random time: see [`HostWake`](crate::HostWake). What comes meanwhile waits with it; a timer that fires meanwhile
///   has the host awake, and it takes all. A host that is busy takes what came as soon as it is done.
/// - **Receiving.** Up to `receive_batch` datagrams that have come are taken at once, for
///   `receive_batch_cost` and `receive_cost` for each. Only then are they handed over, all at that
///   instant, and answered once.
/// - **Sending.** Consecutive datagrams of one route and ECN mark that have one size, the last of them
///   possibly less, make a batch of up to `send_batch`, as `UDP_SEGMENT` takes them
///   (<https://man7.org/linux/man-pages/man7/udp.7.html>). A batch takes `send_batch_cost` and `send_cost`
///   for each datagram, after which all of it leaves at once.
/// - **The kernel's queue.** What has left waits in front of the first link while the interface, at
///   `interface_rate`, sends what was before it. See [`KernelQueue`](crate::KernelQueue).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostCosts {
    /// Timers fire at multiples of this; zero: at any nanosecond.
    pub timer_tick: Duration,
    /// Median of how late a timer fires.
    pub timer_late: Duration,
    /// 99th percentile of how late a timer fires; at least the median.
    pub timer_late_p99: Duration,
    /// Median of how long a host that sleeps takes to begin with a datagram that comes.
    pub wake: Duration,
    /// 99th percentile of the same; at least the median.
    pub wake_p99: Duration,
    /// Datagrams that leave in one batch, at most; at least 1.
    pub send_batch: u32,
    /// Time for a batch that is sent, whatever is in it.
    pub send_batch_cost: Duration,
    /// Time for each datagram that is sent, the protocol's work included.
    pub send_cost: Duration,
    /// Datagrams that are taken at once, at most; at least 1.
    pub receive_batch: u32,
    /// Time for a batch that is received, whatever is in it.
    pub receive_batch_cost: Duration,
    /// Time for each datagram that is received, the protocol's work included.
    pub receive_cost: Duration,
    /// Bytes that a socket holds before it is full, headers included; `None`: any number.
    pub socket_buffer: Option<Bytes>,
    /// How fast a socket's datagrams leave; `None`: at once.
    pub interface_rate: Option<Rate>,
    /// Bytes of headers that each datagram has in the kernel's queue.
    pub overhead: Bytes,
}

/// Costs that no host can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidCosts {
    /// A batch holds nothing.
    #[error("{field} is 0; expected 1 or more")]
    EmptyBatch {
        /// The field.
        field: &'static str,
    },
    /// The 99th percentile is below the median.
    #[error("{field}_p99 is {p99}; expected at least {field}, {median}")]
    Percentiles {
        /// The field of the median.
        field: &'static str,
        /// The median.
        median: Duration,
        /// The 99th percentile.
        p99: Duration,
    },
    /// The interface sends nothing.
    #[error("interface_rate is 0 bit/s; expected more, or none")]
    NoRate,
    /// The socket takes nothing.
    #[error("socket_buffer is 0 B; expected more, or none")]
    NoBuffer,
}

impl HostCosts {
    /// A host that costs nothing: timers are exact, and all is sent and received at once.
    pub const IDEAL: HostCosts = HostCosts {
        timer_tick: Duration::ZERO,
        timer_late: Duration::ZERO,
        timer_late_p99: Duration::ZERO,
        wake: Duration::ZERO,
        wake_p99: Duration::ZERO,
        send_batch: 1,
        send_batch_cost: Duration::ZERO,
        send_cost: Duration::ZERO,
        receive_batch: 1,
        receive_batch_cost: Duration::ZERO,
        receive_cost: Duration::ZERO,
        socket_buffer: None,
        interface_rate: None,
        overhead: Bytes(28),
    };

    /// A host as measured over loopback on 26 November 2026: a virtual machine with 2 processors (Intel Xeon),
    /// Linux 6.18.44, at a load of 2.5 from other work. It is what
    /// `cargo run --release -p quipu-tokio --example host_costs` printed in that of eleven runs which took the
    /// least processor time for each datagram, 2,132 ns; the others took up to 3,613 ns, and the 99th
    /// percentile of their timers was between 52 µs and 1.4 ms.
    ///
    /// The time of a datagram is mostly that of the protocol, with rustls and 1,350 to 1,450 B of payload; over
    /// loopback the kernel copies a batch as a whole. The socket's buffer is what the kernel granted of 4 MiB,
    /// counted as it counts. Loopback has no queue before the link.
    pub const MEASURED: HostCosts = HostCosts {
        timer_tick: Duration::ZERO,
        timer_late: Duration::from_nanos(28_962),
        timer_late_p99: Duration::from_nanos(51_386),
        wake: Duration::ZERO,
        wake_p99: Duration::ZERO,
        send_batch: 64,
        send_batch_cost: Duration::from_nanos(2_251),
        send_cost: Duration::from_nanos(1_007),
        receive_batch: 384,
        receive_batch_cost: Duration::from_nanos(1_175),
        receive_cost: Duration::from_nanos(1_029),
        socket_buffer: Some(Bytes(8_388_608)),
        interface_rate: None,
        overhead: Bytes(28),
    };

    /// True if chance decides when timers fire or hosts wake.
    pub fn is_random(&self) -> bool {
        !(self.timer_late_p99.is_zero() && self.wake_p99.is_zero())
    }

    /// True if nothing is as at an ideal host, whatever the headers.
    pub fn is_ideal(&self) -> bool {
        *self == HostCosts { overhead: self.overhead, ..HostCosts::IDEAL }
    }

    /// Time that the host takes to receive `datagrams` in one batch.
    pub fn receiving(&self, datagrams: usize) -> Duration {
        self.receive_batch_cost + self.receive_cost.saturating_mul(datagrams as u64)
    }

    /// Time that the host takes to send `datagrams` in one batch.
    pub fn sending(&self, datagrams: usize) -> Duration {
        self.send_batch_cost + self.send_cost.saturating_mul(datagrams as u64)
    }

    /// Checks that a host can have these costs.
    ///
    /// # Errors
    /// The first value that is none.
    pub fn validate(&self) -> Result<(), InvalidCosts> {
        for (field, batch) in
            [("send_batch", self.send_batch), ("receive_batch", self.receive_batch)]
        {
            if batch == 0 {
                return Err(InvalidCosts::EmptyBatch { field });
            }
        }
        for (field, median, p99) in [
            ("timer_late", self.timer_late, self.timer_late_p99),
            ("wake", self.wake, self.wake_p99),
        ] {
            if p99 < median {
                return Err(InvalidCosts::Percentiles { field, median, p99 });
            }
        }
        if self.interface_rate.is_some_and(|rate| rate.bits_per_sec() == 0) {
            return Err(InvalidCosts::NoRate);
        }
        if self.socket_buffer.is_some_and(Bytes::is_zero) {
            return Err(InvalidCosts::NoBuffer);
        }
        Ok(())
    }
}

impl Default for HostCosts {
    fn default() -> Self {
        HostCosts::IDEAL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_that_no_host_has_are_refused_by_field() {
        let refused = |costs: HostCosts| costs.validate().unwrap_err().to_string();
        assert_eq!(HostCosts::IDEAL.validate(), Ok(()));
        assert_eq!(HostCosts::MEASURED.validate(), Ok(()));
        assert_eq!(
            refused(HostCosts { send_batch: 0, ..HostCosts::IDEAL }),
            "send_batch is 0; expected 1 or more"
        );
        let late = HostCosts { timer_late: Duration::from_micros(2), ..HostCosts::IDEAL };
        assert!(refused(late).contains("expected at least timer_late"), "{}", refused(late));
        let wake = HostCosts { wake: Duration::from_micros(2), ..HostCosts::IDEAL };
        assert!(refused(wake).starts_with("wake_p99 is "), "{}", refused(wake));
        let rate = Some(Rate::from_bits_per_sec(0));
        assert!(refused(HostCosts { interface_rate: rate, ..HostCosts::IDEAL }).contains("rate"));
        let buffer = Some(Bytes::ZERO);
        assert!(
            refused(HostCosts { socket_buffer: buffer, ..HostCosts::IDEAL }).contains("buffer")
        );
    }

    #[test]
    fn only_what_differs_from_nothing_is_not_ideal() {
        assert!(HostCosts { overhead: Bytes(48), ..HostCosts::IDEAL }.is_ideal());
        assert!(!HostCosts { send_batch: 2, ..HostCosts::IDEAL }.is_ideal());
        assert!(!HostCosts { socket_buffer: Some(Bytes(1)), ..HostCosts::IDEAL }.is_ideal());
    }
}
