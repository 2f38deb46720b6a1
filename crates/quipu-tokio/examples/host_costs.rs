//! What timers, sockets and the protocol cost on this host, in the form that the field `host` of scenario
//! files and the option `--host` take:
//!
//! ```text
//! cargo run --release -p quipu-tokio --example host_costs
//! ```
//!
//! It takes about twelve seconds and uses loopback alone. Other work on the host is measured, too.

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("the runtime's timer and the kernel's batches are measured on Linux only");
}

#[cfg(target_os = "linux")]
fn main() -> std::io::Result<()> {
    let costs = quipu_tokio::HostCosts::measure()?;
    println!("{costs}\nhost = \"{}\"", costs.field());
    Ok(())
}
