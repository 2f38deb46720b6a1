//! What timers, sockets and the protocol cost on this host, in the form that the field `host` of scenario
//! files and the option `--host` take:
//!
//! ```text
//! cargo run --release -p quipu-tokio --example host_costs
//! ```
//!
//! It takes about ten seconds and uses loopback alone. Other work on the host is measured, too.
//!
//! - `timer`: how late the runtime's timer fires.
//! - `sockets`: calls of the kernel that send and receive batches of 1 to 48 datagrams, and the line
//!   `batch cost + datagrams × cost` through their medians.
//! - `transfer`: the processor's time for each datagram of a transfer between two endpoints in one thread.
//!   What the calls do not explain is the protocol's work, and half of it is put on each end.

#[cfg(target_os = "linux")]
mod sockets;
#[cfg(target_os = "linux")]
mod timer;
#[cfg(target_os = "linux")]
mod transfer;

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("the runtime's timer and the kernel's batches are measured on Linux only");
}

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime =
        quipu_tokio::tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let timer = runtime.block_on(timer::measure())?;
    println!(
        "timer        tick {} ns, late by {} ns, 99 % by {} ns",
        timer.tick, timer.late, timer.p99
    );
    let sockets = sockets::measure()?;
    sockets.print();
    let transfer = runtime.block_on(transfer::measure())?;
    let protocol = transfer.rest(&sockets);
    println!(
        "transfer     {:.0} Mbit/s, {} datagrams in {} sends and {} receives, {:.0} ns of processor each, of which {protocol:.0} ns are not the kernel's calls",
        transfer.goodput / 1e6,
        transfer.datagrams,
        transfer.sends,
        transfer.receives,
        transfer.processor / transfer.datagrams as f64,
    );
    let cost = |kernel: f64| (kernel + protocol / 2.0).round();
    println!(
        "\nhost = \"timer_tick={}ns,timer_late={}ns,timer_late_p99={}ns,\
         send_batch={},send_batch_cost={:.0}ns,send_cost={:.0}ns,\
         receive_batch={},receive_batch_cost={:.0}ns,receive_cost={:.0}ns,socket_buffer={}B\"",
        timer.tick,
        timer.late,
        timer.p99,
        sockets.send_batch,
        sockets.send.batch,
        cost(sockets.send.each),
        sockets.receive_batch,
        sockets.receive.batch,
        cost(sockets.receive.each),
        sockets.buffer,
    );
    Ok(())
}
