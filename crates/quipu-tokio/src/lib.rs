//! Quipu on sockets: the engine of `quipu-quic`, driven by a task of tokio, over as many interfaces
//! as a client has.
//!
//! Start with three types:
//! - [`Endpoint`]: sockets, and the connections behind them;
//! - [`Connection`]: one of them, with its streams, datagrams and paths;
//! - [`SendStream`] and [`RecvStream`]: the halves of a stream, for `AsyncWrite` and `AsyncRead`.
//!
//! Configurations are those of the engine ([`ClientConfig`], [`ServerConfig`],
//! [`TransportConfig`]); [`policies`] makes policies by name, and any other
//! [`PolicyFactory`](quipu_quic::endpoint::PolicyFactory) does as well.
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use quipu_policy::Registry;
//! # use quipu_quic::tls::rustls::RustlsClient;
//! # use quipu_tokio::{ClientConfig, Endpoint, Via, policies};
//! # async fn example(roots: rustls::RootCertStore) -> Result<(), Box<dyn std::error::Error>> {
//! let tls = RustlsClient::with_roots(roots, &[b"example"])?;
//! let policies = policies(&Registry::builtin(), "path=ecf")?;
//! let config = ClientConfig::new(Arc::new(tls), Arc::default(), policies);
//! // All interfaces that have a default route.
//! let client = Endpoint::client().via(Via::Auto).bind()?;
//! let connection = client.connect(&config, "192.0.2.1:443".parse()?, "example.org").await?;
//! let (mut send, mut receive) = connection.open_bidirectional().await?;
//! send.write_bytes("a question".into()).await?;
//! send.finish()?;
//! let answer = receive.read_to_limit(1 << 20).await?;
//! connection.close(0, b"thanks");
//! client.wait_idle().await;
//! # Ok(())
//! # }
//! ```
//!
//! From the ground up: `clock` and `timer` give the engine its time, [`uplink`] finds interfaces,
//! `changes` tells when they do, `socket` binds to them, `batches` collects datagrams for the kernel,
//! `engine` is the one way to `quipu-quic`, `recording` notes what goes that way, `state` is what the
//! task of an endpoint (`driver`) shares with its users, and `entry` what they wait for.
//!
//! `hearing` and `icmp` tell a handshake that nobody listens, and `spans` tells `tracing` what happens.
//!
//! [`identity`] has certificates and what servers keep over restarts, [`perf`] measures how fast a
//! connection is, and [`replay`] gives the engine again what it got live. The runtime itself is
//! [`tokio`], re-exported in the version that is used here.
//!
//! [`http3`] carries requests and responses; HTTP itself is in `quipu-http`.

mod batches;
mod changes;
mod chunks;
mod clock;
mod connecting;
mod connection;
mod driver;
mod endpoint;
mod engine;
mod entry;
pub mod error;
mod hearing;
mod holder;
#[cfg(target_os = "linux")]
mod host_costs;
pub mod http3;
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "nothing is heard there"))]
mod icmp;
pub mod identity;
mod incoming;
mod path;
pub mod perf;
mod policies;
mod recording;
mod recv_stream;
pub mod replay;
mod send_stream;
mod shards;
mod socket;
mod spans;
mod state;
pub mod tcp;
mod timer;
mod transport;
pub mod uplink;
mod watch;

pub use batches::SendCounters;
pub use connection::{Connection, ConnectionStats};
pub use endpoint::{ClientBuilder, Endpoint, EndpointStats, ServerBuilder};
pub use entry::PathEvent;
pub use error::{
    AcceptError, BindError, ConnectError, ConnectionError, EditPriorityError, MigrateError,
    PathError, ReadError, WriteError,
};
#[cfg(target_os = "linux")]
pub use host_costs::HostCosts;
pub use incoming::Incoming;
pub use path::{PathEvents, PathInfo};
pub use policies::{policies, policies_of};
pub use quipu_quic::connection::SendDatagramError;
pub use quipu_quic::endpoint::{
    Admission, ClientConfig, EndpointConfig, ServerConfig, TokenConfig,
};
pub use quipu_quic::{DatagramConfig, TransportConfig};
pub use recv_stream::RecvStream;
pub use send_stream::SendStream;
pub use timer::sleep;
pub use tokio;
pub use uplink::{Uplink, Via};
