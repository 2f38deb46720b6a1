//! What all parts share: settings, and what they count.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quipu_base::Seed;
use quipu_quic::TransportConfig;
use quipu_testkit::forge::Draw;
use quipu_tokio::identity::Pin;

use crate::noise::Noise;

pub(crate) const NAME: &str = "soak.test";
pub(crate) const ALPN: &[u8] = b"soak";

/// Why the soak could not begin.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A transfer that gets nothing for so long stalls, in ticks of [`TICK`]. It bridges outages of 2 s, with
/// the probes that follow.
pub(crate) const STALL: u64 = 600;

/// Sleeps of one task after the other: where this process gets no processor, less of them pass.
pub(crate) const TICK: Duration = Duration::from_millis(20);

/// Both ends' transport. Connections end after a silence of `idle`: that of clients that were cut.
///
/// `keep_alive`: as it is for clients. One whose address was changed while the server answers has to say
/// something, or the server never finds it.
pub(crate) fn transport(idle: Duration, keep_alive: bool) -> Arc<TransportConfig> {
    let part = |parts: u32| quipu_base::Duration::from_nanos((idle / parts).as_nanos() as u64);
    Arc::new(TransportConfig {
        max_paths: 4,
        idle_timeout: part(1),
        keep_alive: keep_alive.then(|| part(4)),
        ..TransportConfig::default()
    })
}

/// Everything.
pub(crate) struct World {
    pub(crate) seed: Seed,
    pub(crate) server: SocketAddr,
    pub(crate) pin: Pin,
    pub(crate) noise: Arc<Noise>,
    /// Silence after which connections end.
    pub(crate) idle: Duration,
    /// The ticks that passed.
    pub(crate) ticks: AtomicU64,
    /// Clients that have ended and still have connections to close.
    pub(crate) leaving: AtomicU64,
    pub(crate) counts: Counts,
}

macro_rules! counts {
    ($($(#[doc = $doc:literal])* $name:ident,)*) => {
        /// What happened, all of it.
        #[derive(Default)]
        pub(crate) struct Counts {
            $($(#[doc = $doc])* pub(crate) $name: AtomicU64,)*
            /// The longest that an honest transfer got nothing, in ticks.
            pub(crate) longest_pause: AtomicU64,
        }

        impl Counts {
            /// Each with its name.
            pub(crate) fn all(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name.load(Ordering::Relaxed)),)*]
            }
        }
    };
}

counts! {
    /// Clients of an address, each with some connections.
    lives,
    /// Handshakes that succeeded.
    connections,
    /// Honest ones that did not, though nobody cut them.
    failed_handshakes,
    /// Requests that were answered in full.
    transfers,
    /// Bytes of those, both ways.
    bytes,
    /// Transfers that got nothing for [`STALL`].
    stalls,
    /// Transfers that ended with an error, though nobody cut them.
    broken,
    /// Transfers whose bytes were others.
    corrupt,
    /// Clients cut off for good.
    cuts,
    /// Clients without a network for a while.
    outages,
    /// New ports.
    rebinds,
    /// New addresses.
    moves,
    paths_opened,
    paths_abandoned,
    /// What passed between clients and the server.
    datagrams,
    dropped,
    /// What others on the way added.
    duplicated,
    mutated,
    replayed,
    /// Copies from other addresses.
    spoofed,
    garbage,
    /// Datagrams of strangers to the server.
    strange,
    /// Packets that a client sealed with its keys and no client may send.
    forged,
}

pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

pub(crate) fn add(counter: &AtomicU64, amount: usize) {
    counter.fetch_add(amount as u64, Ordering::Relaxed);
}

/// Any loopback address above 127.16.0.0.
pub(crate) fn any_address(draw: &mut impl Draw) -> IpAddr {
    let mut byte = |from: u64, below: u64| (from + draw.below(below - from)) as u8;
    IpAddr::V4(Ipv4Addr::new(127, byte(16, 255), byte(0, 256), byte(1, 255)))
}
