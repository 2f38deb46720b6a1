//! The links of the simulator in real time, between network namespaces: kernel TCP, Multipath TCP, QUIC stacks and
//! browsers run over the very [links](quipu_link) that simulated worlds have.
//!
//! An [`Emulation`] has hosts, which are network namespaces, with an interface for each of their paths, and one thread
//! that carries packets between them. That thread reads a packet from a host's interface, offers it to the links of its
//! path, and hands it to the interface at the far end when they say.
//!
//! Linux only; elsewhere the crate is empty. Start with [`Links`], [`Topology`] and [`Emulation`]:
//!
//! ```no_run
//! # #[cfg(target_os = "linux")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::process::Command;
//!
//! use quipu_base::{Duration, Rate, Seed};
//! use quipu_emu::{Emulation, Links, Settings, Topology, enter_user_namespace};
//! use quipu_link::LinkConfig;
//!
//! // Before there are threads. Root needs it not.
//! enter_user_namespace()?;
//!
//! let config = LinkConfig::new(Rate::from_mbit_per_sec(20), Duration::from_millis(15));
//! let mut links = Links::new(Seed::new(1));
//! let (up, down) = (links.add("up", &config)?, links.add("down", &config)?);
//!
//! let mut topology = Topology::new();
//! let (client, server) = (topology.add_client()?, topology.add_server()?);
//! topology.add_path(0, client, server, &[up], &[down])?;
//!
//! let emulation = Emulation::start(&topology, links, &Settings::default())?;
//! let (address, _) = topology.addresses(server, 0);
//! let mut ping = Command::new("ping");
//! ping.args(["-c", "3", &address.to_string()]);
//! let client = emulation.host(client).ok_or("no client")?;
//! client.spawn(ping)?.wait()?;
//!
//! let report = emulation.stop()?;
//! println!("packets were late by {} ns at the median", report.lateness.p50_ns);
//! for reason in &report.void {
//!     println!("void: {reason}");
//! }
//! # Ok(())
//! # }
//! # #[cfg(not(target_os = "linux"))]
//! # fn main() {}
//! ```
//!
//! # Shape
//!
//! - [`Links`]: from configurations and a seed, or made by a function, as those of scenarios and of the radio are. Each
//!   has a position, its [`LinkId`]. The n-th link meets the chance that the n-th link of a simulated world with the same
//!   seed meets.
//! - [`Topology`]: clients and servers by [`HostId`], and paths between them. A path leads over a list of links in each
//!   direction; paths that name the same link share it, as access links, bottlenecks and further hops of scenarios are
//!   shared. Addresses and names of interfaces follow from the numbers of hosts and paths.
//! - [`Settings`]: MTU of interfaces, kind of device, bound of memory.
//! - [`Emulation::start`], [`Emulation::host`], [`Emulation::renew`] for the next of several runs over fresh links,
//!   [`Emulation::report`], and [`Emulation::stop`].
//! - [`Host::spawn`] starts a program in a host, [`Host::run`] a closure on a thread there.
//! - [`Report`]: what each link did, how late packets were ([`Lateness`]), what got lost elsewhere ([`HiddenDrops`]),
//!   and why the run is void, if it is.
//!
//! # What the emulator tells of itself
//!
//! Real time cannot be kept always: a busy machine wakes the emulator late. Each packet's lateness is measured, and a
//! run in which more than 1 % of the packets are late by more than [`MOST_LATE_NS`] or [`MOST_LATE_PERCENT`] of the
//! smallest delay, but at least [`ALWAYS_ALLOWED_NS`], is void, as is one in which the kernel or the emulator dropped a
//! packet. A packet that comes while the emulator sleeps is offered to its link when it wakes; that time is not in the
//! lateness, and where a queue waits in front of the link it changes nothing.
//!
//! # What packets are
//!
//! Links carry IP packets of either version as they are. They take their length on a link, IP header included, as
//! datagrams of the simulator do, whose links add 28 bytes to each payload. Marks are made in IP headers. Flows of managed
//! queues are protocol, addresses and ports. Hosts cut what they send to the MTU of their interfaces; a link's
//! smaller MTU drops without a word, as in the simulator.
//!
//! Not here: costs of hosts, which are real; names of hosts; a way out of the emulation; and scenario files, which are
//! turned into links and paths elsewhere.

#![cfg(target_os = "linux")]

mod carry;
mod clock;
mod device;
mod emulation;
mod error;
mod host;
mod lateness;
mod links;
mod namespace;
mod packet;
mod report;
mod rights;
mod scheduling;
mod topology;

pub use device::DeviceKind;
pub use emulation::{Emulation, Settings};
pub use error::{EmulationError, TopologyError};
pub use host::Host;
pub use lateness::Lateness;
pub use links::{Described, LinkId, Links, MakeError};
pub use report::{
    ALWAYS_ALLOWED_NS, HiddenDrops, LinkReport, MOST_LATE_NS, MOST_LATE_PERCENT, Packets, Report,
};
pub use rights::enter_user_namespace;
pub use topology::{HostId, Topology};
