//! A relay of datagrams between clients and one server on loopback, which spoils what it is asked to,
//! and tells what it saw when its standard input ends.
//!
//! ```text
//! relay --listen ADDRESS --to ADDRESS [--seed N] [--delay MS] [--rate BITS] [--loss SHARE] [--corrupt SHARE]
//!       [--reorder SHARE] [--mark SHARE] [--silent MS] [--rebind port|address] [--session N] [--after BYTES]
//!       [--drop-client FIRST..LAST]
//! ```
//!
//! Delay, rate and shares hold for both directions. Once `--after` bytes have gone to a client,
//! `--silent` drops everything for that long, and `--rebind` has the server see session `--session`,
//! counted from 0, at another port or address; the relay prints `reached` at that moment.
//! `--drop-client` drops those datagrams of each client, counted from 1.

use std::io::Read;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use quipu_interop_live::{Failure, finish};

#[path = "../relay/fate.rs"]
mod fate;
#[path = "../relay/session.rs"]
mod session;
#[path = "../relay/socket.rs"]
mod socket;
#[path = "../relay/traffic.rs"]
mod traffic;
#[path = "../relay/wire.rs"]
mod wire;

use fate::Link;

/// What of a client's address changes for the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rebind {
    Port,
    Address,
}

/// What the relay is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) listen: SocketAddr,
    pub(crate) to: SocketAddr,
    pub(crate) seed: u64,
    pub(crate) link: Link,
    pub(crate) after: u64,
    pub(crate) silent: Option<Duration>,
    pub(crate) rebind: Option<Rebind>,
    pub(crate) session: usize,
    pub(crate) drop_client: RangeInclusive<u64>,
}

#[tokio::main]
async fn main() {
    finish(run().await)
}

async fn run() -> Result<(), Failure> {
    let plan = read(std::env::args().skip(1))?;
    let relay = traffic::Relay::start(plan)?;
    // A thread of its own: what reads standard input cannot be stopped.
    let (over, ended) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        let _ = over.send(());
    });
    relay.run(ended).await
}

fn read(mut args: impl Iterator<Item = String>) -> Result<Plan, Failure> {
    let mut plan = Plan {
        listen: "127.0.0.1:0".parse()?,
        to: "127.0.0.1:0".parse()?,
        seed: 1,
        link: Link::default(),
        after: u64::MAX,
        silent: None,
        rebind: None,
        session: 0,
        drop_client: RangeInclusive::new(1, 0),
    };
    while let Some(name) = args.next() {
        let value = args.next().ok_or_else(|| format!("{name}: expected a value"))?;
        let wrong = || format!("{name} {value}: expected another value");
        match name.as_str() {
            "--listen" => plan.listen = value.parse()?,
            "--to" => plan.to = value.parse()?,
            "--seed" => plan.seed = value.parse()?,
            "--delay" => plan.link.delay = Duration::from_millis(value.parse()?),
            "--rate" => plan.link.rate = value.parse()?,
            "--loss" => plan.link.loss = value.parse()?,
            "--corrupt" => plan.link.corruption = value.parse()?,
            "--reorder" => plan.link.reordering = value.parse()?,
            "--mark" => plan.link.marks = value.parse()?,
            "--after" => plan.after = value.parse()?,
            "--silent" => plan.silent = Some(Duration::from_millis(value.parse()?)),
            "--session" => plan.session = value.parse()?,
            "--rebind" => {
                plan.rebind = Some(match value.as_str() {
                    "port" => Rebind::Port,
                    "address" => Rebind::Address,
                    _ => return Err(wrong().into()),
                });
            }
            "--drop-client" => {
                let (first, last) = value.split_once("..").ok_or_else(wrong)?;
                plan.drop_client = first.parse()?..=last.parse()?;
            }
            _ => return Err(format!("there is no option {name}").into()),
        }
    }
    Ok(plan)
}
