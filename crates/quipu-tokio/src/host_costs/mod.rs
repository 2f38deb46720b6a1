//! What timers, sockets and the protocol cost on this host, for a simulator whose hosts are to cost the same.
//!
//! - `timer`: how late the runtime's timer fires.
//! - `sockets`: calls of the kernel that send and receive batches of 1 to 48 datagrams, and the line
//!   `batch cost + datagrams × cost` through their medians.
//! - `transfer`: the processor's time for each datagram of a transfer between two endpoints in one thread.
//!   What the calls do not explain is the protocol's work, and half of it is put on each end.
//! - `wake`: requests between two threads that sleep before each datagram. What datagrams do not explain is the time
//!   that a process takes to wake and to hand over to the application, and half of it is put on each end.

mod sockets;
mod timer;
mod transfer;
mod wake;

use std::fmt;
use std::io;

use self::sockets::Sockets;
use self::timer::Timer;
use self::transfer::Transfer;
use self::wake::Wake;

/// What this host costs. Its text has what was measured, a line for each part.
#[derive(Clone, Debug)]
pub struct HostCosts {
    timer: Timer,
    sockets: Sockets,
    transfer: Transfer,
    wake: Wake,
}

impl HostCosts {
    /// Measures them: about ten seconds, over loopback alone. Other work on the host is measured, too. Not to be called
    /// from within a runtime.
    ///
    /// # Errors
    /// If sockets, timers or threads cannot be had.
    pub fn measure() -> io::Result<HostCosts> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let timer = runtime.block_on(timer::measure())?;
        let sockets = sockets::measure()?;
        let transfer = runtime.block_on(transfer::measure()).map_err(io::Error::other)?;
        drop(runtime);
        let wake = wake::measure()?;
        Ok(HostCosts { timer, sockets, transfer, wake })
    }

    /// The costs as the field `host` of scenario files and the option `--host` take them, such as
    /// `timer_tick=0ns,timer_late=28962ns,…`.
    pub fn field(&self) -> String {
        let HostCosts { timer, sockets, transfer, wake } = self;
        let protocol = transfer.rest(sockets);
        let (wake, wake_p90) = wake.of_each(wake::of_datagrams(sockets, protocol));
        let cost = |kernel: f64| (kernel + protocol / 2.0).round();
        format!(
            "timer_tick={}ns,timer_late={}ns,timer_late_p99={:.0}ns,wake={:.0}ns,wake_p99={:.0}ns,\
             send_batch={},send_batch_cost={:.0}ns,send_cost={:.0}ns,\
             receive_batch={},receive_batch_cost={:.0}ns,receive_cost={:.0}ns,socket_buffer={}B",
            timer.tick,
            timer.late,
            p99(timer.late as f64, timer.p90 as f64),
            wake,
            p99(wake, wake_p90),
            sockets.send_batch,
            sockets.send.batch,
            cost(sockets.send.each),
            sockets.receive_batch,
            sockets.receive.batch,
            cost(sockets.receive.each),
            sockets.buffer,
        )
    }
}

/// The 99th percentile of what is late, with the slope from the median to the 90th percentile, as the model of hosts has
/// it. On a loaded host what is later are stalls, some a hundred times as long, which the model does not have.
fn p99(median: f64, p90: f64) -> f64 {
    median + (p90 - median).max(0.0) * 49.0 / 40.0
}

impl fmt::Display for HostCosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HostCosts { timer, sockets, transfer, wake } = self;
        let Timer { tick, late, p90 } = timer;
        writeln!(f, "timer        tick {tick} ns, late by {late} ns, 90 % by up to {p90} ns")?;
        write!(f, "{sockets}")?;
        writeln!(
            f,
            "transfer     {:.0} Mbit/s, {} datagrams in {} sends and {} receives, {:.0} ns of processor each, of \
             which {:.0} ns are not the kernel's calls",
            transfer.goodput / 1e6,
            transfer.datagrams,
            transfer.sends,
            transfer.receives,
            transfer.processor / transfer.datagrams as f64,
            transfer.rest(sockets),
        )?;
        let Wake { median, p90 } = wake;
        writeln!(
            f,
            "wake         requests between sleeping ends take {median} ns, 90 % up to {p90} ns"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was measured, of round numbers.
    fn measured(wake: Wake) -> HostCosts {
        let line = |batch, each| sockets::Line { batch, each };
        let sockets = Sockets {
            medians: Vec::new(),
            send: line(1_000.0, 100.0),
            receive: line(500.0, 50.0),
            send_batch: 64,
            receive_batch: 384,
            buffer: 4_096,
        };
        // 100 sends and receives of 10 each: 150,000 ns for batches, 150,000 for datagrams.
        let transfer = Transfer {
            goodput: 1e9,
            datagrams: 1_000,
            sends: 100,
            receives: 100,
            processor: 2_300_000.0,
        };
        let timer = Timer { tick: 0, late: 30_000, p90: 70_000 };
        HostCosts { timer, sockets, transfer, wake }
    }

    #[test]
    fn each_end_has_half_of_what_the_kernels_calls_do_not_explain() {
        // A datagram that is sent and one that is received take 3,650 ns at each end.
        let costs = measured(Wake { median: 207_300, p90: 247_300 });
        assert_eq!(
            costs.field(),
            "timer_tick=0ns,timer_late=30000ns,timer_late_p99=79000ns,wake=100000ns,wake_p99=149000ns,\
             send_batch=64,send_batch_cost=1000ns,send_cost=1100ns,receive_batch=384,receive_batch_cost=500ns,receive_cost=1050ns,socket_buffer=4096B"
        );
        assert!(costs.to_string().contains("2300 ns of processor each, of which 2000 ns are not"));
    }

    #[test]
    fn requests_that_take_no_longer_than_their_datagrams_leave_no_time_to_wake() {
        let costs = measured(Wake { median: 7_000, p90: 7_000 });
        assert!(costs.field().contains("wake=0ns,wake_p99=0ns,"), "{}", costs.field());
    }
}
